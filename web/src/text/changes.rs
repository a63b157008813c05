//! Sentences about what a session changed, and about worktrees.

use svc_shared::internal::changes::{BaseKind, ChangeBase, ChangeKind, ChangeStatus};

/// Tab and region.
pub const LABEL: &str = "Changes";
/// The list of files, for people who hear the page.
pub const FILES: &str = "Changed files";
/// While nothing came yet.
pub const LOADING: &str = "Reading the changes…";
/// Nothing changed.
pub const NONE: &str = "Nothing has changed here.";
/// There are more files than listed.
pub const TRUNCATED: &str = "There are more changed files than shown here. `git status` lists all.";
/// Button.
pub const RELOAD: &str = "Reload";
/// No file is chosen.
pub const CHOOSE: &str = "Choose a file to see its changes.";
/// Back to the list, on a phone.
pub const ALL_FILES: &str = "All files";
/// Button.
pub const COPY_PATH: &str = "Copy path";
/// Button.
pub const COPY_PATCH: &str = "Copy patch";
/// Why the patch cannot be copied yet.
pub const NOT_WHOLE: &str = "Show the rest of the file first";
/// Switch of a file.
pub const VIEWED: &str = "Viewed";
/// The two ways to show lines.
pub const LAYOUT: &str = "Layout";
/// One below the other.
pub const UNIFIED: &str = "Unified";
/// Beside each other.
pub const BESIDE: &str = "Side by side";
/// Switch.
pub const HIDE_SAME: &str = "Hide unchanged";
/// What the switch does when it is off.
pub const HIDE_SAME_MEANS: &str = "Off: up to 50 unchanged lines around each change";
/// Button.
pub const NEXT: &str = "Next change";
/// Button.
pub const PREVIOUS: &str = "Previous change";
/// Reads the rest of a file.
pub const MORE: &str = "Show more lines";
/// The file is too large.
pub const TOO_LARGE: &str = "This file is too large to show all its changes.";
/// Nothing to show in lines.
pub const NO_LINES: &str = "The content is the same. Only the name or the mode changed.";
/// An empty new file.
pub const EMPTY_FILE: &str = "The file is empty.";
/// A binary file.
pub const BINARY: &str = "A binary file. Its content is not shown.";
/// Another repository.
pub const SUBMODULE: &str = "Another git repository. Look at its changes there.";
/// What a link leads to.
pub const SYMLINK: &str = "A symbolic link. The line shows its target.";
/// The file is no longer in the list.
pub const GONE: &str = "This file no longer has changes.";
/// The column before the change.
pub const OLD: &str = "Line before";
/// The column after the change.
pub const NEW: &str = "Line after";
/// The column of the marks.
pub const MARK: &str = "Change";
/// The column of the text.
pub const TEXT: &str = "Text";
/// A mark, read aloud.
pub const ADDED: &str = "added";
/// A mark, read aloud.
pub const DELETED: &str = "deleted";

/// How many files changed.
#[must_use]
pub fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// How many of the files were viewed.
#[must_use]
pub fn viewed(done: usize, all: usize) -> String {
    format!("{done} of {all} viewed")
}

/// What the changes are compared with.
#[must_use]
pub fn against(base: &ChangeBase) -> String {
    match base.kind.known() {
        Some(BaseKind::MergeBase) => format!("against the merge base with {}", base.reference),
        Some(BaseKind::Head) if base.commit.is_empty() => "there is no commit yet".to_owned(),
        Some(BaseKind::Head) => "against the last commit".to_owned(),
        None => format!("against {}", base.reference),
    }
}

/// When the list was read.
#[must_use]
pub fn read_at(clock: &str) -> String {
    format!("as of {clock}")
}

/// Something changed since the list was read.
#[must_use]
pub fn changed_since(clock: &str) -> String {
    format!("Files changed since {clock}. You still see the earlier state.")
}

/// Letter and word of a status.
#[must_use]
pub fn status(status: Option<&ChangeStatus>) -> (&'static str, &'static str) {
    match status {
        Some(ChangeStatus::Added) => ("A", "added"),
        Some(ChangeStatus::Modified) => ("M", "modified"),
        Some(ChangeStatus::Deleted) => ("D", "deleted"),
        Some(ChangeStatus::Renamed) => ("R", "renamed"),
        Some(ChangeStatus::Untracked) => ("?", "untracked"),
        Some(ChangeStatus::Type) => ("T", "type changed"),
        None => ("!", "changed"),
    }
}

