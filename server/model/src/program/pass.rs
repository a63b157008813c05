//! Comparing records with processes: `supervise/reconcile.rs`.

use super::{Change, Step, Then};
use crate::mutation::Mutation;
use crate::record::{Event, Row, Stage};
use crate::world::{At, ROWS, Who};
use svc_domain::identity::Verdict;

impl Step<'_> {
    pub(super) fn idle(&mut self) -> Then {
        if !self.world.server.wake {
            return Then::Blocked;
        }
        self.world.server.wake = false;
        self.goto(At::Pass)
    }

    pub(super) fn pass(&mut self, misreads: bool) -> Then {
        if misreads {
            // A first pass that fails ends the start of the server: nothing to model.
            if self.me.first || self.world.budget.misreadings == 0 {
                return Then::Blocked;
            }
            self.world.budget.misreadings -= 1;
            if !self.is(Mutation::FailedPassForgotten) {
                self.world.server.wake = true;
            }
            return self.goto(At::Idle);
        }
        let rows = [self.load(0), self.load(1)];
        self.me.list = rows.map(|row| row.filter(Row::is_live));
        self.goto(At::Next)
    }

    /// Takes up the next row of the list as it was when the pass began.
    pub(super) fn next_row(&mut self) -> Then {
        self.unlock();
        let Some(at) = self.me.list.iter().position(Option::is_some) else {
            return self.listed();
        };
        let Some(row) = self.me.list[at].take() else { return Then::Over };
        (self.me.row, self.me.generation) = (at as u8, row.generation);
        self.me.process = row.process;
        let is_command = self.me.request.is_some();
        if !is_command && self.world.is_stopping(self.me.who, self.me.row) {
            return Then::On;
        }
        let Some(identity) = row.process else { return self.goto(At::Unfinished) };
        match self.world.probe(identity) {
            Verdict::Gone(_) => self.goto(At::FoundGone),
            // A command leaves what lives to the next service.
            Verdict::Same | Verdict::Unknown if is_command => Then::On,
            Verdict::Same => self.alive(&row),
            Verdict::Unknown => Then::On,
        }
    }

    /// All rows were looked at.
    fn listed(&mut self) -> Then {
        if self.me.request.is_some() {
            return self.begin();
        }
        if self.me.first {
            self.me.list = self.world.server.known.map(|row| row.filter(|row| !row.is_live()));
            return self.goto(At::WrongEnds);
        }
        self.rest()
    }

    fn rest(&mut self) -> Then {
        self.me = crate::world::Task::new(Who::Server, At::Idle);
        Then::On
    }

    fn alive(&mut self, row: &Row) -> Then {
        let stop = row.intentional_stop();
        if self.world.watches(self.me.who, self.me.row, row.generation) && !stop {
            return Then::On;
        }
        if stop {
            if self.lock() {
                self.finish_stop(row);
            } else {
                self.watch(self.me.row, row.generation);
            }
            return Then::On;
        }
        let owned = self.world.server.owns & (1 << row.launch) != 0;
        match row.stage() {
            Some(Stage::Launching { .. }) if self.is(Mutation::InterruptedWithoutLook) => {
                self.goto(At::Interrupted)
            }
            Some(Stage::Launching { .. }) => self.goto(At::TakeLaunching),
            Some(Stage::Registering { .. }) if !owned => self.goto(At::TakeOver),
            Some(Stage::Registering { .. } | Stage::Ready) => {
                self.watch(self.me.row, row.generation);
                Then::On
            }
            None => Then::On,
        }
    }

    pub(super) fn take_launching(&mut self) -> Then {
        // With the lock in hand nobody is launching: whoever began has died.
        if !self.lock() {
            return self.goto(At::Next);
        }
        let Some(identity) = self.me.process else { return self.goto(At::Next) };
        let process = self.world.processes[usize::from(identity.process)];
        if process.is_launcher() || !process.is_alive() {
            // One that is gone by now wakes at once.
            if process.is_alive() {
                self.wake_after(identity.process);
            } else {
                self.world.server.wake = true;
            }
            return self.goto(At::Next);
        }
        self.goto(At::TakeOver)
    }

    pub(super) fn take_over(&mut self) -> Then {
        match self.change(Event::TakenOver) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {
                self.watch(self.me.row, self.me.generation);
                self.goto(At::Next)
            }
        }
    }

    pub(super) fn found_gone(&mut self) -> Then {
        let watched = self.world.watches(self.me.who, self.me.row, self.me.generation);
        if (!self.me.first && watched) || !self.lock() || self.live_generation().is_none() {
            return self.goto(At::Next);
        }
        self.goto(At::Ended)
    }

    pub(super) fn ended(&mut self) -> Then {
        // The stage was read with the lock in hand; only its own watcher could have moved it.
        let stage = self.world.rows[usize::from(self.me.row)].and_then(|row| row.stage());
        let event = match (stage, self.me.first) {
            (Some(Stage::Launching { .. }), _) => Event::LaunchInterrupted,
            (_, true) => Event::FoundGone,
            (_, false) => Event::Exited,
        };
        self.commit_then_next(event)
    }

    pub(super) fn unfinished(&mut self) -> Then {
        if self.is(Mutation::InterruptedWithoutLook) {
            return self.goto(At::Interrupted);
        }
        // Somebody holds the lock: it is being launched right now.
        if !self.lock() {
            return self.goto(At::Next);
        }
        let Some(row) = self.live_generation().filter(|row| row.process.is_none()) else {
            return self.goto(At::Next);
        };
        match self.find_launch(row.launch) {
            None => self.goto(At::Interrupted),
            Some(found) => {
                // No agent runs without an identity on record; a launcher ends without its order.
                self.wake_after(found.process);
                self.goto(At::Next)
            }
        }
    }

    pub(super) fn interrupted(&mut self) -> Then {
        self.commit_then_next(Event::LaunchInterrupted)
    }

    fn commit_then_next(&mut self, event: Event) -> Then {
        match self.change(event) {
            Change::Underway => Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {
                self.goto(At::Next)
            }
        }
    }

    /// After the first pass: finds ended rows whose process lives.
    pub(super) fn wrong_ends(&mut self) -> Then {
        self.unlock();
        let Some(at) = self.me.list.iter().position(Option::is_some) else {
            if self.is(Mutation::WatchBeginsLate) {
                self.world.server.unseen = false;
            }
            self.world.server.watching = true;
            return self.rest();
        };
        let Some(row) = self.me.list[at].take() else { return Then::Over };
        let lives = row.process.is_some_and(|process| self.world.probe(process) == Verdict::Same);
        if !lives {
            return Then::On;
        }
        (self.me.row, self.me.generation) = (at as u8, row.generation);
        self.goto(At::FoundAlive)
    }

    pub(super) fn found_alive(&mut self) -> Then {
        match self.change(Event::FoundAlive) {
            Change::Underway => return Then::On,
            Change::Now(_) | Change::Late | Change::Refused | Change::Occupied => {}
        }
        self.world.wrong_end = false;
        let current = self.live_generation();
        match current.filter(Row::intentional_stop) {
            Some(row) if !self.is(Mutation::WrongEndOnlyWatched) => {
                if self.lock() {
                    self.finish_stop(&row);
                } else {
                    self.watch(self.me.row, self.me.generation);
                }
            }
            Some(_) | None => self.watch(self.me.row, self.me.generation),
        }
        self.goto(At::WrongEnds)
    }
}

/// Whether a live row is left that only another look can bring further.
pub(crate) fn has_open_questions(world: &crate::World, mutation: Option<Mutation>) -> bool {
    let known = &world.server.known;
    (0..ROWS as u8).zip(known).filter_map(|(number, row)| Some((number, (*row)?))).any(
        |(number, row)| {
            let unwatched = !world.watches(Who::Server, number, row.generation);
            let open_stop = row.intentional_stop()
                && !world.is_stopping(Who::Server, number)
                && !matches!(
                    mutation,
                    Some(Mutation::OpenStopForgotten | Mutation::WrongEndOnlyWatched)
                );
            row.is_live() && (unwatched || open_stop)
        },
    )
}
