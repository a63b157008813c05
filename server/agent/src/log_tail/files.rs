//! The files of one log as one sequence of bytes, rotated files first.
//!
//! Offsets count from the start of the oldest file at the first check, and continue through every later
//! rotation, truncation and replacement. So an offset never means two different bytes. In a log that was
//! never rotated it is the offset in its file. Lost bytes leave a hole. Callers split the bytes into
//! lines and follow changes.

use crate::regular_file::open_own;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Bytes compared at both ends of the known part, to recognise a file again.
/// The agent's lines begin with the time in milliseconds, so they differ.
const SAMPLE: u64 = 64;

/// Most rotated files. The configuration allows far fewer.
const MAX_ROTATED: u32 = 100;

/// Most attempts to read while the files change.
const TRIES: u32 = 8;

/// The files of one log.
#[derive(Debug)]
pub(super) struct LogFiles {
    path: PathBuf,
    /// Sorted by offset, without overlap, all before `live`.
    rotated: Vec<Rotated>,
    live: Option<Live>,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// This many bytes, all of one file.
    Bytes(usize),
    /// The bytes here are lost. The log continues at this offset with a new line.
    Hole(u64),
    /// The end of the log, for now.
    End,
}

/// The offsets of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// Offset of the oldest byte.
    pub oldest: u64,
    /// Offset after the newest byte.
    pub end: u64,
}

type FileId = (u64, u64);

#[derive(Debug)]
struct Rotated {
    start: u64,
    len: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// `.log.<number>`, as long as it is this file.
    Name { number: u32, id: FileId },
    /// An open file without a name.
    Held(File),
}

#[derive(Debug)]
struct Live {
    start: u64,
    len: u64,
    id: FileId,
    head: Vec<u8>,
    /// The bytes before `len`.
    tail: Vec<u8>,
    /// Kept open while somebody reads: nothing is lost when the file is removed.
    file: Option<File>,
    /// Whether the file exists.
    is_there: bool,
}

/// A file as found now.
#[derive(Debug)]
struct Found {
    file: File,
    id: FileId,
    len: u64,
    /// The number of a rotated file.
    number: Option<u32>,
}

