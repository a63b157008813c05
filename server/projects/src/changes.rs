//! What changed in a checkout since a commit: its files, and their lines.
//!
//! Git only reads here (`git/command.rs`). Secrets in lines and names are masked before anything
//! is returned, because masking needs the lines before those of one answer.

mod folders;
mod found;
mod masked;
mod new_files;
mod parse;

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::git::{GuardedGit, leads_elsewhere};

pub use crate::git::GitError;
pub use folders::Folders;
pub use found::{ChangedFile, ChangesError, Kind, Status};
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
    /// Lines of the whole file in which something was masked.
    pub masked: usize,
    /// The file is too large: its lines are not read to their end.
    pub too_large: bool,
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

/// Lists what changed in the checkout at `root`.
///
/// # Errors
/// See [`ChangesError`].
pub async fn list(root: &Path, against: Against) -> Result<Changes, ChangesError> {
    Checkout::open(root).await?.list(against).await
}

/// Lists what changed, and the folders in which the next change can happen.
///
/// # Errors
/// See [`ChangesError`].
pub async fn list_with_folders(
    root: &Path,
    against: Against,
) -> Result<(Changes, Folders), ChangesError> {
    let checkout = Checkout::open(root).await?;
    let changes = checkout.list(against).await?;
    Ok((changes, folders::of(&checkout.0, root).await?))
}

/// Whether a path can be one of a list: relative, and it never goes up.
#[must_use]
pub fn stays_below(path: &str) -> bool {
    let inside = |component| matches!(component, Component::Normal(_));
    !path.is_empty() && Path::new(path).components().all(inside)
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
    if !stays_below(part.path) {
        return Err(ChangesError::PathEscape);
    }
    let checkout = Checkout::open(root).await?;
    let changes = checkout.list(against).await?;
    let found = changes.files.into_iter().find(|file| file.path == part.path);
    let file = found.ok_or(ChangesError::NoSuchFile)?;
    let (mut hunks, too_large) = match (file.status, file.kind) {
        (_, Kind::Binary | Kind::Submodule) => (Vec::new(), false),
        (Status::Untracked, _) => {
            let (root, path) = (root.to_owned(), file.raw.clone());
            let read = tokio::task::spawn_blocking(move || {
                new_files::content(&root, &path, 16 * MOST_BYTES)
            });
            match read.await.map_err(|_| ChangesError::NoSuchFile)?? {
                Some(content) => (parse::whole(&content), false),
                None => (Vec::new(), true),
            }
        }
        _ => checkout.hunks(&changes.base, &file, part.context).await?,
    };
    let masked = masked::lines(&mut hunks);
    let (hunks, next_from) = parse::window(hunks, part.from, MOST_LINES, MOST_BYTES);
    Ok(FileChange { file, hunks, next_from, masked, too_large })
}

struct Checkout(GuardedGit);

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
        Ok(Self(GuardedGit::open(root).await?))
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
        let root = self.0.root().to_owned();
        let measured = tokio::task::spawn_blocking(move || {
            new_files::measure(&root, &mut files, MOST_BYTES);
            files
        });
        let files = measured.await.map_err(|_| ChangesError::NoSuchFile)?;
        Ok(Changes { base, files, truncated })
    }

    async fn base(&self, against: Against) -> Base {
        let head = commit(&self.0, "HEAD").await;
        if against == Against::DefaultBranch && head.is_some() {
            for branch in DEFAULT_BRANCHES {
                let Some(tip) = tip_of(&self.0, branch).await else { continue };
                let found = self.0.run("merge-base", &["HEAD", &tip]).await;
                if let Some(commit) = found.ok().and_then(|printed| line(&printed.bytes)) {
                    return Base { merge_base: true, reference: branch.into(), commit };
                }
            }
        }
        Base { merge_base: false, reference: "HEAD".into(), commit: head.unwrap_or_default() }
    }

    async fn hunks(
        &self,
        base: &Base,
        file: &ChangedFile,
        context: u8,
    ) -> Result<(Vec<Hunk>, bool), ChangesError> {
        let context = format!("--unified={context}");
        let flags = ["--patch", "-M", "--no-color", context.as_str()];
        let args = [&flags[..], &SAFE[..], &[base.tree(), "--"]].concat();
        let mut args: Vec<OsString> = args.into_iter().map(OsString::from).collect();
        args.push(file.raw.clone().into_os_string());
        args.extend(file.old_raw.clone().map(PathBuf::into_os_string));
        let printed = self.0.run("diff", &args).await?;
        Ok((parse::hunks(&printed.bytes), printed.cut))
    }
}

/// Names under which a default branch is looked for, best first.
pub(crate) const DEFAULT_BRANCHES: [&str; 3] = ["origin/HEAD", "main", "master"];

/// The commit at the tip of a default branch.
pub(crate) async fn tip_of(git: &GuardedGit, branch: &str) -> Option<String> {
    let reference = match branch {
        "origin/HEAD" => "refs/remotes/origin/HEAD".to_owned(),
        name => format!("refs/heads/{name}"),
    };
    commit(git, &reference).await
}

async fn commit(git: &GuardedGit, reference: &str) -> Option<String> {
    let name = format!("{reference}^{{commit}}");
    let found = git.run("rev-parse", &["--verify", "--quiet", &name]).await.ok()?;
    line(&found.bytes)
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
