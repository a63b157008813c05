//! Complete lines of a file from an offset, in bounded memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// A longer line is skipped (`agent-cli` §6.7).
pub(crate) const LONGEST: usize = 8 * 1024 * 1024;

/// Bytes of one read.
const CHUNK: usize = 256 * 1024;

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'l> {
    /// A complete line without its end, and the offset where it begins.
    Whole(u64, &'l [u8]),
    /// The end of a line that is too long.
    TooLong,
    /// No further complete line.
    End,
}

/// Reads complete lines. A last line without an end is left for the next reader.
pub(crate) struct Lines<'f> {
    file: &'f File,
    buffer: Vec<u8>,
    /// Where the line at hand begins in `buffer`.
    begin: usize,
    /// Bytes of the line at hand in which there is no end.
    seen: usize,
    /// Offset of `buffer` in the file.
    base: u64,
    /// Inside a line that is too long.
    is_skipping: bool,
}

impl<'f> Lines<'f> {
    /// Begins at an offset; `is_skipping` when it lies in a line that is too long.
    pub(crate) fn new(file: &'f File, offset: u64, is_skipping: bool) -> Self {
        Self { file, buffer: Vec::new(), begin: 0, seen: 0, base: offset, is_skipping }
    }

    /// Up to here everything was handed out or is to be skipped.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.begin as u64
    }

    /// Whether [`Self::offset`] lies in a line that is too long.
    pub(crate) fn is_skipping(&self) -> bool {
        self.is_skipping
    }

    /// The next line. Blocks.
    pub(crate) fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            let rest = self.buffer.get(self.begin + self.seen..).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', rest) {
                let (from, to) = (self.begin, self.begin + self.seen + at);
                let start = self.offset();
                self.begin = to + 1;
                self.seen = 0;
                if std::mem::take(&mut self.is_skipping) || to - from > LONGEST {
                    return Ok(Line::TooLong);
                }
                return Ok(Line::Whole(start, self.buffer.get(from..to).unwrap_or_default()));
            }
            self.seen = self.buffer.len() - self.begin;
            if self.is_skipping || self.seen > LONGEST {
                self.is_skipping = true;
                self.base += self.buffer.len() as u64;
                self.buffer.clear();
                (self.begin, self.seen) = (0, 0);
            }
            if !self.fill()? {
                return Ok(Line::End);
            }
        }
    }

    /// Reads more. `false` at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        if self.begin > 0 {
            self.buffer.drain(..self.begin);
            self.base += self.begin as u64;
            self.begin = 0;
        }
        let filled = self.buffer.len();
        self.buffer.resize(filled + CHUNK, 0);
        let part = self.buffer.get_mut(filled..).unwrap_or_default();
        let read = self.file.read_at(part, self.base + filled as u64);
        self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(read) => Ok(read > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }
}
