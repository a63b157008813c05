//! Leftovers and limits of bridges (H104, H105, H106).
//!
//! Nothing of a bridge outlives it. What does is shown as a stray. A bridge that uses too much is
//! reported, or ended with a reason.

use crate::harness::{Process, World, gone, within};
use serde_json::json;
use svc_shared::internal::State;

/// Everything of a project but its bridge.
fn others(world: &World, project: &str) -> Vec<Process> {
    let bridges: Vec<i32> = world.bridges().iter().map(|bridge| bridge.pid).collect();
    let dir = world.projects.join(project).canonicalize().unwrap();
    let mut found = world.processes();
    found.retain(|process| {
        process.cwd.as_deref() == Some(dir.as_path()) && !bridges.contains(&process.pid)
    });
    found
}

/// Waits for the processes that a bridge starts beside itself.
async fn company(world: &World, project: &str, count: usize) -> Vec<Process> {
    let look = || Some(others(world, project)).filter(|found| found.len() == count);
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(50));
    let wait = async {
        loop {
            tick.tick().await;
            // One that is a child of a child is there for a moment only.
            if let Some(found) = look()
                && found.iter().all(|process| process.argv.iter().all(|arg| arg != "forsaken"))
            {
                return found;
            }
        }
    };
    within("the processes beside the bridge", wait).await
}

#[tokio::test]
async fn h104_a_stop_also_ends_what_dropped_every_mark_of_the_bridge() {
    for mode in ["unmarked", "forsaken", "new_session", "ignore_signals"] {
        let world = World::new();
        world.project_with("app", json!({ "children": 2, "child_mode": mode }));
        let server = world.serve().await;
        server.client.run("app").await;
        let left = company(&world, "app", 2).await;
        server.client.stop("app").await.expect(200);
        for process in &left {
            assert!(!process.is_alive(), "{mode}: {process:?} outlived the answer");
        }
        assert!(others(&world, "app").is_empty(), "{mode}");
        server.stop().await;
    }
}

