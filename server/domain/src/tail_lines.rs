//! Cuts raw log bytes into lines for the log stream.
//!
//! See `http-api` §4.3 and `agent-cli` §12. The lines do not depend on how the input was cut into chunks. A line is held until its end
//! arrives, because a secret cut in two would escape the redactor. Its text can be read only
//! through the redactor. Files, watches and generations belong to the caller.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::redact::Redactor;

/// Longest line shown and longest piece held, in bytes.
pub const LINE_CAP: usize = 64 * 1024;

/// Longest end without a blank that is dropped from a cut line.
/// The first part of a token across the cut would not be recognised.
const CUT_WORD: usize = 4 * 1024;

/// Default size of the backfill, in bytes.
pub const BACKFILL: u64 = 64 * 1024;

/// Largest backfill a client may ask for, in bytes.
pub const BACKFILL_MAX: u64 = 1024 * 1024;

/// A place in the log of an instance, as clients hold it: `<generation>:<offset>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// Which log.
    pub generation: u32,
    /// Byte after the last one shown.
    pub offset: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.generation, self.offset)
    }
}

/// A text is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a log cursor; pass one back as it was received, such as 1:4096")]
pub struct BadCursor;

impl FromStr for Cursor {
    type Err = BadCursor;
    fn from_str(raw: &str) -> Result<Self, BadCursor> {
        let (generation, offset) = raw.split_once(':').ok_or(BadCursor)?;
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if !plain(generation) || !plain(offset) {
            return Err(BadCursor);
        }
        Ok(Self {
            generation: generation.parse().map_err(|_| BadCursor)?,
            offset: offset.parse().map_err(|_| BadCursor)?,
        })
    }
}

/// One line to show. What came in one piece is still where it was fed from.
#[derive(Clone, PartialEq, Eq)]
pub struct TailLine<'c> {
    /// Reading on from this byte repeats nothing and leaves nothing out.
    pub end: u64,
    content: Content<'c>,
}

#[derive(Clone, PartialEq, Eq)]
enum Content<'c> {
    Whole(Cow<'c, [u8]>),
    /// The begin of a line that is too long.
    Begin(Cow<'c, [u8]>),
    /// The end of one: this many bytes were not shown.
    Omitted(u64),
}

impl TailLine<'_> {
    /// The text to show. `redactor` must have seen all lines before this one.
    pub fn redacted(&self, redactor: &mut Redactor) -> Cow<'_, str> {
        match &self.content {
            Content::Whole(bytes) => redacted(bytes, redactor),
            Content::Begin(bytes) => redacted(bytes, redactor) + "…",
            Content::Omitted(bytes) => format!("…[line truncated {bytes} bytes]").into(),
        }
    }
}

fn redacted<'l>(line: &'l [u8], redactor: &mut Redactor) -> Cow<'l, str> {
    match decode(line) {
        Cow::Borrowed(text) => redactor.line(text),
        Cow::Owned(text) => redactor.line(&text).into_owned().into(),
    }
}

/// Shows no content: it was not redacted yet.
impl fmt::Debug for TailLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TailLine").field("end", &self.end).finish_non_exhaustive()
    }
}

/// Where to read a log from, and the state to feed the bytes to.
#[derive(Debug)]
pub struct Plan {
    /// First byte to read.
    /// It may be one before the wanted byte, to see whether a line begins there.
    pub offset: u64,
    /// Takes the bytes from `offset` on.
    pub lines: TailLines,
}

/// Cuts a log into lines. See the module.
#[derive(Clone)]
pub struct TailLines {
    /// Offset of the byte after the last one fed.
    offset: u64,
    held: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Inside a line, all of which is held.
    Line,
    /// Inside a line that began before the window: skipped without a word.
    Skip,
    /// Inside a line whose begin was shown; this much of it was left out.
    Cut { omitted: u64 },
    /// The next byte, one before the wanted place, tells whether a line begins there.
    Probe,
}

impl fmt::Debug for TailLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TailLines")
            .field("offset", &self.offset)
            .field("held", &self.held.len())
            .field("state", &self.state)
            .finish()
    }
}

impl TailLines {
    /// From the first byte of a log.
    #[must_use]
    pub fn from_start() -> Self {
        Self::new(0, State::Line)
    }

    /// From a place where a line is known to begin.
    #[must_use]
    pub fn from_line(offset: u64) -> Self {
        Self::new(offset, State::Line)
    }

    fn new(offset: u64, state: State) -> Self {
        Self { offset, held: Vec::new(), state }
    }

    /// The last `window` bytes of a log of `len` bytes, from the start of a line on.
    /// A line longer than the window is skipped, not shown as a fragment.
    #[must_use]
    pub fn backfill(len: u64, window: u64) -> Plan {
        match len.saturating_sub(window.min(BACKFILL_MAX)) {
            0 => Plan { offset: 0, lines: Self::from_start() },
            start => Plan { offset: start - 1, lines: Self::new(start - 1, State::Skip) },
        }
    }

