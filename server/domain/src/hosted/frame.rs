//! What an agent writes on its pipes: lines from chunks, and what a line means.

use crate::redact::redact_text;
use serde_json::Value;

/// A longer line is cut and marked.
pub const LONGEST_LINE: usize = 8 * 1024 * 1024;
/// Deeper members of a frame are replaced.
pub const DEEPEST: usize = 100;
const TOO_DEEP: &str = "[deeper than 100 levels]";
const CUT: &str = " [cut]";

/// Puts lines together from chunks of bytes.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
    is_cut: bool,
}

impl Lines {
    /// The lines that a chunk completes. Decoding is lossy per line, never per chunk.
    pub fn feed(&mut self, chunk: &[u8]) -> Vec<String> {
        let mut out = Vec::new();
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            let room = LONGEST_LINE - self.rest.len().min(LONGEST_LINE);
            self.is_cut |= text.len() > room;
            self.rest.extend_from_slice(text.get(..room.min(text.len())).unwrap_or_default());
            if ends {
                out.push(self.take());
            }
        }
        out
    }

    /// What was left without an end.
    pub fn finish(&mut self) -> Option<String> {
        (!self.rest.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> String {
        let bytes = std::mem::take(&mut self.rest);
        let mut line = String::from_utf8_lossy(&bytes).into_owned();
        if std::mem::take(&mut self.is_cut) {
            line.push_str(CUT);
        }
        line
    }
}

/// What a line of standard output means.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A message for readers.
    Frame(Value),
    /// The agent asks something.
    Request {
        /// Names the question.
        id: String,
        /// What kind it is.
        subtype: String,
        /// The question, unredacted.
        request: Value,
    },
    /// The agent withdraws a question.
    Cancel {
        /// Names the question.
        id: String,
    },
    /// The answer to a question of ours.
    Answer,
    /// No JSON object.
    Text(String),
    /// Nothing that anybody could use.
    Nothing,
}

/// Reads a line of standard output.
#[must_use]
pub fn read(line: &str) -> Output {
    if line.trim().is_empty() {
        return Output::Nothing;
    }
    // The parser refuses what is nested deeper than 128 levels.
    let Ok(Value::Object(frame)) = serde_json::from_str::<Value>(line) else {
        return Output::Text(line.to_owned());
    };
    let text = |name: &str| frame.get(name).and_then(Value::as_str).map(str::to_owned);
    match frame.get("type").and_then(Value::as_str) {
        Some("control_request") => {
            let Some(id) = text("request_id").filter(|id| is_request_id(id)) else {
                return Output::Nothing;
            };
            let request = frame.get("request").cloned().unwrap_or_default();
            let subtype = request.get("subtype").and_then(Value::as_str).unwrap_or("unknown");
            let subtype = subtype.chars().filter(|c| !c.is_control()).take(64).collect();
            Output::Request { id, subtype, request }
        }
        Some("control_cancel_request") => match text("request_id") {
            Some(id) => Output::Cancel { id },
            None => Output::Nothing,
        },
        Some("control_response") => Output::Answer,
        _ => Output::Frame(Value::Object(frame)),
    }
}

/// Whether a name of a question can be kept and stand in an address.
#[must_use]
pub fn is_request_id(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The conversation that a frame names.
#[must_use]
pub fn session_of(frame: &Value) -> Option<&str> {
    frame.get("session_id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

/// A frame fit to leave the service.
///
/// Every text is redacted. `reference` stands for the ids of conversations and messages.
#[must_use]
pub fn redacted(frame: Value, reference: &impl Fn(&str) -> Option<String>) -> Value {
    masked(frame, 0, reference)
}

fn masked(value: Value, depth: usize, reference: &impl Fn(&str) -> Option<String>) -> Value {
    if depth > DEEPEST {
        return TOO_DEEP.into();
    }
    match value {
        Value::String(text) => redact_text(&text).into(),
        Value::Array(items) => {
            items.into_iter().map(|item| masked(item, depth + 1, reference)).collect()
        }
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| {
                let is_id = matches!(name.as_str(), "session_id" | "uuid" | "parent_uuid");
                let value = match value {
                    Value::String(raw) if is_id => reference(&raw).map_or(Value::Null, Value::from),
                    other => masked(other, depth + 1, reference),
                };
                (redact_text(&name), value)
            })
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hd12_a_character_split_over_chunks_stays_whole_and_the_last_line_comes() {
        let mut lines = Lines::default();
        let (one, two) = "zwölf\nrest".as_bytes().split_at(3);
        assert!(lines.feed(one).is_empty());
        assert_eq!(lines.feed(two), ["zwölf"]);
        assert_eq!((lines.finish(), lines.finish()), (Some("rest".into()), None));
        assert_eq!(lines.feed(b"a\n\xff\n"), ["a", "\u{fffd}"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_says_so() {
        let mut lines = Lines::default();
        let chunk = vec![b'x'; LONGEST_LINE / 2 + 1];
        assert!(lines.feed(&chunk).is_empty() && lines.feed(&chunk).is_empty());
        let line = lines.feed(b"y\nnext\n");
        assert_eq!(line[0].len(), LONGEST_LINE + CUT.len());
        assert_eq!(line[1], "next");
    }

    #[test]
    fn a_line_is_a_question_a_frame_or_text() {
        let asked = json!({ "type": "control_request", "request_id": "r1",
            "request": { "subtype": "can_use_tool", "tool_name": "Bash" } });
        match read(&asked.to_string()) {
            Output::Request { id, subtype, request } => {
                assert_eq!((id.as_str(), subtype.as_str()), ("r1", "can_use_tool"));
                assert_eq!(request["tool_name"], "Bash");
            }
            other => panic!("{other:?}"),
        }
        let nameless = json!({ "type": "control_request", "request_id": 7, "request": {} });
        assert_eq!(read(&nameless.to_string()), Output::Nothing);
        let cancel = json!({ "type": "control_cancel_request", "request_id": "r1" });
        assert_eq!(read(&cancel.to_string()), Output::Cancel { id: "r1".into() });
        assert_eq!(read("garbage {"), Output::Text("garbage {".into()));
        assert_eq!(read("  "), Output::Nothing);
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        assert!(matches!(read(&deep), Output::Text(_)));
        assert!(matches!(read("{\"type\":\"result\"}"), Output::Frame(_)));
    }

    #[test]
    fn no_text_of_a_frame_leaves_unredacted_and_ids_become_references() {
        let secret = format!("ghp_{}", "a1B2".repeat(9));
        let frame = json!({ "type": "assistant", "session_id": "raw-id", "uuid": "raw-two",
            "message": { "content": [{ "text": format!("token {secret}") }] } });
        let reference = |raw: &str| Some(format!("ref-of-{}", raw.len()));
        let out = redacted(frame, &reference);
        assert!(!out.to_string().contains(&secret) && !out.to_string().contains("raw-"), "{out}");
        assert_eq!(out["session_id"], "ref-of-6");
        assert_eq!(redacted(json!({ "uuid": "raw" }), &|_| None)["uuid"], Value::Null);
        let mut deep = json!("bottom");
        for _ in 0..120 {
            deep = json!({ "d": deep });
        }
        let out = redacted(deep, &reference).to_string();
        assert!(out.contains(TOO_DEEP) && !out.contains("bottom"));
    }
}
