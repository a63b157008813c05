//! Whether a conversation shows the result of a call that waits for a permission.
//!
//! The agent writes a call before it asks for it, and its result when it was allowed or refused, by
//! whomever. It does not end a hook that waits meanwhile (agents 2.1.31 to 2.1.211), so this file
//! tells that somebody answered in another client.

use crate::regular_file::open_regular;
use serde_json::Value;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use svc_shared::Timestamp;

/// Most bytes from the end of a conversation that are read at first.
const TAIL: u64 = 8 * 1024 * 1024;
/// Most bytes that one step reads.
const STEP: u64 = 16 * 1024 * 1024;

/// A call in a conversation.
#[derive(Debug)]
pub struct AnsweredCall {
    file: PathBuf,
    tool: String,
    input: Value,
    /// The agent's own name of the call, where it was told.
    id: Option<String>,
    /// When the question was asked.
    asked_at: Timestamp,
    offset: Option<u64>,
    /// Calls like it that have no result.
    open: Vec<String>,
}

impl AnsweredCall {
    /// The call of `tool` with `input` in this file.
    ///
    /// `asked_at` is when a question was asked about it.
    #[must_use]
    pub fn new(
        file: PathBuf,
        tool: String,
        input: Value,
        id: Option<String>,
        asked_at: Timestamp,
    ) -> Self {
        Self { file, tool, input, id, asked_at, offset: None, open: Vec::new() }
    }

    /// Reads what was added. `true` once the call has its result. Blocks.
    ///
    /// Where several calls are the same, all of them must have theirs: none is taken for another.
    ///
    /// # Errors
    /// The file cannot be read, or is no regular file.
    pub fn read_on(&mut self) -> io::Result<bool> {
        let mut file = match open_regular(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let length = file.metadata()?.len();
        let read_on = self.offset.filter(|offset| *offset <= length);
        let is_first = read_on.is_none();
        if is_first {
            // At the beginning, or the file was replaced.
            self.open.clear();
        }
        let start = read_on.unwrap_or_else(|| length.saturating_sub(TAIL));
        file.seek(SeekFrom::Start(start))?;
        let mut read = Vec::new();
        file.take(STEP).read_to_end(&mut read)?;
        // The last line is read again when it is whole.
        let whole = read.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.offset = Some(start + whole as u64);
        let mut is_answered = false;
        for line in read.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n') {
            is_answered |= self.line(line, is_first);
        }
        Ok(is_answered)
    }

    fn line(&mut self, line: &[u8], is_first: bool) -> bool {
        // Most lines are about something else; parsing them is what costs.
        let Ok(record) = serde_json::from_slice::<Value>(line) else { return false };
        let content = record.pointer("/message/content").and_then(Value::as_array);
        let mut is_answered = false;
        for part in content.into_iter().flatten() {
            let text = |name: &str| part.get(name).and_then(Value::as_str);
            match text("type") {
                Some("tool_use") => {
                    let is_it = text("name") == Some(&self.tool)
                        && part.get("input") == Some(&self.input)
                        && self.id.is_none();
                    self.open.extend(text("id").filter(|_| is_it).map(str::to_owned));
                }
                Some("tool_result") => {
                    let Some(of) = text("tool_use_id") else { continue };
                    if self.id.as_deref() == Some(of) {
                        return true;
                    }
                    let before = self.open.len();
                    self.open.retain(|id| id != of);
                    // What had its result before the question is about an earlier call.
                    let is_new = !is_first || self.is_later(&record);
                    is_answered |= self.open.len() < before && self.open.is_empty() && is_new;
                }
                Some(_) | None => {}
            }
        }
        is_answered
    }

