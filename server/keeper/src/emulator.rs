//! The emulator: bytes of the agent in, a grid of cells out.
//!
//! `alacritty_terminal` draws. What reaches it is an allow list (`draw`): titles, clipboard, colours of
//! the palette and everything that reports input back are not in it. Lines that leave the screen at
//! its top are kept here in a compact form (`above`), so that they can be counted and capped.

mod above;
mod cells;
mod draw;
mod strings;

use crate::screen::{Cursor, CursorShape, Modes, Row, Size};
use above::Above;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{self, Processor};
use cells::CellRow;
use draw::Draw;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use strings::StringLimit;
use svc_domain::redact::screen::{Position, redact};

/// Lines that the grid keeps above the screen before they are moved to [`Above`].
///
/// The grid allocates 1000 lines at once. One sequence scrolls at most one screen of 200 lines.
const GRID_HISTORY: usize = 900;
const MOVE_AT: usize = 600;
/// Rows around a piece of text that are redacted with it: longer lines are rare.
const CONTEXT: usize = 30;
/// A synchronized update that is not ended is shown after this time.
const SYNC_LIMIT: Duration = Duration::from_millis(150);

/// What a viewer sees, redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) size: Size,
    pub(crate) rows: Vec<Row>,
    pub(crate) cursor: Cursor,
    pub(crate) modes: Modes,
    pub(crate) scroll_base: u64,
    pub(crate) scroll_first: u64,
}

/// The emulator.
pub(crate) struct Emulator {
    parser: Processor,
    strings: StringLimit,
    draw: Draw,
    size: Size,
    sync_since: Option<Instant>,
    faults: u64,
    /// The cells that the rows of the last picture were made of.
    seen: Vec<CellRow>,
    shown: Vec<Row>,
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        usize::from(self.rows())
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.rows())
    }

    fn columns(&self) -> usize {
        usize::from(self.cols())
    }
}

fn term(size: Size) -> Term<VoidListener> {
    let config = Config {
        scrolling_history: GRID_HISTORY,
        osc52: Osc52::Disabled,
        kitty_keyboard: false,
        ..Config::default()
    };
    Term::new(config, &size, VoidListener)
}

impl Emulator {
    /// A blank screen; `scrollback` lines are kept above it.
    pub(crate) fn new(size: Size, scrollback: usize) -> Self {
        Self {
            parser: Processor::new(),
            strings: StringLimit::default(),
            draw: Draw::new(term(size), Above::new(scrollback)),
            size,
            sync_since: None,
            faults: 0,
            seen: Vec::new(),
            shown: Vec::new(),
        }
    }

    /// Draws bytes.
    ///
    /// Never fails: a fault of the parser resets the screen and is counted.
    pub(crate) fn feed(&mut self, bytes: &[u8], now: Instant) {
        let Self { parser, strings, draw, .. } = self;
        let fed = catch_unwind(AssertUnwindSafe(|| {
            strings.pass(bytes, |piece| parser.advance(draw, piece));
        }));
        if fed.is_err() {
            self.reset_after_fault();
        }
        self.tick(now);
    }

    /// Shows a synchronized update that takes too long.
    pub(crate) fn tick(&mut self, now: Instant) {
        let pending = self.parser.sync_timeout().sync_timeout().is_some();
        if !pending {
            self.sync_since = None;
            return;
        }
        let since = *self.sync_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= SYNC_LIMIT {
            self.flush();
        }
    }

    /// Shows what a synchronized update holds back.
    pub(crate) fn flush(&mut self) {
        self.sync_since = None;
        let Self { parser, draw, .. } = self;
        if catch_unwind(AssertUnwindSafe(|| parser.stop_sync(draw))).is_err() {
            self.reset_after_fault();
        }
    }

