//! What a fact does to a bridge. Facts cannot be refused, only be late.

use crate::bridge::{Anchor, Bridge, Ended, Live, Outcome, Stage, State};
use crate::ceiling::says_why_ended;
use crate::conversation::ConversationId;
use crate::effect::{Effect, History, Lifecycle, Step};
use crate::identity::ProcessIdentity;
use crate::restart::Restarts;
use svc_shared::Timestamp;
use svc_shared::status::{ExitReason, Origin, QuarantineCode, SpawnMode};

/// What a session without its terminal says on its row.
pub const TERMINAL_LOST: &str = "the terminal of this session is lost (terminal_lost): its keeper \
                                 ended, the agent goes on; it can be stopped, and resumed with a \
                                 new terminal";

/// Something that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// The launcher of this generation is held before exec.
    Held {
        /// The process that will be the agent.
        agent: ProcessIdentity,
        /// The process that holds its terminal; `None` in Server Mode.
        keeper: Option<ProcessIdentity>,
    },
    /// The agent runs.
    Executed,
    /// Nothing could be started.
    NotExecuted(Cause),
    /// The agent is registered.
    Registered(Anchor),
    /// It was not ready in time; its process was stopped and is gone.
    GraceExpired(Cause),
    /// The agent said that it cannot become ready; its process was stopped and is gone.
    Refused(Cause),
    /// The process is gone.
    Exited(Cause),
    /// Recorded before the launch, and no process of it exists.
    LaunchInterrupted(Cause),
    /// Recorded as live in another boot of the machine.
    HostRestarted,
    /// Recorded as live, found gone at the start of the service.
    FoundGone(Cause),
    /// Started by another process of the service, or outlived a restart.
    TakenOver,
    /// The process of a row that was believed ended lives.
    FoundAlive,
    /// The remote session was archived or deleted while the bridge ran.
    Poisoned,
    /// The process that holds the terminal is gone, and the agent lives on.
    TerminalLost,
    /// The conversation that an Interactive Session holds.
    Conversation(ConversationId),
    /// The kill signal had no effect.
    Unkillable,
    /// The row is in doubt.
    Doubt(QuarantineCode),
    /// The doubt is gone.
    Certain,
    /// Advice for the operator; `None` clears it.
    Notice(Option<String>),
    /// It has run for long enough to count as stable.
    Steady,
}

/// Evidence about an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What the logs and the exit status say.
    pub reason: ExitReason,
    /// Exit code, when it could be collected.
    pub exit_code: Option<i32>,
    /// Signal number.
    pub exit_signal: Option<i32>,
    /// We sent the kill signal.
    pub forced: bool,
    /// Redacted last output.
    pub detail: Option<String>,
}

impl Cause {
    /// A cause without output.
    #[must_use]
    pub fn plain(reason: ExitReason) -> Self {
        Self { reason, exit_code: None, exit_signal: None, forced: false, detail: None }
    }
}

/// Decides what the record becomes. A fact about an earlier generation is ignored.
pub fn observe(bridge: &Bridge, fact: Fact, now: Timestamp) -> Step {
    match fact {
        Fact::Held { agent, keeper } => held(bridge, agent, keeper),
        Fact::Executed => executed(bridge),
        Fact::NotExecuted(cause) | Fact::LaunchInterrupted(cause) => {
            end(bridge, now, |live| never_ready(live, cause))
        }
        Fact::Registered(anchor) => registered(bridge, anchor, now),
        Fact::GraceExpired(cause) => grace_expired(bridge, cause, now),
        Fact::Refused(cause) => refused(bridge, cause, now),
        Fact::Exited(cause) => exited(bridge, cause, now),
        Fact::HostRestarted => end(bridge, now, host_restarted),
        Fact::FoundGone(cause) => found_gone(bridge, cause, now),
        Fact::TakenOver => taken_over(bridge),
        Fact::FoundAlive => found_alive(bridge, now),
        Fact::Poisoned => poisoned(bridge),
        Fact::TerminalLost => terminal_lost(bridge),
        Fact::Conversation(conversation) => converses(bridge, conversation),
        Fact::Unkillable => doubt(bridge, Some(QuarantineCode::Unkillable)),
        Fact::Doubt(code) => doubt(bridge, Some(code)),
        Fact::Certain => doubt(bridge, None),
        Fact::Notice(notice) => advise(bridge, notice),
        Fact::Steady => steady(bridge),
    }
}

