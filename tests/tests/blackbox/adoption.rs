//! Bridges without a record: adopted on request, found if ours, else left alone.

use crate::harness::{Start, World, gone, service_with_fail_points, simulator, stat_of, within};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use svc_shared::internal::State;
use svc_skip::{NO_FAIL_POINTS, skip};

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

/// The same, once it is ready.
pub async fn bridge_by_hand(world: &World, project: &str, log: &str) -> tokio::process::Child {
    let log = world.root.join(log);
    let path = log.to_string_lossy().into_owned();
    let args =
        ["remote-control", "--name", "Mine", "--spawn", "same-dir", "--debug-file", path.as_str()];
    let bridge = by_hand(world, project, &args);
    let ready = || fs::read_to_string(&log).unwrap_or_default().contains("Starting poll loop");
    world.until("the bridge", || ready().then_some(())).await;
    bridge
}

/// Where the agent keeps the pointer of a project.
fn pointer_of(world: &World, project: &str) -> PathBuf {
    let path = world.projects.join(project).to_string_lossy().into_owned();
    let slug: String =
        path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    world.agent_home.join("projects").join(slug).join("bridge-pointer.json")
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

/// F49: the process lives, but the pointer is older than the machine's last start.
/// Process ids and start times begin again with each boot.
#[tokio::test]
async fn f49_a_pointer_of_an_earlier_boot_offers_nothing() {
    let world = often_polled();
    world.project("app");
    let mut bridge = bridge_by_hand(&world, "app", "mine.debug").await;
    let stat = fs::read_to_string("/proc/stat").expect("the kernel's figures");
    let boot = stat.lines().find_map(|line| line.strip_prefix("btime ")).expect("its start");
    let boot = SystemTime::UNIX_EPOCH + Duration::from_secs(boot.trim().parse().expect("seconds"));
    let pointer = fs::File::options().append(true).open(pointer_of(&world, "app")).expect("it");
    pointer.set_modified(boot - Duration::from_secs(3600)).expect("its time");
    let server = world.serve().await;
    let mut page = server.events().await;
    // Its session is there, so the project has been looked at.
    page.until("the session", |state| state.external.get("app").map(|_| ())).await;
    assert!(page.state.adoptable.is_empty());
    let refused = server.client.post("/api/projects/app/adopt").await;
    assert_eq!(refused.refused(409), "invalid_value");
    bridge.kill().await.expect("it runs");
}

/// A session as its registry entry describes it, with a process that only exists.
struct ByHand {
    process: tokio::process::Child,
}

impl ByHand {
    fn new(world: &World, project: &str, kind: &str) -> Self {
        let cwd = world.projects.join(project);
        let mut sleep = tokio::process::Command::new("sleep");
        sleep.arg("600").current_dir(&cwd).env_clear().envs(world.environment());
        let process = sleep.kill_on_drop(true).spawn().expect("a process");
        let pid = process.id().map(u32::cast_signed).expect("it runs");
        let start = stat_of(pid).expect("it runs").start_ticks.to_string();
        let entry = world.agent_home.join(format!("sessions/{pid}.json"));
        let text = json!({
            "pid": pid, "sessionId": format!("0000{pid:04x}-0000-4000-8000-000000000000"),
            "cwd": cwd, "startedAt": 1_790_000_000_000_i64, "procStart": start,
            "version": "2.1.197", "peerProtocol": 1, "kind": kind, "entrypoint": "cli",
            "name": "by hand", "status": "idle", "updatedAt": 1_790_000_000_000_i64
        });
        fs::create_dir_all(entry.parent().expect("a directory")).expect("the registry");
        fs::write(&entry, text.to_string()).expect("an entry");
        Self { process }
    }

    fn pid(&self) -> i32 {
        self.process.id().map(u32::cast_signed).expect("it runs")
    }
}

/// F55, F57: the directory makes no owner, and a background job is in neither list.
#[tokio::test]
async fn f55_f57_a_session_by_hand_in_a_bridges_directory_stays_external() {
    let world = often_polled();
    world.project("app");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    let job = ByHand::new(&world, "app", "bg");
    let mut session = ByHand::new(&world, "app", "interactive");
    let mut page = server.events().await;
    let external = page
        .until("the session", |state| {
            state.external.get("app").filter(|list| !list.is_empty()).cloned()
        })
        .await;
    let found: Vec<(i32, &str)> =
        external.iter().map(|one| (one.pid, one.attribution.as_str())).collect();
    assert_eq!(found, [(session.pid(), "external")]);
    assert_eq!(external[0].parent_instance, None);
    let id = row.instance_id.to_string();
    let inside = page.state.tracked.get(&id).cloned().unwrap_or_default();
    assert!(inside.iter().all(|one| one.pid != session.pid() && one.pid != job.pid()));
    assert!(page.state.adoptable.is_empty(), "a session in a terminal is not taken over");
    let refused = server.client.post("/api/projects/app/adopt").await;
    assert_eq!(refused.refused(409), "exists");

    // Killed, it leaves its entry behind until the agent is asked for its list; the process decides.
    session.process.kill().await.expect("it runs");
    page.until("its end", |state| (!state.external.contains_key("app")).then_some(())).await;
    assert_eq!(world.bridges_of("app").len(), 1);
}

/// The agent's entry can be seen before the row that a command wrote.
#[tokio::test]
async fn a_bridge_that_a_command_starts_is_never_shown_as_somebody_elses_session() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = often_polled();
    world.project("app");
    let env = [("SVC_FAILPOINTS", "rows.known_late=5000")];
    let start = Start { program: Some(program), env: &env, ..Start::default() };
    let server = world.serve_as(start).await;
    let mut page = server.events().await;
    world.cli(&["start", "app", "--wait"]).await.ok();
    let tracked = async {
        while page.state.tracked.is_empty() {
            page.next().await;
            let (external, adoptable) = (&page.state.external, &page.state.adoptable);
            assert!(external.is_empty() && adoptable.is_empty(), "{external:?} {adoptable:?}");
        }
    };
    within("its session", tracked).await;
    server.client.stop("app").await.expect(200);
}

