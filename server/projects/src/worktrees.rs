//! The git worktrees that the agent makes below a project (`agent-cli` §13).
//!
//! Only what is in `.claude/worktrees` of the project is listed or removed. Git itself removes,
//! with everything switched off that a repository could run (`git/command.rs`).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::changes::{DEFAULT_BRANCHES, tip_of};
use crate::git::{GitDirs, GuardedGit, leads_elsewhere, read_line};

pub use crate::git::GitError;

/// Where the agent makes worktrees, below a project.
const PLACE: [&str; 2] = [".claude", "worktrees"];
/// Most worktrees of one list.
const MOST: usize = 100;
/// Most files that are measured for the sizes of one list.
const MOST_MEASURED: usize = 100_000;
/// Longest time that git is asked for one list.
const LIST: Duration = Duration::from_secs(20);
/// Why nothing is known of a worktree that was not reached in that time.
const TOO_SLOW: &str = "git took too long; read the list again";
/// Longest time of a removal: it deletes files, `node_modules` for example.
const REMOVAL: Duration = Duration::from_secs(120);

/// One worktree of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its directory's name; bytes that are no text are replaced.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its branch; `None` without one.
    pub branch: Option<String>,
    /// The commit it is at; `None` before the first.
    pub commit: Option<String>,
    /// The default branch that it is compared with.
    pub base: Option<String>,
    /// Commits that the default branch does not have.
    pub ahead: Option<u64>,
    /// Files with changes that are in no commit, new files included.
    pub changed: Option<u64>,
    /// Commits that no branch and no tag has: a removal loses them.
    pub loose: Option<u64>,
    /// Somebody locked it against removal.
    pub is_locked: bool,
    /// Whether it holds repositories of its own, which are not looked at.
    pub has_submodules: bool,
    /// Bytes on disk; `None` when there are too many files to count.
    pub size_bytes: Option<u64>,
    /// Why git says nothing about it.
    pub trouble: Option<String>,
}

/// The worktrees of a project, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worktrees {
    /// Those that were read.
    pub found: Vec<Worktree>,
    /// There are more.
    pub truncated: bool,
}

/// What a removal did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// A branch that stays because of its commits.
    pub kept_branch: Option<String>,
    /// Git knows the worktree no more, and could not delete all of its files.
    pub files_left: bool,
}