    /// Continues at the offset of a cursor in a log of `len` bytes.
    /// `None` when the log is shorter: it was rotated, and its new content begins at
    /// [`TailLines::from_start`].
    ///
    /// A cursor inside a line continues after that line.
    #[must_use]
    pub fn resume(offset: u64, len: u64) -> Option<Plan> {
        match offset.checked_sub(1) {
            None => Some(Plan { offset: 0, lines: Self::from_start() }),
            Some(before) if offset <= len => {
                Some(Plan { offset: before, lines: Self::new(before, State::Probe) })
            }
            Some(_) => None,
        }
    }

    /// Offset of the byte to read next.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Offset at which another reader can continue without a gap or a repeated line.
    #[must_use]
    pub fn resting(&self) -> u64 {
        let open = match self.state {
            State::Line => u64::try_from(self.held.len()).unwrap_or(u64::MAX),
            State::Cut { omitted } => omitted,
            State::Skip => 0,
            // The byte before the place is read again.
            State::Probe => return self.offset.saturating_add(1),
        };
        self.offset.saturating_sub(open)
    }

    /// Takes the next bytes and gives the lines they complete.
    pub fn feed<'c>(&mut self, chunk: &'c [u8]) -> Vec<TailLine<'c>> {
        let mut lines = Vec::new();
        let mut rest = chunk;
        while let Some(first) = rest.first() {
            match self.state {
                State::Probe => {
                    self.state =
                        if *first == b'\n' { State::Line } else { State::Cut { omitted: 0 } };
                    rest = self.advance(rest, 1);
                }
                State::Line => rest = self.feed_line(rest, &mut lines),
                State::Skip | State::Cut { .. } => rest = self.feed_omitted(rest, &mut lines),
            }
        }
        lines
    }

    /// The last line of a log that is no longer written, even without a line end.
    pub fn finish(&mut self) -> Option<TailLine<'static>> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() || self.state != State::Line {
            return None;
        }
        // Should the writer go on after all, the line's begin was shown and the rest is left out.
        self.state = State::Cut { omitted: 0 };
        Some(TailLine { end: self.offset, content: Content::Whole(held.into()) })
    }

    fn advance<'c>(&mut self, chunk: &'c [u8], by: usize) -> &'c [u8] {
        self.offset += u64::try_from(by).unwrap_or(u64::MAX);
        chunk.get(by..).unwrap_or_default()
    }

    fn feed_line<'c>(&mut self, chunk: &'c [u8], lines: &mut Vec<TailLine<'c>>) -> &'c [u8] {
        let room = LINE_CAP - self.held.len();
        // One byte more than fits, so that a line end right behind a full line is seen.
        let window = chunk.get(..=room).unwrap_or(chunk);
        if let Some(len) = memchr::memchr(b'\n', window) {
            let here = window.get(..len).unwrap_or_default();
            let content = if self.held.is_empty() {
                Cow::Borrowed(here)
            } else {
                self.held.extend_from_slice(here);
                Cow::Owned(std::mem::take(&mut self.held))
            };
            let rest = self.advance(chunk, len + 1);
            lines.push(TailLine { end: self.offset, content: Content::Whole(content) });
            return rest;
        }
        if window.len() <= room {
            self.held.extend_from_slice(window);
            return self.advance(chunk, window.len());
        }
        self.held.extend(window.iter().take(room));
        let rest = self.advance(chunk, room);
        lines.push(self.cut());
        rest
    }

    /// Shows the begin of the line that fills `held`.
    fn cut(&mut self) -> TailLine<'static> {
        let mut held = std::mem::take(&mut self.held);
        let newest = held.len().saturating_sub(CUT_WORD);
        let blank = held.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        let mut keep = blank.max(newest);
        // Not inside a character.
        while held.get(keep).is_some_and(|b| b & 0xc0 == 0x80) && keep > newest.saturating_sub(3) {
            keep -= 1;
        }
        let omitted = u64::try_from(held.len() - keep).unwrap_or(u64::MAX);
        let end = self.offset - omitted;
        self.state = State::Cut { omitted };
        held.truncate(keep);
        TailLine { end, content: Content::Begin(held.into()) }
    }

    fn feed_omitted<'c>(&mut self, chunk: &'c [u8], lines: &mut Vec<TailLine<'c>>) -> &'c [u8] {
        let newline = memchr::memchr(b'\n', chunk);
        let here = u64::try_from(newline.unwrap_or(chunk.len())).unwrap_or(u64::MAX);
        let rest = self.advance(chunk, newline.map_or(chunk.len(), |at| at + 1));
        if let State::Cut { omitted } = self.state {
            let omitted = omitted + here;
            self.state = State::Cut { omitted };
            if newline.is_some() && omitted > 0 {
                lines.push(TailLine { end: self.offset, content: Content::Omitted(omitted) });
            }
        }
        if newline.is_some() {
            self.state = State::Line;
        }
        rest
    }
}

/// Text of a whole line, without carriage return and byte order mark.
/// Invalid bytes are replaced. No character is ever cut, because the line is whole.
fn decode(line: &[u8]) -> Cow<'_, str> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    lossy(line)
}

/// Faster [`String::from_utf8_lossy`] for input that is nearly always valid.
/// It checks many bytes at a time.
pub(crate) fn lossy(line: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

#[cfg(test)]
mod tests;
