//! Use-case: end a bridge, orderly first, and prove that it is gone.

use crate::bridges::transition::Changed;
use crate::failpoint::hit;
use crate::{App, AppError, Class};
use std::time::Duration;
use svc_domain::bridge::Bridge;
use svc_domain::decide::{Command, Refusal};
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_domain::observe::{Cause, Fact};
use svc_ports::process::{ExitReport, Signal, Signalled, Target};
use svc_shared::api::instances::Instance;
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::status::{ExitReason, QuarantineCode};
use svc_store::Cap;
use tracing::warn;

/// How long a killed process may take to disappear.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// How ending a process went.
pub(crate) enum Ended {
    /// It is gone.
    Gone { report: ExitReport, forced: bool },
    /// It lives on.
    Alive(QuarantineCode),
}

impl App {
    /// Ends a bridge. Answers after its process is gone; an ended bridge is returned unchanged.
    ///
    /// # Errors
    /// The process could not be proven dead, or the row is held; the row says so.
    pub async fn stop(&self, reference: &str) -> Result<Instance, AppError> {
        let (app, reference) = (self.clone(), reference.to_owned());
        self.tasks().complete(async move { app.stop_now(&reference).await }).await
    }

    async fn stop_now(&self, reference: &str) -> Result<Instance, AppError> {
        let target = self.lookup().bridge(reference).await?;
        if !target.is_live() && target.quarantine.is_none() {
            return self.records().of(&target).await;
        }
        let _lock = self.locks().project(&target.cwd).await?;
        let bridge = match self.command(&target.id, Command::Stop, Cap::default()).await? {
            Changed::Now(known) => known.bridge,
            Changed::Refused(Refusal::Held(code)) => return Err(held(&target, code)),
            Changed::Corrupt => return Err(crate::bridges::lookup::corrupt(target.id.as_str())),
            Changed::Late
            | Changed::Refused(Refusal::Live | Refusal::NoRelaunch)
            | Changed::Occupied
            | Changed::CapReached => {
                return Err(crate::bridges::lookup::unknown_instance(reference));
            }
        };
        hit("stop.after_intent").await;
        if !bridge.is_live() {
            return self.records().of(&bridge).await;
        }
        self.finish_stop(&bridge).await
    }

    /// Carries out a stop whose intent is recorded. The caller holds the project lock.
    pub(crate) async fn finish_stop(&self, bridge: &Bridge) -> Result<Instance, AppError> {
        let _mark = self.mark_stopping(&bridge.id);
        let ended = match &bridge.process {
            Some(identity) => self.end_process(bridge, identity).await,
            // With the lock held nobody is launching: there is no process, or a launcher that was
            // never told to go and ends by itself.
            None => self.end_unrecorded(bridge).await,
        };
        match ended {
            Ended::Gone { report, forced } => {
                hit("stop.before_record").await;
                let cause = Cause {
                    exit_code: report.code,
                    exit_signal: report.signal.or(forced.then_some(9)),
                    forced,
                    ..Cause::plain(ExitReason::OperatorStop)
                };
                let id = &bridge.id;
                let after = self.observe(id, bridge.generation, Fact::Exited(cause)).await?;
                hit("stop.after_record").await;
                match after {
                    Changed::Now(known) => Ok(self.records().of(&known.bridge).await?),
                    Changed::Late
                    | Changed::Corrupt
                    | Changed::Refused(_)
                    | Changed::Occupied
                    | Changed::CapReached => {
                        Err(crate::bridges::lookup::unknown_instance(id.as_str()))
                    }
                }
            }
            Ended::Alive(code) => {
                self.observe(&bridge.id, bridge.generation, Fact::Doubt(code)).await?;
                Err(still_live(bridge, code))
            }
        }
    }

