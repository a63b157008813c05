//! What happens in one round of chaos, drawn from a seed before the round begins.
//!
//! So a plan can be printed and repeated. Times are planned; which step a fault hits is chance.

use crate::harness::Dice;
use std::fmt;

/// A kind of trouble. `Mixed` has all that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Services and commands die inside launches, stops and resumes.
    Kill,
    /// Agents and launchers die; the number of a dead one is a stranger's.
    Agents,
    /// Services, agents and launchers are stopped for a while.
    Freeze,
    /// No space in the state directory.
    Disk,
    /// The state directory cannot be written.
    ReadOnly,
    /// The clock is set.
    Clock,
    /// No watch can be had, or events overflow.
    Watch,
    /// No descriptor is left.
    Descriptors,
    /// More than one service on one state.
    Second,
    /// Keepers of sessions die, are stopped for a while, or lose their record.
    Keepers,
    Mixed,
}

impl Family {
    pub const ALL: [Self; 11] = [
        Self::Kill,
        Self::Agents,
        Self::Freeze,
        Self::Disk,
        Self::ReadOnly,
        Self::Clock,
        Self::Watch,
        Self::Descriptors,
        Self::Second,
        Self::Keepers,
        Self::Mixed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Agents => "agents",
            Self::Freeze => "freeze",
            Self::Disk => "disk",
            Self::ReadOnly => "read-only",
            Self::Clock => "clock",
            Self::Watch => "watch",
            Self::Descriptors => "descriptors",
            Self::Second => "second",
            Self::Keepers => "keepers",
            Self::Mixed => "mixed",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// One of the faults of this kind.
    fn fault(self, dice: &mut Dice) -> Fault {
        let project = project(dice);
        let pause = 20 + dice.roll(1200);
        match self {
            Self::Kill => match dice.roll(8) {
                0 => Fault::KillCommands,
                1 => Fault::KillService { stays_down: true },
                _ => Fault::KillService { stays_down: false },
            },
            Self::Agents => match dice.roll(8) {
                0..=2 => Fault::KillAgent(project),
                3..=5 => Fault::KillLauncher,
                6 => Fault::KillEverything,
                _ => Fault::StealPid(project),
            },
            Self::Freeze => match dice.roll(6) {
                0 | 1 => Fault::FreezeService(pause),
                2 | 3 => Fault::FreezeAgent(project, pause),
                4 => Fault::FreezeLauncher(pause),
                _ => Fault::FreezeForGood(project),
            },
            Self::Disk => match dice.roll(5) {
                0..=2 => Fault::FillDisk,
                3 => Fault::KillService { stays_down: false },
                _ => Fault::Heal,
            },
            Self::ReadOnly => match dice.roll(5) {
                0..=2 => Fault::MakeReadOnly,
                3 => Fault::KillService { stays_down: false },
                _ => Fault::Heal,
            },
            Self::Clock => match dice.roll(5) {
                0 => Fault::KillService { stays_down: false },
                _ => Fault::SetClock(*dice.pick(&JUMPS)),
            },
            Self::Watch => match dice.roll(6) {
                0 => Fault::KillService { stays_down: false },
                1 => Fault::OverflowWatches,
                2 => Fault::KillAgent(project),
                _ => Fault::None,
            },
            Self::Descriptors => match dice.roll(5) {
                0..=2 => Fault::FewDescriptors(dice.roll(14)),
                3 => Fault::KillService { stays_down: false },
                _ => Fault::Heal,
            },
            Self::Second => match dice.roll(4) {
                0 => Fault::SeveralServices,
                1 => Fault::SecondOfFrozen(pause),
                _ => Fault::SecondService,
            },
            Self::Keepers => match dice.roll(8) {
                0..=2 => Fault::KillKeeper,
                3 | 4 => Fault::FreezeKeeper(pause),
                5 => Fault::OrphanKeeper,
                _ => Fault::KillService { stays_down: false },
            },
            Self::Mixed => {
                let any = [
                    Self::Kill,
                    Self::Agents,
                    Self::Freeze,
                    Self::Disk,
                    Self::ReadOnly,
                    Self::Clock,
                    Self::Descriptors,
                    Self::Second,
                    Self::Keepers,
                ];
                dice.pick(&any).fault(dice)
            }
        }
    }
}

const JUMPS: [i64; 8] = [0, -1, 1, -3600, 3600, 86_400, 315_360_000, -315_360_000];

/// What goes wrong in a step, and to which project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    KillService {
        /// The next step begins without it.
        stays_down: bool,
    },
    /// The commands of the step, not the service.
    KillCommands,
    KillAgent(usize),
    /// Whichever launcher is seen first.
    KillLauncher,
    /// Service, commands and agents at once, as when the power goes.
    KillEverything,
    /// Service and agent die; the agent's number now belongs to a stranger.
    StealPid(usize),
    /// Stopped for so many milliseconds.
    FreezeService(u64),
    FreezeAgent(usize, u64),
    FreezeLauncher(u64),
    /// Stopped until the next calm.
    FreezeForGood(usize),
    FillDisk,
    MakeReadOnly,
    SetClock(i64),
    /// More events than the kernel keeps, and a project behind them.
    OverflowWatches,
    /// So many more than are open.
    FewDescriptors(u64),
    SecondService,
    /// The keeper of a session, and its agent is hung up.
    KillKeeper,
    /// A keeper is stopped for so many milliseconds.
    FreezeKeeper(u64),
    /// The record of a session is lost; the command finds and ends its keeper.
    OrphanKeeper,
    /// While the first is stopped for so many milliseconds.
    SecondOfFrozen(u64),
    /// The service dies and several are started.
    SeveralServices,
    /// Space, rights, time and limits are given back.
    Heal,
}

