//! The redacted copy of a debug log (`logs.redact_session_url`).
//!
//! The agent writes `.raw.log`, people read `.log`. Only whole lines are copied, each once, also
//! across a restart of the service: the progress is kept in `.mirror.json`. Another part keeps the
//! raw file small.

use crate::growing_file::{GrowingFile, ReadResult};
use crate::log_set::LogSet;
use crate::regular_file::open_regular;
use crate::rotation::{Limits, Removed, Trouble, rename_away};
use rustix::fs::{Mode, OFlags, ftruncate, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use svc_domain::redact::{Colour, Redactor};
use svc_domain::tail_lines::TailLines;
use svc_process::files::{FileError, create_new_private, replace_without_sync};

const CHUNK: usize = 64 * 1024;

/// Bytes read in one round, so that a flood does not occupy the thread.
const ROUND: usize = 8 * 1024 * 1024;

/// How far before its position a mirror searches for the start of a long secret.
const LOOK_BACK: u64 = 16 * 1024;

/// Written instead of lines that could not be copied.
const LOST: &[u8] = b"[lines are missing here: they could not be copied]\n";

/// How much of which file was copied, as `.mirror.json` keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MirrorProgress {
    /// Inode of the raw file.
    inode: u64,
    /// Bytes of the raw file that were copied.
    raw: u64,
    /// Length of the redacted file at that moment.
    public: u64,
    /// The raw file begins inside a line whose beginning is gone.
    /// The rest of that line is not shown, because it could be half of a secret.
    inside: bool,
}

/// The copy of one log. All functions block.
#[derive(Debug)]
pub(crate) struct Mirror {
    raw: GrowingFile,
    lines: TailLines,
    redactor: Redactor,
    /// Offset of the raw file's first byte among the bytes that `lines` was given.
    base: u64,
    /// The line that was open when the raw file was truncated is not complete yet.
    carries: bool,
    public: PathBuf,
    file: Option<File>,
    /// Length of the redacted file.
    len: u64,
    /// Redacted text that could not be written yet.
    pending: Vec<u8>,
    progress_file: PathBuf,
    limits: Limits,
    trouble: Option<Trouble>,
    /// It was logged that the file cannot be written.
    complained: bool,
}

impl Mirror {
    /// Continues where the last mirror of this set stopped.
    pub(crate) fn new(set: &LogSet, limits: Limits) -> Self {
        let (raw, public, progress_file) = (set.agent_file(), set.debug_file(), set.mirror_file());
        let mut mirror = Self {
            raw: GrowingFile::new(raw.clone(), 0),
            lines: TailLines::from_start(),
            redactor: Redactor::new(Colour::Strip),
            base: 0,
            carries: false,
            file: None,
            len: 0,
            public,
            pending: Vec::new(),
            progress_file,
            limits,
            trouble: None,
            complained: false,
        };
        let known = mirror.read_progress();
        // Without any progress nothing was copied yet.
        let progress = known.unwrap_or_default();
        if known.is_some() && !is_of_file(progress, &raw) {
            // The raw file was truncated or replaced, and nobody noted it: what was copied stays.
            let len = fs::symlink_metadata(&mirror.public).map_or(0, |facts| facts.len());
            let _ = mirror.open_at(len); // the first write reports the error
            mirror.say_lost();
            mirror.begin_inside();
            return mirror;
        }
        let _ = mirror.open_at(progress.public); // the first write reports the error
        if progress.inside {
            mirror.begin_inside();
        } else if let Some(plan) = TailLines::resume(progress.raw, u64::MAX) {
            mirror.raw = GrowingFile::new(raw.clone(), plan.offset);
            mirror.lines = plan.lines;
            mirror.prime(&raw, progress.raw);
        }
        mirror
    }

