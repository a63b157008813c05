//! Bridges: starting, ending and finding them, and what a start needs.

pub(crate) mod admissions;
pub(crate) mod adopt;
pub(crate) mod attached;
pub(crate) mod change;
pub(crate) mod circumstances;
pub(crate) mod claim;
pub(crate) mod controller;
pub(crate) mod conversations;
pub(crate) mod ends;
pub(crate) mod family;
pub(crate) mod forget;
pub(crate) mod heal;
pub(crate) mod keeper_list;
pub(crate) mod keepers;
pub(crate) mod launch;
pub(crate) mod launch_id;
pub(crate) mod lookup;
pub(crate) mod options;
mod preflight;
pub(crate) mod readiness;
pub(crate) mod requests;
pub(crate) mod restart_rules;
pub(crate) mod restarting;
pub(crate) mod restore;
mod resume;
pub(crate) mod spawn;
pub(crate) mod stop;
pub(crate) mod strays;
pub(crate) mod terminator;
pub(crate) mod transition;
pub(crate) mod unmanaged;
mod worktrees;
pub(crate) mod wrong_end;

use crate::AppError;
use crate::hosted::HostedSessions;
use adopt::Adopter;
use change::ChangeRow;
use forget::Forget;
use heal::HealBridge;
use lookup::Wanted;
use restarting::Restarting;
use spawn::Starter;
use std::sync::Arc;
use std::time::Duration;
use stop::StopBridge;
use svc_shared::api::instances::{
    Instance, PatchInstance, ReleaseRequest, ResumeRequest, SpawnRequest, SpawnResult,
};
use svc_shared::ids::InstanceId;
use svc_shared::internal::Forgotten;

/// What can be done to bridges. What has begun goes on when the caller goes away.
pub struct Bridges {
    pub(crate) starter: Arc<Starter>,
    pub(crate) stop: Arc<StopBridge>,
    pub(crate) adopter: Arc<Adopter>,
    pub(crate) forget: Arc<Forget>,
    pub(crate) change: Arc<ChangeRow>,
    pub(crate) restarting: Arc<Restarting>,
    pub(crate) heal: Arc<HealBridge>,
    pub(crate) hosted: Arc<HostedSessions>,
}

impl Bridges {
    /// The Direct Session that a reference means; `None` when it means something else.
    ///
    /// # Errors
    /// Nothing or several match, or the registry cannot be read.
    pub async fn direct_session(&self, reference: &str) -> Result<Option<InstanceId>, AppError> {
        self.hosted_of(reference, Wanted::Live).await
    }

    async fn hosted_of(
        &self,
        reference: &str,
        wanted: Wanted,
    ) -> Result<Option<InstanceId>, AppError> {
        self.stop.requests.lookup.hosted(reference, wanted).await
    }

    /// Runs what was begun for a Direct Session to its end.
    /// Also when the caller goes away.
    async fn complete<
        T: Send + 'static,
        F: Future<Output = Result<T, AppError>> + Send + 'static,
    >(
        &self,
        work: impl FnOnce(Arc<HostedSessions>) -> F,
    ) -> Result<T, AppError> {
        self.stop.requests.tasks.complete(work(Arc::clone(&self.hosted))).await
    }

    /// Launches a bridge, or returns the project's live Server Mode bridge.
    /// Answers when the bridge is ready, has failed, or after `wait`.
    ///
    /// # Errors
    /// Nothing was started and nothing is left behind: no row, no file, no trust.
    pub async fn spawn(
        &self,
        request: SpawnRequest,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        self.starter.spawn(request, wait).await
    }

    /// Revives an ended bridge in its own row, or says why nothing was revived.
    ///
    /// # Errors
    /// The row is unchanged.
    pub async fn resume(
        &self,
        reference: &str,
        request: ResumeRequest,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        if let Some(id) = self.hosted_of(reference, Wanted::LiveOrNewest).await? {
            return self.complete(|hosted| async move { hosted.resume(&id, &request).await }).await;
        }
        self.starter.resume(reference, request, wait).await
    }

    /// Ends a bridge.
    /// Answers after its process is gone; an ended bridge is returned unchanged.
    ///
    /// # Errors
    /// The process could not be proven dead, or the row is held; the row says so.
    pub async fn stop(&self, reference: &str) -> Result<Instance, AppError> {
        if let Some(id) = self.hosted_of(reference, Wanted::Live).await? {
            return self.complete(|hosted| async move { hosted.stop(&id).await }).await;
        }
        self.stop.stop(reference).await
    }

    /// Restarts a live bridge whose remote link is lost, with the same conversations.
    /// Answers when the bridge is ready, has failed, or after `wait`.
    ///
    /// # Errors
    /// Its link is not lost, or the stop or the resume was refused.
    pub async fn heal(&self, reference: &str, wait: Duration) -> Result<SpawnResult, AppError> {
        self.heal.heal(reference, wait).await
    }

    /// Makes a row for the bridge that runs in a project without one.
    ///
    /// # Errors
    /// There is none that may be taken over; the message names the condition.
    pub async fn adopt(&self, project: &str) -> Result<Instance, AppError> {
        self.adopter.adopt(project).await
    }

    /// Removes an ended row. Its logs stay until their retention ends.
    ///
    /// # Errors
    /// Its process lives or may live, or the row is held; it stays.
    pub async fn forget(&self, reference: &str) -> Result<Forgotten, AppError> {
        if let Some(id) = self.hosted_of(reference, Wanted::Ended).await? {
            return self.complete(|hosted| async move { hosted.forget(&id).await }).await;
        }
        self.forget.forget(reference).await
    }

    /// Changes what a row says about its bridge: its name, and what happens by itself.
    ///
    /// # Errors
    /// A value breaks a rule, or the row cannot be written.
    pub async fn change(
        &self,
        reference: &str,
        request: PatchInstance,
    ) -> Result<Instance, AppError> {
        if let Some(id) = self.hosted_of(reference, Wanted::Live).await? {
            let what = change::of_direct_session(&request)?;
            return self.complete(|hosted| async move { hosted.change(&id, what).await }).await;
        }
        self.change.change(reference, request).await
    }

    /// Ends the pause after too many crashes.
    /// Also starts the bridge if that is asked for. Without a pause nothing changes.
    ///
    /// # Errors
    /// The row is held because of doubt about its process, or the start is refused.
    pub async fn release(
        &self,
        reference: &str,
        request: ReleaseRequest,
    ) -> Result<Instance, AppError> {
        let (restarting, starter) = (Arc::clone(&self.restarting), Arc::clone(&self.starter));
        let reference = reference.to_owned();
        let both = async move {
            let released = restarting.release(&reference).await?;
            if !request.start.unwrap_or(false) || released.is_live() {
                return Ok(released);
            }
            let id = released.instance_id.to_string();
            let started = starter.resume(&id, ResumeRequest::default(), Duration::ZERO).await?;
            Ok(started.instance)
        };
        self.stop.requests.tasks.complete(both).await
    }
}