impl LogFiles {
    /// Reads nothing yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, rotated: Vec::new(), live: None }
    }

    /// The first and last offset. There may be holes between them.
    pub fn span(&self) -> Span {
        Span { oldest: self.oldest(), end: self.end() }
    }

    /// Offset of the oldest byte.
    pub fn oldest(&self) -> u64 {
        let live = self.live.as_ref().map(|live| live.start);
        self.rotated.first().map(|file| file.start).or(live).unwrap_or(0)
    }

    fn end(&self) -> u64 {
        let rotated = self.rotated.last().map_or(0, Rotated::end);
        self.live.as_ref().map_or(rotated, |live| live.start.saturating_add(live.len))
    }

    /// Whether there was a log whose file is gone.
    pub fn is_gone(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.is_there)
    }

    /// Whether there is a log to read.
    pub fn is_there(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.is_there)
    }

    /// Start of the newest file, or where it will start if there is none.
    pub fn newest_file(&self) -> u64 {
        self.live.as_ref().map_or_else(|| self.end(), |live| live.start)
    }

    /// Start of the file that contains the byte at `at`, or will contain it.
    pub fn file_of(&self, at: u64) -> Option<u64> {
        match &self.live {
            Some(live) if at >= live.start => Some(live.start),
            Some(_) | None => {
                self.rotated.iter().find(|file| file.holds(at)).map(|file| file.start)
            }
        }
    }

    /// Whether reading can continue at `at` with nothing lost.
    /// That is so if the byte before it exists, or if a file begins there.
    pub fn is_known(&self, at: u64) -> bool {
        let before = |at: u64| at.checked_sub(1).is_some_and(|at| self.file_of(at).is_some());
        at <= self.end() && (self.file_of(at) == Some(at) || before(at))
    }

    /// Checks how the files have changed. Blocks.
    ///
    /// # Errors
    /// The log is no readable file.
    pub fn refresh(&mut self) -> io::Result<()> {
        let found = match open_own(&self.path) {
            Ok(file) => Found::new(file, None)?,
            Err(error) if is_missing(&error) => {
                if let Some(live) = &mut self.live {
                    live.is_there = false;
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        match self.live.take() {
            None => self.begin(found),
            Some(live) if self.is_same(&live, &found) => self.live = Some(live.grown(found)),
            // The length may have been read before a truncation that the content already shows.
            Some(live) => match Found::new(found.file, None) {
                Ok(found) => self.succeed(live, found),
                Err(error) => {
                    self.live = Some(live);
                    return Err(error);
                }
            },
        }
        Ok(())
    }

    /// Reads from `at` on. Blocks.
    ///
    /// # Errors
    /// As of [`LogFiles::refresh`], and reading.
    pub fn read(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<Read> {
        self.refresh()?;
        for _ in 0..TRIES {
            let Some(start) = self.file_of(at) else {
                return Ok(self.file_after(at).map_or(Read::End, Read::Hole));
            };
            let Some(index) = self.rotated.iter().position(|file| file.start == start) else {
                let read = self.read_live(at - start, buffer)?;
                // After a truncation in between, the bytes may be of the next file.
                self.refresh()?;
                if self.newest_file() == start {
                    return Ok(if read > 0 { Read::Bytes(read) } else { Read::End });
                }
                continue;
            };
            match self.read_rotated(index, at, buffer)? {
                Some(read) if read > 0 => return Ok(Read::Bytes(read)),
                // Shorter or gone since the last check.
                Some(_) | None => self.shorten(index, at),
            }
        }
        Ok(Read::End)
    }

    /// Closes all files. The next read opens them again.
    pub fn rest(&mut self) {
        if let Some(live) = &mut self.live {
            live.file = None;
        }
        self.rotated.retain(|file| matches!(file.source, Source::Name { .. }));
    }

    /// Start of the first file after `at`.
    pub fn file_after(&self, at: u64) -> Option<u64> {
        let live = self.live.as_ref().map(|live| live.start);
        self.rotated.iter().map(|file| file.start).chain(live).find(|start| *start > at)
    }

    fn read_live(&mut self, within: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = self.live.as_ref().and_then(|live| live.file.as_ref()) else {
            return Ok(0);
        };
        file.read_at(buffer, within)
    }

    /// `None` if the file does not exist any more.
    fn read_rotated(
        &mut self,
        index: usize,
        at: u64,
        buffer: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let Some(rotated) = self.rotated.get(index) else {
            return Ok(None);
        };
        let left = usize::try_from(rotated.end() - at).unwrap_or(usize::MAX).min(buffer.len());
        let (buffer, within) = (buffer.get_mut(..left).unwrap_or_default(), at - rotated.start);
        let wanted = match &rotated.source {
            Source::Held(file) => return file.read_at(buffer, within).map(Some),
            Source::Name { number, id } => (*number, *id),
        };
        // Its number grows with every rotation.
        for number in wanted.0..=MAX_ROTATED {
            let Some(found) = self.numbered(number) else {
                return Ok(None);
            };
            if found.id == wanted.1 {
                return found.file.read_at(buffer, within).map(Some);
            }
        }
        Ok(None)
    }

    /// Ends a rotated file before `at`.
    fn shorten(&mut self, index: usize, at: u64) {
        if let Some(file) = self.rotated.get_mut(index) {
            file.len = at - file.start;
        }
        self.rotated.retain(|file| file.len > 0);
    }

    /// Begins with the first live file, and the rotated files before it.
    fn begin(&mut self, found: Found) {
        let older = self.unknown(&found);
        let start = self.append(0, older);
        self.live = Some(Live::of(start, &found).held(found.file));
    }

    /// Handles a live file that was truncated or replaced.
    fn succeed(&mut self, old: Live, found: Found) {
        let mut unknown = self.unknown(&found);
        self.forget_missing();
        let mut next = old.start.saturating_add(old.len);
        let itself = unknown.iter().position(|other| other.id == old.id || old.begins(other));
        match (itself, old.file) {
            (Some(at), _) => {
                let newer = unknown.split_off(at + 1);
                let copy = unknown.pop();
                next = next.max(self.append(old.start, copy.into_iter().collect()));
                unknown = newer;
            }
            (None, Some(file)) if old.id != found.id => {
                let len = file.metadata().map_or(old.len, |facts| facts.len());
                next = old.start.saturating_add(len);
                if len > 0 {
                    self.rotated.push(Rotated {
                        start: old.start,
                        len,
                        source: Source::Held(file),
                    });
                }
            }
            // Its content is lost. The hole prevents that a torn line is joined with a new line.
            (None, _) => next = next.saturating_add(1),
        }
        let start = self.append(next, unknown);
        self.live = Some(Live::of(start, &found).held(found.file));
    }

    /// Appends files one after the other. Returns the offset after the last one.
    fn append(&mut self, from: u64, files: Vec<Found>) -> u64 {
        files.into_iter().fold(from, |start, found| {
            let len = found.len;
            if let (Some(number), true) = (found.number, len > 0) {
                let source = Source::Name { number, id: found.id };
                self.rotated.push(Rotated { start, len, source });
            }
            start.saturating_add(len)
        })
    }

    /// Whether the live file is the same as before, perhaps longer.
    fn is_same(&self, old: &Live, found: &Found) -> bool {
        // An empty file has nothing to compare. A new rotated file shows that it was replaced.
        old.id == found.id && old.begins(found) && (old.len > 0 || self.unknown(found).is_empty())
    }

    /// Rotated files that have no offset yet, oldest first.
    fn unknown(&self, live: &Found) -> Vec<Found> {
        let mut found: Vec<Found> =
            (1..=MAX_ROTATED).map_while(|number| self.numbered(number)).collect();
        found.reverse();
        found.retain(|found| {
            let is_known = self.rotated.iter().any(|known| known.is(found.id));
            // A copy of what is still in the live file, which is about to be truncated.
            let is_copy = Live::of(0, found).begins(live);
            found.len > 0 && !is_known && !is_copy
        });
        found
    }

    fn forget_missing(&mut self) {
        let there: Vec<FileId> = (1..=MAX_ROTATED)
            .map_while(|number| self.numbered(number))
            .map(|found| found.id)
            .collect();
        self.rotated.retain(|known| there.iter().any(|id| known.is(*id)));
    }

    fn numbered(&self, number: u32) -> Option<Found> {
        Found::new(open_own(&numbered(&self.path, number)).ok()?, Some(number)).ok()
    }
}

impl Rotated {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    fn holds(&self, at: u64) -> bool {
        (self.start..self.end()).contains(&at)
    }

    fn is(&self, other: FileId) -> bool {
        match &self.source {
            Source::Name { id, .. } => *id == other,
            Source::Held(_) => false,
        }
    }
}

impl Live {
    fn of(start: u64, found: &Found) -> Self {
        let head = found.sample(0, found.len.min(SAMPLE));
        let tail = found.sample(found.len.saturating_sub(SAMPLE), found.len.min(SAMPLE));
        Self { start, len: found.len, id: found.id, head, tail, file: None, is_there: true }
    }

    fn held(self, file: File) -> Self {
        Self { file: Some(file), ..self }
    }

    /// Whether `found` contains the same bytes, and perhaps more.
    fn begins(&self, found: &Found) -> bool {
        let head = self.head.len() as u64;
        let tail = self.tail.len() as u64;
        found.len >= self.len
            && found.sample(0, head) == self.head
            && found.sample(self.len.saturating_sub(tail), tail) == self.tail
    }

    fn grown(self, found: Found) -> Self {
        if found.len == self.len {
            return Self { file: Some(found.file), is_there: true, ..self };
        }
        Self::of(self.start, &found).held(found.file)
    }
}

impl Found {
    fn new(file: File, number: Option<u32>) -> io::Result<Self> {
        let facts = file.metadata()?;
        Ok(Self { id: (facts.dev(), facts.ino()), len: facts.len(), file, number })
    }

    /// Reads bytes of the file. Fewer if it shrinks meanwhile; then no sample matches.
    fn sample(&self, at: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(len.min(SAMPLE)).unwrap_or(0)];
        match self.file.read_exact_at(&mut bytes, at) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
