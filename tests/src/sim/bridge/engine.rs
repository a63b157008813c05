//! The loop of a running bridge: registration, poll loop, signals, and the end.

use std::fs;
use std::process::Child;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

use super::agenda::Agenda;
use super::args::{Args, Spawn};
use super::noise::{self, Chatter, Flood};
use super::screen;
use super::sessions::{Ended, Sessions};
use crate::sim::console::{after, later, say};
use crate::sim::debug_log::DebugLog;
use crate::sim::double::Double;
use crate::sim::failure::Failure;
use crate::sim::link::{Outcome, Voice};
use crate::sim::pointer;
use crate::sim::registry::Entry;
use crate::sim::remote::{Server, SessionState};
use crate::sim::values::{Fatal, LogTarget, PointerKind, PoisonOn, Ready};
use crate::sim::{load, signals};

/// Time the agent gives its workers before it kills them (agent 2.1.197).
const WORKER_GRACE_MS: u64 = 30_000;
/// How soon after the poll loop the service tells of a session that is no more.
const SERVER_POISON_MS: u64 = 200;

/// What can happen to a bridge.
pub(super) enum Event {
    Signal(i32),
    WorkerLine { session: String, line: String },
    WorkerEnd { session: String, status: std::process::ExitStatus },
}

/// What the bridge does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Register,
    CreateSession,
    StartPolling,
    Fail,
    Poison,
    RefreshPointer,
    Chatter,
    Flood,
    Leak,
    Tamper,
    KillWorkers,
    Leave,
    /// A step of knob `link`, by its place.
    Link(usize),
}

/// How the process ends, once it is decided.
type End = Result<u8, Failure>;

pub(super) struct Engine<'a> {
    pub(super) double: &'a Double,
    /// Start of the bridge. Steps are timed from here, so a stall keeps their order.
    begun: Instant,
    pub(super) args: Args,
    pub(super) log: DebugLog,
    pub(super) server: Server,
    pub(super) agenda: Agenda<Act>,
    sender: SyncSender<Event>,
    receiver: Receiver<Event>,
    pub(super) entry: Option<Entry>,
    /// Environment offered for reuse, and the session it had.
    pub(super) prior: Option<pointer::Pointer>,
    /// Another live process owns the pointer.
    pub(super) pointer_in_use: bool,
    pub(super) pointer_written: bool,
    pub(super) environment: Option<String>,
    pub(super) initial: Option<String>,
    pub(super) resumed: bool,
    sessions: Sessions,
    chatter: Chatter,
    flood: Option<Flood>,
    pub(super) polling: bool,
    stopping: bool,
    earliest_leave: Option<Instant>,
    pub(super) stranger: Option<Child>,
    /// Knobs `children` and `leak_ms`: their pipes close with this process.
    children: Vec<Child>,
    /// Knobs `memory_mb` and `leak_mb`.
    memory: Vec<Vec<u8>>,
}

impl<'a> Engine<'a> {
    /// Writes the first lines, starts what knobs ask for and plans the start.
    pub(super) fn start(double: &'a Double, args: Args, log: DebugLog) -> Result<Self, Failure> {
        let knobs = &double.knobs;
        // 256 lines of workers: a full channel only makes the reading thread wait.
        let (sender, receiver) = sync_channel(256);
        signals::forward(&[SIGINT, SIGTERM, SIGUSR1], sender.clone(), Event::Signal)?;
        load::burn(knobs.cpu);
        let stranger = (knobs.pointer == PointerKind::ForeignPid)
            .then(|| load::start_companion().ok())
            .flatten();
        let sessions = Sessions::new(log.clone(), &args);
        let mut engine = Self {
            double,
            begun: Instant::now(),
            server: Server::new(&double.home, knobs.seed),
            agenda: Agenda::new(),
            sender,
            receiver,
            entry: None,
            prior: None,
            pointer_in_use: false,
            pointer_written: false,
            environment: None,
            initial: None,
            resumed: false,
            sessions,
            chatter: Chatter::new(),
            flood: None,
            polling: false,
            stopping: false,
            earliest_leave: None,
            stranger,
            children: load::start_children(knobs.children, knobs.child_mode, knobs.child_life_ms),
            memory: vec![load::hold_memory(knobs.memory_mb)],
            args,
            log,
        };
        engine.read_pointer();
        engine.announce();
        noise::opening(&engine.log, knobs);
        engine.plan();
        Ok(engine)
    }

