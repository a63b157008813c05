//! What changed in a checkout since a commit: its files, and their lines.
//!
//! Git only reads here (`git/command.rs`). Text is returned as it stands in the files: whoever
//! shows it masks secrets first.

mod parse;

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use crate::git::{ReadOnlyGit, leads_elsewhere, read_bounded};

pub use crate::git::GitError;
pub use parse::{Hunk, Line, Sign};

/// Most files of one list.
const MOST_FILES: usize = 2_000;
/// Most lines of one answer about a file.
const MOST_LINES: usize = 3_000;
/// Most bytes of one answer about a file.
const MOST_BYTES: usize = 512 * 1024;
/// The tree without files: the base of a repository without a commit.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// What the changes are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The last commit of the checkout.
    Head,
    /// Where its branch left the default branch; the last commit where there is none.
    DefaultBranch,
}

/// The commit that the changes are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Whether it is the merge base with a branch.
    pub merge_base: bool,
    /// The branch, or `HEAD`.
    pub reference: String,
    /// The commit; empty in a repository without one.
    pub commit: String,
}

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
    /// Below the root of the checkout; bytes that are no text are replaced.
    pub path: String,
    /// The name before a rename.
    pub old_path: Option<String>,
    /// How it changed.
    pub status: Status,
    /// Added lines, where git counts them.
    pub additions: Option<u64>,
    /// Deleted lines, where git counts them.
    pub deletions: Option<u64>,
    /// What it is.
    pub kind: Kind,
}

/// All changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// What they are compared with.
    pub base: Base,
    /// Sorted by path.
    pub files: Vec<ChangedFile>,
    /// There are more than listed.
    pub truncated: bool,
}

/// The lines of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file as it stands in the list.
    pub file: ChangedFile,
    /// Its changed parts, from the asked line on.
    pub hunks: Vec<Hunk>,
    /// The line to ask for next, if there are more.
    pub next_from: Option<usize>,
}

/// Which part of which file is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// As it stands in the list.
    pub path: &'a str,
    /// Unchanged lines around each change.
    pub context: u8,
    /// Lines of the answer before this one are left out.
    pub from: usize,
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

/// Lists what changed in the checkout at `root`.
///
/// # Errors
/// See [`ChangesError`].
pub async fn list(root: &Path, against: Against) -> Result<Changes, ChangesError> {
    Checkout::open(root).await?.list(against).await
}

/// Reads the changed lines of one file of the list.
///
/// # Errors
/// See [`ChangesError`].
pub async fn file(
    root: &Path,
    against: Against,
    part: Part<'_>,
) -> Result<FileChange, ChangesError> {
    let inside = |component| matches!(component, Component::Normal(_));
    if part.path.is_empty() || !Path::new(part.path).components().all(inside) {
        return Err(ChangesError::PathEscape);
    }
    let checkout = Checkout::open(root).await?;
    let changes = checkout.list(against).await?;
    let found = changes.files.into_iter().find(|file| file.path == part.path);
    let file = found.ok_or(ChangesError::NoSuchFile)?;
    let hunks = match (file.status, file.kind) {
        (_, Kind::Binary | Kind::Submodule) => Vec::new(),
        (Status::Untracked, _) => {
            let (root, path) = (root.to_owned(), part.path.to_owned());
            let read = tokio::task::spawn_blocking(move || untracked(&root, &path));
            parse::whole(&read.await.map_err(|_| ChangesError::NoSuchFile)??)
        }
        _ => checkout.hunks(&changes.base, &file, part.context).await?,
    };
    let (hunks, next_from) = parse::window(hunks, part.from, MOST_LINES, MOST_BYTES);
    Ok(FileChange { file, hunks, next_from })
}

struct Checkout(ReadOnlyGit);

