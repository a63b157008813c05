//! The last answer of the doctor, kept for a few seconds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_shared::internal::Doctor;
use tokio::time::Instant;

/// A page that asks again and again gets the same answer for this long.
const FRESH: Duration = Duration::from_secs(5);

/// The last answer, for a while.
#[derive(Debug, Default)]
pub(crate) struct LastAnswer(Mutex<Option<(Instant, Arc<Doctor>)>>);

impl LastAnswer {
    pub(super) fn fresh(&self) -> Option<Arc<Doctor>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, answer)| Arc::clone(answer))
    }

    /// What it says is no longer so.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn keep(&self, answer: &Arc<Doctor>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), Arc::clone(answer)));
    }
}
