//! One more cold start after the remote session was archived or deleted.

use crate::AppError;
use crate::bridges::ends::Noticed;
use crate::bridges::launch::LaunchRequest;
use crate::bridges::terminator::Ended;
use crate::bridges::transition::Changed;
use crate::supervise::watchers::Watchers;
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_domain::conversation::TakeUp;
use svc_domain::decide::Command;
use tracing::{error, info};

impl Watchers {
    /// Relaunches on a task of its own.
    /// The watcher that saw the poison ends with its generation.
    pub(super) fn relaunch_in_background(self: &Arc<Self>, bridge: Bridge) {
        let this = Arc::clone(self);
        // Before the lock is waited for: while the mark stands nobody watches the row anew, finds
        // the poison again and comes here once more.
        let mark = self.terminator.under_way.mark(&bridge.id);
        self.tasks.spawn(async move {
            if let Err(error) = this.relaunch(&bridge).await {
                error!(bridge.id = %bridge.id, error = %error, "the cold start failed");
            }
            drop(mark);
            this.registry().wake.notify_one();
        });
    }

    async fn relaunch(self: &Arc<Self>, bridge: &Bridge) -> Result<(), AppError> {
        let _lock = self.locks.project(&bridge.cwd).await?;
        let current = self.registry().live_generation(bridge).await?;
        let Some(current) = current.filter(|bridge| !bridge.intentional_stop()) else {
            return Ok(());
        };
        if let Some(identity) = &current.process
            && let Ended::Alive(code) = self.terminator.end(&current, identity).await
        {
            self.ends.record(&current, Noticed::Alive(code)).await?;
            return Ok(());
        }
        let used = current.launch.as_ref().is_some_and(|launch| launch.relaunched);
        if used {
            self.ends.record(&current, Noticed::Poisoned).await?;
            return Ok(());
        }
        info!(
            bridge.id = %current.id,
            "the remote session of bridge {} is gone; it is started once more without it",
            current.id.short()
        );
        let (agent, cwd) = (self.agent.clone(), current.cwd.clone());
        let stripped = tokio::task::spawn_blocking(move || match agent.pointer(&cwd) {
            // Its process has just been proven gone.
            Some(pointer) => agent.strip_pointer(&cwd, &pointer),
            None => Ok(()),
        })
        .await;
        if let Ok(Err(error)) = stripped {
            tracing::warn!(error = %error, "the agent's pointer stays as it is");
        }
        let prepared = self.launcher.prepare(LaunchRequest::of(&current, &TakeUp::New)).await?;
        let command = Command::Relaunch {
            launch: prepared.launch.clone(),
            deadline: self.launcher.deadline(),
        };
        self.registry().copies.own(&current.id, &prepared.launch.id);
        match self.transitions().command(&current.id, command, svc_store::Cap::default()).await? {
            Changed::Now(known) => {
                if self.launcher.start(&known.bridge, prepared).await? {
                    self.launched(&known.bridge);
                }
                Ok(())
            }
            Changed::Late
            | Changed::Corrupt
            | Changed::Refused(_)
            | Changed::Occupied
            | Changed::CapReached => Ok(()),
        }
    }
}
