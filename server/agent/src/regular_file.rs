//! Opens a file that must be a regular file, without blocking.

use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io;
use std::path::Path;

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
