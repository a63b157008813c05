//! What the lines of one generation said, summed up (`agent-cli` §3.3).
//!
//! Whether the process still lives and is the one that was started is not known here; readiness
//! needs that as well.

use std::collections::BTreeMap;

use svc_shared::status::ExitReason;

use super::RemoteId;
use super::lines::LogPiece;
use super::marker::{self, Marker, Source, StopSignal, debug_marker_of, text_marker};
use crate::bridge::Anchor;

/// Most workers remembered at a time; the agent's own cap on sessions is lower.
const WORKERS: usize = 1_024;

/// Most characters kept of the line before.
const REMEMBERED: usize = 1_000;

/// The sum of all lines so far. Begins empty with each generation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The environment that the bridge registered as.
    /// The first one named counts, because later lines can quote others.
    pub environment: Option<RemoteId>,
    /// Environment of an earlier run that was to be reused.
    pub prior_environment: Option<RemoteId>,
    /// Session made at a cold start; the first one named stays.
    pub starter_session: Option<RemoteId>,
    /// Session taken up again.
    pub resumed_session: Option<RemoteId>,
    /// Whether an Interactive Session is connected.
    pub attached: bool,
    /// The remote session it is connected to.
    pub attached_session: Option<RemoteId>,
    /// Whether the bridge takes work.
    pub poll_loop: bool,
    /// Whether the remote session was reported archived or deleted.
    pub poisoned: bool,
    /// Why the bridge gave up, when it said so; redacted.
    pub fatal: Option<String>,
    /// The signal it reported.
    pub stop_signal: Option<StopSignal>,
    /// What became of the environment at the end.
    pub environment_fate: Option<EnvironmentFate>,
    /// How often the host slept.
    pub system_sleeps: u32,
    /// Worktrees that were kept, because they hold work.
    pub kept_worktrees: Vec<String>,
    refusal: Option<(Refusal, Option<String>)>,
    workers: BTreeMap<RemoteId, u32>,
    last_text: String,
}

/// What became of the environment when the bridge ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentFate {
    /// Still registered: a resume can take it up.
    Kept,
    /// Deregistered.
    Gone,
}

/// Why a start cannot succeed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The remote session is archived or deleted.
    Poisoned,
    /// The directory is not trusted.
    TrustRequired,
    /// The session goes on without remote control.
    RemoteControlUnavailable,
    /// Nobody is logged in.
    LoginRequired,
}

impl Refusal {
    /// The word for it on the record.
    #[must_use]
    pub fn exit_reason(self) -> ExitReason {
        match self {
            Self::Poisoned => ExitReason::PoisonedSession,
            Self::TrustRequired => ExitReason::TrustRequired,
            Self::RemoteControlUnavailable => ExitReason::RemoteControlUnavailable,
            Self::LoginRequired => ExitReason::LoginRequired,
        }
    }
}

/// What the lines say about a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Nothing decisive yet.
    Waiting,
    /// It takes work, with a session of its own.
    Ready,
    /// It takes work in an environment of an earlier run.
    /// The session of that run may be gone, so the log is watched for poison for some seconds
    /// before this is announced.
    ReadyAfterReattach,
    /// It cannot succeed.
    Refused(Refusal),
}

impl Evidence {
    /// Adds a line of the debug file.
    pub fn debug_line(&mut self, piece: LogPiece<'_>) {
        let source = marker::source(piece.text);
        if let Some(marker) = debug_marker_of(piece, source) {
            self.add(marker);
        }
        self.remember(piece.text, source);
    }

    /// Adds a line of the captured output. Its texts can only make a start fail.
    pub fn output_line(&mut self, piece: LogPiece<'_>) {
        if let Some(marker) = text_marker(piece.text) {
            self.add(marker);
        }
        self.remember(piece.text, marker::source(piece.text));
    }

