//! Use-case: what changed where a session works, against its base.

use crate::bridges::lookup::{Lookup, Wanted};
use crate::projects::catalog::Catalog;
use crate::projects::changes_watch::ChangesWatch;
use crate::projects::worktrees::worktree_error;
use crate::{AppError, Class};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use svc_projects::changes::{
    self, Against, ChangesError, Folders, GitError, Kind, Part, Sign, Status,
};
use svc_projects::worktrees::own_place;
use svc_shared::error::ErrorCode;
use svc_shared::internal::changes::{
    BaseKind, ChangeBase, ChangeKind, ChangeStatus, ChangedFile, ChangedLine, ChangedPart, Changes,
    FileChange, LineSign,
};
use svc_watch::Watcher;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Readings that run git at the same time.
const AT_ONCE: usize = 4;
/// Longest wait for a turn.
const WAIT: Duration = Duration::from_secs(10);

/// Whose checkout is read.
#[derive(Debug, Clone)]
pub enum Checkout {
    /// That of a session, by its reference.
    Instance(String),
    /// That of a project.
    Project {
        /// Its name.
        name: String,
        /// One of its worktrees in the place of its directory.
        worktree: Option<String>,
    },
}

/// Which part of which file is asked for.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// The path as it stands in the list.
    pub path: String,
    /// Unchanged lines around each change.
    pub context: u8,
    /// Lines of the answer before this one are left out.
    pub from: usize,
}

/// Reads what changed in checkouts.
pub struct ChangesReader {
    lookup: Arc<Lookup>,
    catalog: Arc<Catalog>,
    watcher: Watcher,
    turns: Semaphore,
}

/// A directory to compare, and with what.
struct Workspace {
    root: PathBuf,
    against: Against,
    worktree: Option<String>,
}

impl ChangesReader {
    pub(crate) fn new(lookup: Arc<Lookup>, catalog: Arc<Catalog>, watcher: Watcher) -> Self {
        Self { lookup, catalog, watcher, turns: Semaphore::new(AT_ONCE) }
    }

    /// Tells when the files have changed.
    ///
    /// # Errors
    /// As for the list.
    pub async fn follow(self: &Arc<Self>, checkout: Checkout) -> Result<ChangesWatch, AppError> {
        ChangesWatch::open(Arc::clone(self), checkout, self.watcher.clone()).await
    }

    /// The directory, the files that changed, and the folders to watch.
    pub(crate) async fn watched(
        &self,
        checkout: &Checkout,
    ) -> Result<(PathBuf, changes::Changes, Folders), AppError> {
        let place = self.place(checkout).await?;
        let _turn = self.turn().await?;
        let read = changes::list_with_folders(&place.root, place.against).await;
        let (found, folders) = read.map_err(refused)?;
        Ok((place.root, found, folders))
    }

    /// The files that changed.
    ///
    /// # Errors
    /// There is no such session or project, no repository, or git does not answer.
    pub async fn list(&self, checkout: &Checkout) -> Result<Changes, AppError> {
        let place = self.place(checkout).await?;
        let _turn = self.turn().await?;
        let found = changes::list(&place.root, place.against).await.map_err(refused)?;
        Ok(Changes {
            base: ChangeBase {
                kind: if found.base.merge_base { BaseKind::MergeBase } else { BaseKind::Head }
                    .into(),
                reference: found.base.reference,
                commit: found.base.commit,
            },
            worktree: place.worktree,
            files: found.files.into_iter().map(file).collect(),
            truncated: found.truncated,
        })
    }

    /// The changed lines of one file of that list.
    ///
    /// # Errors
    /// As for the list; or the path is not in it.
    pub async fn file(&self, checkout: &Checkout, part: &FilePart) -> Result<FileChange, AppError> {
        if !changes::stays_below(&part.path) {
            return Err(refused(ChangesError::PathEscape));
        }
        let place = self.place(checkout).await?;
        let _turn = self.turn().await?;
        let asked = Part { path: &part.path, context: part.context, from: part.from };
        let found = changes::file(&place.root, place.against, asked).await.map_err(refused)?;
        Ok(FileChange {
            file: file(found.file),
            hunks: found.hunks.into_iter().map(hunk).collect(),
            next_from: found.next_from.and_then(|next| u64::try_from(next).ok()),
            masked: u64::try_from(found.masked).unwrap_or(u64::MAX),
            too_large: found.too_large,
        })
    }

