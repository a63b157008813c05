//! Tests of stopping a process that does not go away.

use super::*;
use crate::bench::{ID, Sleeper, Still, app, bridge};
use async_trait::async_trait;
use std::sync::Arc;
use svc_domain::identity::{BootId, LaunchId, Pid};
use svc_ports::Clock as _;
use svc_ports::process::{
    Carrier, Exited, HeldLaunch, LaunchError, LaunchSpec, ProcessFacts, ProcessHost,
};
use svc_process::{Host, HostOptions};
use svc_shared::status::{BridgeStatus, Origin};

/// Processes in uninterruptible sleep: the kernel takes every signal for them and none has an
/// effect. Everything else is the machine as it is.
struct Uninterruptible(Host);

#[async_trait]
impl ProcessHost for Uninterruptible {
    fn boot_id(&self) -> &BootId {
        self.0.boot_id()
    }

    async fn launch(&self, spec: LaunchSpec) -> Result<Box<dyn HeldLaunch>, LaunchError> {
        self.0.launch(spec).await
    }

    fn probe(&self, identity: &ProcessIdentity) -> Verdict {
        self.0.probe(identity)
    }

    fn inspect(&self, pid: Pid) -> Option<ProcessFacts> {
        self.0.inspect(pid)
    }

    fn launch_of(&self, identity: &ProcessIdentity) -> Option<LaunchId> {
        self.0.launch_of(identity)
    }

    fn find_launch(&self, launch_id: &LaunchId) -> Option<ProcessFacts> {
        self.0.find_launch(launch_id)
    }

    fn launch_members(&self, launch_id: &LaunchId) -> Vec<ProcessFacts> {
        self.0.launch_members(launch_id)
    }

    fn remains(&self, first: Option<&ProcessIdentity>, launch_id: &LaunchId) -> Vec<ProcessFacts> {
        self.0.remains(first, launch_id)
    }

    fn carriers(&self) -> Vec<Carrier> {
        self.0.carriers()
    }

    fn processes(&self) -> Vec<ProcessFacts> {
        self.0.processes()
    }

    fn signal(&self, identity: &ProcessIdentity, _: Signal, _: Target) -> Signalled {
        match self.0.probe(identity) {
            Verdict::Same => Signalled::Sent,
            Verdict::Gone(_) => Signalled::Gone,
            Verdict::Unknown => Signalled::Unproven,
        }
    }

    fn exited(&self, identity: &ProcessIdentity) -> Exited {
        self.0.exited(identity)
    }

    fn descendants(&self, identity: &ProcessIdentity) -> Vec<ProcessFacts> {
        self.0.descendants(identity)
    }
}

#[tokio::test]
async fn f42_h104_a_process_that_cannot_be_killed_is_said_to_be_alive_and_stays_visible() {
    let tree = tempfile::tempdir().unwrap();
    let sleeper = Sleeper::new();
    let host = Host::new(HostOptions::default()).unwrap();
    let identity = host.inspect(sleeper.pid()).unwrap().identity;
    let app = app(tree.path(), Arc::new(Uninterruptible(host))).await;
    let bridge =
        Bridge { origin: Origin::Adopted, process: Some(identity.clone()), ..bridge(tree.path()) };
    let inserted = app.store().insert(&bridge, Cap::default(), Still.now()).await.unwrap();
    assert_eq!(inserted, svc_store::Inserted::Yes);
    app.reload_one(&bridge.id).await.unwrap();

    let refused = app.stop(ID).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::StillLive, "{}", refused.message);
    assert!(refused.message.contains(&identity.pid.to_string()), "{}", refused.message);
    let held = app.known(&bridge.id).unwrap();
    assert_eq!(held.quarantine, Some(QuarantineCode::Unkillable));
    assert!(held.is_live() && held.intentional_stop());
    assert_eq!(held.status(), BridgeStatus::Running);

    // Asked again, it is still said, and nobody waits for ever.
    let again = app.stop(ID).await.unwrap_err();
    assert!(matches!(again.code, ErrorCode::StillLive | ErrorCode::Quarantined), "{again:?}");
    assert_eq!(app.host().probe(&identity), Verdict::Same);

    // At last it is gone: what was asked for has happened, and it is no crash.
    let _supervisor = app.supervise().await.unwrap();
    let mut changes = app.registry().changes();
    drop(sleeper);
    let ended = async {
        loop {
            let now = app.known(&bridge.id).unwrap();
            if !now.is_live() {
                return now;
            }
            changes.changed().await.unwrap();
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await.unwrap();
    assert_eq!((ended.status(), ended.quarantine), (BridgeStatus::Stopped, None));
    app.close().await;
}