/// What a path is, where it is not lines.
#[must_use]
pub fn kind(kind: Option<&ChangeKind>) -> Option<&'static str> {
    match kind {
        Some(ChangeKind::Binary) => Some("binary"),
        Some(ChangeKind::Symlink) => Some("link"),
        Some(ChangeKind::Submodule) => Some("repository"),
        Some(ChangeKind::Text) | None => None,
    }
}

/// The name before a rename.
#[must_use]
pub fn was(old: &str) -> String {
    format!("was {old}")
}

/// Lines in which something was masked.
#[must_use]
pub fn masked(lines: u64) -> String {
    match lines {
        1 => "1 line holds a value that looks like a secret. It is masked.".to_owned(),
        n => format!("{n} lines hold values that look like secrets. They are masked."),
    }
}

/// Heading of a changed part.
#[must_use]
pub fn part(line: u64) -> String {
    format!("@@ line {line} @@")
}

/// Worktrees.
pub mod tree {
    /// Tab and heading.
    pub const LABEL: &str = "Worktrees";
    /// There are none.
    pub const NONE: &str = "No session of this project has left a worktree.";
    /// While nothing came yet.
    pub const LOADING: &str = "Reading the worktrees…";
    /// Something runs there.
    pub const IN_USE: &str = "in use";
    /// Button and question.
    pub const REMOVE: &str = "Remove worktree";
    /// Opens the question.
    pub const REMOVE_DOTS: &str = "Remove worktree…";
    /// The safe answer.
    pub const CANCEL: &str = "Cancel";
    /// Why it cannot be removed.
    pub const RUNS: &str = "a session is running in it";
    /// What stays of a session that ended.
    pub const STAYS: &str = "The worktree of this session is kept until you remove it.";
    /// Clean.
    pub const CLEAN: &str = "no uncommitted changes";
    /// Locked.
    pub const LOCKED: &str = "locked";
    /// There are more.
    pub const TRUNCATED: &str = "There are more worktrees than shown here.";

    /// Files with changes that are in no commit.
    #[must_use]
    pub fn changed(files: u64) -> String {
        match files {
            1 => "1 file with uncommitted changes".to_owned(),
            n => format!("{n} files with uncommitted changes"),
        }
    }

    /// Commits that the base does not have.
    #[must_use]
    pub fn ahead(commits: u64, base: &str) -> String {
        match commits {
            0 => format!("no commits that {base} lacks"),
            1 => format!("1 commit ahead of {base}"),
            n => format!("{n} commits ahead of {base}"),
        }
    }

    /// What a removal loses, and how it is confirmed.
    #[must_use]
    pub fn loses(name: &str, lost: &[String]) -> String {
        format!("Removing {name} loses {}. Type its name to confirm.", lost.join(", and "))
    }

    /// Label of the field.
    #[must_use]
    pub fn type_name(name: &str) -> String {
        format!("Type {name}")
    }

    /// Outcome of a removal.
    #[must_use]
    pub fn removed(name: &str) -> String {
        format!("Removed worktree {name}")
    }

    /// … whose branch stays.
    #[must_use]
    pub fn kept_branch(branch: &str) -> String {
        format!("The branch {branch} is kept.")
    }

    /// … of which git could not delete all files.
    #[must_use]
    pub fn files_left(place: &str) -> String {
        format!("Some files could not be deleted. Delete {place} in the project by hand.")
    }

    /// A removal that was declined.
    #[must_use]
    pub fn not_removed(name: &str) -> String {
        format!("Couldn't remove worktree {name}")
    }

    /// Bytes on disk.
    #[must_use]
    pub fn size(bytes: u64) -> String {
        match bytes {
            0..1_000 => format!("{bytes} B"),
            1_000..1_000_000 => format!("{} KB", bytes / 1_000),
            1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
            _ => format!("{} GB", bytes / 1_000_000_000),
        }
    }
}
