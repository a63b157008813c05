//! Finds out what one entry of `projects_root` is.
//!
//! Blocks as long as its file system does.

use crate::git;
use crate::project::{Project, SkipReason};
use crate::stamp::Stamp;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use svc_shared::ids::ProjectName;

/// Where projects are, and which directories may not be projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// `projects_root`, absolute.
    pub root: PathBuf,
    /// Real paths of directories that may not be projects (H38).
    ///
    /// These are the state and configuration directory of the service and the home of its user. A
    /// directory that contains one of them may not be a project either.
    pub refused: Vec<PathBuf>,
    /// Real paths of directories in which nothing may be a project either.
    ///
    /// Those of the service's state and of credentials: an agent that works in one of their
    /// subdirectories reads or changes them.
    pub private: Vec<PathBuf>,
}

impl Rules {
    /// Whether a directory is no project.
    /// `root` is the real path of the projects: it is no project of itself, and what is really in
    /// it is meant to be one.
    fn refuse(&self, real: &Path, root: &Path) -> bool {
        let holds = |dir: &PathBuf| dir.starts_with(real);
        let is_inside = |dir: &PathBuf| real.starts_with(dir) && !root.starts_with(dir);
        real.parent().is_none()
            || root.starts_with(real)
            || self.refused.iter().any(holds)
            || self.private.iter().any(|dir| holds(dir) || is_inside(dir))
    }
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Examined {
    /// A project.
    Project {
        /// Its facts. Whether it is an alias is not known yet.
        project: Project,
        /// The stamp of the directory before its facts were read.
        stamp: Stamp,
        /// The entry is a link.
        linked: bool,
    },
    /// A directory, or perhaps one, that is no project.
    Skipped(SkipReason),
    /// Gone, hidden or a file: not mentioned anywhere.
    Nothing,
}

/// Examines entries. Reads directories above the projects once per round.
#[derive(Debug)]
pub(crate) struct Examiner {
    rules: Rules,
    real_root: PathBuf,
    above: Mutex<HashMap<PathBuf, Option<PathBuf>>>,
}

impl Examiner {
    pub(crate) fn new(rules: Rules, real_root: PathBuf) -> Self {
        Self { rules, real_root, above: Mutex::default() }
    }

    pub(crate) fn examine(&self, name: &OsStr) -> Examined {
        if is_hidden(name) {
            return Examined::Nothing;
        }
        let entry = self.real_root.join(name);
        let facts = match std::fs::symlink_metadata(&entry) {
            Ok(facts) => facts,
            Err(error) if is_gone(&error) => return Examined::Nothing,
            Err(error) => return Examined::Skipped(SkipReason::Inaccessible(error.kind())),
        };
        if !facts.is_dir() && !facts.is_symlink() {
            return Examined::Nothing;
        }
        let name = match name.to_str().map(str::parse::<ProjectName>) {
            None => return Examined::Skipped(SkipReason::Undecodable),
            Some(Err(bad)) => return Examined::Skipped(SkipReason::Name(bad)),
            Some(Ok(name)) => name,
        };
        let linked = facts.is_symlink();
        let resolved = if linked { resolve(&entry) } else { Ok((entry, facts)) };
        match resolved {
            Ok((_, target)) if !target.is_dir() => Examined::Nothing,
            Ok((real, _)) if real.to_str().is_none() => Examined::Skipped(SkipReason::Undecodable),
            Ok((real, _)) if self.rules.refuse(&real, &self.real_root) => {
                Examined::Skipped(SkipReason::Refused)
            }
            Ok((real, target)) => self.facts(name, real, &target, linked),
            Err(why) => Examined::Skipped(why),
        }
    }

    fn facts(&self, name: ProjectName, real: PathBuf, dir: &Metadata, linked: bool) -> Examined {
        let stamp = Stamp::new(dir);
        let own_git = match git::has_dot_git(&real) {
            Ok(own) => own,
            // Replaced while it was examined.
            Err(error) if is_gone(&error) => return Examined::Nothing,
            Err(error) => return Examined::Skipped(SkipReason::Inaccessible(error.kind())),
        };
        let exists = |name: &str, fits: fn(&Metadata) -> bool| {
            std::fs::symlink_metadata(real.join(name))
                .is_ok_and(|facts| facts.is_symlink() || fits(&facts))
        };
        let project = Project {
            shown_path: self.rules.root.join(name.as_str()),
            git_root: if own_git { Some(real.clone()) } else { self.git_above(&real) },
            has_claude_md: exists("CLAUDE.md", Metadata::is_file),
            has_claude_dir: exists(".claude", Metadata::is_dir),
            alias_of: None,
            name,
            path: real,
        };
        Examined::Project { project, stamp, linked }
    }

    fn git_above(&self, real: &Path) -> Option<PathBuf> {
        let parent = real.parent()?;
        let known = |above: &HashMap<PathBuf, Option<PathBuf>>| above.get(parent).cloned();
        if let Some(root) = known(&self.above.lock().unwrap_or_else(PoisonError::into_inner)) {
            return root;
        }
        // Without the lock, because this may hang.
        let root = git::root_at_or_above(parent);
        let mut above = self.above.lock().unwrap_or_else(PoisonError::into_inner);
        above.insert(parent.to_owned(), root.clone());
        root
    }
}

/// Whether an entry is hidden. Hidden entries are never projects.
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn resolve(link: &Path) -> Result<(PathBuf, Metadata), SkipReason> {
    let resolved = std::fs::canonicalize(link)
        .and_then(|real| std::fs::symlink_metadata(&real).map(|facts| (real, facts)));
    resolved.map_err(|error| {
        // `ErrorKind` has no stable variant for this error yet.
        let is_loop = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        if is_loop {
            SkipReason::Loop
        } else if is_gone(&error) {
            SkipReason::Dangling
        } else {
            SkipReason::Inaccessible(error.kind())
        }
    })
}