    /// When [`Self::tick`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.sync_since.map(|since| since + SYNC_LIMIT)
    }

    fn reset_after_fault(&mut self) {
        self.faults = self.faults.saturating_add(1);
        self.parser = Processor::new();
        self.strings = StringLimit::default();
        let mut above = std::mem::replace(&mut self.draw.above, Above::new(0));
        above.add_unknown(1);
        self.draw = Draw::new(term(self.size), above);
    }

    /// Changes the size. Lines that do not fit any more move above the screen.
    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size;
        self.draw.move_above();
        let Self { draw, .. } = self;
        if catch_unwind(AssertUnwindSafe(|| draw.term.resize(size))).is_err() {
            self.reset_after_fault();
        }
        self.draw.move_above();
    }

    /// What the terminal answers to queries since the last call.
    pub(crate) fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.draw.replies)
    }

    /// Targets of links with the marker of a connect URL, since the last call.
    pub(crate) fn take_link(&mut self) -> Option<String> {
        self.draw.link.take()
    }

    /// Faults of the parser so far.
    pub(crate) fn faults(&self) -> u64 {
        self.faults
    }

    /// Bytes of control strings that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.strings.dropped()
    }

    /// Lines kept above the screen.
    pub(crate) fn lines_above(&self) -> usize {
        self.draw.above.len()
    }

    /// The screen as logical lines, not redacted: for finding, never for showing.
    pub(crate) fn raw_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut goes_on = false;
        for row in self.cells() {
            let text: String =
                row.cells.iter().filter(|cell| cell.columns > 0).map(|cell| cell.base).collect();
            match lines.last_mut() {
                Some(line) if goes_on => line.push_str(&text),
                Some(_) | None => lines.push(text),
            }
            goes_on = row.wrapped;
        }
        lines
    }

    fn cells(&self) -> Vec<CellRow> {
        let grid = self.draw.term.grid();
        let rows = i32::from(self.size.rows());
        (0..rows).map(|line| cells::row(grid, Line(line))).collect()
    }

    /// The screen, redacted.
    pub(crate) fn picture(&mut self) -> Picture {
        self.draw.move_above();
        let modes = *self.draw.term.mode();
        let point = self.draw.term.grid().cursor.point;
        let y = usize::try_from(point.line.0).unwrap_or_default();
        let style = self.draw.term.cursor_style();
        let cursor = Cursor {
            x: u16::try_from(point.column.0).unwrap_or_default(),
            y: u16::try_from(y).unwrap_or_default(),
            visible: modes.contains(TermMode::SHOW_CURSOR)
                && style.shape != ansi::CursorShape::Hidden,
            shape: match style.shape {
                ansi::CursorShape::Underline => CursorShape::Underline,
                ansi::CursorShape::Beam => CursorShape::Bar,
                ansi::CursorShape::Block
                | ansi::CursorShape::HollowBlock
                | ansi::CursorShape::Hidden => CursorShape::Block,
            },
        };
        let cells = self.cells();
        // The position of the cursor decides whether a text may be the beginning of a secret.
        if cells != self.seen || self.shown.is_empty() {
            let alt = modes.contains(TermMode::ALT_SCREEN);
            let context = if alt { Vec::new() } else { self.draw.above.last(CONTEXT) };
            let skip = context.len();
            let mut rows = context;
            rows.extend(cells.iter().cloned());
            redact(
                &mut rows,
                Some(Position { row: skip.saturating_add(y), column: point.column.0 }),
            );
            self.shown = rows.iter().skip(skip).map(cells::shown).collect();
            self.seen = cells;
        }
        let above = &self.draw.above;
        Picture {
            size: self.size,
            rows: self.shown.clone(),
            cursor,
            modes: Modes {
                alt: modes.contains(TermMode::ALT_SCREEN),
                app_cursor: modes.contains(TermMode::APP_CURSOR),
                bracketed_paste: modes.contains(TermMode::BRACKETED_PASTE),
                mouse: modes.intersects(TermMode::MOUSE_MODE),
            },
            scroll_base: above.base(),
            scroll_first: above.first(),
        }
    }

    /// Lines above the screen, redacted, with the number of the first.
    ///
    /// Those that are kept of `n` lines from `from` on.
    pub(crate) fn lines(&mut self, from: u64, n: usize) -> (u64, Vec<Row>) {
        self.draw.move_above();
        let above = &self.draw.above;
        let first = from.max(above.first());
        let before = first.saturating_sub(above.first()).min(CONTEXT as u64);
        let wanted =
            n.min(usize::try_from(above.base().saturating_sub(first)).unwrap_or(usize::MAX));
        if wanted == 0 {
            return (first, Vec::new());
        }
        let skip = usize::try_from(before).unwrap_or_default();
        let mut rows =
            above.rows(first - before, skip.saturating_add(wanted).saturating_add(CONTEXT));
        if !self.draw.term.mode().contains(TermMode::ALT_SCREEN) {
            rows.extend(self.cells().into_iter().take(CONTEXT));
        }
        redact(&mut rows, None);
        (first, rows.iter().skip(skip).take(wanted).map(cells::shown).collect())
    }
}

/// A character of the grid with its combining marks, not redacted.
#[cfg(test)]
pub(crate) fn character(emulator: &Emulator, row: u16, column: u16) -> String {
    let grid = emulator.draw.term.grid();
    let cell = &grid[Line(i32::from(row))][alacritty_terminal::index::Column(usize::from(column))];
    let marks = cell.zerowidth().unwrap_or_default();
    std::iter::once(cell.c).chain(marks.iter().copied()).collect()
}

#[cfg(test)]
mod tests;
