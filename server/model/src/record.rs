//! A record of a bridge as the model keeps it, and the real rules applied to it.
//!
//! A state of the model holds millions of records, so they are kept as a few bytes. Every change
//! goes through [`decide`] and [`observe`] of the domain: the bytes become a real record, the rule
//! is asked, and what it answers becomes bytes again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::PathBuf;
use svc_domain::bridge::{self, Anchor, Beginning, Bridge, Launch, Live, State};
use svc_domain::decide::{Command, decide, may_forget, may_resume};
use svc_domain::effect::{Effect, Step};
use svc_domain::identity::{BootId, LaunchId, Observed, Pid, ProcessIdentity, Verdict, verdict};
use svc_domain::observe::{Cause, Fact, observe};
use svc_shared::Timestamp;
use svc_shared::status::{ExitReason, Origin, PermissionMode, ResumeMode};

/// No rule looks at the id: the model tells its records apart by their place.
const ID: &str = "00000001-0000-4000-8000-000000000000";
const BOOT: &str = "boot";
const FIRST_PID: i64 = 100;
const FIRST_KEEPER: i64 = 500;
const FIRST_TICK: u64 = 1000;

/// Which process is meant: its pid and when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Number of the process, which stands for its start time.
    pub process: u8,
    /// Its pid, which somebody else may have later.
    pub pid: u8,
}

/// How far a live generation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Recorded before anything was started.
    Launching {
        /// It must be ready in time.
        deadline: bool,
    },
    /// Started.
    Registering {
        /// It must be ready in time.
        deadline: bool,
    },
    /// Seen ready.
    Ready,
}

/// Public status of an ended generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// On purpose.
    Stopped,
    /// After it was ready.
    Crashed,
    /// Before it was ready.
    Failed,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Life {
    /// A process exists or is about to.
    Live {
        /// How far it came.
        stage: Stage,
        /// A stop is recorded.
        stop: bool,
    },
    /// No process.
    Ended {
        /// The public status.
        outcome: Outcome,
        /// It was stopped on purpose.
        intentional: bool,
    },
}

/// The parts of a record that a rule reads. The model has one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    /// One more per launch.
    pub generation: u8,
    /// This service started it; else it was taken over.
    pub spawned: bool,
    /// Where it stands.
    pub life: Life,
    /// Its launch id.
    pub launch: u8,
    /// Its process, once known.
    pub process: Option<Identity>,
    /// What the agent registered is known.
    pub anchored: bool,
    /// It is an Interactive Session; else it is in Server Mode.
    pub interactive: bool,
    /// It names the keeper of its terminal.
    pub keeper: bool,
}

/// A command or a fact, as the model passes it to the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// `Command::Stop`.
    Stop,
    /// `Command::Resume`.
    Resume {
        /// The next launch id.
        launch: u8,
        /// It must be ready in time.
        deadline: bool,
    },
    /// `Fact::Held`.
    Held(Identity),
    /// `Fact::Executed`.
    Executed,
    /// `Fact::NotExecuted`.
    NotExecuted,
    /// `Fact::Registered`.
    Registered,
    /// `Fact::Refused`.
    Refused,
    /// `Fact::TerminalLost`.
    TerminalLost,
    /// `Fact::GraceExpired`.
    GraceExpired,
    /// `Fact::Exited`.
    Exited,
    /// `Fact::FoundGone`.
    FoundGone,
    /// `Fact::LaunchInterrupted`.
    LaunchInterrupted,
    /// `Fact::TakenOver`.
    TakenOver,
    /// `Fact::FoundAlive`.
    FoundAlive,
}

/// What the rules answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// A command that is not carried out.
    Refused,
    /// Nothing to write.
    Unchanged,
    /// The next record.
    Becomes {
        /// What is written.
        next: Row,
        /// A crash is counted and told.
        crash: bool,
    },
}

impl Row {
    /// A record as a spawn writes it.
    pub fn launching(launch: u8, deadline: bool, interactive: bool) -> Self {
        Self {
            generation: 1,
            spawned: true,
            life: Life::Live { stage: Stage::Launching { deadline }, stop: false },
            launch,
            process: None,
            anchored: false,
            interactive,
            keeper: false,
        }
    }

    /// Whether it takes the one place that its project has for Server Mode.
    pub fn occupies_project(&self) -> bool {
        bridge_of(self).occupies_project()
    }

    /// Whether a process is expected to exist.
    pub fn is_live(&self) -> bool {
        matches!(self.life, Life::Live { .. })
    }

    /// How far it came, while it is live.
    pub fn stage(&self) -> Option<Stage> {
        match self.life {
            Life::Live { stage, .. } => Some(stage),
            Life::Ended { .. } => None,
        }
    }