    fn plan(&mut self) {
        let knobs = &self.double.knobs;
        if knobs.ready != Ready::Never
            || matches!(knobs.fatal, Some(Fatal::Network | Fatal::AlreadyServed))
        {
            self.at_start_plus(knobs.ready_ms / 2, Act::Register);
        }
        if let Some(ms) = knobs.exit_at_ms {
            self.at_start_plus(ms, Act::Fail);
        }
        match knobs.log_target {
            LogTarget::File => {}
            LogTarget::TruncateAt(ms) | LogTarget::DeleteAt(ms) | LogTarget::RenameAt(ms) => {
                self.at_start_plus(ms, Act::Tamper);
            }
        }
        if matches!(knobs.ready, Ready::Never | Ready::NoPollLoop) {
            self.start_flood();
        }
    }

    pub(super) fn at_start_plus(&mut self, ms: u64, act: Act) {
        self.agenda.at(after(self.begun, ms), act);
    }

    fn at_ready_plus(&mut self, ms: u64, act: Act) {
        self.at_start_plus(self.double.knobs.ready_ms.saturating_add(ms), act);
    }

    /// Serves until something ends the process.
    pub(super) fn run(mut self) -> End {
        loop {
            let event = match self.agenda.next() {
                Some(due) => {
                    let wait = due.saturating_duration_since(Instant::now());
                    self.receiver.recv_timeout(wait).ok()
                }
                None => self.receiver.recv().ok(),
            };
            if let Some(end) = event.and_then(|event| self.handle(event)) {
                return end;
            }
            while let Some(act) = self.agenda.take_due(Instant::now()) {
                if let Some(end) = self.act(act) {
                    return end;
                }
            }
        }
    }

    fn handle(&mut self, event: Event) -> Option<End> {
        match event {
            Event::Signal(SIGUSR1) => self.look_at_service(),
            Event::Signal(signal) => {
                self.stop(signal);
                None
            }
            Event::WorkerLine { session, line } => {
                self.sessions.heard(&session, &line);
                None
            }
            Event::WorkerEnd { session, status } => self.worker_ended(&session, status),
        }
    }

    fn act(&mut self, act: Act) -> Option<End> {
        match act {
            Act::Register => return self.register().err().map(|failure| self.give_up(failure)),
            Act::CreateSession => return self.create_session().err().map(Err),
            Act::StartPolling => return self.start_polling(),
            Act::Fail => return Some(self.fail()),
            Act::Poison => self.poison(),
            Act::RefreshPointer => self.write_pointer(),
            Act::Chatter => {
                self.chatter.speak(&self.log);
                self.sessions.heartbeat();
                self.agenda.after_ms(self.double.knobs.chatter_ms, Act::Chatter);
            }
            Act::Flood => {
                let path = self.log.path();
                if let (Some(flood), Some(path)) = (&mut self.flood, path)
                    && flood.pour(path)
                {
                    self.agenda.after_ms(noise::FLOOD_STEP_MS, Act::Flood);
                }
            }
            Act::Leak => self.leak(),
            Act::Tamper => self.tamper(),
            Act::KillWorkers => self.sessions.kill(),
            Act::Leave => return self.leave_if_alone(),
            Act::Link(at) => return self.say_link(at),
        }
        None
    }

    fn start_polling(&mut self) -> Option<End> {
        let knobs = &self.double.knobs;
        if knobs.ready == Ready::NoPollLoop {
            return None;
        }
        let environment = self.environment.clone().filter(|_| knobs.ready != Ready::NoEnv);
        let shown = environment.as_ref().map(|id| format!(" environmentId={id}"));
        self.log.debug(&format!(
            "[bridge:work] Starting poll loop spawnMode={} maxSessions={}{}",
            self.args.spawn.logged(),
            self.args.capacity(),
            shown.unwrap_or_default()
        ));
        screen::banner(self.double, &self.args, environment.as_deref());
        self.polling = true;
        self.chatter.speak(&self.log);
        if knobs.chatter_ms > 0 {
            self.agenda.after_ms(knobs.chatter_ms, Act::Chatter);
        }
        if let Some(ms) = knobs.exit_after_ready_ms {
            self.at_ready_plus(ms, Act::Fail);
        }
        if let Some(ms) = knobs.leak_ms {
            self.agenda.after_ms(ms, Act::Leak);
        }
        for (at, step) in knobs.link.iter().enumerate() {
            self.at_ready_plus(step.0, Act::Link(at));
        }
        match self.plan_poison() {
            Ok(()) => {}
            Err(failure) => return Some(Err(failure)),
        }
        self.start_flood();
        self.look_at_service()
    }

