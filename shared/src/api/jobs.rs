//! Background jobs of the agent, and the bodies that start, stop and resume them.

use crate::api::activity::Activity;
use crate::api::limits::PlanLimit;
use crate::ids::{JobId, SessionRef};
use serde::{Deserialize, Serialize};

/// Longest prompt, bytes.
pub const PROMPT_BYTES: usize = 100_000;
/// Longest model name, characters.
pub const MODEL_CHARS: usize = 128;
/// Longest final text, characters.
pub const RESULT_CHARS: usize = 4000;

/// A background job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct BackgroundJob {
    /// 8 lower-case hexadecimal digits.
    pub id: JobId,
    /// Project whose directory holds `cwd`.
    pub project: Option<String>,
    /// `working`, `blocked`, `done`, `failed`, `stopped`, `lost`, or another word.
    /// Empty when not reported.
    pub state: String,
    /// Progress line, redacted.
    pub detail: String,
    /// `active`, `blocked`, `idle` or empty.
    pub tempo: String,
    /// What it waits for, redacted.
    pub needs: Option<String>,
    /// Final text, redacted.
    #[cfg_attr(feature = "openapi", oai(validator(max_length = 4000)))]
    pub result: Option<String>,
    /// Dispatch prompt, redacted.
    pub intent: String,
    /// Redacted.
    pub name: Option<String>,
    /// Working directory; null outside the projects root.
    pub cwd: Option<String>,
    /// Token of the session's own id.
    pub session_ref: Option<SessionRef>,
    /// Registered with the remote service.
    pub remote_registered: bool,
    /// A transcript exists.
    pub has_transcript: bool,
    /// Release of the agent, or empty.
    pub cli_version: String,
    /// As written by the agent, or empty.
    pub created_at: String,
    /// As written by the agent, or empty.
    pub updated_at: String,
    /// Set only while `worker_alive`.
    pub worker_pid: Option<i32>,
    /// Its process was verified.
    pub worker_alive: bool,
    /// The plan limit that its conversation stopped at; null without one.
    pub limit: Option<PlanLimit>,
    /// What it does; null while nothing is known, and after its end.
    pub activity: Option<Activity>,
}

/// Body of a dispatch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct DispatchRequest {
    /// Project name.
    pub project: String,
    /// What the job shall do; required without `rc_name`.
    pub prompt: Option<String>,
    /// Registers the session with the remote service under this name.
    #[cfg_attr(feature = "openapi", oai(validator(max_length = 128)))]
    pub rc_name: Option<String>,
    /// Model to use.
    #[cfg_attr(feature = "openapi", oai(validator(max_length = 128)))]
    pub model: Option<String>,
    /// One of the seven permission modes.
    pub permission_mode: Option<String>,
    /// True acknowledges an untrusted directory.
    pub trust: Option<bool>,
}

/// A job was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct DispatchResult {
    /// The new job.
    pub id: JobId,
    /// Always true.
    pub created: bool,
    /// What the caller should know although it worked.
    pub warnings: Vec<String>,
}

/// A job was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct StopAgentResult {
    /// The job.
    pub id: JobId,
    /// The remote session was deregistered.
    pub settled: bool,
    /// The job is gone.
    pub removed: bool,
    /// What could not be confirmed, redacted.
    pub detail: Option<String>,
}

/// A job was started from an ended one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct ResumeAgentResult {
    /// The new job.
    pub id: JobId,
}
