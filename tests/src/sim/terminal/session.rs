//! The loop of an interactive session: turns, remote link, keys and the end.

mod link;

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGWINCH};

use super::args::Args;
use super::conversation::Conversation;
use super::keys::{Key, Keys};
use super::screen::{Block, Line, Screen};
use super::tty;
use crate::sim::bridge::agenda::Agenda;
use crate::sim::bridge::noise;
use crate::sim::calls;
use crate::sim::console::{after, pause, say};
use crate::sim::debug_log::DebugLog;
use crate::sim::double::Double;
use crate::sim::files;
use crate::sim::permission::{self, Call, Decision};
use crate::sim::registry::{Entry, Status};
use crate::sim::remote::{Server, SessionState};
use crate::sim::transcript::call_of;
use crate::sim::values::{ExitSignal, Role, Turn};

/// Longest wait for the answers to the queries.
const ANSWERS_MS: u64 = 200;
/// How long the agent waits for the second Ctrl-C.
const AGAIN_MS: u64 = 2_000;
/// Time between two bursts of a storm.
const STORM_MS: u64 = 10;
/// Exit code after SIGTERM (agent 2.1.197).
const TERMINATED: u8 = 143;

const DIM: &str = "\x1b[38;5;246m";
const ERROR: &str = "\x1b[38;5;211m";
const USER: &str = "\x1b[48;5;237m\x1b[38;5;231m";

/// What can happen to a session.
pub(super) enum Event {
    Signal(i32),
    /// Bytes of the terminal; none when it hung up.
    Typed(Vec<u8>),
    /// Bytes of knob `tui.feed`.
    Fed(Vec<u8>),
    /// A hook decided about a call.
    Decided(String, Decision),
}

/// What the session does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    AnswersOver,
    Connect,
    Script,
    Turn,
    Reply,
    Spin,
    HintOver,
    Storm,
    Poison,
    Fail,
    /// A step of knob `link`, by its place.
    Link(usize),
}

/// How the process ends.
pub(super) enum End {
    Code(u8),
    Signal(ExitSignal),
}

pub(super) struct Session<'a> {
    double: &'a Double,
    args: Args,
    log: DebugLog,
    screen: Screen,
    conversation: Conversation,
    entry: Entry,
    server: Server,
    agenda: Agenda<Act>,
    begun: Instant,
    keys: Keys,
    /// The remote session, once it is attached.
    remote: Option<String>,
    /// The link as the status line shows it.
    link: &'static str,
    script: VecDeque<Turn>,
    /// Text of the prompt that waits for its reply.
    asked: Option<String>,
    /// A turn is open since then.
    turn: Option<Instant>,
    /// The tool a turn waits for.
    asking: Option<String>,
    /// The call that the tool is asked for.
    call: String,
    sender: SyncSender<Event>,
    typed: String,
    hint: bool,
    frames: usize,
    answers: serde_json::Map<String, serde_json::Value>,
    answered: bool,
    storm: (Instant, u64),
    turned: bool,
}

impl<'a> Session<'a> {
    pub(super) fn begin(
        double: &'a Double,
        args: Args,
        log: DebugLog,
        screen: Screen,
        conversation: Conversation,
        sender: SyncSender<Event>,
    ) -> Self {
        let name = args.name.clone().unwrap_or_else(|| {
            double.cwd.file_name().unwrap_or_default().to_string_lossy().into_owned()
        });
        let knobs = &double.knobs;
        let mut script: VecDeque<Turn> = knobs.turns.clone().unwrap_or_default().into();
        if let Some(prompt) = &args.prompt {
            script.push_front(turn(Role::User, prompt));
        }
        let mut session = Self {
            entry: Entry::register(double, &conversation.id, "cli", &name),
            server: Server::new(&double.home, knobs.seed),
            args: Args { name: Some(name), ..args },
            double,
            log,
            screen,
            turned: !conversation.transcript.records().is_empty(),
            conversation,
            agenda: Agenda::new(),
            begun: Instant::now(),
            keys: Keys::default(),
            remote: None,
            link: "",
            script,
            asked: None,
            turn: None,
            asking: None,
            call: String::new(),
            sender,
            typed: String::new(),
            hint: false,
            frames: 0,
            answers: serde_json::Map::new(),
            answered: false,
            storm: (Instant::now(), 0),
        };
        session.draw_banner();
        session.ask_terminal();
        noise::opening(&session.log, knobs);
        if let Some(ms) = knobs.exit_at_ms {
            session.agenda.at(after(session.begun, ms), Act::Fail);
        }
        session.agenda.at(after(session.begun, knobs.ready_ms), Act::Connect);
        session
    }

