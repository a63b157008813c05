//! A pool of threads that read many paths, each with a deadline.
//!
//! A call into a dead network mount blocks its thread in the kernel and cannot be cancelled. So each
//! path has a deadline. After it the thread is given up, and its path is not read again before that
//! thread returns. The number of such threads is bounded (H116).

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Threads of one batch: waits for disks overlap, and a slow path delays no other.
const WORKERS: usize = 4;

/// Most threads that may hang. With that many, the remaining paths are not read.
const MAX_STUCK: usize = 16;

/// Results that may wait for the caller. A thread with one more result waits.
const MAX_WAITING: usize = 256;

/// Names whose thread has not returned.
type Stuck = Arc<Mutex<HashSet<OsString>>>;

type Job<T> = Arc<dyn Fn(&OsStr) -> T + Send + Sync>;

/// The pool. It remembers which paths hang.
#[derive(Debug)]
pub(crate) struct PathWorkers {
    limit: Duration,
    stuck: Stuck,
}

/// The names of one call, and the progress with them.
struct Batch<T> {
    names: Vec<OsString>,
    progress: Mutex<Progress>,
    job: Job<T>,
}

struct Progress {
    /// The first name that no thread has taken.
    next: usize,
    workers: Vec<Worker>,
}

/// The state of one thread.
#[derive(Debug, Clone, Copy)]
enum Worker {
    Idle,
    Working { at: usize, since: Instant },
    GivenUp { at: usize },
    Ended,
}

impl PathWorkers {
    /// `limit`: the longest time that one path may take.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, stuck: Stuck::default() }
    }

    /// Runs `job` for every name and passes each result to `answer`, in any order.
    ///
    /// The result is `None` for a name whose file system does not answer. Blocks until every name has
    /// a result.
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
        let workers = WORKERS.min(names.len());
        let progress = Mutex::new(Progress { next: 0, workers: Vec::new() });
        let batch = Arc::new(Batch { names, progress, job: Arc::new(job) });
        let (tx, rx) = sync_channel(MAX_WAITING);
        for _ in 0..workers {
            self.start_worker(&batch, &tx);
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
                        self.start_worker(batch, tx);
                    }
                    for at in batch.take_abandoned() {
                        if answer(at, None) == 0 {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Starts one more thread, unless too many hang or the system has no more.
    fn start_worker<T: Send + 'static>(&self, batch: &Arc<Batch<T>>, tx: &SyncSender<(usize, T)>) {
        if lock(&self.stuck).len() >= MAX_STUCK {
            return;
        }
        let worker = {
            let mut progress = lock(&batch.progress);
            progress.workers.push(Worker::Idle);
            progress.workers.len() - 1
        };
        let (theirs, tx, stuck) = (Arc::clone(batch), tx.clone(), Arc::clone(&self.stuck));
        let thread = thread::Builder::new().name("projects-read".to_owned());
        if let Err(error) = thread.spawn(move || theirs.work(worker, &tx, &stuck)) {
            tracing::warn!(error = %error, "cannot start a thread to read projects");
            lock(&batch.progress).set(worker, Worker::Ended);
        }
    }

    fn give_up_the_late<T>(&self, batch: &Batch<T>) -> Vec<usize> {
        let mut progress = lock(&batch.progress);
        let mut late = Vec::new();
        for worker in &mut progress.workers {
            if let Worker::Working { at, since } = *worker
                && since.elapsed() >= self.limit
            {
                *worker = Worker::GivenUp { at };
                late.push(at);
            }
        }
        // Under the same lock: a thread that returns now finds its name here and removes it.
        lock(&self.stuck).extend(late.iter().filter_map(|at| batch.names.get(*at).cloned()));
        late
    }
}

