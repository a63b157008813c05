//! Agents that write oddly, share a slug, or are replaced under a running bridge.

use crate::harness::{Start, World, gone, simulator};
use serde_json::{Value, json};
use std::fs;

/// F35, F36, F59: a registered bridge is seen, whatever happens to its log.
/// No raw identifier leaves the service.
#[tokio::test]
async fn f35_f36_f59_readiness_survives_an_odd_log() {
    for knobs in [
        json!({ "split_utf8": true, "chatter_ms": 5 }),
        json!({ "invalid_utf8": true, "chatter_ms": 5 }),
        json!({ "ansi": "color" }),
        json!({ "ansi": "split_ids" }),
        json!({ "ansi": "osc" }),
        json!({ "ansi": "unterminated" }),
        json!({ "log_target": "truncate_at_ms:5", "ready_ms": 120 }),
        json!({ "log_target": "delete_at_ms:5", "ready_ms": 120 }),
        json!({ "log_target": "rename_at_ms:5", "ready_ms": 120 }),
        json!({ "log_mb_per_s": 5, "log_for_ms": 500 }),
    ] {
        let world = World::new();
        world.project_with("app", knobs.clone());
        let server = world.serve().await;
        let reply = server.client.launch("app").await.expect(201);
        let row = reply.instance();
        assert_eq!(row.status.to_string(), "running", "{knobs}: {row:?}");
        let log = format!("/api/instances/{}/log?tail=1048576", row.instance_id);
        let log = server.client.get(&log).await.expect(200).text();
        for raw in ["env_01SIM", "session_01SIM"] {
            assert!(!log.contains(raw), "{knobs}: {raw} leaves by the log");
        }
        server.client.stop("app").await.expect(200);
    }
}

/// Conversation text that imitates the agent's own lines is not believed.
#[tokio::test]
async fn f30_quoted_markers_make_no_bridge_ready() {
    let world = World::with(json!({ "claude": { "startup_grace_seconds": 1 } }));
    world.project_with("app", json!({ "ready": "never", "forge_markers": true }));
    let server = world.serve().await;
    let mut page = server.events().await;
    let path = "/api/v1/instances?wait=0";
    server.client.post_json(path, &json!({ "project": "app" })).await.expect(201);
    let failed = page.until_status("app", "error").await;
    assert_eq!(failed.exit_reason.map(|why| why.to_string()), Some("not_registered".into()));
    assert!(page.happened.iter().all(|(name, _)| name != "ready"), "{:?}", page.happened);
}

/// F25: two directories that the agent files under one name.
#[tokio::test]
async fn f25_two_projects_with_one_slug_keep_their_own_bridges() {
    let world = World::new();
    world.project("a_b");
    world.project("a-b");
    let server = world.serve().await;
    let first = server.client.run("a_b").await;
    let adoptable = server.client.get("/api/v1/sessions/adoptable").await.expect(200).json();
    assert_eq!(adoptable, json!([]));
    let second = server.client.run("a-b").await;
    assert_ne!(first.bridge_pid, second.bridge_pid);
    server.client.stop("a-b").await.expect(200);
    let still = server.client.instance("a_b").await.instance();
    assert_eq!((still.status.to_string(), still.bridge_pid), ("running".into(), first.bridge_pid));
    assert_eq!(world.bridges_of("a_b").len(), 1);
}

/// F85, H110: the program is replaced while a bridge of it runs.
#[tokio::test]
async fn f85_an_upgrade_leaves_running_bridges_and_starts_new_ones_with_the_new_program() {
    let world = World::new();
    world.project("old");
    world.project("new");
    let (first, second) = (world.root.join("agent-1"), world.root.join("agent-2"));
    svc_programs::copy(simulator(), &first).unwrap();
    svc_programs::copy(simulator(), &second).unwrap();
    let link = world.root.join("claude");
    std::os::unix::fs::symlink(&first, &link).unwrap();
    world.configure(json!({ "claude": { "binary": link } }));
    let server = world.serve().await;
    let before = server.client.run("old").await;
    let exe = |call: &Value| call["exe"].as_str().map(str::to_owned);
    assert_eq!(exe(&world.starts("old")[0]).as_deref(), first.to_str());

    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&second, &link).unwrap();
    fs::remove_file(&first).unwrap();
    server.client.run("new").await;
    assert_eq!(exe(&world.starts("new")[0]).as_deref(), second.to_str());
    server.kill().await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let after = page.until_status("old", "running").await;
    assert_eq!(after.bridge_pid, before.bridge_pid);
    let stopped = server.client.stop("old").await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
}

/// F5: a bridge whose parent never asks how it ended is over all the same.
#[tokio::test]
async fn f5_a_bridge_that_nobody_collects_is_seen_to_end() {
    let world = World::new();
    world.project("app");
    world.cli(&["start", "app", "--wait", "20"]).await.ok();
    let server = world.serve().await;
    let mut page = server.events().await;
    page.until_status("app", "running").await;
    let bridge = world.bridges_of("app").remove(0);
    bridge.signal(rustix::process::Signal::KILL);
    gone(&bridge).await;
    let ended = page.until_status("app", "crashed").await;
    assert_eq!((ended.bridge_pid, ended.exit_code), (None, None));
}

/// H33 of a crowd: many starts at once leave no process of the service behind.
#[tokio::test]
async fn a_crowd_of_launches_leaves_no_launcher() {
    let world = World::new();
    let names: Vec<String> = (0..20).map(|number| format!("p{number:02}")).collect();
    for name in &names {
        world.project(name);
    }
    let server = world.serve_as(Start::default()).await;
    futures_util::future::join_all(names.iter().map(|name| server.client.run(name))).await;
    let found = world.agree().await;
    assert_eq!((found.rows.len(), found.bridges.len()), (20, 20));
    let launchers = world
        .processes()
        .into_iter()
        .filter(|process| process.argv.iter().any(|word| word == "__launch__"));
    assert_eq!(launchers.count(), 0);
    futures_util::future::join_all(names.iter().map(|name| server.client.stop(name))).await;
    assert!(world.agree().await.bridges.is_empty());
}
