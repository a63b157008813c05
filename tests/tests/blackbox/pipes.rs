//! A pipe in the place of a file that the service reads holds up nobody (H39, H85).
//!
//! Opening a pipe waits until somebody writes to it: each request would keep a thread for ever.

use crate::direct_sessions::{enabled, launch};
use crate::harness::{World, within};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts a pipe into the place of a file, and returns what keeps the file.
fn pipe_at(path: &Path) -> PathBuf {
    let kept = path.with_extension("kept");
    if path.exists() {
        fs::rename(path, &kept).unwrap();
    }
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    kept
}

fn back(path: &Path, kept: &Path) {
    fs::remove_file(path).unwrap();
    if kept.exists() {
        fs::rename(kept, path).unwrap();
    }
}

fn below(directory: &Path, ends: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|one| one.path());
    entries.filter(|path| path.to_string_lossy().ends_with(ends)).collect()
}

/// The configuration: it is shown as it cannot be read, and read again afterwards.
#[tokio::test]
async fn h39_h85_a_pipe_in_the_place_of_the_configuration_is_told_of() {
    let world = World::with(json!({ "config_write": { "enabled": true } }));
    let server = world.serve().await;
    let read = server.client.get("/api/config").await.expect(200).json();
    let kept = pipe_at(&world.config);
    let edit = json!({ "edits": { "ceilings.action": "stop" }, "hash": read["hash"] });
    within("answers", async {
        for _ in 0..3 {
            // Without the file there is nothing that a save could begin with.
            let shown = server.client.get("/api/config").await.expect(200).json();
            assert!(shown["hash"].is_null());
            let request = server.client.request(reqwest::Method::PUT, "/api/config").json(&edit);
            let saved = server.client.send(request).await;
            assert!(saved.status >= 400, "{}: {}", saved.status, saved.text());
            server.client.post("/api/restart").await.expect(409);
        }
        let told = world.cli(&["config", "get", "port"]).await;
        assert_eq!(told.code, Some(2), "{told:?}");
    })
    .await;
    back(&world.config, &kept);
    let request = server.client.request(reqwest::Method::PUT, "/api/config").json(&edit);
    server.client.send(request).await.expect(200);
}

/// What lies in the state directory, in the agent's, and beside sessions.
#[tokio::test]
async fn h85_pipes_among_the_files_of_the_service_and_the_agent_hold_up_nothing() {
    let world = enabled();
    world.configure(json!({ "config_write": { "enabled": true } }));
    world.project("kept");
    let server = world.serve().await;
    let direct = launch(&server).await;
    let bridge = server.client.run("kept").await;
    let text = json!({ "project": "kept", "scope": "project", "content": "one",
        "confirm": "kept", "hash": "" });
    let url = "/api/config-write/claude-md?project=kept&scope=project";
    let request = server.client.request(reqwest::Method::PUT, url).json(&text);
    let _ = server.client.send(request).await; // a copy is kept of what was there
    let logs = world.state.join("logs");
    let mut places = below(&logs, ".launch.json");
    places.extend(below(&world.state.join("agent_config_backups"), ""));
    places.extend(below(&world.state.join("reserve"), "7"));
    places.push(world.agent_home.join(".credentials.json"));
    places.push(world.state.join("session.epoch"));
    assert!(places.len() >= 5, "{places:?}");
    for place in &places {
        let kept = pipe_at(place);
        within("answers", async {
            for path in ["/api/strays", "/api/keepers", "/api/login-status", "/api/doctor"] {
                let reply = server.client.get(path).await;
                assert!(reply.status < 500, "{place:?} {path}: {}", reply.text());
            }
            world.cli(&["strays"]).await.ok();
        })
        .await;
        back(place, &kept);
    }
    // What is read at the start, and a stop although the kept space is a pipe.
    server.stop().await;
    let at_start = [world.state.join("session.epoch"), world.state.join("reserve/127")];
    let kept: Vec<_> = at_start.iter().map(|place| pipe_at(place)).collect();
    let server = within("the start", world.serve()).await;
    within("the stops", async {
        server.client.stop(bridge.instance_id.as_str()).await.expect(200);
        server.client.stop(direct.instance_id.as_str()).await.expect(200);
    })
    .await;
    server.stop().await;
    for kept in kept {
        let _ = fs::remove_file(kept);
    }
}

/// The daemon of Direct Sessions says why it does not start.
#[tokio::test]
async fn h85_pipes_among_the_files_of_the_daemon_are_told_of() {
    for name in ["daemon.log", "children.json", "token"] {
        let world = enabled();
        let server = world.serve().await;
        let one = launch(&server).await;
        server.client.stop(one.instance_id.as_str()).await.expect(200);
        server.stop().await;
        for daemon in world.processes() {
            daemon.signal(rustix::process::Signal::KILL);
            crate::harness::gone(&daemon).await;
        }
        let found = below(&world.state.join("hosted"), name);
        assert_eq!(found.len(), 1, "{name}: {:?}", below(&world.state.join("hosted"), ""));
        pipe_at(&found[0]);
        let server = within("the start", world.serve()).await;
        let body = json!({ "project": "app", "channel": "hosted" });
        let reply = within("an answer", server.client.launch_with(body)).await;
        let is_told = reply.status == 503 || reply.status == 201;
        assert!(is_told, "{name}: {} {}", reply.status, reply.text());
    }
}

/// The place of the daemon's socket is a setting: it must not cost a file.
#[tokio::test]
async fn h39_h63_what_is_in_the_place_of_the_daemons_socket_stays() {
    let world = enabled();
    let own = world.root.join("own");
    fs::write(&own, "mine").unwrap();
    for (number, place) in ["file", "link", "directory", "pipe"].into_iter().enumerate() {
        let path = world.root.join(format!("socket-{number}"));
        match place {
            "file" => fs::write(&path, "mine").unwrap(),
            "link" => std::os::unix::fs::symlink(&own, &path).unwrap(),
            "directory" => fs::create_dir(&path).unwrap(),
            _ => drop(pipe_at(&path)),
        }
        let before = fs::symlink_metadata(&path).unwrap();
        world.configure(json!({ "hosted": { "socket_path": path } }));
        let server = world.serve().await;
        let body = json!({ "project": "app", "channel": "hosted" });
        let refused = within("an answer", server.client.launch_with(body)).await;
        assert_eq!(refused.status, 503, "{place}: {}", refused.text());
        let after = fs::symlink_metadata(&path).unwrap();
        assert_eq!(before.file_type(), after.file_type(), "{place}");
        assert_eq!(before.len(), after.len(), "{place}");
        server.stop().await;
    }
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
}