/// Who acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Http,
    Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Start,
    Resume,
    Stop,
    Forget,
    /// A stop, and a resume behind it.
    Restart,
}

/// One thing that is asked of the program.
#[derive(Debug, Clone, Copy)]
pub struct Deed {
    pub by: By,
    pub what: What,
    pub project: usize,
    /// Waits for the outcome of a start.
    pub waits: bool,
}

/// Deeds that begin together, and a fault that comes so much later.
#[derive(Debug, Clone)]
pub struct Step {
    pub deeds: Vec<Deed>,
    pub after_ms: u64,
    pub fault: Fault,
    /// Ends with everything healed and the books looked at.
    pub calm: bool,
}

/// The projects of every round: name and knobs of the agent in it.
pub const PROJECTS: [(&str, &str); 9] = [
    ("plain", "{}"),
    ("quiet", "{}"),
    ("slow", r#"{"ready_ms":200}"#),
    ("lingers", r#"{"shutdown_ms":60}"#),
    ("deaf", r#"{"ignore_sigint":true}"#),
    ("never", r#"{"ready":"never"}"#),
    ("fails", r#"{"exit_after_ready_ms":80}"#),
    ("session", "{}"),
    ("session-slow", r#"{"ready_ms":200}"#),
];

/// Whether what is launched in this project is an Interactive Session.
pub fn is_session(project: &str) -> bool {
    project.starts_with("session")
}

/// Those that end without anybody's doing.
pub const FRAIL: &str = "fails";

fn project(dice: &mut Dice) -> usize {
    // Most of the time the plain ones: there a race is closest.
    match dice.roll(4) {
        0 => dice.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8]).to_owned(),
        _ => dice.pick(&[0, 1, 2, 7]).to_owned(),
    }
}

fn deed(dice: &mut Dice) -> Deed {
    let by = if dice.roll(5) < 2 { By::Command } else { By::Http };
    let what = match dice.roll(11) {
        0..=3 => What::Start,
        4..=6 => What::Stop,
        7..=9 => What::Resume,
        _ => What::Forget,
    };
    Deed { by, what, project: project(dice), waits: dice.roll(3) > 0 }
}

/// The instants are spread over the time that one deed takes, and a little beyond.
const SPREAD_MS: u64 = 260;
/// Steps between two looks at the books.
const CALM_EVERY: usize = 4;

/// A whole round.
#[derive(Debug, Clone)]
pub struct Plan {
    pub family: Family,
    pub steps: Vec<Step>,
}

impl Plan {
    /// The same for the same seed and round. Rounds take the kinds in turn.
    pub fn draw(seed: u64, round: u64, steps: usize, only: Option<Family>) -> Self {
        let mut dice = Dice::new(seed.wrapping_mul(0x0100_0000_01b3).wrapping_add(round));
        let kinds = Family::ALL.len() as u64;
        let turn = usize::try_from(round % kinds).unwrap_or_default();
        let family = only.unwrap_or(Family::ALL[turn]);
        let step = |number: usize| {
            let mut deeds: Vec<Deed> = (0..1 + dice.roll(3)).map(|_| deed(&mut dice)).collect();
            if family == Family::Keepers {
                let (by, project) = (By::Http, *dice.pick(&[7, 8]));
                deeds.push(Deed { by, what: What::Start, project, waits: true });
            }
            let mut after_ms = dice.roll(SPREAD_MS);
            let fault = if dice.roll(8) == 0 { Fault::None } else { family.fault(&mut dice) };
            if matches!(fault, Fault::KillLauncher | Fault::FreezeLauncher(_)) {
                // There is one when a bridge is stopped and resumed, and it is looked for at once.
                let (by, project, waits) = (By::Http, *dice.pick(&[0, 1]), true);
                deeds.push(Deed { by, what: What::Restart, project, waits });
                after_ms = 0;
            }
            Step { deeds, after_ms, fault, calm: number % CALM_EVERY == CALM_EVERY - 1 }
        };
        Self { family, steps: (0..steps).map(step).collect() }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for deed in &self.deeds {
            let (name, _) = PROJECTS[deed.project];
            let waits = if deed.waits { "" } else { ", not waiting" };
            write!(f, "{:?} {name} by {:?}{waits}; ", deed.what, deed.by)?;
        }
        write!(f, "after {} ms {:?}", self.after_ms, self.fault)?;
        if self.calm { write!(f, "; then calm") } else { Ok(()) }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {number:>3}  {step}")?;
        }
        Ok(())
    }
}
