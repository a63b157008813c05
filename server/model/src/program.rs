//! One step of one task, as `server/app` takes it.
//!
//! The parts that every step uses are here. The steps themselves are in the modules below, by
//! use-case.

mod end;
mod launch;
mod pass;
mod watch;

pub(crate) use launch::begun;
pub(crate) use pass::has_open_questions;

use crate::mutation::Mutation;
use crate::record::{Answer, Event, Identity, Life, Outcome, Row, ask};
use crate::world::{At, Because, Read, Server, Task, Who, World, Wrong};

/// What became of a change of a row.
pub(crate) enum Change {
    /// Not there yet: somebody else may act before the next step of this task.
    Underway,
    /// The row after the change, or as it was when nothing had to change.
    Now(Row),
    /// The row is gone, or the fact is about an earlier generation.
    Late,
    /// A command is refused.
    Refused,
    /// The project has another live row.
    Occupied,
}

/// What becomes of a task after a step.
pub(crate) enum Then {
    /// It goes on.
    On,
    /// It waits: this step is not possible now.
    Blocked,
    /// It is over.
    Over,
}

/// A task in the middle of a step.
pub(crate) struct Step<'a> {
    pub world: &'a mut World,
    pub mutation: Option<Mutation>,
    pub me: Task,
}

/// How many alternatives the next step of a task has.
pub(crate) fn choices(task: &Task) -> u8 {
    match task.at {
        At::Watch => 6,
        At::Fork | At::AwaitEnd | At::Pass => 2,
        At::Spawn | At::Stop | At::Resume | At::Forget | At::Grace | At::Refused => 2,
        _ => 1,
    }
}

/// Takes one step of a task.
/// `None` when the task has to wait, or when this alternative does not exist.
pub(crate) fn step(
    world: &World,
    mutation: Option<Mutation>,
    task: usize,
    choice: u8,
) -> Option<World> {
    let mut next = world.clone();
    let me = next.tasks.remove(task);
    let mut step = Step { world: &mut next, mutation, me };
    match step.take(choice) {
        Then::Blocked => return None,
        Then::On => {
            let me = step.me;
            next.tasks.push(me);
        }
        Then::Over => step.over(),
    }
    next.tasks.sort_unstable();
    Some(next)
}

