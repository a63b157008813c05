//! What a command does to a bridge. Commands come from people and may be refused.

use crate::bridge::{Anchor, Bridge, Launch, Live, Stage, State};
use crate::effect::Step;
use crate::identity::Verdict;
use crate::restart::{Reboot, Restarts, is_ended_by_reboot};
use svc_shared::Timestamp;
use svc_shared::status::{AfterReboot, OnLimit, Origin, QuarantineCode, RestartPolicy};

/// What somebody wants of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// End it.
    Stop,
    /// End it, to start it again at once: its remote link is lost.
    StopToHeal,
    /// Start the next generation.
    Resume {
        /// The new generation's launch.
        launch: Launch,
        /// Until when it must be ready.
        deadline: Option<Timestamp>,
    },
    /// Start the next generation because a restart is due, without anybody's request.
    Restart {
        /// The new generation's launch.
        launch: Launch,
        /// Until when it must be ready.
        deadline: Option<Timestamp>,
    },
    /// Try a restart that is due at another time.
    Postpone(Restarts),
    /// Give up a restart that is due: only a person can make it possible.
    CallOff {
        /// Why, as a sentence for the row; `None` leaves its notice as it is.
        why: Option<String>,
    },
    /// Make the restart of a row due that a reboot ended.
    Restore {
        /// When it begins.
        at: Timestamp,
    },
    /// End the pause after too many crashes, without a start.
    Release,
    /// Set the row's own restart policy; `None` follows the configuration.
    SetRestart(Option<RestartPolicy>),
    /// Set what is done with the row after a reboot; `None` follows the configuration.
    SetAfterReboot(Option<AfterReboot>),
    /// Set what it does after a plan limit; `None` follows the configuration.
    SetOnLimit(Option<OnLimit>),
    /// Do not offer to restore this generation again.
    DeclineRestore,
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
    /// No restart is due any more: somebody stopped it or was faster.
    #[error("no restart of the bridge is due")]
    NotDue,
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
        Command::StopToHeal => {
            bridge.doubt().map_or(Ok(()), |code| Err(Refusal::Held(code)))?;
            Ok(stop_to_heal(bridge, now))
        }
        Command::Resume { launch, deadline } => {
            held(bridge)?;
            resume(bridge, launch, deadline, now)
        }
        Command::Restart { launch, deadline } => {
            held(bridge)?;
            restart(bridge, launch, deadline, now)
        }
        Command::Postpone(restarts) => {
            is_due(bridge)?;
            Ok(becomes(Bridge { restarts, ..bridge.clone() }))
        }
        Command::CallOff { why } => {
            is_due(bridge)?;
            let restarts = bridge.restarts.cleared();
            let notice = why.or_else(|| bridge.notice.clone());
            Ok(becomes(Bridge { restarts, notice, ..bridge.clone() }))
        }
        Command::Restore { at } => {
            held(bridge)?;
            restore(bridge, at)
        }
        Command::Release => Ok(release(bridge)),
        Command::SetRestart(policy) => Ok(set_restart(bridge, policy)),
        Command::SetAfterReboot(choice) => {
            let reboot = Reboot { choice, ..bridge.reboot.clone() };
            Ok(changed(bridge, Bridge { reboot, ..bridge.clone() }))
        }
        Command::SetOnLimit(on_limit) => Ok(changed(bridge, Bridge { on_limit, ..bridge.clone() })),
        Command::DeclineRestore => Ok(decline_restore(bridge)),
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
        // Nothing runs; what would start by itself does not any more.
        State::Ended(_) if bridge.restarts.next_at.is_some() => {
            let restarts = bridge.restarts.cleared();
            let reboot = Reboot { declined: true, ..bridge.reboot.clone() };
            becomes(Bridge { restarts, reboot, notice: None, ..bridge.clone() })
        }
        State::Ended(_) => Step::Unchanged,
        State::Live(live) => {
            let state = State::Live(Live { stage: live.stage, stop_requested: true });
            // Whoever stops it does not want it to be started again after this end.
            let restarts = Restarts { next_at: None, ..bridge.restarts.clone() };
            changed(bridge, Bridge { state, restarts, ..bridge.clone() })
        }
    }
}

