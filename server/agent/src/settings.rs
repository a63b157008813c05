//! Reads the agent's settings for a start: names and modes, never values.

use crate::home::AgentHome;
use crate::project_file;
use crate::trust::{Approvals, Known, keys, words};
use rustix::fs::{Mode, OFlags, open};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use svc_shared::text::is_hidden;

/// Largest settings file.
const SIZE_CAP: u64 = 1024 * 1024;

/// Most names of each kind. A repository may contain any number.
const MAX_NAMES: usize = 200;

/// Longest name, in characters.
const NAME_CHARS: usize = 128;

/// The mode in which the agent asks for no permission.
const BYPASS: &str = "bypassPermissions";

/// Settings of the machine's administrator (agent 2.1.197).
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// The permission mode that a start without `--permission-mode` gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultMode {
    /// The agent's word. A newer version may have other words.
    pub mode: String,
    /// `managed`, `local`, `project` or `user`.
    pub source: &'static str,
}

/// A server of the model context protocol that the agent would use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// Whether it may run. `None` if nobody has decided about it yet.
    pub approved: Option<bool>,
}

/// The hooks and servers that would be active in a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectSettings {
    /// Events for which a hook runs a command, in any settings file.
    pub hooks: Vec<String>,
    /// Servers by name.
    pub mcp_servers: Vec<McpServer>,
}

