//! One reader's position in a log: turns bytes into redacted lines and file events.

use super::files::{LogFiles, Read, Span};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_domain::redact::{Colour, Redactor};
use svc_domain::tail_lines::{BACKFILL_MAX, TailLines};

/// Bytes read at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// How far before its first line a reader searches for the start of a long secret.
/// The longest private key in use (16,384 bits) is 13 KB of text.
const LOOK_BACK: u64 = 16 * 1024;

/// One item of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailItem {
    /// A redacted line.
    Line {
        /// Reading from this offset on repeats nothing and misses nothing.
        end: u64,
        /// The line without its line end.
        text: Arc<str>,
    },
    /// The file was rotated, truncated or replaced.
    /// The next items are from its successor.
    Rotated {
        /// Offset of the successor's first byte.
        start: u64,
    },
    /// Lines are missing here.
    Gap,
}

/// The files of a log while somebody reads them. Closed with the last clone.
#[derive(Debug, Clone)]
pub(super) struct OpenLog {
    handle: Arc<ReaderHandle>,
}

#[derive(Debug)]
pub(super) struct ReaderHandle {
    files: Arc<Mutex<LogFiles>>,
}

impl OpenLog {
    pub fn new(files: Arc<Mutex<LogFiles>>) -> Self {
        Self { handle: Arc::new(ReaderHandle { files }) }
    }

    pub fn from_handle(handle: Arc<ReaderHandle>) -> Self {
        Self { handle }
    }

    pub fn handle(&self) -> &Arc<ReaderHandle> {
        &self.handle
    }

    /// The files, for one operation. The guard must not outlive its statement.
    pub fn files(&self) -> MutexGuard<'_, LogFiles> {
        self.handle.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReaderHandle {
    fn drop(&mut self) {
        // Every reader holds a handle, so only a new reader can hold the lock, and it closes too.
        if let Ok(mut files) = self.files.try_lock() {
            files.rest();
        }
    }
}

/// Where a reader starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// At the oldest line.
    Oldest,
    /// At the first line that begins in the last so many bytes.
    Tail(u64),
    /// Where another reader stopped.
    At(u64),
}

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// There may be more to read.
    More,
    /// Everything is read.
    UpToDate,
    /// Everything is read, and the file is gone.
    Gone,
}

/// The reader. All functions block.
#[derive(Debug)]
pub(super) struct Reader {
    log: OpenLog,
    lines: TailLines,
    redactor: Redactor,
    /// The offset at which it started.
    begin: u64,
    /// Start of the file that is being read.
    file: Option<u64>,
    buffer: Vec<u8>,
}

impl Reader {
    /// Prepares to read. The first item is a gap if the wanted position is lost.
    pub fn open(
        log: OpenLog,
        colour: Colour,
        begin: Begin,
    ) -> io::Result<(Self, Option<TailItem>)> {
        let mut files = log.files();
        files.refresh()?;
        let (Span { oldest, end }, newest) = (files.span(), files.newest_file());
        drop(files);
        let mut reader = Self {
            log,
            lines: TailLines::from_line(oldest),
            redactor: Redactor::new(colour),
            begin: oldest,
            file: None,
            buffer: vec![0; CHUNK],
        };
        let mut lost = None;
        match begin {
            Begin::Oldest => {}
            Begin::Tail(window) => {
                let from = end.saturating_sub(window.min(BACKFILL_MAX)).max(oldest);
                match reader.line_begin(from, end)? {
                    Some(at) => reader.start_at_line(at)?,
                    // The window is inside one long line.
                    None => {
                        reader.begin = from;
                        reader.lines = TailLines::backfill(end, end - from).lines;
                    }
                }
            }
            Begin::At(at) if reader.log.files().is_known(at) => reader.resume(at)?,
            Begin::At(at) => {
                // Rotated away: continue with its successor, or with the newest file if unknown.
                let next = (oldest..end).contains(&at).then(|| reader.log.files().file_after(at));
                let start = if at < oldest { oldest } else { next.flatten().unwrap_or(newest) };
                // There was never a log: nothing is lost.
                lost = (end > 0 || at > 0).then_some(TailItem::Rotated { start });
                reader.start_at_line(start)?;
            }
        }
        reader.file = reader.log.files().file_of(reader.lines.offset());
        Ok((reader, lost))
    }

    /// The position where it started.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The position at which a new reader would continue exactly.
    pub fn resting(&self) -> u64 {
        self.lines.resting()
    }

    /// Start of the file that is being read.
    pub fn file(&self) -> Option<u64> {
        self.file
    }

