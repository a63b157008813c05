//! Background jobs as they change.
//! Files, roster, processes, and the agent's own list as the slow truth behind them.

use crate::jobs::{Job, Jobs};
use crate::sessions::Sessions;
use crate::supervise::poll::AgentPoll;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::identity::ProcessIdentity;
use svc_shared::ids::JobId;
use svc_watch::Pace;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

/// Where the kernel reports no changes, this often.
const PACE: Pace = Pace::DIRECTORY;

/// A job rewrites its file with every step; one look per breath is enough.
const BREATH: Duration = Duration::from_millis(100);

/// Job files that are watched; more jobs are seen by the poll.
const WATCHED: usize = 512;

/// What is listened to for single jobs. Everything ends with this value.
struct Ears {
    jobs: Arc<Jobs>,
    wake: Arc<Notify>,
    tasks: JoinSet<()>,
    files: HashMap<JobId, AbortHandle>,
    exits: HashMap<JobId, (ProcessIdentity, AbortHandle)>,
}

impl Ears {
    /// Listens to exactly these jobs.
    fn follow(&mut self, jobs: &[Job]) {
        while self.tasks.try_join_next().is_some() {}
        let mut newest: Vec<&Job> = jobs.iter().collect();
        newest.sort_by(|a, b| {
            let open = b.is_open().cmp(&a.is_open());
            open.then_with(|| b.record.updated_at.cmp(&a.record.updated_at))
        });
        newest.truncate(WATCHED);
        let wanted = |id: &JobId| newest.iter().any(|job| &job.record.id == id);
        self.files.retain(|id, task| {
            let keep = wanted(id);
            if !keep {
                task.abort();
            }
            keep
        });
        let processes: HashMap<&JobId, &ProcessIdentity> =
            jobs.iter().filter_map(|job| Some((&job.record.id, job.process.as_ref()?))).collect();
        self.exits.retain(|id, (identity, task)| {
            let keep = processes.get(id).is_some_and(|now| *now == identity);
            if !keep {
                task.abort();
            }
            keep
        });
        for job in &newest {
            if !self.files.contains_key(&job.record.id) {
                self.listen_to_file(&job.record.id);
            }
        }
        for (id, identity) in processes {
            if !self.exits.contains_key(id) {
                self.listen_to_exit(id, identity);
            }
        }
    }

    fn listen_to_file(&mut self, id: &JobId) {
        let Ok(home) = self.jobs.scan.agent.home() else { return };
        let file = svc_agent::jobs::state_file(&home.jobs_dir(), id);
        let mut subscription = self.jobs.watcher.file(&file, PACE);
        let wake = Arc::clone(&self.wake);
        let task = self.tasks.spawn(async move {
            loop {
                subscription.changed().await;
                wake.notify_one();
            }
        });
        self.files.insert(id.clone(), task);
    }

    fn listen_to_exit(&mut self, id: &JobId, identity: &ProcessIdentity) {
        let exited = self.jobs.scan.host.exited(identity);
        let wake = Arc::clone(&self.wake);
        let task = self.tasks.spawn(async move {
            exited.await;
            wake.notify_one();
        });
        self.exits.insert(id.clone(), (identity.clone(), task));
    }
}

/// Publishes the jobs after every sign of a change.
pub(super) async fn run(of: Arc<Jobs>, working: Arc<Sessions>) {
    let state_dir = of.scan.config.state_dir.clone();
    let swept = tokio::task::spawn_blocking(move || crate::jobs::sweep(&state_dir)).await;
    if let Err(error) = swept {
        tracing::debug!(error = %error, "old files of runs were not removed");
    }
    let Ok(home) = of.scan.agent.home() else { return };
    let mut jobs_dir = of.watcher.dir(&home.jobs_dir(), PACE);
    let mut roster = of.watcher.file(&home.roster_file(), PACE);
    let mut sessions = of.watcher.dir(&home.sessions_dir(), PACE);
    let mut projects = of.scan.catalog.changes();
    let mut listed = of.scan.agent.cli().sessions_changes();
    let mut poll = AgentPoll::new(&of.scan.config);
    let mut ears = Ears {
        jobs: Arc::clone(&of),
        wake: Arc::default(),
        tasks: JoinSet::new(),
        files: HashMap::new(),
        exits: HashMap::new(),
    };
    let wake = Arc::clone(&ears.wake);
    let mut asking = JoinSet::new();
    loop {
        let jobs = of.publish().await;
        ears.follow(&jobs);
        let next_loss = jobs.iter().filter_map(Job::lost_in).min();
        tokio::time::sleep(BREATH).await;
        let is_poll = tokio::select! {
            () = of.tasks.shutdown().cancelled() => return,
            _ = jobs_dir.changed() => false,
            _ = roster.changed() => false,
            _ = sessions.changed() => false,
            () = super::change_watch::counted(projects.as_mut()) => false,
            Ok(()) = listed.changed() => false,
            () = wake.notified() => false,
            () = after(next_loss) => false,
            () = working.scan.memory.puzzled() => true,
            () = poll.tick() => true,
        };
        let is_anything_live = || {
            jobs.iter().any(|job| job.is_open() || job.record.worker_alive)
                || working.scan.memory.is_anything_live()
                || working.registry.copies.live_count() > 0
        };
        while asking.try_join_next().is_some() {}
        if is_poll && asking.is_empty() && is_anything_live() {
            // The slow truth: one program at a time, and nobody waits for it.
            let agent = Arc::clone(&of.scan.agent);
            asking.spawn(async move {
                tokio::time::sleep(agent.cli().sessions_pause()).await;
                if let Err(error) = agent.cli().sessions_now().await {
                    tracing::debug!(error = %error, "the agent did not list its sessions");
                }
            });
        }
    }
}

async fn after(duration: Option<Duration>) {
    match duration {
        // A moment later, so that the look finds the time over.
        Some(duration) => tokio::time::sleep(duration + Duration::from_millis(10)).await,
        None => std::future::pending().await,
    }
}
