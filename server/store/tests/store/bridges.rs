//! Records: written as they are, by one writer at a time, within the limits.

use crate::support::*;
use std::collections::BTreeSet;
use svc_domain::bridge::{Anchor, Bridge, Ended, Live, Outcome, Stage, State};
use svc_domain::effect::{History, Lifecycle};
use svc_shared::Timestamp;
use svc_shared::status::{
    ExitReason, Origin, PermissionMode, QuarantineCode, ResumeMode, SpawnMode,
};
use svc_store::{
    Access, Along, Cap, Content, HistoryMode, HistoryRow, Inserted, Saved, Store, StoreError,
};

fn states() -> Vec<State> {
    let mut states = Vec::new();
    for deadline in [None, Some(now())] {
        for stage in [Stage::Launching { deadline }, Stage::Registering { deadline }, Stage::Ready]
        {
            for stop_requested in [false, true] {
                states.push(State::Live(Live { stage, stop_requested }));
            }
        }
    }
    for outcome in [Outcome::Stopped, Outcome::Crashed, Outcome::Failed] {
        for reason in ExitReason::ALL.iter().copied().map(Some).chain([None]) {
            for (intentional, forced) in [(false, false), (true, false), (true, true)] {
                states.push(State::Ended(Ended {
                    outcome,
                    at: now(),
                    intentional,
                    forced,
                    reason,
                    exit_code: reason.map(|_| -1),
                    exit_signal: forced.then_some(9),
                    detail: reason.map(|_| "last words\n\u{fffd}".repeat(100)),
                }));
            }
        }
    }
    states
}

/// One bridge for every state and every word, and one without optional values.
fn every_kind() -> Vec<Bridge> {
    let mut all: Vec<Bridge> = states()
        .into_iter()
        .zip(1..)
        .map(|(state, number)| bridge(number, &format!("p{number}"), state))
        .collect();
    let mut push = |change: &dyn Fn(&mut Bridge)| {
        let number = u32::try_from(all.len()).unwrap() + 1;
        let mut bridge = bridge(number, &format!("p{number}"), stopped());
        change(&mut bridge);
        all.push(bridge);
    };
    ResumeMode::ALL.iter().for_each(|word| push(&|bridge| bridge.resume_mode = *word));
    SpawnMode::ALL.iter().for_each(|word| push(&|bridge| bridge.spawn_mode = *word));
    PermissionMode::ALL.iter().for_each(|word| push(&|bridge| bridge.permission_mode = *word));
    Origin::ALL.iter().for_each(|word| push(&|bridge| bridge.origin = *word));
    QuarantineCode::ALL.iter().for_each(|word| push(&|bridge| bridge.quarantine = Some(*word)));
    push(&|bridge| {
        bridge.custom_name = None;
        bridge.started_at = None;
        bridge.launch = None;
        bridge.process = None;
        bridge.anchor = Anchor::default();
        bridge.notice = None;
        bridge.generation = u32::MAX;
        bridge.status_since = Timestamp::from_millis(-1);
    });
    all
}

#[tokio::test]
async fn every_state_and_word_is_read_as_it_was_written() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let written = every_kind();
    for bridge in &written {
        add(&store, bridge).await;
    }
    store.close().await;
    let rows = open(dir.path()).await.bridges().await.unwrap();
    let read: Vec<&Bridge> = rows.iter().filter_map(|row| row.bridge()).collect();
    assert_eq!(read, written.iter().collect::<Vec<_>>(), "in the order of registration");
}

#[tokio::test]
async fn every_state_can_follow_every_kind_of_state() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    let mut revision = 1;
    for state in states() {
        let next = bridge(1, "api", state);
        assert_eq!(save(&store, revision, &next).await, Saved::Yes(revision + 1));
        revision += 1;
        let row = stored(&store, 1).await;
        assert_eq!((row.revision, row.bridge()), (revision, Some(&next)));
    }
}

#[tokio::test]
async fn a_save_on_an_old_revision_changes_nothing() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    let first = bridge(1, "api", live(Stage::Ready));
    assert_eq!(save(&store, 1, &first).await, Saved::Yes(2));
    assert_eq!(save(&store, 1, &bridge(1, "api", stopped())).await, Saved::Stale);
    assert_eq!(stored(&store, 1).await.bridge(), Some(&first));
}

