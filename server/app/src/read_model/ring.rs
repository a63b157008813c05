//! The last deltas, encoded once, for readers that are behind.

use bytes::Bytes;
use std::collections::VecDeque;

/// Most deltas kept; `http-api` §4.2 asks for 4096 at least.
const DELTAS: usize = 8192;
/// Most bytes kept.
const BYTES: u64 = 8 * 1024 * 1024;

/// Encoded deltas with consecutive numbers.
#[derive(Debug, Default)]
pub(super) struct Ring {
    deltas: VecDeque<Delta>,
    /// Bytes of all deltas ever pushed.
    /// The difference of two marks is the size between them.
    written: u64,
}

#[derive(Debug)]
struct Delta {
    seq: u64,
    frame: Bytes,
    /// Value of `written` before this delta.
    start: u64,
}

/// The next delta for a reader, and how far it is behind.
#[derive(Debug)]
pub(super) struct Behind {
    /// The frame to send.
    pub(super) frame: Bytes,
    /// Deltas from this one to the head.
    pub(super) frames: usize,
    /// Their bytes.
    pub(super) bytes: u64,
}

impl Ring {
    pub(super) fn push(&mut self, seq: u64, frame: Bytes) {
        let start = self.written;
        self.written += frame.len() as u64;
        self.deltas.push_back(Delta { seq, frame, start });
        while self.deltas.len() > DELTAS || self.kept() > BYTES {
            self.deltas.pop_front();
        }
    }

    /// Whether every delta after `seq` up to `head` is still here.
    pub(super) fn reaches_back_to(&self, seq: u64, head: u64) -> bool {
        seq == head || self.index_of(seq + 1).is_some()
    }

    /// The delta after `seq`; `None` when it is no longer (or not yet) here.
    pub(super) fn after(&self, seq: u64) -> Option<Behind> {
        let index = self.index_of(seq + 1)?;
        let delta = self.deltas.get(index)?;
        Some(Behind {
            frame: delta.frame.clone(),
            frames: self.deltas.len() - index,
            bytes: self.written - delta.start,
        })
    }

    fn kept(&self) -> u64 {
        self.deltas.front().map_or(0, |first| self.written - first.start)
    }

    fn index_of(&self, seq: u64) -> Option<usize> {
        let first = self.deltas.front()?.seq;
        let index = usize::try_from(seq.checked_sub(first)?).ok()?;
        (index < self.deltas.len()).then_some(index)
    }
}