    fn draw_banner(&mut self) {
        if self.double.knobs.tui.bare {
            return;
        }
        let cwd = self.double.cwd.to_string_lossy().into_owned();
        let frame = "\x1b[38;5;174m";
        let version = self.double.profile.version();
        let title = if self.double.profile.is_future() { "Claude" } else { "Claude Code" };
        self.screen.print([
            Line::new(frame, 0, format!("╭─── {title} v{version} ──────────────────────────────╮")),
            Line::new("\x1b[1m", 4, "Welcome back!"),
            Line::new(DIM, 4, "claude-sim-1 · Simulated"),
            Line::new(DIM, 4, cwd),
            Line::new(frame, 0, "╰─────────────────────────────────────────────────────────╯"),
        ]);
        if self.double.knobs.tui.wide {
            self.screen.print([
                Line::new("", 2, "日本語の表示 · 한국어 · 🚀 👩‍👩‍👧 🇩🇪"),
                Line::new("", 2, "cafe\u{301} e\u{308} n\u{303} · שלום עולם · مرحبا"),
            ]);
        }
        self.show();
    }

    /// Sends DA and XTVERSION; answers that come in time are recorded.
    fn ask_terminal(&mut self) {
        if self.double.knobs.tui.no_queries {
            self.answered = true;
            return;
        }
        tty::write(b"\x1b[>0q\x1b[c");
        self.agenda.at(after(self.begun, ANSWERS_MS), Act::AnswersOver);
    }

    fn record_answers(&mut self) {
        if self.answered {
            return;
        }
        self.answered = true;
        self.agenda.remove(Act::AnswersOver);
        let waited = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let line = json!({
            "ts": calls::now_ms(), "pid": std::process::id(), "answers": self.answers,
            "waited_ms": waited.min(ANSWERS_MS),
        });
        let file = self.double.home.mark().join("calls.jsonl");
        let _ = files::append(&file, format!("{line}\n").as_bytes()); // the home went away
    }

    /// Serves until something ends the session.
    pub(super) fn run(&mut self, receiver: &Receiver<Event>) -> End {
        loop {
            let wait = self.agenda.next().map_or(Duration::from_secs(3600), |due| {
                due.saturating_duration_since(Instant::now())
            });
            let end = match receiver.recv_timeout(wait) {
                Ok(Event::Signal(signal)) => self.signalled(signal),
                Ok(Event::Typed(bytes)) => self.heard(&bytes),
                Ok(Event::Decided(call, decision)) => {
                    // Too late where somebody at the terminal was faster.
                    if self.asking.is_some() && self.call == call {
                        self.permit(matches!(decision, Decision::Allow(_)));
                    }
                    None
                }
                Ok(Event::Fed(bytes)) => {
                    self.screen.raw(&bytes);
                    None
                }
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(End::Code(0)),
            };
            if let Some(end) = end {
                return end;
            }
            while let Some(act) = self.agenda.take_due(Instant::now()) {
                if let Some(end) = self.act(act) {
                    return end;
                }
            }
        }
    }

    fn signalled(&mut self, signal: i32) -> Option<End> {
        let knobs = &self.double.knobs;
        match signal {
            SIGWINCH => {
                self.screen.resize();
                None
            }
            SIGUSR1 => {
                self.look_at_service();
                None
            }
            SIGHUP => None,
            SIGINT if knobs.ignore_sigint => None,
            SIGINT => self.interrupt(),
            SIGTERM if knobs.ignore_sigterm => None,
            _ => {
                pause(knobs.shutdown_ms);
                Some(End::Code(TERMINATED))
            }
        }
    }

    /// Ctrl-C: an open turn is interrupted, and only a second one ends the session.
    fn interrupt(&mut self) -> Option<End> {
        if self.turn.is_none() && !self.hint {
            pause(self.double.knobs.shutdown_ms);
            return Some(End::Code(0));
        }
        if self.hint {
            pause(self.double.knobs.shutdown_ms);
            return Some(End::Code(0));
        }
        self.hint = true;
        self.agenda.after_ms(AGAIN_MS, Act::HintOver);
        self.show();
        None
    }

