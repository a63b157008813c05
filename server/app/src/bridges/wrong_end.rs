//! Records that say a bridge ended although its very process lives.
//! Made by a hand in the database or by a backup that was put back, never by the program. Nothing
//! is started beside such a process.

use crate::bridges::stop::StopBridge;
use crate::bridges::stop::held;
use crate::bridges::transition::Transitions;
use crate::supervise::watchers::Watchers;
use crate::{AppError, Class};
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_domain::decide::{Refusal, may_resume};
use svc_domain::identity::Verdict;
use svc_domain::observe::Fact;
use svc_ports::ProcessHost;
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;

/// Corrects rows that say a bridge ended although its process lives.
pub(crate) struct WrongEnds {
    pub host: Arc<dyn ProcessHost>,
    pub transitions: Arc<Transitions>,
    pub stop: Arc<StopBridge>,
    pub watchers: Arc<Watchers>,
}

impl WrongEnds {
    /// Whether the process of an ended record lives.
    ///
    /// # Errors
    /// It may live, or the row is held.
    pub(crate) fn is_wrongly_ended(&self, bridge: &Bridge) -> Result<bool, AppError> {
        let process = bridge.process.as_ref().map(|process| self.host.probe(process));
        match may_resume(bridge, process) {
            Ok(()) => Ok(false),
            Err(Refusal::Held(code)) => Err(held(bridge, code)),
            Err(Refusal::Live | Refusal::NoRelaunch | Refusal::NotDue)
                if process == Some(Verdict::Unknown) =>
            {
                Err(AppError::new(
                    ErrorCode::StillLive,
                    Class::Conflict,
                    format!(
                        "instance {} may still have a process: the process table cannot be read \
                         for it; check how /proc is mounted (hidepid) and try again",
                        bridge.id.short()
                    ),
                ))
            }
            Err(Refusal::Live | Refusal::NoRelaunch | Refusal::NotDue) => Ok(true),
        }
    }

    /// Corrects the record of a bridge that a launch found running in its place.
    /// Its id, if it lives on. The caller holds the project lock.
    pub(crate) async fn corrected(&self, id: &InstanceId) -> Result<Option<InstanceId>, AppError> {
        let Some(bridge) = self.transitions.registry.copies.bridge(id) else { return Ok(None) };
        let corrected = self.correct_wrong_end(&bridge).await?;
        Ok(corrected.filter(Bridge::is_live).map(|bridge| bridge.id))
    }

    /// Makes the record of a process that lives live again, or carries out its stop.
    /// The record afterwards; `None` when somebody else changed it meanwhile. The caller holds the
    /// project lock.
    pub(crate) async fn correct_wrong_end(
        &self,
        bridge: &Bridge,
    ) -> Result<Option<Bridge>, AppError> {
        tracing::error!(
            bridge.id = %bridge.id,
            "bridge {} was recorded as ended, but its process lives; corrected",
            bridge.id.short()
        );
        self.transitions.observe(&bridge.id, bridge.generation, Fact::FoundAlive).await?;
        let Some(current) = self.transitions.registry.live_generation(bridge).await? else {
            return Ok(None);
        };
        if current.intentional_stop() {
            self.stop.finish(&current).await?;
        } else {
            self.watchers.watch_anew(&current.id, current.generation);
        }
        Ok(self.transitions.registry.copies.bridge(&bridge.id))
    }
}
