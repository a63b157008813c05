//! Plan limits that conversations stopped at, as the agent's transcripts tell.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use svc_domain::conversation::ConversationId;
use svc_shared::Timestamp;
use svc_shared::api::limits::PlanLimit;
use svc_shared::ids::SessionRef;
use tokio::sync::watch;

/// A conversation that stopped at a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// The agent's id of it.
    pub conversation: ConversationId,
    /// What the agent said.
    pub limit: PlanLimit,
}

/// The conversations that are stopped at a limit. Kept in memory only.
#[derive(Debug)]
pub(crate) struct PlanLimits {
    /// `None` until the transcripts were read for the first time.
    stopped: Mutex<Option<HashMap<SessionRef, Stopped>>>,
    due: Mutex<HashMap<SessionRef, Timestamp>>,
    changed: watch::Sender<()>,
}

impl Default for PlanLimits {
    fn default() -> Self {
        let (changed, _) = watch::channel(());
        Self { stopped: Mutex::default(), due: Mutex::default(), changed }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PlanLimits {
    /// The limit that a conversation is stopped at.
    pub fn of(&self, reference: &SessionRef) -> Option<PlanLimit> {
        let limit = lock(&self.stopped).as_ref()?.get(reference)?.limit.clone();
        let continues_at = lock(&self.due).get(reference).copied();
        Some(PlanLimit { continues_at, ..limit })
    }

    /// All of them; `None` while nobody knows: the transcripts are still being read.
    pub fn all(&self) -> Option<HashMap<SessionRef, Stopped>> {
        lock(&self.stopped).clone()
    }

    /// Sets which conversations are stopped.
    ///
    /// `others_differ` when something else that transcripts tell has changed with them.
    pub fn set(&self, now: HashMap<SessionRef, Stopped>, others_differ: bool) {
        let mut stopped = lock(&self.stopped);
        let differs = stopped.as_ref() != Some(&now);
        *stopped = Some(now);
        drop(stopped);
        if differs || others_differ {
            self.changed.send_replace(());
        }
    }

    /// Sets when conversations go on by themselves.
    pub fn set_due(&self, now: HashMap<SessionRef, Timestamp>) {
        let mut due = lock(&self.due);
        if *due != now {
            *due = now;
            drop(due);
            self.changed.send_replace(());
        }
    }

    /// Tells of changes.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
