//! Use-case: remove an ended row.

use crate::bridges::stop::held;
use crate::failpoint::hit;
use crate::{App, AppError, Class};
use svc_domain::decide::{Refusal, may_forget};
use svc_shared::error::ErrorCode;
use svc_shared::internal::Forgotten;
use svc_store::Content;

impl App {
    /// Removes an ended row. Its logs stay until their retention ends.
    ///
    /// # Errors
    /// Its process lives or may live, or the row is held; it stays.
    pub async fn forget(&self, reference: &str) -> Result<Forgotten, AppError> {
        let (app, reference) = (self.clone(), reference.to_owned());
        self.tasks().complete(async move { app.forget_now(&reference).await }).await
    }

    async fn forget_now(&self, reference: &str) -> Result<Forgotten, AppError> {
        let target = self.lookup().bridge(reference).await?;
        let _lock = self.locks().project(&target.cwd).await?;
        // Somebody may have resumed or forgotten it while we waited.
        for _ in 0..5 {
            let Some(stored) = self.store().bridge(&target.id).await? else {
                return Err(crate::bridges::lookup::unknown_instance(reference));
            };
            let bridge = match stored.content {
                Content::Bridge(bridge) => bridge,
                Content::Corrupt { id, .. } => return Err(crate::bridges::lookup::corrupt(&id)),
            };
            let process = bridge.process.as_ref().map(|process| self.host().probe(process));
            match may_forget(&bridge, process) {
                Ok(()) => {}
                Err(Refusal::Held(code)) => return Err(held(&bridge, code)),
                Err(Refusal::Live | Refusal::NoRelaunch) => {
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
            if self.registry().delete(&bridge.id, stored.revision).await? {
                return Ok(Forgotten { id: bridge.id.to_string(), forgotten: true });
            }
        }
        Err(AppError::busy("the row is written by too many at once; try again"))
    }

    /// The next bridge of the directory must not continue a session of a forgotten one. The
    /// environment stays offered for reuse: the agent refuses a second one for a folder.
    async fn strip_pointer(&self, bridge: &svc_domain::bridge::Bridge) {
        let Some(environment) = bridge.anchor.environment_id.clone() else { return };
        let (app, cwd) = (self.clone(), bridge.cwd.clone());
        let stripped = tokio::task::spawn_blocking(move || {
            let Some(pointer) = app.agent().pointer(&cwd) else { return Ok(()) };
            if pointer.environment_id.as_deref() != Some(environment.as_str())
                || app.finder().pointer_is_live(&pointer)
            {
                return Ok(());
            }
            app.agent().strip_pointer(&cwd, &pointer)
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
