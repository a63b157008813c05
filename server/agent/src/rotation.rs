//! Keeping a log small while somebody else writes it: copy, then truncate in place.
//!
//! The agent opens its debug file anew for each write, and its output is an inherited descriptor. If
//! the file were renamed, the agent would go on writing to the old file, or create a new one that
//! everybody can read (agent 2.1.197). The copy gets the number 1, and older copies get the next
//! number. Other parts read the log and decide when to rotate it.

use crate::regular_file::open_regular;
use rustix::fs::{Mode, OFlags, SeekFrom, ftruncate, open, seek};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use svc_process::files::{FileError, create_new_private, free_bytes};

/// Most rotated files of one log.
const MAX_ROTATED: u32 = 100;

/// With less free space than this nothing is copied, in bytes (`agent-cli` §12).
const MIN_FREE: u64 = 64 * 1024 * 1024;

/// How far the rotated files of a log may exceed their limit together, in bytes.
/// A log is noticed only after it has become too large.
const SLACK: u64 = 8 * 1024 * 1024;

const CHUNK: usize = 256 * 1024;

/// How large logs may grow (`logs.bridge_log_max_size_mb`, `logs.keep_rotated`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size of the live file at which it is rotated, in bytes.
    pub max_bytes: u64,
    /// Rotated files to keep. With 0 the live file is only truncated.
    pub keep: u32,
}

impl Limits {
    fn keep(self) -> u32 {
        self.keep.min(MAX_ROTATED)
    }

    /// All rotated files of one log together.
    fn rotated_bytes(self) -> u64 {
        self.max_bytes.saturating_mul(u64::from(self.keep())).saturating_add(SLACK)
    }
}

/// Why a log cannot be kept small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The file system is full: the log is truncated without a copy.
    NoSpace,
    /// Its writer keeps its old offset after a truncation, which then frees nothing.
    Sparse,
}

/// What to do about a log.
#[derive(Debug)]
pub(crate) enum Plan {
    /// It is small enough.
    Nothing,
    /// Nothing can be done.
    Stuck(Trouble),
    /// Its content is dropped.
    Drop(Cut, Option<Trouble>),
    /// Its content is copied, then dropped.
    Copy(Cut, Copying),
}

/// A file that is about to be truncated.
#[derive(Debug)]
pub(crate) struct Cut {
    file: File,
}

/// What a truncation removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Length of the file before it, in bytes.
    pub len: u64,
    /// The last line had no end yet: the rest of it comes after the truncation.
    pub ends_inside_line: bool,
}

/// An unfinished copy.
#[derive(Debug)]
pub(crate) struct Copying {
    path: PathBuf,
    copy: File,
    at: u64,
    written: u64,
    is_in_place: bool,
    limits: Limits,
}

