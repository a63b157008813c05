//! What can happen in a state, and what must never be so.

use crate::mutation::Mutation;
use crate::program::{self, begun, choices, has_open_questions};
use crate::record::{Life, Outcome, Row, Stage};
use crate::world::{
    At, Budget, COMMANDS, Progress, ROWS, Request, Stand, Start, Task, Who, World, Wrong,
};
use stateright::{Model, Property};
use svc_domain::identity::Verdict;

/// How far a search goes. Within it every order of steps is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// From where.
    pub start: Start,
    /// How much may happen.
    pub budget: Budget,
    /// What may be requested; each as often as the budget allows.
    pub requests: RequestKinds,
}

/// Which kinds of request a search tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestKinds {
    /// Spawn a Server Mode bridge.
    pub spawn: bool,
    /// Spawn an Interactive Session.
    pub session: bool,
    /// Stop.
    pub stop: bool,
    /// Resume.
    pub resume: bool,
    /// Forget.
    pub forget: bool,
}

impl RequestKinds {
    /// All of a Server Mode bridge.
    pub const SERVER: Self =
        Self { spawn: true, session: false, stop: true, resume: true, forget: true };
    /// All of an Interactive Session.
    pub const SESSION: Self = Self { spawn: false, session: true, ..Self::SERVER };
    /// All of them.
    pub const ALL: Self = Self { session: true, ..Self::SERVER };
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A task takes its next step, in one of the ways it can turn out.
    Step(u8, u8),
    /// A launcher goes on, in one of two ways.
    Launcher(u8, u8),
    /// An agent that was asked to end ends.
    Obey(u8),
    /// The server looks whether the database was written, or at its slow tick.
    Look,
    /// The server is started.
    Start,
    /// A command that has its answer ends.
    Quit(u8),
    /// Somebody wants something.
    Ask(Who, Request),
    /// A process of ours dies.
    Crash(Who),
    /// The agent writes that it is registered.
    Register(u8),
    /// The agent of a session writes that it is refused remote control.
    Refuse(u8),
    /// A keeper ends, and its agent with it or not.
    LoseKeeper(u8, bool),
    /// The agent ends by itself.
    Exit(u8),
    /// A foreign process gets the pid of one that has ended.
    Reuse(u8),
    /// All that would have told the server of a write is lost.
    LoseWake,
}

impl Action {
    /// Whether program and kernel take this step by themselves, sooner or later.
    /// The other steps depend on people, agents and accidents, and need never happen.
    pub fn is_own(self) -> bool {
        matches!(
            self,
            Self::Step(..)
                | Self::Launcher(..)
                | Self::Obey(_)
                | Self::Look
                | Self::Start
                | Self::Quit(_)
        )
    }
}

/// The model: bounds, and one seeded fault if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    /// How far the search goes.
    pub bounds: Bounds,
    /// What is wrong with the rules.
    pub mutation: Option<Mutation>,
}

/// At most one live agent in the project.
pub const ONE_AGENT: &str = "at most one Server Mode bridge lives";
/// Every agent has a live record that names it, with the keeper of its terminal.
pub const NO_ORPHAN: &str = "no agent runs that no live record names";
/// See [`Wrong::StopIsNoStop`].
pub const STOP_IS_STOP: &str = "a deliberate stop is recorded as nothing else";
/// See [`Wrong::CrashCountedTwice`].
pub const CRASH_ONCE: &str = "a crash is counted once";
/// See [`Wrong::SignalledForeigner`].
pub const OWN_SIGNALS: &str = "no process is signalled in the place of another";
/// Readiness has evidence.
pub const SEEN_READY: &str = "nothing is called running that was not ready";
/// Where nothing goes on by itself, everything is settled.
pub const RESTS: &str = "what has nothing left to do is settled";

/// What a search must come by, so that it shows anything.
pub const REACHED: [&str; 8] = [
    "a bridge is ready",
    "one is stopped",
    "one crashes",
    "one fails",
    "one is resumed",
    "a session is ready beside a Server Mode bridge",
    "a session is resumed",
    "a session goes on without its terminal",
];

