//! One state of the model: the registry, the processes, and unfinished tasks.

use crate::record::{Identity, Life, Row, Stage, compare};
use svc_domain::identity::Verdict;

/// Rows the project may have.
pub const ROWS: usize = 2;
/// Launches in one run; each has one process.
pub const PROCESSES: usize = 3;
/// Command-line processes.
pub const COMMANDS: usize = 2;

/// A process that writes the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// The server: requests, the reconciler, watchers.
    Server,
    /// A command.
    Command(u8),
}

/// What somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// Launch a Server Mode bridge in the project.
    Spawn,
    /// Launch an Interactive Session in the project.
    Session,
    /// End the bridge of this row.
    Stop(u8),
    /// Start its next generation.
    Resume(u8),
    /// Remove it.
    Forget(u8),
}

/// How far a launched process came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Progress {
    /// Not started.
    Unborn,
    /// The launcher, before it said `ready`.
    Forked,
    /// The launcher, waiting for its order.
    Waiting,
    /// The launcher, told to go.
    Told,
    /// The agent.
    Agent,
    /// Ended.
    Gone,
}

/// One process that was launched. Its number is its launch id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Process {
    /// How far it came.
    pub progress: Progress,
    /// Its pid.
    pub pid: u8,
    /// Who holds the pipe over which a launcher is told to go.
    pub held_by: Option<Who>,
    /// The agent program was executed.
    pub executed: bool,
    /// Its log says that it is registered.
    pub registered: bool,
    /// Its log says that it never will be.
    pub refused: bool,
    /// Its terminal has a keeper that lives.
    pub keeper: bool,
    /// It is the agent of an Interactive Session.
    pub interactive: bool,
    /// It was asked to end.
    pub interrupted: bool,
    /// A deliberate stop has signalled it.
    pub stopped: bool,
}

impl Process {
    const UNBORN: Self = Self {
        progress: Progress::Unborn,
        pid: 0,
        held_by: None,
        executed: false,
        registered: false,
        refused: false,
        keeper: false,
        interactive: false,
        interrupted: false,
        stopped: false,
    };

    /// Whether the process exists.
    pub fn is_alive(&self) -> bool {
        !matches!(self.progress, Progress::Unborn | Progress::Gone)
    }

    /// Whether it exists and has not become the agent.
    pub fn is_launcher(&self) -> bool {
        matches!(self.progress, Progress::Forked | Progress::Waiting | Progress::Told)
    }
}

/// A row that was read for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Read {
    /// What it said.
    pub row: Row,
    /// Its revision is still the present one.
    pub fresh: bool,
}

/// Why a process is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Because {
    /// Somebody wants it.
    Stop,
    /// It was not ready in time.
    Grace,
    /// It said that it never will be.
    Refused,
}

/// What a task does next. The order of these steps is that of `server/app`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum At {
    /// A command without a server beside it records ends before anything else.
    Ends,
    /// Takes the lock and asks for admission.
    Spawn,
    /// Writes the row.
    Insert,
    /// Starts the launcher.
    Fork,
    /// Waits until it says `ready`.
    AwaitReady,
    /// Commits its identity.
    Held,
    /// Tells it to go.
    Go,
    /// Waits until the agent runs.
    AwaitExec,
    /// Commits that it runs.
    Executed,
    /// Commits that nothing runs.
    NotExecuted,
    /// Writes the row after its launch ([`crate::Mutation::RowAfterLaunch`]).
    LateInsert,
    /// Takes the lock.
    Stop,
    /// Commits the intent.
    Intent,
    /// Looks for the process.
    Find,
    /// Sends the orderly signal.
    Interrupt,
    /// Waits for the end.
    AwaitEnd,
    /// Kills.
    Kill,
    /// Commits the end.
    Record,
    /// Takes the lock and asks for admission.
    Resume,
    /// Commits the next generation.
    NextGeneration,
    /// Commits that the process of a record that says it ended lives.
    WrongEnd,
    /// Takes the lock.
    Forget,
    /// Reads the row and asks about its process.
    Look,
    /// Deletes the row.
    Delete,
    /// The reconciler waits for a wake-up.
    Idle,
    /// Reads the registry.
    Pass,
    /// Takes up the next row.
    Next,
    /// Takes over a launch whose launcher has died.
    TakeLaunching,
    /// Commits that a bridge was taken over.
    TakeOver,
    /// Finds the process gone.
    FoundGone,
    /// Commits what was found.
    Ended,
    /// Finds a row without a process.
    Unfinished,
    /// Commits that a launch was interrupted.
    Interrupted,
    /// Takes up the next ended row whose process may live.
    WrongEnds,
    /// Commits that its process lives.
    FoundAlive,
    /// Watches a generation.
    Watch,
    /// Commits that it is ready.
    Ready,
    /// The process is gone: last words.
    LastWords,
    /// Commits that it had been ready.
    LastReady,
    /// Looks at the row once more.
    Exit,
    /// Commits the exit.
    Exited,
    /// The grace of a start is over.
    Grace,
    /// The agent refused: what is left is to end it.
    Refused,
    /// Commits that the terminal is lost.
    Lost,
}

