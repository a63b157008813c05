//! What a terminal shows now, and what of it a viewer does not have yet.
//!
//! Every row knows the frame that changed it last. So a viewer that was slow or away gets the rows
//! that changed since, once, and nothing has to be kept for anybody.

use super::palette::nearest;
use svc_keeper::message::{Diff, Key, Moved, Phase, Question, SessionState};
use svc_keeper::screen::{Colour, Row};
use svc_shared::terminal::{
    Cursor, DiffFrame, Line, PlainCursor, PlainFrame, PlainScreen, RowChange, Run, ScreenState,
};
use unicode_width::UnicodeWidthChar as _;

/// Why a session that lives has no terminal.
pub(super) const NO_RECORD: &str = "the terminal of this session cannot be found, because the \
    record of its keeper is missing or damaged; the session goes on, and after a stop and a resume \
    it has a terminal again";

/// The screen of one session, through all its generations.
#[derive(Debug, Default)]
pub(super) struct Picture {
    pub generation: u32,
    /// Whether a screen of this generation is there.
    pub has_screen: bool,
    pub seq: u64,
    /// The first frame since which the size is as it is.
    sized: u64,
    cols: u16,
    rows: Vec<Shown>,
    cursor: Cursor,
    pub state: Option<ScreenState>,
    pub error: Option<String>,
    above: u64,
    oldest: u64,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Shown {
    line: Line,
    /// The frame that changed it last.
    changed: u64,
}

impl Picture {
    /// Begins a generation: nothing is known of it.
    pub fn begin(&mut self, generation: u32) {
        *self = Self { generation, ..Self::default() };
    }

    /// Takes over a complete screen.
    pub fn key(&mut self, key: Key) {
        let rows = usize::from(key.row_count);
        let has_size = self.cols == key.cols && self.rows.len() == rows;
        // A picture that begins knows nothing about the past of its rows.
        let is_first = !self.has_screen || !has_size || key.seq < self.seq;
        if is_first {
            self.sized = key.seq;
        }
        self.cols = key.cols;
        self.rows.resize_with(rows, Shown::default);
        self.rows.truncate(rows);
        let lines = key.rows.iter().map(line).chain(std::iter::repeat(Line::default()));
        for (shown, line) in self.rows.iter_mut().zip(lines) {
            if is_first || shown.line != line {
                *shown = Shown { line, changed: key.seq };
            }
        }
        let svc_keeper::screen::Cursor { x, y, visible, .. } = key.cursor;
        self.cursor = Cursor { x, y, visible };
        (self.above, self.oldest) = (key.scroll_base, key.scroll_first);
        (self.seq, self.has_screen) = (key.seq, true);
    }

    /// Takes over what changed; false when it does not fit what is known.
    pub fn diff(&mut self, diff: &Diff) -> bool {
        if !self.has_screen || diff.base != self.seq {
            return false;
        }
        if let Some(moved) = diff.scroll {
            self.scroll(moved, diff.seq);
        }
        for (y, row) in &diff.rows {
            if let Some(shown) = self.rows.get_mut(usize::from(*y)) {
                let line = line(row);
                if shown.line != line {
                    *shown = Shown { line, changed: diff.seq };
                }
            }
        }
        if let Some(svc_keeper::screen::Cursor { x, y, visible, .. }) = diff.cursor {
            self.cursor = Cursor { x, y, visible };
        }
        self.above = diff.scroll_base.unwrap_or(self.above);
        self.oldest = diff.scroll_first.unwrap_or(self.oldest);
        self.seq = diff.seq;
        true
    }

    /// Takes over the state of the session.
    pub fn state(&mut self, state: &SessionState) {
        let (word, error) = match (state.phase, state.reason) {
            (Phase::Launching, _) => (ScreenState::Starting, None),
            (Phase::Starting, _) => (ScreenState::Running, None),
            (Phase::Ready, _) => (ScreenState::Ready, None),
            (Phase::Failed, reason) => (ScreenState::Error, Some(asks(reason).to_owned())),
            (Phase::Exited, _) => (ScreenState::Exited, None),
        };
        self.state = Some(word);
        self.error = error;
    }

    /// There is nothing to read from, for this reason.
    pub fn unavailable(&mut self, why: &str) {
        self.state = Some(ScreenState::Unavailable);
        self.error = Some(why.to_owned());
    }

