//! Stream, snapshot and lists agree, whatever happens in between.

use super::*;
use proptest::prelude::*;
use std::time::Duration;
use svc_shared::events::Event;
use svc_shared::internal::StateAt;
use svc_shared::status::*;

fn instance(id: u8, status: BridgeStatus) -> Instance {
    let raw = format!("{id:08x}-0000-4000-8000-000000000000");
    serde_json::from_value(serde_json::json!({
        "instance_id": raw, "project": "api", "label": "api", "channel": "remote-control",
        "status": status, "resume_mode": "standard", "spawn_mode": "same-dir",
        "permission_mode": "default", "sandbox_mode": "default",
        "connect": {"available": false, "kind": null},
        "status_since": "2026-01-01T00:00:00.000Z", "generation": 1, "phase": "ready",
        "origin": "spawned",
        "restart": {"policy": "never", "state": "idle", "attempt": 0, "crashes_in_window": 0},
        "intentional_stop": false, "adopted": false, "is_orphan": false, "resumable": false,
        "has_log": false, "link": {"state": "unknown"}, "limit": null, "on_limit": "wait", "stranded": 0, "pending_permissions": [], "last_event_seq": 0
    }))
    .unwrap()
}

fn project(name: &str) -> (String, Project) {
    let project = serde_json::from_value(serde_json::json!({
        "name": name, "path": format!("/projects/{name}"), "is_git_repo": false,
        "has_claude_md": false, "has_claude_dir": false, "trust_state": "trusted",
        "allow_bypass_permissions": false
    }))
    .unwrap();
    (name.to_owned(), project)
}

async fn next(reader: &mut Subscription) -> EventFrame {
    let feed = tokio::time::timeout(Duration::from_secs(10), reader.next()).await.unwrap();
    let Feed::Frame(frame) = feed else { panic!("too slow") };
    serde_json::from_slice(&frame).unwrap()
}

async fn nothing_more(reader: &mut Subscription) -> bool {
    tokio::time::timeout(Duration::ZERO, reader.next()).await.is_err()
}

fn fold(state: &mut State, frame: EventFrame) {
    match frame {
        EventFrame::Snapshot { state: whole, .. } => *state = *whole,
        EventFrame::Delta { ops, .. } => ops.into_iter().for_each(|op| apply(state, op)),
        EventFrame::Hello { .. }
        | EventFrame::Sample { .. }
        | EventFrame::Event { .. }
        | EventFrame::Notice { .. }
        | EventFrame::Tick { .. }
        | EventFrame::Other => {}
    }
}

/// Shows exactly these, in this order.
fn show(model: &ReadModel, rows: Vec<Instance>) {
    let kept: BTreeSet<String> = rows.iter().map(|row| row.instance_id.to_string()).collect();
    let mut gone: Vec<String> = model.snapshot().state.instances.keys().cloned().collect();
    gone.retain(|id| !kept.contains(id));
    model.change_instances((1..).zip(rows).collect(), &gone);
}

fn document(model: &ReadModel) -> StateAt {
    serde_json::from_slice(&model.encoded(List::State).body).unwrap()
}

#[test]
fn pages_that_come_together_share_one_snapshot_and_the_state_in_it() {
    let model = ReadModel::new();
    show(&model, vec![instance(1, BridgeStatus::Running)]);
    let (_, first) = model.snapshot_frame("initial");
    let (_, second) = model.snapshot_frame("initial");
    assert_eq!(first.as_ptr(), second.as_ptr());
    let (_, asked) = model.snapshot_frame("requested");
    let frame: EventFrame = serde_json::from_slice(&asked).unwrap();
    let EventFrame::Snapshot { reason, state, .. } = frame else { panic!() };
    assert_eq!((reason.as_str(), *state), ("requested", document(&model).state));
    show(&model, vec![instance(1, BridgeStatus::Stopped)]);
    let (_, changed) = model.snapshot_frame("requested");
    assert_ne!(asked, changed);
}

#[tokio::test]
async fn a_new_reader_gets_hello_then_the_whole_state_then_each_change() {
    let model = ReadModel::new();
    show(&model, vec![instance(1, BridgeStatus::Starting)]);
    let mut reader = model.subscribe(None);
    let EventFrame::Hello { boot, seq, resumed, v, .. } = next(&mut reader).await else { panic!() };
    assert_eq!((boot.as_str(), seq, resumed, v), (model.boot(), 1, false, 1));
    let EventFrame::Snapshot { seq, reason, state } = next(&mut reader).await else { panic!() };
    assert_eq!((seq, reason.as_str(), state.instances.len()), (1, "initial", 1));
    assert_eq!(state.counts["starting"], 1);
    assert!(nothing_more(&mut reader).await);

    show(&model, vec![instance(1, BridgeStatus::Running)]);
    let EventFrame::Delta { seq, ops, .. } = next(&mut reader).await else { panic!() };
    assert_eq!((seq, ops.len()), (2, 1));
}