/// A task of one process of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// Whose.
    pub who: Who,
    /// Its next step.
    pub at: At,
    /// The row it is about.
    pub row: u8,
    /// The generation it is about.
    pub generation: u8,
    /// The launch it makes.
    pub launch: u8,
    /// It launches an Interactive Session.
    pub interactive: bool,
    /// The process it is about.
    pub process: Option<Identity>,
    /// It holds the project lock.
    pub holds: bool,
    /// It has marked the row as being ended.
    pub marks: bool,
    /// The start that it watches must be ready in time.
    pub deadline: bool,
    /// It is the first pass, or one that counts as it.
    pub first: bool,
    /// Why it ends a process.
    pub because: Because,
    /// What it will do after recording ends.
    pub request: Option<Request>,
    /// What it has read of the row, if it is in the middle of a change.
    pub read: Option<Read>,
    /// Copies of the rows that a pass has not looked at.
    pub list: [Option<Row>; ROWS],
}

impl Task {
    /// A task at its first step.
    pub fn new(who: Who, at: At) -> Self {
        Self {
            who,
            at,
            row: 0,
            generation: 0,
            launch: 0,
            interactive: false,
            process: None,
            holds: false,
            marks: false,
            deadline: false,
            first: false,
            because: Because::Stop,
            request: None,
            read: None,
            list: [None; ROWS],
        }
    }

    /// Whether it watches a generation: such tasks end with their process.
    pub fn is_watcher(&self) -> bool {
        matches!(
            self.at,
            At::Watch
                | At::Ready
                | At::LastWords
                | At::LastReady
                | At::Exit
                | At::Exited
                | At::Grace
                | At::Refused
                | At::Lost
        ) || matches!(self.because, Because::Grace | Because::Refused)
    }

    /// Whether it waits for something that need not happen.
    pub fn is_waiting(&self) -> bool {
        matches!(self.at, At::Idle | At::Watch)
    }
}

/// What only the server process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Server {
    /// It runs.
    pub up: bool,
    /// It looks at what others write.
    pub watching: bool,
    /// The reconciler is asked to look.
    pub wake: bool,
    /// A command has written since the server looked.
    pub unseen: bool,
    /// Its copies of the rows.
    pub known: [Option<Row>; ROWS],
    /// Launches of its own, one bit each.
    pub owns: u8,
    /// Processes whose end wakes the reconciler, one bit each.
    pub waits: u8,
}

/// How far a command-line process came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stand {
    /// Not started.
    Unused,
    /// Working, or waiting for its answer.
    Working,
    /// Ended.
    Over,
}

/// What may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Commands in processes of their own.
    pub commands: u8,
    /// Requests to the server.
    pub requests: u8,
    /// Deaths of processes of ours, between any two steps.
    pub crashes: u8,
    /// Ends of agents that nobody asked for.
    pub exits: u8,
    /// Ends of keepers that nobody asked for.
    pub keepers: u8,
    /// Sessions that are refused remote control.
    pub refusals: u8,
    /// Pids of ended processes that a foreign process gets.
    pub reuses: u8,
    /// Passes that cannot read the registry.
    pub misreadings: u8,
    /// Launches, at most [`PROCESSES`].
    pub launches: u8,
}

/// What must never happen, where it shows in a step and not in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// A process got a signal that was meant for another.
    SignalledForeigner,
    /// A deliberate stop was recorded as something else.
    StopIsNoStop,
    /// One crash was counted twice.
    CrashCountedTwice,
}

/// One state of everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// The registry.
    pub rows: [Option<Row>; ROWS],
    /// For each row the generation whose stop is recorded; 0 without one.
    pub stopping: [u8; ROWS],
    /// For each row the generation whose crash was counted; 0 without one.
    pub counted: [u8; ROWS],
    /// Rows that were ever written, one bit each.
    /// A forgotten row is not written again, just as an id is never used again.
    pub used: u8,
    /// How many launches there were: the next launch id.
    pub launched: u8,
    /// What was launched.
    pub processes: [Process; PROCESSES],
    /// Pids that foreign processes have, one bit each.
    pub foreign: u8,
    /// The record of the first process is still wrong ([`Start::WrongEnd`]).
    pub wrong_end: bool,
    /// Who holds the project lock.
    pub lock: Option<Who>,
    /// Tasks under way, sorted: their order means nothing.
    pub tasks: Vec<Task>,
    /// The server.
    pub server: Server,
    /// The commands.
    pub commands: [Stand; COMMANDS],
    /// What may still happen.
    pub budget: Budget,
    /// What has happened and must not.
    pub wrong: Option<Wrong>,
}

/// From where a search sets out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A server that runs, and no bridge.
    Served,
    /// No server yet, and no bridge.
    Unserved,
    /// A server that runs and watches a bridge that is ready.
    Running,
    /// No server, and a bridge that is ready.
    RunningUnserved,
    /// No server, and a record that says stopped over a process that lives.
    WrongEnd,
    /// A server that runs and watches an Interactive Session that is ready.
    Session,
    /// No server, and an Interactive Session that is ready.
    SessionUnserved,
}

