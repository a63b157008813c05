//! Watching over what runs: who looks when, and why.
//! What is done is decided elsewhere.
//!
//! One reconciler compares records with processes. Exits, changes of the registry by other
//! processes and a slow safety tick only wake it. Each live bridge has one watcher task for its
//! log, its deadline and its exit.

mod activity_watch;
mod bridge_watch;
pub(crate) mod change_watch;
mod foreign_ends;
pub(crate) mod healer;
mod job_watch;
pub(crate) mod keeper_watch;
mod launch_waits;
mod limit_waits;
mod link_watch;
mod poll;
pub(crate) mod reconcile;
mod relaunch;
pub(crate) mod restarter;
pub(crate) mod sampler;
mod session_facts;
mod session_watch;
pub(crate) mod watchers;

use crate::AppError;
use crate::asked::Asked;
use crate::bridges::restore::Restore;
use crate::hosted::HostedParts;
use crate::jobs::Jobs;
use crate::launch_plans::LaunchPlans;
use crate::ops::reserve;
use crate::outbound::{Notifications, Webhooks};
use crate::projects::clones::Clones;
use crate::stranded::StrandedSessions;
use crate::transcripts::Transcripts;
use activity_watch::ActivityWatch;
use change_watch::{Housekeeping, SessionWatch, Surroundings, WriteWatch};
use healer::Healer;
use limit_waits::LimitWaits;
use reconcile::Reconciler;
use restarter::Restarter;
use sampler::Sampler;
use std::sync::Arc;
use svc_store::Owed;
use tokio::sync::watch;

/// The standing tasks of the service.
pub(crate) struct Supervision {
    pub reconciler: Arc<Reconciler>,
    pub restarter: Arc<Restarter>,
    pub restore: Arc<Restore>,
    pub writes: WriteWatch,
    pub surroundings: Surroundings,
    pub sessions: SessionWatch,
    pub sampler: Sampler,
    pub housekeeping: Housekeeping,
    pub healer: Healer,
    pub stranded: Arc<StrandedSessions>,
    pub jobs: Arc<Jobs>,
    pub clones: Arc<Clones>,
    pub webhooks: Arc<Webhooks>,
    pub notifications: Arc<Notifications>,
    pub asked: Arc<Asked>,
    /// Tells when values of the configuration were replaced.
    pub applied: watch::Receiver<()>,
    pub hosted: Arc<HostedParts>,
    pub transcripts: Arc<Transcripts>,
    pub launch_plans: Arc<LaunchPlans>,
}

impl Supervision {
    /// Starts the supervisor.
    /// First a complete pass over all rows, then the standing tasks.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn start(self: &Arc<Self>) -> Result<Supervisor, AppError> {
        let registry = &self.writes.registry;
        let owed = self.webhooks.start(self.applied.clone()).await;
        self.notifications.start().await;
        let listener = change_watch::listen(&self.writes.state_dir).await?;
        // What a command writes while the first pass runs must not be taken for old.
        let writes = change_watch::writes(registry).await;
        // What happened earlier is posted before what is found now.
        registry.refresh().await?;
        self.hosted.rows.refresh().await?;
        self.post_owed(owed);
        self.reconciler.first_pass().await?;
        // Before anybody is answered: a list without them would look as if they were lost.
        self.hosted.load().await?;
        self.asked.refresh().await?;
        self.launch_plans.publish().await?;
        self.notifications.know_open();
        if let Some(publisher) = &registry.publisher {
            publisher.publish_projects().await;
        }
        self.jobs.publish().await;
        let tasks = &self.writes.tasks;
        let this = || Arc::clone(self);
        let of = this();
        tasks.spawn(async move { of.reconciler.run().await });
        let transitions = Arc::clone(&self.reconciler.ends.transitions);
        tasks.spawn(foreign_ends::run(transitions, tasks.clone()));
        tasks.spawn(Arc::clone(&self.asked).run(self.hosted.rows.changes(), self.applied.clone()));
        let restore = Arc::clone(&self.restore);
        tasks.spawn(async move { restore.run().await });
        let restarter = Arc::clone(&self.restarter);
        tasks.spawn(async move { restarter.run().await });
        let of = this();
        let hosted = Arc::clone(&self.hosted);
        tasks.spawn(async move { of.writes.run(listener, writes, &hosted.wake).await });
        let of = this();
        tasks.spawn(async move { of.surroundings.run().await });
        let of = this();
        tasks.spawn(async move { of.sessions.run().await });
        tasks.spawn(job_watch::run(Arc::clone(&self.jobs), Arc::clone(&self.sessions.sessions)));
        tasks.spawn(Arc::clone(&self.transcripts).run());
        let limit_waits = LimitWaits::new(self);
        tasks.spawn(async move { limit_waits.run().await });
        let (plans, transcripts) = (Arc::clone(&self.launch_plans), Arc::clone(&self.transcripts));
        tasks.spawn(launch_waits::run(plans, transcripts, self.hosted.rows.changes()));
        let activities = ActivityWatch::new(self);
        tasks.spawn(async move { activities.run().await });
        let of = this();
        tasks.spawn(async move { of.sampler.run(of.applied.clone()).await });
        let of = this();
        tasks.spawn(async move { of.housekeeping.run().await });
        let of = this();
        tasks.spawn(async move { of.healer.run().await });
        tasks.spawn(Arc::clone(&self.hosted).run());
        self.stranded.settle().await?;
        let clones = Arc::clone(&self.clones);
        tasks.spawn(async move { clones.sweep().await });
        // Before anything can fill the disk.
        let of = this();
        tasks.spawn(async move { reserve::make_room(&of.writes.state_dir).await });
        Ok(Supervisor)
    }

    /// Posts the steps that an earlier service recorded and did not come to post.
    fn post_owed(&self, owed: Vec<Owed>) {
        for one in owed {
            let (id, step) = (&one.instance, one.event);
            let transitions = &self.reconciler.ends.transitions;
            let event =
                transitions.event_of(id, step).or_else(|| self.hosted.rows.event_of(id, step));
            match event {
                Some(mut event) => {
                    event.generation = Some(one.generation);
                    self.webhooks.offer_at(&event, one.at);
                }
                None => self.webhooks.forgive(one),
            }
        }
    }
}

/// Proof that the supervisor runs.
#[derive(Debug, Clone, Copy)]
pub struct Supervisor;

#[cfg(test)]
mod tests;