/// The settings files of one project, highest precedence first.
#[derive(Debug)]
pub(crate) struct Scopes {
    files: [(&'static str, Scope); 4],
    project_servers: Vec<String>,
}

/// One settings file.
#[derive(Debug)]
enum Scope {
    /// There is no file, or the agent cannot read it either.
    Missing,
    /// Its content.
    Known(Value),
    /// There is a file, but it is not known what the agent reads in it.
    /// The file is too large, no regular file, a link out of the project, or not JSON.
    Unclear,
}

impl Scope {
    fn known(&self) -> Option<&Value> {
        match self {
            Self::Known(value) => Some(value),
            Self::Missing | Self::Unclear => None,
        }
    }

    fn default_mode(&self) -> Option<&str> {
        self.known()?.pointer("/permissions/defaultMode")?.as_str()
    }
}

impl Scopes {
    /// Reads them. Blocks.
    pub(crate) fn read(home: &AgentHome, project: &Path) -> Self {
        Self::read_with(home, project, Path::new(MANAGED))
    }

    fn read_with(home: &AgentHome, project: &Path, managed: &Path) -> Self {
        let own = |inside: &str| read(project_file::open(project, Path::new(inside)));
        let servers = own(".mcp.json");
        Self {
            files: [
                ("managed", read(follow(managed))),
                ("local", own(".claude/settings.local.json")),
                ("project", own(".claude/settings.json")),
                ("user", read(follow(&home.dir().join("settings.json")))),
            ],
            project_servers: keys(servers.known().and_then(|file| file.get("mcpServers"))),
        }
    }

    pub(crate) fn default_mode(&self) -> Option<DefaultMode> {
        self.files.iter().find_map(|(source, file)| {
            Some(DefaultMode { mode: shown(file.default_mode()?), source })
        })
    }

    /// Whether a start without `--permission-mode` may bypass permissions.
    /// A file that is not understood counts as a yes. Otherwise a repository could get past the limit
    /// with an odd file.
    pub(crate) fn may_bypass(&self) -> bool {
        for (_, file) in &self.files {
            match file {
                Scope::Missing => {}
                Scope::Unclear => return true,
                Scope::Known(_) => {
                    if let Some(mode) = file.default_mode() {
                        return mode == BYPASS;
                    }
                }
            }
        }
        false
    }

    pub(crate) fn project_settings(&self, known: &Known, project: &Path) -> ProjectSettings {
        let own = known.approvals(project);
        let mut servers = BTreeMap::new();
        servers.extend(known.user_servers().iter().map(|name| (name.clone(), Some(true))));
        let decided = |name: &String| (name.clone(), self.approval(name, &own));
        servers.extend(self.project_servers.iter().map(decided));
        servers.extend(own.own.iter().map(|name| (name.clone(), Some(true))));
        ProjectSettings {
            hooks: self.hooks(),
            mcp_servers: servers
                .into_iter()
                .take(MAX_NAMES)
                .map(|(name, approved)| McpServer { name: shown(&name), approved })
                .collect(),
        }
    }

    fn hooks(&self) -> Vec<String> {
        let files = self.files.iter().filter_map(|(_, file)| file.known());
        let events: BTreeSet<String> = files
            .filter_map(|file| file.get("hooks")?.as_object())
            .flatten()
            // An event without an entry runs nothing.
            .filter(|(_, entries)| entries.as_array().is_some_and(|entries| !entries.is_empty()))
            .map(|(event, _)| shown(event))
            .collect();
        events.into_iter().take(MAX_NAMES).collect()
    }

    fn approval(&self, name: &String, own: &Approvals) -> Option<bool> {
        let files = || self.files.iter().filter_map(|(_, file)| file.known());
        let listed = |key: &str| files().any(|file| words(file.get(key)).contains(name));
        if own.disabled.contains(name) || listed("disabledMcpjsonServers") {
            return Some(false);
        }
        let all =
            || files().any(|file| file.get("enableAllProjectMcpServers") == Some(&true.into()));
        let enabled = own.enabled.contains(name) || listed("enabledMcpjsonServers") || all();
        enabled.then_some(true)
    }
}

/// A file of the user or the administrator, who may link where they like.
fn follow(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

fn read(file: io::Result<File>) -> Scope {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let file = match file {
        Ok(file) => file,
        // The agent runs as the same user and cannot read it either.
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => {
            return Scope::Missing;
        }
        Err(_) => return Scope::Unclear,
    };
    match content(file) {
        Some(bytes) if bytes.trim_ascii().is_empty() => Scope::Missing,
        Some(bytes) => {
            let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
            serde_json::from_slice(text).map_or(Scope::Unclear, Scope::Known)
        }
        None => Scope::Unclear,
    }
}

fn content(file: File) -> Option<Vec<u8>> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let read = file.take(SIZE_CAP + 1).read_to_end(&mut bytes).ok()?;
    u64::try_from(read).is_ok_and(|read| read <= SIZE_CAP).then_some(bytes)
}

/// A name from a file, for display: no invisible characters, not too long.
fn shown(name: &str) -> String {
    let safe = |c| if is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c };
    name.chars().take(NAME_CHARS).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    struct Bench {
        root: tempfile::TempDir,
        home: AgentHome,
    }

    impl Bench {
        fn new(files: &[(&str, &str)]) -> Self {
            let root = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = root.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let env = [("HOME".into(), root.path().join("home").into())].into();
            Self { home: AgentHome::of_child(&env).unwrap(), root }
        }

        fn scopes(&self) -> Scopes {
            let managed = self.root.path().join("managed.json");
            Scopes::read_with(&self.home, &self.root.path().join("p"), &managed)
        }
    }

    fn mode(mode: &str) -> String {
        format!(r#"{{"permissions":{{"defaultMode":"{mode}"}}}}"#)
    }

    #[test]
    fn the_default_mode_is_that_of_the_highest_scope() {
        let user = ("home/.claude/settings.json", mode("plan"));
        let project = ("p/.claude/settings.json", mode("acceptEdits"));
        let local = ("p/.claude/settings.local.json", mode("bypassPermissions"));
        let managed = ("managed.json", mode("default"));
        let all = [user, project, local, managed];
        let expected = [
            ("plan", "user"),
            ("acceptEdits", "project"),
            ("bypassPermissions", "local"),
            ("default", "managed"),
        ];
        for (n, (mode, source)) in expected.into_iter().enumerate() {
            let files: Vec<(&str, &str)> =
                all.iter().take(n + 1).map(|(name, text)| (*name, text.as_str())).collect();
            let found = Bench::new(&files).scopes().default_mode();
            assert_eq!(found, Some(DefaultMode { mode: mode.to_owned(), source }));
        }
        assert_eq!(Bench::new(&[]).scopes().default_mode(), None);
        let odd = [("p/.claude/settings.json", "[]"), ("home/.claude/settings.json", "{")];
        assert_eq!(Bench::new(&odd).scopes().default_mode(), None);
    }

    #[test]
    fn hooks_and_servers_are_named_with_what_was_decided_about_them() {
        let bench = Bench::new(&[
            ("p/.mcp.json", r#"{"mcpServers":{"on":{},"off":{},"open":{}}}"#),
            ("p/.claude/settings.json", r#"{"hooks":{"Stop":[{"hooks":[]}],"PreCompact":[]}}"#),
            (
                "home/.claude/settings.json",
                r#"{"hooks":{"SessionStart":[{}]},"disabledMcpjsonServers":["off"]}"#,
            ),
        ]);
        let project = bench.root.path().join("p");
        let text = serde_json::json!({
            "mcpServers": {"mine": {}},
            "projects": {project.to_str().unwrap(): {
                "enabledMcpjsonServers": ["on"], "mcpServers": {"local": {}},
            }},
        });
        let known = Known::parse(&text.to_string()).unwrap();
        let found = bench.scopes().project_settings(&known, &project);
        assert_eq!(found.hooks, ["SessionStart", "Stop"]);
        let servers: Vec<(&str, Option<bool>)> =
            found.mcp_servers.iter().map(|one| (one.name.as_str(), one.approved)).collect();
        let yes = Some(true);
        let expected =
            [("local", yes), ("mine", yes), ("off", Some(false)), ("on", yes), ("open", None)];
        assert_eq!(servers, expected);
    }

    #[test]
    fn names_of_strangers_are_shown_without_tricks() {
        let long = "x".repeat(1000);
        let file = serde_json::json!({"mcpServers": {"a\u{202e}b\n": {}, &long: {}}}).to_string();
        let bench = Bench::new(&[("p/.mcp.json", &file)]);
        let found =
            bench.scopes().project_settings(&Known::default(), &bench.root.path().join("p"));
        let names: Vec<&str> = found.mcp_servers.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a\u{fffd}b\u{fffd}", &long[..NAME_CHARS]]);
    }

    #[test]
    fn a_start_that_inherits_bypasses_when_the_highest_scope_says_so() {
        let check = |files: &[(&str, &str)], expected: bool| {
            assert_eq!(Bench::new(files).scopes().may_bypass(), expected, "{files:?}");
        };
        let (bypass, plan) = (mode(BYPASS), mode("plan"));
        check(&[], false);
        check(&[("p/.claude/settings.json", &bypass)], true);
        check(&[("p/.claude/settings.json", &bypass), ("managed.json", &plan)], false);
        check(&[("home/.claude/settings.json", &bypass), ("p/.claude/settings.json", "{}")], true);
        check(
            &[("home/.claude/settings.json", &bypass), ("p/.claude/settings.json", &plan)],
            false,
        );
        check(&[("p/.claude/settings.json", &format!("\u{feff}{bypass}"))], true);
        check(&[("p/.claude/settings.json", " \n"), ("managed.json", "[]")], false);
    }

    /// H41: the agent may accept JSON that we refuse, and the other way round.
    #[test]
    fn settings_that_are_not_understood_count_as_a_bypass_unless_a_higher_scope_decides() {
        let surrogate = mode(BYPASS).replacen('{', r#"{"x":"\ud800","#, 1);
        let deep = format!("{{\"x\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        let giant = format!("{}{}", mode(BYPASS), " ".repeat(1024 * 1024));
        for text in ["{", surrogate.as_str(), &deep, &giant] {
            let unclear = ("p/.claude/settings.json", text);
            let found = Bench::new(&[unclear]).scopes();
            assert_eq!(found.default_mode(), None);
            assert!(found.may_bypass(), "{text:.40}");
            let decided = ("p/.claude/settings.local.json", mode("plan"));
            let found = Bench::new(&[unclear, (decided.0, &decided.1)]).scopes();
            assert!(!found.may_bypass(), "{text:.40}");
        }
    }

    /// H38, H41.
    #[test]
    fn what_is_no_file_of_the_project_is_neither_read_nor_waited_for() {
        use rustix::fs::{CWD, FileType, mknodat};
        use std::os::unix::fs::symlink;
        let bench = Bench::new(&[
            ("p/.claude/x", ""),
            ("out/settings.json", &mode("plan")),
            ("dotfiles/settings.json", &mode("acceptEdits")),
            ("home/.claude/x", ""),
        ]);
        let root = bench.root.path();
        let own = root.join("p/.claude/settings.json");
        mknodat(CWD, &own, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(bench.scopes().default_mode(), None);
        assert!(bench.scopes().may_bypass());

        fs::remove_file(&own).unwrap();
        symlink("../../out/settings.json", &own).unwrap();
        assert_eq!(bench.scopes().default_mode(), None);
        assert!(bench.scopes().may_bypass());

        fs::remove_file(&own).unwrap();
        let user = root.join("home/.claude/settings.json");
        symlink(root.join("dotfiles/settings.json"), user).unwrap();
        let found = bench.scopes().default_mode().unwrap();
        assert_eq!((found.mode.as_str(), found.source), ("acceptEdits", "user"));
    }

    proptest! {
        /// H41. Only a file that is certainly no bypass passes.
        #[test]
        fn h41_settings_with_broken_bytes_pass_a_ceiling_only_when_they_are_understood(
            at in any::<prop::sample::Index>(),
            cut in 0_usize..4,
            put in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let mut bytes = mode(BYPASS).into_bytes();
            let from = at.index(bytes.len());
            let to = (from + cut).min(bytes.len());
            bytes.splice(from..to, put);
            let bench = Bench::new(&[("p/.claude/settings.json", "")]);
            fs::write(bench.root.path().join("p/.claude/settings.json"), &bytes).unwrap();
            let scopes = bench.scopes();
            if !scopes.may_bypass() {
                let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
                let understood: Value = serde_json::from_slice(text).unwrap();
                let says = understood.pointer("/permissions/defaultMode");
                prop_assert_ne!(says, Some(&Value::from(BYPASS)));
            }
        }

        #[test]
        fn h67_names_of_strangers_are_bounded_and_printable(
            event in any::<String>(), server in any::<String>(),
        ) {
            let hooks = serde_json::json!({"hooks": {&event: [{}]}}).to_string();
            let servers = serde_json::json!({"mcpServers": {&server: {}}}).to_string();
            let bench = Bench::new(&[("p/.claude/settings.json", &hooks), ("p/.mcp.json", &servers)]);
            let project = bench.root.path().join("p");
            let found = bench.scopes().project_settings(&Known::default(), &project);
            let names = found.hooks.iter().chain(found.mcp_servers.iter().map(|one| &one.name));
            for name in names {
                prop_assert!(name.chars().count() <= NAME_CHARS);
                prop_assert!(!name.chars().any(is_hidden), "{:?}", name);
            }
        }
    }
}
