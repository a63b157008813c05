//! Frames of a live terminal, and the one function that folds them.
//!
//! `http-api` §4.6 and N8. A frame says what a screen shows, never how it was drawn: no escape sequence, no title. Rows
//! were redacted where they were rendered. A viewer keeps a [`Screen`] and folds every frame into
//! it; [`Screen::fold`] says when a frame does not fit and a full one must be asked for.

pub use crate::status::ScreenState;
use crate::word::Word;
use serde::{Deserialize, Serialize};

/// Bold text.
pub const BOLD: u8 = 1;
/// Faint text.
pub const DIM: u8 = 2;
/// Slanted text.
pub const ITALIC: u8 = 4;
/// Any kind of underline.
pub const UNDERLINE: u8 = 8;
/// Colours exchanged.
pub const INVERSE: u8 = 16;
/// Struck out.
pub const STRIKE: u8 = 32;

/// Most lines above the screen in one answer.
pub const MOST_LINES: u32 = 200;
/// Longest text that one message types, in bytes.
pub const LONGEST_INPUT: usize = 4096;

/// Cells beside each other that look alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Text, without control characters.
    pub t: String,
    /// Colour of the text, 0–255; null is the default.
    pub fg: Option<u8>,
    /// Colour behind the text, as `fg`.
    pub bg: Option<u8>,
    /// Bits: bold 1, dim 2, italic 4, underline 8, inverse 16, strike 32.
    pub a: u8,
    /// Columns: a wide character takes two, marks on a character none.
    pub w: u16,
}

/// One row. Blank cells at its end are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Whether the text goes on in the next row because it did not fit.
    pub wrapped: bool,
    /// From left to right.
    pub runs: Vec<Run>,
}

impl Line {
    /// The text, without blanks at the end.
    #[must_use]
    pub fn text(&self) -> String {
        let text: String = self.runs.iter().map(|run| run.t.as_str()).collect();
        text.trim_end().to_owned()
    }

    /// The text with blanks up to `columns` characters.
    ///
    /// Each cell is one character: the second cell of a wide character is a blank.
    #[must_use]
    pub fn padded(&self, columns: u16) -> String {
        let mut text = String::new();
        let mut cells = 0;
        for run in &self.runs {
            let mut spare = usize::from(run.w).saturating_sub(run.t.chars().count());
            for c in run.t.chars() {
                text.push(c);
                cells += 1;
                if spare > 0 {
                    text.push(' ');
                    (spare, cells) = (spare - 1, cells + 1);
                }
            }
        }
        text.extend(std::iter::repeat_n(' ', usize::from(columns).saturating_sub(cells)));
        text.chars().take(usize::from(columns)).collect()
    }
}

/// A row with its place on the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowChange {
    /// Row, from 0 at the top.
    pub y: u16,
    /// See [`Line::wrapped`].
    pub wrapped: bool,
    /// See [`Line::runs`].
    pub runs: Vec<Run>,
}

/// Where the cursor is, from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Column.
    pub x: u16,
    /// Row.
    pub y: u16,
    /// False while the program hides it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub visible: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_yes(it: &bool) -> bool {
    *it
}

/// A frame of the plain form: the whole screen as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainFrame {
    /// Number of the frame; grows while one program runs.
    pub seq: u64,
    /// How the terminal stands.
    pub state: Word<ScreenState>,
    /// What is wrong, in words.
    pub error: Option<String>,
    /// The screen; null when only the state is told.
    pub screen: Option<PlainScreen>,
}

/// The whole screen as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainScreen {
    /// The rows; each has exactly `cols` characters.
    pub rows: Vec<String>,
    /// Where the cursor is.
    pub cursor: PlainCursor,
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows_count: u16,
}

/// Where the cursor is, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainCursor {
    /// Column.
    pub x: u16,
    /// Row.
    pub y: u16,
}

/// A frame of `?format=diff`: what changed since an earlier frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffFrame {
    /// Generation of the session; a new one begins with an empty screen.
    #[serde(rename = "gen")]
    pub generation: u32,
    /// Number of the frame; grows while one program runs.
    pub seq: u64,
    /// Number of the frame that this one applies to; null for a full one.
    #[serde(default)]
    pub base: Option<u64>,
    /// Whether all rows are told.
    pub full: bool,
    /// How the terminal stands.
    pub state: Word<ScreenState>,
    /// What is wrong, in words.
    pub error: Option<String>,
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
    /// Where the cursor is.
    pub cursor: Cursor,
    /// Rows that changed. A full frame leaves out blank ones.
    pub rows_changed: Vec<RowChange>,
    /// Number of the first row, counting the lines that left the screen at its top.
    #[serde(default)]
    pub above: u64,
    /// Number of the oldest line above the screen that can be read.
    #[serde(default)]
    pub oldest: u64,
}

/// Lines above the screen, the answer to [`ClientFrame::Scroll`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesFrame {
    /// Generation of the session.
    #[serde(rename = "gen")]
    pub generation: u32,
    /// Number of the first line told.
    pub from: u64,
    /// Number of the oldest line that can be read.
    pub oldest: u64,
    /// The lines.
    pub lines: Vec<Line>,
}

