//! What agents ask their operator, and the answers.

use crate::ids::{InstanceId, SessionRef};
use crate::status::words;
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

words! {
    /// What an agent wants to do, as far as it matters for showing it.
    RequestKind {
        /// Run a command of a shell.
        Command = "command",
        /// Change parts of a file.
        Edit = "edit",
        /// Write a whole file.
        Write = "write",
        /// Open an address.
        Url = "url",
        /// Anything else.
        Other = "other",
    }
}

/// A question of an agent, and what became of it. Every member is always present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The session that asks; null when nobody manages it.
    pub instance_id: Option<InstanceId>,
    /// Token of the session's own id, where it came through the agent's hook.
    pub conversation: Option<SessionRef>,
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
    /// Until when it waits here; null when it waits for ever.
    pub expires_at: Option<Timestamp>,
    /// `allow`, `deny`, `interrupted` or `cancelled`; null while it waits.
    pub decision: Option<String>,
    /// Why it was withdrawn, or why an answer did not arrive; see [`because`].
    pub reason: Option<String>,
    /// Text beside a refusal.
    pub message: Option<String>,
    /// When it was decided; null while it waits.
    pub answered_at: Option<Timestamp>,
    /// Who decided; null when nobody did.
    pub actor: Option<String>,
    /// What the agent offers to allow for its session, in its notation, redacted.
    #[serde(default)]
    pub session_rules: Vec<String>,
    /// It was allowed together with what the agent offered for its session.
    #[serde(default)]
    pub for_session: bool,
}

/// What a reason means, in a sentence.
///
/// An unknown word is given back as it is.
#[must_use]
pub fn because(reason: &str) -> &str {
    match reason {
        "answered-elsewhere" => "It was answered in the session's own client.",
        "asker-gone" => {
            "The session stopped waiting: it was answered in its own client, or it has ended."
        }
        "expired" => "Nobody answered in time, so the session asks in its own client.",
        "not-renewed" => "The service was restarted, and the session did not ask again.",
        "switched-off" => "Approvals here were switched off (claude.approval_hook).",
        "undelivered" => "The session had stopped waiting before the answer arrived.",
        other => other,
    }
}

/// Answer of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalList {
    /// Open ones the oldest first, answered ones the newest first.
    pub approvals: Vec<Approval>,
}

/// A text that an agent wants to replace in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedEdit {
    /// What is there now, redacted.
    pub old: String,
    /// What the agent wants there, redacted.
    pub new: String,
    /// Line of the file at which it begins; null when it was not found.
    pub line: Option<u64>,
    /// Wherever the text occurs.
    pub everywhere: bool,
}

/// Everything that an agent asks for. Every member is always present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// How it is best shown.
    pub kind: Word<RequestKind>,
    /// The command, content, address, or all members as JSON; redacted.
    pub text: String,
    /// The file that it is about.
    pub path: Option<String>,
    /// Host of the address.
    pub host: Option<String>,
    /// What the agent says that it is for, redacted.
    pub note: Option<String>,
    /// Where the session works, as far as it is known.
    pub directory: Option<String>,
    /// What an edit replaces.
    pub edits: Vec<RequestedEdit>,
    /// All members as JSON, redacted.
    pub raw: String,
    /// Something was masked.
    pub masked: bool,
    /// Bytes that are not shown, because there are too many.
    pub left_out: u64,
}

/// A question with everything that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDetail {
    /// The question.
    #[serde(flatten)]
    pub approval: Approval,
    /// What is asked for; null once it is over, and while its agent is not connected.
    pub request: Option<ApprovalRequest>,
}

/// Body of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AnswerRequest {
    /// `allow` or `deny`.
    pub decision: String,
    /// Text for the agent beside a refusal, at most 2000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Allow the `session_rules` of the question as well; with `allow` only.
    #[serde(default)]
    pub for_session: bool,
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
