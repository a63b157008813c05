//! Launches that wait for the reset of a plan limit.

use crate::api::instances::SpawnRequest;
use crate::api::jobs::DispatchRequest;
use crate::api::limits::PlanLimit;
use crate::ids::InstanceId;
use crate::status::PlannedState;
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// A launch that waits for the reset of a plan limit, or did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLaunch {
    /// Names the launch; of a session, the id that its record gets.
    pub id: InstanceId,
    /// Project name.
    pub project: String,
    /// `standard`, `pty`, `hosted` or `background`.
    pub mode: String,
    /// What a background job shall do, redacted; null for a session.
    pub prompt: Option<String>,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// When it starts.
    pub due_at: Timestamp,
    /// Where it stands.
    pub state: Word<PlannedState>,
    /// The session or job that it became.
    pub started_as: Option<String>,
    /// Why nothing was started, or why it waits longer; null otherwise.
    pub reason: Option<String>,
}

/// The launches that wait, and the limit that a launch of now would wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLaunches {
    /// The limit of the account that is known; null where nothing is in the way.
    pub limit: Option<PlanLimit>,
    /// Those that wait first, then those of the last days, latest first.
    pub launches: Vec<PlannedLaunch>,
}

/// Body of a launch that waits: one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanLaunch {
    /// A session, as it would be launched now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SpawnRequest>,
    /// A background job, as it would be started now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<DispatchRequest>,
}
