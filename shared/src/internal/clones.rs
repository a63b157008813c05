//! Creating and cloning projects: bodies, records and frames.

use crate::status::words;
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// Body that creates an empty project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CreateProject {
    /// Name of the directory.
    pub name: String,
    /// Whether it becomes a git repository.
    pub git_init: bool,
}

/// Body that begins a clone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CloneRequest {
    /// Name of the directory.
    pub name: String,
    /// Address of the repository. Never sent back.
    pub url: String,
    /// Only the newest commit.
    pub shallow: bool,
}

/// A clone was taken on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneAccepted {
    /// Id of the job: 32 lower-case hexadecimal digits.
    pub job_id: String,
    /// Name of the project that it will be.
    pub name: String,
}

/// The clones that are not over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ActiveClones {
    /// In the order in which they were asked for.
    pub jobs: Vec<ActiveClone>,
}

/// A clone that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveClone {
    /// Id of the job.
    pub job_id: String,
    /// Name of the project that it will be.
    pub name: String,
    /// What git does; empty before the first word of it.
    pub phase: String,
    /// Of this phase.
    pub percent: Option<u8>,
}

/// A clone is being ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancellingClone {
    /// Id of the job.
    pub job_id: String,
    /// Always true.
    pub cancelling: bool,
}

words! {
    /// Where a clone stands.
    CloneState {
        /// Others have to end first.
        Waiting = "waiting",
        /// It runs.
        Running = "running",
        /// The project is there.
        Done = "done",
        /// It failed or was cancelled; nothing is left of it.
        Error = "error",
    }
}

/// A clone as the state shows it. Gone a minute after its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneJob {
    /// Id of the job.
    pub job_id: String,
    /// Name of the project that it will be.
    pub name: String,
    /// Where it stands.
    pub state: Word<CloneState>,
    /// Only the newest commit.
    pub shallow: bool,
    /// What git does; empty before the first word of it.
    pub phase: String,
    /// Of this phase.
    pub percent: Option<u8>,
    /// Bytes received, as git rounds them.
    pub bytes: Option<u64>,
    /// When it began to run.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it failed, masked.
    pub error: Option<String>,
    /// Somebody cancelled it.
    pub cancelled: bool,
}

/// A frame of `/ws/clone-progress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum CloneFrame {
    /// How far it is.
    Progress {
        /// What git does; empty before the first word of it.
        phase: String,
        /// Of this phase.
        percent: Option<u8>,
    },
    /// The last frame.
    Done {
        /// `done` or `error`.
        status: Word<CloneState>,
        /// Why it failed, masked.
        error: Option<String>,
        /// Somebody cancelled it.
        cancelled: bool,
    },
}
