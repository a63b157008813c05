//! Ends processes of bridges.
//! An orderly signal first, then force, then the proof that they are gone.

use crate::bridges::claim::Claim;
use crate::bridges::family::Families;
use crate::bridges::keepers::Keepers;
use crate::failpoint::hit;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_ports::ProcessHost;
use svc_ports::process::{ExitReport, Signal, Signalled, Target};
use svc_shared::ids::InstanceId;
use svc_shared::status::QuarantineCode;
use tracing::warn;

/// How long a killed process may take to disappear.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// Between the two orderly signals to a session (`agent-cli` §4.7).
const SECOND_INTERRUPT: Duration = Duration::from_millis(400);

/// How ending a process went.
pub(crate) enum Ended {
    /// It is gone.
    Gone { report: ExitReport, forced: bool },
    /// It lives on.
    Alive(QuarantineCode),
}

/// Ends processes of bridges.
pub(crate) struct Terminator {
    pub config: Arc<Config>,
    pub host: Arc<dyn ProcessHost>,
    pub families: Arc<Families>,
    pub keepers: Arc<Keepers>,
    /// Rows whose end this process carries out.
    /// The watcher of such a row does not record it.
    pub under_way: Arc<UnderWay>,
}

impl Terminator {
    /// Ends the process of a launch that no row names.
    /// With the project lock held nobody is launching: there is no process, or a launcher that was
    /// never told to go and ends by itself.
    pub async fn end_unrecorded(&self, bridge: &Bridge) -> Ended {
        let found = match &bridge.launch {
            Some(launch) => {
                let (host, id) = (Arc::clone(&self.host), launch.id.clone());
                tokio::task::spawn_blocking(move || host.find_launch(&id)).await.ok().flatten()
            }
            None => None,
        };
        match found {
            Some(facts) => self.end(bridge, &facts.identity).await,
            None => Ended::Gone { report: ExitReport::default(), forced: false },
        }
    }

    /// Ends one proven process with everything it started, bounded in time.
    pub async fn end(&self, bridge: &Bridge, identity: &ProcessIdentity) -> Ended {
        match self.families.claim(bridge, identity).await {
            Claim::Proven | Claim::Gone => {}
            Claim::Stranger => {
                self.families.kill_leftovers(bridge).await;
                return Ended::Gone { report: ExitReport::default(), forced: false };
            }
            Claim::Unproven => return Ended::Alive(QuarantineCode::IdentityUnknown),
        }
        let exit = self.host.exited(identity);
        tokio::pin!(exit);
        // Who dropped the launch id can only be told by its parent, and only while that lives.
        self.families.remember(bridge, identity).await;
        match self.interrupt(bridge, identity).await {
            Signalled::Sent => {}
            Signalled::Gone => {
                let report = tokio::time::timeout(AFTER_KILL, exit).await.unwrap_or_default();
                self.families.kill_leftovers(bridge).await;
                return Ended::Gone { report, forced: false };
            }
            Signalled::NotPermitted => return Ended::Alive(QuarantineCode::ForeignOwner),
            Signalled::Unproven => return Ended::Alive(QuarantineCode::IdentityUnknown),
        }
        hit("stop.after_term").await;
        let grace = self.config.claude.stop_grace;
        let mut ended = None;
        if bridge.is_interactive() {
            ended = tokio::time::timeout(SECOND_INTERRUPT, &mut exit).await.ok();
            if ended.is_none() {
                // With a turn open, the first one only asks whether it is meant. A keeper that was
                // asked to end it sends the second one, too: one more changes nothing.
                let _ = self.host.signal(identity, Signal::Interrupt, Target::Group); // judged below
            }
        }
        if ended.is_none() {
            ended = tokio::time::timeout(grace, &mut exit).await.ok();
        }
        if let Some(report) = ended {
            hit("stop.after_exit").await;
            self.families.kill_leftovers(bridge).await;
            return Ended::Gone { report, forced: false };
        }
        warn!(
            bridge.id = %bridge.id,
            "bridge {} did not end within {} s of the orderly signal; it is killed now",
            bridge.id.short(),
            grace.as_secs_f32()
        );
        let tree = self.host.descendants(identity);
        for process in tree {
            let _ = self.host.signal(&process.identity, Signal::Kill, Target::Process);
        }
        match self.host.signal(identity, Signal::Kill, Target::Group) {
            Signalled::Sent | Signalled::Gone => {}
            Signalled::NotPermitted => return Ended::Alive(QuarantineCode::ForeignOwner),
            Signalled::Unproven => return Ended::Alive(QuarantineCode::IdentityUnknown),
        }
        match tokio::time::timeout(AFTER_KILL, exit).await {
            Ok(report) => {
                hit("stop.after_exit").await;
                self.families.kill_leftovers(bridge).await;
                Ended::Gone { report, forced: true }
            }
            Err(_) if matches!(self.host.probe(identity), Verdict::Gone(_)) => {
                self.families.kill_leftovers(bridge).await;
                Ended::Gone { report: ExitReport::default(), forced: true }
            }
            Err(_) => Ended::Alive(QuarantineCode::Unkillable),
        }
    }
}

impl Terminator {
    /// Asks a process to end.
    /// A session is asked through its keeper, while this process is connected to it.
    async fn interrupt(&self, bridge: &Bridge, identity: &ProcessIdentity) -> Signalled {
        if bridge.is_interactive()
            && let Some(controller) = self.keepers.controller(bridge)
            && controller.stop(self.config.claude.stop_grace).await
        {
            return Signalled::Sent;
        }
        self.host.signal(identity, Signal::Interrupt, Target::Group)
    }
}

impl Terminator {
    /// Whether the process of a record may be signalled, as far as it can be asked.
    pub async fn is_proven(&self, bridge: &Bridge, identity: &ProcessIdentity) -> bool {
        matches!(self.families.claim(bridge, identity).await, Claim::Proven | Claim::Gone)
    }
}

/// Counts the ends under way, by row.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(Mutex<HashMap<InstanceId, u32>>);

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process is ending the bridge of this row.
    pub fn contains(&self, id: &InstanceId) -> bool {
        self.lock().contains_key(id)
    }

    /// Marks an end as under way until the mark is dropped.
    pub fn mark(self: &Arc<Self>, id: &InstanceId) -> Mark {
        *self.lock().entry(id.clone()).or_default() += 1;
        Mark { all: Arc::clone(self), id: id.clone() }
    }
}

/// Marks an end as under way until it is dropped.
pub(crate) struct Mark {
    all: Arc<UnderWay>,
    id: InstanceId,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(count) = all.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.id);
            }
        }
    }
}
