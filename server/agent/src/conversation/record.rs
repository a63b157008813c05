//! What the index wants to know of one line of a transcript.

use crate::json_part::{Wanted, part};
use serde_json::Value;
use svc_domain::token_cost::Tokens;
use svc_shared::Timestamp;

/// The model of replies that the agent makes up when the service refuses.
const SYNTHETIC: &str = "<synthetic>";

const TOKENS: Wanted = Wanted::Members(&[
    ("input_tokens", Wanted::Whole),
    ("output_tokens", Wanted::Whole),
    ("cache_creation_input_tokens", Wanted::Whole),
    ("cache_read_input_tokens", Wanted::Whole),
]);

const RECORD: Wanted = Wanted::Members(&[
    ("type", Wanted::Whole),
    ("cwd", Wanted::Whole),
    ("timestamp", Wanted::Whole),
    ("entrypoint", Wanted::Whole),
    ("isSidechain", Wanted::Whole),
    ("isMeta", Wanted::Whole),
    ("isApiErrorMessage", Wanted::Whole),
    (
        "message",
        Wanted::Members(&[
            ("role", Wanted::Whole),
            ("id", Wanted::Whole),
            ("model", Wanted::Whole),
            ("usage", TOKENS),
        ]),
    ),
]);

/// A line without its content.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record {
    /// Whether it is a turn: it has a message with a role.
    pub is_turn: bool,
    /// It may be the first prompt of a person.
    pub is_prompt: bool,
    pub cwd: Option<String>,
    pub at: Option<Timestamp>,
    /// A helper of the agent speaks; `None` when the line does not say.
    pub is_sidechain: Option<bool>,
    /// A program that drives the agent wrote it.
    pub is_program: bool,
    /// The agent made the reply up, because the service refused.
    pub is_refusal: bool,
    pub spent: Option<Spent>,
}

/// Tokens of one message of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spent {
    /// The same message may be written several times, under one id.
    pub message: Option<String>,
    pub model: String,
    pub tokens: Tokens,
}

/// Reads a line; `None` if it is no JSON object.
pub(crate) fn record(line: &[u8]) -> Option<Record> {
    let text = std::str::from_utf8(line).ok()?;
    let value = part(text, RECORD).ok()?;
    value.as_object()?;
    let word = |at: &str| value.pointer(at).and_then(Value::as_str);
    let is_turn = is_turn(&value);
    let is_meta = value.get("isMeta").and_then(Value::as_bool) == Some(true);
    Some(Record {
        is_turn,
        is_prompt: is_turn && word("/message/role") == Some("user") && !is_meta,
        cwd: word("/cwd").map(str::to_owned),
        at: word("/timestamp").and_then(|raw| raw.parse().ok()),
        is_sidechain: value.get("isSidechain").and_then(Value::as_bool),
        is_program: word("/entrypoint") == Some("sdk-py"),
        is_refusal: value.get("isApiErrorMessage").and_then(Value::as_bool) == Some(true),
        spent: spent(&value),
    })
}

/// Whether a record is a turn.
pub(crate) fn is_turn(record: &Value) -> bool {
    let role = record.pointer("/message/role").and_then(Value::as_str);
    role.is_some_and(|role| !role.is_empty())
}

fn spent(record: &Value) -> Option<Spent> {
    let message = record.get("message")?;
    let model = message.get("model")?.as_str()?;
    let usage = message.get("usage")?.as_object()?;
    if model == SYNTHETIC || message.get("role")?.as_str()? != "assistant" {
        return None;
    }
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(Spent {
        message: message.get("id").and_then(Value::as_str).map(str::to_owned),
        model: model.chars().take(100).collect(),
        tokens: Tokens {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_creation: count("cache_creation_input_tokens"),
            cache_read: count("cache_read_input_tokens"),
        },
    })
}
