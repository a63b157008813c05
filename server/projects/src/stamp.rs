//! Whether a directory's entries may have changed, for the price of one look at it.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Which directory stands at a path and when its entries last changed, as far as its file system
/// tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    identity: (u64, u64),
    modified: Option<SystemTime>,
    changed: (i64, i64),
}

impl Stamp {
    /// Follows links.
    pub(crate) fn of(dir: &Path) -> io::Result<Self> {
        std::fs::metadata(dir).map(|facts| Self::new(&facts))
    }

    /// Which directory it is, whatever happened in it.
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

/// What was read under a stamp.
///
/// Clocks of file systems tick as slowly as every two seconds, and a change within the tick of a
/// look leaves the stamp as it was. So one look is not enough: only the second under an unchanged
/// stamp, at least a round of sweeping later, settles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Seen {
    /// Nothing to rely on.
    #[default]
    Unstamped,
    /// Looked at once under this stamp.
    Once(Stamp),
    /// Looked at twice: it is known as long as the stamp stands.
    Settled(Stamp),
}

impl Seen {
    /// After one more look, under `stamp`.
    #[must_use]
    pub(crate) fn again(self, now: Stamp) -> Self {
        match self {
            Self::Once(before) | Self::Settled(before) if before == now => Self::Settled(now),
            Self::Unstamped | Self::Once(_) | Self::Settled(_) => Self::Once(now),
        }
    }

    /// Whether another look would find nothing new.
    pub(crate) fn is_current(self, now: Stamp) -> bool {
        self == Self::Settled(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_is_never_taken_for_the_last_word() {
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
        assert!(!twice.is_current(replaced), "another directory took its place");
        assert_eq!(twice.again(replaced), Seen::Once(replaced));
        std::fs::remove_dir(aside).unwrap();
    }
}
