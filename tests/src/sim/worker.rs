//! A worker: the process the standard bridge starts per remote session.
//!
//! It registers itself, plays its script to the transcript and to standard output, and ends when
//! told to, when its starter is gone, or by a signal.

use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Instant;

use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::console::later;
use super::console::print;
use super::debug_log::DebugLog;
use super::double::Double;
use super::failure::Failure;
use super::ids::Draw;
use super::permission::{self, Call, Decision, Rules};
use super::registry::{Entry, Status};
use super::signals;
use super::transcript::{Source, Transcript, call_of};
use super::values::{ExitSignal, Role, Turn};

enum Event {
    Line(String),
    StarterGone,
    Signal(i32),
    /// A hook decided about a call.
    Decided(String, Decision),
}

/// Runs the worker to its end.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let session = option(&double.args, "--session-id")
        .ok_or_else(|| Failure::agent("Error: --session-id is required with --sdk-url"))?;
    let log = DebugLog::new(option(&double.args, "--debug-file").map(Into::into), &double.knobs);
    let drawn = || Draw::new(double.knobs.seed, &["worker", &session]).uuid();
    let uuid = double.knobs.session_id.clone().unwrap_or_else(drawn);
    log.debug(&format!("[worker] attached sessionId={session} transcript={uuid}"));

    // 64: the script and a few control lines; a full channel only makes the sender wait.
    let (sender, receiver) = sync_channel(64);
    signals::forward(&[SIGINT, SIGTERM], sender.clone(), Event::Signal)?;
    read_stdin(sender.clone());
    let entry = Entry::register(double, &uuid, "sdk-cli", "Remote session");
    emit(&json!({
        "type": "system", "subtype": "init", "session_id": uuid, "cwd": double.cwd,
        "model": "claude-sim-1", "permissionMode": "default",
    }));
    let mut play = Play {
        double,
        transcript: Transcript::new(double, &uuid, Source::Remote),
        uuid,
        entry,
        script: double.knobs.turns.clone().unwrap_or_else(usual_script).into(),
        turn_at: None,
        end_at: double.knobs.session_ms.map(later),
        waiting: 0,
        allowed: Rules::default(),
        sender,
    };
    play.plan_next();
    Ok(play.run(&receiver))
}

struct Play<'a> {
    double: &'a Double,
    transcript: Transcript,
    uuid: String,
    entry: Entry,
    script: VecDeque<Turn>,
    turn_at: Option<Instant>,
    end_at: Option<Instant>,
    /// How many calls wait for a permission.
    waiting: usize,
    /// What needs none any more.
    allowed: Rules,
    sender: SyncSender<Event>,
}

impl Play<'_> {
    fn run(mut self, receiver: &Receiver<Event>) -> u8 {
        loop {
            match next(receiver, self.turn_at.into_iter().chain(self.end_at).min()) {
                Some(Event::Line(line)) if asks_to_end(&line) => break,
                Some(Event::Line(_)) => {}
                Some(Event::Decided(call, decision)) => self.decided(&call, &decision),
                Some(Event::StarterGone) => break,
                Some(Event::Signal(signal)) => {
                    self.entry.remove();
                    return signals::die(ExitSignal(signal));
                }
                None => {
                    let now = Instant::now();
                    if self.end_at.is_some_and(|at| at <= now) {
                        break;
                    }
                    if self.turn_at.is_some_and(|at| at <= now) {
                        self.turn();
                    }
                }
            }
        }
        self.entry.remove();
        0
    }

    fn plan_next(&mut self) {
        self.turn_at = self.script.front().map(|turn| later(turn.after_ms));
    }

    /// A call was allowed or refused in the place of the remote client.
    fn decided(&mut self, call: &str, decision: &Decision) {
        match decision {
            Decision::Allow(rules) => {
                self.allowed.take(rules);
                self.transcript.append_result(self.double, call, "done", false);
            }
            Decision::Deny(why) => self.transcript.append_result(self.double, call, why, true),
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.entry.set(if self.waiting == 0 { Status::Idle } else { Status::Waiting });
    }

    fn turn(&mut self) {
        if let Some(turn) = self.script.pop_front() {
            let message = self.transcript.append(self.double, &turn);
            match turn.role {
                Role::User => {
                    self.entry.set(Status::Busy);
                    emit(&json!({ "type": "user", "message": message, "session_id": self.uuid }));
                }
                Role::Assistant => {
                    self.entry.set(Status::Busy);
                    emit(&json!({
                        "type": "assistant", "message": message, "session_id": self.uuid,
                    }));
                }
                Role::Permission => {
                    let (id, input) = call_of(&message);
                    let tool = turn.tool.as_deref().unwrap_or("Bash");
                    if self.allowed.allow(tool, &input) {
                        self.transcript.append_result(self.double, &id, "done", false);
                        return self.plan_next();
                    }
                    self.entry.set(Status::Waiting);
                    self.waiting += 1;
                    let call = Call {
                        session: &self.uuid,
                        transcript: self.transcript.file(),
                        tool,
                        input: &input,
                    };
                    let sender = self.sender.clone();
                    permission::ask(self.double, &call, move |decision| {
                        let _ = sender.send(Event::Decided(id, decision)); // it has ended
                    });
                    emit(&json!({
                        "type": "control_request", "request_id": self.uuid,
                        "request": {
                            "subtype": "can_use_tool",
                            "tool_name": turn.tool.as_deref().unwrap_or("Bash"),
                            "input": { "command": turn.text },
                        },
                    }));
                }
            }
            let over = self.script.front().is_none_or(|next| next.role == Role::User);
            if over && turn.role == Role::Assistant {
                self.entry.set(Status::Idle);
                emit(&json!({
                    "type": "result", "subtype": "success", "is_error": false,
                    "session_id": self.uuid,
                }));
            }
        }
        self.plan_next();
    }
}

/// The next event, or `None` at the deadline.
fn next(receiver: &Receiver<Event>, deadline: Option<Instant>) -> Option<Event> {
    let Some(deadline) = deadline else {
        return Some(receiver.recv().unwrap_or(Event::StarterGone));
    };
    match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(event) => Some(event),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Event::StarterGone),
    }
}

fn read_stdin(sender: SyncSender<Event>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(Event::Line(line)).is_err() {
                return; // the loop ended: so does the process
            }
        }
        let _ = sender.send(Event::StarterGone); // as above
    });
}

fn asks_to_end(line: &str) -> bool {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return false;
    };
    message.pointer("/request/subtype").and_then(Value::as_str) == Some("end_session")
}

fn emit(message: &Value) {
    print(&format!("{message}\n"));
}

fn option(args: &[String], name: &str) -> Option<String> {
    let at = args.iter().position(|arg| arg == name)?;
    args.get(at + 1).cloned()
}

/// What a session says when no scenario says otherwise.
fn usual_script() -> Vec<Turn> {
    let turn = |after_ms, role, text: &str, tool: Option<&str>| Turn {
        after_ms,
        role,
        text: text.to_owned(),
        tool: tool.map(str::to_owned),
        usage: None,
    };
    vec![
        turn(400, Role::User, "What does this project do?", None),
        turn(900, Role::Assistant, "I will look at the files first.", Some("Read")),
        turn(
            1200,
            Role::Assistant,
            "It is a sample project: a README, a few sources, and nothing that needs a network.",
            None,
        ),
    ]
}
