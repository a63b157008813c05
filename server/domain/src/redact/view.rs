//! A text derived from another one, with the way back to the original offsets.

use std::ops::Range;

/// A derived text. Offsets are bytes.
#[derive(Default)]
pub(super) struct View {
    text: String,
    /// From `at` on, the derived text runs in step with the original from `source` on.
    runs: Vec<Run>,
}

struct Run {
    at: usize,
    source: usize,
}

impl View {
    /// The derived text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The derived text, without the way back.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Appends a piece of the original as it is.
    pub fn copy(&mut self, original: &str, range: Range<usize>) {
        let Some(piece) = original.get(range.clone()).filter(|piece| !piece.is_empty()) else {
            return;
        };
        self.runs.push(Run { at: self.text.len(), source: range.start });
        self.text.push_str(piece);
    }

    /// Appends a character for the piece of the original that begins at `source`.
    pub fn put(&mut self, c: char, source: usize) {
        self.runs.push(Run { at: self.text.len(), source });
        self.text.push(c);
    }

    /// Must follow the last piece: ties the two ends together.
    pub fn finish(&mut self, original_len: usize) {
        self.runs.push(Run { at: self.text.len(), source: original_len });
    }

    /// The original offset of a character boundary of the derived text.
    /// Text that was removed just before the boundary counts as before it, so a mapped span covers
    /// everything it was made from.
    pub fn source(&self, at: usize) -> usize {
        let after = self.runs.partition_point(|run| run.at <= at);
        self.runs
            .get(after.saturating_sub(1))
            .map_or(at, |run| run.source + at.saturating_sub(run.at))
    }

    /// The offset in the derived text of an offset of the original.
    /// One inside removed text counts as behind it.
    pub fn derived(&self, source: usize) -> usize {
        let after = self.runs.partition_point(|run| run.source <= source);
        let next = self.runs.get(after).map_or(self.text.len(), |run| run.at);
        match after.checked_sub(1).and_then(|run| self.runs.get(run)) {
            Some(run) => (run.at + (source - run.source)).min(next),
            None => next.min(source),
        }
    }
}
