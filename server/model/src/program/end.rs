//! Ending and removing: `stop.rs` and `forget.rs`.

use super::{Change, Step, Then};
use crate::mutation::Mutation;
use crate::record::{Event, Row};
use crate::world::{At, Because, Progress, Read, Wrong};
use svc_domain::identity::Verdict;

impl Step<'_> {
    pub(super) fn stop(&mut self) -> Then {
        if !self.lock() {
            return Then::Blocked;
        }
        let Some(row) = self.load(self.me.row) else { return Then::Over };
        self.me.generation = row.generation;
        if self.is(Mutation::SignalBeforeIntent) && row.is_live() {
            self.me.process = row.process;
            self.me.launch = row.launch;
            return self.goto(At::Find);
        }
        self.goto(At::Intent)
    }

    pub(super) fn intent(&mut self) -> Then {
        match self.change(Event::Stop) {
            Change::Underway => Then::On,
            Change::Now(row) if row.is_live() => {
                self.me.generation = row.generation;
                self.me.marks = true;
                if self.is(Mutation::SignalBeforeIntent) {
                    return self.goto(At::AwaitEnd);
                }
                self.me.process = row.process;
                self.me.launch = row.launch;
                self.goto(At::Find)
            }
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => Then::Over,
        }
    }

    /// A row without a process may have a launcher that was never told to go.
    pub(super) fn find(&mut self) -> Then {
        if self.me.process.is_none() {
            self.me.process = self.find_launch(self.me.launch);
        }
        self.goto(if self.me.process.is_some() { At::Interrupt } else { At::Record })
    }

    pub(super) fn interrupt(&mut self) -> Then {
        if self.signal(false) {
            if self.is(Mutation::SignalBeforeIntent) {
                return self.goto(At::Intent);
            }
            return self.goto(At::AwaitEnd);
        }
        self.goto(At::Record)
    }

    pub(super) fn await_end(&mut self, grace_is_over: bool) -> Then {
        let is_alive =
            self.me.process.is_some_and(|identity| self.world.probe(identity) == Verdict::Same);
        match (is_alive, grace_is_over) {
            (false, false) => self.goto(At::Record),
            (true, true) => self.goto(At::Kill),
            _ => Then::Blocked,
        }
    }

    pub(super) fn kill(&mut self) -> Then {
        self.signal(true);
        self.goto(At::Record)
    }

    /// Signals the proved process of this task; returns whether it existed.
    fn signal(&mut self, kill: bool) -> bool {
        let Some(identity) = self.me.process else { return false };
        let proven = self.world.probe(identity) == Verdict::Same;
        let target = if self.is(Mutation::SignalWithoutProof) {
            let holder = self.world.holder(identity.pid);
            if self.world.is_foreign(identity.pid)
                || holder.is_some_and(|other| other != identity.process)
            {
                self.world.wrong = Some(Wrong::SignalledForeigner);
            }
            holder
        } else {
            proven.then_some(identity.process)
        };
        let Some(target) = target else { return false };
        let is_stop = self.me.because == Because::Stop;
        let process = &mut self.world.processes[usize::from(target)];
        process.stopped |= is_stop;
        // A launcher does nothing special at the orderly signal: it ends.
        if kill || process.progress != Progress::Agent {
            self.world.end(target);
        } else {
            process.interrupted = true;
        }
        true
    }

    pub(super) fn record(&mut self) -> Then {
        let event = match self.me.because {
            Because::Stop => Event::Exited,
            Because::Grace => Event::GraceExpired,
            Because::Refused => Event::Refused,
        };
        match self.change(event) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => Then::Over,
        }
    }

    pub(super) fn forget(&mut self) -> Then {
        if !self.lock() {
            return Then::Blocked;
        }
        self.goto(At::Look)
    }

    pub(super) fn look(&mut self) -> Then {
        let Some(row) = self.load(self.me.row) else { return Then::Over };
        let process = row.process.map(|identity| self.world.probe(identity));
        if !row.may_be_forgotten(process) && !self.is(Mutation::ForgetWithoutProbe) {
            return Then::Over;
        }
        self.me.read = Some(Read { row, fresh: true });
        self.goto(At::Delete)
    }

    pub(super) fn delete(&mut self) -> Then {
        let read: Option<Row> = self.me.read.take().filter(|read| read.fresh).map(|read| read.row);
        if read.is_none() {
            return self.goto(At::Look);
        }
        self.write(None);
        Then::Over
    }
}