    /// Plans the poison of a resumed session that the service no longer has.
    /// This happens with or without the knob.
    fn plan_poison(&mut self) -> Result<(), Failure> {
        let applies = match self.double.knobs.poison_on {
            PoisonOn::Reattach => self.resumed,
            PoisonOn::Any => true,
        };
        let gone = match &self.initial {
            Some(id) if self.resumed => matches!(
                self.server.session_state(id)?,
                Some(SessionState::Archived | SessionState::Deleted)
            ),
            _ => false,
        };
        match self.double.knobs.poison_ms {
            Some(ms) if applies => self.at_ready_plus(ms, Act::Poison),
            _ if gone => self.at_ready_plus(SERVER_POISON_MS, Act::Poison),
            _ => {}
        }
        Ok(())
    }

    fn poison(&mut self) {
        if let Some(session) = self.initial.clone() {
            let deleted =
                self.server.session_state(&session).ok().flatten() == Some(SessionState::Deleted);
            self.sessions.log_end_request(&session, if deleted { "deleted" } else { "archived" });
        }
    }

    /// Knob `leak_ms`: one child more, and more memory.
    fn leak(&mut self) {
        let knobs = &self.double.knobs;
        self.children.extend(load::start_child(knobs.child_mode, knobs.child_life_ms));
        self.memory.push(load::hold_memory(knobs.leak_mb));
        if let Some(ms) = knobs.leak_ms {
            self.agenda.after_ms(ms, Act::Leak);
        }
    }

    /// Knob `link`.
    fn say_link(&mut self, at: usize) -> Option<End> {
        let step = self.double.knobs.link.get(at)?;
        let names = self.sessions.names();
        let voice = Voice {
            log: &self.log,
            verbose: self.args.verbose,
            session: names.first().or(self.initial.as_ref()).map(String::as_str),
        };
        match voice.say(&step.1, screen::status) {
            Outcome::GoOn => None,
            Outcome::Silence => {
                self.agenda.remove(Act::Chatter);
                None
            }
            Outcome::End => {
                self.unregister();
                Some(Ok(1))
            }
        }
    }

    fn start_flood(&mut self) {
        self.flood = Flood::of(&self.double.knobs);
        if self.flood.is_some() {
            self.agenda.after_ms(0, Act::Flood);
        }
    }

    fn tamper(&self) {
        let Some(path) = self.log.path() else {
            return;
        };
        let aside = path.with_extension("moved");
        let _ = match self.double.knobs.log_target {
            LogTarget::File => Ok(()),
            LogTarget::TruncateAt(_) => {
                fs::OpenOptions::new().write(true).truncate(true).open(path).map(drop)
            }
            LogTarget::DeleteAt(_) => fs::remove_file(path),
            LogTarget::RenameAt(_) => fs::rename(path, aside),
        }; // the file may be gone already
        self.log
            .debug("[bridge:api] GET .../work/poll -> 200 (no work, 100 consecutive empty polls)");
    }

    /// Starts the workers devices asked for, ends those whose session is over.
    fn look_at_service(&mut self) -> Option<End> {
        let environment = self.environment.clone().filter(|_| self.polling && !self.stopping)?;
        let work = match self.server.take_work(&environment) {
            Ok(work) => work,
            Err(failure) => return Some(Err(failure)),
        };
        for session in work {
            self.chatter.interrupt();
            let own_worktree =
                self.args.spawn == Spawn::Worktree && self.initial.as_ref() != Some(&session);
            self.sessions.start(self.double, &session, own_worktree, &self.sender);
        }
        for session in self.sessions.names() {
            match self.server.session_state(&session) {
                Ok(Some(SessionState::Ended)) => self.sessions.end(&session, None),
                Ok(Some(SessionState::Archived)) => self.sessions.end(&session, Some("archived")),
                Ok(Some(SessionState::Deleted)) => self.sessions.end(&session, Some("deleted")),
                Ok(Some(SessionState::Active) | None) => {}
                Err(failure) => return Some(Err(failure)),
            }
        }
        None
    }

