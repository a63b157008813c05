//! Looking at many directory entries, some of which may never answer.
//!
//! One thread goes through them. When an entry takes too long (a dead mount), the thread is left
//! behind and another one goes on with the next entry. Plain threads, because the runtime waits for
//! its own blocking tasks when it ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What came of one job.
#[derive(Debug, Clone)]
pub(crate) enum Outcome<R> {
    /// Its result.
    Done(R),
    /// None in time. The flag is set once the thread is back, and not before may it be tried again.
    Stuck(Arc<AtomicBool>),
}

struct Shared<J, R> {
    jobs: Vec<J>,
    next: usize,
    /// Which thread counts; others are left behind.
    epoch: u64,
    /// Job at work, and since when.
    current: Option<(usize, Instant)>,
    outcomes: Vec<(usize, Outcome<R>)>,
    is_over: bool,
}

struct Walk<J, R> {
    shared: Mutex<Shared<J, R>>,
    over: Notify,
}

impl<J, R> Walk<J, R> {
    fn lock(&self) -> MutexGuard<'_, Shared<J, R>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` for each job, each at most `limit` long, and gives the outcomes in order.
pub(crate) async fn walk<J, R>(
    jobs: Vec<J>,
    limit: Duration,
    work: impl Fn(&J) -> R + Send + Sync + 'static,
) -> Vec<(J, Outcome<R>)>
where
    J: Clone + Send + 'static,
    R: Clone + Send + 'static,
{
    let walk = Arc::new(Walk {
        shared: Mutex::new(Shared {
            is_over: jobs.is_empty(),
            jobs,
            next: 0,
            epoch: 0,
            current: None,
            outcomes: Vec::new(),
        }),
        over: Notify::new(),
    });
    let work = Arc::new(work);
    let mut back = start(&walk, &work, 0);
    loop {
        let over = walk.over.notified();
        if walk.lock().is_over {
            break;
        }
        if tokio::time::timeout(limit / 4, over).await.is_ok() {
            continue;
        }
        let left_behind = {
            let mut shared = walk.lock();
            match shared.current {
                Some((job, since)) if since.elapsed() >= limit => {
                    shared.epoch += 1;
                    shared.current = None;
                    shared.outcomes.push((job, Outcome::Stuck(Arc::clone(&back))));
                    Some(shared.epoch)
                }
                Some(_) | None => None,
            }
        };
        if let Some(epoch) = left_behind {
            back = start(&walk, &work, epoch);
        }
    }
    let mut shared = walk.lock();
    let outcomes = std::mem::take(&mut shared.outcomes);
    let find = |(at, outcome)| Some((shared.jobs.get::<usize>(at)?.clone(), outcome));
    outcomes.into_iter().filter_map(find).collect()
}

/// Starts a thread that goes on where the last one stopped. The flag is set when it returns.
fn start<J, R>(
    walk: &Arc<Walk<J, R>>,
    work: &Arc<impl Fn(&J) -> R + Send + Sync + 'static>,
    epoch: u64,
) -> Arc<AtomicBool>
where
    J: Clone + Send + 'static,
    R: Clone + Send + 'static,
{
    let back = Arc::new(AtomicBool::new(false));
    let (walking, worker, flag) = (Arc::clone(walk), Arc::clone(work), Arc::clone(&back));
    let started = std::thread::Builder::new().name("projects".to_owned()).spawn(move || {
        go(&walking, &*worker, epoch);
        flag.store(true, Ordering::Release);
    });
    if let Err(error) = started {
        tracing::error!(error = %error, "cannot look at the projects: no thread could be started");
        walk.lock().is_over = true;
        walk.over.notify_one();
    }
    back
}

fn go<J: Clone, R>(walk: &Walk<J, R>, work: &impl Fn(&J) -> R, epoch: u64) {
    loop {
        let (at, job) = {
            let mut shared = walk.lock();
            if shared.epoch != epoch {
                return;
            }
            let at = shared.next;
            let Some(job) = shared.jobs.get(at).cloned() else {
                shared.is_over = true;
                walk.over.notify_one();
                return;
            };
            shared.next += 1;
            shared.current = Some((at, Instant::now()));
            (at, job)
        };
        let result = work(&job);
        let mut shared = walk.lock();
        if shared.epoch != epoch {
            return;
        }
        shared.current = None;
        shared.outcomes.push((at, Outcome::Done(result)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// H116.
    #[tokio::test]
    async fn an_entry_that_never_answers_delays_the_others_and_nothing_more() {
        let (release, hold) = mpsc::channel::<()>();
        let hold = Mutex::new(hold);
        let jobs = (0..100).collect();
        let outcomes = walk(jobs, Duration::from_millis(40), move |job: &i32| {
            if *job == 3 {
                let _ = hold.lock().unwrap().recv();
            }
            job * 2
        })
        .await;
        assert_eq!(outcomes.len(), 100);
        let mut flag = None;
        for (job, outcome) in outcomes {
            match outcome {
                Outcome::Done(result) => assert_eq!(result, job * 2),
                Outcome::Stuck(back) => {
                    assert_eq!(job, 3);
                    flag = Some(back);
                }
            }
        }
        let flag = flag.unwrap();
        assert!(!flag.load(Ordering::Acquire));
        release.send(()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !flag.load(Ordering::Acquire) {
            assert!(Instant::now() < deadline, "the thread did not come back");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn nothing_to_look_at_is_over_at_once() {
        let outcomes = walk(Vec::new(), Duration::from_secs(60), |job: &i32| *job).await;
        assert!(outcomes.is_empty());
    }
}
