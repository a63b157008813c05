//! One turn as readers see it: redacted, without control characters.

use serde_json::Value;
use svc_domain::redact::{Colour, Redactor};
use svc_shared::Word;
use svc_shared::characters::rewrite_invisible;
use svc_shared::internal::conversations::{Block, BlockKind, Turn, TurnRole};

/// Longest text of a part, bytes (`http-api` §3.2).
const LONGEST: usize = 64 * 1024;

/// Most parts of a turn.
const PARTS: usize = 1_000;

/// A record as a turn; `None` if it is not one.
pub(crate) fn turn(index: u64, line: &[u8]) -> Option<Turn> {
    let record: Value = serde_json::from_slice(line).ok()?;
    let message = record.get("message")?;
    let role = message.get("role")?.as_str().filter(|role| !role.is_empty())?;
    let content = message.get("content").map(parts).unwrap_or_default();
    let is_only_results =
        !content.is_empty() && content.iter().all(|block| block.kind.is(&BlockKind::ToolResult));
    let role = match role {
        "user" if is_only_results => TurnRole::Tool,
        "user" => TurnRole::User,
        "assistant" => TurnRole::Assistant,
        _ => TurnRole::System,
    };
    let model = message.get("model").and_then(Value::as_str);
    let at = record.get("timestamp").and_then(Value::as_str);
    Some(Turn {
        index,
        role: Word::from(role),
        content,
        model: model.map(|model| clean(&model.chars().take(100).collect::<String>())),
        timestamp: at.and_then(|raw| raw.parse().ok()),
    })
}

fn parts(content: &Value) -> Vec<Block> {
    match content {
        Value::String(text) => vec![block(BlockKind::Text, text)],
        Value::Array(parts) => parts.iter().take(PARTS).map(one).collect(),
        _ => Vec::new(),
    }
}

fn one(part: &Value) -> Block {
    let word = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
    match word("type") {
        "text" => block(BlockKind::Text, word("text")),
        "thinking" => block(BlockKind::Thinking, word("thinking")),
        "tool_use" => Block {
            tool: Some(clean(&word("name").chars().take(200).collect::<String>())),
            ..block(BlockKind::ToolUse, &input(part.get("input").unwrap_or(&Value::Null)))
        },
        "tool_result" => Block {
            is_error: part.get("is_error").and_then(Value::as_bool) == Some(true),
            ..block(BlockKind::ToolResult, &answer(part.get("content").unwrap_or(&Value::Null)))
        },
        other => block(BlockKind::Other, other),
    }
}

/// The arguments of a call, one to a line, texts without quotes.
fn input(arguments: &Value) -> String {
    let Some(members) = arguments.as_object() else {
        return if arguments.is_null() { String::new() } else { arguments.to_string() };
    };
    let lines = members.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            format!("{name}: {value}")
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What a tool answered: its texts, and a word for everything else.
fn answer(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| match part.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => {
                    let kind = part.get("type").and_then(Value::as_str).unwrap_or("part");
                    format!("[{kind}]")
                }
            };
            parts.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => content.to_string(),
    }
}

fn block(kind: BlockKind, raw: &str) -> Block {
    // Redacted as a whole: a secret that is cut in two is not recognised.
    let mut text = clean(raw);
    let truncated = text.len() > LONGEST;
    if truncated {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    Block { kind: Word::from(kind), text, tool: None, is_error: false, truncated }
}

/// Foreign text of any number of lines, fit to leave the service.
fn clean(raw: &str) -> String {
    let mut redactor = Redactor::new(Colour::Strip);
    let mut out = String::with_capacity(raw.len());
    for (number, line) in raw.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let line = redactor.line(line.strip_suffix('\r').unwrap_or(line));
        out.push_str(&rewrite_invisible(&line, |c| c == '\t', |_, _| {}));
    }
    out
}