fn becomes(next: Bridge, effects: Vec<Effect>) -> Step {
    Step::Becomes { next: Box::new(next), effects }
}

fn staged(bridge: &Bridge, live: &Live, stage: Stage) -> Bridge {
    let state = State::Live(Live { stage, stop_requested: live.stop_requested });
    Bridge { state, ..bridge.clone() }
}

fn held(bridge: &Bridge, agent: ProcessIdentity, keeper: Option<ProcessIdentity>) -> Step {
    match bridge.live() {
        Some(Live { stage: Stage::Launching { .. }, .. }) if bridge.process.is_none() => {
            becomes(Bridge { process: Some(agent), keeper, ..bridge.clone() }, Vec::new())
        }
        Some(_) | None => Step::Unchanged,
    }
}

fn executed(bridge: &Bridge) -> Step {
    let Some(live) = bridge.live() else {
        return Step::Unchanged;
    };
    match live.stage {
        Stage::Launching { deadline } => becomes(
            staged(bridge, live, Stage::Registering { deadline }),
            vec![Effect::Announce(Lifecycle::Spawn), Effect::Remember(History::Spawned)],
        ),
        Stage::Registering { .. } | Stage::Ready => Step::Unchanged,
    }
}

fn registered(bridge: &Bridge, anchor: Anchor, now: Timestamp) -> Step {
    let Some(live) = bridge.live() else {
        return Step::Unchanged;
    };
    // A later session or environment of a ready bridge is news too.
    let anchor = Anchor {
        environment_id: anchor.environment_id.or_else(|| bridge.anchor.environment_id.clone()),
        session_id: anchor.session_id.or_else(|| bridge.anchor.session_id.clone()),
    };
    match live.stage {
        Stage::Launching { .. } => Step::Unchanged,
        Stage::Ready if anchor == bridge.anchor => Step::Unchanged,
        Stage::Ready => becomes(Bridge { anchor, ..bridge.clone() }, Vec::new()),
        Stage::Registering { .. } => {
            let mut effects = Vec::new();
            if bridge.origin == Origin::Spawned {
                effects.push(Effect::Announce(Lifecycle::Ready));
            }
            effects.push(Effect::Remember(History::Ready));
            let next = staged(bridge, live, Stage::Ready);
            becomes(Bridge { anchor, status_since: now, ..next }, effects)
        }
    }
}

/// Ends a live generation; an ended one stays as it is.
fn end(
    bridge: &Bridge,
    now: Timestamp,
    how: impl FnOnce(&Live) -> (Outcome, Cause, Vec<Effect>),
) -> Step {
    let Some(live) = bridge.live() else {
        return Step::Unchanged;
    };
    let (outcome, cause, effects) = how(live);
    let ended = Ended {
        outcome,
        at: now,
        intentional: live.stop_requested,
        forced: cause.forced,
        reason: Some(cause.reason),
        exit_code: cause.exit_code,
        exit_signal: cause.exit_signal,
        // A deliberate end needs no explanation.
        detail: if live.stop_requested { None } else { cause.detail },
    };
    let next = Bridge {
        state: State::Ended(ended),
        status_since: now,
        // Advice is about what runs; why the service itself ended it stays to be read.
        notice: bridge.notice.clone().filter(|text| says_why_ended(text)),
        quarantine: None,
        ..bridge.clone()
    };
    becomes(next, effects)
}

fn stopped(cause: Cause) -> (Outcome, Cause, Vec<Effect>) {
    (
        Outcome::Stopped,
        Cause { reason: ExitReason::OperatorStop, ..cause },
        vec![Effect::Announce(Lifecycle::Stop), Effect::Remember(History::Ended)],
    )
}