    fn heard(&mut self, bytes: &[u8]) -> Option<End> {
        if bytes.is_empty() {
            return (!self.double.knobs.ignore_sighup).then_some(End::Code(TERMINATED));
        }
        for key in self.keys.feed(bytes) {
            match key {
                Key::Interrupt if self.double.knobs.ignore_sigint => {}
                Key::Interrupt => {
                    if let Some(end) = self.interrupt() {
                        return Some(end);
                    }
                }
                Key::Attributes(answer) => self.answer("da", &answer),
                Key::Version(answer) => self.answer("xtversion", &answer),
                Key::FocusIn => self.log.debug("[tui] focus in"),
                Key::FocusOut => self.log.debug("[tui] focus out"),
                Key::Enter if self.asking.is_some() => self.permit(true),
                Key::Escape if self.asking.is_some() => self.permit(false),
                Key::Enter => {
                    if let Some(end) = self.submit() {
                        return Some(end);
                    }
                }
                Key::Text(text) => self.typed.push_str(&text),
                Key::Backspace => drop(self.typed.pop()),
                Key::Clear => self.typed.clear(),
                Key::Escape => {}
            }
        }
        self.show();
        None
    }

    fn answer(&mut self, name: &str, answer: &str) {
        if !self.answered {
            self.answers.insert(name.into(), json!(answer));
        }
        if self.answers.len() == 2 {
            self.record_answers();
        }
    }

    fn submit(&mut self) -> Option<End> {
        let text = std::mem::take(&mut self.typed);
        match text.trim() {
            "" => {}
            "/exit" | "/quit" => return Some(End::Code(0)),
            command if command.starts_with('/') => {
                self.screen.print([Line::new(ERROR, 2, format!("Unknown command: {command}"))]);
            }
            prompt => {
                let prompt = prompt.to_owned();
                self.take(&turn(Role::User, &prompt));
                self.asked = Some(prompt);
                if let Some(ms) = self.double.knobs.tui.reply_ms {
                    self.agenda.after_ms(ms, Act::Reply);
                }
            }
        }
        None
    }

    fn act(&mut self, act: Act) -> Option<End> {
        match act {
            Act::AnswersOver => self.record_answers(),
            Act::Connect => self.connect(),
            Act::Script => self.play(),
            Act::Turn => {
                if let Some(next) = self.script.pop_front() {
                    self.take(&next);
                    self.plan_turn();
                }
            }
            Act::Reply => {
                if let Some(prompt) = self.asked.take() {
                    let text = format!("A simulated reply to: {prompt}");
                    self.take(&turn(Role::Assistant, &text));
                }
            }
            Act::Spin => {
                self.frames += 1;
                self.spin_later();
                self.show();
            }
            Act::HintOver => {
                self.hint = false;
                self.show();
            }
            Act::Storm => self.storm(),
            Act::Link(at) => return self.say_link(at),
            Act::Poison => self.end_link("archived"),
            Act::Fail => {
                if let Some(text) = &self.double.knobs.stderr_text {
                    say(&format!("{text}\r\n"));
                }
                let code = End::Code(self.double.knobs.exit_code);
                return Some(self.double.knobs.exit_signal.map_or(code, End::Signal));
            }
        }
        None
    }

    fn after_ready(&mut self) {
        let knobs = &self.double.knobs;
        if let Some(ms) = knobs.exit_after_ready_ms {
            self.agenda.after_ms(ms, Act::Fail);
        }
        self.agenda.after_ms(0, Act::Script);
        for (at, step) in knobs.link.iter().enumerate() {
            self.agenda.after_ms(step.0, Act::Link(at));
        }
        self.plan_turn();
        if knobs.tui.storm_lines_per_s > 0 {
            self.storm = (Instant::now(), 0);
            self.agenda.after_ms(0, Act::Storm);
        }
    }

    /// Knobs `tui.lines` and `tui.bytes`.
    fn play(&mut self) {
        let tui = &self.double.knobs.tui;
        let numbered: String = (1..=tui.lines).map(|n| format!("line {n:06}\r\n")).collect();
        if !numbered.is_empty() {
            self.screen.raw(numbered.as_bytes());
        }
        if let Some(bytes) = &tui.bytes {
            let chunk = tui.bytes_chunk.unwrap_or(bytes.0.len()).max(1);
            bytes.0.chunks(chunk).for_each(|part| self.screen.raw(part));
        }
    }

    fn storm(&mut self) {
        let (begun, printed) = self.storm;
        let rate = u128::from(self.double.knobs.tui.storm_lines_per_s);
        let wanted = u64::try_from(begun.elapsed().as_millis() * rate / 1000).unwrap_or(printed);
        let text: String = (printed + 1..=wanted)
            .map(|n| format!("\x1b[38;5;{}mstorm {n:08}\x1b[39m {}\r\n", n % 256, "x".repeat(60)))
            .collect();
        self.screen.raw(text.as_bytes());
        self.storm.1 = wanted;
        self.agenda.after_ms(STORM_MS, Act::Storm);
    }