#[tokio::test]
async fn a_record_that_did_not_change_is_not_sent() {
    let model = ReadModel::new();
    model.replace_projects([project("b"), project("a")].into());
    let before = model.head();
    model.replace_projects([project("b"), project("a")].into());
    model.put(vec![("a".into(), Record::Project(project("a").1.into()))]);
    model.remove("project", "never-there");
    model.replace_external(BTreeMap::new());
    assert_eq!(model.head(), before);
}

#[tokio::test]
async fn a_reader_that_comes_back_gets_exactly_what_it_missed() {
    let model = ReadModel::new();
    model.replace_adoptable(["a".to_owned()]);
    let seen = document(&model).seq;
    model.replace_adoptable(["a".to_owned(), "b".to_owned()]);
    model.replace_adoptable(["b".to_owned()]);
    let mut reader = model.subscribe(Some((model.boot().into(), seen)));
    let EventFrame::Hello { resumed, .. } = next(&mut reader).await else { panic!() };
    assert!(resumed);
    for expected in seen + 1..=model.head() {
        let EventFrame::Delta { seq, .. } = next(&mut reader).await else { panic!() };
        assert_eq!(seq, expected);
    }
    assert!(nothing_more(&mut reader).await);
}

#[tokio::test]
async fn an_unknown_position_gets_a_snapshot_that_says_why() {
    let model = ReadModel::new();
    model.replace_adoptable(["a".to_owned()]);
    for (since, why) in
        [(("0123456789abcdef".to_owned(), 1), "boot"), ((model.boot().to_owned(), 99), "gap")]
    {
        let mut reader = model.subscribe(Some(since));
        let EventFrame::Hello { resumed: false, .. } = next(&mut reader).await else { panic!() };
        let EventFrame::Snapshot { reason, .. } = next(&mut reader).await else { panic!() };
        assert_eq!(reason, why);
    }
    for i in 0..9000 {
        model.replace_adoptable([format!("p{i}")]);
    }
    let mut reader = model.subscribe(Some((model.boot().to_owned(), 1)));
    next(&mut reader).await;
    let EventFrame::Snapshot { reason, .. } = next(&mut reader).await else { panic!() };
    assert_eq!(reason, "gap");
}

#[tokio::test]
async fn the_last_4096_changes_can_be_caught_up_with() {
    let model = ReadModel::new();
    document(&model);
    for i in 0..5000 {
        model.replace_adoptable([format!("p{i}")]);
    }
    let seen = model.head() - 4096;
    let mut reader = model.subscribe(Some((model.boot().to_owned(), seen)));
    let EventFrame::Hello { resumed: true, .. } = next(&mut reader).await else { panic!() };
    for expected in seen + 1..=model.head() {
        let EventFrame::Delta { seq, .. } = next(&mut reader).await else { panic!() };
        assert_eq!(seq, expected);
    }
}

#[tokio::test]
async fn a_reader_that_falls_behind_twice_is_sent_away() {
    let model = ReadModel::new();
    let mut reader = model.subscribe(None);
    next(&mut reader).await;
    next(&mut reader).await;
    let burst = |name: &str| {
        for i in 0..5000 {
            model.replace_adoptable([format!("{name}{i}")]);
        }
    };
    burst("a");
    let EventFrame::Snapshot { reason, seq, .. } = next(&mut reader).await else { panic!() };
    assert_eq!((reason.as_str(), seq), ("overflow", model.head()));
    burst("b");
    assert_eq!(reader.next().await, Feed::TooSlow);
}

#[tokio::test]
async fn a_burst_of_its_own_size_does_not_count_against_a_current_reader() {
    let model = ReadModel::new();
    let mut reader = model.subscribe(None);
    next(&mut reader).await;
    next(&mut reader).await;
    for name in ["a", "b", "c"] {
        assert!(nothing_more(&mut reader).await);
        for i in 0..5000 {
            model.replace_adoptable([format!("{name}{i}")]);
        }
        let EventFrame::Snapshot { .. } = next(&mut reader).await else { panic!() };
    }
}

