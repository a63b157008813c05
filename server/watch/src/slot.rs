//! What one listener has not heard of yet. Bounded: many names collapse into "everything".

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Names kept apart before they collapse; more than this is a bulk operation anyway.
const MAX_NAMES: usize = 1024;

/// What to look at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// These entries of the directory.
    Names(BTreeSet<OsString>),
    /// The directory as a whole.
    Everything,
}

/// The mailbox of one listener; written from the watcher's thread, which must never wait.
#[derive(Debug)]
pub(crate) struct Slot {
    only: Option<OsString>,
    pending: Mutex<Option<Changes>>,
    wake: Notify,
    armed: AtomicBool,
}

impl Slot {
    pub(crate) fn new(only: Option<OsString>) -> Self {
        Self { only, pending: Mutex::new(None), wake: Notify::new(), armed: AtomicBool::new(false) }
    }

    /// Whether the kernel reports changes to this listener.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    pub(crate) fn set_armed(&self, armed: bool) {
        self.armed.store(armed, Ordering::Release);
        // Both edges: what happened before the watch stood was not reported, and a listener that
        // waits without a timer has to learn that it needs one.
        self.everything();
    }

    pub(crate) fn everything(&self) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(Changes::Everything);
        self.wake.notify_one();
    }

    pub(crate) fn name(&self, name: &OsStr) {
        if self.only.as_deref().is_some_and(|only| only != name) {
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

    pub(crate) fn take(&self) -> Option<Changes> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether something is to be taken.
    pub(crate) fn is_told(&self) -> bool {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_one_file_coalesce_and_others_are_not_heard() {
        let slot = Slot::new(Some("a.log".into()));
        slot.name(OsStr::new("a.log"));
        slot.name(OsStr::new("b.log"));
        slot.name(OsStr::new("a.log"));
        assert_eq!(slot.take(), Some(Changes::Names(BTreeSet::from(["a.log".into()]))));
        assert_eq!(slot.take(), None);
    }

    #[test]
    fn a_flood_of_names_becomes_everything() {
        let slot = Slot::new(None);
        for n in 0..=MAX_NAMES {
            slot.name(OsStr::new(&n.to_string()));
        }
        assert_eq!(slot.take(), Some(Changes::Everything));
    }
}
