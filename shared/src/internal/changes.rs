//! What changed in a checkout, and the worktrees of a project.

use crate::Word;
use crate::ids::InstanceId;
use crate::status::words;
use serde::{Deserialize, Serialize};

words! {
    /// What the changes are compared with.
    BaseKind {
        /// The commit where the branch left the default branch.
        MergeBase = "merge-base",
        /// The last commit.
        Head = "head",
    }
}

words! {
    /// How a file changed.
    ChangeStatus {
        /// It is new, and git knows it.
        Added = "added",
        /// Its content or mode is another one.
        Modified = "modified",
        /// It is gone.
        Deleted = "deleted",
        /// It has another name.
        Renamed = "renamed",
        /// It is new, and git does not know it.
        Untracked = "untracked",
        /// It is a file where a link was, or the reverse.
        Type = "type",
    }
}

words! {
    /// What a changed path is.
    ChangeKind {
        /// Lines.
        Text = "text",
        /// Something else than lines.
        Binary = "binary",
        /// A symbolic link.
        Symlink = "symlink",
        /// Another repository.
        Submodule = "submodule",
    }
}

words! {
    /// What became of a line.
    LineSign {
        /// It is the same.
        Same = " ",
        /// It is new.
        Added = "+",
        /// It is gone.
        Deleted = "-",
    }
}

/// The commit that changes are compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeBase {
    /// How it was found.
    pub kind: Word<BaseKind>,
    /// The default branch, or `HEAD`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit; empty in a repository without one.
    pub commit: String,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Below the root of the checkout, secrets masked.
    ///
    /// The name to ask for its lines with.
    pub path: String,
    /// The name before a rename.
    pub old_path: Option<String>,
    /// How it changed.
    pub status: Word<ChangeStatus>,
    /// Added lines, where they are counted.
    pub additions: Option<u64>,
    /// Deleted lines, where they are counted.
    pub deletions: Option<u64>,
    /// What it is.
    pub kind: Word<ChangeKind>,
}

/// All changed files of a checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// What they are compared with.
    pub base: ChangeBase,
    /// The worktree they are in; null for the directory of the project.
    pub worktree: Option<String>,
    /// Sorted by path.
    pub files: Vec<ChangedFile>,
    /// There are more than listed.
    pub truncated: bool,
}

/// A frame of the socket that tells of changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesNotice {
    /// Something changed since the last frame; false in the first one.
    pub changed: bool,
    /// All folders are watched. Otherwise a change in the others is not told.
    pub complete: bool,
}

/// One line of a changed part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLine {
    /// What became of it.
    pub t: Word<LineSign>,
    /// Without its end, secrets masked.
    pub text: String,
}

/// One changed part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPart {
    /// First line before the change.
    pub old_start: u64,
    /// Lines before the change.
    pub old_lines: u64,
    /// First line after the change.
    pub new_start: u64,
    /// Lines after the change.
    pub new_lines: u64,
    /// Its lines.
    pub lines: Vec<ChangedLine>,
}

/// The lines of one changed file, or a part of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file as it stands in the list.
    #[serde(flatten)]
    pub file: ChangedFile,
    /// Its changed parts.
    pub hunks: Vec<ChangedPart>,
    /// The line to ask for next; null after the last one.
    pub next_from: Option<u64>,
    /// Lines of the whole file in which something was masked.
    pub masked: u64,
    /// The file is too large to be read to its end.
    pub too_large: bool,
}

/// A git worktree that the agent made below a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Name of its directory; the name to remove it with.
    pub name: String,
    /// The session that it belongs to; null when no record names it.
    pub instance_id: Option<InstanceId>,
    /// Something runs in it.
    pub in_use: bool,
    /// Its branch; null without one.
    pub branch: Option<String>,
    /// The default branch that it is compared with.
    pub base: Option<String>,
    /// Commits that the default branch does not have; null when not known.
    pub ahead: Option<u64>,
    /// Files with changes that are in no commit; null when not known.
    pub changed: Option<u64>,
    /// It is locked against removal.
    pub locked: bool,
    /// Bytes on disk; null when there are too many files to count.
    pub size_bytes: Option<u64>,
    /// What a removal would lose, for a person.
    ///
    /// With anything here it must be confirmed.
    pub loses: Vec<String>,
    /// Why git says nothing about it, and it is not removed.
    pub problem: Option<String>,
}

/// The worktrees of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Worktrees {
    /// Sorted by name.
    pub worktrees: Vec<Worktree>,
    /// There are more than listed.
    pub truncated: bool,
}

/// Optional body of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RemoveWorktree {
    /// The name of the worktree once more: what would be lost may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// What the person was told would be lost, as the list says it in `loses`.
    ///
    /// If more would be lost by now, nothing is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loses: Option<Vec<String>>,
}

/// Answer of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedWorktree {
    /// The name of the worktree.
    pub name: String,
    /// Always true.
    pub removed: bool,
    /// What was lost with it, for a person.
    pub lost: Vec<String>,
    /// The branch that stays.
    ///
    /// It has commits of its own, or git did not say that it has none.
    pub kept_branch: Option<String>,
    /// Where files are that could not be deleted; git knows the worktree no more.
    pub files_left: Option<String>,
}
