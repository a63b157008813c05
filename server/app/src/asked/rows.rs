//! What sessions ask through the hook: the copies that everybody reads.

use std::sync::{Mutex, MutexGuard, PoisonError};
use svc_domain::redact::redact_text;
use svc_shared::api::approvals::Approval;
use svc_shared::api::instances::PendingPermission;
use svc_shared::ids::InstanceId;
use svc_store::PromptRow;
use tokio::sync::watch;

/// Questions that wait, and answers on their way; the oldest first.
#[derive(Debug)]
pub(crate) struct AskedRows {
    rows: Mutex<Vec<PromptRow>>,
    /// Counts up whenever the rows were read again.
    changes: watch::Sender<u64>,
}

impl Default for AskedRows {
    fn default() -> Self {
        Self { rows: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl AskedRows {
    fn rows(&self) -> MutexGuard<'_, Vec<PromptRow>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them.
    pub fn all(&self) -> Vec<PromptRow> {
        self.rows().clone()
    }

    /// One of them.
    pub fn get(&self, request_id: &str) -> Option<PromptRow> {
        self.rows().iter().find(|row| row.request_id == request_id).cloned()
    }

    /// What a session waits for, as its record shows it.
    pub fn of(&self, id: &InstanceId) -> Vec<PendingPermission> {
        let rows = self.rows();
        let own = rows.iter().filter(|row| row.instance_id == id.as_str());
        own.filter(|row| row.decision.is_none()).map(pending).collect()
    }

    /// Takes over what was read.
    ///
    /// Returns the sessions of which something else is shown now.
    pub fn take(&self, read: Vec<PromptRow>) -> Vec<String> {
        let mut rows = self.rows();
        let before = std::mem::replace(&mut *rows, read);
        let differ = |one: &[PromptRow], other: &[PromptRow]| {
            let new = one.iter().filter(|row| !other.contains(row));
            new.map(|row| row.instance_id.clone()).collect::<Vec<String>>()
        };
        let mut changed = differ(&before, &rows);
        changed.extend(differ(&rows, &before));
        drop(rows);
        changed.retain(|id| !id.is_empty());
        changed.sort_unstable();
        changed.dedup();
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    /// Counts up whenever the rows were read again.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// A question as the record of its session shows it.
pub(crate) fn pending(prompt: &PromptRow) -> PendingPermission {
    PendingPermission {
        request_id: prompt.request_id.clone(),
        subtype: prompt.subtype.clone(),
        since: prompt.since,
        tool: prompt.tool.clone(),
        summary: prompt.summary.clone(),
        truncated: prompt.truncated,
        expires_at: prompt.expires_at,
        session_rules: prompt.session_rules.clone(),
    }
}

/// A question as readers see it; `None` where the row is not readable.
pub(crate) fn approval(row: PromptRow) -> Option<Approval> {
    Some(Approval {
        instance_id: match row.instance_id.as_str() {
            "" => None,
            id => Some(id.parse().ok()?),
        },
        conversation: row.conversation.and_then(|reference| reference.parse().ok()),
        request_id: row.request_id,
        project: row.project,
        subtype: row.subtype,
        tool: row.tool,
        summary: row.summary,
        truncated: row.truncated,
        since: row.since,
        expires_at: row.expires_at,
        decision: row.decision,
        reason: row.reason,
        message: row.message.map(|message| redact_text(&message)),
        answered_at: row.answered_at,
        actor: row.actor,
        session_rules: row.session_rules,
        for_session: row.for_session,
    })
}