    /// The noted progress; `None` where nothing was noted yet.
    /// A damaged note becomes one that fits no file.
    fn read_progress(&self) -> Option<MirrorProgress> {
        let mut text = String::new();
        match open_regular(&self.progress_file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => return Some(MirrorProgress::default()),
            Ok(file) => {
                let _ = file.take(4096).read_to_string(&mut text); // the rest is no whole note
            }
        }
        Some(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Opens the redacted file and removes what is after `len`, which was not recorded.
    fn open_at(&mut self, len: u64) -> io::Result<()> {
        // Known also after a failure: the next attempt must not remove more.
        self.len = len;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, len) = match open(&self.public, flags, Mode::empty()) {
            Ok(file) => (File::from(file), len),
            Err(Errno::NOENT) => (create_new_private(&self.public).map_err(cause)?, 0),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Somebody else may have made it shorter: it is not filled up with zeros.
        let len = len.min(file.metadata()?.len());
        ftruncate(&file, len)?;
        self.len = len;
        self.file = Some(file);
        Ok(())
    }

    /// Feeds the redactor the lines before `at`, where a long secret may have begun.
    fn prime(&mut self, raw: &Path, at: u64) {
        let from = at.saturating_sub(LOOK_BACK);
        let mut before = vec![0; usize::try_from(at - from).unwrap_or(0)];
        let read = open_regular(raw).and_then(|file| file.read_exact_at(&mut before, from));
        if read.is_ok() {
            for line in before.split(|b| *b == b'\n') {
                self.redactor.line(&String::from_utf8_lossy(line));
            }
        }
    }

    /// What prevents copying, if anything.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// Copies the next part. Returns whether there may be more to copy.
    pub(crate) fn round(&mut self) -> bool {
        let mut buffer = vec![0; CHUNK];
        let mut left = ROUND;
        while left > 0 {
            // Nothing is read before it can be written: the copy lags, but memory does not grow.
            if !self.flush() {
                return false;
            }
            match self.raw.read(&mut buffer) {
                ReadResult::Bytes(read) => {
                    left = left.saturating_sub(read);
                    for line in self.lines.feed(buffer.get(..read).unwrap_or_default()) {
                        self.pending
                            .extend_from_slice(line.redacted(&mut self.redactor).as_bytes());
                        self.pending.push(b'\n');
                    }
                }
                ReadResult::Restarted => self.begin_anew(),
                ReadResult::UpToDate | ReadResult::Missing | ReadResult::Unusable(_) => {
                    self.flush();
                    return false;
                }
            }
        }
        // What is read is also written, so that a caller can stop here.
        self.flush()
    }

    /// Copies to the end of the raw file, with at most this many full rounds.
    /// Takes the rounds it needs from the number.
    pub(crate) fn catch_up(&mut self, rounds: &mut u32) {
        while *rounds > 0 && self.round() {
            *rounds -= 1;
        }
    }

    /// Handles a truncation of the raw file, whether all of it was copied or not.
    pub(crate) fn raw_was_truncated(&mut self, removed: Removed) {
        // While nothing can be written, nothing is read either: lines may be missing.
        if self.raw.offset() < removed.len || !self.pending.is_empty() {
            self.say_lost();
            // An open line is not continued: there are other lines between it and the next bytes.
            if removed.ends_inside_line {
                self.begin_inside();
            } else {
                self.begin_anew();
            }
        } else {
            // An unfinished line continues in the next bytes.
            self.base = self.lines.offset();
            self.carries = self.lines.resting() < self.base;
        }
        self.raw.go_to(0);
        self.write_progress();
    }

    /// Says on a line of its own that lines are missing, unless nothing was said since.
    fn say_lost(&mut self) {
        let mut end = self.pending.clone();
        if let (true, Some(file)) = (end.is_empty(), &self.file) {
            end.resize(LOST.len(), 0);
            let from = self.len.saturating_sub(LOST.len() as u64);
            let read = file.read_at(&mut end, from).unwrap_or(0);
            end.truncate(read);
        }
        if end.ends_with(LOST) {
            return;
        }
        if end.last().is_some_and(|last| *last != b'\n') {
            self.pending.push(b'\n');
        }
        self.pending.extend_from_slice(LOST);
    }

    fn begin_anew(&mut self) {
        self.lines = TailLines::from_start();
        self.base = 0;
        self.carries = false;
    }

    /// Begins again at the start of the raw file, inside a line.
    fn begin_inside(&mut self) {
        self.begin_anew();
        if let Some(plan) = TailLines::resume(1, u64::MAX) {
            self.lines = plan.lines;
            // A stand-in for the lost beginning of the line.
            self.lines.feed(b"x");
            self.base = self.lines.offset();
            self.carries = true;
        }
    }

    /// Writes the redacted text. Returns false if it cannot be written now.
    fn flush(&mut self) -> bool {
        if self.pending.is_empty() {
            return true;
        }
        let written = self.write();
        self.trouble =
            written.as_ref().err().filter(|error| is_full(error)).map(|_| Trouble::NoSpace);
        match written {
            Ok(()) => {
                self.pending.clear();
                self.complained = false;
                self.write_progress();
                true
            }
            Err(error) => {
                // The advice about a full file system is on the row of the bridge.
                if self.trouble.is_none() && !std::mem::replace(&mut self.complained, true) {
                    tracing::warn!(
                        path = %self.public.display(), error = %error,
                        "a redacted log cannot be written; it goes on when it can"
                    );
                }
                self.file = None;
                false
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.leave_removed_file();
        if self.len >= self.limits.max_bytes {
            self.file = None;
            match rename_away(&self.public, self.limits) {
                // Somebody deleted it: there is room for a new one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                renamed => renamed?,
            }
            self.len = 0;
        }
        if self.file.is_none() {
            self.open_at(self.len)?;
        }
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        file.write_all(&self.pending)?;
        self.len = self.len.saturating_add(self.pending.len() as u64);
        Ok(())
    }

    /// Stops writing to a file that somebody deleted or replaced.
    /// What is at the path now is continued.
    fn leave_removed_file(&mut self) {
        let Some(Ok(open)) = self.file.as_ref().map(File::metadata) else { return };
        let len = match fs::symlink_metadata(&self.public) {
            Ok(here) if (here.dev(), here.ino()) == (open.dev(), open.ino()) => return,
            Ok(here) => here.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(_) => return, // unknown: the open file may still be the right one
        };
        self.file = None;
        self.len = len;
    }

    fn write_progress(&mut self) {
        let Some((_, inode)) = self.raw.identity() else { return };
        let raw = self.lines.resting().saturating_sub(self.base);
        self.carries &= raw == 0;
        let progress = MirrorProgress { inode, raw, public: self.len, inside: self.carries };
        if let Ok(text) = serde_json::to_vec(&progress) {
            // If this fails, the next service copies some lines again.
            let _ = replace_without_sync(&self.progress_file, &text);
        }
    }
}

/// Whether this is the progress in the file that is at `raw` now.
fn is_of_file(progress: MirrorProgress, raw: &Path) -> bool {
    let facts = open_regular(raw).and_then(|file| file.metadata());
    facts.is_ok_and(|facts| facts.ino() == progress.inode && facts.len() >= progress.raw)
}

fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT))
}

/// What the kernel said.
fn cause(error: FileError) -> io::Error {
    match error {
        FileError::Replace { cause, .. }
        | FileError::Create { cause, .. }
        | FileError::Directory { cause, .. } => cause,
        FileError::ForeignDirectory { .. } => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests;