/// Why a worktree is not listed or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// No worktree of this project has the name.
    #[error("there is no such worktree")]
    Unknown,
    /// Its directory, or one above it, leads out of the project.
    #[error("the worktree is not touched: {0}")]
    Elsewhere(String),
    /// The directory cannot be read.
    #[error("the directory of the worktrees cannot be read")]
    Unreadable(#[source] io::Error),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Lists the worktrees of the project in this directory.
///
/// A project without any has an empty list.
///
/// # Errors
/// The directory cannot be read.
pub async fn list(project: &Path) -> Result<Worktrees, WorktreeError> {
    let at = project.to_owned();
    let (places, truncated) = blocking(move || places(&at)).await??;
    let mut found = Vec::new();
    let mut left = MOST_MEASURED;
    let until = Instant::now() + LIST;
    for path in places {
        let mut worktree = match timeout_at(until, facts(&path)).await {
            Ok(worktree) => worktree,
            Err(_elapsed) => unread(&path, TOO_SLOW.to_owned()),
        };
        let measured = path.clone();
        (worktree.size_bytes, left) = blocking(move || size(&measured, left)).await?;
        found.push(worktree);
    }
    Ok(Worktrees { found, truncated })
}

/// Reads one worktree by its directory's name.
///
/// # Errors
/// It is not one of the project's.
pub async fn named(project: &Path, name: &str) -> Result<Worktree, WorktreeError> {
    let path = own_place(project, name).await?;
    Ok(facts(&path).await)
}

/// The directory of a worktree, proven to be there and not elsewhere.
///
/// # Errors
/// See [`WorktreeError`].
pub async fn own_place(project: &Path, name: &str) -> Result<PathBuf, WorktreeError> {
    let (project, name) = (project.to_owned(), name.to_owned());
    blocking(move || {
        let place = place_of(&project)?.ok_or(WorktreeError::Unknown)?;
        // Its first part is the whole name.
        let first = Path::new(&name).components().next();
        let is_name = first == Some(Component::Normal(OsStr::new(&name)));
        let path = place.join(&name);
        // Not by the list, which ends after so many.
        let is_real = || path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if is_name && is_real() { Ok(path) } else { Err(WorktreeError::Unknown) }
    })
    .await?
}

/// Removes a worktree, and its branch if the default branch has all of its commits.
///
/// The caller has looked what is lost (`facts`); `force` accepts it. Ignored files go in any case.
///
/// # Errors
/// Nothing was removed, or git stopped on the way.
pub async fn remove(
    git_root: &Path,
    project: &Path,
    worktree: &Worktree,
    force: bool,
) -> Result<Removed, WorktreeError> {
    let name = worktree.path.file_name().and_then(OsStr::to_str).ok_or(WorktreeError::Unknown)?;
    let path = own_place(project, name).await?;
    let (root, below, checked) = (git_root.to_owned(), project.to_owned(), path.clone());
    blocking(move || judge(&root, &below, &checked)).await??;
    let mut git = GuardedGit::open(git_root).await?;
    // Git looks into the worktree before it removes it, which may have a configuration of its own.
    git.switch_off_filters_of(GuardedGit::open(&path).await?);
    let mut args: Vec<&OsStr> = vec![OsStr::new("remove")];
    if force {
        // Once for changed files, once more for a lock.
        args.extend([OsStr::new("--force"), OsStr::new("--force")]);
    }
    args.extend([OsStr::new("--"), path.as_os_str()]);
    let at = path.clone();
    let own = blocking(move || GitDirs::of(&at).map(|dirs| dirs.own)).await?;
    if let Err(error) = git.run_within(REMOVAL, "worktree", &args).await {
        // Git forgets a worktree even if it cannot delete all of its files.
        let is_known = blocking(move || own.is_none_or(|own| own.exists())).await?;
        if is_known {
            return Err(error.into());
        }
    }
    let at = path.clone();
    let files_left = blocking(move || at.symlink_metadata().is_ok()).await?;
    let Some(branch) = worktree.branch.clone() else {
        return Ok(Removed { kept_branch: None, files_left });
    };
    // Only the branch that came with the worktree, and only where no commit hangs on it alone.
    let is_done = branch == format!("worktree-{name}") && worktree.ahead == Some(0);
    let commit = worktree.commit.as_deref().filter(|_| is_done);
    let gone = match commit {
        Some(commit) => {
            let reference = format!("refs/heads/{branch}");
            git.run("update-ref", &["-d", &reference, commit]).await.is_ok()
        }
        None => false,
    };
    Ok(Removed { kept_branch: (!gone).then_some(branch), files_left })
}

/// Why a worktree is locked; `None` if it is not, or no reason is given.
///
/// Blocks for two small files.
#[must_use]
pub fn lock_reason(worktree: &Path) -> Option<String> {
    read_line(&GitDirs::of(worktree)?.own.join("locked"))
}

/// The directory of the worktrees, if there is one.
fn place_of(project: &Path) -> Result<Option<PathBuf>, WorktreeError> {
    let Ok(project) = project.canonicalize() else { return Ok(None) };
    let place = PLACE.iter().fold(project, |at, name| at.join(name));
    match place.canonicalize() {
        Ok(real) if real == place => Ok(Some(place)),
        Ok(_) => Err(WorktreeError::Elsewhere(format!("`{}` is a link", PLACE.join("/")))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(WorktreeError::Unreadable(error)),
    }
}

/// Real directories in `.claude/worktrees`, sorted, and whether there are more.
///
/// Nothing is found through a link: `.claude`, the place and each worktree are real directories.
fn places(project: &Path) -> Result<(Vec<PathBuf>, bool), WorktreeError> {
    let Some(place) = place_of(project)? else { return Ok((Vec::new(), false)) };
    let entries = fs::read_dir(&place).map_err(WorktreeError::Unreadable)?;
    let real = |entry: fs::DirEntry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| entry.path())
    };
    // One more than is shown tells whether there are more.
    let mut found: Vec<PathBuf> = entries.flatten().filter_map(real).take(10 * MOST).collect();
    found.sort();
    let truncated = found.len() > MOST;
    found.truncate(MOST);
    Ok((found, truncated))
}

/// Whether the worktree belongs to this repository and nothing leads out of it.
fn judge(git_root: &Path, project: &Path, path: &Path) -> Result<(), WorktreeError> {
    let elsewhere = |lead| Err(WorktreeError::Elsewhere(lead));
    if let Some(lead) = leads_elsewhere(git_root, project).or_else(|| leads_elsewhere(path, path)) {
        return elsewhere(lead);
    }
    let common = |root: &Path| GitDirs::of(root).and_then(|dirs| dirs.common.canonicalize().ok());
    match (common(git_root), common(path)) {
        (Some(own), Some(its)) if own == its => Ok(()),
        _ => elsewhere("it does not belong to the repository of the project".to_owned()),
    }
}

async fn facts(path: &Path) -> Worktree {
    let mut worktree = unread(path, String::new());
    worktree.trouble = read_facts(&mut worktree).await.err().map(|trouble| trouble.to_string());
    worktree
}

/// A worktree of which only the place is known, and why.
fn unread(path: &Path, trouble: String) -> Worktree {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Worktree {
        name,
        path: path.to_owned(),
        branch: None,
        commit: None,
        base: None,
        ahead: None,
        changed: None,
        loose: None,
        is_locked: false,
        has_submodules: false,
        size_bytes: None,
        trouble: Some(trouble),
    }
}

