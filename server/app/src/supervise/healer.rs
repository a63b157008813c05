//! Restarts bridges whose remote link stays lost (`claude.heal: restart`).

use crate::AppError;
use crate::bridges::spawn::Starter;
use crate::bridges::stop::StopBridge;
use crate::read_model::links::Links;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::api::instances::ResumeRequest;
use svc_shared::ids::InstanceId;
use tracing::warn;

/// Stops a bridge and resumes it, once for each loss.
pub(crate) struct Healer {
    pub links: Arc<Links>,
    pub stop: Arc<StopBridge>,
    pub starter: Arc<Starter>,
}

impl Healer {
    /// Runs until the service ends.
    pub async fn run(&self) {
        let shutdown = self.starter.launcher.tasks.shutdown().clone();
        loop {
            let wanted = tokio::select! {
                wanted = self.links.restarts() => wanted,
                () = shutdown.cancelled() => return,
            };
            for (id, generation) in wanted {
                if let Err(error) = self.restart(&id, generation).await {
                    warn!(
                        bridge.id = %id, error = %error,
                        "bridge {} has lost its link and was not restarted at once",
                        id.short()
                    );
                }
            }
        }
    }

    async fn restart(&self, id: &InstanceId, generation: u32) -> Result<(), AppError> {
        let registry = &self.starter.launcher.transitions.registry;
        let is_still_it = |bridge: &svc_domain::bridge::Bridge| {
            bridge.generation == generation && bridge.is_live() && !bridge.intentional_stop()
        };
        // Somebody may have stopped or resumed it meanwhile.
        if !registry.copies.bridge(id).as_ref().is_some_and(is_still_it) {
            return Ok(());
        }
        self.stop.stop_to_heal(id.as_str()).await?;
        self.starter.resume(id.as_str(), ResumeRequest { trust: None }, Duration::ZERO).await?;
        Ok(())
    }
}
