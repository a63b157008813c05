//! Launching: `spawn.rs`, `resume.rs` and the steps they share in `launch.rs`.

use super::{Change, Step, Then};
use crate::mutation::Mutation;
use crate::record::{Event, Identity, Row};
use crate::world::{At, Process, Progress, ROWS, Request, Task, Who};

impl Step<'_> {
    /// A command without a server beside it takes up the ends that nobody has recorded.
    pub(super) fn ends(&mut self) -> Then {
        self.me.first = true;
        self.me.list = self.world.rows.map(|row| row.filter(Row::is_live));
        self.goto(At::Next)
    }

    /// What was asked for, after that.
    pub(super) fn begin(&mut self) -> Then {
        let Some(request) = self.me.request.take() else { return Then::Over };
        self.me = begun(self.me.who, request);
        Then::On
    }

    pub(super) fn spawn(&mut self) -> Then {
        if !self.lock() {
            return Then::Blocked;
        }
        let rows = [self.load(0), self.load(1)];
        let is_live = rows.iter().flatten().any(Row::occupies_project);
        if is_live && !self.me.interactive && !self.is(Mutation::NoAdmission) {
            // The live one is the answer.
            return Then::Over;
        }
        // A session runs beside whatever is there.
        let in_the_way = rows.map(|row| row.filter(|row| !self.me.interactive && !row.interactive));
        if let Some((row, ended)) = self.wrongly_ended(&in_the_way) {
            (self.me.row, self.me.generation) = (row, ended.generation);
            return self.goto(At::WrongEnd);
        }
        let used = self.world.used;
        let Some(free) = (0..ROWS as u8).find(|row| used & (1 << row) == 0) else {
            return Then::Over;
        };
        self.me.row = free;
        self.me.generation = 1;
        if !self.own_launch() {
            return Then::Over;
        }
        // Taken here: two launches make two ids.
        self.world.used |= 1 << free;
        self.goto(if self.is(Mutation::RowAfterLaunch) { At::Fork } else { At::Insert })
    }

    /// The next launch id, remembered as one of this process.
    fn own_launch(&mut self) -> bool {
        if self.world.budget.launches == 0 {
            return false;
        }
        self.world.budget.launches -= 1;
        let launch = self.world.launched;
        self.world.launched += 1;
        self.me.launch = launch;
        if let Some(server) = self.server() {
            server.owns |= 1 << launch;
        }
        true
    }

    pub(super) fn insert(&mut self) -> Then {
        if self.is_occupied(self.me.row, self.me.interactive) {
            return Then::Over;
        }
        let has_deadline = self.me.who == Who::Server;
        let row = Row::launching(self.me.launch, has_deadline, self.me.interactive);
        self.write(Some(row));
        self.goto(At::Fork)
    }

    pub(super) fn fork(&mut self, fails: bool) -> Then {
        if fails {
            return self.goto(At::NotExecuted);
        }
        let pid = self.world.free_pid();
        let interactive = self.me.interactive;
        let process = &mut self.world.processes[usize::from(self.me.launch)];
        (process.interactive, process.keeper) = (interactive, interactive);
        process.progress = Progress::Forked;
        process.pid = pid;
        process.held_by = Some(self.me.who);
        self.me.process = Some(Identity { process: self.me.launch, pid });
        self.goto(At::AwaitReady)
    }

    pub(super) fn await_ready(&mut self) -> Then {
        match self.launched().progress {
            Progress::Waiting if self.is(Mutation::GoBeforeIdentity) => self.goto(At::Go),
            Progress::Waiting if self.is(Mutation::RowAfterLaunch) => self.goto(At::Go),
            Progress::Waiting => self.goto(At::Held),
            Progress::Gone => self.goto(At::NotExecuted),
            _ => Then::Blocked,
        }
    }

    pub(super) fn held(&mut self) -> Then {
        let Some(identity) = self.me.process else { return Then::Over };
        match self.change(Event::Held(identity)) {
            Change::Underway => Then::On,
            Change::Now(row) if self.is(Mutation::GoBeforeIdentity) => {
                let _ = row;
                self.goto(At::AwaitExec)
            }
            // An ended row answers, too: then nobody may be let go.
            Change::Now(row) if row.is_live() && row.process == Some(identity) => self.goto(At::Go),
            Change::Now(_) if self.is(Mutation::KeepsIdentity) => self.goto(At::Go),
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {
                self.launched_mut().held_by = None;
                Then::Over
            }
        }
    }

    pub(super) fn go(&mut self) -> Then {
        let process = self.launched_mut();
        if process.progress == Progress::Waiting {
            process.progress = Progress::Told;
        }
        process.held_by = None;
        self.goto(if self.is(Mutation::GoBeforeIdentity) { At::Held } else { At::AwaitExec })
    }

    pub(super) fn await_exec(&mut self) -> Then {
        let process = self.launched();
        match process.progress {
            _ if process.executed && self.is(Mutation::RowAfterLaunch) => self.goto(At::LateInsert),
            _ if process.executed => self.goto(At::Executed),
            Progress::Gone => self.goto(At::NotExecuted),
            _ => Then::Blocked,
        }
    }

    pub(super) fn executed(&mut self) -> Then {
        match self.change(Event::Executed) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {
                self.watch(self.me.row, self.me.generation);
                Then::Over
            }
        }
    }

    pub(super) fn not_executed(&mut self) -> Then {
        match self.change(Event::NotExecuted) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {
                self.launched_mut().held_by = None;
                Then::Over
            }
        }
    }

    pub(super) fn late_insert(&mut self) -> Then {
        let row = Row::launching(self.me.launch, self.me.who == Who::Server, self.me.interactive);
        self.write(Some(Row { process: self.me.process, ..row }));
        self.goto(At::Executed)
    }

    pub(super) fn resume(&mut self) -> Then {
        if !self.lock() {
            return Then::Blocked;
        }
        let rows = [self.load(0), self.load(1)];
        let Some(target) = rows[usize::from(self.me.row)] else { return Then::Over };
        self.me.interactive = target.interactive;
        let is_live = rows.iter().flatten().any(Row::occupies_project) && !target.interactive;
        if is_live && !self.is(Mutation::NoAdmission) || target.is_live() {
            return Then::Over;
        }
        // A session only asks for itself, and nobody else asks for a session.
        let own = usize::from(self.me.row);
        let in_the_way = [0, 1]
            .map(|at| rows[at].filter(|row| at == own || !target.interactive && !row.interactive));
        if let Some((row, ended)) = self.wrongly_ended(&in_the_way) {
            (self.me.row, self.me.generation) = (row, ended.generation);
            return self.goto(At::WrongEnd);
        }
        self.me.generation = target.generation + 1;
        if !self.own_launch() {
            return Then::Over;
        }
        self.goto(At::NextGeneration)
    }

    /// An ended row whose process is not gone by the rules.
    /// A resume checks its own row; a spawn finds it by the agent's pointer.
    fn wrongly_ended(&self, rows: &[Option<Row>; ROWS]) -> Option<(u8, Row)> {
        if self.is(Mutation::LaunchWithoutProbe) {
            return None;
        }
        let rows = (0..).zip(rows).filter_map(|(number, row)| Some((number, (*row)?)));
        rows.into_iter().find(|(_, row)| {
            let process = row.process.map(|identity| self.world.probe(identity));
            !row.is_live() && !row.may_be_resumed(process)
        })
    }

    pub(super) fn wrong_end(&mut self) -> Then {
        match self.change(Event::FoundAlive) {
            Change::Underway => return Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {}
        }
        self.world.wrong_end = false;
        if let Some(row) = self.live_generation().filter(Row::intentional_stop) {
            self.finish_stop(&row);
        }
        if let Some(server) = self.server() {
            server.wake = true;
        }
        Then::Over
    }

    pub(super) fn next_generation(&mut self) -> Then {
        let event = Event::Resume { launch: self.me.launch, deadline: self.me.who == Who::Server };
        match self.change(event) {
            Change::Underway => Then::On,
            Change::Now(row) => {
                self.me.generation = row.generation;
                self.goto(At::Fork)
            }
            Change::Late | Change::Refused | Change::Occupied => Then::Over,
        }
    }

    fn launched(&self) -> Process {
        self.world.processes[usize::from(self.me.launch)]
    }

    fn launched_mut(&mut self) -> &mut Process {
        &mut self.world.processes[usize::from(self.me.launch)]
    }
}

/// The first step of what somebody asks for.
pub(crate) fn begun(who: Who, request: Request) -> Task {
    match request {
        Request::Spawn => Task::new(who, At::Spawn),
        Request::Session => Task { interactive: true, ..Task::new(who, At::Spawn) },
        Request::Stop(row) => Task { row, ..Task::new(who, At::Stop) },
        Request::Resume(row) => Task { row, ..Task::new(who, At::Resume) },
        Request::Forget(row) => Task { row, ..Task::new(who, At::Forget) },
    }
}
