//! The changes that one subscriber has not read yet.
//!
//! Bounded: too many names become "everything".

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Most names that are kept apart. More become "everything": a bulk operation.
const MAX_NAMES: usize = 1024;

/// What the subscriber should read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// These entries of the directory.
    Names(BTreeSet<OsString>),
    /// The directory as a whole.
    Everything,
}

/// Which entries of a directory a subscriber is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Only {
    /// All of them.
    Any,
    /// The one of this name.
    Name(OsString),
    /// Those whose names end so, behind a dot.
    Extension(&'static str),
}

impl Only {
    fn fits(&self, name: &OsStr) -> bool {
        match self {
            Self::Any => true,
            Self::Name(only) => only == name,
            Self::Extension(only) => Path::new(name).extension() == Some(OsStr::new(only)),
        }
    }
}

/// The mailbox of one subscriber.
///
/// The watcher's thread writes to it and must never wait.
#[derive(Debug)]
pub(crate) struct Mailbox {
    only: Only,
    pending: Mutex<Option<Changes>>,
    wake: Notify,
    armed: AtomicBool,
}

impl Mailbox {
    pub(crate) fn new(only: Only) -> Self {
        Self { only, pending: Mutex::new(None), wake: Notify::new(), armed: AtomicBool::new(false) }
    }

    /// Whether the kernel reports changes to this subscriber.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    pub(crate) fn set_armed(&self, armed: bool) {
        self.armed.store(armed, Ordering::Release);
        // When armed: changes before this moment were not reported. When disarmed: a subscriber that
        // waits without a timer must learn that it needs one.
        self.add_everything();
    }

    pub(crate) fn add_everything(&self) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(Changes::Everything);
        self.wake.notify_one();
    }

    pub(crate) fn add_name(&self, name: &OsStr) {
        if !self.only.fits(name) {
            return;
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        match pending.as_mut() {
            Some(Changes::Everything) => {}
            Some(Changes::Names(names)) if names.len() >= MAX_NAMES => {
                *pending = Some(Changes::Everything);
            }
            Some(Changes::Names(names)) => {
                names.insert(name.to_owned());
            }
            None => *pending = Some(Changes::Names(BTreeSet::from([name.to_owned()]))),
        }
        drop(pending);
        self.wake.notify_one();
    }

    /// Takes all unread changes out.
    pub(crate) fn take(&self) -> Option<Changes> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether there are changes to read.
    pub(crate) fn has_changes(&self) -> bool {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits until a change was added.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_one_file_coalesce_and_those_of_other_files_are_ignored() {
        let mailbox = Mailbox::new(Only::Name("a.log".into()));
        mailbox.add_name(OsStr::new("a.log"));
        mailbox.add_name(OsStr::new("b.log"));
        mailbox.add_name(OsStr::new("a.log"));
        assert_eq!(mailbox.take(), Some(Changes::Names(BTreeSet::from(["a.log".into()]))));
        assert_eq!(mailbox.take(), None);
    }

    #[test]
    fn only_names_with_the_extension_are_told() {
        let mailbox = Mailbox::new(Only::Extension("jsonl"));
        for name in ["bridge-pointer.json", "jsonl", ".jsonl", "a.jsonl.tmp"] {
            mailbox.add_name(OsStr::new(name));
        }
        assert!(!mailbox.has_changes());
        mailbox.add_name(OsStr::new("a.jsonl"));
        assert_eq!(mailbox.take(), Some(Changes::Names(BTreeSet::from(["a.jsonl".into()]))));
    }

    #[test]
    fn a_flood_of_names_becomes_everything() {
        let mailbox = Mailbox::new(Only::Any);
        for n in 0..=MAX_NAMES {
            mailbox.add_name(OsStr::new(&n.to_string()));
        }
        assert_eq!(mailbox.take(), Some(Changes::Everything));
    }
}
