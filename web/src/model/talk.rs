//! Rules of the reader of conversations.
//!
//! Which turns are shown, and how one is summed up.

use crate::text::conversation as words;
use std::sync::Arc;
use svc_shared::internal::conversations::{Block, BlockKind, Turn, TurnRole};

/// Turns that are shown at most: older or newer ones give way.
pub const MOST: usize = 1_000;

/// Turns of a page.
pub const PAGE: u64 = 100;

/// Turns in a row, and how many there are in all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Window {
    turns: Vec<Arc<Turn>>,
    /// How many turns the conversation has.
    pub total: u64,
}

impl Window {
    /// These turns, in the order of the file.
    #[must_use]
    pub fn of(turns: Vec<Turn>, total: u64) -> Self {
        Self { turns: turns.into_iter().map(Arc::new).collect(), total }
    }

    /// The turns, oldest first.
    #[must_use]
    pub fn turns(&self) -> &[Arc<Turn>] {
        &self.turns
    }

    /// Index of the oldest turn that is shown.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.turns.first().map_or(0, |turn| turn.index)
    }

    /// Index after the newest turn that is shown.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.turns.last().map_or(0, |turn| turn.index + 1)
    }

    /// Shows the newest turn there is.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.end() >= self.total
    }

    /// Where to read what is older, and how many turns; `None` at the start.
    #[must_use]
    pub fn older(&self) -> Option<(u64, u64)> {
        let first = self.first();
        let from = first.saturating_sub(PAGE);
        (first > 0).then_some((from, first - from))
    }

    /// Puts older turns in front. The newest give way when there are too many.
    pub fn prepend(&mut self, turns: Vec<Turn>) {
        let first = self.first();
        let older = turns.into_iter().filter(|turn| turn.index < first).map(Arc::new);
        let mut all: Vec<Arc<Turn>> = older.collect();
        all.append(&mut self.turns);
        all.truncate(MOST);
        self.turns = all;
    }

    /// Puts newer turns at the end, if they follow on. Returns how many came.
    ///
    /// The oldest give way when there are too many.
    pub fn append(&mut self, turns: Vec<Turn>, total: u64) -> usize {
        self.total = total.max(self.total);
        let mut added = 0;
        for turn in turns {
            if self.turns.is_empty() || turn.index == self.end() {
                self.turns.push(Arc::new(turn));
                added += 1;
            }
        }
        let excess = self.turns.len().saturating_sub(MOST);
        self.turns.drain(..excess);
        added
    }
}

/// Who speaks, as a heading.
/// `None` for the results of tools, which belong to what is above.
#[must_use]
pub fn speaker(turn: &Turn) -> Option<&'static str> {
    match turn.role.known() {
        Some(TurnRole::User) => Some(words::YOU),
        Some(TurnRole::Assistant) => Some(words::AGENT),
        Some(TurnRole::Tool) => None,
        Some(TurnRole::System) | None => Some(words::SYSTEM),
    }
}

/// The class of a turn.
#[must_use]
pub fn class(turn: &Turn) -> &'static str {
    match turn.role.known() {
        Some(TurnRole::User) => "turn turn-user",
        Some(TurnRole::Tool) => "turn turn-tool",
        Some(TurnRole::Assistant | TurnRole::System) | None => "turn",
    }
}

/// How a part is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// As prose.
    Prose,
    /// Folded under a title, with a summary beside it.
    Folded {
        /// Title.
        title: String,
        /// The first line of what is inside.
        summary: String,
        /// The tool failed.
        is_error: bool,
    },
}

/// How a part is shown.
#[must_use]
pub fn shown(block: &Block) -> Shown {
    let title = match block.kind.known() {
        Some(BlockKind::Text) => return Shown::Prose,
        Some(BlockKind::Thinking) => words::THOUGHT.to_owned(),
        Some(BlockKind::ToolUse) => block.tool.clone().unwrap_or_else(|| words::TOOL.to_owned()),
        Some(BlockKind::ToolResult) if block.is_error => words::FAILED.to_owned(),
        Some(BlockKind::ToolResult) => words::RESULT.to_owned(),
        Some(BlockKind::Other) | None => words::OTHER.to_owned(),
    };
    let first = block.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // `command: npm test`: the name of the argument says nothing here.
    let value = match block.kind.is(&BlockKind::ToolUse) {
        true => first.split_once(": ").map_or(first, |(_, value)| value),
        false => first,
    };
    let summary = value.chars().take(120).collect();
    Shown::Folded { title, summary, is_error: block.is_error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::Word;

    fn turn(index: u64) -> Turn {
        let role = Word::from(TurnRole::User);
        Turn { index, role, content: Vec::new(), model: None, timestamp: None }
    }

    fn turns(range: std::ops::Range<u64>) -> Vec<Turn> {
        range.map(turn).collect()
    }

    #[test]
    fn a_window_grows_at_both_ends_and_stays_in_a_row() {
        let mut window = Window::of(turns(100..200), 200);
        assert_eq!((window.older(), window.is_at_end()), (Some((0, 100)), true));
        window.prepend(turns(50..150));
        assert_eq!((window.first(), window.end(), window.turns().len()), (50, 200, 150));
        assert_eq!(window.older(), Some((0, 50)));
        // A turn that leaves a gap, or is there already, is not shown.
        assert_eq!(window.append(vec![turn(199), turn(200), turn(202)], 203), 1);
        assert_eq!((window.end(), window.is_at_end()), (201, false));
        window.prepend(turns(0..50));
        assert_eq!(window.older(), None);
    }

    #[test]
    fn what_is_too_much_gives_way_at_the_other_end() {
        let mut window = Window::of(turns(1_000..2_000), 2_000);
        window.prepend(turns(900..1_000));
        assert_eq!((window.first(), window.end()), (900, 1_900));
        assert_eq!(window.append(turns(1_900..2_000), 2_000), 100);
        assert_eq!((window.first(), window.end(), window.is_at_end()), (1_000, 2_000, true));
    }

    #[test]
    fn a_call_is_summed_up_by_its_first_argument() {
        let block = |kind: BlockKind, text: &str, tool: Option<&str>| Block {
            kind: Word::from(kind),
            text: text.to_owned(),
            tool: tool.map(str::to_owned),
            is_error: false,
            truncated: false,
        };
        let folded = |title: &str, summary: &str| Shown::Folded {
            title: title.to_owned(),
            summary: summary.to_owned(),
            is_error: false,
        };
        let call = block(BlockKind::ToolUse, "command: npm test\nx: 1", Some("Bash"));
        assert_eq!(shown(&call), folded("Bash", "npm test"));
        assert_eq!(
            shown(&block(BlockKind::ToolResult, "\nok: yes", None)),
            folded("Result", "ok: yes")
        );
        assert_eq!(shown(&block(BlockKind::Text, "x", None)), Shown::Prose);
    }
}