/// Records that a start is to follow the stop.
///
/// So it follows also when the service dies in between.
fn stop_to_heal(bridge: &Bridge, now: Timestamp) -> Step {
    match &bridge.state {
        State::Ended(_) => Step::Unchanged,
        // Somebody stops it already, and that counts more.
        State::Live(live) if live.stop_requested => Step::Unchanged,
        State::Live(live) => {
            let state = State::Live(Live { stage: live.stage, stop_requested: true });
            let restarts = Restarts { next_at: Some(now), ..bridge.restarts.clone() };
            becomes(Bridge { state, restarts, ..bridge.clone() })
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
    // A person's start ends every pause and every count.
    let restarts = bridge.restarts.cleared();
    Ok(becomes(Bridge { restarts, ..next_generation(bridge, launch, deadline, now) }))
}

fn is_due(bridge: &Bridge) -> Result<(), Refusal> {
    let is_due = !bridge.is_live() && bridge.restarts.next_at.is_some();
    if is_due { Ok(()) } else { Err(Refusal::NotDue) }
}

fn restart(
    bridge: &Bridge,
    launch: Launch,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Result<Step, Refusal> {
    is_due(bridge)?;
    let old = &bridge.restarts;
    let restarts =
        Restarts { attempt: old.attempt.saturating_add(1), next_at: None, ..old.clone() };
    Ok(becomes(Bridge { restarts, ..next_generation(bridge, launch, deadline, now) }))
}

fn restore(bridge: &Bridge, at: Timestamp) -> Result<Step, Refusal> {
    if bridge.is_live() {
        return Err(Refusal::Live);
    }
    if !is_ended_by_reboot(bridge) {
        return Err(Refusal::NotDue);
    }
    let restarts = Restarts { next_at: Some(at), ..bridge.restarts.clone() };
    Ok(becomes(Bridge { restarts, notice: None, ..bridge.clone() }))
}

fn release(bridge: &Bridge) -> Step {
    if bridge.restarts.quarantined_at.is_none() {
        return Step::Unchanged;
    }
    becomes(Bridge { restarts: bridge.restarts.cleared(), ..bridge.clone() })
}

fn set_restart(bridge: &Bridge, policy: Option<RestartPolicy>) -> Step {
    let kept = match policy {
        // Nobody wants what is pending any more.
        Some(RestartPolicy::Never) => bridge.restarts.cleared(),
        Some(RestartPolicy::OnCrash | RestartPolicy::Always) | None => bridge.restarts.clone(),
    };
    let restarts = Restarts { policy, ..kept };
    changed(bridge, Bridge { restarts, ..bridge.clone() })
}

fn decline_restore(bridge: &Bridge) -> Step {
    if bridge.is_live() {
        return Step::Unchanged;
    }
    let reboot = Reboot { declined: true, ..bridge.reboot.clone() };
    changed(bridge, Bridge { reboot, ..bridge.clone() })
}

fn becomes(next: Bridge) -> Step {
    Step::Becomes { next: Box::new(next), effects: Vec::new() }
}

fn changed(bridge: &Bridge, next: Bridge) -> Step {
    if bridge == &next { Step::Unchanged } else { becomes(next) }
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
    becomes(Bridge { custom_name: bridge.custom_name.clone(), ..before })
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
        reboot: Reboot { declined: false, ..bridge.reboot.clone() },
        ..bridge.clone()
    }
}

fn rename(bridge: &Bridge, name: Option<String>) -> Step {
    if bridge.custom_name == name {
        return Step::Unchanged;
    }
    becomes(Bridge { custom_name: name, ..bridge.clone() })
}