impl Lifecycle {
    /// What the program does by itself in a state.
    fn own(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, task) in (0_u8..).zip(&world.tasks) {
            for choice in 0..choices(task) {
                // That a pass misreads is an accident, but one in the middle of a step.
                actions.push(Action::Step(at, choice));
            }
        }
        for (number, process) in (0_u8..).zip(&world.processes) {
            match process.progress {
                Progress::Forked | Progress::Waiting => actions.push(Action::Launcher(number, 0)),
                Progress::Told => {
                    actions.push(Action::Launcher(number, 0));
                    actions.push(Action::Launcher(number, 1));
                }
                Progress::Agent if process.interrupted => actions.push(Action::Obey(number)),
                Progress::Agent | Progress::Unborn | Progress::Gone => {}
            }
        }
        actions.push(Action::Look);
        if !world.server.up {
            actions.push(Action::Start);
        }
        for command in 0..COMMANDS as u8 {
            if world.commands[usize::from(command)] == Stand::Working {
                actions.push(Action::Quit(command));
            }
        }
    }

    /// What people, agents and accidents may do.
    fn foreign(&self, world: &World, actions: &mut Vec<Action>) {
        let requests = self.requests(world);
        if world.budget.commands > 0
            && let Some(next) = world.commands.iter().position(|at| *at == Stand::Unused)
        {
            let who = Who::Command(next as u8);
            actions.extend(requests.iter().map(|request| Action::Ask(who, *request)));
        }
        if world.budget.requests > 0 && world.server.watching {
            actions.extend(requests.iter().map(|request| Action::Ask(Who::Server, *request)));
        }
        if world.budget.crashes > 0 {
            if world.server.up {
                actions.push(Action::Crash(Who::Server));
            }
            for (number, stand) in (0_u8..).zip(world.commands) {
                if stand == Stand::Working {
                    actions.push(Action::Crash(Who::Command(number)));
                }
            }
        }
        for agent in world.agents() {
            let process = &world.processes[usize::from(agent)];
            if !process.registered && !process.refused {
                actions.push(Action::Register(agent));
                if process.interactive && world.budget.refusals > 0 {
                    actions.push(Action::Refuse(agent));
                }
            }
            if world.budget.exits > 0 {
                actions.push(Action::Exit(agent));
            }
        }
        if world.budget.keepers > 0 {
            for (number, process) in (0_u8..).zip(&world.processes) {
                if process.keeper {
                    actions.push(Action::LoseKeeper(number, false));
                }
                if process.keeper && process.progress == Progress::Agent {
                    actions.push(Action::LoseKeeper(number, true));
                }
            }
        }
        if world.budget.reuses > 0 {
            for (number, process) in (0_u8..).zip(&world.processes) {
                let is_free = world.holder(process.pid).is_none() && !world.is_foreign(process.pid);
                if process.progress == Progress::Gone && is_free {
                    actions.push(Action::Reuse(number));
                }
            }
        }
        if self.mutation == Some(Mutation::NoSecondLook) && world.server.unseen {
            actions.push(Action::LoseWake);
        }
    }

    fn requests(&self, world: &World) -> Vec<Request> {
        let mut requests = Vec::new();
        if self.bounds.requests.spawn {
            requests.push(Request::Spawn);
        }
        if self.bounds.requests.session {
            requests.push(Request::Session);
        }
        for (number, row) in (0_u8..).zip(&world.rows) {
            let Some(row) = row else { continue };
            if self.bounds.requests.stop && row.is_live() {
                requests.push(Request::Stop(number));
            }
            if self.bounds.requests.resume && !row.is_live() {
                requests.push(Request::Resume(number));
            }
            if self.bounds.requests.forget {
                requests.push(Request::Forget(number));
            }
        }
        requests
    }

    fn apply(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Step(task, choice) => {
                return program::step(world, self.mutation, usize::from(task), choice);
            }
            Action::Launcher(number, choice) => self.launcher(&mut next, number, choice)?,
            Action::Obey(number) | Action::Exit(number) => {
                if action == Action::Exit(number) {
                    next.budget.exits -= 1;
                }
                next.end(number);
            }
            Action::Look => self.look(&mut next)?,
            Action::Start => {
                next.server.up = true;
                let first = Task { first: true, ..Task::new(Who::Server, At::Pass) };
                next.tasks.push(first);
            }
            Action::Quit(number) => {
                let who = Who::Command(number);
                if next.tasks.iter().any(|task| task.who == who && !task.is_watcher()) {
                    return None;
                }
                next.crash(who, false);
            }
            Action::Ask(who, request) => ask(&mut next, who, request),
            Action::Crash(who) => {
                next.budget.crashes -= 1;
                next.crash(who, self.mutation == Some(Mutation::LockOutlivesHolder));
            }
            Action::Refuse(number) => {
                next.budget.refusals -= 1;
                next.processes[usize::from(number)].refused = true;
            }
            Action::LoseKeeper(number, survives) => {
                next.budget.keepers -= 1;
                next.processes[usize::from(number)].keeper = false;
                // The launcher reads its order from the keeper, and the terminal hangs up.
                if !survives {
                    next.end(number);
                }
            }
            Action::Register(number) => next.processes[usize::from(number)].registered = true,
            Action::Reuse(number) => {
                next.budget.reuses -= 1;
                next.foreign |= 1 << next.processes[usize::from(number)].pid;
            }
            Action::LoseWake => next.server.unseen = false,
        }
        next.tasks.sort_unstable();
        Some(next)
    }

    fn launcher(&self, world: &mut World, number: u8, choice: u8) -> Option<()> {
        let process = &mut world.processes[usize::from(number)];
        match (process.progress, process.held_by) {
            (Progress::Forked, Some(_)) => process.progress = Progress::Waiting,
            (Progress::Waiting, Some(_)) => return None,
            (Progress::Told, _) if choice == 0 => {
                (process.progress, process.executed) = (Progress::Agent, true);
            }
            (Progress::Forked | Progress::Waiting, None)
                if self.mutation == Some(Mutation::LauncherNeedsNoOrder) =>
            {
                (process.progress, process.executed) = (Progress::Agent, true);
            }
            // Its order has ended, or the program could not be executed.
            _ => world.end(number),
        }
        Some(())
    }

    /// The server reads what others wrote.
    /// A nudge, the file watch and the tick all lead here. It does not matter which of them comes,
    /// as long as one does.
    fn look(&self, world: &mut World) -> Option<()> {
        let ticks = self.mutation != Some(Mutation::NoSecondLook)
            && !world.server.wake
            && has_open_questions(world, self.mutation);
        if !world.server.watching || !(world.server.unseen || ticks) {
            return None;
        }
        (world.server.unseen, world.server.wake) = (false, true);
        Some(())
    }

    /// Whether the program does anything by itself in a state.
    pub fn goes_on(&self, world: &World) -> bool {
        let mut own = Vec::new();
        self.own(world, &mut own);
        own.into_iter().any(|action| self.apply(world, action).is_some())
    }
}

