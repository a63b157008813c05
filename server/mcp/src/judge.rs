//! Which lines are whole valid messages, and what is answered to the others.
//!
//! The rows of `command-line` §6 that are about the message and not about what it asks for.

use serde_json::{Value, json};

/// Most messages in one batch.
/// Each may get an answer, and all answers are held together.
pub(crate) const LARGEST_BATCH: usize = 100;

/// The line is no JSON document.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// The document is no message.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// The parameters do not fit.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Judged {
    /// Nothing, or a notification that nobody can understand: not answered.
    Nothing,
    /// No valid message; this is the answer.
    Refused(Value),
    /// One valid message.
    One(Message),
    /// Several documents, each to be judged.
    Batch(Vec<Value>),
}

/// A valid message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// It wants an answer with this id.
    Request {
        /// A text or a whole number.
        id: Value,
        /// The whole message.
        message: Value,
    },
    /// It wants none.
    Notification(Value),
}

/// The error object of an answer.
pub(crate) fn refusal(code: i64, message: &str, id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// What a line is; batches are valid only under one version of the protocol.
pub(crate) fn judge_line(line: &[u8], takes_batches: bool) -> Judged {
    if line.trim_ascii().is_empty() {
        return Judged::Nothing;
    }
    // Nesting is limited to 128 by the parser, which also refuses invalid UTF-8.
    match serde_json::from_slice::<Value>(line) {
        Err(error) => refused(PARSE_ERROR, &format!("parse error: {error}"), &Value::Null),
        Ok(Value::Array(all)) if !takes_batches => {
            drop(all);
            invalid("batches exist only in version 2025-03-26 of the protocol", &Value::Null)
        }
        Ok(Value::Array(all)) if all.is_empty() => {
            invalid("an empty batch asks for nothing", &Value::Null)
        }
        Ok(Value::Array(all)) if all.len() > LARGEST_BATCH => {
            invalid(&format!("a batch holds at most {LARGEST_BATCH} messages"), &Value::Null)
        }
        Ok(Value::Array(all)) => Judged::Batch(all),
        Ok(document) => judge(document),
    }
}

/// What one document is.
pub(crate) fn judge(document: Value) -> Judged {
    let Value::Object(members) = &document else {
        return invalid("a message is an object", &Value::Null);
    };
    let id = members.get("id").cloned();
    let known = match &id {
        None => Value::Null,
        Some(id) if is_id(id) => id.clone(),
        Some(_) => {
            return invalid("`id` must be a text or a whole number of 64 bits", &Value::Null);
        }
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("`jsonrpc` must be \"2.0\"", &known);
    }
    if !members.get("method").is_some_and(Value::is_string) {
        return invalid("`method` is missing or no text", &known);
    }
    let fits = members.get("params").is_none_or(Value::is_object);
    match (id, fits) {
        (Some(id), true) => Judged::One(Message::Request { id, message: document }),
        (Some(id), false) => refused(INVALID_PARAMS, "`params` must be an object", &id),
        (None, true) => Judged::One(Message::Notification(document)),
        (None, false) => Judged::Nothing,
    }
}

/// What the SDK can read as an id.
fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64()
}

fn invalid(message: &str, id: &Value) -> Judged {
    refused(INVALID_REQUEST, &format!("invalid request: {message}"), id)
}

fn refused(code: i64, message: &str, id: &Value) -> Judged {
    Judged::Refused(refusal(code, message, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The code and the id of the refusal.
    #[track_caller]
    fn check(line: &str, code: i64, id: Value) {
        match judge_line(line.as_bytes(), false) {
            Judged::Refused(answer) => {
                assert_eq!(
                    (&answer["error"]["code"], &answer["id"]),
                    (&json!(code), &id),
                    "{line}"
                );
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn h137_what_is_no_json_is_a_parse_error() {
        for line in ["{", "nonsense", "{\"jsonrpc\":\"2.0\"}}", "\"\\ud800\""] {
            check(line, PARSE_ERROR, Value::Null);
        }
        check(&format!("{}1{}", "[".repeat(129), "]".repeat(129)), PARSE_ERROR, Value::Null);
        let broken = [b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p".as_slice(), &[0xff], b"\"}"];
        let judged = judge_line(&broken.concat(), false);
        assert!(matches!(judged, Judged::Refused(answer) if answer["error"]["code"] == -32700));
    }

    #[test]
    fn h137_what_is_no_message_is_an_invalid_request() {
        let none = Value::Null;
        for line in ["1", "null", "\"ping\"", "[]", "[1]", "{}", "{\"jsonrpc\":\"2.0\"}"] {
            check(line, INVALID_REQUEST, none.clone());
        }
        check(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, INVALID_REQUEST, json!(7));
        check(r#"{"id":"a","method":"ping"}"#, INVALID_REQUEST, json!("a"));
        check(r#"{"jsonrpc":"2.0","id":7}"#, INVALID_REQUEST, json!(7));
        check(r#"{"jsonrpc":"2.0","id":7,"method":1}"#, INVALID_REQUEST, json!(7));
        for id in ["null", "true", "{}", "[]", "1.5", "18446744073709551615"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            check(&line, INVALID_REQUEST, none.clone());
        }
    }

    #[test]
    fn h137_parameters_are_an_object() {
        for params in ["[]", "null", "1", "\"x\""] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#);
            check(&line, INVALID_PARAMS, json!(1));
            let line = format!(r#"{{"jsonrpc":"2.0","method":"x","params":{params}}}"#);
            assert_eq!(judge_line(line.as_bytes(), false), Judged::Nothing, "{line}");
        }
    }

    #[test]
    fn h137_messages_and_batches_are_told_apart() {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let request = Message::Request { id: json!(1), message: ping.clone() };
        assert_eq!(judge_line(ping.to_string().as_bytes(), false), Judged::One(request));
        assert_eq!(judge_line(b" \t\r", false), Judged::Nothing);
        let batch = json!([ping, 1]);
        let judged = judge_line(batch.to_string().as_bytes(), true);
        assert_eq!(judged, Judged::Batch(vec![batch[0].clone(), json!(1)]));
        let many = json!(vec![1; LARGEST_BATCH + 1]).to_string();
        assert!(matches!(judge_line(many.as_bytes(), true), Judged::Refused(_)));
    }

    proptest! {
        #[test]
        fn h137_no_line_is_answered_by_more_than_one_error(line in ".{0,200}") {
            match judge_line(line.as_bytes(), true) {
                Judged::Refused(answer) => prop_assert!(answer["error"]["code"].is_i64()),
                Judged::Nothing | Judged::One(_) | Judged::Batch(_) => {}
            }
        }
    }
}
