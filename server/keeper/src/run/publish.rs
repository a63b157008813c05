//! The published screen: what changed when, and the frames for a client.
//!
//! Each row knows the number of the frame that changed it last. So the changes since any earlier frame
//! are known without keeping frames, up to the last change of size.

use crate::emulator::Picture;
use crate::frame;
use crate::message::{Diff, FromKeeper, Key, Moved};
use crate::screen::{Row, Run};
use std::rc::Rc;

/// A frame, shared by the clients that get it.
pub(super) type Bytes = Rc<[u8]>;

/// The screen as clients know it.
#[derive(Default)]
pub(super) struct Published {
    seq: u64,
    picture: Option<Picture>,
    /// For each row, the frame that changed it.
    changed: Vec<u64>,
    cursor: u64,
    modes: u64,
    scroll: u64,
    /// The first frame of this size.
    sized: u64,
    /// The last frame as a diff of the one before, if it is one.
    moved: Option<(Moved, Vec<u16>)>,
    latest: Option<Bytes>,
}

impl Published {
    /// Number of the last frame; 0 before the first.
    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    /// Publishes a picture if it differs from the last. Whether it did.
    pub(super) fn publish(&mut self, picture: Picture) -> bool {
        let Some(old) = self.picture.replace(picture) else {
            self.begin();
            return true;
        };
        let Some(new) = &self.picture else { return false };
        if *new == old {
            return false;
        }
        if new.size != old.size {
            self.begin();
            return true;
        }
        self.seq = self.seq.saturating_add(1);
        self.latest = None;
        let seq = self.seq;
        for ((changed, row), before) in self.changed.iter_mut().zip(&new.rows).zip(&old.rows) {
            if row != before {
                *changed = seq;
            }
        }
        if new.cursor != old.cursor {
            self.cursor = seq;
        }
        if new.modes != old.modes {
            self.modes = seq;
        }
        if (new.scroll_base, new.scroll_first) != (old.scroll_base, old.scroll_first) {
            self.scroll = seq;
        }
        self.moved = moved(&old, new);
        true
    }

    fn begin(&mut self) {
        self.seq = self.seq.saturating_add(1);
        let rows = self.picture.as_ref().map_or(0, |picture| picture.rows.len());
        self.changed = vec![self.seq; rows];
        (self.cursor, self.modes, self.scroll, self.sized) =
            (self.seq, self.seq, self.seq, self.seq);
        self.moved = None;
        self.latest = None;
    }

    /// Whether a client with this frame can go on from it.
    pub(super) fn knows(&self, since: u64) -> bool {
        (self.sized..=self.seq).contains(&since) && since > 0
    }

    /// The complete screen; `None` before the first.
    pub(super) fn key(&self) -> Option<Key> {
        let picture = self.picture.as_ref()?;
        Some(Key {
            seq: self.seq,
            cols: picture.size.cols(),
            row_count: picture.size.rows(),
            cursor: picture.cursor,
            modes: picture.modes,
            rows: picture.rows.clone(),
            scroll_base: picture.scroll_base,
            scroll_first: picture.scroll_first,
        })
    }

    /// The complete screen as a frame.
    ///
    /// Without colours if it would be too long with them.
    pub(super) fn key_frame(&self) -> Option<Bytes> {
        let mut key = self.key()?;
        let whole = frame::encode(&FromKeeper::Key(key.clone()));
        let bytes = whole.or_else(|_| {
            key.rows.iter_mut().for_each(without_colours);
            frame::encode(&FromKeeper::Key(key))
        });
        bytes.ok().map(Into::into)
    }

    /// The changes since a frame that [`Self::knows`] as a frame.
    pub(super) fn diff_frame(&mut self, since: u64) -> Option<Bytes> {
        let is_latest = since.saturating_add(1) == self.seq;
        if is_latest && let Some(bytes) = &self.latest {
            return Some(Rc::clone(bytes));
        }
        let picture = self.picture.as_ref()?;
        let moved = self.moved.as_ref().filter(|_| is_latest);
        let numbered = (0..).zip(&picture.rows);
        let rows = match moved {
            Some((_, changed)) => numbered
                .filter(|(y, _)| changed.contains(y))
                .map(|(y, row)| (y, row.clone()))
                .collect(),
            None => numbered
                .zip(&self.changed)
                .filter(|(_, changed)| **changed > since)
                .map(|((y, row), _)| (y, row.clone()))
                .collect(),
        };
        let diff = Diff {
            seq: self.seq,
            base: since,
            rows,
            cursor: (self.cursor > since).then_some(picture.cursor),
            modes: (self.modes > since).then_some(picture.modes),
            scroll: moved.map(|(moved, _)| *moved),
            scroll_base: (self.scroll > since).then_some(picture.scroll_base),
            scroll_first: (self.scroll > since).then_some(picture.scroll_first),
        };
        let bytes: Bytes = match frame::encode(&FromKeeper::Diff(diff)) {
            Ok(bytes) => bytes.into(),
            Err(_) => return self.key_frame(),
        };
        if is_latest {
            self.latest = Some(Rc::clone(&bytes));
        }
        Some(bytes)
    }
}

/// One run with the text alone.
fn without_colours(row: &mut Row) {
    let cells = row.runs.iter().map(|run| run.cells).fold(0, u16::saturating_add);
    let run = Run { text: row.text(), cells, ..Run::default() };
    row.runs = vec![run];
}

/// The rows that remain to be drawn if the screen is moved up.
///
/// It is moved by as many rows as left it.
///
/// `None` if moving would not save rows.
fn moved(old: &Picture, new: &Picture) -> Option<(Moved, Vec<u16>)> {
    let left = usize::try_from(new.scroll_base.checked_sub(old.scroll_base)?).ok()?;
    let count = new.rows.len();
    if left == 0 || left >= count {
        return None;
    }
    let blank = Row::default();
    let before = old.rows.iter().skip(left).chain(std::iter::repeat(&blank));
    let differing: Vec<u16> = (0..)
        .zip(new.rows.iter().zip(before))
        .filter(|(_, (row, before))| row != before)
        .map(|(y, _)| y)
        .collect();
    let plain = new.rows.iter().zip(&old.rows).filter(|(row, before)| row != before).count();
    let bottom = u16::try_from(count.saturating_sub(1)).ok()?;
    (differing.len() < plain)
        .then_some((Moved { top: 0, bottom, n: u16::try_from(left).ok()? }, differing))
}
