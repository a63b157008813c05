//! Conversations that were seen to hang on a live bridge.
//!
//! A process clears its entry of the agent's registry when it ends in order, so after the death of
//! a bridge the registry may not tell any more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use svc_domain::stranded::{MOST, Registered};
use svc_shared::ids::InstanceId;

/// What the last look at the registry showed of each live bridge.
#[derive(Debug, Default)]
pub(crate) struct SeenSessions(Mutex<HashMap<InstanceId, Vec<Registered>>>);

impl SeenSessions {
    /// Takes over what a look showed of these bridges, also that one has no session.
    /// Bridges that the look left out keep what is known: they have just ended.
    pub fn saw(&self, seen: HashMap<InstanceId, Vec<Registered>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, mut sessions) in seen {
            sessions.truncate(MOST);
            known.insert(id, sessions);
        }
    }

    /// What was last seen of a bridge that has ended; another generation begins anew.
    pub fn of(&self, id: &InstanceId) -> Vec<Registered> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).cloned().unwrap_or_default()
    }

    /// Forgets a bridge whose end is recorded.
    pub fn forget(&self, id: &InstanceId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
