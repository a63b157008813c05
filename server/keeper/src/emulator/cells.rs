//! Cells as the redaction reads them, and rows as viewers draw them.

use crate::screen::{Attrs, Colour, Row, Run};
use alacritty_terminal::grid::{Dimensions as _, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell as GridCell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};
use svc_domain::redact::screen;

/// Colours and attributes of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style {
    fg: Colour,
    bg: Colour,
    attrs: Attrs,
}

pub(super) type CellRow = screen::Row<Style>;

/// A row of the grid, without blanks at its end.
pub(super) fn row(grid: &Grid<GridCell>, line: Line) -> CellRow {
    let columns = grid.columns();
    let from = &grid[line];
    let mut cells: Vec<screen::Cell<Style>> = Vec::with_capacity(columns);
    let mut wrapped = false;
    for column in 0..columns {
        let cell = &from[Column(column)];
        wrapped = cell.flags.contains(Flags::WRAPLINE);
        cells.push(converted(cell));
    }
    // A row that goes on keeps its blanks: the text goes on behind them.
    if !wrapped {
        let blank = screen::Cell::default();
        let used = cells.iter().rposition(|cell| *cell != blank).map_or(0, |last| last + 1);
        cells.truncate(used);
        cells.shrink_to_fit();
    }
    CellRow { cells, wrapped }
}

fn converted(cell: &GridCell) -> screen::Cell<Style> {
    let flags = cell.flags;
    let second_half = flags.contains(Flags::WIDE_CHAR_SPACER);
    let shown = !flags.contains(Flags::HIDDEN) && !cell.c.is_control() && !second_half;
    let marks = cell.zerowidth().filter(|marks| shown && !marks.is_empty());
    screen::Cell {
        base: if shown { cell.c } else { ' ' },
        marks: marks.map(|marks| marks.iter().collect::<String>().into_boxed_str()),
        columns: match (second_half, flags.contains(Flags::WIDE_CHAR)) {
            (true, _) => 0,
            (false, true) => 2,
            (false, false) => 1,
        },
        style: style(cell),
    }
}

fn style(cell: &GridCell) -> Style {
    let has = |flag| cell.flags.contains(flag);
    let attrs = Attrs::default()
        .with(Attrs::BOLD, has(Flags::BOLD))
        .with(Attrs::DIM, has(Flags::DIM))
        .with(Attrs::ITALIC, has(Flags::ITALIC))
        .with(Attrs::UNDERLINE, cell.flags.intersects(Flags::ALL_UNDERLINES))
        .with(Attrs::INVERSE, has(Flags::INVERSE))
        .with(Attrs::STRIKE, has(Flags::STRIKEOUT));
    Style { fg: colour(cell.fg), bg: colour(cell.bg), attrs }
}

fn colour(color: Color) -> Colour {
    match color {
        Color::Indexed(index) => Colour::Indexed(index),
        Color::Spec(rgb) => Colour::Rgb(rgb.r, rgb.g, rgb.b),
        // The first sixteen have the numbers of the table; the others mean the viewer's own.
        Color::Named(named) => match u8::try_from(named as usize) {
            Ok(index @ 0..16) => Colour::Indexed(index),
            Ok(_) | Err(_) => dim(named),
        },
    }
}

fn dim(named: NamedColor) -> Colour {
    let first = NamedColor::DimBlack as usize;
    match (named as usize).checked_sub(first).map(u8::try_from) {
        Some(Ok(index @ 0..8)) => Colour::Indexed(index),
        Some(_) | None => Colour::Default,
    }
}

/// A row as viewers draw it.
pub(super) fn shown(row: &CellRow) -> Row {
    let runs = row.runs().into_iter().map(|run| Run {
        text: run.text,
        fg: run.style.fg,
        bg: run.style.bg,
        attrs: run.style.attrs,
        cells: run.columns,
    });
    Row { runs: runs.collect(), wrapped: row.wrapped }
}
