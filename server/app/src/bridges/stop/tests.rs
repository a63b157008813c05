//! Tests of stopping a process that does not go away.

use super::*;
use crate::bench::{ID, Machine, Sleeper, Still, app, bridge, launch};
use std::time::Duration;
use svc_domain::identity::Verdict;
use svc_ports::{Clock as _, ProcessHost as _};
use svc_process::{Host, HostOptions};
use svc_shared::status::{BridgeStatus, Origin};

#[tokio::test]
async fn f42_h104_a_process_that_cannot_be_killed_is_said_to_be_alive_and_stays_visible() {
    let tree = tempfile::tempdir().unwrap();
    let launch = launch();
    let sleeper = Sleeper::of(&launch.id);
    let host = Host::new(HostOptions::default()).unwrap();
    let identity = host.inspect(sleeper.pid()).unwrap().identity;
    let machine = Arc::new(Machine { ignores_signals: true, ..Machine::new(host) });
    let app = app(tree.path(), machine.clone()).await;
    let (origin, process) = (Origin::Adopted, Some(identity.clone()));
    let bridge = Bridge { origin, process, launch: Some(launch), ..bridge(tree.path()) };
    let inserted = app.registry().store.insert(&bridge, Cap::default(), Still.now()).await.unwrap();
    assert_eq!(inserted, svc_store::Inserted::Yes);
    app.registry().fetch(&bridge.id).await.unwrap();

    let refused = app.bridges().stop(ID).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::StillLive, "{}", refused.message);
    assert!(refused.message.contains(&identity.pid.to_string()), "{}", refused.message);
    let held = app.copies().bridge(&bridge.id).unwrap();
    assert_eq!(held.quarantine, Some(QuarantineCode::Unkillable));
    assert!(held.is_live() && held.intentional_stop());
    assert_eq!(held.status(), BridgeStatus::Running);

    // Asked again, it is still said, and nobody waits for ever.
    let again = app.bridges().stop(ID).await.unwrap_err();
    assert!(matches!(again.code, ErrorCode::StillLive | ErrorCode::Quarantined), "{again:?}");
    assert_eq!(machine.probe(&identity), Verdict::Same);

    // At last it is gone: what was asked for has happened, and it is no crash.
    let _supervisor = app.supervise().await.unwrap();
    let mut changes = app.copies().changes();
    drop(sleeper);
    let ended = async {
        loop {
            let now = app.copies().bridge(&bridge.id).unwrap();
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
