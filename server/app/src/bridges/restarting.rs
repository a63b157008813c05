//! Use-cases around automatic restarts: a row's policy, and the end of a pause.

use crate::AppError;
use crate::bridges::lookup::{Wanted, corrupt, unknown_instance};
use crate::bridges::requests::Requests;
use crate::bridges::stop::held;
use crate::bridges::transition::{Changed, Transitions};
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_domain::decide::{Command, Refusal};
use svc_shared::api::instances::Instance;
use svc_store::Cap;

/// Changes what is done with a row by itself.
pub(crate) struct Restarting {
    pub requests: Arc<Requests>,
    pub transitions: Arc<Transitions>,
}

impl Restarting {
    /// Ends the pause after too many crashes.
    /// Nothing is started; without a pause nothing changes.
    ///
    /// # Errors
    /// The row is held for another reason, or it cannot be written.
    pub async fn release(self: &Arc<Self>, reference: &str) -> Result<Instance, AppError> {
        let (this, reference) = (Arc::clone(self), reference.to_owned());
        self.requests.tasks.complete(async move { this.release_now(&reference).await }).await
    }

    async fn release_now(&self, reference: &str) -> Result<Instance, AppError> {
        let target = self.requests.lookup.bridge(reference, Wanted::LiveOrNewest).await?;
        if let Some(code) = target.quarantine {
            return Err(held(&target, code));
        }
        self.change(&target, Command::Release).await
    }

    /// Applies commands about the row itself, one after the other.
    ///
    /// # Errors
    /// The row cannot be written.
    pub(crate) async fn change_all(
        &self,
        target: &Bridge,
        commands: Vec<Command>,
    ) -> Result<Instance, AppError> {
        let mut last = None;
        for command in commands {
            last = Some(self.change(target, command).await?);
        }
        match last {
            Some(instance) => Ok(instance),
            None => self.requests.records.of(target).await,
        }
    }

    async fn change(&self, target: &Bridge, command: Command) -> Result<Instance, AppError> {
        match self.transitions.command(&target.id, command, Cap::default()).await? {
            Changed::Now(known) => self.requests.records.of(&known.bridge).await,
            Changed::Corrupt => Err(corrupt(target.id.as_str())),
            Changed::Refused(Refusal::Held(code)) => Err(held(target, code)),
            Changed::Late
            | Changed::Refused(Refusal::Live | Refusal::NoRelaunch | Refusal::NotDue)
            | Changed::Occupied
            | Changed::CapReached => Err(unknown_instance(target.id.as_str())),
        }
    }
}