fn ask(world: &mut World, who: Who, request: Request) {
    let task = match who {
        Who::Server => {
            world.budget.requests -= 1;
            begun(who, request)
        }
        Who::Command(number) => {
            world.budget.commands -= 1;
            world.commands[usize::from(number)] = Stand::Working;
            if world.server.up {
                begun(who, request)
            } else {
                Task { request: Some(request), ..Task::new(who, At::Ends) }
            }
        }
    };
    world.tasks.push(task);
}

/// Nothing is under way, and every record agrees with the process table.
pub fn is_at_rest(world: &World) -> bool {
    let server = &world.server;
    let quiet = server.up
        && server.watching
        && !server.wake
        && world.lock.is_none()
        && world.tasks.iter().all(Task::is_waiting)
        && world.commands.iter().all(|stand| *stand != Stand::Working)
        && world.processes.iter().all(|process| !process.is_launcher());
    quiet && (0..ROWS as u8).zip(&world.rows).all(|(number, row)| is_settled(world, number, row))
}

fn is_settled(world: &World, number: u8, row: &Option<Row>) -> bool {
    let Some(row) = row else { return true };
    let lives = row.process.is_some_and(|identity| world.probe(identity) == Verdict::Same);
    if !row.is_live() {
        return !lives;
    }
    let started =
        matches!(row.stage(), Some(Stage::Registering { deadline: false } | Stage::Ready));
    let known = world.server.known[usize::from(number)];
    let process = &world.processes[usize::from(row.launch)];
    lives
        && started
        && row.keeper == process.keeper
        && (row.stage() == Some(Stage::Ready) || !process.refused)
        && !row.intentional_stop()
        && known == Some(*row)
        && world.watches(Who::Server, number, row.generation)
}

