//! Asks again and again whether the file system has room for more of an archive.

use std::io;

/// Says whether more may be written to the file system of an archive.
pub type HasRoom = Box<dyn Fn() -> io::Result<bool>>;

/// Bytes that are written between two questions.
pub(crate) const BETWEEN: u64 = 4 * 1024 * 1024;

/// Counts bytes, and asks when there were enough of them.
pub(crate) struct Room {
    has_room: HasRoom,
    since_asked: u64,
}

impl Room {
    pub(crate) fn new(has_room: HasRoom) -> Self {
        Self { has_room, since_asked: 0 }
    }

    /// Counts bytes that are about to be written.
    ///
    /// # Errors
    /// `StorageFull` when there is no room for more. Any other one when that cannot be found out.
    pub(crate) fn take(&mut self, bytes: u64) -> io::Result<()> {
        self.since_asked = self.since_asked.saturating_add(bytes);
        if self.since_asked < BETWEEN {
            return Ok(());
        }
        self.since_asked = 0;
        match (self.has_room)()? {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}