    /// Offset of the next byte to read.
    pub fn offset(&self) -> u64 {
        self.lines.offset()
    }

    /// Reads one chunk.
    pub fn step(&mut self, out: &mut Vec<TailItem>) -> io::Result<Progress> {
        let at = self.lines.offset();
        let mut files = self.log.files();
        let read = files.read(at, &mut self.buffer)?;
        let (file, is_gone) = (files.file_of(at), files.is_gone());
        drop(files);
        let progress = match read {
            Read::Bytes(read) => {
                self.turn_to(file, out);
                let bytes = self.buffer.get(..read).unwrap_or_default();
                for line in self.lines.feed(bytes) {
                    let text = line.redacted(&mut self.redactor).into();
                    out.push(TailItem::Line { end: line.end, text });
                }
                Progress::More
            }
            Read::Hole(next) => {
                // The beginning of an unfinished line is dropped: its rest is lost, and half of a
                // secret would not be recognised.
                self.lines = TailLines::from_line(next);
                self.turn_to(Some(next), out);
                Progress::More
            }
            Read::End => {
                self.turn_to(file, out);
                if is_gone { Progress::Gone } else { Progress::UpToDate }
            }
        };
        Ok(progress)
    }

    /// Whether everything that existed at the last check was read.
    pub fn is_at_end(&self) -> bool {
        self.offset() >= self.log.files().span().end
    }

    /// The unfinished last line of a log that nobody writes any more.
    pub fn finish(&mut self) -> Option<TailItem> {
        let line = self.lines.finish()?;
        let text = line.redacted(&mut self.redactor).into();
        Some(TailItem::Line { end: line.end, text })
    }

    fn turn_to(&mut self, file: Option<u64>, out: &mut Vec<TailItem>) {
        let Some(start) = file else {
            return;
        };
        if self.file.is_some_and(|known| known != start) {
            out.push(TailItem::Rotated { start });
        }
        self.file = Some(start);
    }

    /// The first start of a line in `from..=to`.
    pub fn line_begin(&mut self, from: u64, to: u64) -> io::Result<Option<u64>> {
        let mut files = self.log.files();
        if from <= files.oldest() {
            return Ok(Some(files.oldest()).filter(|at| *at <= to));
        }
        let mut at = from - 1;
        while at < to {
            match files.read(at, &mut self.buffer)? {
                Read::Bytes(read) => {
                    let bytes = self.buffer.get(..read).unwrap_or_default();
                    if let Some(newline) = bytes.iter().position(|b| *b == b'\n') {
                        let begin = at + newline as u64 + 1;
                        return Ok((begin <= to).then_some(begin));
                    }
                    at += read as u64;
                }
                Read::Hole(next) => return Ok((next <= to).then_some(next)),
                Read::End => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Continues at the start of a line.
    pub fn start_at_line(&mut self, at: u64) -> io::Result<()> {
        self.prime(at)?;
        self.begin = at;
        self.lines = TailLines::from_line(at);
        Ok(())
    }

    /// Continues where another reader stopped, perhaps inside a long line.
    fn resume(&mut self, at: u64) -> io::Result<()> {
        let begins_after_hole = at > 0 && self.log.files().file_of(at - 1).is_none();
        match TailLines::resume(at, u64::MAX) {
            Some(plan) if !begins_after_hole => {
                self.prime(at)?;
                self.begin = at;
                self.lines = plan.lines;
                Ok(())
            }
            Some(_) | None => self.start_at_line(at),
        }
    }

    /// Feeds the redactor the lines before `at`.
    fn prime(&mut self, at: u64) -> io::Result<()> {
        let mut files = self.log.files();
        let oldest = files.oldest();
        let mut from = at.saturating_sub(LOOK_BACK).max(oldest);
        let is_begin = from == oldest;
        let mut before = Vec::new();
        while from < at {
            let left = usize::try_from(at - from).unwrap_or(CHUNK).min(CHUNK);
            match files.read(from, self.buffer.get_mut(..left).unwrap_or_default())? {
                Read::Bytes(read) => {
                    before.extend_from_slice(self.buffer.get(..read).unwrap_or_default());
                    from += read as u64;
                }
                Read::Hole(next) => {
                    before.push(b'\n');
                    from = next;
                }
                Read::End => break,
            }
        }
        drop(files);
        let mut lines = before.split_inclusive(|b| *b == b'\n');
        if !is_begin {
            lines.next();
        }
        for line in lines.filter_map(|line| line.strip_suffix(b"\n")) {
            self.redactor.line(&String::from_utf8_lossy(line));
        }
        Ok(())
    }
}
