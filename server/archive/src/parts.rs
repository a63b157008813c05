//! Packs the members of an archive, but never so well that a reader refuses it.
//!
//! A reader takes an archive for an attack when far more comes out than its size explains. A log
//! that repeats one line packs as well as that. So the bytes are packed in parts, each of them a
//! gzip file of its own, and now and then one part is stored as it is.

use crate::limits::Limits;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, Write};

const MIB: u64 = 1024 * 1024;
/// Bytes that go into one part.
const PART: u64 = 4 * MIB;
/// Bytes that may be packed as well as they can be.
///
/// Half of what a reader takes without a look at the size: the manifest comes before them.
const UNBOUNDED: u64 = 8 * MIB;

/// A file that is packed part by part.
pub(crate) struct Parts {
    file: File,
    part: GzEncoder<File>,
    /// Bytes that went into the part.
    in_part: u64,
    /// Bytes that went into all parts.
    unpacked: u64,
}

impl Parts {
    /// Begins with an empty file.
    ///
    /// # Errors
    /// There are no more file descriptors.
    pub(crate) fn begin(file: File) -> io::Result<Self> {
        let part = GzEncoder::new(file.try_clone()?, Compression::default());
        Ok(Self { file, part, in_part: 0, unpacked: 0 })
    }

    /// Completes the last part and returns the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn finish(self) -> io::Result<File> {
        self.part.finish()
    }

    fn next(&mut self) -> io::Result<()> {
        self.part.try_finish()?;
        let packed = self.file.metadata()?.len();
        // Half of what a reader believes, so that it does at every byte of the part.
        let believed = packed.saturating_mul(Limits::default().ratio / 2).max(UNBOUNDED);
        let level = match self.unpacked.saturating_add(PART) > believed {
            true => Compression::none(),
            false => Compression::default(),
        };
        self.part = GzEncoder::new(self.file.try_clone()?, level);
        self.in_part = 0;
        Ok(())
    }
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.in_part >= PART {
            self.next()?;
        }
        let room = usize::try_from(PART.saturating_sub(self.in_part)).unwrap_or(usize::MAX);
        let count = self.part.write(bytes.get(..room).unwrap_or(bytes))?;
        let written = u64::try_from(count).unwrap_or(u64::MAX);
        self.in_part = self.in_part.saturating_add(written);
        self.unpacked = self.unpacked.saturating_add(written);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.part.flush()
    }
}
