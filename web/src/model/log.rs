//! The log buffer.
//!
//! It is bounded and searchable. Its lines are in chunks, so that a view can leave out chunks that
//! are far away.

use crate::model::find::Needle;
use std::collections::VecDeque;
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::internal::LogPage;
use svc_shared::stream::{LogFrame, MarkKind};

/// Lines kept. Older ones can be read again from the server.
pub const MAX_LINES: usize = 10_000;
/// Lines per chunk.
const CHUNK: usize = 100;
/// Most lines that wait while the log is paused.
///
/// Then the socket is closed. It continues where these lines end, so nothing is lost.
pub const MAX_WAITING: usize = 5_000;

/// What came in and is not shown yet.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    frames: Vec<LogFrame>,
    lines: usize,
}

impl Waiting {
    /// Adds a frame.
    ///
    /// Returns false when no more frames should be read while the log is paused.
    pub fn push(&mut self, frame: LogFrame) -> bool {
        self.lines += usize::from(matches!(frame, LogFrame::Line { .. }));
        self.frames.push(frame);
        self.lines < MAX_WAITING
    }

    /// Lines that wait.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Cursor after the last line that waits.
    #[must_use]
    pub fn cursor(&self) -> Option<&str> {
        self.frames.iter().rev().find_map(|frame| match frame {
            LogFrame::Line { cursor, .. } => Some(cursor.as_str()),
            LogFrame::Output { .. } | LogFrame::Mark { .. } => None,
        })
    }

    /// Takes all of it.
    pub fn take(&mut self) -> Vec<LogFrame> {
        self.lines = 0;
        std::mem::take(&mut self.frames)
    }
}

/// One row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A line of output.
    Line {
        /// Redacted text without its end.
        text: Arc<str>,
        /// Position after the line; `None` for lines of an older page and for output.
        cursor: Option<String>,
        /// Printed by the process, and not from its log.
        is_output: bool,
    },
    /// Something happened to the log.
    Mark {
        /// What.
        kind: MarkKind,
        /// Generation from here on.
        generation: u32,
        /// When it happened, in milliseconds, where that is known.
        at: Option<i64>,
    },
}

/// A run of rows that is shown or left out as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Grows downwards; chunks put in front have smaller ones.
    pub id: i64,
    /// The rows, oldest first.
    pub rows: Arc<Vec<Entry>>,
}

/// How to read further back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Older {
    /// Nothing is known yet.
    Unknown,
    /// The log begins here.
    Start,
    /// The buffer is full.
    Full,
    /// From this cursor; `again` when the page read will end with the first line shown.
    Before {
        /// For the query.
        cursor: String,
        /// Whether the last line of that page is already here.
        again: bool,
    },
}

/// The log of one instance.
#[derive(Debug, Clone, Default)]
pub struct Log {
    chunks: VecDeque<Chunk>,
    lines: usize,
    resume_at: Option<String>,
    page_start: Option<Option<String>>,
    /// The generation whose printed output was added last.
    output_of: Option<u32>,
}

