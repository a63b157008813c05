//! Reading the history back.

use crate::support::*;
use svc_domain::effect::History;
use svc_shared::Timestamp;
use svc_shared::status::{ExitReason, ResumeMode};
use svc_store::{HistoryFilter, HistoryMode, HistoryRow, Saved, Store};

fn event(number: u32, project: &str, kind: History, at: i64) -> HistoryRow {
    HistoryRow {
        project: project.parse().unwrap(),
        instance_id: id(number),
        mode: HistoryMode::Bridge(ResumeMode::Standard),
        kind,
        at: Timestamp::from_millis(at),
        session_ref: None,
        exit_reason: (kind == History::Crashed).then_some(ExitReason::DiedUnsupervised),
        detail: None,
    }
}

/// Two projects: `api` with three events, `web` with one.
async fn filled(store: &Store) {
    for (number, project) in [(1, "api"), (2, "web")] {
        add(store, &bridge(number, project, stopped())).await;
    }
    let events = [
        event(1, "api", History::Spawned, 10),
        event(2, "web", History::Spawned, 40),
        event(1, "api", History::Ready, 30),
        event(1, "api", History::Crashed, 20),
    ];
    let row = bridge(1, "api", stopped());
    assert_eq!(store.save(1, &row, &events, NO_CAP, now()).await.unwrap(), Saved::Yes(2));
}

async fn ids(store: &Store, filter: HistoryFilter) -> Vec<i64> {
    store.history(&filter).await.unwrap().iter().map(|event| event.id).collect()
}

#[tokio::test]
async fn the_history_is_read_newest_first_in_parts_and_filtered() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    filled(&store).await;
    let all = HistoryFilter { limit: 500, ..HistoryFilter::default() };
    assert_eq!(ids(&store, all.clone()).await, [4, 3, 2, 1]);
    assert_eq!(ids(&store, HistoryFilter { limit: 2, ..all.clone() }).await, [4, 3]);
    assert_eq!(ids(&store, HistoryFilter { before: Some(3), ..all.clone() }).await, [2, 1]);
    let of_web = HistoryFilter { project: Some("web".into()), ..all.clone() };
    assert_eq!(ids(&store, of_web).await, [2]);
    let of_one = HistoryFilter { instance: Some(id(1).to_string()), ..all.clone() };
    assert_eq!(ids(&store, of_one).await, [4, 3, 1]);
    let neither = HistoryFilter { project: Some("x\' OR 1=1 --".into()), ..all.clone() };
    assert!(ids(&store, neither).await.is_empty());

    let newest = store.history(&all).await.unwrap().remove(0);
    assert_eq!((newest.kind.as_str(), newest.at), ("crashed", 20));
    assert_eq!(newest.exit_reason.as_deref(), Some("died_unsupervised"));
}

#[tokio::test]
async fn a_project_was_last_used_when_its_latest_event_happened() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    assert!(store.last_used().await.unwrap().is_empty());
    filled(&store).await;
    let used = store.last_used().await.unwrap();
    let at = |name: &str| used[name].as_millis();
    // By time, not by the order of writing.
    assert_eq!((at("api"), at("web"), used.len()), (30, 40, 2));
}