#[tokio::test]
async fn h104_a_crash_takes_along_what_was_seen_below_the_bridge() {
    for mode in ["unmarked", "forsaken"] {
        let world = World::with(json!({ "metrics": { "poll_seconds": 1 } }));
        world.project_with("app", json!({ "children": 1, "child_mode": mode }));
        let server = world.serve().await;
        server.client.run("app").await;
        let left = company(&world, "app", 1).await;
        let mut page = server.events().await;
        if mode == "unmarked" {
            let mut tick = tokio::time::interval(std::time::Duration::from_millis(50));
            let seen = async {
                loop {
                    tick.tick().await;
                    let metrics = server.client.get("/api/metrics").await.expect(200).json();
                    if metrics.as_object().unwrap().values().any(|one| one["procs"] == 2) {
                        return;
                    }
                }
            };
            within("a look at both", seen).await;
        }
        world.bridges_of("app")[0].signal(rustix::process::Signal::KILL);
        page.until_status("app", "crashed").await;
        for process in &left {
            gone(process).await;
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn h106_a_bridge_that_leaks_processes_is_told_of_with_what_it_uses_and_what_is_allowed() {
    let settings = json!({ "metrics": { "poll_seconds": 1 }, "ceilings": { "processes": 4 } });
    let world = World::with(settings);
    world.project_with("app", json!({ "leak_ms": 200 }));
    world.project("quiet");
    let server = world.serve().await;
    server.client.run("quiet").await;
    server.client.run("app").await;
    let mut page = server.events().await;
    let noticed = |state: &State| {
        let mut rows = state.instances.values();
        rows.find(|row| row.project == "app" && row.notice.is_some()).cloned()
    };
    let row = page.until("the warning", noticed).await;
    let notice = row.notice.as_ref().unwrap();
    assert!(notice.contains("processes") && notice.contains("allows 4"), "{notice}");
    assert_eq!(row.status.to_string(), "running", "nobody asked for more than a warning");
    let quiet = server.client.instance("quiet").await.instance();
    assert_eq!(quiet.notice, None);
    server.client.stop("app").await.expect(200);
    let ended = server.client.instance("app").await.instance();
    assert_eq!(ended.notice, None, "advice is about what runs");
}

#[tokio::test]
async fn h106_a_ceiling_that_may_act_stops_the_bridge_and_the_record_says_why() {
    let settings = json!({
        "metrics": { "poll_seconds": 1 },
        "ceilings": { "memory_mb": 60, "action": "stop" },
    });
    let world = World::with(settings);
    world.project_with("app", json!({ "leak_ms": 200, "leak_mb": 20 }));
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id;
    let mut page = server.events().await;
    let row = page.until_status("app", "stopped").await;
    assert!(row.intentional_stop, "not a crash: {row:?}");
    let notice = row.notice.unwrap_or_default();
    assert!(notice.contains("stopped by the service") && notice.contains("allows 60"), "{notice}");
    assert!(others(&world, "app").is_empty());
    world.agree().await;
    // The reason stands until the next generation begins.
    server.stop().await;
    world.set_knobs("app", json!({}));
    let server = world.serve().await;
    assert_eq!(server.client.instance("app").await.instance().notice, Some(notice));
    let resumed = server.client.resume(id.as_str()).await.expect(200).instance();
    assert_eq!((resumed.notice, resumed.generation), (None, 2));
}

#[tokio::test]
async fn h106_a_bridge_that_was_good_for_long_is_started_anew_and_says_why() {
    let settings = json!({
        "metrics": { "poll_seconds": 1 },
        "ceilings": { "processes": 2, "action": "recycle" },
    });
    let world = World::with(settings);
    world.project_with("app", json!({ "children": 3, "child_mode": "new_session" }));
    // Without a look at it until it counts as one that has run for long.
    world.configure(json!({ "metrics": { "enabled": false } }));
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id;
    let before = world.bridges_of("app").remove(0);
    let left = company(&world, "app", 3).await;
    server.stop().await;
    world.sql("UPDATE bridges SET started_at = 1, revision = revision + 1").await.unwrap();
    world.configure(json!({ "metrics": { "enabled": true } }));
    world.set_knobs("app", json!({}));

    let server = world.serve().await;
    let mut page = server.events().await;
    let anew = |state: &State| {
        let mut rows = state.instances.values();
        rows.find(|row| {
            row.generation == 2 && row.status.to_string() == "running" && row.notice.is_some()
        })
        .cloned()
    };
    let row = page.until("the next generation", anew).await;
    assert_eq!(row.instance_id, id, "in the same row");
    let notice = row.notice.clone().unwrap_or_default();
    assert!(notice.contains("started anew") && notice.contains("allows 2"), "{notice}");
    assert!(!before.is_alive(), "the one that used too much");
    for process in &left {
        gone(process).await;
    }
    assert_eq!(world.bridges_of("app").len(), 1);
    world.agree().await;
}

/// A child that outlives its bridge because nobody was there to end it.
async fn left_over(world: &World) -> Process {
    world.project_with("app", json!({ "children": 1, "child_mode": "new_session" }));
    let server = world.serve().await;
    server.client.run("app").await;
    let left = company(world, "app", 1).await.remove(0);
    server.kill().await;
    let bridge = world.bridges_of("app").remove(0);
    bridge.signal(rustix::process::Signal::KILL);
    gone(&bridge).await;
    // The record says that all of it is over: no start looks for what it left.
    let edit = "UPDATE bridges SET status = 'stopped', phase = 'exited', ended_at = 2, \
         intentional_stop = 1, exit_reason = 'operator_stop', revision = revision + 1";
    world.sql(edit).await.unwrap();
    assert!(left.is_alive());
    left
}

#[tokio::test]
async fn h105_what_an_ended_bridge_left_is_listed_and_only_that_is_killed() {
    let world = World::new();
    let left = left_over(&world).await;
    world.project("other");
    let server = world.serve().await;
    server.client.run("other").await;
    let other = world.bridges_of("other").remove(0);

    let listed = server.client.get("/api/strays").await.expect(200).json();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["pid"], &listed[0]["kind"]), (&left.pid.into(), &"leftover".into()));
    assert_eq!(listed[0]["project"], "app");
    let doctor = server.client.get("/api/doctor").await.expect(200).json();
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "strays");
    let check = check.unwrap();
    assert_eq!(check["status"], "warn", "{check}");
    assert!(check["detail"].as_str().unwrap().contains(&left.pid.to_string()), "{check}");

    let refused = server.client.post(&format!("/api/strays/{}/kill", other.pid)).await;
    assert_eq!(refused.refused(409), "invalid_value");
    let refused = world.cli(&["strays", "--kill", &other.pid.to_string()]).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(other.is_alive());

    let table = world.cli(&["strays"]).await.ok().stdout;
    assert!(table.contains(&left.pid.to_string()) && table.contains("app"), "{table}");
    world.cli(&["strays", "--kill", &left.pid.to_string()]).await.ok();
    assert!(!left.is_alive());
    assert_eq!(server.client.get("/api/strays").await.expect(200).json(), json!([]));
    assert_eq!(world.cli(&["strays", "--json"]).await.ok().json(), json!([]));
}

#[tokio::test]
async fn h105_what_a_forgotten_bridge_left_is_known_by_its_launch_and_killed_by_request() {
    let world = World::new();
    let left = left_over(&world).await;
    let server = world.serve().await;
    server.client.post("/api/instances/app/forget").await.expect(200);
    let listed = server.client.get("/api/strays").await.expect(200).json();
    assert_eq!((&listed[0]["pid"], &listed[0]["instance_id"]), (&left.pid.into(), &json!(null)));
    assert_eq!(listed[0]["project"], "app", "it works there");
    let killed = server.client.post(&format!("/api/strays/{}/kill", left.pid)).await;
    assert_eq!(killed.expect(200).json(), json!({ "pid": left.pid, "killed": true }));
    assert!(!left.is_alive());
}
