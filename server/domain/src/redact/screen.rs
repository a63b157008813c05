//! Masks identifiers and secrets on a rendered terminal screen (H56).
//!
//! It works on the cells of the grid, so the order of drawing, colours, cursor moves and overwriting
//! do not matter. A program that draws a frame wraps its text itself: the parts of one secret then
//! stand on rows that no flag connects, with borders and blanks between them. Every row is therefore
//! also read together with the row below it (`reading`). A masked cell keeps its place: the row has
//! as many columns as before. The forms are those of the whole module; there is no second list.

mod partial;
mod reading;
#[cfg(test)]
mod tests;

use super::hints::Scan;
use super::pem::{self, Pem, PemLine};
use super::rule_set::Rules;
use super::span::Span;
use reading::{Blanks, Panes, Reading, Segment};
use svc_shared::characters::{is_invisible, rewrite_invisible};

/// What a masked cell shows.
pub const MASKED_CELL: char = '*';

/// One cell of the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell<S> {
    /// Its character; a blank where nothing was drawn.
    pub base: char,
    /// Combining characters on the same cell.
    pub marks: Option<Box<str>>,
    /// Columns it takes: 1, 2, or 0 for the second half of a wide character.
    pub columns: u8,
    /// Colours and attributes, which the redaction does not look at.
    pub style: S,
}

impl<S: Default> Default for Cell<S> {
    fn default() -> Self {
        Self { base: ' ', marks: None, columns: 1, style: S::default() }
    }
}

/// One row of the grid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row<S> {
    /// Its cells; a wide character takes two, the second of no columns.
    pub cells: Vec<Cell<S>>,
    /// Whether the terminal wrapped the text of this row into the next one.
    pub wrapped: bool,
}

/// Cells beside each other that look alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run<S> {
    /// Their text.
    pub text: String,
    /// The columns they take.
    pub columns: u16,
    /// Their colours and attributes.
    pub style: S,
}

/// A place on the grid, in rows and columns from the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The row, counted from 0.
    pub row: usize,
    /// The column, counted from 0.
    pub column: usize,
}

impl<S> Cell<S> {
    /// Leaves only what is drawn.
    /// An invisible character hides parts of a secret from a reader.
    fn show_only_visible(&mut self) {
        if is_invisible(self.base) {
            self.base = ' ';
        }
        if let Some(marks) = self.marks.take() {
            let shown: String = std::iter::once(self.base).chain(marks.chars()).collect();
            let shown = rewrite_invisible(&shown, |_| false, |_, _| ());
            let marks = shown.get(self.base.len_utf8()..).unwrap_or_default();
            self.marks = (!marks.is_empty()).then(|| marks.into());
        }
    }

    fn mask(&mut self) {
        self.base = MASKED_CELL;
        self.marks = None;
        self.columns = 1;
    }
}

impl<S: Clone + PartialEq> Row<S> {
    /// The row as runs of cells that look alike.
    ///
    /// A wide character and a character with marks are runs of their own, so that whoever draws
    /// them can give each its columns.
    #[must_use]
    pub fn runs(&self) -> Vec<Run<S>> {
        let mut runs: Vec<Run<S>> = Vec::new();
        let mut joins = false;
        for cell in self.cells.iter().filter(|cell| cell.columns > 0) {
            let plain = cell.columns == 1 && cell.marks.is_none();
            let marks = cell.marks.as_deref().unwrap_or_default();
            match runs.last_mut() {
                Some(run) if joins && plain && run.style == cell.style => {
                    run.text.push(cell.base);
                    run.columns = run.columns.saturating_add(1);
                }
                Some(_) | None => runs.push(Run {
                    text: format!("{}{marks}", cell.base),
                    columns: u16::from(cell.columns),
                    style: cell.style.clone(),
                }),
            }
            joins = plain;
        }
        runs
    }
}

