//! One changed file, and why there is nothing to show.

use std::path::PathBuf;

use crate::git::GitError;

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is new, and git knows it.
    Added,
    /// Its content or mode is another one.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
    /// It is new, and git does not know it.
    Untracked,
    /// It is a file where a link was, or the reverse.
    Type,
}

/// What a changed path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lines.
    Text,
    /// Something else than lines.
    Binary,
    /// A symbolic link.
    Symlink,
    /// Another repository.
    Submodule,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Below the root of the checkout, as it is shown.
    /// Bytes that are no text are replaced, and secrets are masked.
    pub path: String,
    /// The name before a rename, as it is shown.
    pub old_path: Option<String>,
    /// The name as git prints it.
    pub raw: PathBuf,
    /// The name before a rename as git prints it.
    pub old_raw: Option<PathBuf>,
    /// How it changed.
    pub status: Status,
    /// Added lines, where git counts them.
    pub additions: Option<u64>,
    /// Deleted lines, where git counts them.
    pub deletions: Option<u64>,
    /// What it is.
    pub kind: Kind,
}

/// Why there are no changes to show.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The directory is not the root of a checkout.
    #[error("the directory is not a git checkout")]
    NotGit,
    /// The path would leave the checkout.
    #[error("the path does not stay below the checkout")]
    PathEscape,
    /// The path is not among the changed files.
    #[error("the file is not among the changed files")]
    NoSuchFile,
    /// Git gave no answer.
    #[error(transparent)]
    Git(#[from] GitError),
}
