//! The kind of an agent process, by its program and arguments (agent 2.1.197).

use crate::version::AgentVersion;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Kinds of agent processes that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A Server Mode bridge: the subcommand `remote-control`.
    StandardBridge,
    /// An interactive agent with `--remote-control`.
    FlagForm,
    /// Anything else, also background jobs with `--rc`.
    Other,
}

/// Finds the kind by whole arguments, never by text inside them.
///
/// `exe` is its program file, `configured` the agent CLI this service runs. A trailing ` (deleted)`
/// of an upgraded program is ignored.
#[must_use]
pub fn role(argv: &[String], exe: Option<&Path>, configured: &Path) -> Role {
    let is_agent = exe.is_some_and(|exe| is_agent_program(exe, configured));
    let script =
        argv.get(1).map(Path::new).filter(|script| !is_agent && has_agent_name(script, configured));
    let first = match (is_agent, script) {
        (true, _) => 1,
        (false, Some(_)) => 2,
        (false, None) => return Role::Other,
    };
    let arguments = argv.get(first..).unwrap_or_default();
    let before_prompt = arguments.iter().take_while(|arg| *arg != "--");
    let is_flag = |arg: &str| arg == "--remote-control" || arg.starts_with("--remote-control=");
    if before_prompt.map(String::as_str).any(is_flag) {
        Role::FlagForm
    } else if arguments.first().is_some_and(|arg| arg == "remote-control") {
        Role::StandardBridge
    } else {
        Role::Other
    }
}

/// Whether a process is an agent of any kind.
#[must_use]
pub fn is_agent(argv: &[String], exe: Option<&Path>, configured: &Path) -> bool {
    exe.is_some_and(|exe| is_agent_program(exe, configured))
        || argv.iter().take(2).any(|arg| has_agent_name(Path::new(arg), configured))
}

/// Whether a program file is the agent CLI.
fn is_agent_program(exe: &Path, configured: &Path) -> bool {
    // In a native installation the program file is named by version: `…/claude/versions/2.1.197`.
    has_agent_name(exe, configured) || AgentVersion::from_program(exe).is_some()
}

fn has_agent_name(path: &Path, configured: &Path) -> bool {
    let name = path.file_name().map(without_deleted);
    name.is_some_and(|name| {
        name == "claude" || name == "claude.exe" || Some(name) == configured.file_name()
    })
}

fn without_deleted(name: &OsStr) -> &OsStr {
    name.to_str().and_then(|name| name.strip_suffix(" (deleted)")).map_or(name, OsStr::new)
}

/// Whether a process runs what this service launched.
/// Its arguments end with the recorded ones, after the program and at most an interpreter with its
/// script.
#[must_use]
pub fn runs_recorded(argv: &[String], recorded: &[String]) -> bool {
    let in_front = argv.len().checked_sub(recorded.len());
    !recorded.is_empty() && argv.ends_with(recorded) && matches!(in_front, Some(1 | 2))
}

/// The debug file that an agent was told to write.
#[must_use]
pub fn debug_file(argv: &[String]) -> Option<PathBuf> {
    let mut arguments = argv.iter().take_while(|arg| *arg != "--");
    while let Some(argument) = arguments.next() {
        if argument == "--debug-file" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(path) = argument.strip_prefix("--debug-file=") {
            return Some(path.into());
        }
    }
    None
}

