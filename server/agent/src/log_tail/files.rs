//! The files of one log as one run of bytes: rotated files first, then the live.
//!
//! Offsets count from the start of the oldest file at the first look, and continue through every
//! later rotation, truncation and replacement. So an offset never means two different bytes, and in
//! a log that was never rotated it is the offset in its file. Lost bytes leave a hole. Lines and
//! change notices belong to the callers.

use crate::log_set::open_regular;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Bytes compared at both ends of the known part, to recognise a file again.
/// The agent's lines begin with the time in milliseconds, so they differ.
const SAMPLE: u64 = 64;

/// Names looked for; the configuration allows far fewer.
const MAX_ROTATED: u32 = 100;

/// Attempts to read while files change under the reader.
const TRIES: u32 = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct LogFiles {
    path: PathBuf,
    /// By offset, without overlap, all before `live`.
    rotated: Vec<Rotated>,
    live: Option<Live>,
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// This many bytes, all of one file.
    Bytes(usize),
    /// Nothing is left at this place; the log goes on at that one, with a new line.
    Hole(u64),
    /// The end, for now.
    End,
}

/// From where to where a log reaches.
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
    /// A file that has lost its name.
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
    /// Kept while somebody reads, so that nothing is lost when the name goes.
    file: Option<File>,
    /// The name exists.
    is_there: bool,
}

/// A file as found now.
#[derive(Debug)]
struct Found {
    file: File,
    id: FileId,
    len: u64,
    /// Of a rotated file.
    number: Option<u32>,
}

impl LogFiles {
    /// Looks at nothing yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, rotated: Vec::new(), live: None }
    }

    /// From where to where there is something, holes aside.
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

    /// There was a log, and its file is gone.
    pub fn is_gone(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.is_there)
    }

    /// There is a log to read.
    pub fn is_there(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.is_there)
    }

    /// Begin of the newest file; where it will begin when there is none.
    pub fn newest_file(&self) -> u64 {
        self.live.as_ref().map_or_else(|| self.end(), |live| live.start)
    }

    /// Begin of the file that the byte at `at` is in, or will be in.
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

    /// Sees what has become of the files. Blocks.
    ///
    /// # Errors
    /// Something that is no readable file is in the place of the log.
    pub fn look(&mut self) -> io::Result<()> {
        let found = match open_regular(&self.path) {
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
            // Its length may have been read before the truncation that the content shows.
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
    /// As of [`LogFiles::look`], and reading.
    pub fn read(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<Read> {
        self.look()?;
        for _ in 0..TRIES {
            let Some(start) = self.file_of(at) else {
                return Ok(self.file_after(at).map_or(Read::End, Read::Hole));
            };
            let Some(index) = self.rotated.iter().position(|file| file.start == start) else {
                let read = self.read_live(at - start, buffer)?;
                // Truncated in between, the bytes may be of the next file.
                self.look()?;
                if self.newest_file() == start {
                    return Ok(if read > 0 { Read::Bytes(read) } else { Read::End });
                }
                continue;
            };
            match self.read_rotated(index, at, buffer)? {
                Some(read) if read > 0 => return Ok(Read::Bytes(read)),
                // Cut short or gone since the last look.
                Some(_) | None => self.shorten(index, at),
            }
        }
        Ok(Read::End)
    }

    /// Closes what is open; the next read opens it again.
    pub fn rest(&mut self) {
        if let Some(live) = &mut self.live {
            live.file = None;
        }
        self.rotated.retain(|file| matches!(file.source, Source::Name { .. }));
    }

    /// Begin of the first file after `at`.
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

    /// `None` when the file is not there any more.
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

    /// The first file ever seen, and the rotated ones before it.
    fn begin(&mut self, found: Found) {
        let older = self.unknown(&found);
        let start = self.append(0, older);
        self.live = Some(Live::of(start, &found).held(found.file));
    }

    /// The live file was truncated or replaced.
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
            // What it held is gone: the hole keeps a torn line from being joined with a new one.
            (None, _) => next = next.saturating_add(1),
        }
        let start = self.append(next, unknown);
        self.live = Some(Live::of(start, &found).held(found.file));
    }

    /// Puts files one after the other; the offset after the last one.
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

    /// Whether the live file is the one it was, grown perhaps.
    fn is_same(&self, old: &Live, found: &Found) -> bool {
        // Nothing tells an empty file from itself; what was rotated away meanwhile does.
        old.id == found.id && old.begins(found) && (old.len > 0 || self.unknown(found).is_empty())
    }

    /// Rotated files that have no place yet, oldest first, beside this live one.
    fn unknown(&self, live: &Found) -> Vec<Found> {
        let mut found: Vec<Found> =
            (1..=MAX_ROTATED).map_while(|number| self.numbered(number)).collect();
        found.reverse();
        found.retain(|found| {
            let is_known = self.rotated.iter().any(|known| known.is(found.id));
            // A copy of what is still in the live file: somebody is about to truncate that.
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
        Found::new(open_regular(&numbered(&self.path, number)).ok()?, Some(number)).ok()
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

    /// Whether `found` holds the same bytes, and perhaps more.
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

    /// Bytes of the file; fewer if it shrinks meanwhile, and then no sample matches.
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
