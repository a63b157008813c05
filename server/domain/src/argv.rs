//! Arguments of the agent.

mod interactive;

use std::fmt;
use svc_shared::status::{PermissionMode, SpawnMode};
use svc_shared::text::is_unprintable;

pub use interactive::Interactive;

/// A recorded command line, stored as one text and the end of each argument.
/// Thousands of ended bridges are kept in memory, each with about fifteen arguments.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Argv {
    text: Box<str>,
    ends: Box<[u32]>,
}

impl Argv {
    /// The program and its arguments in turn.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let end = usize::try_from(*end).unwrap_or(usize::MAX);
            let one = self.text.get(start..end).unwrap_or_default();
            start = end;
            one
        })
    }
}

impl<S: AsRef<str>> FromIterator<S> for Argv {
    fn from_iter<I: IntoIterator<Item = S>>(words: I) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for word in words {
            text.push_str(word.as_ref());
            // The kernel takes two megabytes of arguments.
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Self { text: text.into(), ends: ends.into() }
    }
}

impl fmt::Debug for Argv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// What a Server Mode bridge is started with (agent 2.1.197, `remote-control`).
#[derive(Debug, Clone, Copy)]
pub struct ServerMode<'a> {
    /// Name shown to the remote client.
    pub name: &'a str,
    /// Debug file; exists already.
    pub debug_file: &'a str,
    /// Working directory strategy.
    pub spawn_mode: SpawnMode,
    /// Permission mode; `inherit` passes no flag.
    pub permission_mode: PermissionMode,
    /// Prefix of session names.
    pub session_name_prefix: Option<&'a str>,
    /// Most sessions at once.
    pub capacity: u32,
    /// More output.
    pub verbose: bool,
}

/// A value that must not be an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {what} must not {fault}; {hint}")]
pub struct ReadAsOption {
    /// Which value.
    pub what: &'static str,
    /// What is wrong with it.
    pub fault: &'static str,
    /// What to do.
    pub hint: &'static str,
}

/// Whether a value that follows a flag can be taken for an option.
#[must_use]
pub fn reads_as_option(value: &str) -> bool {
    value.is_empty() || value.starts_with('-')
}

/// Refuses a value that the agent or a terminal would take for something else.
fn guard(value: &str, what: &'static str, hint: &'static str) -> Result<(), ReadAsOption> {
    if reads_as_option(value) {
        let fault = "be empty or begin with `-`, or the agent reads it as an option";
        return Err(ReadAsOption { what, fault, hint });
    }
    // A record can hold what no request may: somebody else may have written it.
    if value.chars().any(is_unprintable) {
        let fault = "contain control characters, which steer the terminal that shows it";
        return Err(ReadAsOption { what, fault, hint });
    }
    Ok(())
}

/// The flag for a permission mode; `inherit` passes none.
fn permission_flag(mode: PermissionMode) -> Option<[String; 2]> {
    match mode {
        PermissionMode::Inherit => None,
        PermissionMode::Default
        | PermissionMode::Plan
        | PermissionMode::AcceptEdits
        | PermissionMode::Auto
        | PermissionMode::DontAsk
        | PermissionMode::BypassPermissions => {
            Some(["--permission-mode", mode.as_str()].map(str::to_owned))
        }
    }
}

impl ServerMode<'_> {
    /// The arguments after the program.
    ///
    /// # Errors
    /// A value from outside would be read as an option.
    pub fn args(&self) -> Result<Vec<String>, ReadAsOption> {
        guard(self.name, "session name", "give the session another `name`")?;
        guard(self.debug_file, "log path", "give `state_dir` as an absolute path")?;
        let mut args: Vec<String> = ["remote-control", "--name", self.name, "--debug-file"]
            .into_iter()
            .chain([self.debug_file, "--spawn", self.spawn_mode.as_str()])
            .map(str::to_owned)
            .collect();
        args.extend(permission_flag(self.permission_mode).into_iter().flatten());
        let mut flag = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
        match self.spawn_mode {
            SpawnMode::SameDir | SpawnMode::Worktree => {
                if let Some(prefix) = self.session_name_prefix {
                    let hint = "change `instance_defaults.session_name_prefix`";
                    guard(prefix, "session name prefix", hint)?;
                    flag("--remote-control-session-name-prefix", prefix);
                }
                flag("--capacity", &self.capacity.to_string());
            }
            // One session is all it serves.
            SpawnMode::Session => {}
        }
        if self.verbose {
            args.push("--verbose".to_owned());
        }
        Ok(args)
    }
}

