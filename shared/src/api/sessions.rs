//! Working sessions of the agent.

use crate::api::activity::Activity;
use crate::ids::{InstanceId, SessionRef};
use serde::{Deserialize, Serialize};

/// A session that works right now, whoever started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct WorkingSession {
    /// Its process.
    pub pid: i32,
    /// Its working directory.
    pub cwd: String,
    /// `interactive` or `background`; an unknown word as written.
    pub kind: String,
    /// `working`, `blocked`, `done`, `failed`, `stopped`, or empty when not reported.
    pub state: String,
    /// Display name, redacted.
    pub name: Option<String>,
    /// What it waits for, redacted.
    pub waiting_for: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub started_at: i64,
    /// Token of the session's own id.
    pub session_ref: Option<SessionRef>,
    /// The bridge that owns it.
    pub parent_instance: Option<InstanceId>,
    /// `tracked`, `hosted`, `untracked` or `external`.
    pub attribution: String,
    /// Other processes that work on the same session. Left out when there are none.
    /// Neither sees what the others write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", oai(default, skip_serializing_if_is_empty))]
    pub also_in: Vec<i32>,
    /// What it does; null while nothing is known.
    pub activity: Option<Activity>,
}