impl Checkout {
    async fn open(root: &Path) -> Result<Self, ChangesError> {
        let at = root.to_owned();
        let judged = tokio::task::spawn_blocking(move || {
            let is_root = at.join(".git").symlink_metadata().is_ok();
            (is_root, leads_elsewhere(&at, &at))
        });
        match judged.await {
            Ok((false, _)) | Err(_) => return Err(ChangesError::NotGit),
            Ok((true, Some(lead))) => return Err(GitError::Refused(lead).into()),
            Ok((true, None)) => {}
        }
        Ok(Self(ReadOnlyGit::open(root).await?))
    }

    async fn list(&self, against: Against) -> Result<Changes, ChangesError> {
        let base = self.base(against).await;
        let flags = ["--raw", "--numstat", "-z", "-M", "--no-abbrev"];
        let diff =
            self.0.run("diff", &[&flags[..], &SAFE[..], &[base.tree(), "--"]].concat()).await?;
        let args = ["--others", "--exclude-standard", "-z"];
        let others = self.0.run("ls-files", &args).await?;
        let mut files = parse::files(&diff.bytes);
        files.extend(parse::untracked(&others.bytes));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let truncated = diff.cut || others.cut || files.len() > MOST_FILES;
        files.truncate(MOST_FILES);
        Ok(Changes { base, files, truncated })
    }

    async fn base(&self, against: Against) -> Base {
        let head = self.commit("HEAD").await;
        if against == Against::DefaultBranch && head.is_some() {
            for branch in ["origin/HEAD", "main", "master"] {
                let reference = match branch {
                    "origin/HEAD" => "refs/remotes/origin/HEAD".to_owned(),
                    name => format!("refs/heads/{name}"),
                };
                let Some(tip) = self.commit(&reference).await else { continue };
                let found = self.0.run("merge-base", &["HEAD", &tip]).await;
                if let Some(commit) = found.ok().and_then(|printed| line(&printed.bytes)) {
                    return Base { merge_base: true, reference: branch.into(), commit };
                }
            }
        }
        Base { merge_base: false, reference: "HEAD".into(), commit: head.unwrap_or_default() }
    }

    async fn commit(&self, reference: &str) -> Option<String> {
        let name = format!("{reference}^{{commit}}");
        let found = self.0.run("rev-parse", &["--verify", "--quiet", &name]).await.ok()?;
        line(&found.bytes)
    }

    async fn hunks(
        &self,
        base: &Base,
        file: &ChangedFile,
        context: u8,
    ) -> Result<Vec<Hunk>, ChangesError> {
        let context = format!("--unified={context}");
        let flags = ["--patch", "-M", "--no-color", context.as_str()];
        let mut args = [&flags[..], &SAFE[..], &[base.tree(), "--", file.path.as_str()]].concat();
        args.extend(file.old_path.as_deref());
        Ok(parse::hunks(&self.0.run("diff", &args).await?.bytes))
    }
}

/// No program of the repository's choice, and no look into submodules.
const SAFE: [&str; 5] =
    ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--no-relative", "-O/dev/null"];

impl Base {
    fn tree(&self) -> &str {
        if self.commit.is_empty() { EMPTY_TREE } else { &self.commit }
    }
}

fn line(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The text of a file that git does not know; for a link, where it leads.
fn untracked(root: &Path, path: &str) -> Result<Vec<u8>, ChangesError> {
    let gone = |_: io::Error| ChangesError::NoSuchFile;
    let at = root.join(path);
    let parent = at.parent().and_then(|parent| parent.canonicalize().ok());
    let root = root.canonicalize().map_err(gone)?;
    if !parent.is_some_and(|parent| parent.starts_with(&root)) {
        return Err(ChangesError::PathEscape);
    }
    if at.symlink_metadata().map_err(gone)?.is_symlink() {
        return Ok(std::fs::read_link(&at).map_err(gone)?.as_os_str().as_bytes().to_vec());
    }
    match read_bounded(&at, 16 * MOST_BYTES).map_err(gone)? {
        Some(content) => Ok(content),
        None => Err(GitError::Refused("the file is larger than 8 MiB".into()).into()),
    }
}
