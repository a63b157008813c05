//! What one entry of `projects_root` is. Blocks as long as its file system does.

use crate::git;
use crate::project::{Project, Why};
use crate::stamp::Stamp;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use svc_shared::ids::ProjectName;

/// Where projects are, and where none may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// `projects_root`, absolute.
    pub root: PathBuf,
    /// Real paths of directories that are no projects, nor is one that contains them (H38): state
    /// and configuration directory of the service, home of its user.
    pub refused: Vec<PathBuf>,
}

impl Rules {
    fn refuse(&self, real: &Path) -> bool {
        real.parent().is_none() || self.refused.iter().any(|dir| dir.starts_with(real))
    }
}

/// What an entry turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Look {
    /// A project.
    Project {
        /// Its record, alias or not.
        project: Project,
        /// Its state before its facts were read.
        stamp: Stamp,
        /// It is reached through a link.
        linked: bool,
    },
    /// A directory, or perhaps one, that is no project.
    Skipped(Why),
    /// Gone, hidden or a file: nothing to speak of.
    Nothing,
}

/// One round of looking: what is above the projects is looked at once.
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

    pub(crate) fn examine(&self, name: &OsStr) -> Look {
        if is_hidden(name) {
            return Look::Nothing;
        }
        let entry = self.real_root.join(name);
        let facts = match std::fs::symlink_metadata(&entry) {
            Ok(facts) => facts,
            Err(error) if is_gone(&error) => return Look::Nothing,
            Err(error) => return Look::Skipped(Why::Inaccessible(error.kind())),
        };
        if !facts.is_dir() && !facts.is_symlink() {
            return Look::Nothing;
        }
        let name = match name.to_str().map(str::parse::<ProjectName>) {
            None => return Look::Skipped(Why::Undecodable),
            Some(Err(bad)) => return Look::Skipped(Why::Name(bad)),
            Some(Ok(name)) => name,
        };
        let linked = facts.is_symlink();
        let resolved = if linked { resolve(&entry) } else { Ok((entry, facts)) };
        match resolved {
            Ok((_, target)) if !target.is_dir() => Look::Nothing,
            Ok((real, _)) if real.to_str().is_none() => Look::Skipped(Why::Undecodable),
            Ok((real, _)) if self.rules.refuse(&real) => Look::Skipped(Why::Refused),
            Ok((real, target)) => self.facts(name, real, &target, linked),
            Err(why) => Look::Skipped(why),
        }
    }

    fn facts(&self, name: ProjectName, real: PathBuf, dir: &Metadata, linked: bool) -> Look {
        let stamp = Stamp::new(dir);
        let own_git = match git::has_dot_git(&real) {
            Ok(own) => own,
            // Replaced while it was looked at.
            Err(error) if is_gone(&error) => return Look::Nothing,
            Err(error) => return Look::Skipped(Why::Inaccessible(error.kind())),
        };
        let stands = |name: &str, fits: fn(&Metadata) -> bool| {
            std::fs::symlink_metadata(real.join(name))
                .is_ok_and(|facts| facts.is_symlink() || fits(&facts))
        };
        let project = Project {
            shown_path: self.rules.root.join(name.as_str()),
            git_root: if own_git { Some(real.clone()) } else { self.git_above(&real) },
            has_claude_md: stands("CLAUDE.md", Metadata::is_file),
            has_claude_dir: stands(".claude", Metadata::is_dir),
            alias_of: None,
            name,
            path: real,
        };
        Look::Project { project, stamp, linked }
    }

    fn git_above(&self, real: &Path) -> Option<PathBuf> {
        let parent = real.parent()?;
        let known = |above: &HashMap<PathBuf, Option<PathBuf>>| above.get(parent).cloned();
        if let Some(root) = known(&self.above.lock().unwrap_or_else(PoisonError::into_inner)) {
            return root;
        }
        // Not under the lock: it may hang.
        let root = git::root_at_or_above(parent);
        let mut above = self.above.lock().unwrap_or_else(PoisonError::into_inner);
        above.insert(parent.to_owned(), root.clone());
        root
    }
}

/// Hidden entries are never projects and never mentioned.
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn resolve(link: &Path) -> Result<(PathBuf, Metadata), Why> {
    let resolved = std::fs::canonicalize(link)
        .and_then(|real| std::fs::symlink_metadata(&real).map(|facts| (real, facts)));
    resolved.map_err(|error| {
        // The kind of this error has no stable name yet.
        let is_loop = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        if is_loop {
            Why::Loop
        } else if is_gone(&error) {
            Why::Dangling
        } else {
            Why::Inaccessible(error.kind())
        }
    })
}
