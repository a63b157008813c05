//! The session of a job: `--session-id UUID … [-- PROMPT]`, the child of a host.
//!
//! It plays its script into the job's record, its registry entry and its transcript, and ends
//! when the script does, when told to, or when its host is gone.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::record::{Record, is_terminal};
use crate::sim::console::{after, pause, print, say};
use crate::sim::double::Double;
use crate::sim::failure::Failure;
use crate::sim::registry::{Entry, Status};
use crate::sim::remote::{Server, SessionState};
use crate::sim::texts::PERMISSION_MODES;
use crate::sim::transcript::{Source, Transcript};
use crate::sim::values::{JobChange, JobStep, Role, Turn};
use crate::sim::{load, signals};

/// How often the session checks that its home exists: it must not outlive a test.
const LOOK: Duration = Duration::from_secs(2);

enum Event {
    Signal(i32),
    HostGone,
}

/// The words of a session process.
#[derive(Debug, Default)]
struct Words {
    session: String,
    resume: Option<String>,
    fork: bool,
    door: Option<String>,
    name: Option<String>,
    prompt: String,
}

impl Words {
    fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut words = Self::default();
        let mut rest = args.iter().peekable();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().cloned().unwrap_or_default();
            match word.as_str() {
                "--session-id" => words.session = value(),
                "--resume" => words.resume = Some(value()),
                "--fork-session" => words.fork = true,
                "--name" => words.name = Some(value()),
                "--model" => drop(value()),
                "--permission-mode" => {
                    let mode = value();
                    if !PERMISSION_MODES.contains(&mode.as_str()) {
                        return Err(Failure::agent(format!(
                            "error: option '--permission-mode <mode>' argument '{mode}' is \
                             invalid. Allowed choices are {}.",
                            PERMISSION_MODES.join(", ")
                        )));
                    }
                }
                "--rc" | "--remote-control" => {
                    let name = rest.next_if(|next| !next.starts_with('-'));
                    words.door = Some(name.cloned().unwrap_or_else(|| "Background session".into()));
                }
                "--" => {
                    words.prompt = rest.by_ref().cloned().collect::<Vec<_>>().join(" ");
                }
                odd => {
                    return Err(Failure::agent(format!("error: unknown option '{odd}'")));
                }
            }
        }
        Ok(words)
    }
}

/// Runs the session to its end.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let words = Words::parse(&double.args)?;
    let id = words.session.get(..8).unwrap_or_default().to_owned();
    let record = Record::open(&double.home, &id)
        .ok_or_else(|| Failure::agent(format!("Error: there is no job {id} to work on")))?;
    if let Some(source) = words.resume.as_ref().filter(|_| words.fork)
        && !has_transcript(double, source)
    {
        record.settle("failed", Some(&format!("source session {source} not found")));
        return Ok(1);
    }
    // 8: signals and the end of the host are rare.
    let (sender, receiver) = sync_channel(8);
    signals::forward(&[SIGINT, SIGTERM], sender.clone(), Event::Signal)?;
    watch_host(sender);
    load::burn(double.knobs.cpu);
    let _memory = load::hold_memory(double.knobs.memory_mb);
    let mut play = Play::begin(double, words, record);
    loop {
        let wait = match play.due() {
            Some(at) => at.saturating_duration_since(Instant::now()).min(LOOK),
            None => LOOK,
        };
        let event = receiver.recv_timeout(wait);
        match event {
            Ok(Event::Signal(SIGINT)) if double.knobs.job_ignore_sigint => {}
            Ok(Event::Signal(SIGINT)) => {
                pause(double.knobs.shutdown_ms);
                play.close_door();
                play.entry.remove();
                // Agent 2.1.197 leaves a blocked job's record as it is.
                if play.record.text("state").as_deref() != Some("blocked") {
                    play.record.settle("done", None);
                }
                return Ok(0);
            }
            // The hang-up of a killed host: no time for an orderly end.
            Ok(Event::Signal(_) | Event::HostGone) | Err(RecvTimeoutError::Disconnected) => {
                play.entry.remove();
                return Ok(0);
            }
            Err(RecvTimeoutError::Timeout) if !double.home.mark().is_dir() => return Ok(0),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(code) = play.proceed() {
                    return Ok(code);
                }
            }
        }
    }
}

struct Play<'a> {
    double: &'a Double,
    record: Record,
    entry: Entry,
    transcript: Transcript,
    begun: Instant,
    script: VecDeque<JobStep>,
    prompt: String,
    door: Option<String>,
}

impl<'a> Play<'a> {
    fn begin(double: &'a Double, words: Words, record: Record) -> Self {
        let title = [words.name.as_deref(), Some(words.prompt.as_str()), Some(record.id())];
        let title = title.into_iter().flatten().find(|text| !text.is_empty()).unwrap_or_default();
        let entry = Entry::register_job(double, &words.session, record.id(), title);
        let transcript = Transcript::new(double, &words.session, Source::Background);
        if let Some(source) = words.resume.as_ref().filter(|_| words.fork) {
            transcript.inherit(source);
        }
        let logged_out = !double.knobs.auth.allows_remote_control();
        let door = words.door.as_ref().filter(|_| !logged_out).and_then(|title| {
            Server::new(&double.home, double.knobs.seed).open_door(&double.cwd, title).ok()
        });
        let usual = if logged_out { login_script() } else { usual_script(&words.prompt) };
        let script = match &double.knobs.job_script {
            Some(script) => script.clone(),
            None if words.prompt.is_empty() => Vec::new(),
            None => usual,
        };
        let mut play = Self {
            double,
            record,
            entry,
            transcript,
            begun: Instant::now(),
            script: script.into(),
            prompt: words.prompt,
            door,
        };
        play.introduce();
        play
    }

