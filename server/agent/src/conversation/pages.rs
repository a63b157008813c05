//! Pages of turns, forwards and backwards, bounded in bytes.

use super::index::{Index, STRIDE};
use super::lines::{Line, Lines};
use super::record::record;
use super::turn::turn;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use svc_shared::internal::conversations::Turn;

/// Most turns that a follower is given at once (`specification`, limits).
pub const TAIL_TURNS: u64 = 1_000;

/// Bytes of text after which a page ends early.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of the file after which a search goes on with the next page.
const SEARCH_BYTES: u64 = 32 * 1024 * 1024;

/// Turns, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The turns, in the order that was asked for.
    pub turns: Vec<Turn>,
    /// Where to go on, counted as the question was; `None` at the end.
    pub next: Option<u64>,
}

/// The turns of a file of which everything is known.
///
/// The index must have been updated with this very file: a replaced file has another identity.
#[derive(Debug, Clone, Copy)]
pub struct Pages<'p> {
    /// The file.
    pub file: &'p File,
    /// What is known of it.
    pub index: &'p Index,
}

impl Pages<'_> {
    /// At most `most` turns from the turn `from` on, oldest first. Blocks.
    ///
    /// With `find` only turns that contain it, in any case. A page ends early when it is large or
    /// when much was searched, but always goes on by at least one turn.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn forwards(&self, from: u64, most: usize, find: Option<&str>) -> io::Result<Span> {
        let mut page = Page::new(most, find);
        let mut next = None;
        self.walk(from, self.index.turns, |number, offset, line| {
            if !page.wants(offset) {
                next = Some(number);
                return false;
            }
            page.take(number, line);
            true
        })?;
        Ok(Span { turns: page.turns, next })
    }

    /// The same from the newest turn on: `from` counts from the end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn backwards(&self, from: u64, most: usize, find: Option<&str>) -> io::Result<Span> {
        let total = self.index.turns;
        let mut page = Page::new(most, find);
        let mut end = total.saturating_sub(from);
        while end > 0 {
            let begin = (end - 1) / STRIDE * STRIDE;
            // Where the lines are, not the lines: thirty of them may be large.
            let mut lines: Vec<(u64, u64, usize)> = Vec::new();
            let wanted = page.room(end - begin);
            // Without a search only the last turns of the stretch are of interest.
            let first = if find.is_some() { begin } else { end.saturating_sub(wanted).max(begin) };
            self.walk(first, end, |number, offset, line| {
                lines.push((number, offset, line.len()));
                true
            })?;
            if lines.is_empty() {
                // Lines of these turns are gone: the file is being replaced.
                return Ok(Span { turns: page.turns, next: None });
            }
            for (number, offset, len) in lines.into_iter().rev() {
                if !page.wants(offset) {
                    return Ok(Span { turns: page.turns, next: Some(total - number - 1) });
                }
                let mut line = vec![0; len];
                self.file.read_exact_at(&mut line, offset)?;
                page.take(number, &line);
            }
            end = first;
            if page.is_full() {
                break;
            }
        }
        Ok(Span { turns: page.turns, next: (end > 0).then(|| total - end) })
    }

    /// The turns whose lines begin at `offset` or later, the latest 1,000 at most.
    ///
    /// Returns the turns and the offset to go on from: less than the whole when they are large.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn since(&self, offset: u64) -> io::Result<(Vec<Turn>, u64)> {
        let (end, total) = (self.index.offset(), self.index.turns);
        let earliest = total.saturating_sub(TAIL_TURNS);
        let begin = self.index.mark_before(offset).map_or(0, |(_, turn)| turn).max(earliest);
        let mut page = Page::new(usize::try_from(TAIL_TURNS).unwrap_or(usize::MAX), None);
        let mut next = end;
        self.walk(begin, total, |number, at, line| {
            if at < offset {
                return true;
            }
            if !page.wants(at) {
                next = at;
                return false;
            }
            page.take(number, line);
            true
        })?;
        Ok((page.turns, next))
    }

    /// Hands out the lines of the turns `from..to` until it is told to end.
    fn walk(
        &self,
        from: u64,
        to: u64,
        mut each: impl FnMut(u64, u64, &[u8]) -> bool,
    ) -> io::Result<()> {
        if from >= to {
            return Ok(());
        }
        let Some((offset, mut number)) = self.index.mark(from) else { return Ok(()) };
        let mut lines = Lines::new(self.file, offset, false);
        while number < to {
            match lines.next()? {
                Line::End => return Ok(()),
                Line::TooLong => {}
                Line::Whole(start, line) => {
                    // What was added since the index was made has no number yet.
                    if start >= self.index.offset() {
                        return Ok(());
                    }
                    if !record(line).is_some_and(|record| record.is_turn) {
                        continue;
                    }
                    if number >= from && !each(number, start, line) {
                        return Ok(());
                    }
                    number += 1;
                }
            }
        }
        Ok(())
    }
}

/// A page that fills.
struct Page {
    turns: Vec<Turn>,
    most: usize,
    find: Option<String>,
    bytes: usize,
    /// Turns looked at.
    looked_at: usize,
    /// Offset of the first turn that was looked at.
    begun_at: Option<u64>,
}

impl Page {
    fn new(most: usize, find: Option<&str>) -> Self {
        let find = find.map(str::to_lowercase).filter(|find| !find.is_empty());
        Self { turns: Vec::new(), most, find, bytes: 0, looked_at: 0, begun_at: None }
    }

    /// How many of these turns there is room for.
    fn room(&self, turns: u64) -> u64 {
        (self.most.saturating_sub(self.turns.len()) as u64).min(turns).max(1)
    }

    fn is_full(&self) -> bool {
        self.turns.len() >= self.most
    }

    /// Whether there is room for one more turn, whose line begins at this offset.
    fn wants(&mut self, offset: u64) -> bool {
        let begun_at = *self.begun_at.get_or_insert(offset);
        self.looked_at == 0
            || (!self.is_full()
                && self.bytes < PAGE_BYTES
                && offset.abs_diff(begun_at) < SEARCH_BYTES)
    }

    fn take(&mut self, number: u64, line: &[u8]) {
        self.looked_at += 1;
        let Some(turn) = turn(number, line) else { return };
        if let Some(find) = &self.find {
            let is_hit = turn.content.iter().any(|block| {
                block.text.to_lowercase().contains(find.as_str())
                    || block.tool.as_ref().is_some_and(|tool| tool.to_lowercase().contains(find))
            });
            if !is_hit {
                return;
            }
        }
        self.bytes += turn.content.iter().map(|block| block.text.len()).sum::<usize>();
        self.turns.push(turn);
    }
}

#[cfg(test)]
mod tests;
