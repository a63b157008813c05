//! Use-case: restart a bridge whose remote link is lost.

use crate::bridges::lookup::Wanted;
use crate::bridges::requests::Requests;
use crate::bridges::spawn::Starter;
use crate::bridges::stop::{StopBridge, held};
use crate::read_model::links::Links;
use crate::tasks::blocking;
use crate::{AppError, Class};
use std::sync::Arc;
use std::time::Duration;
use svc_domain::bridge::Bridge;
use svc_shared::api::instances::{ResumeRequest, SpawnResult};
use svc_shared::error::ErrorCode;
use svc_shared::status::LinkState;

/// Stops a bridge and resumes it, where that can bring its link back.
pub(crate) struct HealBridge {
    pub requests: Arc<Requests>,
    pub links: Arc<Links>,
    pub stop: Arc<StopBridge>,
    pub starter: Arc<Starter>,
}

impl HealBridge {
    /// Ends the process and starts it again in the same row.
    /// What has begun goes on when the caller goes away.
    ///
    /// # Errors
    /// Its link is not lost, or it could not be resumed here, and nothing was done. Or the stop or
    /// the resume was refused, and the row says how it stands.
    pub async fn heal(
        self: &Arc<Self>,
        reference: &str,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        let (this, reference) = (Arc::clone(self), reference.to_owned());
        let work = async move { this.heal_now(&reference, wait).await };
        self.requests.tasks.complete(work).await
    }

    async fn heal_now(&self, reference: &str, wait: Duration) -> Result<SpawnResult, AppError> {
        let target = self.requests.lookup.bridge(reference, Wanted::Live).await?;
        if let Some(code) = target.quarantine {
            return Err(held(&target, code));
        }
        let (links, bridge) = (Arc::clone(&self.links), target.clone());
        let shown = blocking(move || links.of(&bridge)).await?;
        let is_lost = shown.is_some_and(|shown| shown.link.state == LinkState::Down);
        if let Some(why) = refusal(&target, is_lost) {
            return Err(AppError::new(ErrorCode::InvalidValue, Class::Conflict, why));
        }
        let id = target.id.as_str();
        self.stop.stop_to_heal(id).await?;
        self.starter.resume(id, ResumeRequest::default(), wait).await
    }
}

/// Why a restart would not help this bridge, or would only end it.
fn refusal(bridge: &Bridge, is_lost: bool) -> Option<&'static str> {
    if !bridge.is_live() {
        return Some("it has ended; resume it instead");
    }
    if bridge.launch.is_none() {
        return Some(
            "it was started elsewhere and could not be started again here; restart it where it was \
             started",
        );
    }
    (!is_lost).then_some("its remote link is not lost, so there is nothing to heal")
}
