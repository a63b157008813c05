//! Files that git does not know: how many lines they have, and what is in them.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::found::{ChangedFile, ChangesError, Kind, Status};
use crate::git::read_bounded;

/// Most new files whose lines are counted.
const MOST_COUNTED: usize = 300;
/// Most bytes that are read for that.
const MOST_READ: usize = 8 * 1024 * 1024;
/// Bytes in which a NUL says that a file is binary, as git does it.
const HEAD: usize = 8_000;

/// Counts the lines of new files, and names links and binary files.
///
/// A file of more than `most` bytes is not read.
pub(super) fn measure(root: &Path, files: &mut [ChangedFile], most: usize) {
    let mut left = MOST_READ;
    let new = files.iter_mut().filter(|file| file.status == Status::Untracked);
    for file in new.filter(|file| file.kind == Kind::Text).take(MOST_COUNTED) {
        let at = root.join(&file.raw);
        let Ok(facts) = at.symlink_metadata() else { continue };
        if facts.is_symlink() {
            file.kind = Kind::Symlink;
            (file.additions, file.deletions) = (Some(1), Some(0));
            continue;
        }
        let Ok(Some(content)) = read_bounded(&at, left.min(most)) else { continue };
        left -= content.len();
        if content.iter().take(HEAD).any(|byte| *byte == 0) {
            file.kind = Kind::Binary;
            continue;
        }
        let lines = content.split(|byte| *byte == b'\n').count();
        let is_ended = content.is_empty() || content.ends_with(b"\n");
        let lines = lines - usize::from(is_ended);
        (file.additions, file.deletions) = (u64::try_from(lines).ok(), Some(0));
    }
}

/// What is in a new file; for a link, where it leads.
///
/// `None` if it has more than `most` bytes.
pub(super) fn content(
    root: &Path,
    path: &Path,
    most: usize,
) -> Result<Option<Vec<u8>>, ChangesError> {
    let gone = |_: io::Error| ChangesError::NoSuchFile;
    let at = root.join(path);
    let parent = at.parent().and_then(|parent| parent.canonicalize().ok());
    let root = root.canonicalize().map_err(gone)?;
    if !parent.is_some_and(|parent| parent.starts_with(&root)) {
        return Err(ChangesError::PathEscape);
    }
    if at.symlink_metadata().map_err(gone)?.is_symlink() {
        let target = std::fs::read_link(&at).map_err(gone)?;
        return Ok(Some(target.as_os_str().as_bytes().to_vec()));
    }
    read_bounded(&at, most).map_err(gone)
}
