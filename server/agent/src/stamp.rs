//! One state of a file, so that an unchanged one is not read again.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// Changes whenever somebody writes or replaces the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(facts: &fs::Metadata) -> Self {
        Self {
            inode: facts.ino(),
            size: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        }
    }
}