#[tokio::test]
async fn a_snapshot_can_be_asked_for_once_a_second() {
    let model = ReadModel::new();
    let mut reader = model.subscribe(None);
    next(&mut reader).await;
    next(&mut reader).await;
    reader.request_snapshot();
    let EventFrame::Snapshot { reason, .. } = next(&mut reader).await else { panic!() };
    assert_eq!(reason, "requested");
    reader.request_snapshot();
    assert!(nothing_more(&mut reader).await);
}

#[tokio::test]
async fn a_toast_reaches_who_listens_and_is_not_kept() {
    let model = ReadModel::new();
    let mut reader = model.subscribe(None);
    next(&mut reader).await;
    next(&mut reader).await;
    model.happened(&Event::clone_done("api".into(), "done".into(), None));
    let EventFrame::Event { name, .. } = next(&mut reader).await else { panic!() };
    assert_eq!(name, "clone-done");
    let mut late = model.subscribe(None);
    next(&mut late).await;
    next(&mut late).await;
    assert!(nothing_more(&mut late).await);
}

#[test]
fn a_list_is_encoded_once_per_change_of_it() {
    let model = ReadModel::new();
    show(&model, vec![instance(2, BridgeStatus::Running), instance(1, BridgeStatus::Stopped)]);
    let first = model.encoded(List::Instances);
    model.replace_projects([project("a")].into());
    assert!(Arc::ptr_eq(&first, &model.encoded(List::Instances)));
    let ids: Vec<Instance> = serde_json::from_slice(&first.body).unwrap();
    assert_eq!(ids[0].instance_id.short(), "00000002", "registration order, not id order");

    model.put(vec![(
        instance(3, BridgeStatus::Starting).instance_id.to_string(),
        Record::Instance(instance(3, BridgeStatus::Starting).into()),
    )]);
    let second = model.encoded(List::Instances);
    assert_ne!(first.etag, second.etag);
    let ids: Vec<Instance> = serde_json::from_slice(&second.body).unwrap();
    assert_eq!(ids[2].instance_id.short(), "00000003");
}

#[test]
fn an_encoded_list_is_let_go_when_nobody_asked_for_it_between_two_looks() {
    let model = ReadModel::new();
    show(&model, vec![instance(1, BridgeStatus::Running)]);
    let first = model.encoded(List::Instances);
    model.rest();
    assert!(Arc::ptr_eq(&first, &model.encoded(List::Instances)), "it is in use");
    model.rest();
    model.rest();
    assert!(model.cached(List::Instances).is_none());
    let again = model.encoded(List::Instances);
    assert_eq!((&again.body, &again.etag), (&first.body, &first.etag), "the tag still holds");
}

#[tokio::test]
async fn who_read_a_state_can_follow_it_though_nobody_listened_before() {
    let model = ReadModel::new();
    show(&model, vec![instance(1, BridgeStatus::Starting)]);
    let read = document(&model);
    show(&model, vec![instance(1, BridgeStatus::Running)]);
    let mut reader = model.subscribe(Some((read.boot, read.seq)));
    let EventFrame::Hello { resumed, .. } = next(&mut reader).await else { panic!() };
    let EventFrame::Delta { seq, .. } = next(&mut reader).await else { panic!() };
    assert_eq!((resumed, seq), (true, read.seq + 1));
}

#[test]
fn a_new_order_alone_changes_the_list() {
    let model = ReadModel::new();
    let (one, two) = (instance(1, BridgeStatus::Stopped), instance(2, BridgeStatus::Stopped));
    show(&model, vec![one.clone(), two.clone()]);
    let before = model.encoded(List::Instances);
    show(&model, vec![two, one]);
    assert_ne!(before.etag, model.encoded(List::Instances).etag);
}

#[test]
fn an_instance_that_is_seen_late_stands_where_it_was_registered() {
    let model = ReadModel::new();
    let row = |id| instance(id, BridgeStatus::Stopped);
    model.change_instances(vec![(7, row(1)), (3, row(2))], &[]);
    model.change_instances(vec![(5, row(3))], &[]);
    // A place that was left can be taken at the same moment.
    let left = row(1).instance_id.to_string();
    model.change_instances(vec![(7, row(4))], &[left]);
    let ids: Vec<String> =
        model.snapshot().instances().map(|row| row.instance_id.short().to_owned()).collect();
    assert_eq!(ids, ["00000002", "00000003", "00000004"]);
}

#[test]
fn projects_are_listed_without_regard_to_case() {
    let model = ReadModel::new();
    model.replace_projects([project("b"), project("A"), project("a"), project("Z")].into());
    let list: Vec<Project> = serde_json::from_slice(&model.encoded(List::Projects).body).unwrap();
    let names: Vec<&str> = list.iter().map(|project| project.name.as_str()).collect();
    assert_eq!(names, ["A", "a", "b", "Z"]);
}