    /// Whether a stop was asked for, or was the last end.
    pub fn intentional_stop(&self) -> bool {
        match self.life {
            Life::Live { stop, .. } => stop,
            Life::Ended { intentional, .. } => intentional,
        }
    }

    /// Whether the rules let it be forgotten.
    pub fn may_be_forgotten(&self, process: Option<Verdict>) -> bool {
        may_forget(&bridge_of(self), process).is_ok()
    }

    /// Whether the rules let the next generation begin.
    pub fn may_be_resumed(&self, process: Option<Verdict>) -> bool {
        may_resume(&bridge_of(self), process).is_ok()
    }
}

/// Remembered answers of the rules, which are asked in every step.
/// With the hasher of the standard library, hashing would take most of the time.
type Known<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// A hasher for a few trusted bytes.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }
}

thread_local! {
    /// The rules are pure: what they answered once they answer again.
    static ANSWERS: RefCell<Known<(Row, Event), Answer>> = RefCell::default();
    static VERDICTS: RefCell<Known<(Identity, Option<u8>), Verdict>> = RefCell::default();
}

/// Asks the domain.
pub fn ask(row: Row, event: Event) -> Answer {
    ANSWERS
        .with_borrow_mut(|known| *known.entry((row, event)).or_insert_with(|| answer(row, event)))
}

/// Compares a recorded identity with who has its pid now, as the domain does.
pub fn compare(recorded: Identity, holder: Option<u8>) -> Verdict {
    VERDICTS.with_borrow_mut(|known| {
        *known.entry((recorded, holder)).or_insert_with(|| {
            let observed = match holder {
                Some(process) => Observed::Alive { start_ticks: FIRST_TICK + u64::from(process) },
                None => Observed::Absent,
            };
            verdict(&identity_of(recorded), &boot(), &observed)
        })
    })
}

fn answer(row: Row, event: Event) -> Answer {
    let before = bridge_of(&row);
    let now = Timestamp::from_millis(1);
    let step = match event {
        Event::Stop => match decide(&before, Command::Stop, now) {
            Ok(step) => step,
            Err(_) => return Answer::Refused,
        },
        Event::Resume { launch, deadline } => {
            let command =
                Command::Resume { launch: launch_of(launch), deadline: deadline_of(deadline) };
            match decide(&before, command, now) {
                Ok(step) => step,
                Err(_) => return Answer::Refused,
            }
        }
        Event::Held(identity) => {
            let keeper = row.interactive.then(|| keeper_of(row.launch));
            observe(&before, Fact::Held { agent: identity_of(identity), keeper }, now)
        }
        Event::Executed => observe(&before, Fact::Executed, now),
        Event::NotExecuted => observe(&before, Fact::NotExecuted(cause()), now),
        Event::Registered => observe(&before, Fact::Registered(anchor(true)), now),
        Event::Refused => observe(&before, Fact::Refused(cause()), now),
        Event::TerminalLost => observe(&before, Fact::TerminalLost, now),
        Event::GraceExpired => observe(&before, Fact::GraceExpired(cause()), now),
        Event::Exited => observe(&before, Fact::Exited(cause()), now),
        Event::FoundGone => observe(&before, Fact::FoundGone(cause()), now),
        Event::LaunchInterrupted => observe(&before, Fact::LaunchInterrupted(cause()), now),
        Event::TakenOver => observe(&before, Fact::TakenOver, now),
        Event::FoundAlive => observe(&before, Fact::FoundAlive, now),
    };
    match step {
        Step::Unchanged => Answer::Unchanged,
        Step::Becomes { next, effects } => {
            Answer::Becomes { next: row_of(&next), crash: effects.contains(&Effect::CountCrash) }
        }
    }
}

fn cause() -> Cause {
    Cause::plain(ExitReason::Unknown)
}

fn anchor(known: bool) -> Anchor {
    Anchor { environment_id: known.then(|| "env_1".to_owned()), session_id: None }
}

fn deadline_of(given: bool) -> Option<Timestamp> {
    given.then(|| Timestamp::from_millis(60_000))
}

fn launch_of(number: u8) -> Launch {
    Launch {
        id: launch_id(number),
        argv: svc_domain::argv::Argv::default(),
        log_stem: String::new(),
        relaunched: false,
    }
}

fn launch_id(number: u8) -> LaunchId {
    format!("{number:032x}").parse().expect("32 digits")
}

fn boot() -> BootId {
    BOOT.parse().expect("a boot id")
}

fn identity_of(identity: Identity) -> ProcessIdentity {
    ProcessIdentity {
        pid: Pid::new(FIRST_PID + i64::from(identity.pid)).expect("an ordinary pid"),
        start_ticks: FIRST_TICK + u64::from(identity.process),
        boot_id: boot(),
    }
}