impl World {
    /// The first state.
    pub fn new(start: Start, budget: Budget) -> Self {
        let mut world = Self {
            rows: [None; ROWS],
            stopping: [0; ROWS],
            counted: [0; ROWS],
            used: 0,
            launched: 0,
            processes: [Process::UNBORN; PROCESSES],
            foreign: 0,
            wrong_end: start == Start::WrongEnd,
            lock: None,
            tasks: Vec::new(),
            server: Server::down(),
            commands: [Stand::Unused; COMMANDS],
            budget,
            wrong: None,
        };
        let interactive = matches!(start, Start::Session | Start::SessionUnserved);
        let is_running = matches!(start, Start::Running | Start::RunningUnserved | Start::WrongEnd);
        if is_running || interactive {
            let identity = Identity { process: 0, pid: 0 };
            world.processes[0] = Process {
                progress: Progress::Agent,
                executed: true,
                registered: true,
                keeper: interactive,
                interactive,
                ..Process::UNBORN
            };
            let life = match start {
                Start::WrongEnd => {
                    Life::Ended { outcome: crate::record::Outcome::Stopped, intentional: true }
                }
                _ => Life::Live { stage: Stage::Ready, stop: false },
            };
            let first = Row::launching(0, false, interactive);
            let known = Row { process: Some(identity), anchored: true, ..first };
            world.rows[0] = Some(Row { life, keeper: interactive, ..known });
            (world.used, world.launched) = (1, 1);
            world.budget.launches -= 1;
        }
        if matches!(start, Start::Served | Start::Running | Start::Session) {
            world.server = Server { up: true, watching: true, known: world.rows, ..Server::down() };
            world.tasks.push(Task::new(Who::Server, At::Idle));
            if let Some(row) = world.rows[0] {
                let process = row.process;
                let watcher = Task::new(Who::Server, At::Watch);
                world.tasks.push(Task { generation: row.generation, process, ..watcher });
            }
            world.tasks.sort_unstable();
        }
        world
    }

    /// The process that has a pid, if it is one of ours.
    pub fn holder(&self, pid: u8) -> Option<u8> {
        let alive = |process: &Process| process.is_alive() && process.pid == pid;
        self.processes.iter().position(alive).map(|at| at as u8)
    }

    /// Whether a foreign process has a pid.
    pub fn is_foreign(&self, pid: u8) -> bool {
        self.foreign & (1 << pid) != 0
    }

    /// What the process table says about a recorded identity.
    pub fn probe(&self, identity: Identity) -> Verdict {
        // A foreigner has a start time that no process of ours has.
        let foreigner = self.is_foreign(identity.pid).then_some(u8::MAX);
        compare(identity, self.holder(identity.pid).or(foreigner))
    }

    /// The lowest pid that nobody has: reused as early as possible.
    pub fn free_pid(&self) -> u8 {
        (0..8).find(|pid| self.holder(*pid).is_none() && !self.is_foreign(*pid)).unwrap_or(8)
    }

    /// Ends a process; whoever waits for that is woken.
    pub fn end(&mut self, process: u8) {
        let ended = &mut self.processes[usize::from(process)];
        ended.progress = Progress::Gone;
        ended.held_by = None;
        ended.interrupted = false;
        // It exits after its agent.
        ended.keeper = false;
        if self.server.waits & (1 << process) != 0 {
            self.server.waits &= !(1 << process);
            self.server.wake = true;
        }
    }

    /// Whether the server watches a generation.
    pub fn watches(&self, who: Who, row: u8, generation: u8) -> bool {
        self.tasks.iter().any(|task| {
            task.who == who && task.is_watcher() && (task.row, task.generation) == (row, generation)
        })
    }

    /// Whether a task of this process is ending a row's process.
    pub fn is_stopping(&self, who: Who, row: u8) -> bool {
        self.tasks.iter().any(|task| task.who == who && task.marks && task.row == row)
    }

    /// The live rows.
    pub fn live(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten().filter(|row| row.is_live())
    }

    /// Processes that have become the agent and live.
    pub fn agents(&self) -> impl Iterator<Item = u8> {
        let all = (0_u8..).zip(&self.processes);
        all.filter(|(_, process)| process.progress == Progress::Agent).map(|(number, _)| number)
    }

    /// A process of ours dies with everything it was doing.
    pub fn crash(&mut self, who: Who, lock_outlives: bool) {
        self.tasks.retain(|task| task.who != who);
        if self.lock == Some(who) && !lock_outlives {
            self.lock = None;
        }
        for process in &mut self.processes {
            if process.held_by == Some(who) {
                process.held_by = None;
            }
        }
        match who {
            Who::Server => self.server = Server::down(),
            Who::Command(number) => self.commands[usize::from(number)] = Stand::Over,
        }
    }
}

impl Server {
    /// A server that does not run.
    fn down() -> Self {
        Self {
            up: false,
            watching: false,
            wake: false,
            unseen: false,
            known: [None; ROWS],
            owns: 0,
            waits: 0,
        }
    }
}