fn failed(cause: Cause) -> (Outcome, Cause, Vec<Effect>) {
    (Outcome::Failed, cause, vec![Effect::Remember(History::Ended)])
}

fn crashed(cause: Cause) -> (Outcome, Cause, Vec<Effect>) {
    (
        Outcome::Crashed,
        cause,
        vec![
            Effect::Announce(Lifecycle::Crash),
            Effect::CountCrash,
            Effect::Remember(History::Crashed),
        ],
    )
}

/// The end of a generation that was never ready.
fn never_ready(live: &Live, cause: Cause) -> (Outcome, Cause, Vec<Effect>) {
    if live.stop_requested { stopped(cause) } else { failed(cause) }
}

/// An end that nobody asked for.
fn unexpected(live: &Live, origin: Origin, cause: Cause) -> (Outcome, Cause, Vec<Effect>) {
    match live.stage {
        Stage::Ready => crashed(cause),
        Stage::Launching { .. } | Stage::Registering { .. } if origin == Origin::Spawned => {
            failed(cause)
        }
        // Nobody here started it with a deadline: it was somebody's working bridge.
        Stage::Launching { .. } | Stage::Registering { .. } => crashed(cause),
    }
}

/// Ends a start that was too slow.
/// A row without a deadline never ends this way (specification, additional rule 1).
fn grace_expired(bridge: &Bridge, cause: Cause, now: Timestamp) -> Step {
    match bridge.live().map(|live| live.stage) {
        Some(Stage::Registering { deadline: Some(_) }) => {
            end(bridge, now, |live| never_ready(live, cause))
        }
        Some(Stage::Launching { .. } | Stage::Registering { deadline: None } | Stage::Ready)
        | None => Step::Unchanged,
    }
}

/// Ends a start of which the agent itself said that it cannot succeed.
/// It needs no deadline for that: nothing is waited for any more.
fn refused(bridge: &Bridge, cause: Cause, now: Timestamp) -> Step {
    match bridge.live().map(|live| live.stage) {
        Some(Stage::Launching { .. } | Stage::Registering { .. }) => {
            end(bridge, now, |live| never_ready(live, cause))
        }
        Some(Stage::Ready) => exited(bridge, cause, now),
        None => Step::Unchanged,
    }
}

fn exited(bridge: &Bridge, cause: Cause, now: Timestamp) -> Step {
    let planned = bridge.spawn_mode == SpawnMode::Session && cause.exit_code == Some(0);
    end(bridge, now, |live| {
        if live.stop_requested {
            stopped(cause)
        } else if planned && live.stage == Stage::Ready {
            let cause = Cause { reason: ExitReason::SessionEnded, detail: None, ..cause };
            (Outcome::Stopped, cause, vec![Effect::Remember(History::Ended)])
        } else {
            unexpected(live, bridge.origin, cause)
        }
    })
}

/// No event per bridge: the whole host went down.
fn host_restarted(live: &Live) -> (Outcome, Cause, Vec<Effect>) {
    let reason =
        if live.stop_requested { ExitReason::OperatorStop } else { ExitReason::HostRestarted };
    (Outcome::Stopped, Cause::plain(reason), vec![Effect::Remember(History::Ended)])
}

/// Same rules as an exit, but a deliberate stop is not announced again.
fn found_gone(bridge: &Bridge, cause: Cause, now: Timestamp) -> Step {
    end(bridge, now, |live| {
        if live.stop_requested {
            let (outcome, cause, _) = stopped(cause);
            (outcome, cause, vec![Effect::Remember(History::Ended)])
        } else {
            unexpected(live, bridge.origin, cause)
        }
    })
}

