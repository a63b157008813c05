//! What the terminal panel shows.
//!
//! Lines above the screen, classes of runs, copying, keys.

use crate::model::find::Needle;
use std::collections::VecDeque;
use svc_shared::terminal::{
    BOLD, DIM, INVERSE, ITALIC, Line, LinesFrame, MOST_LINES, Run, STRIKE, UNDERLINE,
};

/// Lines above the screen that are kept.
const MOST: usize = 2_000;
/// Smallest and largest size of the text, pixels.
pub const SIZES: (u8, u8) = (8, 20);

/// Lines above the screen that were read, without gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    first: u64,
    lines: VecDeque<Line>,
}

impl History {
    /// Number of the first line.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn end(&self) -> u64 {
        self.first.saturating_add(u64::try_from(self.lines.len()).unwrap_or(u64::MAX))
    }

    /// The lines that join what is kept to a screen whose first row is number `above`.
    ///
    /// Call [`Self::is_cut_off`] before.
    #[must_use]
    pub fn missing(&self, above: u64) -> Option<(u64, u32)> {
        let gap = above.checked_sub(self.end()).filter(|gap| *gap > 0 && !self.is_empty())?;
        Some((self.end(), u32::try_from(gap).unwrap_or(u32::MAX).min(MOST_LINES)))
    }

    /// Whether lines that follow those that are kept are gone.
    /// Nothing joins them to the screen any more.
    #[must_use]
    pub fn is_cut_off(&self, oldest: u64) -> bool {
        !self.is_empty() && self.end() < oldest
    }

    /// The lines before those that are kept; `None` at the oldest one.
    #[must_use]
    pub fn before(&self, above: u64, oldest: u64) -> Option<(u64, u32)> {
        let end = if self.is_empty() { above } else { self.first };
        let n = end.saturating_sub(oldest).min(u64::from(MOST_LINES));
        let is_full = self.lines.len() >= MOST;
        (n > 0 && !is_full).then(|| (end - n, u32::try_from(n).unwrap_or(MOST_LINES)))
    }

    /// Takes over lines that were read; those that do not join are left out.
    pub fn add(&mut self, frame: LinesFrame, above: u64) {
        let count = u64::try_from(frame.lines.len()).unwrap_or(u64::MAX);
        let end = frame.from.saturating_add(count);
        if self.is_empty() {
            self.first = frame.from;
            self.lines.extend(frame.lines);
        } else if end == self.first {
            self.first = frame.from;
            frame.lines.into_iter().rev().for_each(|line| self.lines.push_front(line));
        } else if frame.from == self.end() {
            self.lines.extend(frame.lines);
        }
        // Lines that are on the screen are not above it.
        let spare = usize::try_from(self.end().saturating_sub(above)).unwrap_or(usize::MAX);
        self.lines.truncate(self.lines.len().saturating_sub(spare));
        while self.lines.len() > MOST {
            self.lines.pop_front();
            self.first += 1;
        }
    }

    /// Forgets all lines.
    pub fn clear(&mut self) {
        self.lines.clear();
    }
}

/// The classes of a run: colours, attributes, width.
#[must_use]
pub fn classes(run: &Run) -> String {
    let mut names: Vec<String> = Vec::new();
    let is = |bit: u8| run.a & bit != 0;
    // Bold text in one of the first eight colours is bright, as terminals have it.
    let bright = |colour: u8| if is(BOLD) && colour < 8 { colour + 8 } else { colour };
    let (fg, bg) = (run.fg.map(bright), run.bg);
    if is(INVERSE) {
        names.push(bg.map_or_else(|| "f-bg".to_owned(), |colour| format!("f{colour}")));
        names.push(fg.map_or_else(|| "b-fg".to_owned(), |colour| format!("b{colour}")));
    } else {
        // Dark text is drawn lighter, but not where it has a background of its own.
        let is_black = bg.is_some() && matches!(fg, Some(0 | 16));
        let black = is_black.then(|| "f-bg".to_owned());
        names.extend(black.or_else(|| fg.map(|colour| format!("f{colour}"))));
        names.extend(bg.map(|colour| format!("b{colour}")));
    }
    for (bit, name) in
        [(BOLD, "bold"), (DIM, "dim"), (ITALIC, "ital"), (UNDERLINE, "under"), (STRIKE, "strike")]
    {
        if is(bit) {
            names.push(name.to_owned());
        }
    }
    if run.w == 2 && run.t.chars().count() != 2 {
        names.push("wide".to_owned());
    }
    names.join(" ")
}

