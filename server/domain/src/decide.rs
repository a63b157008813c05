//! What a command does to a bridge. Commands come from people and may be refused.

use crate::bridge::{Anchor, Bridge, Launch, Live, Stage, State};
use crate::effect::Step;
use crate::identity::Verdict;
use svc_shared::Timestamp;
use svc_shared::status::{Origin, QuarantineCode};

/// What somebody wants of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// End it.
    Stop,
    /// Start the next generation.
    Resume {
        /// The new generation's launch.
        launch: Launch,
        /// Until when it must be ready.
        deadline: Option<Timestamp>,
    },
    /// Start once more after a poisoned session, without its remote session.
    Relaunch {
        /// The new generation's launch.
        launch: Launch,
        /// Until when it must be ready.
        deadline: Option<Timestamp>,
    },
    /// Take back a resume of which nothing was started.
    Withdraw {
        /// The generation that the resume began.
        generation: u32,
        /// The record before it.
        before: Box<Bridge>,
    },
    /// Show another name to the remote client from the next launch on.
    Rename(Option<String>),
}

/// Why a command is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Actions on the row are suspended.
    #[error("the row is held")]
    Held(QuarantineCode),
    /// It is live already.
    #[error("the bridge is live")]
    Live,
    /// It is not starting, or was relaunched before, or is being stopped.
    #[error("the bridge cannot be relaunched")]
    NoRelaunch,
}

/// What the record becomes when the command is carried out.
///
/// # Errors
/// The [`Refusal`]; the record stays as it is.
pub fn decide(bridge: &Bridge, command: Command, now: Timestamp) -> Result<Step, Refusal> {
    match command {
        Command::Stop => {
            bridge.doubt().map_or(Ok(()), |code| Err(Refusal::Held(code)))?;
            Ok(stop(bridge))
        }
        Command::Resume { launch, deadline } => {
            held(bridge)?;
            resume(bridge, launch, deadline, now)
        }
        Command::Relaunch { launch, deadline } => relaunch(bridge, launch, deadline, now),
        Command::Withdraw { generation, before } => Ok(withdraw(bridge, generation, *before)),
        Command::Rename(name) => Ok(rename(bridge, name)),
    }
}

/// Whether the record may be deleted, given the state of its process.
///
/// # Errors
/// The process lives or may live, or actions on the row are suspended.
pub fn may_forget(bridge: &Bridge, process: Option<Verdict>) -> Result<(), Refusal> {
    is_over(bridge, process)
}

/// Whether the next generation may begin, given the state of the last process.
/// An ended record can name a live process: after a manual change of the database, or after a
/// backup was restored.
///
/// # Errors
/// The process lives or may live, or actions on the row are suspended.
pub fn may_resume(bridge: &Bridge, process: Option<Verdict>) -> Result<(), Refusal> {
    is_over(bridge, process)
}

fn is_over(bridge: &Bridge, process: Option<Verdict>) -> Result<(), Refusal> {
    held(bridge)?;
    match process {
        Some(Verdict::Same | Verdict::Unknown) => Err(Refusal::Live),
        Some(Verdict::Gone(_)) | None if bridge.is_live() => Err(Refusal::Live),
        Some(Verdict::Gone(_)) | None => Ok(()),
    }
}

fn held(bridge: &Bridge) -> Result<(), Refusal> {
    bridge.quarantine.map_or(Ok(()), |code| Err(Refusal::Held(code)))
}

/// Records the intent, so that the end counts as a stop and never as a crash.
fn stop(bridge: &Bridge) -> Step {
    match &bridge.state {
        State::Ended(_) => Step::Unchanged,
        State::Live(live) if live.stop_requested => Step::Unchanged,
        State::Live(live) => {
            let state = State::Live(Live { stage: live.stage, stop_requested: true });
            Step::Becomes {
                next: Box::new(Bridge { state, ..bridge.clone() }),
                effects: Vec::new(),
            }
        }
    }
}

fn resume(
    bridge: &Bridge,
    launch: Launch,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Result<Step, Refusal> {
    if bridge.is_live() {
        return Err(Refusal::Live);
    }
    let next = next_generation(bridge, launch, deadline, now);
    Ok(Step::Becomes { next: Box::new(next), effects: Vec::new() })
}

fn relaunch(
    bridge: &Bridge,
    launch: Launch,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Result<Step, Refusal> {
    held(bridge)?;
    let starting = match bridge.live() {
        Some(Live { stage: Stage::Registering { .. }, stop_requested: false }) => true,
        Some(_) | None => false,
    };
    let used = bridge.launch.as_ref().is_some_and(|launch| launch.relaunched);
    if !starting || used {
        return Err(Refusal::NoRelaunch);
    }
    let launch = Launch { relaunched: true, ..launch };
    let next = Bridge {
        status_since: bridge.status_since,
        ..next_generation(bridge, launch, deadline, now)
    };
    Ok(Step::Becomes { next: Box::new(next), effects: Vec::new() })
}

/// Only while no process of the generation was recorded.
/// Afterwards it ends as any other.
fn withdraw(bridge: &Bridge, generation: u32, before: Bridge) -> Step {
    let is_launching =
        bridge.live().is_some_and(|live| matches!(live.stage, Stage::Launching { .. }));
    if bridge.generation != generation || !is_launching || bridge.process.is_some() {
        return Step::Unchanged;
    }
    // A name that was given meanwhile stays.
    let next = Bridge { custom_name: bridge.custom_name.clone(), ..before };
    Step::Becomes { next: Box::new(next), effects: Vec::new() }
}

fn next_generation(
    bridge: &Bridge,
    launch: Launch,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Bridge {
    Bridge {
        origin: Origin::Spawned,
        generation: bridge.generation.saturating_add(1),
        state: State::Live(Live { stage: Stage::Launching { deadline }, stop_requested: false }),
        status_since: now,
        started_at: Some(now),
        launch: Some(launch),
        process: None,
        keeper: None,
        anchor: Anchor::default(),
        notice: None,
        ..bridge.clone()
    }
}

fn rename(bridge: &Bridge, name: Option<String>) -> Step {
    if bridge.custom_name == name {
        return Step::Unchanged;
    }
    Step::Becomes {
        next: Box::new(Bridge { custom_name: name, ..bridge.clone() }),
        effects: Vec::new(),
    }
}
