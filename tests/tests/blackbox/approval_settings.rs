//! The hook comes into the agent's settings and goes without a trace.

use crate::approval_hook::{SETTINGS, asking, settings};
use crate::harness::{Server, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// Switches the key while the service runs.
async fn switch(world: &World, server: &Server<'_>, on: bool) {
    world.configure(json!({ "claude": { "approval_hook": on } }));
    let before = server.log().matches("applies now: claude.approval_hook").count();
    kill_process(Pid::from_raw(server.pid).unwrap(), Signal::HUP).unwrap();
    while server.log().matches("applies now: claude.approval_hook").count() == before {
        server.says("applies now: claude.approval_hook").await;
        tokio::task::yield_now().await;
    }
}

/// Settings of people, with formatting that no program would choose.
const FORMS: [&str; 7] = [
    SETTINGS,
    "{}",
    "{ }\n\n",
    "{\"hooks\":{}}",
    "{\n\t\"hooks\" : {\"PermissionRequest\":[ ] , \"Stop\":[]} ,\n\t\"n\": 1e3}",
    "{\"hooks\": {\"PermissionRequest\": [\n   {\"matcher\":\"Bash\",  \"hooks\":[{\"type\":\"command\",\"command\":\"beep\"}]}\n]}}",
    "{\"permissions\": {\"allow\": [\"Read\"]},\r\n  \"escaped\": \"\\u00e9\" }",
];

#[tokio::test]
async fn settings_are_the_same_bytes_again_when_the_key_is_off() {
    let world = asking();
    let file = world.agent_home.join("settings.json");
    for form in FORMS {
        fs::write(&file, form).unwrap();
        world.configure(json!({ "claude": { "approval_hook": true } }));
        let server = world.serve().await;
        world.until(form, || settings(&world).contains("__permission-hook__").then_some(())).await;
        let with: Value = serde_json::from_str(&settings(&world)).unwrap();
        let before: Value = serde_json::from_str(form).unwrap();
        for (key, value) in before.as_object().unwrap().iter().filter(|(key, _)| *key != "hooks") {
            assert_eq!(&with[key], value, "{form}");
        }
        // A second start changes nothing.
        let written = settings(&world);
        server.stop().await;
        let server = world.serve().await;
        switch(&world, &server, false).await;
        server.says("was taken out of the agent's settings").await;
        assert_ne!(written, form);
        assert_eq!(settings(&world), form);
        server.stop().await;
    }
}

#[tokio::test]
async fn settings_that_were_not_there_are_not_there_again() {
    let world = asking();
    let file = world.agent_home.join("settings.json");
    fs::remove_file(&file).unwrap();
    let server = world.serve().await;
    world.until("the hook", || file.exists().then_some(())).await;
    switch(&world, &server, false).await;
    world.until("its end", || (!file.exists()).then_some(())).await;
    // On again, and the socket answers again.
    switch(&world, &server, true).await;
    world.until("the hook", || file.exists().then_some(())).await;
    let audit = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    assert!(audit.contains("\"delete\""), "{audit}");
    server.stop().await;
}

#[tokio::test]
async fn what_somebody_else_changed_meanwhile_stays() {
    let world = asking();
    let file = world.agent_home.join("settings.json");
    let server = world.serve().await;
    world.until("the hook", || settings(&world).contains("PermissionRequest").then_some(())).await;
    let changed = settings(&world).replace("opus", "sonnet");
    fs::write(&file, &changed).unwrap();
    switch(&world, &server, false).await;
    server.says("was taken out of the agent's settings").await;
    let left: Value = serde_json::from_str(&settings(&world)).unwrap();
    assert_eq!(left, json!({ "model": "sonnet", "hooks": { "Stop": [] } }));
    server.stop().await;
}

#[tokio::test]
async fn settings_that_cannot_be_changed_are_left_and_sessions_ask_themselves() {
    let world = asking();
    let file = world.agent_home.join("settings.json");
    let outside = world.root.join("elsewhere.json");
    for odd in ["{ broken", "[]", "{\"hooks\": []}", "{\"hooks\": {\"PermissionRequest\": {}}}"] {
        fs::write(&file, odd).unwrap();
        let server = world.serve().await;
        server.says("the hook is not in the agent's settings").await;
        assert_eq!(settings(&world), odd);
        // The service itself is as it is otherwise.
        server.client.get("/api/approvals").await.expect(200);
        server.stop().await;
    }
    fs::remove_file(&file).unwrap();
    fs::write(&outside, SETTINGS).unwrap();
    symlink(&outside, &file).unwrap();
    let server = world.serve().await;
    let told = server.says("the hook is not in the agent's settings").await;
    assert!(told.contains("link"), "{told}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), SETTINGS);
    assert!(file.is_symlink());
    server.stop().await;
    if !rustix::process::getuid().is_root() {
        fs::remove_file(&file).unwrap();
        fs::write(&file, SETTINGS).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
        let server = world.serve().await;
        server.says("the hook is not in the agent's settings").await;
        server.stop().await;
    }
}
