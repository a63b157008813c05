//! What agents ask their operator, and the answers.

use crate::Timestamp;
use crate::ids::InstanceId;
use serde::{Deserialize, Serialize};

/// A question of an agent, and what became of it. Every member is always present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The session that asks.
    pub instance_id: InstanceId,
    /// Names the question within its session.
    pub request_id: String,
    /// The session's project.
    pub project: String,
    /// What kind of question it is.
    pub subtype: String,
    /// The tool it is about; null when it is about none.
    pub tool: Option<String>,
    /// What the agent wants to do, redacted, at most 300 characters.
    pub summary: String,
    /// Whether the summary leaves something out.
    pub truncated: bool,
    /// Since when it waits.
    pub since: Timestamp,
    /// `allow`, `deny`, `interrupted` or `cancelled`; null while it waits.
    pub decision: Option<String>,
    /// Text beside a refusal.
    pub message: Option<String>,
    /// When it was decided; null while it waits.
    pub answered_at: Option<Timestamp>,
    /// Who decided; null when nobody did.
    pub actor: Option<String>,
}

/// Answer of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalList {
    /// Open ones the oldest first, answered ones the newest first.
    pub approvals: Vec<Approval>,
}

/// Body of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AnswerRequest {
    /// `allow` or `deny`.
    pub decision: String,
    /// Text for the agent beside a refusal, at most 2000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Body of a message to a Direct Session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MessageRequest {
    /// What the agent should do, at most 256 KiB.
    pub text: String,
}

/// Something was taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Always true.
    pub ok: bool,
}
