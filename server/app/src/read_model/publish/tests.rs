//! What readers see of a row's neighbours when the row changes.

use crate::App;
use crate::bench::{Machine, Sleeper, Still, app, bridge};
use crate::read_model::Feed;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::bridge::{Bridge, Ended, Outcome, State};
use svc_ports::{Clock as _, ProcessHost as _};
use svc_process::{Host, HostOptions};
use svc_shared::status::ResumeBlocked;
use svc_store::{Content, Stored};

fn row(number: i64, revision: i64, bridge: Bridge) -> Stored {
    let id = format!("b0000000-0000-4000-8000-{number:012}").parse().unwrap();
    Stored {
        number,
        revision,
        stranded: 0,
        content: Content::Bridge(Box::new(Bridge { id, ..bridge })),
    }
}

fn ended(tree: &Path) -> Bridge {
    let state = State::Ended(Ended {
        outcome: Outcome::Stopped,
        at: Still.now(),
        intentional: true,
        forced: false,
        reason: None,
        exit_code: None,
        exit_signal: None,
        detail: None,
    });
    Bridge { state, ..bridge(tree) }
}

/// A service whose project has so many ended rows, all of them shown.
async fn with_history(tree: &Path, rows: i64) -> App {
    let app = app(tree, Arc::new(Host::new(HostOptions::default()).unwrap())).await;
    for number in 1..=rows {
        app.copies().learn(row(number, 1, ended(tree)));
    }
    app.registry().publish().await;
    assert_eq!(blocked_by_a_live_one(&app), 0);
    app
}

fn blocked_by_a_live_one(app: &App) -> usize {
    let all = app.read_model().snapshot();
    let blocked =
        |why: &svc_shared::Word<ResumeBlocked>| why.is(&ResumeBlocked::StandardAlreadyLive);
    all.instances().filter(|shown| shown.resume_blocked.as_ref().is_some_and(blocked)).count()
}

#[tokio::test]
async fn a_start_and_an_end_show_at_once_what_may_be_resumed_beside_them() {
    let tree = tempfile::tempdir().unwrap();
    let app = with_history(tree.path(), 3).await;
    app.copies().learn(row(9, 1, bridge(tree.path())));
    app.registry().publish().await;
    assert_eq!(blocked_by_a_live_one(&app), 3);
    app.copies().learn(row(9, 2, ended(tree.path())));
    app.registry().publish().await;
    assert_eq!(blocked_by_a_live_one(&app), 0);
    app.close().await;
}

#[tokio::test]
async fn a_change_that_moves_no_neighbour_shows_one_row() {
    let tree = tempfile::tempdir().unwrap();
    let app = with_history(tree.path(), 3).await;
    app.copies().learn(row(9, 1, bridge(tree.path())));
    app.registry().publish().await;
    let told = Bridge { notice: Some("something".into()), ..bridge(tree.path()) };
    app.copies().learn(row(9, 2, told));
    let part = app.copies().take_changed().unwrap();
    assert_eq!(part.rows.iter().map(|row| row.number).collect::<Vec<_>>(), [9]);
    assert!(app.copies().take_changed().is_none());
    app.close().await;
}

#[tokio::test]
async fn a_long_history_follows_its_live_row() {
    let tree = tempfile::tempdir().unwrap();
    let app = with_history(tree.path(), 300).await;
    let mut page = app.read_model().subscribe(None);
    app.copies().learn(row(999, 1, bridge(tree.path())));
    app.registry().publish().await;
    let live = app.read_model().snapshot().instances().last().unwrap().instance_id.to_string();
    assert!(live.ends_with("999"), "the row itself is shown at once: {live}");
    let followed = async {
        while blocked_by_a_live_one(&app) < 300 {
            assert!(matches!(page.next().await, Feed::Frame(_)));
        }
    };
    tokio::time::timeout(Duration::from_secs(30), followed).await.unwrap();
    app.close().await;
}

#[tokio::test]
async fn files_and_processes_are_read_away_from_the_threads_that_serve_requests() {
    let tree = tempfile::tempdir().unwrap();
    let sleeper = Sleeper::new();
    let host = Host::new(HostOptions::default()).unwrap();
    let process = host.inspect(sleeper.pid()).unwrap().identity;
    let machine = Arc::new(Machine::new(host));
    let app = app(tree.path(), machine.clone()).await;
    let bridge = Bridge { process: Some(process), ..bridge(tree.path()) };
    app.copies().learn(row(1, 1, bridge));
    app.registry().publish().await;
    let shown = app.read_model().snapshot();
    assert_eq!(shown.instances().count(), 1);
    // The runtime of this test has one thread: this one.
    let threads = machine.inspected_on.lock().unwrap().clone();
    assert!(!threads.is_empty() && !threads.contains(&std::thread::current().id()), "{threads:?}");
    app.close().await;
}
