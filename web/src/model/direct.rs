//! What the live view of a Direct Session shows, folded from its frames.

use serde_json::Value;

/// Most entries that are kept.
pub const MOST: usize = 2000;
/// Most characters of one text.
const LONGEST: usize = 20_000;

/// One entry of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// What a person said.
    You(String),
    /// What the agent said.
    Agent(String),
    /// What the agent does, and what came of it.
    Step {
        /// The agent's name for it.
        id: String,
        /// The tool.
        tool: String,
        /// What it does with it, in one line.
        about: String,
        /// What came of it, and whether it failed.
        outcome: Option<(String, bool)>,
    },
    /// A turn is over, after so many milliseconds.
    TurnDone(Option<i64>),
    /// A line beside the conversation.
    Output(String),
    /// A question was decided.
    Decided(String),
    /// So many events cannot be shown.
    Gap(u64),
    /// The connection to the agent was lost.
    Lost,
    /// The agent has ended, with this code.
    Ended(Option<i64>),
}

/// The conversation as far as it was heard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Talk {
    /// In order.
    pub entries: Vec<Entry>,
    /// What the agent is saying right now.
    pub draft: String,
    /// Which stream was heard, and up to where.
    pub stream: String,
    /// Number of the last event.
    pub seq: u64,
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().chars().take(LONGEST).collect()
}

impl Talk {
    /// Takes a frame of the socket; frames that say nothing to a person change nothing.
    pub fn take(&mut self, frame: &Value) {
        if let Some(seq) = frame.get("event_seq").and_then(Value::as_u64) {
            if seq <= self.seq {
                return;
            }
            self.seq = seq;
        }
        let member = |name: &str| frame.get(name).unwrap_or(&Value::Null);
        match frame.get("type").and_then(Value::as_str).unwrap_or_default() {
            "hello" => {
                let stream = text_of(member("stream"));
                if self.stream != stream {
                    *self = Self { stream, ..Self::default() };
                }
            }
            "frame" => self.heard(member("frame")),
            "text" | "stderr" => self.push(Entry::Output(text_of(member("text")))),
            "control_resolved" => self.push(Entry::Decided(text_of(member("behavior")))),
            "gap" => {
                let number = |name: &str| member(name).as_u64();
                let lost = number("dropped").or_else(|| {
                    Some(number("to_seq")?.saturating_sub(number("from_seq")?).saturating_add(1))
                });
                self.push(Entry::Gap(lost.unwrap_or(0)));
            }
            "lost" => self.push(Entry::Lost),
            "exit" => self.push(Entry::Ended(member("exit_code").as_i64())),
            _ => {}
        }
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        if self.entries.len() > MOST {
            let more = self.entries.len() - MOST;
            self.entries.drain(..more);
        }
    }

    fn heard(&mut self, frame: &Value) {
        match frame.get("type").and_then(Value::as_str).unwrap_or_default() {
            "stream_event" => {
                let delta = frame.pointer("/event/delta/text").and_then(Value::as_str);
                self.draft.extend(delta.unwrap_or_default().chars().take(LONGEST));
            }
            "assistant" => {
                self.draft.clear();
                self.said(frame, Entry::Agent);
            }
            "user" => self.said(frame, Entry::You),
            "result" => {
                self.draft.clear();
                self.push(Entry::TurnDone(frame.get("duration_ms").and_then(Value::as_i64)));
            }
            _ => {}
        }
    }

    fn said(&mut self, frame: &Value, as_entry: fn(String) -> Entry) {
        let content = frame.pointer("/message/content").unwrap_or(&Value::Null);
        if content.is_string() {
            self.push(as_entry(text_of(content)));
            return;
        }
        for block in content.as_array().into_iter().flatten() {
            let member = |name: &str| block.get(name).unwrap_or(&Value::Null);
            match member("type").as_str().unwrap_or_default() {
                "text" => self.push(as_entry(text_of(member("text")))),
                "tool_use" => self.push(Entry::Step {
                    id: text_of(member("id")),
                    tool: text_of(member("name")),
                    about: about(member("input")),
                    outcome: None,
                }),
                "tool_result" => self.came_of(block),
                _ => {}
            }
        }
    }

