//! Standard output and standard error of commands: tables, JSON documents, notes.
//!
//! The only place that prints. Data of others can neither steer the terminal nor break a line.

use crate::cli::failure::End;
use crate::logging;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use svc_domain::log_escape::{escape, escape_json, strip_controls};
use unicode_width::UnicodeWidthStr;

/// Where results and notes go, and whether they may have colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    colour: bool,
}

/// How a cell is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Attention,
    Bad,
}

impl Tone {
    /// Parameter of the select-graphic-rendition sequence (ECMA-48 §8.3.117).
    fn colour(self) -> Option<u8> {
        match self {
            Self::Plain => None,
            Self::Good => Some(32),
            Self::Attention => Some(33),
            Self::Bad => Some(31),
        }
    }
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn toned(text: &str, tone: Tone) -> Self {
        Self { text: escape(text).into_owned(), tone }
    }
}

impl Cell {
    /// The text as it is printed.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text.as_ref(), Tone::Plain)
    }
}

impl Output {
    /// Colour only for a terminal, and only where nobody objects.
    pub(crate) fn new(no_color: bool) -> Self {
        let objection = no_color || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
        Self { colour: !objection && io::stdout().is_terminal() }
    }

    /// One result line.
    pub(crate) fn line(self, text: &str) -> Result<(), End> {
        write_out(&format!("{}\n", escape(text)))
    }

    /// One line of a log: tabs stay, what steers a terminal goes.
    pub(crate) fn log_line(self, text: &str) -> Result<(), End> {
        write_out(&format!("{}\n", strip_controls(text)))
    }

    /// The one JSON document of a command.
    pub(crate) fn json<T: Serialize + ?Sized>(self, document: &T) -> Result<(), End> {
        let text = serde_json::to_string_pretty(document).map_err(End::of_machine)?;
        write_out(&format!("{}\n", escape_json(&text)))
    }

    /// One of many JSON documents, on a line of its own.
    pub(crate) fn json_line<T: Serialize + ?Sized>(self, document: &T) -> Result<(), End> {
        let text = serde_json::to_string(document).map_err(End::of_machine)?;
        write_out(&format!("{}\n", escape_json(&text)))
    }

    /// A table with a header row.
    pub(crate) fn table<const N: usize>(
        self,
        header: [&str; N],
        rows: &[[Cell; N]],
    ) -> Result<(), End> {
        write_out(&layout(header, rows, self.colour, terminal_width()))
    }

    /// One indented line of cells, two blanks before each.
    pub(crate) fn row<const N: usize>(self, cells: &[Cell; N]) -> Result<(), End> {
        let mut line = String::new();
        for cell in cells {
            line.push_str("  ");
            line.push_str(&painted(cell, self.colour));
        }
        write_out(&format!("{}\n", line.trim_end()))
    }

    /// A remark on standard error, one prefix per line.
    pub(crate) fn note(self, text: &str) {
        match text.strip_prefix("warning: ") {
            Some(warning) => self.say("WARNING", warning, text),
            None => self.say("INFO", text, text),
        }
    }

    /// One line on standard error as other programs expect it, without a prefix.
    pub(crate) fn banner(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", escape(text));
    }

    /// Why a command fails, on standard error.
    pub(crate) fn complain(self, text: &str) {
        self.say("ERROR", text, text);
    }

    /// `message` as an entry of a log for programs, else `text` with the prefix.
    fn say(self, level: &'static str, message: &str, text: &str) {
        let mut prefixed = String::new();
        let entry = logging::as_entry(level, message);
        let lines = if entry.is_some() { "" } else { text };
        prefixed.extend(entry);
        for line in lines.lines() {
            prefixed.push_str("svc: ");
            prefixed.push_str(&escape(line));
            prefixed.push('\n');
        }
        // With standard error gone there is nowhere left to say so.
        let _ = io::stderr().lock().write_all(prefixed.as_bytes());
    }

    /// A text that is meant for another program: as it is.
    pub(crate) fn raw(self, text: &str) -> Result<(), End> {
        write_out(text)
    }

