//! The allow list between the parser and the grid.
//!
//! A sequence that is not here does nothing: titles, clipboard, bell, palette, reports of modes and of
//! titles. Answers to queries are constant text; only the cursor's position has numbers in it (H55).

use super::above::Above;
use super::cells;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Term, TermMode};
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, Hyperlink, LineClearMode,
    Mode, PrivateMode, StandardCharset, TabulationClearMode,
};

/// Most combining marks of a cell (H54).
const MOST_MARKS: usize = 16;
/// Most bytes of answers that wait for the agent to read them.
const MOST_REPLIES: usize = 4 << 10;
/// What the keeper looks for in targets of links.
pub(super) const URL_MARKER: &str = "claude.ai/code/session_";

/// A VT102, as the agents expect it.
const PRIMARY_ATTRIBUTES: &str = "\x1b[?6c";
const SECONDARY_ATTRIBUTES: &str = "\x1b[>0;0;0c";
const STATUS_OK: &str = "\x1b[0n";

/// The grid, and what came out of it.
pub(super) struct Draw {
    pub(super) term: Term<VoidListener>,
    pub(super) above: Above,
    pub(super) replies: Vec<u8>,
    pub(super) link: Option<String>,
}

impl Draw {
    pub(super) fn new(term: Term<VoidListener>, above: Above) -> Self {
        Self { term, above, replies: Vec::new(), link: None }
    }

    /// Moves the lines above the screen out of the grid.
    pub(super) fn move_above(&mut self) {
        let lines = self.term.history_size();
        for line in (1..=lines).rev() {
            let line = Line(i32::try_from(line).unwrap_or_default().saturating_neg());
            self.above.push(&cells::row(self.term.grid(), line));
        }
        if lines > 0 {
            self.term.grid_mut().clear_history();
        }
    }

    fn after(&mut self) {
        if self.term.history_size() >= super::MOVE_AT {
            self.move_above();
        }
    }

    /// An answer; dropped while the agent does not read the ones before.
    fn reply(&mut self, text: &str) {
        if self.replies.len().saturating_add(text.len()) <= MOST_REPLIES {
            self.replies.extend_from_slice(text.as_bytes());
        }
    }

    /// Whether the cell that a combining mark would join has enough of them.
    fn is_full_of_marks(&self) -> bool {
        let grid = self.term.grid();
        let mut column = grid.cursor.point.column;
        if !grid.cursor.input_needs_wrap {
            column.0 = column.0.saturating_sub(1);
        }
        let row = &grid[grid.cursor.point.line];
        if row[column].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column.0 = column.0.saturating_sub(1);
        }
        row[column].zerowidth().is_some_and(|marks| marks.len() >= MOST_MARKS)
    }
}

macro_rules! drawn {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $name(&mut self, $($argument: $kind),*) {
            Handler::$name(&mut self.term, $($argument),*);
            self.after();
        })*
    };
}

impl Handler for Draw {
    drawn! {
        set_cursor_style(style: Option<CursorStyle>);
        set_cursor_shape(shape: CursorShape);
        goto(line: i32, column: usize);
        goto_line(line: i32);
        goto_col(column: usize);
        insert_blank(count: usize);
        move_up(count: usize);
        move_down(count: usize);
        move_forward(count: usize);
        move_backward(count: usize);
        move_down_and_cr(count: usize);
        move_up_and_cr(count: usize);
        put_tab(count: u16);
        backspace();
        carriage_return();
        newline();
        substitute();
        set_horizontal_tabstop();
        scroll_up(count: usize);
        scroll_down(count: usize);
        insert_blank_lines(count: usize);
        delete_lines(count: usize);
        erase_chars(count: usize);
        move_backward_tabs(count: u16);
        move_forward_tabs(count: u16);
        save_cursor_position();
        restore_cursor_position();
        clear_line(mode: LineClearMode);
        clear_tabs(mode: TabulationClearMode);
        set_tabs(interval: u16);
        reverse_index();
        terminal_attribute(attribute: Attr);
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        set_private_mode(mode: PrivateMode);
        unset_private_mode(mode: PrivateMode);
        set_scrolling_region(top: usize, bottom: Option<usize>);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        set_active_charset(index: CharsetIndex);
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        decaln();
    }

    fn input(&mut self, character: char) {
        use unicode_width::UnicodeWidthChar as _;
        if character.width() == Some(0) && self.is_full_of_marks() {
            return;
        }
        Handler::input(&mut self.term, character);
        self.after();
    }

    fn linefeed(&mut self) {
        Handler::linefeed(&mut self.term);
        if self.term.mode().contains(TermMode::LINE_FEED_NEW_LINE) {
            Handler::carriage_return(&mut self.term);
        }
        self.after();
    }

    fn delete_chars(&mut self, count: usize) {
        // The grid clears as many columns at the end of the row, also those before the cursor.
        let column = self.term.grid().cursor.point.column.0;
        let left = self.term.columns().saturating_sub(column);
        Handler::delete_chars(&mut self.term, count.min(left));
        self.after();
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        if matches!(mode, ClearMode::Saved) {
            self.move_above();
            self.above.clear();
        }
        Handler::clear_screen(&mut self.term, mode);
        self.after();
    }

    fn reset_state(&mut self) {
        self.move_above();
        self.above.clear();
        Handler::reset_state(&mut self.term);
    }

    fn set_hyperlink(&mut self, link: Option<Hyperlink>) {
        // The grid does not get it: targets are never shown.
        if let Some(link) = link.filter(|link| link.uri.contains(URL_MARKER)) {
            self.link = Some(link.uri);
        }
    }

    fn identify_terminal(&mut self, intermediate: Option<char>) {
        match intermediate {
            None => self.reply(PRIMARY_ATTRIBUTES),
            Some('>') => self.reply(SECONDARY_ATTRIBUTES),
            Some(_) => {}
        }
    }

    fn device_status(&mut self, what: usize) {
        match what {
            5 => self.reply(STATUS_OK),
            6 => {
                let point = self.term.grid().cursor.point;
                let (row, column) =
                    (point.line.0.saturating_add(1), point.column.0.saturating_add(1));
                self.reply(&format!("\x1b[{row};{column}R"));
            }
            _ => {}
        }
    }

    fn text_area_size_chars(&mut self) {
        let (rows, columns) = (self.term.screen_lines(), self.term.columns());
        self.reply(&format!("\x1b[8;{rows};{columns}t"));
    }
}
