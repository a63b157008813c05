//! The unpacked bytes of an archive, with an end to how many they may be.

use super::ReadError;
use crate::limits::Limits;
use crate::stop::Stop;
use flate2::read::MultiGzDecoder;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

/// Which limit was passed, if one was.
pub(super) type Exceeded = Rc<Cell<Option<&'static str>>>;

/// Headers and padding of one member, bytes, at most.
const AROUND_MEMBER: u64 = 2048;

/// Unpacks an archive while it is read.
pub(super) struct Unpacked {
    inner: MultiGzDecoder<BufReader<Counted>>,
    packed: Rc<Cell<u64>>,
    unpacked: u64,
    ratio: u64,
    ratio_from: u64,
    most: u64,
    exceeded: Exceeded,
    stop: Stop,
}

/// Counts the bytes of the archive itself.
struct Counted {
    file: File,
    count: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.count.set(self.count.get().saturating_add(count as u64));
        Ok(count)
    }
}

impl Unpacked {
    pub(super) fn new(file: File, limits: &Limits, stop: Stop) -> (Self, Exceeded) {
        let packed = Rc::new(Cell::new(0));
        let exceeded = Exceeded::default();
        let counted = Counted { file, count: Rc::clone(&packed) };
        let around = limits.members.saturating_mul(AROUND_MEMBER);
        let stream = Self {
            inner: MultiGzDecoder::new(BufReader::new(counted)),
            packed,
            unpacked: 0,
            ratio: limits.ratio,
            ratio_from: limits.ratio_from,
            most: limits.total_bytes.saturating_add(limits.manifest_bytes).saturating_add(around),
            exceeded: Rc::clone(&exceeded),
            stop,
        };
        (stream, exceeded)
    }

    /// Reads to the end, which must come after nothing but zeros.
    pub(super) fn only_zeros_left(&mut self) -> Result<(), ReadError> {
        let mut buffer = [0_u8; 8192];
        loop {
            let count = self.read(&mut buffer).map_err(ReadError::Damaged)?;
            let rest = buffer.get(..count).unwrap_or_default();
            if rest.is_empty() {
                return Ok(());
            }
            if rest.iter().any(|byte| *byte != 0) {
                return Err(ReadError::Manifest("something follows its end".to_owned()));
            }
        }
    }

    fn limit(&self) -> Option<&'static str> {
        if self.unpacked > self.most {
            return Some("unpacked bytes");
        }
        let allowed = self.packed.get().saturating_mul(self.ratio);
        (self.unpacked > self.ratio_from && self.unpacked > allowed)
            .then_some("unpacked bytes for its size")
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check()?;
        if self.exceeded.get().is_some() {
            return Err(io::Error::other("a limit was passed"));
        }
        let count = self.inner.read(buffer)?;
        self.unpacked = self.unpacked.saturating_add(count as u64);
        if let Some(limit) = self.limit() {
            self.exceeded.set(Some(limit));
            return Err(io::Error::other("a limit was passed"));
        }
        Ok(count)
    }
}