    fn worker_ended(&mut self, session: &str, status: std::process::ExitStatus) -> Option<End> {
        let ended = self.sessions.ended(session, status);
        if self.stopping {
            if self.sessions.is_empty() {
                self.agenda.remove(Act::KillWorkers);
                self.leave_later();
            }
            return None;
        }
        match ended {
            Ended::Interrupted => {}
            Ended::Completed | Ended::Failed if self.args.spawn == Spawn::Session => {
                self.log.debug(&format!(
                    "[bridge:session] Session {}, aborting poll loop to tear down environment",
                    ended.word()
                ));
                self.stopping = true;
                self.agenda.clear();
                self.leave_later();
            }
            Ended::Completed | Ended::Failed => {
                self.log.debug(&format!(
                    "[bridge:session] Session {}, returning to idle (multi-session mode)",
                    ended.word()
                ));
                if ended == Ended::Completed {
                    self.log
                        .debug(&format!("[bridge:api] POST /v1/sessions/{session}/archive -> 200"));
                    if self.initial.as_deref() != Some(session) {
                        let _ = self.server.set_session_state(session, SessionState::Archived);
                    }
                }
            }
        }
        None
    }

    fn stop(&mut self, signal: i32) {
        let knobs = &self.double.knobs;
        let (name, ignored) = match signal {
            SIGINT => ("SIGINT", knobs.ignore_sigint),
            _ => ("SIGTERM", knobs.ignore_sigterm),
        };
        if ignored || self.stopping {
            return;
        }
        self.log.debug(&format!("[bridge:shutdown] {name} received, shutting down"));
        self.stopping = true;
        self.agenda.clear();
        self.earliest_leave = Some(later(knobs.shutdown_ms));
        if self.sessions.is_empty() {
            self.leave_later();
        } else {
            self.sessions.terminate();
            self.agenda.after_ms(WORKER_GRACE_MS, Act::KillWorkers);
        }
    }

    fn leave_later(&mut self) {
        let now = Instant::now();
        self.agenda.at(self.earliest_leave.unwrap_or(now).max(now), Act::Leave);
    }

    fn leave_if_alone(&mut self) -> Option<End> {
        self.sessions.is_empty().then(|| self.leave())
    }

    /// The orderly end: keep the environment for the next bridge, or give it back.
    fn leave(&mut self) -> End {
        if let Some(environment) = self.environment.clone() {
            let keep = self.pointer_written || self.double.profile.keeps_environment();
            if keep {
                screen::status(
                    "Environment preserved. Restart `claude remote-control` to reconnect \
                     existing sessions.",
                );
                self.log.debug(&format!(
                    "[bridge:shutdown] Skipping archive+deregister to allow resume (env \
                     {environment}, spawnMode {})",
                    self.args.spawn.logged()
                ));
            } else {
                self.log.debug(&format!(
                    "[bridge:api] DELETE /v1/environments/bridge/{environment} -> 200"
                ));
                self.log.debug("[bridge:shutdown] Environment deregistered, bridge offline");
            }
            self.server.release(&environment, keep)?;
        }
        self.unregister();
        Ok(0)
    }

    /// A planned death: knobs `exit_at_ms` and `exit_after_ready_ms`.
    fn fail(&mut self) -> End {
        if let Some(text) = &self.double.knobs.stderr_text {
            say(&format!("{text}\n"));
        }
        if let Some(signal) = self.double.knobs.exit_signal {
            return Ok(signals::die(signal));
        }
        self.unregister();
        Ok(self.double.knobs.exit_code)
    }

    /// The end of a start whose registration failed.
    fn give_up(&mut self, failure: Failure) -> End {
        screen::error("registration failed");
        self.unregister();
        Err(failure)
    }

    fn unregister(&mut self) {
        if let Some(entry) = self.entry.take() {
            entry.remove();
        }
    }
}

/// How long something took, as the agent writes it.
pub(super) fn duration(time: Duration) -> String {
    format!("{}s", time.as_secs())
}
