//! The service as a service manager sees it (H113).
//!
//! The tests under a real systemd are in `systemd`.

use crate::harness::{Start, World, within};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use svc_skip::skip;
use tokio::net::UnixDatagram;

/// The next message on the manager's socket.
async fn heard(manager: &UnixDatagram) -> String {
    let mut message = vec![0; 4096];
    let length = within("a message", manager.recv(&mut message)).await.unwrap();
    String::from_utf8(message[..length].to_vec()).unwrap()
}

#[tokio::test]
async fn h113_readiness_is_said_when_listener_and_database_are_up_and_the_end_before_it_ends() {
    let world = World::new();
    world.project("app");
    let path = world.root.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let env = [("NOTIFY_SOCKET", path.to_str().unwrap())];
    let server = world.begin(&Start { env: &env, ..Start::default() });
    let ready = heard(&manager).await;
    assert!(ready.lines().any(|line| line == "READY=1"), "{ready}");
    // At this very moment it serves, from its database.
    server.client.get("/healthz").await.expect(200);
    let bridge = server.client.run("app").await;
    assert_eq!(world.row("app").await.instance_id, bridge.instance_id.as_str());
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
    let ending = heard(&manager).await;
    assert!(ending.lines().any(|line| line == "STOPPING=1"), "{ending}");
    assert_eq!(world.bridges().len(), 1, "bridges stay");
}

#[tokio::test]
async fn h113_a_manager_with_a_watchdog_is_told_again_and_again_that_the_service_lives() {
    let world = World::new();
    let path = world.root.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let env = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "100000")];
    let server = world.begin(&Start { env: &env, ..Start::default() });
    let mut alive = 0;
    while alive < 5 {
        alive += heard(&manager).await.lines().filter(|line| *line == "WATCHDOG=1").count();
    }
    server.stop().await;
}

/// Restarts leave only the bridges, each with its process.
#[tokio::test]
async fn h113_fifty_restarts_leave_the_bridges_and_nothing_else() {
    let world = World::new();
    let mut pids = BTreeSet::new();
    for name in ["a", "b", "c"] {
        world.project(name);
    }
    let server = world.serve().await;
    for name in ["a", "b", "c"] {
        server.client.run(name).await;
    }
    server.stop().await;
    pids.extend(world.bridges().iter().map(|bridge| bridge.pid));
    for round in 0..50 {
        let server = world.serve().await;
        let (code, log) = server.stop().await;
        assert_eq!(code, Some(0), "{round}: {log}");
    }
    let left: BTreeSet<i32> = world.processes().iter().map(|process| process.pid).collect();
    assert_eq!(left, pids, "{:?}", world.processes());
    let server = world.serve().await;
    let found = world.agree().await;
    assert_eq!(found.bridges.len(), 3, "{found:?}");
    server.kill().await;
}

/// The unit of the guide, and the one every other place shows.
fn unit() -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = guide.split_once("## Under systemd").expect("the guide explains it");
    let (_, rest) = rest.split_once("```ini\n").expect("the guide shows a unit");
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn h113_the_unit_of_the_guide_is_valid_and_keeps_bridges() {
    let unit = unit();
    let has = |line: &str| unit.lines().any(|own| own == line);
    for line in [
        "Type=notify",
        "KillMode=process",
        "OOMPolicy=continue",
        "Restart=on-failure",
        "StartLimitIntervalSec=60",
        "StartLimitBurst=5",
    ] {
        assert!(has(line), "{line} is missing in\n{unit}");
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("svc");
    svc_programs::copy(crate::harness::service(), &program).unwrap();
    let shown = unit
        .replace("/usr/local/bin/svc", program.to_str().unwrap())
        .replace("User=me", "User=root");
    let file = dir.path().join("svc.service");
    std::fs::write(&file, shown).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg(&file);
    match verify.output() {
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            let about = said.lines().filter(|line| line.contains("svc.service"));
            assert_eq!(about.count(), 0, "{said}");
        }
        Err(error) => skip!("systemd-analyze does not run: {error}"),
    }
}

/// A service with many bridges and many sockets ends when it is asked to.
#[tokio::test]
async fn h113_a_stop_waits_for_no_socket_and_no_bridge() {
    let world = World::with(json!({ "instance_defaults": { "max_bridges": 40 } }));
    let names: Vec<String> = (0..20).map(|number| format!("p{number:02}")).collect();
    for name in &names {
        world.project(name);
    }
    let server = world.serve().await;
    for name in &names {
        server.client.run(name).await;
    }
    let mut pages = Vec::new();
    for _ in 0..100 {
        pages.push(server.events().await);
    }
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
    for page in pages {
        page.until_the_end().await;
    }
    assert_eq!(world.bridges().len(), names.len());
}
