//! Use-case: remove an ended row.

use crate::bridges::lookup::Wanted;
use crate::bridges::requests::Requests;
use crate::bridges::stop::held;
use crate::bridges::unmanaged::Finder;
use crate::failpoint::hit;
use crate::{AppError, Class};
use std::sync::Arc;
use svc_domain::decide::{Refusal, may_forget};
use svc_shared::error::ErrorCode;
use svc_shared::internal::Forgotten;
use svc_store::Content;

/// Removes ended rows.
pub(crate) struct Forget {
    pub requests: Arc<Requests>,
    pub finder: Arc<Finder>,
}

impl Forget {
    /// Removes an ended row. Its logs stay until their retention ends.
    ///
    /// # Errors
    /// Its process lives or may live, or the row is held; it stays.
    pub async fn forget(self: &Arc<Self>, reference: &str) -> Result<Forgotten, AppError> {
        let (this, reference) = (Arc::clone(self), reference.to_owned());
        self.requests.tasks.complete(async move { this.forget_now(&reference).await }).await
    }

    async fn forget_now(&self, reference: &str) -> Result<Forgotten, AppError> {
        let (target, _lock) = self.requests.locked(reference, Wanted::Ended).await?;
        // Somebody may have resumed or forgotten it while we waited.
        for _ in 0..5 {
            let Some(stored) = self.requests.lookup.registry.store.bridge(&target.id).await? else {
                return Err(crate::bridges::lookup::unknown_instance(reference));
            };
            let bridge = match stored.content {
                Content::Bridge(bridge) => bridge,
                Content::Corrupt { id, .. } => return Err(crate::bridges::lookup::corrupt(&id)),
            };
            let process = bridge.process.as_ref().map(|process| self.finder.host.probe(process));
            match may_forget(&bridge, process) {
                Ok(()) => {}
                Err(Refusal::Held(code)) => return Err(held(&bridge, code)),
                Err(Refusal::Live | Refusal::NoRelaunch | Refusal::NotDue) => {
                    return Err(AppError::new(
                        ErrorCode::StillLive,
                        Class::Conflict,
                        format!(
                            "instance {} is {} and cannot be forgotten; stop it first",
                            bridge.id.short(),
                            bridge.status()
                        ),
                    ));
                }
            }
            self.strip_pointer(&bridge).await;
            hit("forget.before_delete").await;
            if self.requests.lookup.registry.delete(&bridge.id, stored.revision).await? {
                return Ok(Forgotten { id: bridge.id.to_string(), forgotten: true });
            }
        }
        Err(AppError::busy("the row is written by too many at once; try again"))
    }

    /// The next bridge of the directory must not continue a session of a forgotten one.
    /// The environment stays offered for reuse: the agent refuses a second one for a folder.
    async fn strip_pointer(&self, bridge: &svc_domain::bridge::Bridge) {
        let Some(environment) = bridge.anchor.environment_id.clone() else { return };
        let (agent, finder, cwd) =
            (Arc::clone(&self.finder.agent), Arc::clone(&self.finder), bridge.cwd.clone());
        let stripped = tokio::task::spawn_blocking(move || {
            let Some(pointer) = agent.pointer(&cwd) else { return Ok(()) };
            if pointer.environment_id.as_deref() != Some(environment.as_str())
                || finder.pointer_is_live(&pointer)
            {
                return Ok(());
            }
            agent.strip_pointer(&cwd, &pointer)
        })
        .await;
        match stripped {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(bridge.id = %bridge.id, error = %error, "the agent's pointer stays");
            }
            Err(error) => tracing::warn!(error = %error, "the agent's pointer was not looked at"),
        }
    }
}