impl Log {
    /// The chunks, oldest first.
    pub fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter()
    }

    /// Lines kept, without marks.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Nothing at all is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Cursor at which a new socket goes on.
    #[must_use]
    pub fn resume_at(&self) -> Option<&str> {
        self.resume_at.as_deref()
    }

    /// Adds what came in; returns how many lines that were.
    pub fn append(&mut self, frames: impl IntoIterator<Item = LogFrame>) -> usize {
        let mut added = 0;
        for frame in frames {
            let entry = match frame {
                LogFrame::Line { cursor, text } => {
                    self.resume_at = Some(cursor.clone());
                    added += 1;
                    Entry::Line { text, cursor: Some(cursor), is_output: false }
                }
                LogFrame::Output { generation, lines } => {
                    // A reconnect after the end repeats it.
                    if self.output_of.replace(generation) != Some(generation) {
                        added += lines.len();
                        for line in lines {
                            let text = line.into();
                            self.push(Entry::Line { text, cursor: None, is_output: true });
                        }
                    }
                    continue;
                }
                LogFrame::Mark { kind, generation, at } => {
                    if kind == MarkKind::Ended && self.ends_with_ended(generation) {
                        continue; // a reconnect repeats where the log stands
                    }
                    Entry::Mark { kind, generation, at: at.map(Timestamp::as_millis) }
                }
            };
            self.push(entry);
        }
        self.lines += added;
        self.shrink();
        added
    }

    fn ends_with_ended(&self, of: u32) -> bool {
        let last = self.chunks.back().and_then(|chunk| chunk.rows.last());
        matches!(last, Some(Entry::Mark { kind: MarkKind::Ended, generation, .. }) if *generation == of)
    }

    fn push(&mut self, entry: Entry) {
        match self.chunks.back_mut() {
            Some(chunk) if chunk.rows.len() < CHUNK => Arc::make_mut(&mut chunk.rows).push(entry),
            last => {
                let id = last.map_or(0, |chunk| chunk.id + 1);
                let mut rows = Vec::with_capacity(CHUNK);
                rows.push(entry);
                self.chunks.push_back(Chunk { id, rows: Arc::new(rows) });
            }
        }
    }

    /// Drops the oldest chunks over the limit.
    fn shrink(&mut self) {
        while self.lines > MAX_LINES
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.lines -= lines_of(&chunk);
            self.page_start = None;
        }
    }

    /// How to read further back.
    #[must_use]
    pub fn older(&self) -> Older {
        if self.lines + CHUNK > MAX_LINES {
            return Older::Full;
        }
        match &self.page_start {
            Some(Some(cursor)) => Older::Before { cursor: cursor.clone(), again: false },
            Some(None) => Older::Start,
            None => self.first_cursor().map_or(Older::Unknown, |cursor| Older::Before {
                cursor: cursor.to_owned(),
                again: true,
            }),
        }
    }

    /// Cursor of the first line, which stands after that line.
    fn first_cursor(&self) -> Option<&str> {
        let mut rows = self.chunks.iter().flat_map(|chunk| chunk.rows.iter());
        rows.find_map(|row| match row {
            Entry::Line { cursor, .. } => Some(cursor.as_deref()),
            Entry::Mark { .. } => None,
        })
        .flatten()
    }

    /// Puts an older page in front; returns how many lines that were.
    pub fn prepend(&mut self, mut page: LogPage, again: bool) -> usize {
        if again {
            page.lines.pop();
        }
        let room = MAX_LINES.saturating_sub(self.lines);
        let cut = page.lines.len().saturating_sub(room);
        let kept = page.lines.split_off(cut);
        let added = kept.len();
        let mut id = self.chunks.front().map_or(0, |chunk| chunk.id);
        for rows in kept.rchunks(CHUNK) {
            id -= 1;
            let rows = rows
                .iter()
                .map(|text| Entry::Line {
                    text: text.as_str().into(),
                    cursor: None,
                    is_output: false,
                })
                .collect();
            self.chunks.push_front(Chunk { id, rows: Arc::new(rows) });
        }
        self.lines += added;
        // A page cut short cannot be continued from its own start: the lines cut are missing.
        self.page_start = Some(page.first.filter(|_| cut == 0));
        added
    }

    /// Where the needle occurs: (chunk id, row in it), oldest first.
    #[must_use]
    pub fn hits(&self, needle: &Needle) -> Vec<(i64, usize)> {
        let mut hits = Vec::new();
        for chunk in &self.chunks {
            for (at, row) in chunk.rows.iter().enumerate() {
                if matches!(row, Entry::Line { text, .. } if needle.is_in(text)) {
                    hits.push((chunk.id, at));
                }
            }
        }
        hits
    }

    /// Lines above a chunk.
    #[must_use]
    pub fn lines_above(&self, id: i64) -> usize {
        self.chunks.iter().take_while(|chunk| chunk.id < id).map(lines_of).sum()
    }

    /// The last `n` lines as text.
    #[must_use]
    pub fn tail(&self, n: usize) -> String {
        let mut lines: Vec<&str> = self
            .chunks
            .iter()
            .rev()
            .flat_map(|chunk| chunk.rows.iter().rev())
            .filter_map(|row| match row {
                Entry::Line { text, .. } => Some(text.as_ref()),
                Entry::Mark { .. } => None,
            })
            .take(n)
            .collect();
        lines.reverse();
        lines.join("\n")
    }
}

fn lines_of(chunk: &Chunk) -> usize {
    chunk.rows.iter().filter(|row| matches!(row, Entry::Line { .. })).count()
}

/// Weight a line names itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Nothing special.
    Plain,
    /// A warning.
    Warn,
    /// An error.
    Error,
}

