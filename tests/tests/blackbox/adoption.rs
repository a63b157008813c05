//! Bridges that run without a record: taken over on request, found again when they are ours,
//! otherwise left alone.

use crate::harness::{World, gone, simulator};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

/// Starts an agent as a person would in a terminal.
fn by_hand(world: &World, project: &str, args: &[&str]) -> tokio::process::Child {
    let mut agent = tokio::process::Command::new(simulator());
    agent
        .args(args)
        .current_dir(world.projects.join(project))
        .env_clear()
        .envs(world.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    agent.spawn().expect("the simulator runs")
}

async fn bridge_by_hand(world: &World, project: &str, log: &str) -> tokio::process::Child {
    let log = world.root.join(log);
    let path = log.to_string_lossy().into_owned();
    let args =
        ["remote-control", "--name", "Mine", "--spawn", "same-dir", "--debug-file", path.as_str()];
    let bridge = by_hand(world, project, &args);
    let ready = || fs::read_to_string(&log).unwrap_or_default().contains("Starting poll loop");
    world.until("the bridge", || ready().then_some(())).await;
    bridge
}

fn often_polled() -> World {
    World::with(json!({ "claude": { "agents_json_poll_interval_seconds": 1 } }))
}

/// F55: a bridge started by hand is offered, and managed once it was asked for.
#[tokio::test]
async fn f55_a_bridge_started_by_hand_is_taken_over_on_request() {
    let world = often_polled();
    world.project("app");
    world.project("empty");
    let mut bridge = bridge_by_hand(&world, "app", "mine.debug").await;
    let server = world.serve().await;
    let mut page = server.events().await;
    page.until("the offer", |state| state.adoptable.first().cloned()).await;

    let none = server.client.post("/api/projects/empty/adopt").await;
    assert_eq!(none.refused(409), "invalid_value");
    assert_eq!(
        server.client.post("/api/projects/nowhere/adopt").await.refused(404),
        "unknown_project"
    );
    let row = server.client.post("/api/projects/app/adopt").await.expect(200).instance();
    assert!(row.adopted, "{row:?}");
    assert_eq!(row.origin.to_string(), "adopted");
    assert_eq!(row.bridge_pid, bridge.id().map(u32::cast_signed));
    let again = server.client.post("/api/projects/app/adopt").await;
    assert_eq!(again.refused(409), "exists");
    page.until_status("app", "running").await;
    page.until("no offer", |state| state.adoptable.is_empty().then_some(())).await;
    assert!(page.happened.is_empty(), "nothing is announced: {:?}", page.happened);
    assert!(world.starts("app").len() == 1, "nothing was started");

    // Its end is noticed although this service is not its parent.
    let process = world.bridges().remove(0);
    bridge.kill().await.expect("it runs");
    page.until_status("app", "crashed").await;
    gone(&process).await;
    // And the row goes on as any other.
    let id = row.instance_id.to_string();
    let resumed = server.client.resume(&id).await.expect(200).instance();
    assert_eq!((resumed.generation, resumed.origin.to_string()), (2, "spawned".into()));
}

/// H108: what another service runs is left to it, and says so.
#[tokio::test]
async fn h108_a_bridge_of_another_service_is_not_taken_over() {
    let (ours, theirs) = (often_polled(), World::new());
    ours.project("app");
    // The same projects and the same agent, another state directory.
    theirs.configure(json!({ "projects_root": ours.projects }));
    let other = tokio::process::Command::new(simulator())
        .args(["remote-control", "--name", "x", "--spawn", "same-dir", "--debug-file"])
        .arg(theirs.root.join("x.debug"))
        .current_dir(ours.projects.join("app"))
        .env_clear()
        .envs(ours.environment())
        .env("SVC_LAUNCH_ID", "0123456789abcdef0123456789abcdef")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let other = other.expect("the simulator runs");
    let log = theirs.root.join("x.debug");
    let ready = || fs::read_to_string(&log).unwrap_or_default().contains("Starting poll loop");
    theirs.until("their bridge", || ready().then_some(())).await;
    let server = ours.serve().await;
    let mut page = server.events().await;
    page.until("the session", |state| state.external.get("app").map(|_| ())).await;
    let refused = server.client.post("/api/projects/app/adopt").await;
    assert!(refused.text().contains("another service"), "{}", refused.text());
    assert_eq!(refused.refused(409), "held_elsewhere");
    assert_eq!(server.client.launch("app").await.refused(409), "held_elsewhere");
    assert!(server.client.instances().await.is_empty());
    assert!(other.id().is_some_and(|pid| PathBuf::from(format!("/proc/{pid}")).exists()));
}

/// F89: the database is put back to yesterday's while a bridge runs. The bridge is found again,
/// under the same id each time.
#[tokio::test]
async fn f89_a_bridge_that_lost_its_record_is_found_again() {
    let world = often_polled();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let process = world.bridges().remove(0);
    server.stop().await;
    let mut found = Vec::new();
    for _ in 0..2 {
        for file in ["svc.db", "svc.db-wal", "svc.db-shm"] {
            let _ = fs::remove_file(world.state.join(file)); // may not be there
        }
        let server = world.serve().await;
        let mut page = server.events().await;
        let row = page.until_status("app", "running").await;
        assert_eq!(row.origin.to_string(), "rediscovered");
        assert_eq!(row.bridge_pid, Some(process.pid));
        assert!(row.has_log, "its log is ours");
        assert!(page.happened.is_empty(), "{:?}", page.happened);
        found.push(row.instance_id.to_string());
        server.stop().await;
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(world.starts("app").len(), 1);
    let server = world.serve().await;
    server.client.stop(&found[0]).await.expect(200);
    gone(&process).await;
}

/// Pointers that nobody wrote for a fortnight lose their session, not their environment.
#[tokio::test]
async fn old_pointers_are_collected_at_the_start_and_others_stay() {
    let world = World::new();
    let pointer = |project: &str| {
        let dir = world.project(project);
        let slug: String = dir
            .to_string_lossy()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let dir = world.agent_home.join("projects").join(slug);
        fs::create_dir_all(&dir).expect("a directory");
        dir.join("bridge-pointer.json")
    };
    let text = json!({
        "sessionId": "session_01OLD", "environmentId": "env_01OLD", "source": "standalone",
        "pid": 999_999, "procStart": "5"
    })
    .to_string();
    let day = Duration::from_secs(24 * 3600);
    let cases = [("old", &*text, 15), ("recent", &*text, 13), ("broken", "[", 15), ("odd", "[", 1)];
    let files: Vec<PathBuf> = cases
        .iter()
        .map(|(project, text, days)| {
            let file = pointer(project);
            fs::write(&file, text).expect("a pointer");
            let opened = fs::File::options().append(true).open(&file).expect("it");
            opened.set_modified(SystemTime::now() - day * *days).expect("its time");
            file
        })
        .collect();
    let _server = world.serve().await;
    let stripped = || {
        let text = fs::read_to_string(&files[0]).ok()?;
        (!text.contains("session_01OLD")).then_some(text)
    };
    let left = world.until("the collection", stripped).await;
    assert!(left.contains("env_01OLD"), "{left}");
    world.until("the broken one to go", || (!files[2].exists()).then_some(())).await;
    assert_eq!(fs::read_to_string(&files[1]).expect("it"), text);
    assert_eq!(fs::read_to_string(&files[3]).expect("it"), "[");
    assert!(!files[0].with_file_name("bridge-pointer.json.bak").exists());
}
