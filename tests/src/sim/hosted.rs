//! Knob `hosted`: the script of a conversation over pipes.

use serde::Deserialize;
use serde_json::Value;

/// Knob `hosted`: how a conversation goes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Hosted {
    pub(crate) init_delay_ms: u64,
    pub(crate) replies: Vec<Reply>,
    pub(crate) exit_after_turns: Option<u64>,
    pub(crate) exit_code: u8,
    pub(crate) stderr_per_s: u64,
    pub(crate) bad_line: Option<BadLine>,
    pub(crate) ignore_int: bool,
    /// Only the first turn has an `init`.
    pub(crate) init_once: bool,
    pub(crate) uuid: Option<String>,
    /// Withdraws a question that nobody answered for so long.
    pub(crate) cancel_request_ms: Option<u64>,
}

/// One scripted answer; the first whose pattern fits the user's text is taken.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reply {
    #[serde(rename = "match")]
    pub(crate) pattern: Option<String>,
    pub(crate) chunks: Vec<String>,
    pub(crate) chunk_ms: u64,
    pub(crate) tool: Option<Tool>,
    pub(crate) usage: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) input: Value,
    #[serde(default)]
    pub(crate) ask: bool,
}

/// A line no reader expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BadLine {
    Garbage,
    Deep,
    Huge,
    SplitUtf8,
}
