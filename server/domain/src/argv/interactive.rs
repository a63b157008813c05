//! Arguments of an Interactive Session (`agent-cli` §2, row 2).

use super::{ReadAsOption, guard, permission_flag};
use crate::conversation::TakeUp;
use crate::worktree::WorktreeName;
use svc_shared::status::PermissionMode;

/// What an Interactive Session is started with (agent 2.1.197, `--remote-control`).
#[derive(Debug, Clone, Copy)]
pub struct Interactive<'a> {
    /// The project's name. The agent shows it; a label of our own never goes there.
    pub project: &'a str,
    /// Debug file; exists already.
    pub debug_file: &'a str,
    /// Permission mode; `inherit` passes no flag.
    pub permission_mode: PermissionMode,
    /// The worktree it works in; the agent makes it.
    pub worktree: Option<&'a WorktreeName>,
    /// The conversation it begins with.
    pub take_up: &'a TakeUp,
}

impl Interactive<'_> {
    /// The arguments after the program.
    ///
    /// # Errors
    /// A value from outside would be read as an option.
    pub fn args(&self) -> Result<Vec<String>, ReadAsOption> {
        guard(self.project, "project name", "rename the directory of the project")?;
        guard(self.debug_file, "log path", "give `state_dir` as an absolute path")?;
        let mut args: Vec<String> =
            ["--remote-control", self.project, "--debug-file", self.debug_file]
                .map(str::to_owned)
                .into();
        args.extend(permission_flag(self.permission_mode).into_iter().flatten());
        let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
        if let Some(worktree) = self.worktree {
            add(&["--worktree", worktree.as_str()]);
        }
        match self.take_up {
            TakeUp::New => {}
            TakeUp::Newest => add(&["--continue"]),
            TakeUp::Same(conversation) => add(&["--resume", conversation.expose()]),
            TakeUp::CopyOf(conversation) => {
                add(&["--resume", conversation.expose(), "--fork-session"]);
            }
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::ConversationId;
    use proptest::prelude::*;

    const UUID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

    fn plain() -> Interactive<'static> {
        Interactive {
            project: "api",
            debug_file: "/s/logs/api-1-0.log",
            permission_mode: PermissionMode::Inherit,
            worktree: None,
            take_up: &TakeUp::New,
        }
    }

    fn conversation() -> ConversationId {
        UUID.parse().unwrap()
    }

    #[test]
    fn every_option_of_a_session_reaches_the_agent_and_no_option_of_server_mode() {
        let worktree: WorktreeName = "svc-3a375c2e".parse().unwrap();
        let rows = [
            (TakeUp::New, ""),
            (TakeUp::Newest, " --continue"),
            (TakeUp::Same(conversation()), " --resume 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"),
            (
                TakeUp::CopyOf(conversation()),
                " --resume 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 --fork-session",
            ),
        ];
        for (take_up, end) in rows {
            let bare = Interactive { take_up: &take_up, ..plain() };
            assert_eq!(
                bare.args().unwrap().join(" "),
                format!("--remote-control api --debug-file /s/logs/api-1-0.log{end}")
            );
            let full = Interactive {
                permission_mode: PermissionMode::Plan,
                worktree: Some(&worktree),
                ..bare
            };
            assert_eq!(
                full.args().unwrap().join(" "),
                format!(
                    "--remote-control api --debug-file /s/logs/api-1-0.log --permission-mode plan \
                     --worktree svc-3a375c2e{end}"
                )
            );
        }
    }

    proptest! {
        #[test]
        fn h29_the_name_of_a_project_is_never_read_as_an_option(
            project in "\\PC{0,12}|-{0,2}[a-z=]{0,8}|[a-z]{0,3}\\p{Cc}[a-z]{0,3}",
        ) {
            let refused = super::super::reads_as_option(&project)
                || project.chars().any(svc_shared::text::is_unprintable);
            match (Interactive { project: &project, ..plain() }).args() {
                Ok(args) => {
                    prop_assert!(!refused);
                    prop_assert_eq!(&args[..2], &["--remote-control".to_owned(), project]);
                }
                Err(bad) => {
                    prop_assert!(refused);
                    prop_assert!(bad.to_string().contains("project name"));
                }
            }
        }
    }
}
