//! Texts that can be read from a screen, with the way back to its cells.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use svc_shared::characters::is_invisible;

use super::{Position, Row};

/// Characters after the first row for which a chain goes on over rows with blanks.
/// A secret in several words, such as `Authorization: Bearer …`, takes several rows of a narrow
/// frame.
const REACH: usize = 80;
/// Longest text of a chain of rows without blanks, in bytes.
/// A 16,384-bit private key has 12 KiB.
const LONGEST: usize = 16 * 1024;
/// Columns of padding between a text and the border of its frame.
const PADDING: usize = 2;

/// A text read from the screen.
pub(super) struct Reading {
    text: String,
    /// Where each piece of the text stands: its first byte and its cell.
    cells: Vec<(usize, Position)>,
}

/// What stands between the parts of a text that was read from several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blanks {
    /// Nothing: the text was cut at the end of a row.
    Never,
    /// A blank: it was wrapped between two words.
    Always,
    /// A blank where a row ends sooner or begins later than others.
    /// Text can be wrapped both between and inside of words.
    WhereRowsHaveSpace,
}

impl Reading {
    /// Reads segments one after the other.
    pub fn of<S>(rows: &[Row<S>], segments: &[Segment], blanks: Blanks) -> Self {
        let mut reading = Self { text: String::new(), cells: Vec::new() };
        let full = segments.iter().map(|segment| segment.to).max().unwrap_or_default();
        let first = segments.iter().skip(1).map(|segment| segment.from).min().unwrap_or_default();
        let mut segments = segments.iter().peekable();
        while let Some(segment) = segments.next() {
            reading.add(rows, segment.row, segment.from..segment.to);
            let blank = segments.peek().is_some_and(|next| match blanks {
                Blanks::Never => false,
                Blanks::Always => true,
                Blanks::WhereRowsHaveSpace => segment.to < full || next.from > first,
            });
            if blank {
                reading.text.push(' ');
            }
        }
        reading
    }

    fn add<S>(&mut self, rows: &[Row<S>], row: usize, columns: Range<usize>) {
        let cells = rows.get(row).map_or(&[][..], |row| &row.cells);
        let cells = cells.iter().enumerate().take(columns.end).skip(columns.start);
        for (column, cell) in cells.filter(|(_, cell)| cell.columns > 0) {
            // A character that shows nothing separates nothing.
            if is_invisible(cell.base) && !cell.base.is_control() {
                continue;
            }
            self.cells.push((self.text.len(), Position { row, column }));
            let is_blank = cell.base.is_whitespace() || cell.base.is_control();
            self.text.push(if is_blank { ' ' } else { cell.base });
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The cells of a range of bytes.
    pub fn places(&self, bytes: Range<usize>) -> impl Iterator<Item = Position> + '_ {
        let from = self.cells.partition_point(|(at, _)| *at < bytes.start);
        let cells = self.cells.get(from..).unwrap_or_default();
        cells.iter().take_while(move |(at, _)| *at < bytes.end).map(|(_, place)| *place)
    }
}

/// The lines of the terminal: rows that it wrapped are one.
pub(super) fn lines<S>(rows: &[Row<S>]) -> impl Iterator<Item = Reading> + '_ {
    let mut next = 0;
    std::iter::from_fn(move || {
        rows.get(next)?;
        let mut reading = Reading { text: String::new(), cells: Vec::new() };
        while let Some(row) = rows.get(next) {
            let width = row.cells.len();
            // The terminal leaves the last column free when a wide character has no place there.
            let is_spare = row.wrapped
                && row.cells.last().is_some_and(|cell| cell.base == ' ')
                && rows.get(next + 1).is_some_and(Row::begins_wide);
            reading.add(rows, next, 0..width - usize::from(is_spare));
            next += 1;
            if !row.wrapped {
                break;
            }
        }
        Some(reading)
    })
}

impl<S> Row<S> {
    fn begins_wide(&self) -> bool {
        self.cells.first().is_some_and(|cell| cell.columns == 2)
    }
}

/// Text on one row, between two borders of a frame or the edges of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    row: usize,
    /// The columns between the borders.
    left: usize,
    right: usize,
    /// The columns of the text, without blanks around it.
    from: usize,
    to: usize,
    /// Columns of its first word; all of the text when there are no blanks inside.
    first_word: usize,
}