    fn plan_turn(&mut self) {
        if let Some(next) = self.script.front().filter(|_| self.asking.is_none()) {
            self.agenda.after_ms(next.after_ms, Act::Turn);
        }
    }

    /// A turn: on the screen, in the transcript, in the registry.
    fn take(&mut self, next: &Turn) {
        let message = self.conversation.transcript.append(self.double, next);
        self.turned = true;
        match next.role {
            Role::User => {
                self.turn = Some(Instant::now());
                self.entry.set(Status::Busy);
                self.screen.print([Line::new(USER, 0, format!("❯ {}", next.text))]);
                self.spin_later();
            }
            Role::Assistant => {
                if self.script.front().is_none_or(|next| next.role == Role::User) {
                    self.turn = None;
                    self.agenda.remove(Act::Spin);
                    self.entry.set(Status::Idle);
                }
                self.screen.print([Line::new("", 0, format!("● {}", next.text))]);
            }
            Role::Permission => {
                let tool = next.tool.clone().unwrap_or_else(|| "Bash".into());
                self.turn = self.turn.or_else(|| Some(Instant::now()));
                self.asking = Some(format!("{tool}: {}", next.text));
                self.entry.set(Status::Waiting);
                let (id, input) = call_of(&message);
                self.call.clone_from(&id);
                let call = Call {
                    session: &self.conversation.id,
                    transcript: self.conversation.transcript.file(),
                    tool: &tool,
                    input: &input,
                };
                let sender = self.sender.clone();
                permission::ask(self.double, &call, move |decision| {
                    let _ = sender.send(Event::Decided(id, decision)); // it has ended
                });
            }
        }
        self.show();
    }

    fn permit(&mut self, allowed: bool) {
        let tool = self.asking.take().unwrap_or_default();
        let word = if allowed { "Allowed" } else { "Denied" };
        let call = self.call.clone();
        self.conversation.transcript.append_result(self.double, &call, word, !allowed);
        self.screen.print([Line::new(DIM, 2, format!("{word} {tool}"))]);
        if self.script.is_empty() || !allowed {
            self.turn = None;
            self.entry.set(Status::Idle);
        } else {
            self.entry.set(Status::Busy);
        }
        self.plan_turn();
    }

    fn spin_later(&mut self) {
        self.agenda.remove(Act::Spin);
        let ms = self.double.knobs.tui.redraw_ms;
        if ms > 0 && self.turn.is_some() {
            self.agenda.after_ms(ms, Act::Spin);
        }
    }

    /// Draws the block as things stand.
    fn show(&mut self) {
        const SPINNER: [&str; 6] = ["·", "✢", "✳", "✶", "✻", "✽"];
        let mut above = Vec::new();
        if let Some(tool) = &self.asking {
            above.push(Line::new("\x1b[1m", 1, tool.as_str()));
            above.push(Line::new("", 1, "Do you want to proceed?"));
            above.push(Line::new("", 1, "❯ 1. Yes"));
            above.push(Line::new("", 1, "  2. No (esc)"));
        } else if let Some(since) = self.turn {
            let glyph = SPINNER.get(self.frames % SPINNER.len()).copied().unwrap_or("·");
            let seconds = since.elapsed().as_secs();
            let text = format!("{glyph} Thinking… ({seconds}s · esc to interrupt)");
            above.push(Line::new("\x1b[38;5;174m", 0, text));
        }
        let status = if self.hint {
            "Press Ctrl-C again to exit".to_owned()
        } else {
            let mode = self.args.permission_mode.as_deref().unwrap_or("default");
            format!("? for shortcuts · {mode} · {}", self.link)
        };
        if !self.double.knobs.tui.bare {
            self.screen.show(Block { above, typed: self.typed.clone(), status });
        }
    }

    /// The orderly end: registry, remote session and terminal.
    pub(super) fn close(&mut self) {
        self.record_answers();
        self.entry.remove();
        if let Some(id) = &self.remote {
            self.log.debug(&format!("[remote-bridge] Archive {id} status=200"));
            let _ = self.server.set_session_state(id, SessionState::Archived); // logged already
        }
        let id = self.conversation.id.as_str();
        self.screen.close(self.turned.then_some(id));
    }
}

fn turn(role: Role, text: &str) -> Turn {
    Turn { after_ms: 0, role, text: text.to_owned(), tool: None, usage: None }
}
