//! What is left of a bridge in the memory of the service when the bridge is over.

use super::bridge_watch::on_ready;
use super::watchers::lock;
use crate::App;
use crate::bench::{Sleeper, Still, app, bridge, launch};
use std::sync::Arc;
use std::time::Duration;

use svc_domain::bridge::{Anchor, Bridge};
use svc_ports::{Clock as _, ProcessHost as _};
use svc_process::{Host, HostOptions};
use svc_shared::ids::InstanceId;
use svc_store::{Access, Cap, Content, Inserted, Saved, Store, Stored};

/// Waits until the row fits; it is `None` when it is gone.
async fn until(app: &App, id: &InstanceId, fits: impl Fn(Option<&Bridge>) -> bool) {
    let mut changes = app.copies().changes();
    let seen = async {
        while !fits(app.copies().bridge(id).as_ref()) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), seen).await.unwrap();
}

/// The registry as another process has it open.
async fn another(app: &App) -> Store {
    let dir = app.registry().store.path().parent().unwrap();
    Store::open(dir, Access::ReadWrite { snapshot: false }).await.unwrap()
}

#[tokio::test]
async fn a_row_that_was_written_here_and_not_taken_over_is_found_by_the_tick() {
    let tree = tempfile::tempdir().unwrap();
    let app = app(tree.path(), Arc::new(Host::new(HostOptions::default()).unwrap())).await;
    let _supervisor = app.supervise().await.unwrap();
    // The first may be found by the tick that comes at once, the second by a later one only.
    for number in 1..=2 {
        let mut bridge = bridge(tree.path());
        bridge.id = format!("b0000000-0000-4000-8000-00000000000{number}").parse().unwrap();
        bridge.project = format!("p{number}").parse().unwrap();
        // As by a request that was given up between the write and what follows it.
        let inserted =
            app.registry().store.insert(&bridge, Cap::default(), Still.now()).await.unwrap();
        assert_eq!(inserted, Inserted::Yes);
        until(&app, &bridge.id, |row| row.is_some()).await;
    }
    app.close().await;
}

/// Whether nobody else has written since the rows were read.
/// A busy machine may keep the connection that tells longer than is waited for it.
async fn is_current(app: &App) -> bool {
    let asked = async {
        loop {
            if let Some(others) = app.registry().store.foreign_writes().await {
                return app.copies().has_seen(Some(others));
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap()
}

async fn read(app: &App) {
    let read = async {
        while !is_current(app).await {
            app.registry().live().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), read).await.unwrap();
}

/// Waits until the reconciler would be woken, and takes that away.
async fn woken(app: &App) {
    tokio::time::timeout(Duration::from_secs(60), app.registry().wake.notified()).await.unwrap();
}

#[tokio::test]
async fn rows_are_read_again_when_others_wrote_and_only_then() {
    let tree = tempfile::tempdir().unwrap();
    let app = app(tree.path(), Arc::new(Host::new(HostOptions::default()).unwrap())).await;
    assert!(!is_current(&app).await, "nothing was read yet");
    read(&app).await;
    woken(&app).await;

    let mut row = bridge(tree.path());
    assert_eq!(
        app.registry().store.insert(&row, Cap::default(), Still.now()).await.unwrap(),
        Inserted::Yes
    );
    app.registry().fetch(&row.id).await.unwrap();
    assert!(is_current(&app).await, "it knows what it wrote itself");

    let other = another(&app).await;
    row.custom_name = Some("theirs".to_owned());
    let saved = other.save(1, &row, &[], Cap::default(), Still.now()).await.unwrap();
    assert_eq!(saved, Saved::Yes(2));
    assert!(!is_current(&app).await && app.registry().have_others_written().await);
    // Who looks at a single row learns it without a word to anybody else.
    app.registry().fetch(&row.id).await.unwrap();
    assert_eq!(app.copies().bridge(&row.id).unwrap().custom_name.as_deref(), Some("theirs"));
    read(&app).await;
    // The reconciler hears of it all the same: their bridge is to be watched.
    woken(&app).await;
}

#[tokio::test]
async fn a_reading_that_may_have_brought_back_what_went_is_not_believed() {
    let tree = tempfile::tempdir().unwrap();
    let app = app(tree.path(), Arc::new(Host::new(HostOptions::default()).unwrap())).await;
    read(&app).await;
    let registry = app.copies();
    let reading = registry.begin_reading();
    let others = app.registry().store.foreign_writes().await;
    registry.forget(&bridge(tree.path()).id);
    registry.end_reading(reading, others);
    assert!(!is_current(&app).await);
}

#[tokio::test]
async fn h111_a_bridge_found_ready_again_needs_no_database() {
    let tree = tempfile::tempdir().unwrap();
    let host = Host::new(HostOptions::default()).unwrap();
    let sleeper = Sleeper::new();
    let identity = host.inspect(sleeper.pid()).unwrap().identity;
    let app = app(tree.path(), Arc::new(host)).await;
    let anchor = Anchor { session_id: Some("session_1".into()), ..Anchor::default() };
    let running = Bridge { process: Some(identity.clone()), anchor, ..bridge(tree.path()) };
    let content = Content::Bridge(Box::new(running.clone()));
    app.copies().learn(Stored { number: 1, revision: 1, stranded: 0, content });
    // A hundred of them would wait for one another behind a slow disk, and some in vain.
    app.registry().store.close().await;
    let watchers = &app.supervision().reconciler.watchers;
    on_ready(watchers, &running, &identity, Anchor::default()).await.unwrap();
    assert_eq!(app.copies().bridge(&running.id), Some(running));
}

#[tokio::test]
async fn h130_nothing_is_remembered_of_a_bridge_that_ended_and_was_forgotten() {
    let tree = tempfile::tempdir().unwrap();
    let host = Host::new(HostOptions::default()).unwrap();
    let sleeper = Sleeper::new();
    let process = host.inspect(sleeper.pid()).unwrap().identity;
    let app = app(tree.path(), Arc::new(host)).await;
    let launch = launch();
    let bridge =
        Bridge { launch: Some(launch.clone()), process: Some(process), ..bridge(tree.path()) };
    let inserted = app.registry().store.insert(&bridge, Cap::default(), Still.now()).await.unwrap();
    assert_eq!(inserted, Inserted::Yes);
    app.copies().own(&bridge.id, &launch.id);
    let _supervisor = app.supervise().await.unwrap();
    let watchers = &app.supervision().reconciler.watchers;
    assert!(app.copies().owns(&bridge) && watchers.watches(&bridge.id, 1));

    let task = lock(&watchers.watched.tasks)
        .get(&bridge.id)
        .map(|watching| watching.task.clone())
        .unwrap();
    drop(sleeper);
    until(&app, &bridge.id, |row| row.is_some_and(|row| !row.is_live())).await;
    tokio::time::timeout(Duration::from_secs(60), async {
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert!(lock(&watchers.watched.tasks).is_empty(), "even a handle keeps the memory of its task");

    app.registry().publish().await;
    assert!(app.copies().owns_nothing());

    let other = another(&app).await;
    let revision = other.bridge(&bridge.id).await.unwrap().unwrap().revision;
    assert!(other.delete(&bridge.id, revision).await.unwrap());
    until(&app, &bridge.id, |row| row.is_none()).await;
    app.registry().publish().await;
    assert!(app.registry().publisher.as_ref().unwrap().records.facts.knows_no_row());
    app.close().await;
}
