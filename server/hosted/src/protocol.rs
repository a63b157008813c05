//! The messages between service and daemon (`hosted-daemon` §§2–4).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of the protocol that both ends speak.
pub const PROTOCOL: u64 = 1;
/// Longest line in either direction, with its end.
pub const LONGEST_LINE: usize = 1024 * 1024;
/// Most bytes of a stream in one frame.
pub const CHUNK: usize = 32 * 1024;
/// Most raw bytes of input in one request.
/// With base64 and envelope it stays below [`LONGEST_LINE`].
pub const STDIN_CHUNK: usize = 700_000;
/// Most bytes of input that come in parts and are handed over as one.
/// Longer than every line that an agent's own question leads to.
pub const LONGEST_INPUT: usize = 16 * 1024 * 1024;
/// Bytes of input that wait for one process; one longer input waits alone.
pub const STDIN_QUEUE: usize = 4 * 1024 * 1024;
/// Bytes of encoded frames that are kept of one process.
pub const REPLAY_BYTES: usize = 16 * 1024 * 1024;

/// Codes of errors.
pub mod code {
    /// The line is no JSON, or too long.
    pub const PARSE: i64 = -32700;
    /// The object is no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Nobody knows this method.
    pub const UNKNOWN_METHOD: i64 = -32601;
    /// A parameter is missing or wrong.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The daemon failed.
    pub const INTERNAL: i64 = -32603;
    /// The token is missing or wrong.
    pub const UNAUTHORIZED: i64 = -32001;
    /// The id belongs to a process already.
    pub const ALREADY_LIVE: i64 = -32010;
    /// The program could not be started.
    pub const EXEC_FAILED: i64 = -32011;
    /// Too many processes.
    pub const CAPACITY: i64 = -32012;
    /// Too much input waits for the process.
    pub const STDIN_FULL: i64 = -32013;
    /// The process still runs.
    pub const STILL_RUNNING: i64 = -32014;
}

/// A request.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// Matches the response.
    pub id: u64,
    /// Name of the method.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// The token.
    #[serde(default)]
    pub auth: String,
}

/// An error as the daemon answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of [`code`].
    pub code: i64,
    /// For a person.
    pub message: String,
}

impl RpcError {
    /// An error with this text.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Which stream of a process a frame is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The end; the last frame.
    Exit,
}

/// A frame of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFrame {
    /// Which process.
    #[serde(rename = "processId")]
    pub process_id: String,
    /// Which stream.
    pub stream: StreamName,
    /// From 1, one more per frame over all streams of the process.
    pub seq: u64,
    /// Content in base64; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Code at the end.
    #[serde(rename = "exitCode", default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// What the daemon says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Its release.
    pub version: String,
    /// The protocol that it speaks.
    pub protocol: u64,
    /// Its methods.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Its pid.
    #[serde(default)]
    pub pid: i64,
    /// Processes that it holds.
    #[serde(default)]
    pub children: u64,
}

/// The answer to `process.spawn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawned {
    /// Pid of the agent.
    #[serde(default)]
    pub pid: i64,
    /// Clock ticks since boot at its start.
    #[serde(rename = "startTime", default)]
    pub start_time: u64,
    /// The boot.
    #[serde(rename = "bootId", default)]
    pub boot_id: String,
}

/// The answer to `process.reattach`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reattached {
    /// Whether the daemon knows the process.
    pub found: bool,
    /// Whether it runs.
    #[serde(default)]
    pub running: bool,
    /// The oldest frame that is kept; 0 for none.
    #[serde(rename = "firstSeq", default)]
    pub first_seq: u64,
    /// The newest frame.
    #[serde(rename = "lastSeq", default)]
    pub last_seq: u64,
}

/// One process of `process.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its pid.
    #[serde(default)]
    pub pid: i64,
    /// Clock ticks since boot at its start.
    #[serde(rename = "startTime", default)]
    pub start_time: u64,
    /// Whether it runs.
    #[serde(default)]
    pub running: bool,
    /// Whether it survived a daemon that is gone: its pipes are lost.
    #[serde(default)]
    pub orphan: bool,
}

/// Whether a text can be the id of a process.
#[must_use]
pub fn is_process_id(id: &str) -> bool {
    (16..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

/// The line of an answer.
#[must_use]
pub fn answer(id: &Value, result: &Result<Value, RpcError>) -> Vec<u8> {
    let mut line = match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
    .to_string()
    .into_bytes();
    line.push(b'\n');
    line
}
