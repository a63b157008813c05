//! What one directory entry is. Blocks as long as its file system does.

use crate::project::{Project, Refused, Unavailable};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use svc_shared::ids::ProjectName;

/// What an entry turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Examined {
    /// A project, and the state of its directory.
    Project(Arc<Project>, Stamp),
    /// Not there, not a directory, or hidden.
    Nothing,
    /// A directory without a usable name or path.
    Undecodable,
    /// A directory whose name no project may have.
    IllegalName,
    /// A directory that may not be a project.
    Refused(Refused),
    /// Could not be looked at.
    Unavailable(Unavailable),
}

/// State of a directory. Changes when an entry in it appears or vanishes, and when another
/// directory takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp([i64; 6]);

impl Stamp {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|facts| Self::new(&facts))
    }

    fn new(facts: &Metadata) -> Self {
        // Compared only: the bit patterns are as good as the numbers.
        let (device, inode) = (facts.dev().cast_signed(), facts.ino().cast_signed());
        let changed = [facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()];
        let [a, b, c, d] = changed;
        Self([device, inode, a, b, c, d])
    }
}

/// What examining needs to know, the same for all entries of one scan.
#[derive(Debug)]
pub(crate) struct Examiner {
    root: PathBuf,
    real_root: PathBuf,
    protected: Vec<PathBuf>,
    /// Git roots at or above the directories that projects lie in.
    above: Mutex<HashMap<PathBuf, Option<PathBuf>>>,
}

impl Examiner {
    /// `protected`: what no project may be or hold.
    pub(crate) fn new(root: &Path, protected: &[PathBuf]) -> io::Result<Self> {
        Ok(Self {
            root: root.to_owned(),
            real_root: fs::canonicalize(root)?,
            protected: protected.iter().map(|path| resolved(path)).collect(),
            above: Mutex::default(),
        })
    }

    pub(crate) fn examine(&self, name: &OsStr) -> Examined {
        match self.try_examine(name) {
            Ok(examined) => examined,
            Err(error) => match (error.kind(), name.to_str().and_then(|n| n.parse().ok())) {
                (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, _) | (_, None) => {
                    Examined::Nothing
                }
                (_, Some(name)) => {
                    let reason = format!("it cannot be looked at: {error}");
                    Examined::Unavailable(Unavailable { name, reason })
                }
            },
        }
    }

    fn try_examine(&self, name: &OsStr) -> io::Result<Examined> {
        if name.as_encoded_bytes().starts_with(b".") {
            return Ok(Examined::Nothing);
        }
        let shown_path = self.root.join(name);
        let facts = fs::symlink_metadata(&shown_path)?;
        let (path, facts) = if facts.is_symlink() {
            let target = fs::canonicalize(&shown_path)?;
            let facts = fs::metadata(&target)?;
            (target, facts)
        } else {
            (self.real_root.join(name), facts)
        };
        if !facts.is_dir() {
            return Ok(Examined::Nothing);
        }
        let Some(text) = name.to_str() else { return Ok(Examined::Undecodable) };
        let Ok(name) = text.parse::<ProjectName>() else { return Ok(Examined::IllegalName) };
        if path.to_str().is_none() {
            return Ok(Examined::Undecodable);
        }
        if let Some(because) = self.protected.iter().find(|one| one.starts_with(&path)) {
            return Ok(Examined::Refused(Refused { name, path, because: because.clone() }));
        }
        let project = Project {
            git_root: self.git_root(&path),
            has_claude_md: fs::metadata(path.join("CLAUDE.md")).is_ok_and(|facts| facts.is_file()),
            has_claude_dir: fs::metadata(path.join(".claude")).is_ok_and(|facts| facts.is_dir()),
            name,
            path,
            shown_path,
            alias_of: None,
        };
        Ok(Examined::Project(Arc::new(project), Stamp::new(&facts)))
    }

    fn git_root(&self, path: &Path) -> Option<PathBuf> {
        if has_git(path) {
            return Some(path.to_owned());
        }
        let parent = path.parent()?;
        // Ten thousand projects share one parent.
        let mut above = self.above.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = above.get(parent) {
            return known.clone();
        }
        let found = parent.ancestors().find(|dir| has_git(dir)).map(Path::to_owned);
        above.insert(parent.to_owned(), found.clone());
        found
    }
}

/// A directory, or the file that a worktree or submodule has.
fn has_git(dir: &Path) -> bool {
    fs::metadata(dir.join(".git")).is_ok_and(|facts| facts.is_dir() || facts.is_file())
}

/// The real path of something that may not exist yet.
fn resolved(path: &Path) -> PathBuf {
    let mut missing: Vec<&OsStr> = Vec::new();
    for existing in path.ancestors() {
        if let Ok(real) = fs::canonicalize(existing) {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        missing.extend(existing.file_name());
    }
    path.to_owned()
}

/// Names of the entries that may be projects.
pub(crate) fn names(root: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        // Plain files need no further look.
        let may_be = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
        if may_be && !entry.file_name().as_encoded_bytes().starts_with(b".") {
            names.push(entry.file_name());
        }
    }
    names.sort();
    Ok(names)
}