/// The answer to [`ClientFrame::Input`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedFrame {
    /// The number of the input.
    pub typed: u64,
    /// Why it was not typed, in words; null when it was.
    pub refused: Option<String>,
    /// Whether the text stands in the terminal although Enter was refused.
    #[serde(default)]
    pub stands: bool,
}

/// A frame of the service, in the form of `?format=diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TerminalFrame {
    /// What changed.
    Diff(DiffFrame),
    /// Lines above the screen.
    Lines(LinesFrame),
    /// What became of an input.
    Typed(TypedFrame),
}

impl TerminalFrame {
    /// Reads a frame; the members that it has say which one it is.
    ///
    /// # Errors
    /// No frame of this version.
    pub fn read(text: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Members {
            #[serde(default)]
            lines: Option<serde::de::IgnoredAny>,
            #[serde(default)]
            typed: Option<serde::de::IgnoredAny>,
        }
        let members: Members = serde_json::from_str(text)?;
        Ok(if members.lines.is_some() {
            Self::Lines(serde_json::from_str(text)?)
        } else if members.typed.is_some() {
            Self::Typed(serde_json::from_str(text)?)
        } else {
            Self::Diff(serde_json::from_str(text)?)
        })
    }
}

/// What a viewer asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientFrame {
    /// The whole screen, because a frame did not fit.
    Full,
    /// Lines above the screen.
    Scroll {
        /// Number of the first line wanted.
        from: u64,
        /// How many, at most [`MOST_LINES`].
        n: u32,
    },
    /// Types a text, where that is allowed.
    Input {
        /// The text, at most [`LONGEST_INPUT`] bytes.
        text: String,
        /// Comes back in the answer.
        id: u64,
        /// Whether Enter follows, once the terminal has the text.
        #[serde(default)]
        enter: bool,
    },
}

/// What a viewer knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// Generation of the session.
    pub generation: u32,
    /// Number of the last frame.
    pub seq: u64,
    /// How the terminal stands.
    pub state: Word<ScreenState>,
    /// What is wrong, in words.
    pub error: Option<String>,
    /// Columns; 0 before the first frame.
    pub cols: u16,
    /// The rows.
    pub rows: Vec<Line>,
    /// Where the cursor is.
    pub cursor: Cursor,
    /// Number of the first row; see [`DiffFrame::above`].
    pub above: u64,
    /// Number of the oldest line that can be read.
    pub oldest: u64,
}

/// What a fold did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folded {
    /// These rows changed, and perhaps cursor and state.
    Rows(Vec<u16>),
    /// Everything is new.
    All,
    /// The frame is older than what is known: nothing changed.
    Old,
    /// Frames are missing: nothing changed, and a full one is needed.
    Missing,
}

impl Screen {
    /// Takes over a frame.
    pub fn fold(&mut self, frame: DiffFrame) -> Folded {
        let is_other = frame.generation != self.generation;
        if frame.generation < self.generation {
            return Folded::Old;
        }
        let fits = !is_other && frame.base == Some(self.seq) && self.has_size(&frame);
        if !frame.full && !fits {
            let is_known = !is_other && frame.seq <= self.seq;
            return if is_known { Folded::Old } else { Folded::Missing };
        }
        let starts_over = frame.full && (is_other || !self.has_size(&frame));
        let rows = usize::from(frame.rows);
        let mut changed = Vec::new();
        if frame.full {
            let mut lines = vec![Line::default(); rows];
            for row in frame.rows_changed {
                if let Some(line) = lines.get_mut(usize::from(row.y)) {
                    *line = Line { wrapped: row.wrapped, runs: row.runs };
                }
            }
            let numbered = (0..frame.rows).zip(self.rows.iter().zip(&lines));
            changed.extend(numbered.filter(|(_, (old, new))| old != new).map(|(y, _)| y));
            self.rows = lines;
        } else {
            for row in frame.rows_changed {
                if let Some(line) = self.rows.get_mut(usize::from(row.y)) {
                    *line = Line { wrapped: row.wrapped, runs: row.runs };
                    changed.push(row.y);
                }
            }
        }
        self.generation = frame.generation;
        self.seq = frame.seq;
        self.state = frame.state;
        self.error = frame.error;
        self.cols = frame.cols;
        self.cursor = frame.cursor;
        self.above = frame.above;
        self.oldest = frame.oldest;
        if starts_over { Folded::All } else { Folded::Rows(changed) }
    }

    fn has_size(&self, frame: &DiffFrame) -> bool {
        self.cols == frame.cols && self.rows.len() == usize::from(frame.rows)
    }
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            generation: 0,
            seq: 0,
            state: ScreenState::Starting.into(),
            error: None,
            cols: 0,
            rows: Vec::new(),
            cursor: Cursor::default(),
            above: 0,
            oldest: 0,
        }
    }
}

/// The text of lines, as it is copied.
///
/// Blanks at the ends of lines are left out, and lines that were wrapped are joined.
#[must_use]
pub fn text_of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> String {
    let mut text = String::new();
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        let has_next = lines.peek().is_some();
        if line.wrapped && has_next {
            line.runs.iter().for_each(|run| text.push_str(&run.t));
        } else {
            text.push_str(&line.text());
            if has_next {
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
