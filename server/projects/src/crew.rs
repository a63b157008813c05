//! Looking at many paths with few threads, none of which may be missed for long.
//!
//! A call into a dead network mount blocks its thread in the kernel, beyond any cancelling. So each
//! look has a deadline; whoever overruns it is given up with its thread, of which there is a bounded
//! number, and its path is not touched again before that thread returns (H116).

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Looks under way at a time: waiting for disks overlaps, and a few slow paths stop nobody.
const HANDS: usize = 4;

/// Threads that may hang for good; with more paths dead, the rest is not looked at either.
const MAX_STUCK: usize = 16;

/// Answers that may wait for their reader; a thread that is faster waits.
const WAITING: usize = 256;

/// Paths whose look has not come back.
type Stuck = Arc<Mutex<HashSet<OsString>>>;

type Job<T> = Arc<dyn Fn(&OsStr) -> T + Send + Sync>;

/// Remembers which paths hang.
#[derive(Debug)]
pub(crate) struct Crew {
    limit: Duration,
    stuck: Stuck,
}

/// One batch.
struct Batch<T> {
    names: Vec<OsString>,
    board: Mutex<Board>,
    job: Job<T>,
}

struct Board {
    next: usize,
    seats: Vec<Seat>,
}

/// One thread.
#[derive(Debug, Clone, Copy)]
enum Seat {
    Free,
    Looking { at: usize, since: Instant },
    GivenUp { at: usize },
    Left,
}