    async fn end_unrecorded(&self, bridge: &Bridge) -> Ended {
        let found = match &bridge.launch {
            Some(launch) => {
                let (host, id) = (self.host_shared(), launch.id.clone());
                tokio::task::spawn_blocking(move || host.find_launch(&id)).await.ok().flatten()
            }
            None => None,
        };
        match found {
            Some(facts) => self.end_process(bridge, &facts.identity).await,
            None => Ended::Gone { report: ExitReport::default(), forced: false },
        }
    }

    /// Ends one proven process with everything it started, bounded in time.
    pub(crate) async fn end_process(&self, bridge: &Bridge, identity: &ProcessIdentity) -> Ended {
        let exit = self.host().exited(identity);
        tokio::pin!(exit);
        // Who dropped the launch id can only be told by its parent, and only while that lives.
        self.remember_family(bridge, identity).await;
        match self.host().signal(identity, Signal::Interrupt, Target::Group) {
            Signalled::Sent => {}
            Signalled::Gone => {
                let report = tokio::time::timeout(AFTER_KILL, exit).await.unwrap_or_default();
                self.kill_leftovers(bridge).await;
                return Ended::Gone { report, forced: false };
            }
            Signalled::NotPermitted => return Ended::Alive(QuarantineCode::ForeignOwner),
            Signalled::Unproven => return Ended::Alive(QuarantineCode::IdentityUnknown),
        }
        hit("stop.after_term").await;
        let grace = self.settings().claude.stop_grace;
        if let Ok(report) = tokio::time::timeout(grace, &mut exit).await {
            hit("stop.after_exit").await;
            self.kill_leftovers(bridge).await;
            return Ended::Gone { report, forced: false };
        }
        warn!(
            bridge.id = %bridge.id,
            "bridge {} did not end within {} s of the orderly signal; it is killed now",
            bridge.id.short(),
            grace.as_secs_f32()
        );
        let tree = self.host().descendants(identity);
        for process in tree {
            let _ = self.host().signal(&process.identity, Signal::Kill, Target::Process);
        }
        match self.host().signal(identity, Signal::Kill, Target::Group) {
            Signalled::Sent | Signalled::Gone => {}
            Signalled::NotPermitted => return Ended::Alive(QuarantineCode::ForeignOwner),
            Signalled::Unproven => return Ended::Alive(QuarantineCode::IdentityUnknown),
        }
        match tokio::time::timeout(AFTER_KILL, exit).await {
            Ok(report) => {
                hit("stop.after_exit").await;
                self.kill_leftovers(bridge).await;
                Ended::Gone { report, forced: true }
            }
            Err(_) if matches!(self.host().probe(identity), Verdict::Gone(_)) => {
                self.kill_leftovers(bridge).await;
                Ended::Gone { report: ExitReport::default(), forced: true }
            }
            Err(_) => Ended::Alive(QuarantineCode::Unkillable),
        }
    }

    /// Whether a stop of this row is under way in this process.
    pub(crate) fn is_stopping(&self, id: &InstanceId) -> bool {
        self.stopping().contains_key(id)
    }
}

/// Marks a stop as under way until it is dropped.
pub(crate) struct StopMark {
    app: App,
    id: InstanceId,
}

impl App {
    /// Marks an ending of this row as under way in this process.
    pub(crate) fn mark_stopping(&self, id: &InstanceId) -> StopMark {
        *self.stopping().entry(id.clone()).or_default() += 1;
        StopMark { app: self.clone(), id: id.clone() }
    }
}

impl Drop for StopMark {
    fn drop(&mut self) {
        let mut stopping = self.app.stopping();
        if let Some(count) = stopping.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                stopping.remove(&self.id);
            }
        }
    }
}

/// The row is held: what it means and the way out.
pub(crate) fn held(bridge: &Bridge, code: QuarantineCode) -> AppError {
    let words = match code {
        QuarantineCode::IdentityUnknown => {
            "the process table cannot be read for its process; check how /proc is mounted \
             (hidepid) and restart the service"
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