/// The arguments of a Direct Session (agent 2.1.197, stream-json on pipes).
///
/// `resumed` must be a conversation that [`crate::hosted::is_usable_uuid`] accepts; any other is
/// left out.
#[must_use]
pub fn hosted_args(mode: PermissionMode, resumed: Option<&str>) -> Vec<String> {
    let mut args: Vec<String> = [
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--permission-prompt-tool",
        "stdio",
        "--include-partial-messages",
        "--replay-user-messages",
    ]
    .map(str::to_owned)
    .into();
    args.extend(permission_flag(mode).into_iter().flatten());
    if let Some(conversation) = resumed.filter(|raw| crate::hosted::is_usable_uuid(raw)) {
        args.extend(["--resume", conversation].map(str::to_owned));
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain() -> ServerMode<'static> {
        ServerMode {
            name: "api",
            debug_file: "/s/logs/api-1-0.log",
            spawn_mode: SpawnMode::SameDir,
            permission_mode: PermissionMode::Default,
            session_name_prefix: None,
            capacity: 32,
            verbose: false,
        }
    }

    #[test]
    fn every_option_of_server_mode_reaches_the_agent() {
        let all = ServerMode {
            spawn_mode: SpawnMode::Worktree,
            permission_mode: PermissionMode::AcceptEdits,
            session_name_prefix: Some("box"),
            verbose: true,
            ..plain()
        };
        assert_eq!(
            all.args().unwrap().join(" "),
            "remote-control --name api --debug-file /s/logs/api-1-0.log --spawn worktree \
             --permission-mode acceptEdits --remote-control-session-name-prefix box \
             --capacity 32 --verbose"
        );
    }

    #[test]
    fn inherit_passes_no_flag_and_a_single_session_has_no_capacity() {
        let single = ServerMode {
            spawn_mode: SpawnMode::Session,
            permission_mode: PermissionMode::Inherit,
            session_name_prefix: Some("box"),
            ..plain()
        };
        assert_eq!(
            single.args().unwrap().join(" "),
            "remote-control --name api --debug-file /s/logs/api-1-0.log --spawn session"
        );
    }

    #[test]
    fn h29_no_value_is_ever_read_as_an_option() {
        for name in ["", "-", "--", "-x", "--help", "--dangerously-skip-permissions"] {
            assert!(ServerMode { name, ..plain() }.args().is_err(), "{name:?}");
            let prefix = ServerMode { session_name_prefix: Some(name), ..plain() };
            assert!(prefix.args().is_err(), "{name:?}");
        }
        // A record may hold what no request may: it was not written by us.
        for name in ["a\u{1b}[31m", "a\nb", "a\0b", "\u{202e}a", "a\u{7f}", "\u{9b}31m", "\u{2028}"]
        {
            assert!(ServerMode { name, ..plain() }.args().is_err(), "{name:?}");
            let prefix = ServerMode { session_name_prefix: Some(name), ..plain() };
            assert!(prefix.args().is_err(), "{name:?}");
        }
        let shell = "$(touch x) `id`; & %PATH%";
        let args = ServerMode { name: shell, ..plain() }.args().unwrap();
        assert_eq!(args[2], shell);
    }

    proptest! {
        #[test]
        fn h29_every_value_stands_right_behind_its_own_flag_and_no_other_flag_appears(
            name in "\\PC{0,12}|-{0,2}[a-z=]{0,8}|@[a-z]{1,4}",
            prefix in prop::option::of("\\PC{0,12}|-{0,2}[a-z=]{0,8}"),
            capacity: u32,
            verbose: bool,
            spawn_mode in prop::sample::select(vec![
                SpawnMode::SameDir, SpawnMode::Worktree, SpawnMode::Session,
            ]),
        ) {
            let wish = ServerMode {
                name: &name, session_name_prefix: prefix.as_deref(), capacity, verbose, spawn_mode,
                ..plain()
            };
            let has_prefix = prefix.as_deref().filter(|_| spawn_mode != SpawnMode::Session);
            let refuses = |value: &str| {
                reads_as_option(value) || value.chars().any(is_unprintable)
            };
            let is_refused = refuses(&name) || has_prefix.is_some_and(refuses);
            let Ok(args) = wish.args() else {
                prop_assert!(is_refused, "{:?} {:?}", name, prefix);
                return Ok(());
            };
            prop_assert!(!is_refused);
            let mut rest = args.iter().map(String::as_str);
            prop_assert_eq!(rest.next(), Some("remote-control"));
            while let Some(flag) = rest.next() {
                let capacity = capacity.to_string();
                let expected = match flag {
                    "--name" => &name,
                    "--debug-file" => plain().debug_file,
                    "--spawn" => spawn_mode.as_str(),
                    "--permission-mode" => plain().permission_mode.as_str(),
                    "--remote-control-session-name-prefix" => has_prefix.unwrap(),
                    "--capacity" => &capacity,
                    "--verbose" => {
                        prop_assert!(verbose);
                        continue;
                    }
                    other => return Err(TestCaseError::fail(format!("option {other}"))),
                };
                prop_assert_eq!(rest.next(), Some(expected));
            }
        }
    }
}
