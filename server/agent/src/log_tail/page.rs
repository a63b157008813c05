//! Pages of a log: its end, and the lines after or before a position.

use super::Log;
use super::files::Span;
use super::reader::{Begin, CHUNK, Progress, Reader, TailItem};
use std::io;
use std::sync::Arc;
use svc_domain::tail_lines::{BACKFILL_MAX, LINE_CAP};

/// How far beyond the wanted part its last line is read, in bytes.
/// The end of a longer line is found from the other side.
const OVERRUN: u64 = 4 * LINE_CAP as u64;

/// Which part of a log to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The lines that begin in the last so many bytes.
    Tail(u64),
    /// So many bytes after a position, and at least one line.
    After {
        /// Where another page or viewer stopped.
        at: u64,
        /// Bytes.
        bytes: u64,
    },
    /// The lines that begin within `bytes` before the position `at`.
    Before {
        /// A position in another page.
        at: u64,
        /// Bytes.
        bytes: u64,
    },
}

/// Whether somebody writes the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// An unfinished last line may be finished later: it is left out.
    Lives,
    /// Nobody writes any more: an unfinished last line is included.
    Gone,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Redacted lines, oldest first.
    pub lines: Vec<String>,
    /// Where the page before this one ends. `None` at the start of the log.
    pub first: Option<u64>,
    /// Where the page after this one starts.
    pub end: u64,
    /// There are no more lines after it now.
    pub eof: bool,
}

impl Log {
    /// Reads a part, at most 1 MiB. `None` if there is no file. Blocks.
    ///
    /// # Errors
    /// The log path is no readable file.
    pub fn page(self: &Arc<Self>, part: Part, writer: Writer) -> io::Result<Option<Page>> {
        let log = self.open();
        log.files().refresh()?;
        if !log.files().is_there() {
            return Ok(None);
        }
        let open =
            |begin| Reader::open(log.clone(), self.colours.now(), begin).map(|(reader, _)| reader);
        match part {
            Part::Tail(bytes) => {
                let reader = open(Begin::Tail(bytes))?;
                let Span { oldest, end } = log.files().span();
                let first = reader.begin();
                let page = Lines::read(reader, writer, |_, _, read| read >= end)?;
                Ok(Some(page.into_page((first > oldest).then_some(first))))
            }
            Part::After { at, bytes } => {
                let bytes = bytes.min(BACKFILL_MAX);
                let reader = open(Begin::At(at))?;
                let Span { oldest, end } = log.files().span();
                let first = reader.begin();
                let limit = first.saturating_add(bytes);
                let mut page = if bytes == 0 {
                    Lines { lines: Vec::new(), end: first, eof: first >= end }
                } else {
                    Lines::read(reader, writer, |lines, end, _| lines > 0 && end >= limit)?
                };
                let fit = page.lines.partition_point(|(end, _)| *end <= limit);
                page.keep(fit.max(1));
                Ok(Some(page.into_page((first > oldest).then_some(first))))
            }
            Part::Before { at, bytes } => {
                let Span { oldest, end: newest } = log.files().span();
                let to = at.clamp(oldest, newest);
                let from = to.saturating_sub(bytes.min(BACKFILL_MAX)).max(oldest);
                let mut reader = open(Begin::At(to))?;
                let begin = reader.line_begin(from, to)?.filter(|begin| *begin < to);
                let (first, mut page) = match begin {
                    None => (from, Lines { lines: Vec::new(), end: to, eof: to >= newest }),
                    Some(begin) => {
                        reader.start_at_line(begin)?;
                        let overrun = to.saturating_add(OVERRUN);
                        let enough = |_, end, read| end >= to || read >= overrun;
                        (begin, Lines::read(reader, writer, enough)?)
                    }
                };
                // A line that crosses the position belongs to this page, the next line does not.
                let before = page.lines.partition_point(|(end, _)| *end < to);
                page.keep(before + 1);
                Ok(Some(page.into_page((first > oldest).then_some(first))))
            }
        }
    }
}

struct Lines {
    /// The lines, each with the position after it.
    lines: Vec<(u64, String)>,
    end: u64,
    eof: bool,
}

impl Lines {
    /// Reads until `enough` or the end of the log.
    /// `enough` gets the number of lines, the offset after the last one, and the offset read up to.
    fn read(
        mut reader: Reader,
        writer: Writer,
        enough: impl Fn(usize, u64, u64) -> bool,
    ) -> io::Result<Self> {
        let mut page = Self { lines: Vec::new(), end: reader.begin(), eof: false };
        let mut items = Vec::with_capacity(CHUNK / 64);
        loop {
            let progress = reader.step(&mut items)?;
            page.eof = match progress {
                Progress::More => false,
                Progress::UpToDate | Progress::Gone => true,
            };
            if page.eof && writer == Writer::Gone {
                items.extend(reader.finish());
            }
            for item in items.drain(..) {
                match item {
                    TailItem::Line { end, text } => page.lines.push((end, text.to_string())),
                    TailItem::Rotated { .. } | TailItem::Gap => {}
                }
            }
            page.end = reader.resting();
            let end = page.lines.last().map_or(0, |(end, _)| *end);
            let is_enough = enough(page.lines.len(), end, reader.offset());
            if page.eof || is_enough && !reader.is_at_end() {
                return Ok(page);
            }
        }
    }

    fn keep(&mut self, lines: usize) {
        if lines < self.lines.len() {
            self.lines.truncate(lines);
            self.eof = false;
            self.end = self.lines.last().map_or(self.end, |(end, _)| *end);
        }
    }

    fn into_page(self, first: Option<u64>) -> Page {
        let lines = self.lines.into_iter().map(|(_, text)| text).collect();
        Page { lines, first, end: self.end, eof: self.eof }
    }
}