/// A bridge in project `app` that a service with another state directory started.
async fn bridge_of_another_service(ours: &World, theirs: &World) -> tokio::process::Child {
    // The same projects and the same agent.
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
    other
}

/// H108: what another service runs is left to it, and says so.
#[tokio::test]
async fn h108_a_bridge_of_another_service_is_not_taken_over() {
    let (ours, theirs) = (often_polled(), World::new());
    ours.project("app");
    let other = bridge_of_another_service(&ours, &theirs).await;
    let server = ours.serve().await;
    let mut page = server.events().await;
    page.until("the session", |state| state.external.get("app").map(|_| ())).await;
    let refused = server.client.post("/api/projects/app/adopt").await;
    assert!(refused.text().contains("another service"), "{}", refused.text());
    assert_eq!(refused.refused(409), "held_elsewhere");
    assert_eq!(server.client.launch("app").await.refused(409), "held_elsewhere");
    assert!(server.client.instances().await.is_empty());
    // Preflight says beforehand what the launch answered, in all three places.
    let one = server.client.get("/api/projects/app/preflight").await.expect(200).json();
    assert_eq!(
        (&one["ok"], &one["launch"]["standard"]["code"]),
        (&json!(false), &json!("held_elsewhere"))
    );
    let failed = |checks: &serde_json::Value| -> Vec<String> {
        let checks = checks.as_array().expect("checks").iter();
        let failed = checks.filter(|check| check["status"] == "fail");
        failed.map(|check| check["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(failed(&one["checks"]), ["bridge"]);
    let all = server.client.get("/api/projects/preflight").await.expect(200).json();
    assert_eq!(
        (&all["app"]["ok"], failed(&all["app"]["checks"])),
        (&json!(false), vec!["bridge".into()])
    );
    page.until("the verdict on the stream", |state| {
        state
            .preflight
            .get("app")
            .filter(|verdict| !verdict.ok && verdict.codes == ["bridge"])
            .map(drop)
    })
    .await;
    assert!(other.id().is_some_and(|pid| PathBuf::from(format!("/proc/{pid}")).exists()));
}

/// A bridge started by hand answers a launch before trust and cap are judged.
/// It runs already, so neither is needed (`agent-cli` §9.2).
#[tokio::test]
async fn a_launch_takes_over_a_bridge_by_hand_whatever_trust_and_cap_say() {
    let world = World::with(json!({ "instance_defaults": { "max_bridges": 1 } }));
    world.project("full");
    world.project("app");
    let mut bridge = bridge_by_hand(&world, "app", "mine.debug").await;
    let distrusted = fs::read_to_string(world.agent_config()).expect("the agent's file");
    let mut config: serde_json::Value = serde_json::from_str(&distrusted).expect("JSON");
    let key = world.projects.join("app").to_string_lossy().into_owned();
    config["projects"][&key]["hasTrustDialogAccepted"] = json!(false);
    fs::write(world.agent_config(), config.to_string()).expect("room");
    let server = world.serve().await;
    server.client.run("full").await; // the cap is reached from here on

    let ready = server.client.get("/api/projects/app/preflight").await.expect(200).json();
    assert_eq!(ready["ok"], json!(true), "{ready}");
    let answer = server.client.launch("app").await.expect(200).json();
    assert_eq!(answer["reason_code"], json!("external_reattached"), "{answer}");
    assert_eq!(answer["bridge_pid"], json!(bridge.id()));
    assert_eq!(world.starts("app").len(), 1, "nothing was started");
    let text = fs::read_to_string(world.agent_config()).expect("the agent's file");
    let config: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(config["projects"][&key]["hasTrustDialogAccepted"], json!(false));
    bridge.kill().await.expect("it runs");
}

/// F89: yesterday's database is restored while a bridge runs.
/// The bridge is found again, under the same id each time.
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

/// What the agent logs when its remote session was deleted.
const POISON: &str = "2026-09-20T10:00:00.000Z [DEBUG] [bridge:ws] {\"subtype\":\"end_session\",\
                      \"reason\":\"deleted\"}\n";

fn poison_every_log(world: &World) {
    for file in fs::read_dir(world.state.join("logs")).expect("logs").flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if name.ends_with(".log") && !name.ends_with(".stderr.log") {
            let mut log = fs::File::options().append(true).open(file.path()).expect("a log");
            log.write_all(POISON.as_bytes()).expect("room");
        }
    }
}

/// F34, F89: a bridge found at work keeps its sessions, whatever its old log says.
#[tokio::test]
async fn f89_a_found_bridge_is_not_replaced_because_of_an_old_line_of_its_log() {
    let world = often_polled();
    world.project("lost");
    world.project("ended");
    let server = world.serve().await;
    server.client.run("lost").await;
    let ended = server.client.run("ended").await.instance_id.to_string();
    let before = world.bridges();
    server.stop().await;
    poison_every_log(&world);
    // One has lost its record, the record of the other is wrong.
    world.sql("DELETE FROM bridges WHERE project = 'lost'").await.expect("the database");
    let edit = format!(
        "UPDATE bridges SET status = 'stopped', phase = 'exited', ended_at = 2, \
         exit_reason = 'unknown', revision = revision + 1 WHERE instance_id = '{ended}'"
    );
    world.sql(&edit).await.expect("the database");

    let server = world.serve().await;
    let mut page = server.events().await;
    for project in ["lost", "ended"] {
        let noticed = |state: &State| {
            let mut rows = state.instances.values();
            rows.find(|row| row.project.as_str() == project && row.notice.is_some()).cloned()
        };
        let row = page.until("the notice", noticed).await;
        assert_eq!(row.status.to_string(), "running", "{row:?}");
        assert_eq!(world.starts(project).len(), 1, "nothing was started in its place");
    }
    let mut after = world.bridges();
    after.retain(|now| before.iter().any(|then| then.pid == now.pid));
    assert_eq!(after.len(), 2, "both work on");
}

/// Pointers older than a fortnight lose their session, not their environment.
#[tokio::test]
async fn old_pointers_are_collected_at_the_start_and_others_stay() {
    let world = World::new();
    let pointer = |project: &str| {
        world.project(project);
        let file = pointer_of(&world, project);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        file
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

fn agent_was_asked(world: &World) -> bool {
    world.calls().iter().any(|call| call["argv"][0] == "agents")
}

/// The agent's own list decides what exists, and a bridge may have sessions.
#[tokio::test]
async fn the_agent_is_asked_for_its_sessions_while_a_bridge_lives() {
    let world = often_polled();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    world.until("the question", || agent_was_asked(&world).then_some(())).await;
}

/// An entry of a shape that only a newer agent knows.
/// Nothing else lives, and the next regular question is an hour away.
#[tokio::test]
async fn the_agent_is_asked_at_once_about_an_entry_that_cannot_be_read() {
    let world = World::with(json!({ "claude": { "agents_json_poll_interval_seconds": 3600 } }));
    let _server = world.serve().await;
    let entry = world.agent_home.join("sessions/4242.json");
    fs::create_dir_all(entry.parent().expect("a directory")).expect("the registry");
    fs::write(&entry, r#"{"pid":4242,"peerProtocol":99}"#).expect("an entry");
    world.until("the question", || agent_was_asked(&world).then_some(())).await;
}
