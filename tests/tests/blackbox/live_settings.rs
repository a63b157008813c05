//! Settings take effect while the service runs.
//!
//! By the API, by commands, and by a signal.

use crate::harness::{Receiver, Reply, Server, World};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const MARKS: usize = 12;

/// A file as a person keeps it, with comments and text of its own.
fn by_hand(world: &World) {
    let mut text = format!(
        "# Ours.\nprojects_root: {}   # all of them\nstate_dir: {}\nport: {}\n\
         claude:\n  # the simulator\n  binary: {}\n  node_from_nvm: false\n\
         config_write: {{enabled: true}}   # for the page\nx-notes: [kept, 'as it is']\n",
        world.projects.display(),
        world.state.display(),
        world.port(),
        crate::harness::simulator().display(),
    );
    for mark in 0..MARKS {
        text.push_str(&format!("# mark {mark}\n"));
    }
    write(world, &text);
}

fn write(world: &World, text: &str) {
    fs::write(&world.config, text).unwrap();
    fs::set_permissions(&world.config, fs::Permissions::from_mode(0o600)).unwrap();
}

fn text(world: &World) -> String {
    fs::read_to_string(&world.config).unwrap()
}

fn audited(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.state.join("config_audit.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn put(server: &Server<'_>, edits: &Value, hash: &Value) -> Reply {
    let request = server.client.request(Method::PUT, "/api/config").header("Origin", &server.base);
    server.client.send(request.json(&json!({ "edits": edits, "hash": hash }))).await
}

async fn settings(server: &Server<'_>) -> Value {
    server.client.get("/api/config").await.expect(200).json()
}

fn hang_up(server: &Server<'_>) {
    kill_process(Pid::from_raw(server.pid).unwrap(), Signal::HUP).unwrap();
}

async fn bootstrap(server: &Server<'_>) -> Value {
    server.client.get("/api/bootstrap").await.expect(200).json()
}

#[tokio::test]
async fn a_saved_setting_applies_at_once_and_the_answer_says_what_waits() {
    let world = World::new();
    by_hand(&world);
    world.project("one");
    world.project("two");
    let server = world.serve().await;
    let read = settings(&server).await;
    assert_eq!(read["specs"]["instance_defaults.max_bridges"]["applies"], "live");
    assert_eq!(read["specs"]["hosted.enabled"]["applies"], "restart");

    // The next launch knows the cap.
    server.client.run("one").await;
    let edits = json!({ "instance_defaults.max_bridges": 1, "claude.launch_mode": "pty" });
    let saved = put(&server, &edits, &read["hash"]).await.expect(200).json();
    assert_eq!(saved["restart_required"], false, "{saved}");
    assert_eq!(server.client.launch("two").await.refused(409), "capacity");
    assert_eq!(bootstrap(&server).await["defaults"]["resume_mode"], "pty");
    let read = settings(&server).await;
    assert_eq!(read["specs"]["claude.launch_mode"]["pending"], false);
    assert_eq!(read["specs"]["claude.launch_mode"]["source"], "file");

    // One key of a save waits: the answer says so, and the others apply all the same.
    let edits = json!({ "hosted.enabled": true, "instance_defaults.max_bridges": 2 });
    let saved = put(&server, &edits, &read["hash"]).await.expect(200).json();
    assert_eq!(saved["restart_required"], true, "{saved}");
    assert_eq!(bootstrap(&server).await["features"]["hosted"], false);
    server.client.launch_with(json!({ "project": "two", "mode": "standard" })).await.expect(201);
    let read = settings(&server).await;
    assert_eq!(read["specs"]["hosted.enabled"]["pending"], true);
    assert_eq!(read["specs"]["instance_defaults.max_bridges"]["pending"], false);

    // A command reaches the running service.
    let set = world.cli(&["config", "set", "claude.launch_mode", "standard"]).await.ok();
    assert!(set.stderr.contains("the running service uses this now"), "{}", set.stderr);
    assert_eq!(bootstrap(&server).await["defaults"]["resume_mode"], "standard");
    let set = ["config", "set", "log_level", "debug", "usage.mode", "off", "--json"];
    let set = world.cli(&set).await.ok().json();
    assert_eq!(set["restart_required"], true);
    assert_eq!(bootstrap(&server).await["usage"]["mode"], "off");
    server.stop().await;
    let set = world.cli(&["config", "set", "usage.mode", "cost", "--json"]).await.ok().json();
    assert_eq!(set["restart_required"], false, "nothing runs that could be restarted");
}

#[tokio::test]
async fn a_signal_applies_an_edit_by_hand_and_a_bad_file_changes_nothing() {
    let world = World::new();
    by_hand(&world);
    let server = world.serve().await;
    let good = text(&world);
    write(&world, &format!("{good}restart: {{max_crashes: 9}}\nusage:\n  mode: tokens\n"));
    hang_up(&server);
    let said = server.says("the configuration applies now: ").await;
    assert!(said.contains("restart.max_crashes") && said.contains("usage.mode"), "{said}");
    assert_eq!(bootstrap(&server).await["usage"]["mode"], "tokens");
    let entries = audited(&world);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!((&entries[0]["actor"], &entries[0]["action"]), (&json!("file"), &json!("apply")));
    assert_eq!(entries[0]["keys"], json!(["restart.max_crashes", "usage.mode"]));

    for (bad, reason) in [
        ("usage: {mode: sometimes}\n", "usage.mode: must be one of"),
        ("usage: {mode: off}\nrestart: {jitter: 7}\n", "restart.jitter: must be between"),
        ("usage: [\n", "is not YAML"),
    ] {
        write(&world, &format!("{good}{bad}"));
        hang_up(&server);
        let said = server.says(reason).await;
        assert!(said.contains("cannot be used; all values stay as they are"), "{said}");
        assert_eq!(bootstrap(&server).await["usage"]["mode"], "tokens", "{bad}");
    }
    assert_eq!(audited(&world).len(), 1, "nothing took effect");

    // What protects never changes under a running service.
    write(
        &world,
        &format!("{good}auth: {{enabled: false}}\nport: 1\n").replacen("port: ", "#: ", 1),
    );
    hang_up(&server);
    let said = server.says("the configuration applies after a restart: ").await;
    assert!(said.contains("port"), "{said}");
    server.client.get("/healthz").await.expect(200);
    server.stop().await;
}

/// Waits until figures are there, or are not: no event says that they are gone.
async fn until_measured(server: &Server<'_>, is_measured: bool) {
    let figures = async || server.client.get("/api/metrics").await.expect(200).json();
    while figures().await.as_object().unwrap().is_empty() == is_measured {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn measuring_ends_and_begins_again_without_a_restart() {
    let world = World::with(json!({ "metrics": { "poll_seconds": 1.0 } }));
    world.project("one");
    let server = world.serve().await;
    server.client.run("one").await;
    until_measured(&server, true).await;
    for is_measured in [false, true] {
        switch(&world, "metrics.enabled", is_measured).await;
        assert_eq!(bootstrap(&server).await["features"]["metrics"], is_measured);
        until_measured(&server, is_measured).await;
    }
    server.stop().await;
}

/// Switches a key by a command, which reaches the running service.
async fn switch(world: &World, key: &str, is_on: bool) {
    let set = world.cli(&["config", "set", key, &is_on.to_string()]).await.ok();
    assert!(set.stderr.contains("the running service uses this now"), "{}", set.stderr);
}

#[tokio::test]
async fn events_are_posted_while_that_is_on_and_no_restart_is_needed() {
    for outbox in [false, true] {
        let receiver = Receiver::start().await;
        let url = receiver.url("a");
        let world = World::with(json!({ "webhooks": { "urls": [url], "outbox": outbox } }));
        world.project("app");
        let server = world.serve().await;
        let id = server.client.run("app").await.instance_id.to_string();
        for round in 1..=2 {
            switch(&world, "webhooks.enabled", true).await;
            server.client.stop(&id).await.expect(200);
            receiver.until(round).await;
            switch(&world, "webhooks.enabled", false).await;
            server.client.resume(&id).await.expect(200);
            server.events().await.until_status("app", "running").await;
        }
        assert_eq!(receiver.events(), ["stop", "stop"], "outbox: {outbox}");
        server.stop().await;
        // Nor later, when it is on again.
        world.configure(json!({ "webhooks": { "enabled": true } }));
        let server = world.serve().await;
        server.client.stop(&id).await.expect(200);
        receiver.until(3).await;
        assert_eq!(receiver.events(), ["stop", "stop", "stop"], "outbox: {outbox}");
        server.stop().await;
    }
}
