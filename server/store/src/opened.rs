//! Which databases this process has open, and the permissions of their files.

use crate::connection::side_file;
use crate::open_error::OpenError;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Databases that this process has open, by device and inode.
///
/// `fcntl` locks belong to a process and end when it closes any descriptor of the file. A second
/// opening must not look at the files by itself, or another process would believe that nobody has
/// the database open, and remove the log in use.
static OPEN: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// One entry among the open databases.
#[derive(Debug)]
pub(crate) struct Opened {
    dev: u64,
    ino: u64,
}

impl Opened {
    pub(crate) fn first(path: &Path) -> Result<Self, OpenError> {
        let meta = std::fs::symlink_metadata(path)
            .map_err(|cause| OpenError::Io { path: path.to_owned(), cause })?;
        Ok(Self::enter(meta.dev(), meta.ino()))
    }

    /// The entry of a database without a file. No file has these numbers.
    pub(crate) fn nowhere() -> Self {
        Self::enter(0, 0)
    }

    pub(crate) fn has_no_file(&self) -> bool {
        self.is(0, 0)
    }

    /// Another entry for a database that is open already, and so was found good.
    pub(crate) fn again(path: &Path) -> Option<Self> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        let key = (meta.dev(), meta.ino());
        let is_open = OPEN.lock().unwrap_or_else(PoisonError::into_inner).contains(&key);
        is_open.then(|| Self::enter(key.0, key.1))
    }

    fn enter(dev: u64, ino: u64) -> Self {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).push((dev, ino));
        Self { dev, ino }
    }

    pub(crate) fn is(&self, dev: u64, ino: u64) -> bool {
        (self.dev, self.ino) == (dev, ino)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().position(|entry| self.is(entry.0, entry.1)) {
            open.swap_remove(at);
        }
    }
}

/// Makes a restored file as private as one of our own.
/// The files beside it must be as writable as it is: SQLite gives an empty log the mode that the
/// database has at that moment, and does not change it later (H88).
pub(crate) fn tighten(path: &Path) -> Result<(), OpenError> {
    let Some(mode) = mode(path)? else {
        return Ok(());
    };
    if mode & 0o077 != 0 {
        make_private(path)?;
    }
    if mode & 0o200 == 0 {
        return Ok(());
    }
    for suffix in ["-wal", "-shm"] {
        let side = side_file(path, suffix);
        if self::mode(&side)?.is_some_and(|mode| mode != 0o600) {
            make_private(&side)?;
        }
    }
    Ok(())
}

/// Permission bits of a file; `None` when it is not there, or no file of ours.
pub(crate) fn mode(path: &Path) -> Result<Option<u32>, OpenError> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Some(meta.permissions().mode() & 0o777)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(OpenError::Io { path: path.to_owned(), cause }),
    }
}

fn make_private(path: &Path) -> Result<(), OpenError> {
    match std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)) {
        // The last user of a log removes it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(OpenError::Io { path: path.to_owned(), cause }),
        Ok(()) => Ok(()),
    }
}