impl<T> Batch<T> {
    fn work(&self, worker: usize, tx: &SyncSender<(usize, T)>, stuck: &Stuck) {
        loop {
            let at = {
                let mut progress = lock(&self.progress);
                let at = progress.next;
                if at >= self.names.len() {
                    progress.set(worker, Worker::Ended);
                    return;
                }
                progress.next += 1;
                progress.set(worker, Worker::Working { at, since: Instant::now() });
                at
            };
            let Some(name) = self.names.get(at) else { return };
            let found = (self.job)(name);
            {
                let mut progress = lock(&self.progress);
                if let Some(Worker::GivenUp { at }) = progress.workers.get(worker).copied() {
                    if let Some(name) = self.names.get(at) {
                        lock(stuck).remove(name);
                    }
                    return;
                }
                progress.set(worker, Worker::Idle);
            }
            if tx.send((at, found)).is_err() {
                return;
            }
        }
    }

    /// The names that no thread is left to read. They count as taken from now on.
    fn take_abandoned(&self) -> Vec<usize> {
        let mut progress = lock(&self.progress);
        let is_working = progress.workers.iter().any(|worker| match worker {
            Worker::Idle | Worker::Working { .. } => true,
            Worker::GivenUp { .. } | Worker::Ended => false,
        });
        if is_working {
            return Vec::new();
        }
        let rest = (progress.next..self.names.len()).collect();
        progress.next = self.names.len();
        rest
    }
}

impl Progress {
    fn set(&mut self, worker: usize, now: Worker) {
        if let Some(worker) = self.workers.get_mut(worker) {
            *worker = now;
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

    /// Blocks reads of names that begin with `dead` until it is opened.
    #[derive(Default)]
    struct Gate {
        open: Mutex<bool>,
        changed: Condvar,
    }

    impl Gate {
        fn read(&self, name: &OsStr) -> usize {
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

    fn run(
        workers: &PathWorkers,
        gate: &Arc<Gate>,
        names: &[String],
    ) -> BTreeMap<String, Option<usize>> {
        let gate = Arc::clone(gate);
        let mut answers = BTreeMap::new();
        let names = names.iter().map(OsString::from).collect();
        workers.each(
            names,
            move |name| gate.read(name),
            |name, found| {
                let before = answers.insert(name.into_string().unwrap(), found);
                assert_eq!(before, None, "answered twice");
            },
        );
        answers
    }

    #[test]
    fn h85_h116_a_path_that_hangs_is_reported_and_delays_no_other() {
        let (workers, gate) = (PathWorkers::new(Duration::from_millis(40)), Arc::default());
        let mut names: Vec<_> = (0..500).map(|n| format!("live{n}")).collect();
        for (n, place) in [3, 4, 5, 6, 200, 499].into_iter().enumerate() {
            names.insert(place, format!("dead{n}"));
        }
        let answers = run(&workers, &gate, &names);
        assert_eq!(answers.len(), 506);
        for (name, found) in answers {
            assert_eq!(found.is_none(), name.starts_with("dead"), "{name}");
        }
        gate.open();
    }

    #[test]
    fn a_path_that_hangs_costs_one_thread_until_it_returns() {
        let (workers, gate) = (PathWorkers::new(Duration::from_millis(40)), Arc::<Gate>::default());
        let dead = ["dead".to_owned()];
        for _ in 0..3 {
            assert_eq!(run(&workers, &gate, &dead)["dead"], None);
        }
        assert_eq!(lock(&workers.stuck).len(), 1);
        gate.open();
        while !lock(&workers.stuck).is_empty() {
            thread::yield_now();
        }
        assert_eq!(run(&workers, &gate, &dead)["dead"], Some(4));
    }

    #[test]
    fn h85_h116_more_dead_paths_than_threads_are_all_reported() {
        let (workers, gate) = (PathWorkers::new(Duration::from_millis(20)), Arc::<Gate>::default());
        let names: Vec<_> = (0..200).map(|n| format!("dead{n}")).collect();
        let answers = run(&workers, &gate, &names);
        assert_eq!(answers.len(), 200);
        assert!(answers.values().all(Option::is_none));
        assert!(lock(&workers.stuck).len() <= MAX_STUCK + WORKERS);
        gate.open();
    }
}