    /// Whether the agent wrote this after the question was asked.
    fn is_later(&self, record: &Value) -> bool {
        let written = record.get("timestamp").and_then(Value::as_str);
        let written = written.and_then(|text| text.parse::<Timestamp>().ok());
        written.is_some_and(|written| written >= self.asked_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;

    fn call(id: &str, command: &str) -> Value {
        json!({ "type": "assistant", "message": { "content": [
            { "type": "text", "text": "…" },
            { "type": "tool_use", "id": id, "name": "Bash", "input": { "command": command } },
        ] } })
    }

    fn result(id: &str) -> Value {
        json!({ "type": "user", "message": { "content": [
            { "type": "tool_result", "tool_use_id": id, "content": "done" },
        ] } })
    }

    fn add(file: &std::path::Path, record: &Value) {
        let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
        writeln!(file, "{record}").unwrap();
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-02-03T{time}:00Z").parse().unwrap()
    }

    #[test]
    fn a_result_written_while_nobody_read_answers_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.jsonl");
        let of = || {
            let input = json!({ "command": "make" });
            AnsweredCall::new(file.clone(), "Bash".into(), input, None, at("10:00"))
        };
        let add = |mut record: Value, time: &str| {
            record["timestamp"] = json!(format!("2026-02-03T{time}:00Z"));
            add(&file, &record);
        };
        add(call("t1", "make"), "09:00");
        add(result("t1"), "09:01");
        assert!(!of().read_on().unwrap(), "that was an earlier call");
        add(call("t2", "make"), "09:59");
        assert!(!of().read_on().unwrap());
        add(result("t2"), "10:01");
        assert!(of().read_on().unwrap());
    }

    #[test]
    fn a_file_that_was_replaced_tells_of_earlier_calls_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.jsonl");
        add(&file, &call("other", "make a long way"));
        let input = json!({ "command": "make" });
        let mut one = AnsweredCall::new(file.clone(), "Bash".into(), input, None, at("10:00"));
        assert!(!one.read_on().unwrap());
        fs::write(&file, "").unwrap();
        assert!(!one.read_on().unwrap());
        add(&file, &call("t1", "make"));
        add(&file, &result("t1"));
        assert!(one.read_on().unwrap(), "it was added since");
        fs::write(&file, format!("{}\n", call("t1", "make"))).unwrap();
        assert!(!one.read_on().unwrap());
    }

    #[test]
    fn a_result_of_this_call_alone_answers_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.jsonl");
        let of = |id: Option<&str>| {
            let input = json!({ "command": "make" });
            let id = id.map(str::to_owned);
            AnsweredCall::new(file.clone(), "Bash".into(), input, id, at("10:00"))
        };
        let (mut by_input, mut by_name) = (of(None), of(Some("t2")));
        assert!(!by_input.read_on().unwrap(), "there is no file yet");
        // The same was called and answered before.
        add(&file, &call("t1", "make"));
        add(&file, &result("t1"));
        add(&file, &call("t2", "make"));
        add(&file, &call("other", "ls"));
        assert!(!by_input.read_on().unwrap() && !by_name.read_on().unwrap());
        add(&file, &result("other"));
        assert!(!by_input.read_on().unwrap() && !by_name.read_on().unwrap());
        // Half a line is no line.
        let text = result("t2").to_string();
        let (half, rest) = text.split_at(20);
        let mut raw = OpenOptions::new().append(true).open(&file).unwrap();
        raw.write_all(half.as_bytes()).unwrap();
        assert!(!by_input.read_on().unwrap() && !by_name.read_on().unwrap());
        writeln!(raw, "{rest}").unwrap();
        assert!(by_input.read_on().unwrap() && by_name.read_on().unwrap());
    }

    #[test]
    fn of_equal_calls_all_must_be_answered() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.jsonl");
        add(&file, &call("t1", "make"));
        add(&file, &call("t2", "make"));
        let input = json!({ "command": "make" });
        let mut one = AnsweredCall::new(file.clone(), "Bash".into(), input, None, at("10:00"));
        assert!(!one.read_on().unwrap());
        add(&file, &result("t2"));
        assert!(!one.read_on().unwrap());
        add(&file, &result("t1"));
        assert!(one.read_on().unwrap());
    }

    #[test]
    fn a_pipe_in_its_place_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "").unwrap();
        let file = dir.path().join("one.jsonl");
        std::os::unix::fs::symlink(&target, &file).unwrap();
        let mut one = AnsweredCall::new(file, "Bash".into(), Value::Null, None, at("10:00"));
        assert!(one.read_on().is_err());
    }
}
