//! Use-case: end a bridge, orderly first, and prove that it is gone.

use crate::bridges::conversations::Conversations;
use crate::bridges::ends::EndRecorder;
use crate::bridges::ends::Noticed;
use crate::bridges::lookup::Wanted;
use crate::bridges::requests::Requests;
use crate::bridges::terminator::Ended;
use crate::bridges::terminator::Terminator;
use crate::bridges::transition::Changed;
use crate::bridges::transition::Transitions;
use crate::bridges::worktrees;
use crate::failpoint::hit;
use crate::ops::reserve;
use crate::{AppError, Class};
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_domain::decide::{Command, Refusal};
use svc_shared::api::instances::Instance;
use svc_shared::error::ErrorCode;
use svc_shared::status::QuarantineCode;
use svc_store::Cap;

/// Ends bridges.
pub(crate) struct StopBridge {
    pub requests: Arc<Requests>,
    pub transitions: Arc<Transitions>,
    pub terminator: Arc<Terminator>,
    pub ends: Arc<EndRecorder>,
    pub conversations: Arc<Conversations>,
}

impl StopBridge {
    /// Ends a bridge.
    /// Answers after its process is gone; an ended bridge is returned unchanged.
    ///
    /// # Errors
    /// The process could not be proven dead, or the row is held; the row says so.
    pub async fn stop(self: &Arc<Self>, reference: &str) -> Result<Instance, AppError> {
        self.stop_by(reference, Command::Stop).await
    }

    /// Ends a bridge that is to be started again, which the row says from now on.
    ///
    /// The caller resumes it. Where that fails, or this process dies before, the supervisor does.
    ///
    /// # Errors
    /// As those of [`Self::stop`].
    pub async fn stop_to_heal(self: &Arc<Self>, reference: &str) -> Result<Instance, AppError> {
        self.stop_by(reference, Command::StopToHeal).await
    }

    async fn stop_by(
        self: &Arc<Self>,
        reference: &str,
        command: Command,
    ) -> Result<Instance, AppError> {
        let (this, reference) = (Arc::clone(self), reference.to_owned());
        self.requests.tasks.complete(async move { this.stop_now(&reference, command).await }).await
    }

    async fn stop_now(&self, reference: &str, command: Command) -> Result<Instance, AppError> {
        reserve::make_room(&self.terminator.config.state_dir).await;
        let target = self.requests.lookup.bridge(reference, Wanted::Live).await?;
        let is_over = !target.is_live() && target.restarts.next_at.is_none();
        if is_over && target.quarantine.is_none() {
            return self.requests.records.of(&target).await;
        }
        let _lock = self.requests.locks.project(&target.cwd).await?;
        let bridge = match self.transitions.command(&target.id, command, Cap::default()).await? {
            Changed::Now(known) => known.bridge,
            Changed::Refused(Refusal::Held(code)) => return Err(held(&target, code)),
            Changed::Corrupt => {
                return Err(crate::bridges::lookup::corrupt(target.id.as_str()));
            }
            Changed::Late
            | Changed::Refused(Refusal::Live | Refusal::NoRelaunch | Refusal::NotDue)
            | Changed::Occupied
            | Changed::CapReached => {
                return Err(crate::bridges::lookup::unknown_instance(reference));
            }
        };
        hit("stop.after_intent").await;
        if !bridge.is_live() {
            return self.requests.records.of(&bridge).await;
        }
        self.finish(&bridge).await
    }

    /// Carries out a stop whose intent is recorded. The caller holds the project lock.
    pub(crate) async fn finish(&self, bridge: &Bridge) -> Result<Instance, AppError> {
        let _mark = self.terminator.under_way.mark(&bridge.id);
        if let Err(error) = self.conversations.learn(bridge).await {
            tracing::warn!(bridge.id = %bridge.id, error = %error, "the conversation is not known");
        }
        let ended = match &bridge.process {
            Some(identity) => self.terminator.end(bridge, identity).await,
            None => self.terminator.end_unrecorded(bridge).await,
        };
        let noticed = match ended {
            Ended::Gone { report, forced } => {
                hit("stop.before_record").await;
                self.terminator.keepers.finish(bridge).await;
                worktrees::unlock(bridge).await;
                Noticed::Stopped { report, forced }
            }
            Ended::Alive(code) => Noticed::Alive(code),
        };
        let doubt = match &noticed {
            Noticed::Alive(code) => Some(*code),
            _ => None,
        };
        let after = self.ends.record(bridge, noticed).await?;
        if let Some(code) = doubt {
            return Err(still_live(bridge, code));
        }
        hit("stop.after_record").await;
        match after {
            Changed::Now(known) => self.requests.records.of(&known.bridge).await,
            Changed::Late
            | Changed::Corrupt
            | Changed::Refused(_)
            | Changed::Occupied
            | Changed::CapReached => {
                Err(crate::bridges::lookup::unknown_instance(bridge.id.as_str()))
            }
        }
    }
}

/// The row is held: what it means and the way out.
pub(crate) fn held(bridge: &Bridge, code: QuarantineCode) -> AppError {
    let words = match code {
        QuarantineCode::IdentityUnknown => {
            "nothing proves that its process is the one that was launched: its launch id cannot be \
             read, or it has none; check how /proc is mounted (hidepid) and look at it with `ps`"
        }
        QuarantineCode::IdentityConflict => "another record names the same process; stop that one",
        QuarantineCode::Unkillable => {
            "its process is still alive after the kill signal; look at it with `ps` and end what \
             it waits for"
        }
        QuarantineCode::KeeperVersion => "its keeper speaks another protocol version",
        QuarantineCode::RowCorrupt => "its record cannot be understood",
        QuarantineCode::ForeignOwner => "its process belongs to another user; stop it as that user",
        QuarantineCode::PointerConflict => {
            "the agent's pointer names a process of another project; stop that one"
        }
    };
    AppError::new(
        ErrorCode::Quarantined,
        Class::Conflict,
        format!("instance {} is held ({code}): {words}", bridge.id.short()),
    )
}

fn still_live(bridge: &Bridge, code: QuarantineCode) -> AppError {
    match code {
        QuarantineCode::Unkillable => AppError::new(
            ErrorCode::StillLive,
            Class::Conflict,
            format!(
                "instance {} is still alive{} although it was killed; look at it with `ps` and \
                 end what it waits for",
                bridge.id.short(),
                bridge
                    .process
                    .as_ref()
                    .map(|process| format!(" (pid {})", process.pid))
                    .unwrap_or_default()
            ),
        ),
        QuarantineCode::IdentityUnknown
        | QuarantineCode::IdentityConflict
        | QuarantineCode::KeeperVersion
        | QuarantineCode::RowCorrupt
        | QuarantineCode::ForeignOwner
        | QuarantineCode::PointerConflict => held(bridge, code),
    }
}

#[cfg(test)]
mod tests;