/// The version of a running agent, by its program file.
/// If that has no version: by the file of a direct child, then by its first argument.
#[must_use]
pub fn running_version<'a>(
    exe: Option<&Path>,
    children: impl IntoIterator<Item = &'a Path>,
    argv: &[String],
) -> Option<AgentVersion> {
    exe.and_then(AgentVersion::from_program)
        .or_else(|| children.into_iter().find_map(AgentVersion::from_program))
        .or_else(|| argv.first().and_then(|arg| AgentVersion::from_program(Path::new(arg))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(exe: &str, line: &str, expected: Role) {
        let configured = Path::new("/opt/bin/svc-agent-sim");
        let found = role(&argv(line), Some(Path::new(exe)), configured);
        assert_eq!(found, expected, "{exe}: {line}");
    }

    #[test]
    fn a_server_mode_bridge_is_the_subcommand_of_the_agent() {
        for (exe, line) in [
            ("/usr/bin/claude", "claude remote-control --name x"),
            ("/usr/bin/claude (deleted)", "claude remote-control"),
            ("/usr/lib/x/claude.exe", "claude.exe remote-control --spawn same-dir"),
            ("/home/u/.local/share/claude/versions/2.1.197", "claude remote-control"),
            ("/usr/bin/node", "node /usr/bin/claude remote-control --name x"),
            ("/opt/bin/svc-agent-sim", "svc-agent-sim remote-control"),
        ] {
            check(exe, line, Role::StandardBridge);
        }
    }

    #[test]
    fn an_interactive_agent_with_the_flag_is_no_server_mode_bridge() {
        check("/usr/bin/claude", "claude --remote-control x", Role::FlagForm);
        check("/usr/bin/claude", "claude --remote-control=x", Role::FlagForm);
        check("/usr/bin/claude", "claude -c --remote-control x", Role::FlagForm);
        check("/usr/bin/claude", "claude remote-control --remote-control", Role::FlagForm);
        check("/usr/bin/claude", "claude -- --remote-control", Role::Other);
    }

    #[test]
    fn look_alikes_are_nothing() {
        for (exe, line) in [
            ("/usr/bin/vim", "vim claude-remote-control.md"),
            ("/usr/bin/vim", "vim remote-control"),
            ("/usr/bin/vim", "claude remote-control"),
            ("/usr/bin/claude", "claude --rc x"),
            ("/usr/bin/claude", "claude --bg --rc x -- remote-control"),
            ("/usr/bin/claude", "claude --verbose remote-control"),
            ("/usr/bin/claude", "claude"),
            ("/usr/bin/node", "node server.js remote-control"),
            ("/usr/bin/node", "node --inspect /usr/bin/claude remote-control"),
            ("/home/u/.nvm/versions/node/v20.1.0/bin/node", "node remote-control"),
        ] {
            check(exe, line, Role::Other);
        }
        let unreadable = role(&argv("claude remote-control"), None, Path::new("/usr/bin/claude"));
        assert_eq!(unreadable, Role::Other);
    }

    #[test]
    fn a_launched_process_is_known_by_the_end_of_its_arguments() {
        let recorded = argv("remote-control --name x");
        assert!(runs_recorded(&argv("/usr/bin/claude remote-control --name x"), &recorded));
        assert!(runs_recorded(&argv("node /usr/bin/claude remote-control --name x"), &recorded));
        assert!(!runs_recorded(&argv("claude remote-control --name y"), &recorded));
        assert!(!runs_recorded(&recorded, &recorded));
        assert!(!runs_recorded(&argv("a b c remote-control --name x"), &recorded));
        assert!(!runs_recorded(&argv("claude"), &[]));
    }

    #[test]
    fn the_debug_file_is_read_from_whole_arguments() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(debug_file(&argv(line)), expected.map(PathBuf::from), "{line}");
        };
        check("claude remote-control --debug-file /l/a.log --spawn session", Some("/l/a.log"));
        check("claude remote-control --debug-file=/l/a.log", Some("/l/a.log"));
        check("claude remote-control --debug-file", None);
        check("claude -- --debug-file /l/a.log", None);
    }

    #[test]
    fn the_version_of_a_running_agent_comes_from_the_nearest_program() {
        let native = Path::new("/h/claude/versions/2.1.197");
        let newer = Path::new("/h/claude/versions/2.1.280");
        let node = Path::new("/h/.nvm/versions/node/v20.1.0/bin/node");
        let of = |exe, children: &[&Path], line: &str| {
            running_version(exe, children.iter().copied(), &argv(line)).map(|v| v.to_string())
        };
        assert_eq!(of(Some(native), &[newer], "claude").as_deref(), Some("2.1.197"));
        assert_eq!(of(Some(node), &[node, newer], "node").as_deref(), Some("2.1.280"));
        let by_argument = of(None, &[node], "/h/claude/versions/2.1.145 x");
        assert_eq!(by_argument.as_deref(), Some("2.1.145"));
        assert_eq!(of(Some(node), &[], "node"), None);
    }
}
