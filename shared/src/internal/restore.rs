//! Restoring what a reboot of the machine ended: the bodies of `/api/restore`.

use crate::ids::InstanceId;
use crate::status::{ResumeBlocked, ResumeMode, words};
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

words! {
    /// What comes back when a session is restored.
    Restores {
        /// The same conversation.
        Conversation = "conversation",
        /// The bridge, for new conversations.
        New = "new",
        /// The bridge, and the agent can reconnect its old sessions.
        Reconnect = "reconnect",
    }
}

words! {
    /// Where a restore as a whole stands.
    RestoreState {
        /// Something is still to be started.
        Running = "running",
        /// Each session has an outcome.
        Done = "done",
        /// Somebody stopped it.
        Cancelled = "cancelled",
    }
}

words! {
    /// Where one session of a restore stands.
    RestoreStep {
        /// Its turn has not come.
        Waiting = "waiting",
        /// It starts.
        Starting = "starting",
        /// It runs.
        Done = "done",
        /// It could not be started.
        Failed = "failed",
        /// It was left out.
        Skipped = "skipped",
    }
}

/// A session that a reboot ended and that nobody has resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreCandidate {
    /// Its record.
    pub instance_id: InstanceId,
    /// Its project.
    pub project: String,
    /// Kind of bridge.
    pub resume_mode: Word<ResumeMode>,
    /// When its end was recorded.
    pub ended_at: Option<Timestamp>,
    /// What comes back.
    pub restores: Word<Restores>,
    /// Why it cannot be restored now.
    pub blocked: Option<Word<ResumeBlocked>>,
}

/// What can be restored, and the restore that runs or ran last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RestoreOffer {
    /// In the order in which they were registered.
    pub candidates: Vec<RestoreCandidate>,
    /// Null before the first restore since the service started.
    pub job: Option<RestoreJob>,
}

/// A restore of several sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreJob {
    /// Random.
    pub job_id: String,
    /// As a whole.
    pub state: Word<RestoreState>,
    /// In the order in which they start.
    pub items: Vec<RestoreItem>,
}

/// One session of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreItem {
    /// Its record.
    pub instance_id: InstanceId,
    /// Where it stands.
    pub state: Word<RestoreStep>,
    /// Why it failed or was left out.
    pub detail: Option<String>,
}

/// Body that begins a restore.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RestoreRequest {
    /// Records to restore, in the order in which they start.
    pub ids: Vec<String>,
    /// How many start at the same time: 1 to 4, 2 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u64>,
}

/// Body that takes sessions out of the offer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DismissRequest {
    /// Their records.
    pub ids: Vec<String>,
}

/// Answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissed {
    /// Records that are not offered any more.
    pub dismissed: Vec<InstanceId>,
}
