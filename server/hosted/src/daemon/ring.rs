//! The frames of a process that are kept for whoever connects later.

use crate::protocol::REPLAY_BYTES;
use bytes::Bytes;
use std::collections::VecDeque;

/// The newest frames of a process, as they go over the socket.
#[derive(Debug, Default)]
pub(super) struct Ring {
    frames: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last: u64,
    limit: Option<usize>,
}

impl Ring {
    #[cfg(test)]
    fn of_limit(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Number of the next frame.
    pub(super) fn next_seq(&self) -> u64 {
        self.last + 1
    }

    /// Keeps a frame. The oldest ones go; the newest always stays.
    pub(super) fn push(&mut self, frame: Bytes) {
        self.last += 1;
        self.bytes += frame.len();
        self.frames.push_back((self.last, frame));
        let limit = self.limit.unwrap_or(REPLAY_BYTES);
        while self.bytes > limit && self.frames.len() > 1 {
            if let Some((_, old)) = self.frames.pop_front() {
                self.bytes -= old.len();
            }
        }
    }

    /// Number of the oldest frame that is kept; 0 for none.
    pub(super) fn first(&self) -> u64 {
        self.frames.front().map_or(0, |(seq, _)| *seq)
    }

    /// Number of the newest frame; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Some frames after `seq`, the oldest first, with the number of the last of them.
    pub(super) fn after(&self, seq: u64, most: usize) -> Option<(u64, Vec<Bytes>)> {
        let skipped = seq.saturating_add(1).saturating_sub(self.first());
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let some: Vec<&(u64, Bytes)> = self.frames.iter().skip(skipped).take(most).collect();
        let last = some.last()?.0;
        Some((last, some.into_iter().map(|(_, frame)| frame.clone()).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ring: &Ring, after: u64) -> Vec<u8> {
        ring.after(after, 10).map(|(_, frames)| frames.concat()).unwrap_or_default()
    }

    #[test]
    fn the_oldest_frames_go_and_the_newest_stays() {
        let mut ring = Ring::of_limit(3);
        assert_eq!((ring.first(), ring.last()), (0, 0));
        for text in ["a", "b", "c", "d"] {
            ring.push(Bytes::from_static(text.as_bytes()));
        }
        assert_eq!((ring.first(), ring.last()), (2, 4));
        assert_eq!(texts(&ring, 0), b"bcd");
        assert_eq!(texts(&ring, 3), b"d");
        assert!(ring.after(4, 10).is_none() && ring.after(9, 10).is_none());
        ring.push(Bytes::from_static(b"longer than all"));
        assert_eq!((ring.first(), ring.last()), (5, 5));
    }
}