    /// The program has ended; the last screen stays.
    pub fn exited(&mut self) {
        self.state = Some(ScreenState::Exited);
        self.error = None;
    }

    /// What a viewer lacks that has frame `since`; everything without one.
    pub fn frame(&self, since: Option<u64>) -> DiffFrame {
        let base = since.filter(|since| self.has_screen && (self.sized..=self.seq).contains(since));
        let told = (0..).zip(&self.rows).filter(|(_, shown)| match base {
            Some(since) => shown.changed > since,
            None => shown.line != Line::default(),
        });
        let rows_changed = told.map(|(y, shown)| RowChange {
            y,
            wrapped: shown.line.wrapped,
            runs: shown.line.runs.clone(),
        });
        DiffFrame {
            generation: self.generation,
            seq: self.seq,
            base,
            full: base.is_none(),
            state: self.word().into(),
            error: self.error.clone(),
            cols: self.cols,
            rows: u16::try_from(self.rows.len()).unwrap_or(u16::MAX),
            cursor: self.cursor,
            rows_changed: rows_changed.collect(),
            above: self.above,
            oldest: self.oldest,
        }
    }

    /// The whole screen as text.
    pub fn plain(&self) -> PlainFrame {
        let screen = self.has_screen.then(|| PlainScreen {
            rows: self.rows.iter().map(|shown| shown.line.padded(self.cols)).collect(),
            cursor: PlainCursor { x: self.cursor.x, y: self.cursor.y },
            cols: self.cols,
            rows_count: u16::try_from(self.rows.len()).unwrap_or(u16::MAX),
        });
        PlainFrame { seq: self.seq, state: self.word().into(), error: self.error.clone(), screen }
    }

    fn word(&self) -> ScreenState {
        self.state.unwrap_or(ScreenState::Starting)
    }

    /// Moves rows up. To a viewer they are rows with another text.
    fn scroll(&mut self, moved: Moved, seq: u64) {
        let bottom = usize::from(moved.bottom).min(self.rows.len().saturating_sub(1));
        for y in usize::from(moved.top)..=bottom {
            let from = y.checked_add(moved.n.into()).filter(|from| *from <= bottom);
            let line = from.and_then(|from| self.rows.get(from)).map(|it| it.line.clone());
            let line = line.unwrap_or_default();
            if let Some(shown) = self.rows.get_mut(y)
                && shown.line != line
            {
                *shown = Shown { line, changed: seq };
            }
        }
    }
}

fn asks(question: Option<Question>) -> &'static str {
    match question {
        Some(Question::TrustRequired) => {
            "the agent asks whether it may trust this folder; trust the project, then start again"
        }
        Some(Question::OnboardingRequired) => {
            "the agent asks the questions of its first run; run it once in a terminal on the machine"
        }
        None => "the agent asks something before it starts",
    }
}

/// A row of the keeper as viewers get it.
///
/// A wide character becomes a run of its own, so that a page can give it two columns.
pub(super) fn line(row: &Row) -> Line {
    let mut runs: Vec<Run> = Vec::new();
    for run in &row.runs {
        let like = |t: String, w: u16| Run {
            t,
            fg: index(run.fg),
            bg: index(run.bg),
            a: run.attrs.0 & 0x3f,
            w,
        };
        if run.text.is_ascii() {
            runs.push(like(run.text.clone(), run.cells));
            continue;
        }
        let mut narrow = (String::new(), 0);
        for c in run.text.chars() {
            match c.width().unwrap_or(0) {
                0 if narrow.0.is_empty() => match runs.last_mut() {
                    Some(wide) => wide.t.push(c),
                    None => narrow.0.push(c),
                },
                0 => narrow.0.push(c),
                2 => {
                    let (text, cells) = std::mem::take(&mut narrow);
                    if !text.is_empty() {
                        runs.push(like(text, cells));
                    }
                    runs.push(like(c.to_string(), 2));
                }
                _ => {
                    narrow.0.push(c);
                    narrow.1 += 1;
                }
            }
        }
        if !narrow.0.is_empty() {
            runs.push(like(narrow.0, narrow.1));
        }
    }
    Line { wrapped: row.wrapped, runs }
}

fn index(colour: Colour) -> Option<u8> {
    match colour {
        Colour::Default => None,
        Colour::Indexed(index) => Some(index),
        Colour::Rgb(red, green, blue) => Some(nearest([red, green, blue])),
    }
}

#[cfg(test)]
mod tests;
