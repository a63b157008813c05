//! Keepers that die or are of another release, and damaged records of keepers.

use crate::harness::{Server, Start, World, gone, service_with_fail_points};
use crate::sessions_in_terminals::{continues, ready, session, starts, talked_to, until_said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::PathBuf;
use svc_shared::api::instances::Instance;
use svc_shared::status::BridgeStatus;
use svc_skip::{NO_FAIL_POINTS, skip};

/// Kills a process of this test.
pub fn end_at_once(pid: Option<i64>) {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw).unwrap();
    // An agent may have gone with the terminal that its keeper held.
    let _ = kill_process(pid, Signal::KILL);
}

async fn shown(server: &Server<'_>, row: &Instance) -> Instance {
    server.client.instance(row.instance_id.as_str()).await.expect(200).instance()
}

async fn is_stopped(server: &Server<'_>, row: &Instance) {
    let stopped = server.client.stop(row.instance_id.as_str()).await.expect(200).instance();
    assert_eq!(stopped.status.known(), Some(&BridgeStatus::Stopped), "{stopped:?}");
}

#[tokio::test]
async fn f64_a_session_whose_keeper_dies_says_so_and_is_resumed_with_its_conversation() {
    let world = World::new();
    world.project_with("app", talked_to());
    world.project("other");
    let server = world.serve().await;
    let one = ready(&server, session("app")).await;
    let other = ready(&server, session("other")).await;
    until_said(&world, &one).await;
    let mut page = server.events().await;
    end_at_once(one.keeper_pid.map(Into::into));
    let ended = page.until_status("app", "crashed").await;
    assert_eq!(ended.exit_reason.unwrap().to_string(), "keeper_lost");
    assert_eq!((ended.bridge_pid, ended.keeper_pid), (None, None));
    assert_eq!(shown(&server, &other).await.bridge_pid, other.bridge_pid);
    let id = one.instance_id.as_str();
    let resumed = server.client.resume(id).await.expect(200).instance();
    assert_eq!(resumed.status.known(), Some(&BridgeStatus::Running));
    assert!(continues(&world), "{:?}", starts(&world));
    is_stopped(&server, &resumed).await;
    is_stopped(&server, &other).await;
}

#[tokio::test]
async fn f67_damaged_records_of_keepers_lose_no_session_and_stop_no_other() {
    let world = World::new();
    for name in ["cut", "swapped", "linked", "sound"] {
        world.project(name);
    }
    let server = world.serve().await;
    let mut rows = Vec::new();
    for name in ["cut", "swapped", "linked", "sound"] {
        rows.push(ready(&server, session(name)).await);
    }
    world.until_recorded().await;
    server.kill().await;
    let files = world.keeper_records("");
    let of = |row: &Instance| {
        let id = row.instance_id.as_str();
        let names = |path: &&PathBuf| std::fs::read_to_string(path).unwrap().contains(id);
        files.iter().find(names).expect("a record of the session").clone()
    };
    let paths: Vec<PathBuf> = rows.iter().map(of).collect();
    let sound = std::fs::read(&paths[3]).unwrap();
    std::fs::write(&paths[0], &sound[..sound.len() / 2]).unwrap();
    std::fs::write(&paths[1], &sound).unwrap();
    std::fs::remove_file(&paths[2]).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &paths[2]).unwrap();
    let server = world.serve().await;
    for row in &rows {
        let after = shown(&server, row).await;
        assert_eq!(after.status.known(), Some(&BridgeStatus::Running), "{after:?}");
        assert_eq!((after.bridge_pid, after.keeper_pid), (row.bridge_pid, row.keeper_pid));
        let screen = world.cli(&["screen", row.instance_id.as_str()]).await;
        assert_eq!(screen.code == Some(0), row.project == "sound", "{}: {screen:?}", row.project);
        server.client.get("/api/keepers").await.expect(200);
    }
    let agents = world.bridges();
    for row in rows.iter().take(3) {
        is_stopped(&server, row).await;
        assert_eq!(shown(&server, &rows[3]).await.bridge_pid, rows[3].bridge_pid);
    }
    is_stopped(&server, &rows[3]).await;
    for agent in &agents {
        gone(agent).await;
    }
}

#[tokio::test]
async fn f66_h121_a_keeper_of_another_release_is_marked_and_its_session_can_be_stopped() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let before = ready(&server, session("app")).await;
    server.kill().await;
    let next = [("SVC_TEST_KEEPER_PROTOCOL", "2")];
    let start = Start { program: Some(program), env: &next, ..Start::default() };
    let server = world.serve_as(start).await;
    let mut page = server.events().await;
    let marked = page
        .until("the mark of another release", |state| {
            state.instances.values().find(|row| row.quarantined.is_some()).cloned()
        })
        .await;
    assert_eq!(marked.status.known(), Some(&BridgeStatus::Running), "{marked:?}");
    assert_eq!(marked.quarantined.as_ref().unwrap().code.to_string(), "keeper_version");
    assert_eq!((marked.bridge_pid, marked.keeper_pid), (before.bridge_pid, before.keeper_pid));
    is_stopped(&server, &before).await;
    server.kill().await;
}

#[tokio::test]
async fn f66_h121_a_service_of_the_same_release_takes_the_mark_away_again() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let before = ready(&server, session("app")).await;
    server.kill().await;
    let next = [("SVC_TEST_KEEPER_PROTOCOL", "2")];
    let start = Start { program: Some(program), env: &next, ..Start::default() };
    let server = world.serve_as(start).await;
    let mut page = server.events().await;
    page.until("the mark", |state| {
        state.instances.values().find(|row| row.quarantined.is_some()).cloned()
    })
    .await;
    server.kill().await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let sound = page
        .until("the row without the mark", |state| {
            state.instances.values().find(|row| row.quarantined.is_none()).cloned()
        })
        .await;
    assert_eq!(sound.bridge_pid, before.bridge_pid);
    is_stopped(&server, &before).await;
}

#[tokio::test]
async fn h64_f65_twenty_sessions_live_through_ten_deaths_of_the_service() {
    let world = World::with(json!({}));
    let names = ["a", "b", "c", "d", "e"];
    names.iter().for_each(|name| drop(world.project(name)));
    let mut rows = Vec::new();
    let server = world.serve().await;
    for project in names {
        for _ in 0..4 {
            rows.push(ready(&server, session(project)).await);
        }
    }
    let mut screens = Vec::new();
    for row in &rows {
        screens.push(world.cli(&["screen", row.instance_id.as_str()]).await.ok().stdout);
    }
    let mut server = server;
    for _ in 0..10 {
        server.kill().await;
        server = world.serve().await;
        for (row, screen) in rows.iter().zip(&screens) {
            let after = shown(&server, row).await;
            let same = (after.bridge_pid, after.keeper_pid, after.generation);
            assert_eq!(same, (row.bridge_pid, row.keeper_pid, 1), "{after:?}");
            assert_eq!(after.status.known(), Some(&BridgeStatus::Running));
            let now = world.cli(&["screen", row.instance_id.as_str()]).await.ok().stdout;
            assert_eq!(&now, screen, "the screen is the one of before");
        }
    }
    assert_eq!(starts(&world).len(), 20);
    for row in &rows {
        is_stopped(&server, row).await;
    }
    assert!(world.bridges().is_empty());
}