/// A line taken apart for colouring: the three parts joined are the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Time stamp and the blanks after it, or nothing.
    pub stamp: &'a str,
    /// Level and the blanks after it, or nothing.
    pub level: &'a str,
    /// The rest.
    pub rest: &'a str,
    /// What the level means.
    pub weight: Weight,
}

/// Splits a line into time, level and text.
///
/// The agent's debug file writes `TIME [LEVEL] text` (agent 2.1.197). Other output has no such head
/// and stays whole.
#[must_use]
pub fn parts(line: &str) -> Parts<'_> {
    let head = |text: &str| {
        let word = text.find(char::is_whitespace).unwrap_or(text.len());
        let blanks = text.get(word..).unwrap_or_default();
        word + (blanks.len() - blanks.trim_start().len())
    };
    let at = head(line);
    let (first, after) = line.split_at(at);
    let (stamp, body) = if is_stamp(first.trim_end()) { (first, after) } else { ("", line) };
    let (word, rest) = body.split_at(head(body));
    let bare = word.trim_end();
    let (level, rest, weight) = match weight(bare.trim_matches(['[', ']', ':'])) {
        // Without brackets or colon, a word like "error" may begin any sentence.
        Some(weight) if bare.ends_with([']', ':']) || !stamp.is_empty() => (word, rest, weight),
        _ => ("", body, Weight::Plain),
    };
    Parts { stamp, level, rest, weight }
}

fn is_stamp(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let shape = |b: u8| b.is_ascii_digit() || b"-:.,TZ+[]".contains(&b);
    digits >= 6 && word.contains(':') && word.bytes().all(shape)
}