#[tokio::test]
async fn h126_thousands_of_records_arrive_in_frames_of_bounded_size() {
    let model = ReadModel::new();
    let mut reader = model.subscribe(Some((model.boot().to_owned(), 0)));
    next(&mut reader).await;
    model.replace_projects((0..2000).map(|i| project(&format!("p{i}"))).collect());
    let mut state = State::default();
    assert!(model.head() > 1);
    for _ in 0..model.head() {
        let frame = next(&mut reader).await;
        fold(&mut state, frame);
    }
    assert_eq!(state.projects.len(), 2000);
}

#[derive(Debug, Clone)]
enum Write {
    Instances(Vec<(u8, u8)>),
    Put(u8, u8),
    Forget(u8),
    Projects(Vec<u8>),
    Adoptable(Vec<u8>),
    Read,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let ids = || prop::collection::vec(0..6u8, 0..5);
    let write = prop_oneof![
        prop::collection::vec((0..6u8, 0..6u8), 0..5).prop_map(Write::Instances),
        (0..6u8, 0..6u8).prop_map(|(id, status)| Write::Put(id, status)),
        (0..6u8).prop_map(Write::Forget),
        ids().prop_map(Write::Projects),
        ids().prop_map(Write::Adoptable),
        Just(Write::Read),
    ];
    prop::collection::vec(write, 0..30)
}

fn status(n: u8) -> BridgeStatus {
    BridgeStatus::ALL[usize::from(n)]
}

async fn check_fold(writes: Vec<Write>) {
    let model = ReadModel::new();
    let mut reader = model.subscribe(None);
    let mut folded = State::default();
    for write in writes {
        match write {
            Write::Instances(rows) => {
                let rows: BTreeMap<u8, u8> = rows.into_iter().collect();
                show(&model, rows.into_iter().map(|(id, s)| instance(id, status(s))).collect());
            }
            Write::Put(id, s) => {
                let row = instance(id, status(s));
                let id = row.instance_id.to_string();
                model.put(vec![(id, Record::Instance(row.into()))]);
            }
            Write::Forget(id) => {
                model.remove("instance", instance(id, status(0)).instance_id.as_str());
            }
            Write::Projects(names) => model
                .replace_projects(names.into_iter().map(|n| project(&format!("p{n}"))).collect()),
            Write::Adoptable(names) => {
                model.replace_adoptable(names.into_iter().map(|n| n.to_string()));
            }
            Write::Read => {
                while let Ok(Feed::Frame(frame)) =
                    tokio::time::timeout(Duration::ZERO, reader.next()).await
                {
                    fold(&mut folded, serde_json::from_slice(&frame).unwrap());
                }
                assert_eq!(folded, document(&model).state);
                assert_eq!(folded.counts, counts(folded.instances.values().map(AsRef::as_ref)));
                let listed: BTreeSet<String> =
                    model.snapshot().instances().map(|i| i.instance_id.to_string()).collect();
                assert!(listed.iter().eq(folded.instances.keys()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn folding_the_stream_gives_the_state_document(writes in writes()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(check_fold(writes));
    }
}

#[tokio::test]
async fn samples_reach_only_readers_that_want_them_and_are_not_made_for_nobody() {
    let model = ReadModel::new();
    let unread = || -> BTreeMap<String, Metrics> { panic!("nobody reads it") };
    model.sampled(now(), unread);
    let mut reader = model.subscribe(None);
    assert!(matches!(next(&mut reader).await, EventFrame::Hello { .. }));
    assert!(matches!(next(&mut reader).await, EventFrame::Snapshot { .. }));
    let used = Metrics {
        running: true,
        procs: 2,
        cpu_percent: 12.5,
        cpu_normalized: false,
        rss_bytes: 4096,
        disk_read_bps: None,
        disk_write_bps: Some(0),
    };
    let one = || BTreeMap::from([("a".to_owned(), used.clone())]);
    model.sampled(now(), one);
    let EventFrame::Sample { metrics, .. } = next(&mut reader).await else { panic!() };
    assert_eq!(metrics["a"], used);

    reader.want_samples(false);
    model.sampled(now(), unread);
    assert!(nothing_more(&mut reader).await);
    reader.want_samples(true);
    model.sampled(now(), one);
    assert!(matches!(next(&mut reader).await, EventFrame::Sample { .. }));
    // Missed samples are no reason to stop reading.
    (0..9).for_each(|_| model.sampled(now(), one));
    assert!(matches!(next(&mut reader).await, EventFrame::Sample { .. }));
}
