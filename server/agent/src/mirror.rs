//! The redacted copy of a debug log (`logs.redact_session_url`).
//!
//! The agent writes `.raw.log`, people read `.log`. Only whole lines are copied, each once, also
//! across a restart of the service: the position is kept in `.mirror.json`. Keeping the raw file
//! small happens elsewhere.

use crate::growing_file::{GrowingFile, Look};
use crate::log_set::{LogSet, open_regular};
use crate::rotation::{Limits, Trouble, rename_away};
use rustix::fs::{Mode, OFlags, ftruncate, open};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use svc_domain::redact::{Colour, Redactor};
use svc_domain::tail_lines::TailLines;
use svc_process::files::{create_new_private, replace_without_sync};

const CHUNK: usize = 64 * 1024;

/// Bytes read per round; a flood must not keep a thread from everything else.
const ROUND: usize = 8 * 1024 * 1024;

/// How far before its position a mirror searches for the start of a long secret.
const LOOK_BACK: u64 = 16 * 1024;

/// The line in the place of lines that were lost while nothing could be written.
const LOST: &[u8] = b"[lines are missing here: the file system was full]\n";

/// What was copied of which file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// Inode of the raw file.
    inode: u64,
    /// Bytes of it that were copied.
    raw: u64,
    /// Length of the redacted file then.
    public: u64,
    /// The raw file begins inside a line whose beginning is gone.
    /// The rest of that line is not shown, because it could be half of a secret.
    inside: bool,
}

/// See the module. Everything here blocks.
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
    /// Redacted and not yet written, because nothing could be.
    pending: Vec<u8>,
    place_file: PathBuf,
    limits: Limits,
    trouble: Option<Trouble>,
}

impl Mirror {
    /// Goes on where the last mirror of this set stopped.
    pub(crate) fn new(set: &LogSet, limits: Limits) -> Self {
        let (raw, public, place_file) = (set.agent_file(), set.debug_file(), set.mirror_file());
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
            place_file,
            limits,
            trouble: None,
        };
        let place = mirror.place_file_says().filter(|place| mirror.is_true(&raw, *place));
        // Without a place, or one that is not true, everything is copied anew.
        let place = place.unwrap_or_default();
        let _ = mirror.open_at(place.public); // the first write says it
        if place.inside {
            mirror.begin_inside();
        } else if let Some(plan) = TailLines::resume(place.raw, u64::MAX) {
            mirror.raw = GrowingFile::new(raw.clone(), plan.offset);
            mirror.lines = plan.lines;
            mirror.prime(&raw, place.raw);
        }
        mirror
    }

    fn place_file_says(&self) -> Option<Place> {
        let mut text = String::new();
        open_regular(&self.place_file).ok()?.take(4096).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn is_true(&self, raw: &Path, place: Place) -> bool {
        let facts = |path: &Path| open_regular(path).and_then(|file| file.metadata());
        let raw_fits =
            facts(raw).is_ok_and(|facts| facts.ino() == place.inode && facts.len() >= place.raw);
        raw_fits && facts(&self.public).is_ok_and(|facts| facts.len() >= place.public)
    }

    /// Opens the redacted file and drops everything unrecorded, which is after `len`.
    fn open_at(&mut self, len: u64) -> io::Result<()> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, len) = match open(&self.public, flags, Mode::empty()) {
            Ok(file) => (File::from(file), len),
            Err(rustix::io::Errno::NOENT) => {
                (create_new_private(&self.public).map_err(io::Error::other)?, 0)
            }
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        ftruncate(&file, len)?;
        self.len = len;
        self.file = Some(file);
        Ok(())
    }

    /// Shows the redactor the lines before its place.
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

    /// What is in the way.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// Copies on; true when there may be more at once.
    pub(crate) fn round(&mut self) -> bool {
        let mut buffer = vec![0; CHUNK];
        let mut left = ROUND;
        while left > 0 {
            // Nothing is read that cannot be written: the copy lags, the memory does not grow.
            if !self.flush() {
                return false;
            }
            match self.raw.look(&mut buffer) {
                Look::Bytes(read) => {
                    left = left.saturating_sub(read);
                    for line in self.lines.feed(buffer.get(..read).unwrap_or_default()) {
                        self.pending
                            .extend_from_slice(line.redacted(&mut self.redactor).as_bytes());
                        self.pending.push(b'\n');
                    }
                }
                Look::Restarted => self.begin_anew(),
                Look::UpToDate | Look::Missing | Look::Unusable(_) => {
                    self.flush();
                    return false;
                }
            }
        }
        true
    }

    /// Handles a truncation of the raw file after it was read.
    /// An unfinished line continues in what comes next.
    pub(crate) fn raw_was_truncated(&mut self) {
        if !self.pending.is_empty() {
            // What could not be written could not be read on either.
            self.pending.extend_from_slice(LOST);
            self.begin_anew();
        }
        self.base = self.lines.offset();
        self.carries = self.lines.resting() < self.base;
        self.raw.go_to(0);
        self.note_place();
    }

    fn begin_anew(&mut self) {
        self.lines = TailLines::from_start();
        self.base = 0;
        self.carries = false;
    }

    /// At the begin of the raw file, inside a line.
    fn begin_inside(&mut self) {
        self.begin_anew();
        if let Some(plan) = TailLines::resume(1, u64::MAX) {
            self.lines = plan.lines;
            // Stands for the begin that is gone.
            self.lines.feed(b"x");
            self.base = self.lines.offset();
            self.carries = true;
        }
    }

    /// Writes what is redacted; false when that is not possible now.
    fn flush(&mut self) -> bool {
        if self.pending.is_empty() {
            return true;
        }
        let written = self.write();
        self.trouble = written.as_ref().err().map(|_| Trouble::NoSpace);
        match written {
            Ok(()) => {
                self.pending.clear();
                self.note_place();
                true
            }
            Err(error) => {
                tracing::debug!(
                    path = %self.public.display(), error = %error, "a redacted log lags behind"
                );
                self.file = None;
                false
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        if self.len >= self.limits.max_bytes {
            self.file = None;
            rename_away(&self.public, self.limits)?;
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

    fn note_place(&mut self) {
        let Some((_, inode)) = self.raw.identity() else { return };
        let raw = self.lines.resting().saturating_sub(self.base);
        self.carries &= raw == 0;
        let place = Place { inode, raw, public: self.len, inside: self.carries };
        if let Ok(text) = serde_json::to_vec(&place) {
            // Without it the next service copies everything anew.
            let _ = replace_without_sync(&self.place_file, &text);
        }
    }
}
