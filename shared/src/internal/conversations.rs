//! Conversations of a project, as they are listed and read (`http-api` §3.2).

use crate::ids::{InstanceId, SessionRef};
use crate::status::words;
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

words! {
    /// Who speaks in a turn.
    TurnRole {
        /// The person, or a program in the person's place.
        User = "user",
        /// The agent.
        Assistant = "assistant",
        /// Results of tools, which the agent is given as a message.
        Tool = "tool",
        /// Anything else.
        System = "system",
    }
}

words! {
    /// What a part of a turn is.
    BlockKind {
        /// Prose.
        Text = "text",
        /// What the agent thought before it spoke.
        Thinking = "thinking",
        /// A call of a tool.
        ToolUse = "tool_use",
        /// What a tool answered.
        ToolResult = "tool_result",
        /// Anything else: an image, for example.
        Other = "other",
    }
}

/// A part of a turn. Redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// What it is.
    pub kind: Word<BlockKind>,
    /// Its text, cut at 64 KiB.
    pub text: String,
    /// The tool, of a call.
    pub tool: Option<String>,
    /// The tool failed.
    pub is_error: bool,
    /// There was more text.
    pub truncated: bool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its place in the file, from 0. It never changes.
    pub index: u64,
    /// Who speaks.
    pub role: Word<TurnRole>,
    /// What is said.
    pub content: Vec<Block>,
    /// The model that spoke.
    pub model: Option<String>,
    /// When it was written.
    pub timestamp: Option<Timestamp>,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// The reference that stands for it.
    pub conversation: SessionRef,
    /// When its file was written, seconds since the Unix epoch.
    pub mtime: f64,
    /// How many turns it has.
    pub turn_count: u64,
    /// A session that runs writes it.
    pub live: bool,
    /// How it began: at most 120 characters, redacted.
    pub first_prompt: Option<String>,
    /// Time of its first record.
    pub first_ts: Option<Timestamp>,
    /// Time of its last record.
    pub last_ts: Option<Timestamp>,
    /// A helper of the agent or a program wrote it, not a person.
    pub is_subagent: bool,
    /// Bytes of its file.
    #[serde(default)]
    pub size_bytes: u64,
    /// The git worktree it works in; null for the project itself.
    #[serde(default)]
    pub worktree: Option<String>,
    /// The instance that holds it now, or the ended one that held it last.
    #[serde(default)]
    pub instance_id: Option<InstanceId>,
    /// Lines that could not be read: damaged, or longer than 8 MiB.
    #[serde(default)]
    pub skipped_lines: u64,
}

/// The conversations of a project: live ones first, then the newest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationList {
    /// The project.
    pub project: String,
    /// Its conversations.
    pub sessions: Vec<Conversation>,
    /// Files that are still being read; their figures are of what was read so far.
    #[serde(default)]
    pub pending_files: u64,
}

/// A page of turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationPage {
    /// The project.
    pub project: String,
    /// The reference of the conversation.
    pub conversation: SessionRef,
    /// The turns, in the order that was asked for.
    pub turns: Vec<Turn>,
    /// Where the next page begins; null at the end.
    pub next_cursor: Option<u64>,
    /// How many turns the conversation has.
    pub total: u64,
    /// What is known about the conversation.
    pub about: Conversation,
    /// Up to here the file was read: where a follower goes on.
    pub offset: u64,
}

/// What a conversation has gained. Also a frame of `/ws/conversation`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationTail {
    /// The project.
    pub project: String,
    /// The reference of the conversation.
    pub conversation: SessionRef,
    /// The turns, in the order of the file; the latest 1,000 at most.
    pub turns: Vec<Turn>,
    /// Where to go on.
    pub offset: u64,
    /// The file was replaced or cut: what was shown before no longer counts.
    pub reset: bool,
    /// A session that runs writes it.
    pub live: bool,
    /// How many turns the conversation has.
    #[serde(default)]
    pub total: u64,
}
