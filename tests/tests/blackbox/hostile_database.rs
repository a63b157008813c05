//! A locked and a read-only database under a running service (H87, H88).

use crate::harness::{Reply, Server, Start, World, gone, service, simulator};
use crate::hostile_scarcity::{brought, give};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use svc_skip::skip;

/// Routes that do not write.
const READS: [&str; 8] = [
    "/healthz",
    "/api/state",
    "/api/v1/instances",
    "/api/v1/projects",
    "/api/v1/instances/runs",
    "/api/history",
    "/api/projects/runs/preflight",
    "/api/instances/runs/log",
];

/// Every read is answered.
async fn reads(server: &Server<'_>) {
    for path in READS {
        server.client.get(path).await.expect(200);
    }
}

/// A refusal with this code and a `Retry-After` header.
#[track_caller]
fn refused_for_now(reply: &Reply, code: &str) {
    assert_eq!(reply.refused(503), code);
    let wait: u64 = reply.header("retry-after").expect("when to come back").parse().unwrap();
    assert!(wait >= 1, "{wait}");
}

/// H87: the database is locked while bridges are launched, stopped and killed.
#[tokio::test]
async fn h87_a_locked_database_refuses_writes_answers_reads_and_loses_nothing() {
    let world = World::new();
    for name in ["runs", "new", "ends"] {
        world.project(name);
    }
    let server = world.serve().await;
    let running = server.client.run("runs").await;
    server.client.run("ends").await;
    let lock = world.locked().await;

    let launch = tokio::spawn({
        let client = server.client.clone();
        async move { client.launch("new").await }
    });
    let stop = tokio::spawn({
        let client = server.client.clone();
        async move { client.stop("runs").await }
    });
    let ends = world.bridges_of("ends").remove(0);
    ends.signal(Signal::KILL);
    gone(&ends).await;
    reads(&server).await;
    assert!(!launch.is_finished() && !stop.is_finished(), "reads wait for nobody's lock");
    refused_for_now(&launch.await.unwrap(), "busy");
    refused_for_now(&stop.await.unwrap(), "busy");
    reads(&server).await;
    let command = world.cli(&["start", "new"]).await;
    assert_eq!(command.code, Some(1), "{}", command.stderr);
    assert!(command.stderr.contains("keeps the database busy; try again"), "{}", command.stderr);
    // Nothing was written, so nothing was done.
    assert!(world.starts("new").is_empty() && world.bridges_of("new").is_empty());
    assert_eq!(world.bridges_of("runs").len(), 1, "no signal without its intent on record");
    let shown = server.client.instances().await;
    let rows = world.rows().await;
    assert_eq!(shown.len(), rows.len());
    for (shown, row) in shown.iter().zip(&rows) {
        let stored = (row.instance_id.as_str(), row.status.as_str());
        assert_eq!((shown.instance_id.as_str(), shown.status.to_string().as_str()), stored);
    }

    lock.release().await;
    let mut page = server.events().await;
    // The background writer that was refused tries again by itself.
    page.until_status("ends", "crashed").await;
    server.client.run("new").await;
    let stopped = server.client.stop(running.instance_id.as_str()).await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
    let found = world.agree().await;
    assert_eq!((found.rows.len(), found.bridges.len()), (3, 1));
    drop(page);
}

/// H88: the state directory becomes read-only, then writable again.
#[tokio::test]
async fn h88_a_read_only_state_directory_refuses_writes_answers_reads_and_recovers() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can start a service of another user");
    }
    let world = World::inside(Path::new("/tmp"), json!({}));
    for name in ["runs", "new"] {
        world.project(name);
    }
    // Modes do not bind root, so the service is somebody else's.
    let uid = 63_272;
    let program = brought(&world.root, &service());
    let agent = brought(&world.root, &simulator());
    world.configure(json!({ "claude": { "binary": agent } }));
    give(&world.root, uid);
    let start = Start { uid: Some(uid), program: Some(program), ..Start::default() };
    let server = world.serve_as(start).await;
    server.client.run("runs").await;

    modes(&world.state, 0o500, 0o400);
    for _ in 0..4 {
        let refused = server.client.launch("new").await;
        assert!([503, 507].contains(&refused.status), "{}: {}", refused.status, refused.text());
        assert!(refused.header("retry-after").is_some() || refused.status == 507);
    }
    reads(&server).await;
    assert!(world.starts("new").is_empty() && world.bridges_of("new").is_empty());
    assert!(server.client.instances().await.iter().all(|row| row.project != "new"));
    assert_eq!(world.bridges_of("runs").len(), 1, "what runs goes on");
    // It names the directory to whoever has to mend it, so it is read without the other checks.
    let doctor = server.client.request(reqwest::Method::GET, "/api/doctor").send().await.unwrap();
    let doctor: serde_json::Value = doctor.json().await.unwrap();
    let checks = doctor["checks"].as_array().unwrap();
    let wrong = checks.iter().filter(|check| check["status"] == "fail");
    let wrong: Vec<_> = wrong.map(|check| check.to_string()).collect();
    let state = world.state.to_str().unwrap();
    assert!(wrong.iter().any(|check| check.contains(state)), "{doctor}");
    // Four refusals within the minute are one line.
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("refused a request with 50"));
    assert_eq!(lines.count(), 1, "{log}");
    modes(&world.state, 0o700, 0o600);
    server.client.run("new").await;
    server.client.stop("runs").await.expect(200);
    let found = world.agree().await;
    assert_eq!((found.rows.len(), found.bridges.len()), (2, 1));
}

/// Sets the modes of a directory and of everything below it.
fn modes(dir: &Path, of_dirs: u32, of_files: u32) {
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => modes(&entry.path(), of_dirs, of_files),
            false if entry.file_type().unwrap().is_file() => set(&entry.path(), of_files),
            false => {}
        }
    }
    set(dir, of_dirs);
}
