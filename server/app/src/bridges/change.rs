//! Use-case: change a row's name, and what happens with its bridge by itself.

use crate::AppError;
use crate::bridges::lookup::Wanted;
use crate::bridges::options::{NO_WORDS, own_word};
use crate::bridges::requests::Requests;
use crate::bridges::restarting::Restarting;
use crate::hosted::rows::OwnChange;
use std::sync::Arc;
use svc_domain::decide::Command;
use svc_shared::api::instances::{Instance, PatchInstance};
use svc_shared::status::OnLimit;
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
        let on_limit = on_limit(&request.on_limit)?;
        commands.extend(on_limit.map(Command::SetOnLimit));
        if commands.is_empty() {
            return Err(AppError::invalid(
                "nothing to change was named; give `label` (the new name of the session), \
                 `restart` (never, on-crash, always or null), `after_reboot` (offer, resume, never \
                 or null) or `on_limit` (wait, continue or null)",
            ));
        }
        let target = self.requests.lookup.bridge(reference, Wanted::Live).await?;
        if on_limit == Some(Some(OnLimit::Continue)) && !target.is_interactive() {
            return Err(AppError::invalid(NO_WORDS));
        }
        self.restarting.change_all(&target, commands).await
    }
}

/// What can be changed of a Direct Session.
pub(super) fn of_direct_session(request: &PatchInstance) -> Result<OwnChange, AppError> {
    if request.restart.is_some() || request.after_reboot.is_some() {
        return Err(AppError::invalid(
            "a Direct Session is never restarted by itself; leave `restart` and `after_reboot` out",
        ));
    }
    let label = request.label.as_deref().map(session_name).transpose();
    let label = label.map_err(|bad| AppError::invalid(format!("`label` cannot be used: {bad}")))?;
    let on_limit = on_limit(&request.on_limit)?;
    if label.is_none() && on_limit.is_none() {
        return Err(AppError::invalid(
            "nothing to change was named; give `label` (the new name of the session) or \
             `on_limit` (wait, continue or null)",
        ));
    }
    Ok(OwnChange { label, on_limit })
}

#[expect(clippy::option_option, reason = "absent, null, a word")]
fn on_limit(asked: &Option<Option<String>>) -> Result<Option<Option<OnLimit>>, AppError> {
    asked.as_ref().map(|word| own_word("on_limit", word.as_deref())).transpose()
}