    async fn place(&self, checkout: &Checkout) -> Result<Workspace, AppError> {
        let (root, worktree) = match checkout {
            Checkout::Instance(reference) => {
                let bridge = self.lookup.bridge(reference, Wanted::LiveOrNewest).await?;
                let worktree = bridge.worktree.as_ref().map(ToString::to_string);
                (bridge.cwd, worktree)
            }
            Checkout::Project { name, worktree } => {
                (self.catalog.named(name)?.path, worktree.clone())
            }
        };
        match worktree {
            None => Ok(Workspace { root, against: Against::Head, worktree: None }),
            Some(name) => {
                let root =
                    own_place(&root, &name).await.map_err(|error| worktree_error(&name, error))?;
                Ok(Workspace { root, against: Against::DefaultBranch, worktree: Some(name) })
            }
        }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, AppError> {
        match tokio::time::timeout(WAIT, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(AppError::busy(
                "too many changes are read at the same time; try again in a moment",
            )),
        }
    }
}

fn file(found: changes::ChangedFile) -> ChangedFile {
    ChangedFile {
        path: found.path,
        old_path: found.old_path,
        status: match found.status {
            Status::Added => ChangeStatus::Added,
            Status::Modified => ChangeStatus::Modified,
            Status::Deleted => ChangeStatus::Deleted,
            Status::Renamed => ChangeStatus::Renamed,
            Status::Untracked => ChangeStatus::Untracked,
            Status::Type => ChangeStatus::Type,
        }
        .into(),
        additions: found.additions,
        deletions: found.deletions,
        kind: match found.kind {
            Kind::Text => ChangeKind::Text,
            Kind::Binary => ChangeKind::Binary,
            Kind::Symlink => ChangeKind::Symlink,
            Kind::Submodule => ChangeKind::Submodule,
        }
        .into(),
    }
}

fn hunk(found: changes::Hunk) -> ChangedPart {
    let line = |line: changes::Line| ChangedLine {
        t: match line.sign {
            Sign::Same => LineSign::Same,
            Sign::Added => LineSign::Added,
            Sign::Deleted => LineSign::Deleted,
        }
        .into(),
        text: line.text,
    };
    ChangedPart {
        old_start: found.old_start,
        old_lines: found.old_lines,
        new_start: found.new_start,
        new_lines: found.new_lines,
        lines: found.lines.into_iter().map(line).collect(),
    }
}

fn refused(error: ChangesError) -> AppError {
    match error {
        ChangesError::NotGit => AppError::new(
            ErrorCode::NotFound,
            Class::NotFound,
            "the directory is not the root of a git checkout, so there is nothing to compare with; \
             `git init` and a commit make one",
        ),
        ChangesError::PathEscape => AppError::new(
            ErrorCode::PathEscape,
            Class::Invalid,
            "`path` does not stay below the checkout; use a path of the list of changed files",
        ),
        ChangesError::NoSuchFile => AppError::new(
            ErrorCode::NotFound,
            Class::NotFound,
            "`path` is not among the changed files any more; read the list again",
        ),
        ChangesError::Git(error) => git_failed(error),
    }
}

/// Git gave no answer.
pub(crate) fn git_failed(error: GitError) -> AppError {
    match error {
        GitError::Refused(lead) => AppError::new(
            ErrorCode::PathEscape,
            Class::Conflict,
            format!("the repository is not touched: {lead}; look at its files"),
        ),
        GitError::Missing(_) => {
            AppError::busy("git cannot be started; install git and try again").because(error)
        }
        GitError::TimedOut { .. } | GitError::Unreadable(_) | GitError::Failed { .. } => {
            AppError::busy(format!("{error}; run `git status` in the directory to see why"))
        }
    }
}
