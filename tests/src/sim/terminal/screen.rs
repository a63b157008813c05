//! The screen: lines that scroll away, and below them a block that is redrawn.
//!
//! As the agent does (2.1.197), words are placed by cursor moves instead of spaces, so that hardly
//! any text stands in the byte stream as it stands on the screen.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::tty;
use crate::sim::tui::Tui;

/// Lines kept for drawing everything again after a resize.
const KEPT: usize = 500;
/// Longest piece of an address that is written without a cursor move.
const PIECE: usize = 7;

/// One logical line, wrapped to the width when it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    style: &'static str,
    /// Columns in front of each row.
    indent: usize,
    text: String,
}

impl Line {
    pub(super) fn new(style: &'static str, indent: usize, text: impl Into<String>) -> Self {
        Self { style, indent, text: text.into() }
    }

    /// The rows of this line, with their cursor moves.
    fn rows(&self, cols: usize) -> Vec<String> {
        let room = cols.saturating_sub(self.indent).max(1);
        wrapped(&self.text, room).iter().map(|row| self.row(row)).collect()
    }

    fn row(&self, text: &str) -> String {
        let mut out = self.style.to_owned();
        let mut column = self.indent + 1;
        for word in text.split(' ') {
            if word.contains("://") {
                out.push_str(&in_pieces(column, word));
            } else if !word.is_empty() {
                out.push_str(&format!("\x1b[{column}G{word}"));
            }
            column += word.width() + 1;
        }
        out.push_str("\x1b[0m");
        out
    }
}

/// Breaks at spaces, and inside of words that are longer than a row.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in text.split(' ') {
        let Some(row) = rows.last_mut() else {
            break;
        };
        if row.is_empty() && word.width() <= room {
            row.push_str(word);
        } else if !row.is_empty() && row.width() + 1 + word.width() <= room {
            row.push(' ');
            row.push_str(word);
        } else {
            let mut part = String::new();
            for character in word.chars() {
                if part.width() + character.width().unwrap_or(0) > room {
                    rows.push(std::mem::take(&mut part));
                }
                part.push(character);
            }
            rows.push(part);
        }
    }
    if rows.len() > 1 && rows.first().is_some_and(String::is_empty) {
        rows.remove(0);
    }
    rows
}

/// An address written every second piece first, each at a column of its own.
fn in_pieces(column: usize, word: &str) -> String {
    let characters: Vec<char> = word.chars().collect();
    let pieces: Vec<(usize, String)> = characters
        .chunks(PIECE)
        .enumerate()
        .map(|(at, piece)| (column + at * PIECE, piece.iter().collect()))
        .collect();
    let odd = pieces.iter().skip(1).step_by(2);
    let even = pieces.iter().step_by(2);
    odd.chain(even).map(|(column, piece)| format!("\x1b[{column}G\x1b[38;5;153m{piece}")).collect()
}

/// The rows below the lines: what a person types, and what goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// Spinner, dialog or hint above the prompt.
    pub(super) above: Vec<Line>,
    pub(super) typed: String,
    pub(super) status: String,
}

pub(super) struct Screen {
    tui: Tui,
    cols: usize,
    rows: usize,
    lines: Vec<Line>,
    /// Rows of the block as it stands on the screen; the cursor is in the last one.
    drawn: usize,
    block: Block,
}

impl Screen {
    pub(super) fn new(tui: &Tui) -> Self {
        let (cols, rows) = tty::size();
        let mut start = String::from("\x1b7\x1b[r\x1b8\x1b[?25h");
        if tui.alt_screen {
            start.push_str("\x1b[?1049h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h");
        }
        start.push_str("\x1b[?25l\x1b[?2004h\x1b[?1004h\x1b[?2031h\x1b]0;✳ Claude Code\x07");
        tty::write(start.as_bytes());
        Self { tui: tui.clone(), cols, rows, lines: Vec::new(), drawn: 0, block: Block::default() }
    }

    /// Prints lines above the block.
    pub(super) fn print(&mut self, lines: impl IntoIterator<Item = Line>) {
        let lines: Vec<Line> = lines.into_iter().collect();
        self.lines.extend(lines.iter().cloned());
        let over = self.lines.len().saturating_sub(KEPT);
        self.lines.drain(..over);
        if self.tui.alt_screen {
            self.draw_all();
            return;
        }
        let mut out = self.erased();
        for row in lines.iter().flat_map(|line| line.rows(self.cols)) {
            out.push_str(&row);
            out.push_str("\r\n");
        }
        self.finish(out);
    }

