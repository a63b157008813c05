//! The transcript of a session: `projects/<slug>/<uuid>.jsonl`, append only.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::debug_log::timestamp;
use super::double::Double;
use super::ids::Draw;
use super::values::{Role, Turn};
use super::{files, trust};

/// Which kind of session a transcript is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Remote,
    Background,
    /// Somebody at a terminal.
    Interactive,
}

/// Writes the turns of one session.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: PathBuf,
    session: String,
    branch: String,
    parent: Option<String>,
    draw: Draw,
    source: Source,
}

impl Transcript {
    pub(crate) fn new(double: &Double, session: &str, source: Source) -> Self {
        let dir = double.home.project_dir(&double.cwd);
        let _ = fs::create_dir_all(&dir); // a failed append below is the same loss
        Self {
            file: dir.join(format!("{session}.jsonl")),
            session: session.to_owned(),
            branch: trust::branch(&double.cwd),
            parent: None,
            draw: Draw::new(double.knobs.seed, &["transcript", session]),
            source,
        }
    }

    /// The transcript of a conversation that may have turns already.
    pub(crate) fn resume(double: &Double, session: &str, source: Source) -> Self {
        let mut transcript = Self::new(double, session, source);
        let records = transcript.records();
        if !records.is_empty() {
            let last = records.iter().rev().find_map(|record| record.get("uuid")?.as_str());
            transcript.parent = last.map(str::to_owned);
            // Another stream than that of the process that wrote the turns before.
            let count = records.len().to_string();
            transcript.draw = Draw::new(double.knobs.seed, &["transcript", session, &count]);
        }
        transcript
    }

    /// Begins with the turns of another session of the same directory, as a fork does.
    pub(crate) fn inherit(&self, source: &str) {
        let from = self.file.with_file_name(format!("{source}.jsonl"));
        if let Ok(turns) = fs::read(from) {
            let _ = files::append(&self.file, &turns); // a full disk fails the next turn too
        }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// What the file holds.
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Begins with the turns of another conversation, which is left as it is.
    pub(crate) fn copy_from(&self, source: &Self) -> std::io::Result<()> {
        for mut record in source.records() {
            if let Some(fields) = record.as_object_mut() {
                fields.insert("sessionId".into(), json!(self.session));
            }
            files::append(&self.file, format!("{record}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Appends the result of a call.
    pub(crate) fn append_result(&mut self, double: &Double, call: &str, text: &str, failed: bool) {
        let uuid = self.draw.uuid();
        let record = json!({
            "parentUuid": self.parent, "isSidechain": false, "userType": "external",
            "cwd": double.cwd, "sessionId": self.session, "version": double.profile.version(),
            "gitBranch": self.branch, "type": "user", "uuid": uuid, "timestamp": timestamp(),
            "entrypoint": if self.source == Source::Remote { "sdk-cli" } else { "cli" },
            "message": { "role": "user", "content": [{
                "type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed,
            }] },
        });
        let _ = files::append(&self.file, format!("{record}\n").as_bytes());
        self.parent = Some(uuid);
    }

    /// Appends a turn and returns its message as it goes to the stream as well.
    pub(crate) fn append(&mut self, double: &Double, turn: &Turn) -> Value {
        let message = message(turn, &mut self.draw);
        let kind = match turn.role {
            Role::User => "user",
            Role::Assistant | Role::Permission => "assistant",
        };
        let uuid = self.draw.uuid();
        let mut record = json!({
            "parentUuid": self.parent, "isSidechain": false, "userType": "external",
            "cwd": double.cwd, "sessionId": self.session, "version": double.profile.version(),
            "gitBranch": self.branch, "type": kind, "message": message, "uuid": uuid,
            "timestamp": timestamp(),
            "entrypoint": if self.source == Source::Remote { "sdk-cli" } else { "cli" },
        });
        if let (Source::Background, Some(fields)) = (self.source, record.as_object_mut()) {
            fields.insert("sessionKind".into(), json!("bg"));
        }
        if let (true, Some(fields)) = (is_limit(turn), record.as_object_mut()) {
            fields.insert("isApiErrorMessage".into(), json!(true));
            fields.insert("error".into(), json!("rate_limit"));
        }
        if let (true, Some(fields)) = (is_sign_out(turn), record.as_object_mut()) {
            fields.insert("isApiErrorMessage".into(), json!(true));
            fields.insert("error".into(), json!("authentication_failed"));
        }
        let _ = files::append(&self.file, format!("{record}\n").as_bytes());
        self.parent = Some(uuid);
        message
    }
}

/// The agent makes such a reply up when the account's plan allows no more.
fn is_limit(turn: &Turn) -> bool {
    turn.role == Role::Assistant
        && (turn.text.starts_with("You've hit your ") || turn.text.contains("limit reached|"))
}

/// So is this one, when the account is signed out.
fn is_sign_out(turn: &Turn) -> bool {
    turn.role == Role::Assistant && turn.text.ends_with("Please run /login")
}

/// The call of a message that `append` returned: its name and its input.
pub(crate) fn call_of(message: &Value) -> (String, Value) {
    let parts = message.get("content").and_then(Value::as_array);
    let call = parts.into_iter().flatten().find(|part| part.get("id").is_some());
    let id = call.and_then(|call| call.get("id")?.as_str()).unwrap_or_default();
    (id.to_owned(), call.and_then(|call| call.get("input")).cloned().unwrap_or_default())
}

fn message(turn: &Turn, draw: &mut Draw) -> Value {
    if turn.role == Role::User {
        return json!({ "role": "user", "content": turn.text });
    }
    let mut content = Vec::new();
    if !turn.text.is_empty() {
        content.push(json!({ "type": "text", "text": turn.text }));
    }
    if turn.role == Role::Permission {
        content.push(json!({
            "type": "tool_use", "id": draw.id("toolu_"),
            "name": turn.tool.as_deref().unwrap_or("Bash"), "input": { "command": turn.text },
        }));
    } else if let Some(tool) = &turn.tool {
        content.push(json!({
            "type": "tool_use", "id": draw.id("toolu_"), "name": tool,
            "input": { "command": "ls", "file_path": "README.md" },
        }));
    }
    let usage = turn.usage.clone().unwrap_or_else(|| {
        json!({
            "input_tokens": 12, "output_tokens": 80,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 900,
        })
    });
    json!({
        "id": draw.id("msg_"), "type": "message", "role": "assistant",
        "model": if is_limit(turn) || is_sign_out(turn) { "<synthetic>" } else { "claude-sim-1" }, "content": content, "usage": usage,
    })
}