/// Takes over a live row: a running bridge keeps its origin.
/// A starting one loses its deadline and its announcements.
fn taken_over(bridge: &Bridge) -> Step {
    let Some(live) = bridge.live() else {
        return Step::Unchanged;
    };
    match live.stage {
        Stage::Ready => Step::Unchanged,
        Stage::Launching { .. } | Stage::Registering { .. }
            if bridge.origin != Origin::Spawned && bridge.deadline().is_none() =>
        {
            match live.stage {
                Stage::Launching { .. } => becomes(
                    staged(bridge, live, Stage::Registering { deadline: None }),
                    vec![Effect::Remember(History::Spawned)],
                ),
                Stage::Registering { .. } | Stage::Ready => Step::Unchanged,
            }
        }
        Stage::Launching { .. } => becomes(
            Bridge {
                origin: Origin::Adopted,
                ..staged(bridge, live, Stage::Registering { deadline: None })
            },
            vec![Effect::Remember(History::Spawned)],
        ),
        Stage::Registering { .. } => becomes(
            Bridge {
                origin: Origin::Adopted,
                ..staged(bridge, live, Stage::Registering { deadline: None })
            },
            Vec::new(),
        ),
    }
}

/// Corrects an ended row whose own process lives. Nothing is announced.
fn found_alive(bridge: &Bridge, now: Timestamp) -> Step {
    let Some(ended) = bridge.ended() else {
        return Step::Unchanged;
    };
    let stage = match &bridge.launch {
        Some(_) => Stage::Registering { deadline: None },
        // It was taken over when it was ready, and no log of it could say so again.
        None => Stage::Ready,
    };
    let state = State::Live(Live { stage, stop_requested: ended.intentional });
    // What lives need not be started.
    let restarts = Restarts { next_at: None, ..bridge.restarts.clone() };
    let origin = Origin::Adopted;
    becomes(Bridge { state, origin, status_since: now, restarts, ..bridge.clone() }, Vec::new())
}

fn poisoned(bridge: &Bridge) -> Step {
    match bridge.live().map(|live| live.stage) {
        Some(Stage::Ready) => advise(
            bridge,
            Some("the remote session was archived or deleted; new sessions may not connect".into()),
        ),
        Some(Stage::Launching { .. } | Stage::Registering { .. }) | None => Step::Unchanged,
    }
}

/// The session goes on without its terminal; only signals can stop it (F64).
fn terminal_lost(bridge: &Bridge) -> Step {
    if !bridge.is_live() || bridge.keeper.is_none() {
        return Step::Unchanged;
    }
    let notice = Some(TERMINAL_LOST.to_owned());
    // No keeper is left that could speak another version.
    let quarantine = bridge.doubt();
    becomes(Bridge { keeper: None, notice, quarantine, ..bridge.clone() }, Vec::new())
}

fn converses(bridge: &Bridge, conversation: ConversationId) -> Step {
    if !bridge.is_interactive() || bridge.conversation.as_ref() == Some(&conversation) {
        return Step::Unchanged;
    }
    becomes(Bridge { conversation: Some(conversation), ..bridge.clone() }, Vec::new())
}

fn doubt(bridge: &Bridge, code: Option<QuarantineCode>) -> Step {
    if bridge.quarantine == code {
        return Step::Unchanged;
    }
    // Who is stopped to be healed and cannot be ended is left to a person.
    let is_left = bridge.is_live() && code.is_some();
    let next_at = bridge.restarts.next_at.filter(|_| !is_left);
    let restarts = Restarts { next_at, ..bridge.restarts.clone() };
    becomes(Bridge { quarantine: code, restarts, ..bridge.clone() }, Vec::new())
}

fn advise(bridge: &Bridge, notice: Option<String>) -> Step {
    if bridge.notice == notice {
        return Step::Unchanged;
    }
    becomes(Bridge { notice, ..bridge.clone() }, Vec::new())
}

/// Forgets the crashes and restarts before a stable run.
fn steady(bridge: &Bridge) -> Step {
    let restarts = bridge.restarts.cleared();
    if bridge.live().map(|live| live.stage) != Some(Stage::Ready) || restarts == bridge.restarts {
        return Step::Unchanged;
    }
    becomes(Bridge { restarts, ..bridge.clone() }, Vec::new())
}
