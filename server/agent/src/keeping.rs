//! The right to copy and truncate the files of one log set.
//!
//! A part that is being copied cannot be interrupted. Its watch may be gone by then, and another
//! watch of the same set would copy the same lines once more.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;

/// One lock for each log that is kept small, as long as somebody uses it.
static LOCKS: Mutex<Option<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>> = Mutex::new(None);

/// Held by the one watch of this process that keeps the files of a set small.
#[derive(Debug)]
pub(crate) struct Keeping {
    _lock: OwnedMutexGuard<()>,
}

impl Keeping {
    /// Waits until nobody else of this process keeps this log small.
    pub(crate) async fn begin(log: &Path) -> Self {
        Self { _lock: lock_of(log).lock_owned().await }
    }
}

fn lock_of(log: &Path) -> Arc<tokio::sync::Mutex<()>> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let locks = locks.get_or_insert_default();
    if let Some(lock) = locks.get(log).and_then(Weak::upgrade) {
        return lock;
    }
    locks.retain(|_, lock| lock.strong_count() > 0);
    let lock = Arc::default();
    locks.insert(log.to_owned(), Arc::downgrade(&lock));
    lock
}