impl Crew {
    /// `limit`: the longest a look may take.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, stuck: Stuck::default() }
    }

    /// Runs `job` for every name and hands over what it found, in any order; `None` for a name
    /// that does not answer. Blocks until each has its answer.
    pub(crate) fn each<T: Send + 'static>(
        &self,
        names: Vec<OsString>,
        job: impl Fn(&OsStr) -> T + Send + Sync + 'static,
        mut answer: impl FnMut(OsString, Option<T>),
    ) {
        let (names, hanging): (Vec<_>, Vec<_>) = {
            let stuck = lock(&self.stuck);
            names.into_iter().partition(|name| !stuck.contains(name))
        };
        hanging.into_iter().for_each(|name| answer(name, None));
        let hands = HANDS.min(names.len());
        let board = Mutex::new(Board { next: 0, seats: Vec::new() });
        let batch = Arc::new(Batch { names, board, job: Arc::new(job) });
        let (tx, rx) = sync_channel(WAITING);
        for _ in 0..hands {
            self.hire(&batch, &tx);
        }
        self.collect(&batch, &tx, &rx, &mut answer);
    }

    fn collect<T: Send + 'static>(
        &self,
        batch: &Arc<Batch<T>>,
        tx: &SyncSender<(usize, T)>,
        rx: &Receiver<(usize, T)>,
        answer: &mut impl FnMut(OsString, Option<T>),
    ) {
        let mut open = batch.names.len();
        let mut answer = |at: usize, found| {
            open = open.saturating_sub(1);
            if let Some(name) = batch.names.get(at) {
                answer(name.clone(), found);
            }
            open
        };
        if batch.names.is_empty() {
            return;
        }
        loop {
            match rx.recv_timeout(self.limit / 8) {
                Ok((at, found)) => {
                    if answer(at, Some(found)) == 0 {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    for at in self.give_up_the_late(batch) {
                        if answer(at, None) == 0 {
                            return;
                        }
                        self.hire(batch, tx);
                    }
                    for at in batch.abandoned_rest() {
                        if answer(at, None) == 0 {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// One more thread, unless too many hang or the system has none.
    fn hire<T: Send + 'static>(&self, batch: &Arc<Batch<T>>, tx: &SyncSender<(usize, T)>) {
        if lock(&self.stuck).len() >= MAX_STUCK {
            return;
        }
        let seat = {
            let mut board = lock(&batch.board);
            board.seats.push(Seat::Free);
            board.seats.len() - 1
        };
        let (theirs, tx, stuck) = (Arc::clone(batch), tx.clone(), Arc::clone(&self.stuck));
        let thread = thread::Builder::new().name("projects-look".to_owned());
        if let Err(error) = thread.spawn(move || theirs.work(seat, &tx, &stuck)) {
            tracing::warn!(error = %error, "cannot start a thread to look at projects");
            lock(&batch.board).set(seat, Seat::Left);
        }
    }

    fn give_up_the_late<T>(&self, batch: &Batch<T>) -> Vec<usize> {
        let mut board = lock(&batch.board);
        let mut late = Vec::new();
        for seat in &mut board.seats {
            if let Seat::Looking { at, since } = *seat
                && since.elapsed() >= self.limit
            {
                *seat = Seat::GivenUp { at };
                late.push(at);
            }
        }
        // Under the board's lock: its thread, back at last, finds the name here or has not left.
        lock(&self.stuck).extend(late.iter().filter_map(|at| batch.names.get(*at).cloned()));
        late
    }
}

impl<T> Batch<T> {
    fn work(&self, seat: usize, tx: &SyncSender<(usize, T)>, stuck: &Stuck) {
        loop {
            let at = {
                let mut board = lock(&self.board);
                let at = board.next;
                if at >= self.names.len() {
                    board.set(seat, Seat::Left);
                    return;
                }
                board.next += 1;
                board.set(seat, Seat::Looking { at, since: Instant::now() });
                at
            };
            let Some(name) = self.names.get(at) else { return };
            let found = (self.job)(name);
            {
                let mut board = lock(&self.board);
                if let Some(Seat::GivenUp { at }) = board.seats.get(seat).copied() {
                    if let Some(name) = self.names.get(at) {
                        lock(stuck).remove(name);
                    }
                    return;
                }
                board.set(seat, Seat::Free);
            }
            if tx.send((at, found)).is_err() {
                return;
            }
        }
    }

    /// What nobody is left to look at. Takes it off the board.
    fn abandoned_rest(&self) -> Vec<usize> {
        let mut board = lock(&self.board);
        let working = board.seats.iter().any(|seat| match seat {
            Seat::Free | Seat::Looking { .. } => true,
            Seat::GivenUp { .. } | Seat::Left => false,
        });
        if working {
            return Vec::new();
        }
        let rest = (board.next..self.names.len()).collect();
        board.next = self.names.len();
        rest
    }
}

impl Board {
    fn set(&mut self, seat: usize, now: Seat) {
        if let Some(seat) = self.seats.get_mut(seat) {
            *seat = now;
        }
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Condvar;

    /// Blocks whoever looks at a name beginning with `dead` until it is opened.
    #[derive(Default)]
    struct Gate {
        open: Mutex<bool>,
        changed: Condvar,
    }

    impl Gate {
        fn look(&self, name: &OsStr) -> usize {
            if name.to_string_lossy().starts_with("dead") {
                let mut open = lock(&self.open);
                while !*open {
                    open = self.changed.wait(open).unwrap();
                }
            }
            name.len()
        }

        fn open(&self) {
            *lock(&self.open) = true;
            self.changed.notify_all();
        }
    }

    fn run(crew: &Crew, gate: &Arc<Gate>, names: &[String]) -> BTreeMap<String, Option<usize>> {
        let gate = Arc::clone(gate);
        let mut answers = BTreeMap::new();
        let names = names.iter().map(OsString::from).collect();
        crew.each(
            names,
            move |name| gate.look(name),
            |name, found| {
                let before = answers.insert(name.into_string().unwrap(), found);
                assert_eq!(before, None, "answered twice");
            },
        );
        answers
    }

    #[test]
    fn h85_h116_a_path_that_hangs_is_reported_and_holds_up_no_other() {
        let (crew, gate) = (Crew::new(Duration::from_millis(40)), Arc::default());
        let mut names: Vec<_> = (0..500).map(|n| format!("live{n}")).collect();
        for (n, place) in [3, 4, 5, 6, 200, 499].into_iter().enumerate() {
            names.insert(place, format!("dead{n}"));
        }
        let answers = run(&crew, &gate, &names);
        assert_eq!(answers.len(), 506);
        for (name, found) in answers {
            assert_eq!(found.is_none(), name.starts_with("dead"), "{name}");
        }
        gate.open();
    }

    #[test]
    fn a_path_that_hangs_costs_one_thread_until_it_returns() {
        let (crew, gate) = (Crew::new(Duration::from_millis(40)), Arc::<Gate>::default());
        let dead = ["dead".to_owned()];
        for _ in 0..3 {
            assert_eq!(run(&crew, &gate, &dead)["dead"], None);
        }
        assert_eq!(lock(&crew.stuck).len(), 1);
        gate.open();
        while !lock(&crew.stuck).is_empty() {
            thread::yield_now();
        }
        assert_eq!(run(&crew, &gate, &dead)["dead"], Some(4));
    }

    #[test]
    fn h85_h116_more_dead_paths_than_threads_still_come_to_an_end() {
        let (crew, gate) = (Crew::new(Duration::from_millis(20)), Arc::<Gate>::default());
        let names: Vec<_> = (0..200).map(|n| format!("dead{n}")).collect();
        let answers = run(&crew, &gate, &names);
        assert_eq!(answers.len(), 200);
        assert!(answers.values().all(Option::is_none));
        assert!(lock(&crew.stuck).len() <= MAX_STUCK + HANDS);
        gate.open();
    }
}
