//! One task per live generation: `supervise/bridge_watch.rs`.

use super::{Change, Step, Then};
use crate::mutation::Mutation;
use crate::record::{Event, Row, Stage};
use crate::world::{At, Because, Process};
use svc_domain::identity::Verdict;

impl Step<'_> {
    /// What a watcher waits for, one alternative each.
    /// These are evidence, the exit, the deadline, and the end of its generation.
    pub(super) fn watch_loop(&mut self, choice: u8) -> Then {
        let Some(identity) = self.me.process else { return Then::Over };
        let is_gone = self.world.probe(identity) != Verdict::Same;
        let known = self.known(self.me.row).filter(|row| row.generation == self.me.generation);
        match choice {
            0 if !is_gone && self.has_evidence() && known.is_some_and(is_unready) => {
                self.goto(At::Ready)
            }
            1 if is_gone => self.goto(At::LastWords),
            2 if self.me.deadline => {
                self.me.deadline = false;
                self.goto(At::Grace)
            }
            3 if known.is_none() => Then::Over,
            4 if !is_gone && self.is_refused() && known.is_some_and(is_unready) => {
                self.goto(At::Refused)
            }
            5 if !is_gone && self.is_terminal_lost(known) => self.goto(At::Lost),
            _ => Then::Blocked,
        }
    }

    fn watched(&self) -> Option<&Process> {
        let identity = self.me.process?;
        Some(&self.world.processes[usize::from(identity.process)])
    }

    fn has_evidence(&self) -> bool {
        let is_said = |process: &Process| {
            process.registered || process.refused && self.is(Mutation::ReadyThoughRefused)
        };
        self.watched().is_some_and(is_said) || self.is(Mutation::ReadyWithoutEvidence)
    }

    fn is_refused(&self) -> bool {
        self.watched().is_some_and(|process| process.refused) && !self.is(Mutation::RefusalIgnored)
    }

    fn is_terminal_lost(&self, known: Option<Row>) -> bool {
        known.is_some_and(|row| row.keeper && row.is_live())
            && self.watched().is_some_and(|process| !process.keeper)
            && !self.is(Mutation::TerminalLossUnseen)
    }

    pub(super) fn lost(&mut self) -> Then {
        match self.change(Event::TerminalLost) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {
                self.goto(At::Watch)
            }
        }
    }

    pub(super) fn refused(&mut self) -> Then {
        if !self.lock() {
            return Then::Blocked;
        }
        let Some(row) = self.live_generation() else { return Then::Over };
        if row.stage() == Some(Stage::Ready) || row.process.is_none() {
            self.unlock();
            return self.goto(At::Watch);
        }
        self.me.process = row.process;
        self.me.marks = true;
        self.me.because = Because::Refused;
        self.goto(At::Interrupt)
    }

    pub(super) fn ready(&mut self) -> Then {
        match self.change(Event::Registered) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {
                self.goto(At::Watch)
            }
        }
    }

    /// A bridge may have been ready for an instant: `ready` comes before `crashed`.
    pub(super) fn last_words(&mut self) -> Then {
        let known = self.known(self.me.row).filter(|row| row.generation == self.me.generation);
        let ready = known.is_some_and(|row| is_unready(row) && !row.intentional_stop());
        self.goto(if ready && self.has_evidence() { At::LastReady } else { At::Exit })
    }

    pub(super) fn last_ready(&mut self) -> Then {
        match self.change(Event::Registered) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {
                self.goto(At::Exit)
            }
        }
    }

    pub(super) fn exit(&mut self) -> Then {
        // A stop of this process records how it ended it.
        if self.world.is_stopping(self.me.who, self.me.row) {
            return Then::Over;
        }
        if self.live_generation().is_none() && !self.is(Mutation::FactOfAnyGeneration) {
            return Then::Over;
        }
        self.goto(At::Exited)
    }

    pub(super) fn exited(&mut self) -> Then {
        match self.change(Event::Exited) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => Then::Over,
        }
    }

    pub(super) fn grace(&mut self) -> Then {
        if !self.lock() {
            return Then::Blocked;
        }
        let Some(row) = self.live_generation() else { return Then::Over };
        let expires = row.stage() == Some(Stage::Registering { deadline: true });
        if !expires || row.process.is_none() {
            self.unlock();
            return self.goto(At::Watch);
        }
        self.me.process = row.process;
        self.me.marks = true;
        self.me.because = Because::Grace;
        self.goto(if self.is(Mutation::ExpiredBeforeStopped) { At::Record } else { At::Interrupt })
    }
}

fn is_unready(row: Row) -> bool {
    matches!(row.stage(), Some(Stage::Launching { .. } | Stage::Registering { .. }))
}
