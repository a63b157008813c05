//! Conversations whose bridge died: what is typed into them reaches nobody.

use crate::ids::{InstanceId, SessionRef};
use crate::status::StrandedState;
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// A conversation that was attached to a bridge when the bridge died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct StrandedSession {
    /// Token of the conversation, to continue or dismiss it with.
    pub session_ref: SessionRef,
    /// The bridge that died.
    pub instance_id: InstanceId,
    /// Its project.
    pub project: String,
    /// The generation of the bridge that died.
    pub generation: u32,
    /// How the conversation began, redacted; null when it has no readable turn.
    pub title: Option<String>,
    /// When the death was recorded.
    pub found_at: Timestamp,
    /// `stranded`, `continued` or `dismissed`.
    pub state: Word<StrandedState>,
    /// The background job that goes on with it; null while there is none.
    pub continued_as: Option<String>,
}

/// Answer of a continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct ContinuedSession {
    /// The conversation.
    pub session_ref: SessionRef,
    /// The new background job.
    pub job_id: String,
}
