//! What is left of a bridge in the memory of the service when the bridge is over.

use super::*;
use crate::bench::{Sleeper, Still, app, bridge};
use std::sync::Arc;
use std::time::Duration;
use svc_domain::bridge::Launch;
use svc_ports::{Clock as _, ProcessHost as _};
use svc_process::{Host, HostOptions};
use svc_store::{Cap, Inserted};

/// Waits until the row fits; it is `None` when it is gone.
async fn until(app: &App, id: &InstanceId, fits: impl Fn(Option<&Bridge>) -> bool) {
    let mut changes = app.registry().changes();
    let seen = async {
        while !fits(app.known(id).as_ref()) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), seen).await.unwrap();
}

#[tokio::test]
async fn h130_nothing_is_remembered_of_a_bridge_that_ended_and_was_forgotten() {
    let tree = tempfile::tempdir().unwrap();
    let host = Host::new(HostOptions::default()).unwrap();
    let sleeper = Sleeper::new();
    let process = host.inspect(sleeper.pid()).unwrap().identity;
    let app = app(tree.path(), Arc::new(host)).await;
    let launch = Launch {
        id: crate::launch::new_launch_id().unwrap(),
        argv: ["claude"].into_iter().collect(),
        log_stem: "api-7-1".to_owned(),
        relaunched: false,
    };
    let bridge =
        Bridge { launch: Some(launch.clone()), process: Some(process), ..bridge(tree.path()) };
    let inserted = app.store().insert(&bridge, Cap::default(), Still.now()).await.unwrap();
    assert_eq!(inserted, Inserted::Yes);
    app.own(&bridge.id, &launch.id);
    let _supervisor = app.supervise().await.unwrap();
    let watchers = app.watchers();
    assert!(watchers.owns(&bridge) && watchers.watches(&bridge.id, 1));

    let task = lock(&watchers.tasks).get(&bridge.id).map(|watching| watching.task.clone()).unwrap();
    drop(sleeper);
    until(&app, &bridge.id, |row| row.is_some_and(|row| !row.is_live())).await;
    tokio::time::timeout(Duration::from_secs(30), async {
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert!(lock(&watchers.tasks).is_empty(), "even a handle keeps the memory of its task");

    app.publish();
    assert!(lock(&watchers.own).is_empty());

    // Another process forgets it.
    let revision = app.store().bridge(&bridge.id).await.unwrap().unwrap().revision;
    assert!(app.store().delete(&bridge.id, revision).await.unwrap());
    app.wake().notify_one();
    until(&app, &bridge.id, |row| row.is_none()).await;
    app.publish();
    assert!(app.extras().knows_no_row());
    app.close().await;
}