/// Masks every identifier and secret on these rows, in place.
///
/// `rows` stand below each other. A caller that shows a part of a longer text (a screen with lines
/// above it, a piece of the lines above) passes at least one logical line more on each side and
/// drops it afterwards, so that a secret that begins there is found. `cursor` is where the next
/// character will be drawn: what ends there may be the beginning of a secret. Characters that show
/// nothing are removed from the cells. The number of columns of each row stays.
pub fn redact<S>(rows: &mut [Row<S>], cursor: Option<Position>) {
    let mut cover = Cover::of(rows);
    // Lines as the terminal knows them.
    for reading in reading::lines(rows) {
        let mut line = Pem::default().line(reading.text().trim());
        cover.hide(&reading, &found(&reading, &mut line));
    }
    // Lines that a program wrapped and framed by itself.
    let panes = Panes::of(rows);
    for chain in panes.chains() {
        for blanks in [Blanks::Never, Blanks::Always, Blanks::WhereRowsHaveSpace] {
            let reading = Reading::of(rows, &chain, blanks);
            let mut line = Pem::default().line("");
            cover.hide(&reading, &found(&reading, &mut line));
        }
    }
    for pane in panes.columns() {
        key_blocks(rows, &pane, &mut cover);
        let mut pem = Pem::default();
        for segment in pane {
            let reading = Reading::of(rows, &[segment], Blanks::Never);
            let mut line = pem.line(reading.text());
            cover.hide(&reading, &found(&reading, &mut line));
            pem = line.after().without_block();
        }
    }
    for reading in panes.cut_off(rows, cursor) {
        cover.hide(&reading, &partial::find(reading.text()));
    }
    cover.lay_over(rows);
}

/// Hides private keys from BEGIN to END over any number of rows.
/// Without an END, to the last row.
///
/// The marks themselves may be cut by the end of a row, inside of a word or between two.
fn key_blocks<S>(rows: &[Row<S>], pane: &[Segment], cover: &mut Cover) {
    let cut = Reading::of(rows, pane, Blanks::Never);
    let mut marks: Vec<(Position, Position, bool)> = Vec::new();
    for reading in [&cut, &Reading::of(rows, pane, Blanks::Always)] {
        if Scan::of(reading.text()).rules.name(Rules::PEM) {
            marks.extend(pem::marks(reading.text()).filter_map(|(bytes, begins)| {
                let mut places = reading.places(bytes);
                let first = places.next()?;
                Some((first, places.last()?, begins))
            }));
        }
    }
    marks.sort_unstable();
    let mut open = None;
    for (first, last, begins) in marks {
        if begins {
            open = open.or(Some(first));
        } else if let Some(begin) = open.take() {
            cover.hide_between(&cut, begin, last);
        }
    }
    if let Some(begin) = open {
        cover.hide_between(&cut, begin, Position { row: usize::MAX, column: 0 });
    }
}

fn found(reading: &Reading, pem: &mut PemLine) -> Vec<Span> {
    super::find(reading.text(), Scan::of(reading.text()), Scan::of, pem)
}

/// The cells that are to be masked.
struct Cover(Vec<Vec<bool>>);

impl Cover {
    fn of<S>(rows: &[Row<S>]) -> Self {
        Self(rows.iter().map(|row| vec![false; row.cells.len()]).collect())
    }

    fn hide(&mut self, reading: &Reading, spans: &[Span]) {
        for span in spans {
            reading
                .places(span.start + span.label.len()..span.end)
                .for_each(|place| self.hide_cell(place));
        }
    }

    fn hide_between(&mut self, reading: &Reading, first: Position, last: Position) {
        let inside = |place: &Position| (first..=last).contains(place);
        reading.places(0..usize::MAX).filter(inside).for_each(|place| self.hide_cell(place));
    }

    fn hide_cell(&mut self, place: Position) {
        let row = self.0.get_mut(place.row);
        if let Some(cell) = row.and_then(|row| row.get_mut(place.column)) {
            *cell = true;
        }
    }

    fn lay_over<S>(&self, rows: &mut [Row<S>]) {
        for (row, hidden) in rows.iter_mut().zip(&self.0) {
            let mut before = false;
            for (cell, hidden) in row.cells.iter_mut().zip(hidden) {
                // Both halves of a wide character go together.
                before = if cell.columns == 0 { before } else { *hidden };
                if before {
                    cell.mask();
                } else {
                    cell.show_only_visible();
                }
            }
        }
    }
}
