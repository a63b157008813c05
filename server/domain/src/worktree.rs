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

/// What is known of a worktree before it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// A live record names it, or a process works in it.
    pub in_use: bool,
    /// Git answered about it; otherwise nothing below is known.
    pub is_readable: bool,
    /// Files with changes that are in no commit.
    pub changed: Option<u64>,
    /// Commits that no branch and no tag has.
    pub loose: Option<u64>,
    /// Somebody locked it against removal.
    pub is_locked: bool,
    /// It holds repositories of its own, which are not looked at.
    pub has_submodules: bool,
}

/// Something that a removal loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Files with changes that are in no commit.
    Changes(u64),
    /// Commits that no branch and no tag has.
    Commits(u64),
    /// The number of changed files, or of such commits, is not known.
    Unknown,
    /// Work in submodules, which are not looked at.
    Submodules,
    /// The lock that somebody put on it.
    Lock,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changes(1) => f.write_str("changes in 1 file that are in no commit"),
            Self::Changes(n) => write!(f, "changes in {n} files that are in no commit"),
            Self::Commits(1) => f.write_str("1 commit that no branch has"),
            Self::Commits(n) => write!(f, "{n} commits that no branch has"),
            Self::Unknown => f.write_str("perhaps work: git did not say what is in no commit"),
            Self::Submodules => f.write_str("what its submodules hold, which is not looked at"),
            Self::Lock => f.write_str("the lock that protects it from removal"),
        }
    }
}

/// What a removal of a worktree would lose.
///
/// Empty: everything is in commits that stay.
#[must_use]
pub fn losses(standing: &Standing) -> Vec<Loss> {
    let mut lost = Vec::new();
    match standing.changed {
        Some(0) => {}
        Some(n) => lost.push(Loss::Changes(n)),
        None => lost.push(Loss::Unknown),
    }
    match standing.loose {
        Some(0) => {}
        Some(n) => lost.push(Loss::Commits(n)),
        None if lost.contains(&Loss::Unknown) => {}
        None => lost.push(Loss::Unknown),
    }
    if standing.has_submodules {
        lost.push(Loss::Submodules);
    }
    if standing.is_locked {
        lost.push(Loss::Lock);
    }
    lost
}

/// Why a worktree is not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// Something works in it. No confirmation changes that.
    InUse,
    /// Git does not answer about it, so nobody knows what it is.
    Unreadable,
    /// This would be lost, and nobody has confirmed that.
    Loses(Vec<Loss>),
}

/// Whether a worktree may be removed; what is lost with it.
///
/// # Errors
/// Why it stays.
pub fn may_remove(standing: &Standing, is_confirmed: bool) -> Result<Vec<Loss>, Keep> {
    if standing.in_use {
        return Err(Keep::InUse);
    }
    if !standing.is_readable {
        return Err(Keep::Unreadable);
    }
    let lost = losses(standing);
    if lost.is_empty() || is_confirmed { Ok(lost) } else { Err(Keep::Loses(lost)) }
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

    const CLEAN: Standing = Standing {
        in_use: false,
        is_readable: true,
        changed: Some(0),
        loose: Some(0),
        is_locked: false,
        has_submodules: false,
    };

    #[test]
    fn a_worktree_goes_only_when_nothing_runs_in_it_and_a_loss_is_confirmed() {
        let unknown = vec![Loss::Unknown];
        for (standing, plain, confirmed) in [
            (CLEAN, Ok(vec![]), Ok(vec![])),
            (Standing { in_use: true, ..CLEAN }, Err(Keep::InUse), Err(Keep::InUse)),
            (
                Standing { is_readable: false, changed: None, ..CLEAN },
                Err(Keep::Unreadable),
                Err(Keep::Unreadable),
            ),
            (
                Standing { changed: Some(2), loose: Some(1), is_locked: true, ..CLEAN },
                Err(Keep::Loses(vec![Loss::Changes(2), Loss::Commits(1), Loss::Lock])),
                Ok(vec![Loss::Changes(2), Loss::Commits(1), Loss::Lock]),
            ),
            (
                Standing { has_submodules: true, ..CLEAN },
                Err(Keep::Loses(vec![Loss::Submodules])),
                Ok(vec![Loss::Submodules]),
            ),
            (
                Standing { changed: None, loose: None, ..CLEAN },
                Err(Keep::Loses(unknown.clone())),
                Ok(unknown.clone()),
            ),
            (
                Standing { loose: None, ..CLEAN },
                Err(Keep::Loses(unknown.clone())),
                Ok(unknown.clone()),
            ),
        ] {
            assert_eq!(may_remove(&standing, false), plain, "{standing:?}");
            assert_eq!(may_remove(&standing, true), confirmed, "{standing:?}");
        }
        assert_eq!(Loss::Changes(1).to_string(), "changes in 1 file that are in no commit");
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