impl Model for Lifecycle {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.bounds.start, self.bounds.budget)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.wrong.is_none() {
            self.own(world, actions);
            self.foreign(world, actions);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        self.apply(world, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_AGENT, |_, world: &World| {
                let agents = world.agents().map(|agent| &world.processes[usize::from(agent)]);
                agents.filter(|process| !process.interactive).count() <= 1
            }),
            Property::always(NO_ORPHAN, |_, world: &World| {
                world.agents().all(|agent| {
                    let has_keeper = world.processes[usize::from(agent)].keeper;
                    let named = |row: &Row| {
                        row.process.is_some_and(|one| one.process == agent)
                            && (row.keeper || !has_keeper)
                    };
                    world.live().any(named) || (world.wrong_end && agent == 0)
                })
            }),
            Property::always(STOP_IS_STOP, |_, world: &World| {
                world.wrong != Some(Wrong::StopIsNoStop)
            }),
            Property::always(CRASH_ONCE, |_, world: &World| {
                world.wrong != Some(Wrong::CrashCountedTwice)
            }),
            Property::always(OWN_SIGNALS, |_, world: &World| {
                world.wrong != Some(Wrong::SignalledForeigner)
            }),
            Property::always(SEEN_READY, |_, world: &World| {
                world.live().all(|row| {
                    row.stage() != Some(Stage::Ready)
                        || world.processes[usize::from(row.launch)].registered
                })
            }),
            Property::always(RESTS, |model, world: &World| {
                world.wrong.is_some() || is_at_rest(world) || model.goes_on(world)
            }),
            Property::sometimes(REACHED[0], |_, world: &World| {
                world.live().any(|row| row.stage() == Some(Stage::Ready) && row.launch > 0)
            }),
            Property::sometimes(REACHED[1], |_, world: &World| has(world, Outcome::Stopped)),
            Property::sometimes(REACHED[2], |_, world: &World| has(world, Outcome::Crashed)),
            Property::sometimes(REACHED[3], |_, world: &World| has(world, Outcome::Failed)),
            Property::sometimes(REACHED[4], |_, world: &World| {
                world.rows.iter().flatten().any(|row| row.generation > 1 && row.is_live())
            }),
            Property::sometimes(REACHED[5], |_, world: &World| {
                let ready = |interactive| {
                    let mut rows = world.live().filter(|row| row.stage() == Some(Stage::Ready));
                    rows.any(|row| row.interactive == interactive)
                };
                ready(true) && ready(false)
            }),
            Property::sometimes(REACHED[6], |_, world: &World| {
                world.live().any(|row| row.generation > 1 && row.interactive)
            }),
            Property::sometimes(REACHED[7], |_, world: &World| {
                let lives = |row: &Row| world.agents().any(|agent| agent == row.launch);
                world.live().any(|row| row.interactive && !row.keeper && lives(row))
            }),
        ]
    }
}

fn has(world: &World, wanted: Outcome) -> bool {
    world
        .rows
        .iter()
        .flatten()
        .any(|row| matches!(row.life, Life::Ended { outcome, .. } if outcome == wanted))
}
