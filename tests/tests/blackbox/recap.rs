//! The recap that a new session begins with (`claude.resume_recap`).

use crate::conversations::{add, agent, person, transcript};
use crate::harness::{World, within};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

const ONE: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1";
const NEW: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f2";
const SETTINGS: &str = "{\n  \"model\": \"opus\",   \"hooks\": { \"Stop\": [] }\n}\n";

/// The command that the settings of the user have for a session that starts.
fn hook(world: &World) -> String {
    let settings = fs::read_to_string(world.agent_home.join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let groups = settings["hooks"]["SessionStart"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{settings}");
    groups[0]["hooks"][0]["command"].as_str().unwrap().to_owned()
}

/// What the hook prints when the agent runs it.
async fn told(world: &World, env: &[(&str, &str)], input: &str) -> String {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(hook(world)).env_clear().envs(world.environment());
    shell.envs(env.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A hook that has nothing to do ends before it has read.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let done = within("the end of the hook", child.wait_with_output()).await.unwrap();
    assert!(done.status.success());
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    String::from_utf8(done.stdout).unwrap()
}

fn start(cwd: &Path, source: &str) -> String {
    json!({
        "session_id": NEW, "cwd": cwd, "hook_event_name": "SessionStart", "source": source,
    })
    .to_string()
}

#[tokio::test]
async fn a_new_session_is_told_what_was_said_before() {
    let world = World::with(json!({ "claude": {
        "resume_recap": true, "resume_recap_max_chars": 600,
    } }));
    let app = world.project("app");
    let settings = world.agent_home.join("settings.json");
    fs::write(&settings, SETTINGS).unwrap();
    let server = world.serve().await;
    let bridge = server.client.run("app").await;
    // One entry beside the others, every other byte kept, in the audit log, and written once.
    let written = fs::read_to_string(&settings).unwrap();
    assert!(written.starts_with("{\n  \"model\": \"opus\",   \"hooks\": { "), "{written}");
    let audit = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    let lines: Vec<&str> = audit.lines().filter(|line| line.contains("SessionStart")).collect();
    assert_eq!(lines.len(), 1, "{audit}");
    server.client.stop(bridge.instance_id.as_str()).await.expect(200);
    server.client.run("app").await;
    assert_eq!(fs::read_to_string(&settings).unwrap(), written);
    let pid = server.client.instances().await.into_iter().find_map(|one| one.bridge_pid).unwrap();
    let env = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let env = String::from_utf8_lossy(&env);
    let own: Vec<&str> = env.split('\0').filter(|one| one.starts_with("SVC_RESUME")).collect();
    assert_eq!(own.len(), 2, "{own:?}");
    assert!(own.contains(&"SVC_RESUME_RECAP_MAX_CHARS=600"), "{own:?}");

    add(&transcript(&world, &app, ONE), &person(&app, &"long ago ".repeat(100)));
    add(&transcript(&world, &app, ONE), &person(&app, "find the bug in session_01ABCDEFGHIJ"));
    add(&transcript(&world, &app, ONE), &agent(&app, "m1", "found it"));
    let on = [("SVC_RESUME_RECAP", "1"), ("SVC_RESUME_RECAP_MAX_CHARS", "600")];
    let said = told(&world, &on, &start(&app, "startup")).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "SessionStart");
    let text = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    let end = "\n\nUser: find the bug in session_<redacted>\n\nAgent: found it";
    assert!(text.ends_with(end) && !text.contains("long ago"), "{text}");

    // Nothing where nothing was asked for, where there is nothing to tell, or what came is odd.
    assert_eq!(told(&world, &[], &start(&app, "startup")).await, "");
    assert_eq!(told(&world, &on, &start(&app, "compact")).await, "");
    assert_eq!(told(&world, &on, &start(&world.projects, "startup")).await, "");
    assert_eq!(told(&world, &on, "no JSON").await, "");
    server.stop().await;
}

#[tokio::test]
async fn settings_that_cannot_be_changed_are_left_and_the_bridge_starts() {
    let world = World::with(json!({ "claude": { "resume_recap": true } }));
    world.project("app");
    let settings = world.agent_home.join("settings.json");
    for odd in ["{ not JSON", "[]", "{\"hooks\": []}"] {
        fs::write(&settings, odd).unwrap();
        let server = world.serve().await;
        let bridge = server.client.run("app").await;
        assert_eq!(fs::read_to_string(&settings).unwrap(), odd);
        server.says("begin without a recap").await;
        server.client.stop(bridge.instance_id.as_str()).await.expect(200);
        server.stop().await;
    }
}

#[tokio::test]
async fn without_the_key_nothing_is_written() {
    let world = World::new();
    world.project("app");
    let settings = world.agent_home.join("settings.json");
    fs::write(&settings, SETTINGS).unwrap();
    let server = world.serve().await;
    server.client.run("app").await;
    assert_eq!(fs::read_to_string(&settings).unwrap(), SETTINGS);
    server.stop().await;
}