async fn read_facts(worktree: &mut Worktree) -> Result<(), WorktreeError> {
    let at = worktree.path.clone();
    let judged = blocking(move || {
        if !at.join(".git").is_file() {
            return Err(GitError::Refused("it is no git worktree".into()));
        }
        match leads_elsewhere(&at, &at) {
            Some(lead) => Err(GitError::Refused(lead)),
            None => {
                let own = GitDirs::of(&at).map(|dirs| dirs.own);
                let has = |name: &str| own.as_ref().is_some_and(|own| own.join(name).exists());
                Ok((has("locked"), has("modules")))
            }
        }
    });
    (worktree.is_locked, worktree.has_submodules) = judged.await??;
    let git = GuardedGit::open(&worktree.path).await?;
    // Within a submodule git would run the filters that the submodule's own configuration names.
    let flags =
        ["--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty"];
    let status = git.run("status", &flags).await?;
    let standing = Standing::of(&status.bytes);
    (worktree.branch, worktree.commit) = (standing.branch, standing.commit);
    worktree.changed = (!status.cut).then_some(standing.changed);
    worktree.has_submodules = worktree.has_submodules || names_submodules(&git).await?;
    for branch in DEFAULT_BRANCHES {
        let Some(tip) = tip_of(&git, branch).await else { continue };
        worktree.base = Some(branch.to_owned());
        if worktree.commit.is_some() {
            worktree.ahead = count(&git, &["HEAD", "--not", &tip]).await;
        }
        break;
    }
    worktree.loose = match (&worktree.branch, &worktree.commit) {
        (None, Some(_)) => {
            count(&git, &["HEAD", "--not", "--branches", "--tags", "--remotes"]).await
        }
        _ => Some(0),
    };
    Ok(())
}

/// Whether the index has submodules.
///
/// Git removes no worktree with one without force. An index that is too long to be read may have some.
async fn names_submodules(git: &GuardedGit) -> Result<bool, GitError> {
    let staged = git.run("ls-files", &["--stage", "-z"]).await?;
    let mut entries = staged.bytes.split(|byte| *byte == 0);
    Ok(staged.cut || entries.any(|entry| entry.starts_with(b"160000 ")))
}

async fn count(git: &GuardedGit, wanted: &[&str]) -> Option<u64> {
    let printed = git.run("rev-list", &[&["--count"], wanted].concat()).await.ok()?;
    std::str::from_utf8(&printed.bytes).ok()?.trim().parse().ok()
}

/// What `git status --porcelain=v2 --branch -z` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Standing {
    branch: Option<String>,
    commit: Option<String>,
    changed: u64,
}

impl Standing {
    fn of(bytes: &[u8]) -> Self {
        let mut standing = Self::default();
        let mut words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let text = String::from_utf8_lossy(word);
            if let Some(oid) = text.strip_prefix("# branch.oid ") {
                standing.commit = (oid != "(initial)").then(|| oid.to_owned());
            } else if let Some(head) = text.strip_prefix("# branch.head ") {
                standing.branch = (head != "(detached)").then(|| head.to_owned());
            } else if !text.starts_with('#') {
                standing.changed += 1;
                if text.starts_with("2 ") {
                    words.next(); // the name before the rename is a word of its own
                }
            }
        }
        standing
    }
}

/// Bytes of all files below a directory, and how many more files may be counted.
fn size(dir: &Path, mut left: usize) -> (Option<u64>, usize) {
    let (mut bytes, mut pending) = (0, vec![dir.to_owned()]);
    while let Some(dir) = pending.pop() {
        // What cannot be read is not known, and then neither is the sum.
        let Ok(entries) = fs::read_dir(&dir) else { return (None, left) };
        for entry in entries.flatten() {
            let Some(fewer) = left.checked_sub(1) else { return (None, 0) };
            left = fewer;
            let Ok(facts) = entry.path().symlink_metadata() else { continue };
            if facts.is_dir() {
                pending.push(entry.path());
            } else {
                bytes += facts.len();
            }
        }
    }
    (Some(bytes), left)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorktreeError> {
    let lost = |error| WorktreeError::Unreadable(io::Error::other(error));
    tokio::task::spawn_blocking(work).await.map_err(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_branch_and_commit_and_counts_each_file_once() {
        let printed = b"# branch.oid 4b825dc\0# branch.head worktree-svc-00000001\0\
            1 .M N... 100644 100644 100644 a a text\0\
            2 R. N... 100644 100644 100644 a a R100 new\0old\0? un tracked\0";
        let standing = Standing::of(printed);
        assert_eq!(standing.branch.as_deref(), Some("worktree-svc-00000001"));
        assert_eq!((standing.commit.as_deref(), standing.changed), (Some("4b825dc"), 3));
        let fresh = Standing::of(b"# branch.oid (initial)\0# branch.head (detached)\0");
        assert_eq!(fresh, Standing::default());
    }
}