    /// The first words in the terminal, the transcript and the record.
    fn introduce(&mut self) {
        print(&format!("\u{1b}[1mClaude Code\u{1b}[22m v{}\r\n", self.double.profile.version()));
        if let Some(door) = &self.door {
            self.record.change(json!({ "bridgeSessionId": door }));
        }
        if self.prompt.is_empty() {
            return;
        }
        print(&format!("❯ {}\r\n", self.prompt));
        let turn = spoken(Role::User, &self.prompt);
        self.transcript.append(self.double, &turn);
        self.record.change(json!({
            "linkScanPath": self.transcript.file(),
            "inFlight": { "tasks": 0, "queued": 0, "kinds": [] },
        }));
    }

    fn due(&self) -> Option<Instant> {
        let step = self.script.front().map(|step| after(self.begun, step.0));
        let exit = self.double.knobs.exit_at_ms.map(|ms| after(self.begun, ms));
        step.into_iter().chain(exit).min()
    }

    /// Whatever is due; the exit code when that is the end.
    fn proceed(&mut self) -> Option<u8> {
        let now = Instant::now();
        let knobs = &self.double.knobs;
        if knobs.exit_at_ms.is_some_and(|ms| after(self.begun, ms) <= now) {
            if let Some(text) = &knobs.stderr_text {
                say(&format!("{text}\n"));
            }
            if let Some(signal) = knobs.exit_signal {
                return Some(signals::die(signal));
            }
            self.entry.remove();
            return Some(knobs.exit_code);
        }
        if self.script.front().is_none_or(|step| after(self.begun, step.0) > now) {
            return None;
        }
        let JobStep(_, step) = self.script.pop_front()?;
        self.take(&step)
    }

    fn take(&mut self, step: &JobChange) -> Option<u8> {
        let known = self.record.text("state").unwrap_or_default();
        let state = step.state.clone().unwrap_or(known);
        let tempo = step.tempo.clone().unwrap_or_else(|| usual_tempo(&state).to_owned());
        let mut changes = json!({ "state": state, "tempo": tempo, "needs": step.needs });
        let mut put = |field: &str, value: Value| {
            if let Some(fields) = changes.as_object_mut() {
                fields.insert(field.to_owned(), value);
            }
        };
        if let Some(detail) = &step.detail {
            put("detail", json!(detail));
        }
        if let Some(result) = &step.result {
            put("output", json!({ "result": result }));
            let turn = spoken(Role::Assistant, result);
            self.transcript.append(self.double, &turn);
            print(&format!("⏺ {result}\r\n"));
        }
        if let Some(text) = step.needs.as_ref().or(step.detail.as_ref()) {
            print(&format!("  ⎿  {text}\r\n"));
        }
        self.record.note(&state, step.detail.as_deref().unwrap_or(""), "");
        self.entry.set(match tempo.as_str() {
            "active" => Status::Busy,
            _ if step.needs.is_some() && state != "blocked" => Status::Waiting,
            _ => Status::Idle,
        });
        let ended = is_terminal(&state);
        if ended {
            // Gone from every other place before the record says so.
            self.close_door();
            self.entry.remove();
        }
        self.record.change(changes);
        ended.then(|| u8::from(state == "failed"))
    }

    /// Takes the session off the remote service: only an orderly end does.
    fn close_door(&mut self) {
        if let Some(door) = self.door.take() {
            let server = Server::new(&self.double.home, self.double.knobs.seed);
            let _ = server.set_session_state(&door, SessionState::Ended);
        }
    }
}

/// Reads until the host's end of the pipe is gone.
fn watch_host(sender: SyncSender<Event>) {
    std::thread::spawn(move || {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = sender.send(Event::HostGone); // the loop lives as long as the process
    });
}

fn has_transcript(double: &Double, session: &str) -> bool {
    let Ok(projects) = fs::read_dir(double.home.dir().join("projects")) else {
        return false;
    };
    let name = format!("{session}.jsonl");
    projects.filter_map(Result::ok).any(|project| project.path().join(&name).is_file())
}

fn spoken(role: Role, text: &str) -> Turn {
    Turn { after_ms: 0, role, text: text.to_owned(), tool: None, usage: None }
}

fn usual_tempo(state: &str) -> &'static str {
    match state {
        "working" => "active",
        "blocked" => "blocked",
        _ => "idle",
    }
}

fn step(ms: u64, state: &str, needs: Option<&str>, detail: &str, result: Option<&str>) -> JobStep {
    JobStep(
        ms,
        JobChange {
            state: Some(state.to_owned()),
            tempo: None,
            needs: needs.map(str::to_owned),
            detail: Some(detail.to_owned()),
            result: result.map(str::to_owned),
        },
    )
}

/// Agent 2.1.197 without a login: blocked at the first turn, for good.
fn login_script() -> Vec<JobStep> {
    vec![step(300, "blocked", Some("login required — run /login"), "", None)]
}

/// What a job does when no scenario says otherwise.
fn usual_script(prompt: &str) -> Vec<JobStep> {
    let first: String = prompt.chars().take(60).collect();
    vec![
        step(100, "working", None, &format!("reading: {first}"), None),
        step(1500, "blocked", Some("permission to run: ls"), "waiting for an answer", None),
        step(3000, "done", None, "finished", Some("Read the files; nothing had to be changed.")),
    ]
}