    /// Shows another block, if it differs.
    pub(super) fn show(&mut self, block: Block) {
        if self.block == block && self.drawn > 0 {
            return;
        }
        self.block = block;
        if self.tui.alt_screen {
            self.draw_all();
        } else {
            let out = self.erased();
            self.finish(out);
        }
    }

    /// Takes over the terminal's new size and draws everything again.
    pub(super) fn resize(&mut self) {
        (self.cols, self.rows) = tty::size();
        if self.tui.resize_echo {
            let text = format!("resized to {}x{}", self.cols, self.rows);
            self.lines.push(Line::new("", 0, text));
        }
        if self.tui.alt_screen {
            self.draw_all();
            return;
        }
        let mut out = String::from("\x1b[2J\x1b[3J\x1b[H");
        for row in self.lines.iter().flat_map(|line| line.rows(self.cols)) {
            out.push_str(&row);
            out.push_str("\r\n");
        }
        self.finish(out);
    }

    /// Bytes of a script, as they are. The block is not below them any more.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        tty::write(bytes);
        self.drawn = 0;
    }

    /// Leaves the terminal as it was, and says how to go on.
    pub(super) fn close(&mut self, conversation: Option<&str>) {
        let mut out = String::from("\x1b[0m");
        if self.tui.alt_screen {
            out.push_str("\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1049l");
        }
        out.push_str("\x1b(B\x0f\x1b[>4m\x1b[<u\x1b[?1004l\x1b[?2031l\x1b[?2004l\x1b[?25h");
        out.push_str("\x1b7\x1b[r\x1b8\x1b]0;\x07\r\n");
        if let Some(id) = conversation {
            out.push_str(&format!(
                "\x1b[2mResume this session with:\x1b[22m\r\n\x1b[2mclaude --resume {id}\x1b[22m\r\n"
            ));
        }
        tty::write(out.as_bytes());
    }

    fn erased(&self) -> String {
        match self.drawn {
            0 => String::new(),
            1 => "\r\x1b[J".to_owned(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        }
    }

    fn finish(&mut self, mut out: String) {
        let rows = self.block_rows();
        self.drawn = rows.len();
        out.push_str(&rows.join("\r\n"));
        tty::write(out.as_bytes());
    }

    fn block_rows(&self) -> Vec<String> {
        if self.tui.bare {
            return Vec::new();
        }
        let above = self.block.above.iter().flat_map(|line| line.rows(self.cols));
        let mut rows: Vec<String> = above.collect();
        let rule = format!("\x1b[38;5;244m{}\x1b[39m", "─".repeat(self.cols.saturating_sub(1)));
        // What does not fit is shown from its end.
        let mut typed = self.block.typed.as_str();
        while typed.width() + 4 > self.cols && !typed.is_empty() {
            typed = typed.chars().next().and_then(|c| typed.get(c.len_utf8()..)).unwrap_or("");
        }
        rows.push(rule.clone());
        rows.push(format!("❯\u{a0}{typed}\x1b[7m \x1b[27m"));
        rows.push(rule);
        let status = Line::new("\x1b[38;5;246m", 2, self.block.status.as_str());
        rows.extend(status.rows(self.cols).into_iter().take(1));
        rows
    }

    /// The alternate screen: a whole frame, row by row.
    fn draw_all(&mut self) {
        let block = self.block_rows();
        let room = self.rows.saturating_sub(block.len());
        let text: Vec<String> = self.lines.iter().flat_map(|line| line.rows(self.cols)).collect();
        let visible = text.get(text.len().saturating_sub(room)..).unwrap_or_default();
        let mut out = String::from("\x1b[?2026h\x1b[2J");
        for (at, row) in visible.iter().chain(&block).enumerate() {
            out.push_str(&format!("\x1b[{};1H{row}", at + 1));
        }
        out.push_str("\x1b[?2026l");
        self.drawn = block.len();
        tty::write(out.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_is_broken_and_a_short_one_moves_to_the_next_row() {
        assert_eq!(wrapped("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn an_address_never_stands_whole_in_the_byte_stream() {
        let url = "https://claude.ai/code/session_01SIMabcdefghijklmnopqr";
        let rows = Line::new("", 2, format!("at {url}")).rows(120);
        assert_eq!(rows.len(), 1);
        assert!(!rows.concat().contains("session_01SIM"));
    }
}
