//! Who may be connected: strangers take no place of those who know the token.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Most connections of those who showed the token.
const KNOWN: usize = 32;
/// Most connections of others. One more, and the oldest of them has to go.
const STRANGERS: usize = 32;

/// The places of a daemon.
#[derive(Debug, Clone)]
pub(super) struct Admissions {
    known: Arc<Semaphore>,
    strangers: Arc<Mutex<VecDeque<CancellationToken>>>,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    of: Admissions,
    /// Cancelled when a stranger has to go.
    go: CancellationToken,
    known: Option<OwnedSemaphorePermit>,
}

impl Admissions {
    pub(super) fn new() -> Self {
        Self { known: Arc::new(Semaphore::new(KNOWN)), strangers: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<CancellationToken>> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in somebody who has shown nothing yet.
    pub(super) fn enter(&self) -> Admitted {
        let go = CancellationToken::new();
        let mut strangers = self.lock();
        if strangers.len() >= STRANGERS
            && let Some(oldest) = strangers.pop_front()
        {
            oldest.cancel();
        }
        strangers.push_back(go.clone());
        drop(strangers);
        Admitted { of: self.clone(), go, known: None }
    }

    /// Whether nobody is here.
    pub(super) fn are_empty(&self) -> bool {
        self.known.available_permits() == KNOWN && self.lock().is_empty()
    }

    fn forget(&self, go: &CancellationToken) {
        self.lock().retain(|one| one != go);
    }
}

impl Admitted {
    /// Resolves when this stranger has to make room.
    pub(super) fn asked_to_go(&self) -> CancellationToken {
        self.go.clone()
    }

    /// Whether the token was shown before.
    pub(super) fn has_shown_the_token(&self) -> bool {
        self.known.is_some()
    }

    /// The token was shown; `false` when too many who know it are here.
    pub(super) fn is_known(&mut self) -> bool {
        if self.known.is_none() {
            self.known = Arc::clone(&self.of.known).try_acquire_owned().ok();
            if self.known.is_some() {
                self.of.forget(&self.go);
            }
        }
        self.known.is_some()
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.of.forget(&self.go);
    }
}