#[tokio::test]
async fn a_deleted_row_is_not_resurrected_by_a_save() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", stopped())).await;
    assert!(!store.delete(&id(1), 2).await.unwrap(), "another revision");
    assert!(store.delete(&id(1), 1).await.unwrap());
    assert!(!store.delete(&id(1), 1).await.unwrap(), "it is gone");
    assert_eq!(save(&store, 1, &bridge(1, "api", starting())).await, Saved::Stale);
    assert_eq!(store.bridges().await.unwrap(), []);
    assert_eq!(store.known_projects().await.unwrap(), ["api".parse().unwrap()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_concurrent_saves_on_one_revision_exactly_one_wins() {
    let dir = state_dir();
    // Two pools: opening twice stands for two processes.
    let stores = [open(dir.path()).await, open(dir.path()).await];
    add(&stores[0], &bridge(1, "api", stopped())).await;
    for revision in 1..=10 {
        let mut tasks = tokio::task::JoinSet::new();
        for (number, store) in stores.iter().cycle().take(16).enumerate() {
            let store = store.clone();
            tasks.spawn(async move {
                let mut next = bridge(1, "api", stopped());
                next.notice = Some(format!("{revision}/{number}"));
                (save(&store, revision, &next).await, next)
            });
        }
        let outcomes = tasks.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|(saved, _)| *saved == Saved::Yes(revision + 1));
        assert_eq!(won.len(), 1);
        assert!(lost.iter().all(|(saved, _)| *saved == Saved::Stale));
        assert_eq!(stored(&stores[1], 1).await.bridge(), Some(&won[0].1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h94_of_many_concurrent_inserts_one_server_mode_bridge_becomes_live() {
    let dir = state_dir();
    let stores = [open(dir.path()).await, open(dir.path()).await];
    let mut tasks = tokio::task::JoinSet::new();
    for (number, store) in (1..=20).zip(stores.iter().cycle()) {
        let store = store.clone();
        tasks.spawn(async move {
            store.insert(&bridge(number, "api", starting()), NO_CAP, now()).await.unwrap()
        });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Inserted::Yes).count(), 1);
    assert!(outcomes.iter().all(|o| matches!(o, Inserted::Yes | Inserted::Occupied)));
    assert_eq!(stores[0].bridges().await.unwrap().len(), 1);
}

#[tokio::test]
async fn h94_a_project_has_one_live_server_mode_bridge_but_any_number_of_others() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    add(&store, &bridge(2, "api", stopped())).await;
    add(&store, &bridge(3, "web", starting())).await;
    for number in 4..6 {
        let mut interactive = bridge(number, "api", starting());
        interactive.resume_mode = ResumeMode::Pty;
        add(&store, &interactive).await;
    }
    let occupied =
        store.insert(&bridge(6, "api", live(Stage::Ready)), NO_CAP, now()).await.unwrap();
    assert_eq!(occupied, Inserted::Occupied);
    assert_eq!(save(&store, 1, &bridge(2, "api", starting())).await, Saved::Occupied);
    assert_eq!(save(&store, 1, &bridge(1, "api", stopped())).await, Saved::Yes(2));
    assert_eq!(save(&store, 1, &bridge(2, "api", starting())).await, Saved::Yes(2));
}

#[tokio::test]
async fn h94_the_schema_itself_refuses_rows_that_break_the_rules() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    add(&store, &bridge(2, "api", stopped())).await;
    let mut connection = raw(dir.path()).await;
    for (sql, expected) in [
        ("UPDATE bridges SET instance_id = (SELECT MIN(instance_id) FROM bridges)", "UNIQUE"),
        (
            "UPDATE bridges SET status = 'running', phase = 'ready', ended_at = NULL \
             WHERE number = 2",
            "UNIQUE",
        ),
        ("UPDATE bridges SET status = 'gone'", "CHECK"),
        ("UPDATE bridges SET phase = 'stopping' WHERE number = 1", "CHECK"),
        ("UPDATE bridges SET phase = 'ready' WHERE number = 1", "CHECK"),
        ("UPDATE bridges SET status = 'running' WHERE number = 1", "CHECK"),
        ("UPDATE bridges SET phase = 'exited' WHERE number = 1", "CHECK"),
        ("UPDATE bridges SET phase = 'ready' WHERE number = 2", "CHECK"),
        ("UPDATE bridges SET ended_at = 5 WHERE number = 1", "CHECK"),
        ("UPDATE bridges SET ended_at = NULL WHERE number = 2", "CHECK"),
        ("UPDATE bridges SET revision = 0", "CHECK"),
        ("UPDATE bridges SET generation = 0", "CHECK"),
        ("UPDATE bridges SET stop_requested = 2", "CHECK"),
        ("UPDATE bridges SET bridge_pid = 'many'", "cannot store TEXT value in INTEGER column"),
        ("UPDATE bridges SET cwd = x'00'", "cannot store BLOB value in TEXT column"),
        ("UPDATE bridges SET cwd = NULL", "NOT NULL"),
        ("UPDATE bridges SET project = 'unheard of'", "FOREIGN KEY"),
    ] {
        let error = sqlx::raw_sql(sql).execute(&mut connection).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
    assert_eq!(stored(&store, 1).await.bridge(), Some(&bridge(1, "api", starting())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cap_is_exact_when_many_start_at_once() {
    let dir = state_dir();
    let stores = [open(dir.path()).await, open(dir.path()).await];
    let cap = Cap { max_live: Some(5) };
    let mut tasks = tokio::task::JoinSet::new();
    for (number, store) in (1..=20).zip(stores.iter().cycle()) {
        let store = store.clone();
        tasks.spawn(async move {
            let bridge = bridge(number, &format!("p{number}"), starting());
            store.insert(&bridge, cap, now()).await.unwrap()
        });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Inserted::Yes).count(), 5);
    assert_eq!(outcomes.iter().filter(|o| **o == Inserted::CapReached).count(), 15);
    assert_eq!(stores[0].bridges().await.unwrap().len(), 5);
}

#[tokio::test]
async fn the_cap_counts_what_would_be_live_and_nothing_else() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let cap = Cap { max_live: Some(1) };
    let insert = async |number, state| {
        let bridge = bridge(number, &format!("p{number}"), state);
        store.insert(&bridge, cap, now()).await.unwrap()
    };
    assert_eq!(insert(1, starting()).await, Inserted::Yes);
    assert_eq!(insert(2, stopped()).await, Inserted::Yes, "an ended row takes no place");
    assert_eq!(insert(3, starting()).await, Inserted::CapReached);
    // What is not there must not be known either.
    assert_eq!(store.known_projects().await.unwrap().len(), 2);
    let resume = async |revision, number, state| {
        let bridge = bridge(number, &format!("p{number}"), state);
        store.save(revision, &bridge, &[], cap, now()).await.unwrap()
    };
    assert_eq!(resume(1, 2, starting()).await, Saved::CapReached);
    assert_eq!(resume(9, 2, starting()).await, Saved::Stale, "look again before giving up");
    assert_eq!(resume(1, 1, live(Stage::Ready)).await, Saved::Yes(2), "it has its place");
    assert_eq!(resume(2, 1, stopped()).await, Saved::Yes(3));
    assert_eq!(resume(1, 2, starting()).await, Saved::Yes(2));
    // A cap below what is live stops nothing that does not start.
    let none = Cap { max_live: Some(0) };
    let ended = bridge(4, "p4", stopped());
    assert_eq!(store.insert(&ended, none, now()).await.unwrap(), Inserted::Yes);
    assert_eq!(store.save(1, &ended, &[], none, now()).await.unwrap(), Saved::Yes(2));
}

#[tokio::test]
async fn an_announcement_is_claimed_once_per_generation_and_event() {
    let dir = state_dir();
    let stores = [open(dir.path()).await, open(dir.path()).await];
    for (number, project) in [(1, "api"), (2, "web")] {
        add(&stores[0], &bridge(number, project, starting())).await;
    }
    let revisions = std::cell::RefCell::new([1, 1]);
    let claim = async |store: &Store, number: usize, generation, event| {
        let project = ["api", "web"][number - 1];
        let number = u32::try_from(number).unwrap();
        let next = Bridge { generation, ..bridge(number, project, starting()) };
        let revision = revisions.borrow()[number as usize - 1];
        revisions.borrow_mut()[number as usize - 1] += 1;
        claim_with(store, revision, &next, event).await
    };
    assert!(claim(&stores[0], 1, 1, Lifecycle::Stop).await);
    assert!(!claim(&stores[1], 1, 1, Lifecycle::Stop).await);
    assert!(claim(&stores[1], 1, 2, Lifecycle::Stop).await);
    for event in [Lifecycle::Spawn, Lifecycle::Ready, Lifecycle::Crash] {
        assert!(claim(&stores[1], 1, 1, event).await, "{event:?}");
    }
    assert!(claim(&stores[0], 2, 1, Lifecycle::Stop).await);
}

/// Saves a record with an announcement; tells whether that is the writer's to make.
async fn claim_with(store: &Store, revision: i64, next: &Bridge, event: Lifecycle) -> bool {
    let along = Along { announcements: &[event], ..Along::default() };
    let (saved, claimed) = store.save_with(revision, next, along, NO_CAP, now()).await.unwrap();
    assert_eq!(saved, Saved::Yes(revision + 1));
    claimed == [event]
}

/// Nothing is claimed by a change that was not made.
#[tokio::test]
async fn a_stale_save_claims_no_announcement() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let row = bridge(1, "api", starting());
    add(&store, &row).await;
    let along = Along { announcements: &[Lifecycle::Spawn], ..Along::default() };
    let stale = store.save_with(7, &row, along, NO_CAP, now()).await.unwrap();
    assert_eq!(stale, (Saved::Stale, Vec::new()));
    assert_eq!(count(dir.path(), "announcements").await, 0);
    assert!(claim_with(&store, 1, &row, Lifecycle::Spawn).await);
}

#[tokio::test]
async fn an_end_that_another_process_recorded_is_claimed_once() {
    let dir = state_dir();
    let stores = [open(dir.path()).await, open(dir.path()).await];
    let row = bridge(1, "api", starting());
    add(&stores[0], &row).await;
    let claim = async |store: &Store, id: &svc_shared::ids::InstanceId, event| {
        store.claim_announcement(id, 1, event, now()).await.unwrap()
    };
    assert!(claim(&stores[0], &row.id, Lifecycle::Stop).await);
    assert!(!claim(&stores[1], &row.id, Lifecycle::Stop).await);
    assert!(claim(&stores[1], &row.id, Lifecycle::Crash).await);
    // Nothing is left behind of a row that was forgotten meanwhile.
    let unknown = bridge(2, "web", starting());
    assert!(!claim(&stores[0], &unknown.id, Lifecycle::Stop).await);
    assert_eq!(count(dir.path(), "announcements").await, 2);
}

async fn count(dir: &std::path::Path, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    sqlx::query_scalar(&sql).fetch_one(&mut raw(dir).await).await.unwrap()
}

#[tokio::test]
async fn announcements_go_with_their_bridge_and_history_stays() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    add(&store, &bridge(2, "web", starting())).await;
    for (number, project) in [(1, "api"), (2, "web")] {
        let row = bridge(number, project, starting());
        assert!(claim_with(&store, 1, &row, Lifecycle::Spawn).await);
    }
    let history = [event(now())];
    let ended = bridge(1, "api", stopped());
    assert_eq!(store.save(2, &ended, &history, NO_CAP, now()).await.unwrap(), Saved::Yes(3));
    assert!(store.delete(&id(1), 3).await.unwrap());
    assert_eq!(count(dir.path(), "announcements").await, 1);
    assert_eq!(count(dir.path(), "session_events").await, 1);
    // Left by an earlier version just after the row was gone: swept later.
    let left =
        "INSERT INTO announcements (instance_id, generation, event, at) VALUES (?, 1, 'stop', 1)";
    sqlx::query(left).bind(id(1).as_str()).execute(&mut raw(dir.path()).await).await.unwrap();
    assert_eq!(count(dir.path(), "announcements").await, 2);
    store.prune_history(now()).await.unwrap();
    assert_eq!(count(dir.path(), "announcements").await, 1);
    assert_eq!(count(dir.path(), "session_events").await, 1);
}

fn event(at: Timestamp) -> HistoryRow {
    HistoryRow {
        project: "api".parse().unwrap(),
        instance_id: id(1),
        mode: HistoryMode::Bridge(ResumeMode::Standard),
        kind: History::Ended,
        at,
        session_ref: Some("0123456789abcdef".parse().unwrap()),
        exit_reason: Some(ExitReason::OperatorStop),
        detail: None,
    }
}

#[tokio::test]
async fn history_keeps_the_newest_ten_thousand_rows_of_the_last_year() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", stopped())).await;
    let day = 24 * 3600 * 1000;
    let old = Timestamp::from_millis(now().as_millis() - 365 * day - 1);
    let just = Timestamp::from_millis(now().as_millis() - 365 * day);
    let history: Vec<_> = [vec![event(old); 5], vec![event(just); 10_003]].concat();
    let ended = bridge(1, "api", stopped());
    assert_eq!(store.save(1, &ended, &history, NO_CAP, now()).await.unwrap(), Saved::Yes(2));
    // Numbers that are missing in between count for nothing.
    tamper(dir.path(), "UPDATE session_events SET id = id - 5000 WHERE id < 1000").await;
    assert_eq!(store.prune_history(now()).await.unwrap(), 8);
    assert_eq!(count(dir.path(), "session_events").await, 10_000);
    assert_eq!(store.prune_history(now()).await.unwrap(), 0);
    // A clock at the end of time is no reason to fail.
    assert_eq!(store.prune_history(Timestamp::from_millis(i64::MIN)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_history_that_cannot_be_written_takes_the_save_back() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    let mut unknown = event(now());
    unknown.project = "unheard".parse().unwrap();
    let ended = bridge(1, "api", stopped());
    let failed = store.save(1, &ended, &[event(now()), unknown], NO_CAP, now()).await;
    assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
    let row = stored(&store, 1).await;
    assert_eq!((row.revision, row.bridge()), (1, Some(&bridge(1, "api", starting()))));
    assert_eq!(count(dir.path(), "session_events").await, 0);
}

#[tokio::test]
async fn the_last_revision_is_refused_instead_of_wrapping() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", stopped())).await;
    tamper(dir.path(), &format!("UPDATE bridges SET revision = {}", i64::MAX)).await;
    let failed = store.save(i64::MAX, &bridge(1, "api", starting()), &[], NO_CAP, now()).await;
    assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
    assert_eq!(stored(&store, 1).await.bridge(), Some(&bridge(1, "api", stopped())));
}

#[tokio::test]
async fn a_path_that_is_not_text_is_refused_before_anything_is_written() {
    use std::os::unix::ffi::OsStringExt;
    let dir = state_dir();
    let store = open(dir.path()).await;
    let mut odd = bridge(1, "api", starting());
    odd.cwd = std::ffi::OsString::from_vec(b"/srv/\xff".to_vec()).into();
    let refused = store.insert(&odd, NO_CAP, now()).await;
    assert!(matches!(refused, Err(StoreError::PathNotText)), "{refused:?}");
    assert_eq!(store.known_projects().await.unwrap(), []);
}

#[tokio::test]
async fn numbers_of_deleted_rows_are_not_given_again() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let mut numbers = BTreeSet::new();
    for number in 1..=3 {
        add(&store, &bridge(number, "api", stopped())).await;
        let row = stored(&store, number).await;
        assert!(matches!(row.content, Content::Bridge(_)));
        assert!(numbers.insert(row.number));
        assert!(store.delete(&id(number), 1).await.unwrap());
    }
}

#[tokio::test]
async fn a_store_opened_for_reading_refuses_every_write() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", stopped())).await;
    store.close().await;
    drop(store);
    let reader = Store::open(dir.path(), Access::ReadOnly).await.unwrap();
    assert_eq!(reader.bridges().await.unwrap().len(), 1);
    let next = bridge(1, "api", starting());
    let refused = [
        reader.insert(&bridge(2, "web", stopped()), NO_CAP, now()).await.map(drop_value),
        reader.save(1, &next, &[], NO_CAP, now()).await.map(drop_value),
        reader.delete(&id(1), 1).await.map(drop_value),
        reader.save_with(1, &next, Along::default(), NO_CAP, now()).await.map(drop_value),
        reader.prune_history(now()).await.map(drop_value),
    ];
    for result in refused {
        assert!(matches!(result, Err(StoreError::ReadOnly(_))), "{result:?}");
    }
    assert_eq!(reader.bridges().await.unwrap().len(), 1);
}

fn drop_value<T>(_: T) {}

#[tokio::test]
async fn records_of_an_earlier_service_come_in_together_and_only_into_an_unused_registry() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    assert!(store.is_unused().await.unwrap());
    let both = [bridge(1, "api", stopped()), bridge(2, "web", stopped())];
    // One that cannot be recorded takes the others back.
    let twice = [both[0].clone(), both[0].clone()];
    assert!(store.import(&twice, now()).await.is_err());
    assert!(store.is_unused().await.unwrap());
    assert!(store.import(&both, now()).await.unwrap());
    assert_eq!(stored(&store, 2).await.bridge(), Some(&both[1]));
    assert!(!store.import(&[bridge(3, "late", stopped())], now()).await.unwrap());
    assert_eq!(store.bridges().await.unwrap().len(), 2);
    // What was forgotten does not come back from a file that was not put aside in time.
    for row in store.bridges().await.unwrap() {
        let id = &row.bridge().unwrap().id;
        assert!(store.delete(id, row.revision).await.unwrap());
    }
    assert!(store.bridges().await.unwrap().is_empty() && !store.is_unused().await.unwrap());
    assert!(!store.import(&both, now()).await.unwrap());
    assert!(store.bridges().await.unwrap().is_empty());
}
