//! The git worktree of an Interactive Session (`agent-cli` §13).

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use svc_shared::ids::InstanceId;

const PREFIX: &str = "svc-";
const DIGITS: usize = 8;

/// Name of a worktree of this service: `svc-` and eight hexadecimal digits.
/// The agent makes the worktree and its branch `worktree-<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorktreeName(Box<str>);

/// Why a text is not the name of a worktree of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a worktree of this service: use `svc-` and 8 lower-case hexadecimal digits")]
pub struct BadWorktreeName;

impl FromStr for WorktreeName {
    type Err = BadWorktreeName;

    fn from_str(raw: &str) -> Result<Self, BadWorktreeName> {
        let digits = raw.strip_prefix(PREFIX).ok_or(BadWorktreeName)?;
        let fits = digits.len() == DIGITS
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(raw.into())).ok_or(BadWorktreeName)
    }
}

impl fmt::Display for WorktreeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl WorktreeName {
    /// The name for the worktree of an instance, the same over all its generations.
    #[must_use]
    pub fn of(id: &InstanceId) -> Self {
        let digits = id.as_str().chars().take(DIGITS);
        Self(PREFIX.chars().chain(digits).collect::<String>().into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the agent keeps the worktree.
    #[must_use]
    pub fn path_in(&self, project: &Path) -> PathBuf {
        project.join(".claude").join("worktrees").join(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_instance_is_one_that_is_accepted_again() {
        let id: InstanceId = "3a375c2e-0a3b-4c5d-8e9f-001122334455".parse().unwrap();
        let name = WorktreeName::of(&id);
        assert_eq!(name.as_str(), "svc-3a375c2e");
        assert_eq!(name.as_str().parse(), Ok(name.clone()));
        assert_eq!(name.path_in(Path::new("/p")), Path::new("/p/.claude/worktrees/svc-3a375c2e"));
    }

    #[test]
    fn no_other_name_is_ever_used() {
        for bad in [
            "",
            "svc-",
            "svc-3a375c2",
            "svc-3a375c2e0",
            "svc-3A375C2E",
            "../svc-3a375c2e",
            "svc-3a375c2e/..",
            "-svc-3a375c2e",
            "svc-3a375c2e\n",
            "fix-login",
        ] {
            assert_eq!(bad.parse::<WorktreeName>(), Err(BadWorktreeName), "{bad:?}");
        }
    }
}
