//! Whether a directory's entries may have changed, found out with one `stat` call.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Which directory is at a path, and when its entries last changed.
///
/// As exact as the clock of its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    identity: (u64, u64),
    modified: Option<SystemTime>,
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of a directory. Follows links.
    pub(crate) fn of(dir: &Path) -> io::Result<Self> {
        std::fs::metadata(dir).map(|facts| Self::new(&facts))
    }

    /// Which directory it is, independent of its entries.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    pub(crate) fn new(facts: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            identity: (facts.dev(), facts.ino()),
            modified: facts.modified().ok(),
            changed: (facts.ctime(), facts.ctime_nsec()),
        }
    }
}

/// How often a directory was read with the same stamp.
///
/// Clocks of file systems tick as slowly as every two seconds. A change in the same tick as a read
/// leaves the stamp as it was. So one read is not enough: only a second read with the same stamp, at
/// least one sweep later, is reliable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Seen {
    /// Not read.
    #[default]
    Unstamped,
    /// Read once with this stamp.
    Once(Stamp),
    /// Read twice: reliable as long as the stamp is the same.
    Settled(Stamp),
}

impl Seen {
    /// The state after one more read.
    #[must_use]
    pub(crate) fn again(self, now: Stamp) -> Self {
        match self {
            Self::Once(before) | Self::Settled(before) if before == now => Self::Settled(now),
            Self::Unstamped | Self::Once(_) | Self::Settled(_) => Self::Once(now),
        }
    }

    /// Whether another read would find nothing new.
    pub(crate) fn is_current(self, now: Stamp) -> bool {
        self == Self::Settled(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_is_never_enough() {
        let dir = tempfile::tempdir().unwrap();
        let before = Stamp::of(dir.path()).unwrap();
        let once = Seen::default().again(before);
        assert!(!once.is_current(before));
        let twice = once.again(before);
        assert!(twice.is_current(before));

        let aside = dir.path().with_extension("aside");
        std::fs::rename(dir.path(), &aside).unwrap();
        std::fs::create_dir(dir.path()).unwrap();
        let replaced = Stamp::of(dir.path()).unwrap();
        assert!(!twice.is_current(replaced), "another directory has its name");
        assert_eq!(twice.again(replaced), Seen::Once(replaced));
        std::fs::remove_dir(aside).unwrap();
    }
}