/// Text of one look, and whether it is a hit of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Its classes.
    pub class: String,
    /// Whether it is a part of a hit.
    pub is_hit: bool,
}

/// A line in pieces of one look; a hit may reach over several.
#[must_use]
pub fn pieces(line: &Line, needle: &Needle) -> Vec<Piece> {
    let text: String = line.runs.iter().map(|run| run.t.as_str()).collect();
    let mut hits = Vec::new();
    if !needle.is_empty() {
        for (piece, is_hit) in needle.split(&text) {
            hits.extend(std::iter::repeat_n(is_hit, piece.chars().count()));
        }
    }
    let mut at = 0;
    let mut pieces: Vec<Piece> = Vec::new();
    for run in &line.runs {
        let class = classes(run);
        let mut begins = true;
        for c in run.t.chars() {
            let is_hit = hits.get(at).copied().unwrap_or(false);
            at += 1;
            let own = has_own_width(c) && run.w != 2;
            match pieces.last_mut() {
                Some(piece) if joins(c) => piece.text.push(c),
                Some(piece) if !begins && !own && piece.is_hit == is_hit => piece.text.push(c),
                _ => {
                    let class = if own { format!("{class} one") } else { class.clone() };
                    let class = class.trim_start().to_owned();
                    pieces.push(Piece { text: c.to_string(), class, is_hit });
                }
            }
            begins = own;
        }
    }
    pieces
}

/// Whether a character may be drawn in another font.
/// There it may be wider or narrower than one column.
///
/// Letters of the European scripts and lines of frames are in every monospaced font.
fn has_own_width(c: char) -> bool {
    c > '\u{52f}' && !('\u{2500}'..='\u{257f}').contains(&c) && !joins(c)
}

/// Whether a character belongs to the one before it.
fn joins(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// A selected text as it is copied.
///
/// Blanks at the ends of rows are left out, and rows that were wrapped are joined. `first` is the
/// row that the selection begins in.
#[must_use]
pub fn copied(selected: &str, first: usize, is_wrapped: impl Fn(usize) -> bool) -> String {
    let mut text = String::new();
    let mut lines = selected.split('\n').enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let has_next = lines.peek().is_some();
        if has_next && is_wrapped(first + at) {
            text.push_str(line);
        } else {
            text.push_str(line.trim_end());
            if has_next {
                text.push('\n');
            }
        }
    }
    text
}