impl Cut {
    /// Empties the file in place: its writers continue with the same file.
    pub(crate) fn truncate(self) -> io::Result<Removed> {
        let len = self.len()?;
        let mut last = [0];
        // A last byte that cannot be read could be inside a line.
        let is_read = len > 0 && self.file.read_at(&mut last, len - 1).is_ok();
        let ends_inside_line = len > 0 && !(is_read && last == *b"\n");
        ftruncate(&self.file, 0)?;
        Ok(Removed { len, ends_inside_line })
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

/// Checks a log and prepares its rotation. Blocks.
/// `identity` is device and inode of the file that is read.
pub(crate) fn plan(path: &Path, identity: (u64, u64), limits: Limits) -> io::Result<Plan> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let facts = file.metadata()?;
    if (facts.dev(), facts.ino()) != identity || facts.len() < limits.max_bytes {
        return Ok(Plan::Nothing);
    }
    // A missing file cannot be copied. The next write creates it again.
    if seek(&file, SeekFrom::Data(0)).is_ok_and(|data| data > 0) {
        return Ok(Plan::Stuck(Trouble::Sparse));
    }
    let cut = Cut { file };
    if limits.keep() == 0 {
        return Ok(Plan::Drop(cut, None));
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    if free_bytes(dir).is_ok_and(|free| free < MIN_FREE) {
        return Ok(Plan::Drop(cut, Some(Trouble::NoSpace)));
    }
    make_room(path, facts.len(), limits);
    match Copying::begin(path, facts.len(), limits) {
        Ok(copying) => Ok(Plan::Copy(cut, copying)),
        Err(_) => Ok(Plan::Drop(cut, Some(Trouble::NoSpace))),
    }
}

impl Copying {
    fn begin(path: &Path, len: u64, limits: Limits) -> Result<Self, FileError> {
        let new = with(path, ".new");
        // The rest of an interrupted rotation, or something that is no log.
        if open_regular(&new).is_ok() {
            let _ = fs::remove_file(&new); // creating the file reports the error
        }
        let copy = create_new_private(&new)?;
        // The first part of a flood is dropped, so that the copy stays within the limit.
        let at = len.saturating_sub(limits.rotated_bytes());
        Ok(Self { path: path.to_owned(), copy, at, written: 0, is_in_place: false, limits })
    }

    /// Copies what was added. Returns the number of bytes.
    pub(crate) fn catch_up(&mut self, cut: &Cut) -> io::Result<u64> {
        let mut buffer = vec![0; CHUNK];
        let mut copied: u64 = 0;
        let end = cut.len()?;
        while self.at < end {
            if self.written >= self.limits.rotated_bytes() {
                // A flood: the part beyond the limit is dropped.
                copied += end - self.at;
                self.at = end;
                break;
            }
            let left = usize::try_from(end - self.at).unwrap_or(CHUNK).min(CHUNK);
            let wanted = buffer.get_mut(..left).unwrap_or_default();
            let read = cut.file.read_at(wanted, self.at)?;
            if read == 0 {
                break;
            }
            io::Write::write_all(&mut self.copy, buffer.get(..read).unwrap_or_default())?;
            self.at += read as u64;
            self.written += read as u64;
            copied += read as u64;
        }
        Ok(copied)
    }

    /// The offset up to which it was copied.
    pub(crate) fn end(&self) -> u64 {
        self.at
    }

    /// Gives the copy number 1. Older copies get the next number.
    pub(crate) fn put_in_place(&mut self) -> io::Result<()> {
        shift(&self.path, self.limits.keep());
        fs::rename(with(&self.path, ".new"), numbered(&self.path, 1))?;
        self.is_in_place = true;
        Ok(())
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        if self.is_in_place {
            // The copy may be longer than expected.
            keep_within(&self.path, 0, self.limits.keep(), self.limits.rotated_bytes());
        } else {
            let _ = fs::remove_file(with(&self.path, ".new")); // the next rotation removes it
        }
    }
}

/// Rotates a file that only this process writes, by renaming it. Blocks.
/// The caller creates a new one.
pub(crate) fn rename_away(path: &Path, limits: Limits) -> io::Result<()> {
    if limits.keep() == 0 {
        return fs::remove_file(path);
    }
    make_room(path, fs::symlink_metadata(path)?.len(), limits);
    shift(path, limits.keep());
    fs::rename(path, numbered(path, 1))
}

/// Removes the oldest rotated files until one more of `len` bytes fits.
fn make_room(path: &Path, len: u64, limits: Limits) {
    let most = limits.rotated_bytes();
    keep_within(path, len.min(most), limits.keep().saturating_sub(1), most);
}

/// Deletes rotated files beyond `keep`, or beyond `most` bytes with `used`.
fn keep_within(path: &Path, mut used: u64, keep: u32, most: u64) {
    for number in 1..=MAX_ROTATED {
        let file = numbered(path, number);
        let Ok(len) = open_regular(&file).and_then(|file| Ok(file.metadata()?.len())) else {
            return;
        };
        used = used.saturating_add(len);
        if number > keep || used > most {
            // All older files are removed too.
            used = u64::MAX;
            let _ = fs::remove_file(file); // the retention removes it later
        }
    }
}

/// Frees the number 1.
fn shift(path: &Path, keep: u32) {
    let last = (1..=MAX_ROTATED).find(|n| fs::symlink_metadata(numbered(path, *n)).is_err());
    for number in (1..last.unwrap_or(MAX_ROTATED).min(keep.max(1))).rev() {
        let _ = fs::rename(numbered(path, number), numbered(path, number + 1)); // the copy replaces it
    }
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// `<path>.<number>`.
pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    with(path, &format!(".{number}"))
}

/// The rotated files of a log, oldest first. Blocks.
pub(crate) fn rotated(path: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = (1..=MAX_ROTATED)
        .map(|number| numbered(path, number))
        .take_while(|file| open_regular(file).is_ok())
        .collect();
    files.reverse();
    files
}
