//! The bounds of the searches: short form, long form, one for each seeded fault.

use crate::model::{Bounds, RequestKinds};
use crate::mutation::Mutation;
use crate::world::{Budget, Start};

/// Everything that can happen, once.
const ONCE: Budget = Budget {
    commands: 1,
    requests: 0,
    crashes: 1,
    exits: 1,
    keepers: 0,
    refusals: 0,
    reuses: 1,
    misreadings: 1,
    launches: 2,
};
/// Two commands against each other.
const TWO: Budget = Budget {
    commands: 2,
    requests: 0,
    crashes: 0,
    exits: 0,
    keepers: 0,
    refusals: 0,
    reuses: 0,
    misreadings: 0,
    launches: 2,
};
/// A request to the server and the end of an agent.
const ASKED: Budget = Budget {
    commands: 0,
    requests: 1,
    crashes: 1,
    exits: 1,
    keepers: 0,
    refusals: 0,
    reuses: 1,
    misreadings: 0,
    launches: 2,
};

/// A command and a request against each other, and a death.
const MIXED: Budget = Budget {
    commands: 1,
    requests: 1,
    crashes: 1,
    exits: 0,
    keepers: 0,
    refusals: 0,
    reuses: 0,
    misreadings: 0,
    launches: 2,
};

/// What may happen to an Interactive Session, once.
const KEPT: Budget = Budget { keepers: 1, refusals: 1, reuses: 0, misreadings: 0, ..ONCE };
/// A session beside a Server Mode bridge, and a death.
const BESIDE: Budget = Budget { exits: 0, ..KEPT };
/// The loss of the terminal of a session that is ready.
const LOST: Budget = Budget { refusals: 0, ..BESIDE };

const STARTS: [Start; 5] =
    [Start::Served, Start::Unserved, Start::Running, Start::RunningUnserved, Start::WrongEnd];

/// A search from one start.
pub fn bounds(start: Start, budget: Budget) -> Bounds {
    Bounds { start, budget, requests: RequestKinds::SERVER }
}

/// A search over Interactive Sessions, alone or beside a Server Mode bridge.
fn sessions(start: Start, budget: Budget) -> Bounds {
    Bounds { requests: RequestKinds::SESSION, ..bounds(start, budget) }
}

/// Seconds.
pub fn short() -> Vec<Bounds> {
    let all = STARTS.map(|start| bounds(start, ONCE)).into_iter();
    let two = [Start::Running, Start::Served].map(|start| bounds(start, TWO));
    let asked = [Start::Running, Start::Served].map(|start| bounds(start, ASKED));
    let mixed = [Start::Running, Start::Served].map(|start| bounds(start, MIXED));
    let kept = [
        sessions(Start::Served, KEPT),
        sessions(Start::Session, LOST),
        sessions(Start::SessionUnserved, LOST),
        sessions(Start::Running, BESIDE),
    ];
    all.chain(two).chain(asked).chain(mixed).chain(kept).collect()
}

/// Minutes to hours: every start with `budget`.
/// What may happen to keepers and sessions makes it a search over these.
pub fn long(budget: Budget) -> Vec<Bounds> {
    if budget.keepers > 0 || budget.refusals > 0 {
        let starts = [Start::Served, Start::Session, Start::SessionUnserved, Start::Running];
        return starts.map(|start| sessions(start, budget)).into();
    }
    STARTS.map(|start| bounds(start, budget)).into()
}

/// What the long form allows without arguments.
pub const LONG: Budget = Budget {
    commands: 2,
    requests: 0,
    crashes: 2,
    exits: 0,
    keepers: 0,
    refusals: 0,
    reuses: 0,
    misreadings: 0,
    launches: 2,
};

/// Small bounds within which a seeded fault shows.
pub fn exposing(mutation: Mutation) -> Bounds {
    match mutation {
        Mutation::SignalBeforeIntent
        | Mutation::NoRevisionCheck
        | Mutation::LockOutlivesHolder
        | Mutation::ExitForgetsIntent
        | Mutation::ForgetWithoutProbe
        | Mutation::SignalWithoutProof
        | Mutation::NoAdmission
        | Mutation::NoSecondLook
        | Mutation::KeepsIdentity
        | Mutation::OpenStopForgotten => bounds(Start::Running, ONCE),
        Mutation::NoLock
        | Mutation::GoBeforeIdentity
        | Mutation::RowAfterLaunch
        | Mutation::LauncherNeedsNoOrder
        | Mutation::ReadyWithoutEvidence
        | Mutation::InterruptedWithoutLook
        | Mutation::FailedPassForgotten => bounds(Start::Served, ONCE),
        Mutation::WatchBeginsLate => bounds(Start::Unserved, ONCE),
        Mutation::WrongEndOnlyWatched | Mutation::LaunchWithoutProbe => {
            bounds(Start::WrongEnd, ONCE)
        }
        Mutation::KeeperUnrecorded | Mutation::ReadyThoughRefused | Mutation::RefusalIgnored => {
            sessions(Start::Served, KEPT)
        }
        Mutation::TerminalLossUnseen => sessions(Start::Session, LOST),
        Mutation::ExpiredBeforeStopped => bounds(Start::Served, ASKED),
        Mutation::FactOfAnyGeneration => {
            bounds(Start::Running, Budget { commands: 1, requests: 1, crashes: 0, exits: 1, ..TWO })
        }
    }
}
