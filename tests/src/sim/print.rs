//! `--print` and the stream of JSON lines: one reply, or a conversation over pipes.
//!
//! Frames have the shape of agent 2.1.197: no `init` before the first turn, one at the start of
//! every turn, replays of the input on request, and a `result` at the end.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::console::later;
use super::console::{pause, print, say};
use super::debug_log::timestamp;
use super::double::Double;
use super::failure::Failure;
use super::files;
use super::hosted::{BadLine, Hosted, Reply, Tool};
use super::ids::Draw;
use super::permission::{self, Rules};
use super::transcript::{Source, Transcript};
use super::values::{Role, Turn};
use super::{load, signals, texts, worktree};

/// The words of a conversation.
#[derive(Debug, Default)]
struct Words {
    print: bool,
    output: String,
    input: String,
    partial: bool,
    replay: bool,
    resume: Option<String>,
    mode: Option<String>,
    worktree: Option<Option<String>>,
    prompt: Option<String>,
}

impl Words {
    fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut words = Self { output: "text".into(), input: "text".into(), ..Self::default() };
        let mut rest = args.iter().peekable();
        while let Some(word) = rest.next() {
            let mut value = || {
                rest.next().cloned().ok_or_else(|| {
                    Failure::agent(format!("error: option '{word}' argument missing"))
                })
            };
            match word.as_str() {
                "-p" | "--print" => words.print = true,
                "--output-format" => words.output = value()?,
                "--input-format" => words.input = value()?,
                "--include-partial-messages" => words.partial = true,
                "--replay-user-messages" => words.replay = true,
                "--verbose" | "--fork-session" | "-c" | "--continue" => {}
                "--permission-prompt-tool" | "--model" | "--debug-file" => drop(value()?),
                "--permission-mode" => words.mode = Some(value()?),
                "--resume" | "-r" => words.resume = Some(value()?),
                "--worktree" | "-w" => {
                    words.worktree = Some(rest.next_if(|next| !next.starts_with('-')).cloned());
                }
                "--" => words.prompt = rest.next().cloned(),
                odd if odd.starts_with('-') => {
                    return Err(Failure::agent(format!("error: unknown option '{odd}'")));
                }
                prompt => words.prompt = Some(prompt.to_owned()),
            }
        }
        match words.mode.as_deref() {
            Some(mode) if !texts::PERMISSION_MODES.contains(&mode) => Err(Failure::agent(format!(
                "error: option '--permission-mode <mode>' argument '{mode}' is invalid. Allowed \
                 choices are {}.",
                texts::PERMISSION_MODES.join(", ")
            ))),
            _ => Ok(words),
        }
    }
}

enum Event {
    Line(String),
    Closed,
    Signal(i32),
}

/// Runs a reply or a conversation to its end.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let words = Words::parse(&double.args)?;
    if let Some(name) = &words.worktree {
        worktree::enter(double, name.as_deref())?;
    }
    let streams = words.input == "stream-json";
    if streams && words.output != "stream-json" {
        return Err(Failure::agent(
            "Error: --input-format=stream-json requires output-format=stream-json.",
        ));
    }
    if !streams && words.prompt.is_none() {
        return Err(Failure::agent(texts::NO_INPUT));
    }
    // 64 input lines: a full channel only makes the reading thread wait.
    let (sender, receiver) = sync_channel(64);
    if streams {
        signals::forward(&[SIGINT, SIGTERM], sender.clone(), Event::Signal)?;
        read_stdin(sender);
    }
    let hosted = double.knobs.hosted.clone().unwrap_or_default();
    let session = words.resume.clone().or_else(|| hosted.uuid.clone()).unwrap_or_else(|| {
        let turn = std::process::id().to_string();
        Draw::new(double.knobs.seed, &["hosted", &turn]).uuid()
    });
    complain_steadily(hosted.stderr_per_s);
    let children = if streams { double.knobs.children } else { 0 };
    let _children =
        load::start_children(children, double.knobs.child_mode, double.knobs.child_life_ms);
    let transcript = Transcript::new(double, &session, Source::Remote);
    let draw = Draw::new(double.knobs.seed, &["frames", &session]);
    let mut talk = Talk {
        double,
        hosted,
        words,
        session,
        transcript,
        draw,
        receiver,
        turns: 0,
        waiting: VecDeque::new(),
        allowed: Rules::default(),
    };
    match talk.words.prompt.clone().filter(|_| !streams) {
        Some(prompt) => Ok(talk.once(&prompt)),
        None => Ok(talk.serve()),
    }
}

struct Talk<'a> {
    double: &'a Double,
    hosted: Hosted,
    words: Words,
    session: String,
    transcript: Transcript,
    draw: Draw,
    receiver: Receiver<Event>,
    turns: u64,
    /// Turns that came while another one ran.
    waiting: VecDeque<Value>,
    /// What needs no permission any more.
    allowed: Rules,
}

