//! One state of a file.
//!
//! With it an unchanged file is not read again, and no change is overwritten.

use rustix::fs::{Gid, Uid, fchown};
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use svc_process::files::{sync_directory, temporary_in};

/// Changes whenever somebody writes or replaces the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    identity: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(facts: &Metadata) -> Self {
        Self {
            identity: (facts.dev(), facts.ino()),
            size: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        }
    }

    /// The state of the file that `path` leads to. `None` if there is none.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        Self::from_found(fs::metadata(path))
    }

    /// The state of what stands at `path` itself: a link is not followed.
    pub(crate) fn at_itself(path: &Path) -> io::Result<Option<Self>> {
        Self::from_found(fs::symlink_metadata(path))
    }

    fn from_found(found: io::Result<Metadata>) -> io::Result<Option<Self>> {
        match found {
            Ok(facts) => Ok(Some(Self::of(&facts))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Replaces a file if it is still what was read.
///
/// False when somebody else wrote it meanwhile.
///
/// `path` is no link. Permissions and owner stay; a new file has the permission bits `new_mode`.
/// `prepared` is called when the new content is in a temporary file: tests write the file then.
pub(crate) fn replace_unchanged(
    path: &Path,
    before: Option<&Metadata>,
    content: &[u8],
    new_mode: u32,
    prepared: &mut dyn FnMut(),
) -> io::Result<bool> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut fresh = temporary_in(directory)?;
    let mode = before.map_or(new_mode, |facts| facts.mode() & 0o777);
    fresh.as_file().set_permissions(Permissions::from_mode(mode))?;
    if let Some(facts) = before {
        let own = fresh.as_file().metadata()?;
        let user = (own.uid() != facts.uid()).then(|| Uid::from_raw(facts.uid()));
        let group = (own.gid() != facts.gid()).then(|| Gid::from_raw(facts.gid()));
        if user.is_some() || group.is_some() {
            fchown(fresh.as_file(), user, group)?;
        }
    }
    fresh.write_all(content)?;
    fresh.as_file().sync_all()?;
    prepared();
    if Stamp::at_itself(path)? != before.map(Stamp::of) {
        return Ok(false);
    }
    let placed = match before {
        Some(_) => fresh.persist(path).map(drop),
        None => fresh.persist_noclobber(path).map(drop),
    };
    match placed {
        Ok(()) => sync_directory(directory).map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}