impl Step<'_> {
    fn take(&mut self, choice: u8) -> Then {
        let waits_for_lock = matches!(
            self.me.at,
            At::Spawn | At::Stop | At::Resume | At::Forget | At::Grace | At::Refused
        );
        if waits_for_lock && choice == 1 {
            // Somebody holds it for too long.
            return if self.world.lock.is_some() { Then::Over } else { Then::Blocked };
        }
        match self.me.at {
            At::Ends => self.ends(),
            At::Spawn => self.spawn(),
            At::Insert => self.insert(),
            At::Fork => self.fork(choice == 1),
            At::AwaitReady => self.await_ready(),
            At::Held => self.held(),
            At::Go => self.go(),
            At::AwaitExec => self.await_exec(),
            At::Executed => self.executed(),
            At::NotExecuted => self.not_executed(),
            At::LateInsert => self.late_insert(),
            At::Resume => self.resume(),
            At::NextGeneration => self.next_generation(),
            At::WrongEnd => self.wrong_end(),
            At::Stop => self.stop(),
            At::Intent => self.intent(),
            At::Find => self.find(),
            At::Interrupt => self.interrupt(),
            At::AwaitEnd => self.await_end(choice == 1),
            At::Kill => self.kill(),
            At::Record => self.record(),
            At::Forget => self.forget(),
            At::Look => self.look(),
            At::Delete => self.delete(),
            At::Idle => self.idle(),
            At::Pass => self.pass(choice == 1),
            At::Next => self.next_row(),
            At::TakeLaunching => self.take_launching(),
            At::TakeOver => self.take_over(),
            At::FoundGone => self.found_gone(),
            At::Ended => self.ended(),
            At::Unfinished => self.unfinished(),
            At::Interrupted => self.interrupted(),
            At::WrongEnds => self.wrong_ends(),
            At::FoundAlive => self.found_alive(),
            At::Watch => self.watch_loop(choice),
            At::Ready => self.ready(),
            At::LastWords => self.last_words(),
            At::LastReady => self.last_ready(),
            At::Exit => self.exit(),
            At::Exited => self.exited(),
            At::Grace => self.grace(),
            At::Refused => self.refused(),
            At::Lost => self.lost(),
        }
    }

    pub(crate) fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The server, if this task is one of its.
    pub(crate) fn server(&mut self) -> Option<&mut Server> {
        (self.me.who == Who::Server).then_some(&mut self.world.server)
    }

    /// Takes the project lock, if it can be had.
    pub(crate) fn lock(&mut self) -> bool {
        if self.is(Mutation::NoLock) {
            return true;
        }
        if self.world.lock.is_some() {
            return false;
        }
        self.world.lock = Some(self.me.who);
        self.me.holds = true;
        true
    }

    pub(crate) fn unlock(&mut self) {
        if self.me.holds {
            self.me.holds = false;
            self.world.lock = None;
        }
    }

    /// The task ends: what it holds is let go.
    fn over(&mut self) {
        self.unlock();
        if self.me.who == Who::Server && self.me.is_watcher() {
            // Whatever happened, the reconciler looks at the row once more.
            self.world.server.wake = true;
        }
    }

    /// Reads a row.
    pub(crate) fn load(&mut self, row: u8) -> Option<Row> {
        let read = self.world.rows[usize::from(row)];
        if let Some(server) = self.server() {
            server.known[usize::from(row)] = read;
        }
        read
    }

    /// The copy of a row that this process has. Commands always read the row again.
    pub(crate) fn known(&self, row: u8) -> Option<Row> {
        match self.me.who {
            Who::Server => self.world.server.known[usize::from(row)],
            Who::Command(_) => self.world.rows[usize::from(row)],
        }
    }

    /// The row of this task, if its generation is live still.
    pub(crate) fn live_generation(&mut self) -> Option<Row> {
        let row = self.load(self.me.row)?;
        (row.generation == self.me.generation && row.is_live()).then_some(row)
    }

    /// Load, decide, compare and swap: the two accesses are two steps.
    pub(crate) fn change(&mut self, event: Event) -> Change {
        let at = usize::from(self.me.row);
        let (before, fresh) = match self.me.read.take() {
            Some(read) => (read.row, read.fresh),
            None => {
                let Some(row) = self.load(self.me.row) else { return Change::Late };
                if matches!(self.answer(row, event), Answer::Becomes { .. })
                    && !self.is_late(&row, event)
                {
                    self.me.read = Some(Read { row, fresh: true });
                    return Change::Underway;
                }
                (row, true)
            }
        };
        if self.is_late(&before, event) {
            return Change::Late;
        }
        match self.answer(before, event) {
            Answer::Refused => Change::Refused,
            Answer::Unchanged => Change::Now(before),
            Answer::Becomes { next, crash } => {
                if !fresh && !self.is(Mutation::NoRevisionCheck) {
                    // Somebody was faster: the next step reads again.
                    return Change::Underway;
                }
                if self.world.rows[at].is_none() {
                    return Change::Late;
                }
                if next.is_live() && self.is_occupied(self.me.row, next.interactive) {
                    return Change::Occupied;
                }
                self.write(Some(next));
                self.note(&before, &next, event, crash);
                Change::Now(next)
            }
        }
    }

    /// A fact about a generation that has moved on changes nothing.
    fn is_late(&self, row: &Row, event: Event) -> bool {
        let is_command = matches!(event, Event::Stop | Event::Resume { .. });
        !is_command
            && row.generation != self.me.generation
            && !self.is(Mutation::FactOfAnyGeneration)
    }

    /// The real rule, unless it is mutated.
    fn answer(&self, row: Row, event: Event) -> Answer {
        let row_seen = match (row.life, event) {
            (Life::Live { stage, .. }, Event::Exited | Event::FoundGone)
                if self.is(Mutation::ExitForgetsIntent) =>
            {
                Row { life: Life::Live { stage, stop: false }, ..row }
            }
            _ => row,
        };
        match ask(row_seen, event) {
            Answer::Becomes { next, crash }
                if matches!(event, Event::Resume { .. }) && self.is(Mutation::KeepsIdentity) =>
            {
                Answer::Becomes { next: Row { process: row.process, ..next }, crash }
            }
            Answer::Becomes { next, crash }
                if matches!(event, Event::Held(_)) && self.is(Mutation::KeeperUnrecorded) =>
            {
                Answer::Becomes { next: Row { keeper: false, ..next }, crash }
            }
            answer => answer,
        }
    }

    /// Whether another Server Mode row is live: the registry's own index.
    pub(crate) fn is_occupied(&self, row: u8, interactive: bool) -> bool {
        let others = self.world.rows.iter().zip(0_u8..).filter(|(_, number)| *number != row);
        others.filter_map(|(other, _)| other.as_ref()).any(Row::occupies_project)
            && !interactive
            && !self.is(Mutation::NoAdmission)
    }

    /// Writes the row of this task; copies that others have become stale.
    /// The server is told what commands write, and knows what it writes itself.
    pub(crate) fn write(&mut self, next: Option<Row>) {
        let at = usize::from(self.me.row);
        self.world.rows[at] = next;
        let row = self.me.row;
        for task in self.world.tasks.iter_mut().filter(|task| task.row == row) {
            if let Some(read) = &mut task.read {
                read.fresh = false;
            }
        }
        match self.server() {
            Some(server) => server.known[at] = next,
            None => self.world.server.unseen |= self.world.server.up,
        }
    }

    /// Records what was intended and counted, and reports an end that contradicts it.
    fn note(&mut self, before: &Row, next: &Row, event: Event, crash: bool) {
        let at = usize::from(self.me.row);
        if event == Event::Stop {
            self.world.stopping[at] = next.generation;
        }
        if let (Life::Live { .. }, Life::Ended { outcome, .. }) = (before.life, next.life) {
            let was_stopped = self.world.stopping[at] == before.generation
                || before.process.is_some_and(|identity| {
                    self.world.processes[usize::from(identity.process)].stopped
                });
            if was_stopped && outcome != Outcome::Stopped {
                self.world.wrong = Some(Wrong::StopIsNoStop);
            }
        }
        if crash {
            if self.world.counted[at] == before.generation {
                self.world.wrong = Some(Wrong::CrashCountedTwice);
            }
            self.world.counted[at] = before.generation;
        }
    }

    /// Has a generation watched by exactly one task of this process.
    pub(crate) fn watch(&mut self, row: u8, generation: u8) {
        let who = self.me.who;
        if self.world.watches(who, row, generation) {
            return;
        }
        let held = self
            .world
            .tasks
            .iter()
            .any(|task| task.who == who && task.row == row && task.is_watcher() && task.holds);
        if held {
            self.world.lock = None;
        }
        self.world.tasks.retain(|task| !(task.who == who && task.row == row && task.is_watcher()));
        let known = self.known(row).filter(|row| row.generation == generation);
        match known.and_then(|row| row.process.map(|process| (row, process))) {
            Some((row_known, process)) => self.world.tasks.push(Task {
                row,
                generation,
                process: Some(process),
                deadline: matches!(
                    row_known.stage(),
                    Some(
                        crate::record::Stage::Launching { deadline: true }
                            | crate::record::Stage::Registering { deadline: true }
                    )
                ),
                ..Task::new(who, At::Watch)
            }),
            None => {
                if let Some(server) = self.server() {
                    server.wake = true;
                }
            }
        }
    }

    /// A task that finishes a recorded stop; it takes the lock over from this one.
    pub(crate) fn finish_stop(&mut self, row: &Row) {
        let holds = std::mem::take(&mut self.me.holds);
        self.world.tasks.push(Task {
            row: self.me.row,
            generation: row.generation,
            process: row.process,
            holds,
            marks: true,
            because: Because::Stop,
            launch: row.launch,
            ..Task::new(self.me.who, At::Find)
        });
    }

    /// Wakes the reconciler when a process has ended.
    pub(crate) fn wake_after(&mut self, process: u8) {
        if let Some(server) = self.server() {
            server.waits |= 1 << process;
        }
    }

    /// The live process that carries a launch id.
    pub(crate) fn find_launch(&self, launch: u8) -> Option<Identity> {
        let process = self.world.processes[usize::from(launch)];
        process.is_alive().then_some(Identity { process: launch, pid: process.pid })
    }

    pub(crate) fn goto(&mut self, at: At) -> Then {
        self.me.at = at;
        Then::On
    }
}
