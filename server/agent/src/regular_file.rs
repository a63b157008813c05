//! Opens a file that must be a regular file, without blocking.

use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Opens a file of our own, which has no second name anywhere.
///
/// A hard link at the place of a log would show a file of somebody else (H38).
///
/// # Errors
/// As [`open_regular`], or it has another name as well.
pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    let file = open_regular(path)?;
    // None: it was removed meanwhile.
    if file.metadata()?.nlink() > 1 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it has a second name (hard link); remove that name",
        ));
    }
    Ok(file)
}

/// Opens a regular file for reading.
///
/// A pipe, device or link in its place is refused. Never waits for the writer of a pipe.
///
/// # Errors
/// It is missing, unreadable, or no regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}