/// Why a turn, or the whole conversation, is over.
enum Stop {
    Interrupted,
    Leave(u8),
}

impl Talk<'_> {
    /// `-p PROMPT`.
    fn once(&mut self, prompt: &str) -> u8 {
        let logged_out = self.logged_out();
        let reply = self.reply(prompt);
        let text = if logged_out { texts::NOT_LOGGED_IN.to_owned() } else { reply.chunks.concat() };
        match self.words.output.as_str() {
            "stream-json" => {
                let message = json!({ "message": { "role": "user", "content": prompt } });
                let _ = self.turn(&message); // nothing can interrupt it
            }
            "json" => print(&format!("{}\n", self.result(&text, logged_out, &reply))),
            _ => print(&format!("{text}\n")),
        }
        u8::from(logged_out)
    }

    /// Reads turns until the input ends.
    fn serve(&mut self) -> u8 {
        loop {
            let message = match self.waiting.pop_front() {
                Some(message) => message,
                None => match self.receiver.recv() {
                    Ok(event) => match self.hear(event) {
                        Ok(Some(message)) => message,
                        Ok(None) | Err(Stop::Interrupted) => continue,
                        Err(Stop::Leave(code)) => return code,
                    },
                    Err(_) => return 0,
                },
            };
            match self.turn(&message) {
                Ok(()) => {}
                Err(Stop::Interrupted) => self.emit_interrupted(),
                Err(Stop::Leave(code)) => return code,
            }
            self.turns += 1;
            if self.hosted.exit_after_turns.is_some_and(|turns| self.turns >= turns) {
                return self.hosted.exit_code;
            }
        }
    }

    /// What an event means: a new turn, an answered request, or an end.
    fn hear(&mut self, event: Event) -> Result<Option<Value>, Stop> {
        let line = match event {
            Event::Line(line) => line,
            Event::Closed => return Err(Stop::Leave(0)),
            Event::Signal(SIGINT) if self.hosted.ignore_int => return Ok(None),
            Event::Signal(_) => return Err(Stop::Leave(0)),
        };
        if line.trim().is_empty() {
            return Ok(None);
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            say("Error parsing streaming input line: SyntaxError: JSON Parse error\n");
            return Err(Stop::Leave(1));
        };
        match message.get("type").and_then(Value::as_str) {
            Some("user") => Ok(Some(message)),
            Some("control_request") => {
                let subtype = message.pointer("/request/subtype").and_then(Value::as_str);
                let known = matches!(
                    subtype,
                    Some("initialize" | "interrupt" | "set_permission_mode" | "set_model")
                );
                let payload = match subtype {
                    Some("initialize") => json!({
                        "commands": [{ "name": "clear", "description": "Clear", "argumentHint": "" }],
                        "output_style": "default", "models": [], "account": {},
                    }),
                    _ => json!({}),
                };
                let mut response = json!({
                    "subtype": if known { "success" } else { "error" },
                    "request_id": message.get("request_id"), "response": payload,
                });
                if let (false, Some(fields)) = (known, response.as_object_mut()) {
                    fields.insert("error".into(), json!("Unsupported control request subtype"));
                }
                emit(&json!({ "type": "control_response", "response": response }));
                if subtype == Some("interrupt") { Err(Stop::Interrupted) } else { Ok(None) }
            }
            Some("control_response") => {
                self.note(&message);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Records an answer that came, expected or not: one JSON line in `answers.jsonl`.
    fn note(&self, answer: &Value) {
        let line = json!({ "session": self.session,
            "request": answer.pointer("/response/request_id"),
            "behavior": answer.pointer("/response/response/behavior") });
        let file = self.double.home.mark().join("answers.jsonl");
        let _ = files::append(&file, format!("{line}\n").as_bytes()); // the home went away
    }

    fn turn(&mut self, message: &Value) -> Result<(), Stop> {
        let text = spoken_text(message);
        if self.turns == 0 || !self.hosted.init_once {
            pause(self.hosted.init_delay_ms);
            self.emit_init();
        }
        self.frame(json!({ "type": "system", "subtype": "status", "status": "requesting" }));
        if self.words.replay {
            let mut replay = message.clone();
            if let Some(fields) = replay.as_object_mut() {
                fields.insert("type".into(), json!("user"));
                fields.entry("parent_tool_use_id").or_insert(Value::Null);
                fields.insert("timestamp".into(), json!(timestamp()));
                fields.insert("isReplay".into(), json!(true));
            }
            self.frame(replay);
        }
        self.transcript.append(self.double, &turn_of(Role::User, &text));
        if self.logged_out() {
            return self.refuse();
        }
        if let Some(kind) = self.hosted.bad_line {
            disturb(kind);
        }
        let reply = self.reply(&text);
        for chunk in &reply.chunks {
            self.idle(reply.chunk_ms)?;
            if self.words.partial {
                self.frame(json!({
                    "type": "stream_event", "parent_tool_use_id": null,
                    "event": { "type": "content_block_delta", "index": 0,
                        "delta": { "type": "text_delta", "text": chunk } },
                }));
            }
        }
        if let Some(tool) = &reply.tool {
            self.use_tool(tool)?;
        }
        let text = reply.chunks.concat();
        let mut said = turn_of(Role::Assistant, &text);
        said.usage.clone_from(&reply.usage);
        let message = self.transcript.append(self.double, &said);
        self.frame(json!({
            "type": "assistant", "message": message, "parent_tool_use_id": null,
        }));
        let result = self.result(&text, false, &reply);
        self.frame(result);
        Ok(())
    }

    fn refuse(&mut self) -> Result<(), Stop> {
        let text = texts::NOT_LOGGED_IN;
        self.frame(json!({
            "type": "assistant", "parent_tool_use_id": null, "error": "authentication_failed",
            "message": {
                "id": "synthetic", "type": "message", "role": "assistant", "model": "<synthetic>",
                "stop_reason": "stop_sequence", "usage": { "input_tokens": 0, "output_tokens": 0 },
                "content": [{ "type": "text", "text": text }],
            },
        }));
        let result = self.result(text, true, &Reply::default());
        self.frame(result);
        Ok(())
    }

    /// Asks if it must, and obeys. Permission without the input it is for is an error.
    fn use_tool(&mut self, tool: &Tool) -> Result<(), Stop> {
        let id = self.draw.id("toolu_");
        self.frame(json!({
            "type": "assistant", "parent_tool_use_id": null,
            "message": { "role": "assistant", "type": "message", "model": "claude-sim-1",
                "content": [{ "type": "tool_use", "id": id, "name": tool.name, "input": tool.input }] },
        }));
        let (failed, text) = if tool.ask && !self.allowed.allow(&tool.name, &tool.input) {
            self.ask(tool, &id)?
        } else {
            (false, "done".to_owned())
        };
        self.frame(json!({
            "type": "user", "parent_tool_use_id": null,
            "message": { "role": "user", "content": [{
                "type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed,
            }] },
        }));
        Ok(())
    }

    fn ask(&mut self, tool: &Tool, id: &str) -> Result<(bool, String), Stop> {
        let request = self.draw.uuid();
        emit(&json!({
            "type": "control_request", "request_id": request,
            "request": { "subtype": "can_use_tool", "tool_name": tool.name, "input": tool.input,
                "tool_use_id": id,
                "permission_suggestions": permission::suggestions(&tool.name, &tool.input) },
        }));
        let until = self.hosted.cancel_request_ms.map(later);
        loop {
            let event = match until {
                None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => {
                    self.receiver.recv_timeout(at.saturating_duration_since(Instant::now()))
                }
            };
            let event = match event {
                Ok(event) => event,
                Err(RecvTimeoutError::Disconnected) => return Err(Stop::Leave(0)),
                Err(RecvTimeoutError::Timeout) => {
                    emit(&json!({ "type": "control_cancel_request", "request_id": request }));
                    return Ok((true, "The question was withdrawn.".to_owned()));
                }
            };
            if let Event::Line(line) = &event
                && let Ok(answer) = serde_json::from_str::<Value>(line)
                && answer.get("type") == Some(&json!("control_response"))
            {
                self.note(&answer);
                if answer.pointer("/response/request_id") != Some(&json!(request)) {
                    continue;
                }
                let given = answer.pointer("/response/response").cloned().unwrap_or_default();
                return Ok(match given.get("behavior").and_then(Value::as_str) {
                    Some("allow") if given.get("updatedInput").is_some_and(Value::is_object) => {
                        self.allowed.take(&Rules::of(given.get("updatedPermissions")));
                        (false, "done".to_owned())
                    }
                    Some("allow") => (true, "Error: the answer holds no updatedInput".to_owned()),
                    _ => {
                        let why = given.get("message").and_then(Value::as_str).unwrap_or("denied");
                        (true, why.to_owned())
                    }
                });
            }
            if let Some(next) = self.hear(event)? {
                self.waiting.push_back(next);
            }
        }
    }

    /// Waits between chunks, and hears what comes meanwhile.
    fn idle(&mut self, ms: u64) -> Result<(), Stop> {
        let until = later(ms);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(left) {
                // The end of the input ends the conversation behind this turn, not in it.
                Ok(Event::Closed) | Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    return Ok(());
                }
                Ok(event) => {
                    if let Some(next) = self.hear(event)? {
                        self.waiting.push_back(next);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
            }
        }
    }

    fn reply(&self, text: &str) -> Reply {
        let fits = |reply: &&Reply| {
            let pattern = reply.pattern.as_deref();
            pattern.is_none_or(|p| Regex::new(p).is_ok_and(|regex| regex.is_match(text)))
        };
        if let Some(reply) = self.hosted.replies.iter().find(fits) {
            return reply.clone();
        }
        let turns = self.double.knobs.turns.iter().flatten();
        let scripted =
            turns.filter(|turn| turn.role == Role::Assistant).map(|t| t.text.clone()).next();
        let usual = || format!("A simulated reply to: {text}");
        Reply { chunks: vec![scripted.unwrap_or_else(usual)], ..Reply::default() }
    }

    fn emit_init(&mut self) {
        let init = json!({
            "type": "system", "subtype": "init",
            "cwd": std::env::current_dir().unwrap_or_else(|_| self.double.cwd.clone()),
            "tools": ["Bash", "Edit", "Read", "Write"], "mcp_servers": [],
            "model": "claude-sim-1", "permissionMode": self.words.mode.as_deref().unwrap_or("default"),
            "slash_commands": ["clear", "compact"], "apiKeySource": "none",
            "claude_code_version": self.double.profile.version(), "output_style": "default",
            "agents": ["general-purpose"], "skills": [], "plugins": [],
        });
        self.frame(init);
    }

    fn emit_interrupted(&mut self) {
        let mut result = self.result("", true, &Reply::default());
        if let Some(fields) = result.as_object_mut() {
            fields.insert("subtype".into(), json!("error_during_execution"));
        }
        self.frame(result);
    }

    fn result(&mut self, text: &str, is_error: bool, reply: &Reply) -> Value {
        let usage = reply.usage.clone();
        json!({
            "type": "result", "subtype": "success", "is_error": is_error, "duration_ms": 1,
            "duration_api_ms": 0, "num_turns": 1, "result": text, "session_id": self.session,
            "total_cost_usd": 0, "modelUsage": {}, "permission_denials": [],
            "usage": usage.unwrap_or_else(|| json!({ "input_tokens": 0, "output_tokens": 0 })),
            "terminal_reason": "completed", "uuid": self.draw.uuid(),
        })
    }

    /// A frame of the session, with its id and one of its own.
    fn frame(&mut self, mut frame: Value) {
        if let Some(fields) = frame.as_object_mut() {
            fields.insert("session_id".into(), json!(self.session));
            fields.insert("uuid".into(), json!(self.draw.uuid()));
            if self.double.profile.is_future() {
                fields.insert("lane".into(), json!("main"));
            }
        }
        emit(&frame);
    }

    fn logged_out(&self) -> bool {
        self.double.knobs.auth == super::values::Auth::LoggedOut
    }
}

fn emit(frame: &Value) {
    print(&format!("{frame}\n"));
}

fn spoken_text(message: &Value) -> String {
    let content = message.pointer("/message/content");
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    let joined =
        blocks.filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n");
    content.and_then(Value::as_str).map_or(joined, str::to_owned)
}

fn turn_of(role: Role, text: &str) -> Turn {
    Turn { after_ms: 0, role, text: text.to_owned(), tool: None, usage: None }
}

fn disturb(kind: BadLine) {
    match kind {
        BadLine::Garbage => print("warning: {\"type\": not a frame\n"),
        BadLine::Deep => print(&format!("{}{}\n", "[".repeat(5000), "]".repeat(5000))),
        BadLine::Huge => {
            print("{\"type\":\"system\",\"subtype\":\"note\",\"text\":\"");
            for _ in 0..9 {
                print(&"x".repeat(1 << 20));
            }
            print("\"}\n");
        }
        BadLine::SplitUtf8 => {
            let line = "{\"type\":\"system\",\"subtype\":\"note\",\"text\":\"🚀\"}\n".as_bytes();
            let cut = line.iter().position(|byte| !byte.is_ascii()).map_or(0, |at| at + 1);
            let (first, second) = line.split_at(cut);
            for part in [first, second] {
                let mut out = io::stdout().lock();
                let _ = out.write_all(part).and_then(|()| out.flush()); // gone: fine
                pause(5);
            }
        }
    }
}

fn complain_steadily(per_second: u64) {
    if per_second > 0 {
        let pace = Duration::from_secs(1) / u32::try_from(per_second).unwrap_or(u32::MAX);
        std::thread::spawn(move || {
            loop {
                say("warning: simulated complaint\n");
                std::thread::sleep(pace);
            }
        });
    }
}

fn read_stdin(sender: SyncSender<Event>) {
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(Event::Line(line)).is_err() {
                return; // the loop ended: so does the process
            }
        }
        let _ = sender.send(Event::Closed); // as above
    });
}
