//! Use-case: change a row's name, and what happens with its bridge by itself.

use crate::AppError;
use crate::bridges::lookup::Wanted;
use crate::bridges::options::own_word;
use crate::bridges::requests::Requests;
use crate::bridges::restarting::Restarting;
use std::sync::Arc;
use svc_domain::decide::Command;
use svc_shared::api::instances::{Instance, PatchInstance};
use svc_shared::text::session_name;

/// Changes rows.
pub(crate) struct ChangeRow {
    pub requests: Arc<Requests>,
    pub restarting: Arc<Restarting>,
}

impl ChangeRow {
    /// Changes what is given; a blank label means the project name.
    /// All values are checked before the first is written.
    ///
    /// # Errors
    /// A value breaks a rule, or the row cannot be written.
    pub async fn change(
        self: &Arc<Self>,
        reference: &str,
        request: PatchInstance,
    ) -> Result<Instance, AppError> {
        let (this, reference) = (Arc::clone(self), reference.to_owned());
        self.requests
            .tasks
            .complete(async move { this.change_now(&reference, request).await })
            .await
    }

    async fn change_now(
        &self,
        reference: &str,
        request: PatchInstance,
    ) -> Result<Instance, AppError> {
        let mut commands = Vec::new();
        if let Some(label) = request.label {
            let name = session_name(&label)
                .map_err(|bad| AppError::invalid(format!("`label` cannot be used: {bad}")))?;
            commands.push(Command::Rename(name));
        }
        if let Some(policy) = request.restart {
            commands.push(Command::SetRestart(own_word("restart", policy.as_deref())?));
        }
        if let Some(choice) = request.after_reboot {
            commands.push(Command::SetAfterReboot(own_word("after_reboot", choice.as_deref())?));
        }
        if commands.is_empty() {
            return Err(AppError::invalid(
                "nothing to change was named; give `label` (the new name of the session), \
                 `restart` (never, on-crash, always or null) or `after_reboot` (offer, resume, \
                 never or null)",
            ));
        }
        let target = self.requests.lookup.bridge(reference, Wanted::Live).await?;
        self.restarting.change_all(&target, commands).await
    }
}

/// The new name of a Direct Session, which is all that can be changed of one.
pub(super) fn label_only(request: &PatchInstance) -> Result<Option<String>, AppError> {
    if request.restart.is_some() || request.after_reboot.is_some() {
        return Err(AppError::invalid(
            "a Direct Session is never restarted by itself; leave `restart` and `after_reboot` out",
        ));
    }
    let Some(label) = request.label.as_deref() else {
        return Err(AppError::invalid(
            "nothing to change was named; give `label` (the new name of the session)",
        ));
    };
    session_name(label).map_err(|bad| AppError::invalid(format!("`label` cannot be used: {bad}")))
}
