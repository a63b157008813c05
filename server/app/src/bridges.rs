//! Bridges: starting, ending and finding them, and what a start needs.

pub(crate) mod admissions;
pub(crate) mod adopt;
pub(crate) mod attached;
pub(crate) mod circumstances;
pub(crate) mod ends;
pub(crate) mod family;
pub(crate) mod forget;
pub(crate) mod launch;
pub(crate) mod lookup;
pub(crate) mod options;
mod preflight;
pub(crate) mod readiness;
pub(crate) mod rename;
pub(crate) mod requests;
mod resume;
pub(crate) mod spawn;
pub(crate) mod stop;
pub(crate) mod strays;
pub(crate) mod terminator;
pub(crate) mod transition;
pub(crate) mod unmanaged;
pub(crate) mod wrong_end;

use crate::AppError;
use adopt::Adopter;
use forget::Forget;
use rename::Rename;
use spawn::Starter;
use std::sync::Arc;
use std::time::Duration;
use stop::StopBridge;
use svc_shared::api::instances::{
    Instance, PatchInstance, ResumeRequest, SpawnRequest, SpawnResult,
};
use svc_shared::internal::Forgotten;

/// What can be done to bridges. What has begun goes on when the caller goes away.
pub struct Bridges {
    pub(crate) starter: Arc<Starter>,
    pub(crate) stop: Arc<StopBridge>,
    pub(crate) adopter: Arc<Adopter>,
    pub(crate) forget: Arc<Forget>,
    pub(crate) rename: Arc<Rename>,
}

impl Bridges {
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
        self.starter.resume(reference, request, wait).await
    }

    /// Ends a bridge.
    /// Answers after its process is gone; an ended bridge is returned unchanged.
    ///
    /// # Errors
    /// The process could not be proven dead, or the row is held; the row says so.
    pub async fn stop(&self, reference: &str) -> Result<Instance, AppError> {
        self.stop.stop(reference).await
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
        self.forget.forget(reference).await
    }

    /// Renames a bridge; a blank label means the project name.
    ///
    /// # Errors
    /// The name breaks a rule, or the row cannot be written.
    pub async fn rename(
        &self,
        reference: &str,
        request: PatchInstance,
    ) -> Result<Instance, AppError> {
        self.rename.rename(reference, request).await
    }
}
