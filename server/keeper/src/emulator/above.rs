//! The lines that left the screen at its top.

use super::cells::{CellRow, Style};
use std::collections::VecDeque;
use svc_domain::redact::screen::{Cell, Row};

/// A line in few bytes: its text, and where another style begins.
#[derive(Debug)]
struct Stored {
    wrapped: bool,
    /// Each cell's character with its marks, without second halves of wide ones.
    text: Box<str>,
    /// Style, and how many cells have it.
    styles: Box<[(Style, u16)]>,
    /// Cells that are not one character in one column: index, bytes and columns.
    odd: Box<[(u16, u16, u8)]>,
}

/// A ring of lines, numbered from the first line that ever left the screen.
#[derive(Debug)]
pub(super) struct Above {
    most: usize,
    lines: VecDeque<Stored>,
    base: u64,
}

impl Above {
    pub(super) fn new(most: usize) -> Self {
        Self { most, lines: VecDeque::new(), base: 0 }
    }

    /// Number of the next line: that of the first row of the screen.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Number of the oldest line kept.
    pub(super) fn first(&self) -> u64 {
        self.base.saturating_sub(self.lines.len() as u64)
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn push(&mut self, row: &CellRow) {
        self.base = self.base.saturating_add(1);
        if self.most == 0 {
            return;
        }
        if self.lines.len() >= self.most {
            self.lines.pop_front();
        }
        self.lines.push_back(Stored::new(row));
    }

    /// Forgets all lines. Their numbers are not used again.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    /// Counts lines whose content was lost.
    pub(super) fn add_unknown(&mut self, count: u64) {
        self.lines.clear();
        self.base = self.base.saturating_add(count);
    }

    /// The last lines, oldest first.
    pub(super) fn last(&self, count: usize) -> Vec<CellRow> {
        let skip = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skip).map(Stored::row).collect()
    }

    /// Lines from a number on that is kept.
    pub(super) fn rows(&self, from: u64, count: usize) -> Vec<CellRow> {
        let skip = usize::try_from(from.saturating_sub(self.first())).unwrap_or(usize::MAX);
        self.lines.iter().skip(skip).take(count).map(Stored::row).collect()
    }
}

impl Stored {
    fn new(row: &CellRow) -> Self {
        let mut text = String::with_capacity(row.cells.len());
        let mut styles: Vec<(Style, u16)> = Vec::new();
        let mut odd = Vec::new();
        for (index, cell) in row.cells.iter().filter(|cell| cell.columns > 0).enumerate() {
            let start = text.len();
            text.push(cell.base);
            text.push_str(cell.marks.as_deref().unwrap_or_default());
            if cell.columns != 1 || cell.marks.is_some() {
                let bytes = u16::try_from(text.len().saturating_sub(start)).unwrap_or(u16::MAX);
                odd.push((u16::try_from(index).unwrap_or(u16::MAX), bytes, cell.columns));
            }
            match styles.last_mut() {
                Some((style, count)) if *style == cell.style => *count = count.saturating_add(1),
                Some(_) | None => styles.push((cell.style, 1)),
            }
        }
        Self {
            wrapped: row.wrapped,
            text: text.into_boxed_str(),
            styles: styles.into_boxed_slice(),
            odd: odd.into_boxed_slice(),
        }
    }

    fn row(&self) -> CellRow {
        let mut styles = self.styles.iter().flat_map(|(style, count)| (0..*count).map(|_| *style));
        let mut odd = self.odd.iter().peekable();
        let mut rest: &str = &self.text;
        let mut cells = Vec::new();
        let mut index: u16 = 0;
        while let Some(base) = rest.chars().next() {
            let style = styles.next().unwrap_or_default();
            let found = odd.next_if(|(at, ..)| *at == index);
            let bytes = found.map_or(base.len_utf8(), |(_, bytes, _)| usize::from(*bytes));
            let columns = found.map_or(1, |(.., columns)| *columns);
            let (whole, after) = rest.split_at_checked(bytes).unwrap_or((rest, ""));
            let marks = whole.get(base.len_utf8()..).filter(|marks| !marks.is_empty());
            cells.push(Cell { base, marks: marks.map(Into::into), columns, style });
            if columns == 2 {
                cells.push(Cell { base: ' ', marks: None, columns: 0, style });
            }
            rest = after;
            index = index.saturating_add(1);
        }
        Row { cells, wrapped: self.wrapped }
    }
}