impl Segment {
    /// Where its text begins.
    pub fn start(&self) -> Position {
        Position { row: self.row, column: self.from }
    }

    fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    fn overlap(&self, other: &Self) -> usize {
        self.right.min(other.right).saturating_sub(self.left.max(other.left))
    }
}

/// The screen as frames divide it.
pub(super) struct Panes {
    /// Each row as a whole, without borders at its two ends.
    whole: Vec<Vec<Segment>>,
    /// Each row in the parts between its borders; nothing where it has none inside.
    parts: Vec<Vec<Segment>>,
}

impl Panes {
    pub fn of<S>(rows: &[Row<S>]) -> Self {
        let whole = rows.iter().enumerate().map(|(at, row)| vec![whole(at, row)]).collect();
        let mut parts: Vec<Vec<Segment>> =
            rows.iter().enumerate().map(|(at, row)| parts(at, row)).collect();
        // Rows of one part are read as a whole already, unless a divided row is beside them.
        let divided: Vec<bool> = parts.iter().map(|row| row.len() > 1).collect();
        let is_divided = |at: Option<usize>| at.and_then(|at| divided.get(at)) == Some(&true);
        for (at, row) in parts.iter_mut().enumerate() {
            let near = [at.checked_sub(1), Some(at), at.checked_add(1)];
            if !near.into_iter().any(is_divided) {
                row.clear();
            }
        }
        Self { whole, parts }
    }

    /// Segments below each other that one text may have been wrapped into.
    pub fn chains(&self) -> Vec<Vec<Segment>> {
        let mut chains = Vec::new();
        for grid in [&self.whole, &self.parts] {
            let mut inside: HashSet<Position> = HashSet::new();
            for segment in grid.iter().flatten().filter(|segment| !segment.is_empty()) {
                if inside.contains(&segment.start()) {
                    continue;
                }
                let mut chain = vec![*segment];
                let (mut last, mut reach) = (*segment, 0);
                let mut unbroken = true;
                while let Some(next) = below(grid, &last) {
                    chain.push(next);
                    last = next;
                    reach += next.to - next.from;
                    unbroken &= next.first_word == next.to - next.from;
                    let goes_on = if unbroken { reach < LONGEST } else { reach < REACH };
                    if !goes_on {
                        break;
                    }
                    // What begins on a row without blanks is found by the chain through it.
                    if unbroken {
                        inside.insert(next.start());
                    }
                }
                if chain.len() > 1 {
                    chains.push(chain);
                }
            }
        }
        chains
    }

    /// Segments that begin at the same border, from the top down.
    pub fn columns(&self) -> Vec<Vec<Segment>> {
        let whole = self.whole.iter().flatten().copied().collect();
        let mut columns: BTreeMap<usize, Vec<Segment>> = BTreeMap::new();
        for segment in self.parts.iter().flatten() {
            columns.entry(segment.left).or_default().push(*segment);
        }
        std::iter::once(whole).chain(columns.into_values()).collect()
    }

    /// Texts that end where they may have been cut off.
    ///
    /// That is at the border of a frame or of the screen, at an ellipsis, and where the cursor is.
    pub fn cut_off<S>(&self, rows: &[Row<S>], cursor: Option<Position>) -> Vec<Reading> {
        let mut readings = Vec::new();
        for grid in [&self.whole, &self.parts] {
            for segment in grid.iter().flatten().filter(|segment| !segment.is_empty()) {
                let mut ends = Vec::new();
                let goes_on = rows.get(segment.row).is_some_and(|row| row.wrapped)
                    && rows.get(segment.row + 1).is_some();
                if segment.to + PADDING >= segment.right && !goes_on {
                    ends.push(segment.to);
                }
                if let Some(row) = rows.get(segment.row)
                    && let Some(end) = before_ellipsis(row, segment)
                {
                    ends.push(end);
                }
                if let Some(cursor) = cursor.filter(|cursor| cursor.row == segment.row)
                    && (segment.from + 1..=segment.to + 1).contains(&cursor.column)
                {
                    ends.push(cursor.column.min(segment.to));
                }
                for to in ends {
                    let cut = Segment { to, ..*segment };
                    readings.push(Reading::of(rows, &[cut], Blanks::Never));
                    if let Some(above) = above(grid, segment) {
                        readings.push(Reading::of(rows, &[above, cut], Blanks::Never));
                    }
                }
            }
        }
        readings
    }
}

