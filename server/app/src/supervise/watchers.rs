//! The tasks that watch live bridges, one for each generation.

use crate::agent::Agent;
use crate::bridges::conversations::Conversations;
use crate::bridges::ends::EndRecorder;
use crate::bridges::keepers::Keepers;
use crate::bridges::launch::Launcher;
use crate::bridges::terminator::Terminator;
use crate::bridges::transition::Transitions;
use crate::locks::Locks;
use crate::logs::retention::Retention;
use crate::read_model::links::Links;
use crate::registry::Registry;
use crate::supervise::bridge_watch;
use crate::tasks::Tasks;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_shared::ids::InstanceId;
use svc_watch::Watcher;
use tokio::task::AbortHandle;

/// Watches live bridges, one task for each generation.
pub(crate) struct Watchers {
    pub config: Arc<Config>,
    pub agent: Arc<Agent>,
    pub watcher: Watcher,
    pub locks: Arc<Locks>,
    pub launcher: Arc<Launcher>,
    pub terminator: Arc<Terminator>,
    pub ends: Arc<EndRecorder>,
    pub keepers: Arc<Keepers>,
    pub conversations: Arc<Conversations>,
    pub retention: Arc<Retention>,
    pub links: Arc<Links>,
    pub tasks: Tasks,
    pub watched: Watched,
}

/// The tasks that watch, and what they could not see.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(super) tasks: Mutex<HashMap<InstanceId, Watching>>,
    /// How often in a row the process table could not be read for a row.
    unknown: Mutex<HashMap<InstanceId, u32>>,
}

#[derive(Debug)]
pub(super) struct Watching {
    generation: u32,
    pub(super) task: AbortHandle,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    pub(super) fn watches(&self, id: &InstanceId, generation: u32) -> bool {
        lock(&self.watched.tasks).get(id).is_some_and(|watching| {
            watching.generation == generation && !watching.task.is_finished()
        })
    }

    /// Counts a look at an unreadable process table; tells the number in a row.
    pub(super) fn saw_unknown(&self, id: &InstanceId) -> u32 {
        let mut unknown = lock(&self.watched.unknown);
        let count = unknown.entry(id.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    pub(super) fn saw_known(&self, id: &InstanceId) {
        lock(&self.watched.unknown).remove(id);
    }

    /// Drops what is remembered of bridges that are not live.
    pub(super) fn keep(&self, live: &[Bridge]) {
        lock(&self.watched.unknown).retain(|id, _| live.iter().any(|bridge| &bridge.id == id));
    }
}

/// The task that watches a generation, as long as it does.
/// Even its handle would keep the memory of the whole task.
pub(super) struct Mark<'a> {
    pub watchers: &'a Watchers,
    pub id: &'a InstanceId,
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        let own = tokio::task::try_id();
        let mut tasks = lock(&self.watchers.watched.tasks);
        // Another may have taken its place.
        if tasks.get(self.id).is_some_and(|watching| Some(watching.task.id()) == own) {
            tasks.remove(self.id);
        }
    }
}

impl Watchers {
    /// Makes sure that exactly one task of this process watches a live generation.
    pub fn watch(self: &Arc<Self>, id: &InstanceId, generation: u32) {
        let mut tasks = lock(&self.watched.tasks);
        if let Some(watching) = tasks.get(id) {
            if watching.generation == generation && !watching.task.is_finished() {
                return;
            }
            watching.task.abort();
        }
        let task = bridge_watch::run(Arc::clone(self), id.clone(), generation);
        let task = self.tasks.spawn(task);
        tasks.insert(id.clone(), Watching { generation, task: task.abort_handle() });
    }

    /// The same for a launch of a moment ago.
    pub fn launched(self: &Arc<Self>, bridge: &Bridge) {
        self.watch(&bridge.id, bridge.generation);
        self.retention.prune_soon();
    }

    /// The same with a fresh task, for a row that was ended and is live again.
    /// Its old task may wait for a change that will not come.
    pub fn watch_anew(self: &Arc<Self>, id: &InstanceId, generation: u32) {
        if let Some(watching) = lock(&self.watched.tasks).remove(id) {
            watching.task.abort();
        }
        self.watch(id, generation);
    }

    /// Whether there is a live row that only the reconciler can bring further.
    /// Nobody watches it, or its stop is recorded and nobody here carries it out. Who recorded that
    /// may have died with the lock in hand, and nothing is written any more that would tell of it.
    pub(super) fn has_open_questions(&self) -> bool {
        self.registry().copies.live().iter().any(|bridge| {
            let is_open_stop = bridge.intentional_stop()
                && bridge.doubt().is_none()
                && !self.terminator.under_way.contains(&bridge.id);
            is_open_stop || !self.watches(&bridge.id, bridge.generation)
        })
    }

    pub(super) fn transitions(&self) -> &Transitions {
        &self.launcher.transitions
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.launcher.transitions.registry
    }
}