    fn came_of(&mut self, block: &Value) {
        let of = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        let content = block.get("content").unwrap_or(&Value::Null);
        let parts = content.as_array().into_iter().flatten();
        let joined: Vec<String> =
            parts.filter_map(|part| Some(text_of(part.get("text")?))).collect();
        let text = if content.is_string() { text_of(content) } else { joined.join("\n") };
        let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let step = self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Step { id, outcome, .. } if id == of => Some(outcome),
            _ => None,
        });
        match step {
            Some(outcome) => *outcome = Some((text, failed)),
            None => self.push(Entry::Output(text)),
        }
    }
}

/// What a tool is about to do, in one line.
fn about(input: &Value) -> String {
    let told = ["command", "file_path", "url", "pattern", "query", "prompt"]
        .into_iter()
        .find_map(|name| input.get(name)?.as_str());
    let text = told.map_or_else(|| input.to_string(), str::to_owned);
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn talk(frames: &[Value]) -> Talk {
        let mut talk = Talk::default();
        frames.iter().for_each(|frame| talk.take(frame));
        talk
    }

    fn event(seq: u64, frame: Value) -> Value {
        json!({ "type": "frame", "event_seq": seq, "frame": frame })
    }

    #[test]
    fn a_turn_reads_as_a_conversation() {
        let talk = talk(&[
            json!({ "type": "hello", "stream": "s1", "first_seq": 1, "last_seq": 6 }),
            event(1, json!({ "type": "user", "message": { "content": "list" }, "isReplay": true })),
            event(2, json!({ "type": "stream_event", "event": { "delta": { "text": "I " } } })),
            event(
                3,
                json!({ "type": "assistant", "message": { "content": [
                { "type": "text", "text": "I look" },
                { "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "ls\nx" } } ] } }),
            ),
            json!({ "type": "control_resolved", "event_seq": 4, "behavior": "allow" }),
            event(
                5,
                json!({ "type": "user", "message": { "content": [
                { "type": "tool_result", "tool_use_id": "t1", "content": "done", "is_error": false } ] } }),
            ),
            event(6, json!({ "type": "result", "duration_ms": 1200 })),
        ]);
        assert_eq!(
            talk.entries,
            [
                Entry::You("list".into()),
                Entry::Agent("I look".into()),
                Entry::Step {
                    id: "t1".into(),
                    tool: "Bash".into(),
                    about: "ls".into(),
                    outcome: Some(("done".into(), false)),
                },
                Entry::Decided("allow".into()),
                Entry::TurnDone(Some(1200)),
            ]
        );
        assert!(talk.draft.is_empty());
    }

    #[test]
    fn what_was_heard_is_not_heard_twice_and_a_new_stream_begins_anew() {
        let one = event(1, json!({ "type": "user", "message": { "content": "a" } }));
        let mut talk =
            talk(&[json!({ "type": "hello", "stream": "s1" }), one.clone(), one.clone()]);
        assert_eq!(talk.entries.len(), 1);
        talk.take(&json!({ "type": "hello", "stream": "s1" }));
        assert_eq!(talk.entries.len(), 1);
        talk.take(&json!({ "type": "hello", "stream": "s2" }));
        assert!(talk.entries.is_empty());
        talk.take(&one);
        assert_eq!(talk.entries.len(), 1);
    }

    #[test]
    fn odd_frames_change_nothing_and_a_gap_is_counted() {
        for odd in [json!(null), json!([]), json!({ "type": 7 }), json!({ "type": "frame" })] {
            assert_eq!(talk(&[odd]), Talk::default());
        }
        let gap = json!({ "type": "gap", "from_seq": 3, "to_seq": 5 });
        assert_eq!(talk(&[gap]).entries, [Entry::Gap(3)]);
    }
}