/// A key of the bar: its label, its name, and what it types.
pub const KEYS: [(&str, &str, &str); 9] = [
    ("Esc", "Escape", "\u{1b}"),
    ("Tab", "Tab", "\t"),
    ("⇧Tab", "Shift and Tab", "\u{1b}[Z"),
    ("↑", "Up", "\u{1b}[A"),
    ("↓", "Down", "\u{1b}[B"),
    ("←", "Left", "\u{1b}[D"),
    ("→", "Right", "\u{1b}[C"),
    ("Ctrl-C", "Control and C", "\u{3}"),
    ("Enter", "Enter", "\r"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(t: &str, fg: Option<u8>, bg: Option<u8>, a: u8, w: u16) -> Run {
        Run { t: t.to_owned(), fg, bg, a, w }
    }

    fn line(text: &str) -> Line {
        let w = u16::try_from(text.len()).unwrap();
        Line { wrapped: false, runs: vec![run(text, None, None, 0, w)] }
    }

    fn lines(from: u64, n: u64) -> LinesFrame {
        let lines = (from..from + n).map(|n| line(&n.to_string())).collect();
        LinesFrame { generation: 1, from, oldest: 0, lines }
    }

    fn texts(history: &History) -> Vec<String> {
        history.lines().map(Line::text).collect()
    }

    #[test]
    fn lines_above_the_screen_are_read_backwards_and_joined_to_the_screen() {
        let mut history = History::default();
        assert_eq!(history.before(500, 100), Some((300, 200)));
        assert_eq!(history.missing(500), None);
        history.add(lines(300, 200), 500);
        assert_eq!(history.before(500, 100), Some((100, 200)));
        history.add(lines(100, 200), 500);
        assert_eq!((history.first(), history.len()), (100, 400));
        assert_eq!(history.before(500, 100), None);
        // Meanwhile the program wrote on.
        assert_eq!(history.missing(503), Some((500, 3)));
        history.add(lines(500, 3), 503);
        assert_eq!(texts(&history).last().unwrap(), "502");
        assert_eq!(history.missing(503), None);
        assert!(!history.is_cut_off(503));
        assert!(history.is_cut_off(504), "line 503 is gone, so nothing joins");
        assert!(!History::default().is_cut_off(504));
        // A late answer that joins nothing changes nothing.
        history.add(lines(900, 5), 503);
        assert_eq!(history.len(), 403);
        history.clear();
        assert_eq!(history.before(10, 10), None);
    }

    #[test]
    fn lines_that_are_on_the_screen_are_not_shown_twice() {
        let mut history = History::default();
        history.add(lines(0, 10), 8);
        assert_eq!(texts(&history).last().unwrap(), "7");
    }

    #[test]
    fn a_run_has_its_colours_and_attributes_as_classes() {
        for (run, expected) in [
            (run("a", None, None, 0, 1), ""),
            (run("a", Some(1), Some(200), 0, 1), "f1 b200"),
            (run("a", Some(1), None, BOLD, 1), "f9 bold"),
            (run("a", None, None, INVERSE, 1), "f-bg b-fg"),
            (run("a", Some(2), Some(3), INVERSE | DIM, 1), "f3 b2 dim"),
            (run("日", None, None, ITALIC | UNDERLINE | STRIKE, 2), "ital under strike wide"),
            (run("ab", None, None, 0, 2), ""),
            (run("a", Some(0), None, 0, 1), "f0"),
            (run("a", Some(0), Some(208), 0, 1), "f-bg b208"),
        ] {
            assert_eq!(classes(&run), expected, "{run:?}");
        }
    }

    #[test]
    fn a_hit_reaches_over_changes_of_colour() {
        let line = Line {
            wrapped: false,
            runs: vec![run("to fi", None, None, 0, 5), run("nd it", Some(2), None, 0, 5)],
        };
        let found = pieces(&line, &Needle::new("FIND"));
        let seen: Vec<(&str, &str, bool)> = found
            .iter()
            .map(|piece| (piece.text.as_str(), piece.class.as_str(), piece.is_hit))
            .collect();
        assert_eq!(
            seen,
            [("to ", "", false), ("fi", "", true), ("nd", "f2", true), (" it", "f2", false)]
        );
        assert_eq!(pieces(&line, &Needle::default()).len(), 2);
    }

    #[test]
    fn a_character_of_another_font_gets_its_own_column() {
        let line =
            Line { wrapped: false, runs: vec![run("a● ─é\u{301}✔", None, None, 0, 6)] };
        let seen: Vec<(String, String)> = pieces(&line, &Needle::default())
            .into_iter()
            .map(|piece| (piece.text, piece.class))
            .collect();
        let expected = [("a", ""), ("●", "one"), (" ─é\u{301}", ""), ("✔", "one")]
            .map(|(text, class)| (text.to_owned(), class.to_owned()));
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_copied_text_has_the_lines_that_the_program_wrote() {
        let wrapped = |row| row == 4;
        assert_eq!(copied("a   \nlong li\nne  \nb", 3, wrapped), "a\nlong line\nb");
    }
}