    /// Text made by the argument parser, on standard output.
    pub(crate) fn help(self, text: &clap::builder::StyledStr) -> Result<(), End> {
        if self.colour { write_out(&text.ansi().to_string()) } else { write_out(&text.to_string()) }
    }
}

fn write_out(text: &str) -> Result<(), End> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| End::of_output(&error))
}

/// Columns of the terminal; `None` where the output goes elsewhere and is not cut.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// Width below which no column is cut: a few characters and the ellipsis.
const NARROW: usize = 6;

/// Takes from the widest columns until all of them fit.
fn fit<const N: usize>(widths: &mut [usize; N], room: usize) {
    let gaps = 2 * N.saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > room {
        // Of equals the last: it explains, the first ones name.
        let Some(widest) = widths.iter_mut().max_by_key(|width| **width) else { return };
        if *widest <= NARROW {
            return;
        }
        *widest -= 1;
    }
}

/// A text cut to a width, with an ellipsis where something is missing.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        let mut longer = kept.clone();
        longer.push(letter);
        if longer.width() + 1 > width {
            break;
        }
        kept = longer;
    }
    kept.push('…');
    kept
}

fn layout<const N: usize>(
    header: [&str; N],
    rows: &[[Cell; N]],
    colour: bool,
    room: Option<usize>,
) -> String {
    let header = header.map(Cell::from);
    let all = || std::iter::once(&header).chain(rows);
    let mut widths = [0; N];
    for row in all() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.text.width());
        }
    }
    if let Some(room) = room {
        fit(&mut widths, room);
    }
    let mut table = String::new();
    for row in all() {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let cell = Cell { text: cut(&cell.text, *width), tone: cell.tone };
            let padding = " ".repeat(width.saturating_sub(cell.text.width()) + 2);
            line.push_str(&painted(&cell, colour));
            line.push_str(&padding);
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

fn painted(cell: &Cell, colour: bool) -> String {
    match cell.tone.colour().filter(|_| colour) {
        Some(code) => format!("\u{1b}[{code}m{}\u{1b}[0m", cell.text),
        None => cell.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks() {
        let rows = [["a".into(), Cell::from("x")], ["longer".into(), "".into()]];
        assert_eq!(layout(["NAME", "B"], &rows, false, None), "NAME    B\na       x\nlonger\n");
        let wide = [["漢字".into(), Cell::from("x")]];
        assert_eq!(layout(["A", "B"], &wide, false, None), "A     B\n漢字  x\n");
    }

    #[test]
    fn a_label_with_a_line_end_stays_in_its_cell() {
        let rows = [[Cell::from("a\nb\u{1b}[31m"), Cell::from("x")]];
        assert_eq!(
            layout(["L", "B"], &rows, false, None),
            "L               B\na\\x0ab\\x1b[31m  x\n"
        );
    }

    #[test]
    fn colour_does_not_count_as_width() {
        let rows = [[Cell::toned("up", Tone::Good), Cell::from("x")]];
        assert_eq!(layout(["S", "B"], &rows, true, None), "S   B\n\u{1b}[32mup\u{1b}[0m  x\n");
        assert_eq!(layout(["S", "B"], &rows, false, None), "S   B\nup  x\n");
    }

    #[test]
    fn a_table_is_never_wider_than_the_terminal() {
        let long = "a name without any place to break it".repeat(3);
        let rows =
            [[Cell::from("1f0e2d3c"), Cell::from(long.as_str()), Cell::from("漢字漢字漢字漢字")]];
        for room in [24, 40, 80] {
            let table = layout(["ID", "PROJECT", "LABEL"], &rows, false, Some(room));
            assert!(table.lines().all(|line| line.width() <= room), "{room}: {table}");
            assert!(table.contains('…') && table.contains("1f0e2d"), "{room}: {table}");
        }
        assert!(!layout(["ID", "PROJECT", "LABEL"], &rows, false, Some(200)).contains('…'));
        assert!(layout(["ID", "PROJECT", "LABEL"], &rows, false, None).contains(&long));
    }
}