    /// What the lines say about the start.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        if self.poisoned {
            return Readiness::Refused(Refusal::Poisoned);
        }
        if let Some((refusal, _)) = &self.refusal {
            return Readiness::Refused(*refusal);
        }
        match (&self.environment, self.poll_loop, &self.starter_session) {
            (Some(_), true, Some(_)) => Readiness::Ready,
            (Some(_), true, None) => Readiness::ReadyAfterReattach,
            (None, _, _) | (Some(_), false, _) => Readiness::Waiting,
        }
    }

    /// What the lines say about the start of an Interactive Session (`agent-cli` §4).
    /// What speaks against it decides, whatever else was said before it.
    #[must_use]
    pub fn interactive_readiness(&self) -> Readiness {
        match &self.refusal {
            Some((refusal, _)) => Readiness::Refused(*refusal),
            None if self.attached => Readiness::Ready,
            None => Readiness::Waiting,
        }
    }

    /// Whether it was taking work once, whatever came later.
    #[must_use]
    pub fn has_registered(&self) -> bool {
        self.environment.is_some() && self.poll_loop
    }

    /// What the bridge registered, as far as its log says.
    /// The session is the one it created or took up again.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        let exposed = |id: &RemoteId| id.expose().to_owned();
        let session = self.starter_session.as_ref().or(self.attached_session.as_ref());
        let session = session.or(self.resumed_session.as_ref());
        Anchor {
            environment_id: self.environment.as_ref().map(exposed),
            session_id: session.map(exposed),
        }
    }

    /// What the agent said right before it refused, redacted.
    #[must_use]
    pub fn refusal_detail(&self) -> Option<&str> {
        self.refusal.as_ref()?.1.as_deref()
    }

    /// How many workers serve a session now.
    #[must_use]
    pub fn live_workers(&self) -> usize {
        self.workers.len()
    }

    fn add(&mut self, marker: Marker) {
        match marker {
            // Dropped by intention: nothing is keyed by it, and it is as good as a credential.
            Marker::Bridge(_) => {}
            Marker::Environment(id) => {
                self.environment.get_or_insert(id);
            }
            Marker::PriorEnvironment(id) => self.prior_environment = Some(id),
            Marker::StarterSession(id) => {
                self.starter_session.get_or_insert(id);
            }
            Marker::ResumedSession(id) => self.resumed_session = Some(id),
            Marker::Attached(session) => {
                self.attached = true;
                self.attached_session = session.or(self.attached_session.take());
            }
            Marker::PollLoop { environment } => {
                self.poll_loop = true;
                self.environment = self.environment.take().or(environment);
            }
            Marker::WorkerStarted { session, pid } => {
                if self.workers.len() < WORKERS {
                    self.workers.insert(session, pid);
                }
            }
            Marker::WorkerEnded { session } => {
                self.workers.remove(&session);
            }
            Marker::WorktreeKept { path } => {
                if self.kept_worktrees.len() < WORKERS {
                    self.kept_worktrees.push(path);
                }
            }
            Marker::SystemSleep { .. } => self.system_sleeps = self.system_sleeps.saturating_add(1),
            Marker::Fatal(why) => self.fatal = Some(why),
            Marker::StopSignal(signal) => self.stop_signal = Some(signal),
            Marker::EnvironmentKept => self.environment_fate = Some(EnvironmentFate::Kept),
            Marker::EnvironmentGone => self.environment_fate = Some(EnvironmentFate::Gone),
            Marker::Poison => self.poisoned = true,
            Marker::TrustRefused => self.refuse(Refusal::TrustRequired, None),
            Marker::RemoteControlIgnored => {
                let reason = marker::message(&self.last_text);
                let reason = Some(reason).filter(|reason| !reason.is_empty());
                self.refuse(Refusal::RemoteControlUnavailable, reason);
            }
            Marker::LoginRefused => self.refuse(Refusal::LoginRequired, None),
        }
    }

    /// Keeps the first refusal.
    /// A bridge that is ready may quote such texts, so they no longer count.
    fn refuse(&mut self, refusal: Refusal, detail: Option<String>) {
        if !(self.poll_loop && self.environment.is_some()) {
            self.refusal.get_or_insert((refusal, detail));
        }
    }

    /// Keeps the text of a line, in which a refusal on the next one gives its reason.
    fn remember(&mut self, raw: &str, source: Source<'_>) {
        let text = match source {
            Source::Other(text) => text.strip_prefix("[stderr] ").unwrap_or(text),
            Source::Bridge { .. } | Source::Conversation => "",
            Source::Continuation => raw,
        };
        let end = match text.len() {
            ..=REMEMBERED => text.len(),
            _ => text.char_indices().nth(REMEMBERED).map_or(text.len(), |(at, _)| at),
        };
        self.last_text.clear();
        self.last_text.push_str(text.get(..end).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_log::lines::LogLines;

    const HEAD: &str = "2026-03-01T10:20:30.123Z [DEBUG] ";
    const REGISTERED: &str = "[bridge:init] Registered, server environmentId=env_01ENV\n";
    const STARTER: &str = "[bridge:init] Created initial session session_01START\n";
    const POLL: &str = "[bridge:work] Starting poll loop spawnMode=same-dir maxSessions=32\n";
    const POISON: &str = "[bridge:ws] {\"subtype\":\"end_session\",\"reason\":\"deleted\"}\n";

    fn of(lines: &[&str]) -> Evidence {
        let mut evidence = Evidence::default();
        let mut log = LogLines::new();
        for line in lines {
            log.feed(format!("{HEAD}{line}").as_bytes(), |piece| evidence.debug_line(piece));
        }
        evidence
    }

    #[test]
    fn f30_ready_needs_poll_loop_and_environment() {
        assert_eq!(of(&[]).readiness(), Readiness::Waiting);
        assert_eq!(of(&[REGISTERED, STARTER]).readiness(), Readiness::Waiting);
        assert_eq!(of(&[POLL, STARTER]).readiness(), Readiness::Waiting);
        assert_eq!(of(&[REGISTERED, STARTER, POLL]).readiness(), Readiness::Ready);
        assert_eq!(of(&[POLL, STARTER, REGISTERED]).readiness(), Readiness::Ready);
        let with_id = "[bridge:work] Starting poll loop maxSessions=1 environmentId=env_01ENV\n";
        assert_eq!(of(&[STARTER, with_id]).readiness(), Readiness::Ready);
    }

    #[test]
    fn f34_without_a_session_of_its_own_poison_is_awaited_and_wins() {
        let prior = "[bridge:init] Found prior environment env_01ENV in pointer (ageMs=1)\n";
        let lines = [prior, REGISTERED, POLL];
        assert_eq!(of(&lines).readiness(), Readiness::ReadyAfterReattach);
        let poisoned = of(&[prior, REGISTERED, POLL, POISON]);
        assert_eq!(poisoned.readiness(), Readiness::Refused(Refusal::Poisoned));
        assert!(poisoned.has_registered() && !of(&[prior, POISON]).has_registered());
        assert_eq!(poisoned.environment.unwrap().expose(), "env_01ENV");
    }

    #[test]
    fn f31_an_ignored_flag_is_a_refusal_with_the_line_before_as_its_reason() {
        let mut evidence = Evidence::default();
        let log = "2026-03-01T10:20:30.123Z [WARN] [stderr] \u{1b}[33mRemote Control requires a \
                   subscription for user 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n--rc flag ignored.\u{1b}[39m\n";
        LogLines::new().feed(log.as_bytes(), |piece| evidence.debug_line(piece));
        assert_eq!(evidence.readiness(), Readiness::Refused(Refusal::RemoteControlUnavailable));
        assert_eq!(
            evidence.refusal_detail(),
            Some("Remote Control requires a subscription for user <redacted>")
        );
    }

    #[test]
    fn refusals_are_found_in_the_captured_output_but_markers_are_not() {
        for (text, reason) in [
            ("Error: Workspace not trusted. Please run x\n", ExitReason::TrustRequired),
            ("You must be logged in to use Remote Control\n", ExitReason::LoginRequired),
        ] {
            let mut evidence = Evidence::default();
            LogLines::new().feed(text.as_bytes(), |piece| evidence.output_line(piece));
            let Readiness::Refused(refusal) = evidence.readiness() else { panic!("{text}") };
            assert_eq!(refusal.exit_reason(), reason);
        }
        let mut evidence = Evidence::default();
        for line in [REGISTERED, STARTER, POLL, POISON] {
            let line = format!("{HEAD}{line}");
            LogLines::new().feed(line.as_bytes(), |piece| evidence.output_line(piece));
        }
        assert_eq!(evidence.readiness(), Readiness::Waiting);
    }

    #[test]
    fn a_ready_bridge_that_talks_about_refusals_stays_ready() {
        let talk = "[bridge:activity] sessionId=cse_1 text Workspace not trusted\n";
        assert_eq!(of(&[REGISTERED, STARTER, POLL, talk]).readiness(), Readiness::Ready);
    }

    #[test]
    fn an_interactive_session_is_ready_when_it_is_connected_and_not_before() {
        let created = "[remote-bridge] Created session session_01NEW\n";
        let again = "[remote-bridge] Reattaching to session session_01OLD\n";
        let hook = "[bridge:repl] Hook initialized, session=cse_01AB\n";
        for line in [created, again, hook] {
            assert_eq!(of(&[line]).interactive_readiness(), Readiness::Ready, "{line}");
        }
        let named = of(&[hook, created]).anchor().session_id;
        assert_eq!(named.as_deref(), Some("session_01NEW"));
        // What makes a Server Mode bridge ready says nothing here.
        assert_eq!(of(&[REGISTERED, STARTER, POLL]).interactive_readiness(), Readiness::Waiting);
        assert_eq!(of(&[created]).readiness(), Readiness::Waiting);
    }

    #[test]
    fn f31_a_refused_remote_control_wins_over_everything_and_gives_its_reason() {
        let created = "[remote-bridge] Created session session_01NEW\n";
        let refusal = "[stderr] \u{1b}[33mRemote Control requires a claude.ai subscription.\n\
                       --rc flag ignored.\u{1b}[39m\n";
        for lines in [[refusal, created], [created, refusal]] {
            let evidence = of(&lines);
            assert_eq!(
                evidence.interactive_readiness(),
                Readiness::Refused(Refusal::RemoteControlUnavailable)
            );
            let detail = evidence.refusal_detail().unwrap();
            assert!(detail.contains("requires a claude.ai subscription"), "{detail}");
        }
    }

    #[test]
    fn later_lines_do_not_replace_the_environment_or_the_starter() {
        let evidence = of(&[
            REGISTERED,
            STARTER,
            POLL,
            "[bridge:init] Registered, server environmentId=env_01OTHER\n",
            "[bridge:init] Created initial session session_01OTHER\n",
        ]);
        assert_eq!(evidence.environment.unwrap().expose(), "env_01ENV");
        assert_eq!(evidence.starter_session.unwrap().expose(), "session_01START");
    }

    #[test]
    fn f35_a_marker_split_over_writes_with_odd_line_ends_is_recognised() {
        let log = format!("\u{feff}{HEAD}{REGISTERED}\0\0{HEAD}{STARTER}{HEAD}{POLL}")
            .replace('\n', "\r\n");
        for at in 0..log.len() {
            let (head, tail) = log.as_bytes().split_at(at);
            let mut evidence = Evidence::default();
            let mut lines = LogLines::new();
            for chunk in [head, tail] {
                lines.feed(chunk, |piece| evidence.debug_line(piece));
            }
            assert_eq!(evidence.readiness(), Readiness::Ready, "split at {at}");
        }
    }

    #[test]
    fn workers_are_counted_by_their_sessions() {
        let started = "[bridge:session] sessionId=cse_1 pid=10\n";
        let other = "[bridge:session] sessionId=cse_2 pid=11\n";
        let ended = "[bridge:session] sessionId=cse_1 completed exit_code=0 pid=10\n";
        assert_eq!(of(&[started, other]).live_workers(), 2);
        assert_eq!(of(&[started, other, ended]).live_workers(), 1);
    }

    #[test]
    fn the_end_says_what_became_of_the_environment() {
        let stop = "[bridge:shutdown] SIGTERM received, shutting down\n";
        let kept = "[bridge:shutdown] Skipping archive+deregister to allow resume (env env_01E)\n";
        let gone = "[bridge:shutdown] Environment deregistered, bridge offline\n";
        assert_eq!(of(&[stop, kept]).stop_signal, Some(StopSignal::Sigterm));
        assert_eq!(of(&[stop, kept]).environment_fate, Some(EnvironmentFate::Kept));
        assert_eq!(of(&[stop, gone]).environment_fate, Some(EnvironmentFate::Gone));
    }

    #[test]
    fn evidence_does_not_show_its_identifiers() {
        let shown = format!("{:?}", of(&[REGISTERED, STARTER, POLL]));
        assert!(!shown.contains("01ENV") && !shown.contains("01START"), "{shown}");
    }
}
