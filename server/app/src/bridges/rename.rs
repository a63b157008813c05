//! Use-case: show another name to the remote client from the next launch on.

use crate::AppError;
use crate::bridges::lookup::Wanted;
use crate::bridges::requests::Requests;
use crate::bridges::transition::Changed;
use crate::bridges::transition::Transitions;
use std::sync::Arc;
use svc_domain::decide::Command;
use svc_shared::api::instances::{Instance, PatchInstance};
use svc_shared::text::session_name;
use svc_store::Cap;

/// Renames bridges.
pub(crate) struct Rename {
    pub requests: Arc<Requests>,
    pub transitions: Arc<Transitions>,
}

impl Rename {
    /// Renames a bridge; a blank label means the project name.
    ///
    /// # Errors
    /// The name breaks a rule, or the row cannot be written.
    pub async fn rename(
        self: &Arc<Self>,
        reference: &str,
        request: PatchInstance,
    ) -> Result<Instance, AppError> {
        let (this, reference) = (Arc::clone(self), reference.to_owned());
        self.requests
            .tasks
            .complete(async move { this.rename_now(&reference, request).await })
            .await
    }

    async fn rename_now(
        &self,
        reference: &str,
        request: PatchInstance,
    ) -> Result<Instance, AppError> {
        let Some(label) = request.label else {
            return Err(AppError::invalid("`label` is missing; give the new name of the session"));
        };
        let name = session_name(&label)
            .map_err(|bad| AppError::invalid(format!("`label` cannot be used: {bad}")))?;
        let target = self.requests.lookup.bridge(reference, Wanted::Live).await?;
        match self.transitions.command(&target.id, Command::Rename(name), Cap::default()).await? {
            Changed::Now(known) => Ok(self.requests.records.of(&known.bridge).await?),
            Changed::Corrupt => Err(crate::bridges::lookup::corrupt(target.id.as_str())),
            Changed::Late | Changed::Refused(_) | Changed::Occupied | Changed::CapReached => {
                Err(crate::bridges::lookup::unknown_instance(reference))
            }
        }
    }
}
