//! Watching over what runs: who looks when, and why. What is done is decided elsewhere.
//!
//! One reconciler compares records with processes. Exits, changes of the registry by other
//! processes and a slow safety tick only wake it. Each live bridge has one watcher task for its
//! log, its deadline and its exit.

mod bridge_watch;
mod change_watch;
mod job_watch;
mod reconcile;
mod relaunch;
mod sampler;
mod unmanaged;

pub(crate) use change_watch::{SAFETY_TICK, hand_over_settled, nudge};

use crate::{App, AppError};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use svc_domain::bridge::Bridge;
use svc_shared::ids::InstanceId;
use tokio::task::AbortHandle;

/// Tasks that watch one live generation each.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    tasks: Mutex<HashMap<InstanceId, Watching>>,
    /// How often in a row the process table could not be read for a row.
    unknown: Mutex<HashMap<InstanceId, u32>>,
}

#[derive(Debug)]
struct Watching {
    generation: u32,
    task: AbortHandle,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    fn watches(&self, id: &InstanceId, generation: u32) -> bool {
        lock(&self.tasks).get(id).is_some_and(|watching| {
            watching.generation == generation && !watching.task.is_finished()
        })
    }

    /// Counts a look at an unreadable process table; tells the number in a row.
    fn saw_unknown(&self, id: &InstanceId) -> u32 {
        let mut unknown = lock(&self.unknown);
        let count = unknown.entry(id.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    fn saw_known(&self, id: &InstanceId) {
        lock(&self.unknown).remove(id);
    }

    /// Drops what is remembered of bridges that are not live.
    fn keep(&self, live: &[Bridge]) {
        lock(&self.unknown).retain(|id, _| live.iter().any(|bridge| &bridge.id == id));
    }
}

/// The task that watches a generation, as long as it does. Even its handle would keep the memory
/// of the whole task.
struct Mark<'a> {
    app: &'a App,
    id: &'a InstanceId,
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        let own = tokio::task::try_id();
        let mut tasks = lock(&self.app.watchers().tasks);
        // Another may have taken its place.
        if tasks.get(self.id).is_some_and(|watching| Some(watching.task.id()) == own) {
            tasks.remove(self.id);
        }
    }
}

impl App {
    /// Makes sure that a live generation is watched by exactly one task of this process.
    pub(crate) fn watch_bridge(&self, id: &InstanceId, generation: u32) {
        let mut tasks = lock(&self.watchers().tasks);
        if let Some(watching) = tasks.get(id) {
            if watching.generation == generation && !watching.task.is_finished() {
                return;
            }
            watching.task.abort();
        }
        let task = self.tasks().spawn(bridge_watch::run(self.clone(), id.clone(), generation));
        tasks.insert(id.clone(), Watching { generation, task: task.abort_handle() });
    }

    /// The same with a fresh look at everything, for a record that was ended and is live again: its
    /// old task may wait for a change that will not come.
    pub(crate) fn watch_anew(&self, id: &InstanceId, generation: u32) {
        if let Some(watching) = lock(&self.watchers().tasks).remove(id) {
            watching.task.abort();
        }
        self.watch_bridge(id, generation);
    }

    /// Whether there is a live row that only a look can bring further: it is watched by nobody, or
    /// its stop is recorded and nobody here carries it out. Who recorded that may have died with
    /// the lock in hand, and nothing is written any more that would tell of it.
    pub(crate) fn has_open_questions(&self) -> bool {
        self.copies().live().iter().any(|bridge| {
            let is_open_stop = bridge.intentional_stop()
                && bridge.quarantine.is_none()
                && !self.terminator().under_way.contains(&bridge.id);
            is_open_stop || !self.watchers().watches(&bridge.id, bridge.generation)
        })
    }

    /// Records the ends of processes that ended while nobody watched: for commands that change
    /// something while no service runs. Otherwise they would take a dead bridge for a live one.
    ///
    /// # Errors
    /// The registry cannot be read or written.
    pub async fn record_ends(&self) -> Result<(), AppError> {
        reconcile::record_ends(self).await
    }

    /// Starts the supervisor: first a complete pass over all records, then the standing tasks.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn supervise(&self) -> Result<Supervisor, AppError> {
        let listener = change_watch::listen(self).await?;
        // What a command writes while the first pass runs must not be taken for old.
        let writes = change_watch::writes(self).await;
        reconcile::first_pass(self).await?;
        if let Some(publisher) = &self.registry().publisher {
            publisher.publish_projects().await;
        }
        self.jobs().publish().await;
        let supervisor = Supervisor;
        self.tasks().spawn(reconcile::run(self.clone()));
        self.tasks().spawn(change_watch::run(self.clone(), listener, writes));
        self.tasks().spawn(change_watch::surroundings(self.clone()));
        self.tasks().spawn(change_watch::sessions(self.clone()));
        self.tasks().spawn(job_watch::run(self.clone()));
        self.tasks().spawn(sampler::run(self.clone()));
        self.tasks().spawn(change_watch::housekeeping(self.clone()));
        Ok(supervisor)
    }
}

/// Proof that the supervisor runs.
#[derive(Debug, Clone, Copy)]
pub struct Supervisor;

#[cfg(test)]
mod tests;