/// The keeper of a launch. Its pid is given to nobody else in the model.
fn keeper_of(launch: u8) -> ProcessIdentity {
    ProcessIdentity {
        pid: Pid::new(FIRST_KEEPER + i64::from(launch)).expect("an ordinary pid"),
        start_ticks: FIRST_TICK,
        boot_id: boot(),
    }
}

/// The real record.
fn bridge_of(row: &Row) -> Bridge {
    let state = match row.life {
        Life::Live { stage, stop } => State::Live(Live {
            stage: match stage {
                Stage::Launching { deadline } => {
                    bridge::Stage::Launching { deadline: deadline_of(deadline) }
                }
                Stage::Registering { deadline } => {
                    bridge::Stage::Registering { deadline: deadline_of(deadline) }
                }
                Stage::Ready => bridge::Stage::Ready,
            },
            stop_requested: stop,
        }),
        Life::Ended { outcome, intentional } => State::Ended(bridge::Ended {
            outcome: match outcome {
                Outcome::Stopped => bridge::Outcome::Stopped,
                Outcome::Crashed => bridge::Outcome::Crashed,
                Outcome::Failed => bridge::Outcome::Failed,
            },
            at: Timestamp::from_millis(0),
            intentional,
            forced: false,
            reason: None,
            exit_code: None,
            exit_signal: None,
            detail: None,
        }),
    };
    Bridge {
        permission_mode: PermissionMode::Default,
        generation: u32::from(row.generation),
        launch: Some(launch_of(row.launch)),
        process: row.process.map(identity_of),
        anchor: anchor(row.anchored),
        resume_mode: if row.interactive { ResumeMode::Pty } else { ResumeMode::Standard },
        keeper: row.keeper.then(|| keeper_of(row.launch)),
        ..Bridge::begin(Beginning {
            id: ID.parse().expect("an instance id"),
            project: "api".parse().expect("a project name"),
            cwd: PathBuf::from("/projects/api"),
            origin: if row.spawned { Origin::Spawned } else { Origin::Adopted },
            state,
            at: Timestamp::from_millis(0),
        })
    }
}

/// Its bytes.
fn row_of(bridge: &Bridge) -> Row {
    // No rule looks at advice.
    assert!(bridge.quarantine.is_none(), "not part of the model");
    let life = match &bridge.state {
        State::Live(live) => Life::Live {
            stage: match live.stage {
                bridge::Stage::Launching { deadline } => {
                    Stage::Launching { deadline: deadline.is_some() }
                }
                bridge::Stage::Registering { deadline } => {
                    Stage::Registering { deadline: deadline.is_some() }
                }
                bridge::Stage::Ready => Stage::Ready,
            },
            stop: live.stop_requested,
        },
        State::Ended(ended) => Life::Ended {
            outcome: match ended.outcome {
                bridge::Outcome::Stopped => Outcome::Stopped,
                bridge::Outcome::Crashed => Outcome::Crashed,
                bridge::Outcome::Failed => Outcome::Failed,
            },
            intentional: ended.intentional,
        },
    };
    let launch = bridge.launch.as_ref().expect("every record of the model was launched");
    Row {
        generation: u8::try_from(bridge.generation).expect("few generations"),
        spawned: bridge.origin == Origin::Spawned,
        life,
        launch: u8::from_str_radix(launch.id.as_str(), 16).expect("few launches"),
        process: bridge.process.as_ref().map(|process| Identity {
            process: u8::try_from(process.start_ticks - FIRST_TICK).expect("few processes"),
            pid: u8::try_from(i64::from(process.pid.get()) - FIRST_PID).expect("few pids"),
        }),
        anchored: bridge.anchor.environment_id.is_some(),
        interactive: bridge.is_interactive(),
        keeper: bridge.keeper.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_way_to_the_rules_and_back() {
        let stages = [
            Stage::Launching { deadline: true },
            Stage::Launching { deadline: false },
            Stage::Registering { deadline: true },
            Stage::Registering { deadline: false },
            Stage::Ready,
        ];
        let lives = stages
            .into_iter()
            .flat_map(|stage| [false, true].map(|stop| Life::Live { stage, stop }))
            .chain([Outcome::Stopped, Outcome::Crashed, Outcome::Failed].into_iter().flat_map(
                |outcome| [false, true].map(|intentional| Life::Ended { outcome, intentional }),
            ));
        for life in lives {
            for process in [None, Some(Identity { process: 2, pid: 1 })] {
                for (spawned, anchored) in [(true, false), (false, true)] {
                    for (interactive, keeper) in [(false, false), (true, false), (true, true)] {
                        let first = Row::launching(2, false, interactive);
                        let row = Row {
                            generation: 3,
                            spawned,
                            life,
                            process,
                            anchored,
                            keeper,
                            ..first
                        };
                        assert_eq!(row_of(&bridge_of(&row)), row);
                    }
                }
            }
        }
    }
}
