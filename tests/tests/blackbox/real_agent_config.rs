//! What the page writes, as the real agent reads it.
//!
//! `SVC_CONTRACT_AGENT` names the agent.
//! Without a login it still tells with which settings, agents, skills and servers a session begins.

use crate::config_write::{open, put};
use crate::harness::World;
use crate::real_agent::{NO_AGENT, Real};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use svc_skip::skip;

const REVIEW: &str =
    "---\nname: review\ndescription: Reviews a change\ntools: Read\n---\nBe strict.\n";

/// How a session of the agent begins: its first frame.
fn beginning(agent: &Real<'_>, dir: &Path) -> Value {
    let said = agent.run_in(dir, &["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    let first = said.lines().next().unwrap_or_else(|| panic!("no frame: {said}"));
    let frame: Value = serde_json::from_str(first).expect("a frame");
    assert_eq!(frame["subtype"], "init", "{first}");
    frame
}

fn names(frame: &Value, member: &str) -> Vec<String> {
    let all = frame[member].as_array().expect("a list").iter();
    all.map(|one| one["name"].as_str().or(one.as_str()).unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn the_real_agent_reads_what_each_surface_writes() {
    let world = open();
    let app = world.repository("app");
    let Some(agent) = Real::of(&world) else { skip!("{NO_AGENT}") };
    let server = world.serve().await;
    let client = &server.client;
    let before = beginning(&agent, &app);
    assert!(!names(&before, "agents").contains(&"review".to_owned()));

    put(client, "settings", "user", json!({ "settings": { "model": "haiku" } })).await.expect(200);
    let permissions = json!({ "permissions": { "defaultMode": "plan", "allow": ["Read"] } });
    put(client, "permissions", "project", permissions).await.expect(200);
    put(client, "subagents/review", "project", json!({ "content": REVIEW })).await.expect(200);
    let skill = "---\nname: greet\ndescription: Greets\n---\nSay hello.\n";
    let files = json!({ "name": "greet", "files": { "SKILL.md": skill } });
    put(client, "skills", "user", files).await.expect(200);
    let servers = json!({ "servers": { "one": { "command": "true" } } });
    put(client, "mcp", "project", servers).await.expect(200);

    let frame = beginning(&agent, &app);
    assert!(frame["model"].as_str().unwrap().contains("haiku"), "{}", frame["model"]);
    assert_eq!(frame["permissionMode"], "plan");
    assert!(names(&frame, "agents").contains(&"review".to_owned()), "{}", frame["agents"]);
    assert!(names(&frame, "skills").contains(&"greet".to_owned()), "{}", frame["skills"]);
    let listed = agent.run_in(&app, &["mcp", "list"]);
    assert!(listed.contains("one"), "{listed}");
    let plugins: Value =
        serde_json::from_str(&agent.run_in(&app, &["plugin", "list", "--json"])).unwrap();
    assert_eq!(plugins, json!([]));
    server.stop().await;
}

#[tokio::test]
async fn the_hook_comes_and_goes_and_the_real_agent_begins_as_before() {
    let world = World::with(json!({ "claude": { "approval_hook": true } }));
    let app = world.project("app");
    let Some(agent) = Real::of(&world) else { skip!("{NO_AGENT}") };
    let file = world.agent_home.join("settings.json");
    // The agent rewrites what it has newer words for, when it begins for the first time.
    fs::write(
        &file,
        "{ \"cleanupPeriodDays\": 9,\n\"permissions\": { \"defaultMode\": \"plan\" }}",
    )
    .unwrap();
    let facts = |frame: &Value| [frame["model"].clone(), frame["permissionMode"].clone()];
    let before = facts(&beginning(&agent, &app));
    let settings = fs::read_to_string(&file).unwrap();
    let server = world.serve().await;
    let has_hook =
        || fs::read_to_string(&file).unwrap().contains("__permission-hook__").then_some(());
    world.until("the hook", has_hook).await;
    let with = fs::read_to_string(&file).unwrap();
    assert_eq!(facts(&beginning(&agent, &app)), before, "its settings are read with the hook");
    assert_eq!(fs::read_to_string(&file).unwrap(), with, "the agent changed its settings");
    server.stop().await;
    world.configure(json!({ "claude": { "approval_hook": false } }));
    let server = world.serve().await;
    let is_out = || (fs::read_to_string(&file).unwrap() == settings).then_some(());
    world.until("the same bytes", is_out).await;
    assert_eq!(facts(&beginning(&agent, &app)), before);
    server.stop().await;
}