/// The segment that may continue a text, on the next row.
///
/// A text that was wrapped fills its rows: the first word of the next row had no place any more.
fn below(grid: &[Vec<Segment>], segment: &Segment) -> Option<Segment> {
    let next = beside(grid.get(segment.row + 1)?, segment)?;
    (next.to <= segment.to + 1 + next.first_word).then_some(next)
}

fn above(grid: &[Vec<Segment>], segment: &Segment) -> Option<Segment> {
    beside(grid.get(segment.row.checked_sub(1)?)?, segment)
}

fn beside(row: &[Segment], segment: &Segment) -> Option<Segment> {
    let best = row.iter().max_by_key(|other| other.overlap(segment))?;
    (best.overlap(segment) > 0 && !best.is_empty()).then_some(*best)
}

/// Where the text ends that an ellipsis cuts.
fn before_ellipsis<S>(row: &Row<S>, segment: &Segment) -> Option<usize> {
    let text = row.cells.get(segment.from..segment.to)?;
    let dots = text.iter().rev().take_while(|cell| matches!(cell.base, '…' | '.')).count();
    let first = text.get(text.len() - dots)?;
    (dots >= 3 || first.base == '…').then_some(segment.to - dots)
}

/// Whether a character draws a frame, a scroll bar or a gutter.
fn is_border(c: char) -> bool {
    matches!(c,
        '|' | '¦' | '\u{2500}'..='\u{259f}' | '\u{239b}'..='\u{23bf}' | '\u{23d0}'
        | '\u{2758}'..='\u{275a}' | '\u{fe31}'..='\u{fe33}')
}

/// The row without blanks and borders at its ends.
fn whole<S>(at: usize, row: &Row<S>) -> Segment {
    let is_text = |c: char| !c.is_whitespace() && !is_border(c) && !is_invisible(c);
    let first = row.cells.iter().position(|cell| is_text(cell.base));
    let last = row.cells.iter().rposition(|cell| is_text(cell.base));
    let width = row.cells.len();
    let (Some(first), Some(last)) = (first, last) else {
        return Segment { row: at, left: 0, right: width, from: 0, to: 0, first_word: 0 };
    };
    // The nearest border on each side is where the frame ends.
    let before = row.cells.get(..first).unwrap_or_default();
    let left = before.iter().rposition(|cell| is_border(cell.base)).map_or(0, |at| at + 1);
    let after = row.cells.get(last + 1..).unwrap_or_default();
    let border = after.iter().position(|cell| is_border(cell.base));
    let right = border.map_or(width, |at| last + 1 + at);
    segment(at, row, left..right)
}

/// The parts of a row between its borders, those without text left out.
fn parts<S>(at: usize, row: &Row<S>) -> Vec<Segment> {
    let mut parts = Vec::new();
    let mut left = 0;
    let border = |column: usize| row.cells.get(column).is_none_or(|cell| is_border(cell.base));
    for column in (0..=row.cells.len()).filter(|column| border(*column)) {
        let part = segment(at, row, left..column);
        if !part.is_empty() {
            parts.push(part);
        }
        left = column + 1;
    }
    parts
}

fn segment<S>(at: usize, row: &Row<S>, columns: Range<usize>) -> Segment {
    let cells = row.cells.get(columns.clone()).unwrap_or_default();
    let is_blank = |c: char| c.is_whitespace() || is_invisible(c);
    let first = cells.iter().position(|cell| !is_blank(cell.base)).unwrap_or(cells.len());
    // Editors and shells put a backslash where they cut a row.
    let last = cells.iter().rposition(|cell| !is_blank(cell.base) && cell.base != '\\');
    let mut to = last.map_or(first, |last| last + 1);
    // The second half of a wide character belongs to it.
    to += usize::from(cells.get(to).is_some_and(|cell| cell.columns == 0));
    let text = cells.get(first..to).unwrap_or_default();
    let blank = text.iter().position(|cell| cell.base.is_whitespace() && cell.columns > 0);
    Segment {
        row: at,
        left: columns.start,
        right: columns.end,
        from: columns.start + first,
        to: columns.start + to.max(first),
        first_word: blank.unwrap_or(text.len()),
    }
}
