//! Bridges that this service did not start: adopted on request, else left alone.

use crate::harness::{World, gone, service, simulator, within};
use serde_json::json;
use std::process::Stdio;
use svc_skip::skip;

/// Starts a bridge as a person would in a terminal.
pub async fn by_hand(world: &World, project: &str) -> tokio::process::Child {
    let dir = world.projects.join(project);
    let log = world.root.join(format!("{project}.debug"));
    let mut bridge = tokio::process::Command::new(simulator());
    bridge
        .args(["remote-control", "--name", "By hand", "--spawn", "same-dir", "--debug-file"])
        .arg(&log)
        .current_dir(&dir)
        .env_clear()
        .envs(world.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let bridge = bridge.spawn().expect("the simulator runs");
    let ready = || std::fs::read_to_string(&log).unwrap_or_default().contains("Starting poll loop");
    world.until("the bridge", || ready().then_some(())).await;
    bridge
}

/// What no file tells of, a killed session for one, shows at the next poll.
fn often_polled() -> World {
    World::with(json!({ "claude": { "agents_json_poll_interval_seconds": 1 } }))
}

#[tokio::test]
async fn a_launch_takes_over_the_bridge_that_runs_already() {
    let world = often_polled();
    world.project("app");
    let mut bridge = by_hand(&world, "app").await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let adoptable = page.until("the offer", |state| state.adoptable.first().cloned()).await;
    assert_eq!(adoptable, "app");
    let reply = server.client.launch("app").await.expect(200);
    assert_eq!(reply.json()["created"], false);
    assert_eq!(reply.json()["reason_code"], "external_reattached");
    let row = reply.instance();
    assert!(row.adopted, "{row:?}");
    assert_eq!(row.bridge_pid, bridge.id().map(u32::cast_signed));
    page.until_status("app", "running").await;
    assert_eq!(world.starts("app").len(), 1, "nothing else was started");
    page.until("no offer", |state| state.adoptable.is_empty().then_some(())).await;
    assert!(page.happened.is_empty(), "{:?}", page.happened);

    let process = world.bridges().remove(0);
    let stop = server.client.stop("app");
    let (stopped, _) = tokio::join!(stop, bridge.wait());
    assert_eq!(stopped.expect(200).instance().status.to_string(), "stopped");
    gone(&process).await;
}

/// F56: a stopped record stays when somebody starts a bridge by hand.
#[tokio::test]
async fn f56_a_bridge_started_by_hand_blocks_the_resume_of_the_record() {
    let world = often_polled();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let mut bridge = by_hand(&world, "app").await;
    let mut page = server.events().await;
    let pid = bridge.id().unwrap().to_string();
    let row = page
        .until("the notice", |state| {
            let row = state.instances.values().next()?.clone();
            row.notice.as_ref()?.contains(&pid).then_some(row)
        })
        .await;
    assert_eq!(
        row.resume_blocked.as_ref().map(ToString::to_string),
        Some("standard_already_live".into())
    );
    let declined = server.client.resume(&id).await.expect(200).json();
    assert_eq!(declined["created"], false);
    assert_eq!(declined["reason_code"], "standard_already_live");
    server.client.stop(&id).await.expect(200);
    assert_eq!(world.bridges_of("app").len(), 1, "it is not ours to stop");
    bridge.start_kill().unwrap();
    bridge.wait().await.unwrap();
    page.until("no block", |state| {
        state.instances.values().next().and_then(|row| row.resume_blocked.is_none().then_some(()))
    })
    .await;
    server.client.resume(&id).await.expect(200);
}

/// F50, F51: a pointer of any content harms nobody.
#[tokio::test]
async fn f50_a_hostile_pointer_is_no_pointer() {
    for kind in ["garbage", "truncated", "foreign_pid", "old_boot", "no_pid", "huge", "mode000"] {
        let world = World::new();
        world.project_with("app", json!({ "pointer": kind }));
        let server = world.serve().await;
        let id = server.client.run("app").await.instance_id.to_string();
        server.client.stop(&id).await.expect(200);
        server.stop().await;
        let server = world.serve().await;
        let adoptable = server.client.get("/api/v1/sessions/adoptable").await.expect(200).json();
        assert_eq!(adoptable, json!([]), "{kind}");
        let resumed = server.client.resume(&id).await.expect(200).instance();
        assert_eq!(resumed.status.to_string(), "running", "{kind}");
        server.client.stop(&id).await.expect(200);
    }
}

/// F49: the pointer is from an earlier boot, and its pid belongs to a live bridge.
#[tokio::test]
async fn f49_a_pointer_of_an_earlier_boot_is_no_offer_and_blocks_nothing() {
    let world = often_polled();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    world.set_knobs("app", json!({ "pointer": "old_boot" }));
    let mut bridge = by_hand(&world, "app").await;
    let mut page = server.events().await;
    page.until("the session", |state| state.external.get("app").map(|_| ())).await;
    let adoptable = server.client.get("/api/v1/sessions/adoptable").await.expect(200).json();
    assert_eq!(adoptable, json!([]));
    let refused = server.client.post("/api/projects/app/adopt").await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    let resumed = server.client.resume(&id).await.expect(200).instance();
    assert_ne!(resumed.bridge_pid, bridge.id().map(u32::cast_signed), "{resumed:?}");
    assert_eq!(resumed.status.to_string(), "running");
    server.client.stop(&id).await.expect(200);
    assert!(bridge.try_wait().unwrap().is_none(), "the one by hand was not touched");
    bridge.kill().await.unwrap();
}

/// A session a worker of a bridge runs is shown with its bridge.
#[tokio::test]
async fn a_session_of_a_bridge_is_tracked_with_it() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut page = server.events().await;
    world.remote(&["connect", world.projects.join("app").to_str().unwrap()]);
    let tracked = page
        .until("the session", |state| {
            let sessions = state.tracked.get(&id)?;
            sessions.iter().find(|one| one.attribution == "tracked").cloned()
        })
        .await;
    assert_eq!(tracked.parent_instance.map(|parent| parent.to_string()), Some(id.clone()));
    let served = server.client.get("/api/v1/sessions/tracked").await.expect(200).json();
    assert!(!served[&id].as_array().unwrap().is_empty());
    server.client.stop(&id).await.expect(200);
    page.until("no session", |state| state.tracked.is_empty().then_some(())).await;
}

/// The leader of the own process group has no number in this PID namespace.
/// That is so in a container's or a runner's command; the kernel answers 0 for it.
#[tokio::test]
async fn a_bridge_is_stopped_where_the_own_group_has_no_number() {
    let world = World::new();
    world.project("app");
    let script = format!(
        "set -e; svc={}; cut -d' ' -f6 /proc/self/stat; \"$svc\" start app \"$@\"; \"$svc\" stop app \"$@\"",
        service().display()
    );
    let inside = ["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &script, "sh"];
    let mut command = world.command(std::path::Path::new("unshare"), &inside);
    let done = within("the end of both commands", command.output()).await.unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    if said.starts_with("unshare: ") {
        skip!("namespaces are refused here ({said})");
    }
    assert!(done.status.success() && !said.contains("panicked"), "{said}");
    assert_eq!(world.row("app").await.status, "stopped");
    let session = String::from_utf8_lossy(&done.stdout);
    assert_eq!(session.lines().next(), Some("0"), "the own session has a number: {session}");
}