fn weight(word: &str) -> Option<Weight> {
    let weights: [(&[&str], Weight); 3] = [
        (&["trace", "debug", "info", "notice", "verbose"], Weight::Plain),
        (&["warn", "warning"], Weight::Warn),
        (&["error", "fatal", "critical", "panic"], Weight::Error),
    ];
    weights
        .iter()
        .find(|(words, _)| words.iter().any(|w| w.eq_ignore_ascii_case(word)))
        .map(|(_, weight)| *weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: usize) -> LogFrame {
        LogFrame::Line { cursor: format!("1:{n}"), text: format!("line {n}").into() }
    }

    fn ended() -> LogFrame {
        LogFrame::Mark {
            kind: MarkKind::Ended,
            generation: 1,
            at: Some(Timestamp::from_millis(40)),
        }
    }

    fn page(lines: &[&str], first: Option<&str>) -> LogPage {
        LogPage {
            lines: lines.iter().map(|l| (*l).to_owned()).collect(),
            first: first.map(str::to_owned),
            cursor: "1:0".into(),
            generation: 1,
            eof: false,
            output: Vec::new(),
        }
    }

    #[test]
    fn output_is_added_once_for_a_generation_and_known_as_output() {
        let printed = || LogFrame::Output { generation: 1, lines: vec!["fatal".into()] };
        let mut log = Log::default();
        assert_eq!(log.append([line(1), printed(), ended()]), 2);
        assert_eq!(log.append([printed(), ended()]), 0, "a reconnect says it again");
        let outputs: Vec<bool> = log
            .chunks()
            .flat_map(|chunk| chunk.rows.iter())
            .filter_map(|row| match row {
                Entry::Line { is_output, .. } => Some(*is_output),
                Entry::Mark { .. } => None,
            })
            .collect();
        assert_eq!(outputs, [false, true]);
        assert_eq!(log.resume_at(), Some("1:1"));
    }

    #[test]
    fn a_mark_has_its_own_time_or_none_and_not_that_of_the_reader() {
        let mut log = Log::default();
        log.append([ended()]);
        let gap = LogFrame::Mark { kind: MarkKind::Gap, generation: 1, at: None };
        log.append([gap]);
        let at: Vec<Option<i64>> = log
            .chunks()
            .flat_map(|chunk| chunk.rows.iter())
            .filter_map(|row| match row {
                Entry::Mark { at, .. } => Some(*at),
                Entry::Line { .. } => None,
            })
            .collect();
        assert_eq!(at, [Some(40), None]);
    }

    #[test]
    fn the_buffer_keeps_the_newest_lines_and_knows_where_to_go_on() {
        let mut log = Log::default();
        assert_eq!(log.append((0..MAX_LINES + 250).map(line)), MAX_LINES + 250);
        assert!(log.lines() <= MAX_LINES && log.lines() > MAX_LINES - 2 * CHUNK);
        assert_eq!(log.resume_at(), Some("1:10249"));
        assert!(log.tail(2).ends_with("line 10248\nline 10249"));
        assert_eq!(log.older(), Older::Full);
    }

    #[test]
    fn what_waits_is_counted_and_a_new_socket_goes_on_after_it() {
        let mut waiting = Waiting::default();
        assert!(waiting.push(ended()));
        assert_eq!((waiting.lines(), waiting.cursor()), (0, None));
        assert!((1..MAX_WAITING).all(|n| waiting.push(line(n))));
        assert!(!waiting.push(line(MAX_WAITING)));
        waiting.push(ended());
        assert_eq!((waiting.lines(), waiting.cursor()), (MAX_WAITING, Some("1:5000")));
        assert_eq!(waiting.take().len(), MAX_WAITING + 2);
        assert_eq!((waiting.lines(), waiting.cursor()), (0, None));
    }

    #[test]
    fn the_lines_above_a_chunk_are_counted_without_marks() {
        let mut log = Log::default();
        log.append((0..250).map(line).chain([ended()]));
        assert_eq!([0, 1, 2].map(|id| log.lines_above(id)), [0, 100, 200]);
        log.prepend(page(&["a", "b"], None), false);
        assert_eq!([-1, 0, 2].map(|id| log.lines_above(id)), [0, 2, 202]);
    }

    #[test]
    fn older_pages_join_without_a_doubled_line() {
        let mut log = Log::default();
        log.append([line(7), line(8)]);
        let Older::Before { cursor, again } = log.older() else {
            panic!("nothing older");
        };
        assert_eq!((cursor.as_str(), again), ("1:7", true));
        assert_eq!(log.prepend(page(&["line 6", "line 7"], Some("1:5")), again), 1);
        assert_eq!(log.tail(9), "line 6\nline 7\nline 8");
        assert_eq!(log.older(), Older::Before { cursor: "1:5".into(), again: false });
        log.prepend(page(&["line 4", "line 5"], None), false);
        assert_eq!(log.tail(9), "line 4\nline 5\nline 6\nline 7\nline 8");
        assert_eq!(log.older(), Older::Start);
    }

    #[test]
    fn chunks_put_in_front_do_not_rename_the_others() {
        let mut log = Log::default();
        log.append((0..150).map(line));
        let before: Vec<i64> = log.chunks().map(|c| c.id).collect();
        log.prepend(page(&["a", "b"], None), false);
        let after: Vec<i64> = log.chunks().map(|c| c.id).collect();
        assert_eq!(after[1..], before);
        assert!(after[0] < after[1]);
    }

    #[test]
    fn a_repeated_end_after_a_reconnect_is_shown_once() {
        let mut log = Log::default();
        log.append([line(1), ended(), ended()]);
        let rows: usize = log.chunks().map(|c| c.rows.len()).sum();
        assert_eq!((rows, log.lines()), (2, 1));
    }

    #[test]
    fn hits_are_found_in_lines_and_not_in_marks() {
        let mut log = Log::default();
        log.append([line(1), ended(), line(12), line(2)]);
        assert_eq!(log.hits(&Needle::new("LINE 1")), [(0, 0), (0, 2)]);
        assert!(log.hits(&Needle::new("ended")).is_empty());
        assert!(log.hits(&Needle::new("")).is_empty());
    }

    #[test]
    fn a_line_is_taken_apart_without_losing_a_character() {
        for (text, stamp, level, weight) in [
            (
                "2026-11-21T08:07:31.123Z [WARN]  memory low",
                "2026-11-21T08:07:31.123Z ",
                "[WARN]  ",
                Weight::Warn,
            ),
            ("08:07:31 error stream closed", "08:07:31 ", "error ", Weight::Error),
            ("Error: no login", "", "Error: ", Weight::Error),
            ("error messages are fine here", "", "", Weight::Plain),
            ("[debug] Remote Control auth state:", "", "[debug] ", Weight::Plain),
            ("  indented", "", "", Weight::Plain),
            ("12:30", "", "", Weight::Plain),
            ("", "", "", Weight::Plain),
            ("übung: ü", "", "", Weight::Plain),
        ] {
            let parts = parts(text);
            assert_eq!((parts.stamp, parts.level, parts.weight), (stamp, level, weight));
            let joined = format!("{}{}{}", parts.stamp, parts.level, parts.rest);
            assert_eq!(joined, text);
        }
    }
}
