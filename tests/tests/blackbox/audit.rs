//! The audit log: it has every change of trust and tokens.
//!
//! No such change is made without its entry.

use crate::harness::World;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

fn entries(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.state.join("config_audit.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn told(entries: &[Value]) -> Vec<[&str; 4]> {
    let facts = |line| ["surface", "scope", "target", "action"].map(|name| text(line, name));
    entries.iter().map(facts).collect()
}

fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry[name].as_str().unwrap()
}

#[tokio::test]
async fn every_grant_of_trust_is_in_the_audit_log_once() {
    let world = World::new();
    let dirs = ["one", "two", "three"].map(|name| world.untrusted(name));
    let paths = dirs.each_ref().map(|dir| dir.to_str().unwrap());
    let server = world.serve().await;
    server.client.post("/api/projects/one/trust").await.expect(200);
    server.client.post("/api/projects/one/trust").await.expect(200); // nothing changes
    server.client.launch_with(json!({ "project": "two", "trust": true })).await.expect(201);
    assert_eq!(server.client.launch("three").await.refused(409), "not_trusted");
    world.cli(&["start", "three", "--trust"]).await.ok();

    let log = entries(&world);
    let grant = |path| ["trust", "project", path, "create"];
    assert_eq!(told(&log), paths.map(grant));
    let actors: Vec<&str> = log.iter().map(|line| text(line, "actor")).collect();
    assert_eq!(actors[..2], ["admin", "admin"]);
    assert!(actors[2].starts_with("cli:") && actors[2].len() > 4, "{actors:?}");
    assert_eq!(log[0]["keys"], json!(["hasTrustDialogAccepted"]));
    let meta = fs::metadata(world.state.join("config_audit.log")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
}

/// With a key that makes a repeat harmless the work runs on a task of its own.
#[tokio::test]
async fn a_launch_with_a_key_names_who_asked_for_it() {
    let world = World::with(json!({
        "auth": { "enabled": true, "password_required": true, "password_hash": HASH }
    }));
    world.untrusted("app");
    let issued = ["api-token", "issue", "ci", "--scope", "operate", "--json"];
    let issued = world.cli(&issued).await.ok().json();
    let server = world.serve().await;
    let ask = server.client.request(Method::POST, "/api/v1/instances");
    let ask = ask.bearer_auth(issued["token"].as_str().unwrap()).header("Idempotency-Key", "one");
    let body = json!({ "project": "app", "trust": true });
    server.client.send(ask.json(&body)).await.expect(201);
    let log = entries(&world);
    let actors = log.iter().filter(|line| text(line, "surface") == "trust");
    assert_eq!(actors.map(|line| text(line, "actor")).collect::<Vec<_>>(), ["token:ci"]);
}

#[tokio::test]
async fn every_change_of_a_token_is_in_the_audit_log_without_the_token() {
    let world = World::new();
    let issued = world.cli(&["api-token", "issue", "phone", "--json"]).await.ok().json();
    let rotated = world.cli(&["api-token", "rotate", "phone", "--json"]).await.ok().json();
    world.cli(&["api-token", "revoke", "phone"]).await.ok();
    assert_ne!(world.cli(&["api-token", "revoke", "phone"]).await.code, Some(0));
    let log = entries(&world);
    let change = |action| ["api-token", "global", "phone", action];
    assert_eq!(told(&log), ["create", "update", "delete"].map(change));
    let text = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    for answer in [issued, rotated] {
        assert!(!text.contains(answer["token"].as_str().unwrap()));
    }
}

/// H92: what cannot be told of is not done.
#[tokio::test]
async fn h92_nothing_is_granted_when_the_audit_log_cannot_be_written() {
    let world = World::new();
    world.untrusted("app");
    let server = world.serve().await;
    fs::create_dir(world.state.join("config_audit.log")).unwrap();
    let before = fs::read(world.agent_config()).unwrap();
    assert_eq!(server.client.post("/api/projects/app/trust").await.refused(503), "busy");
    let body = json!({ "project": "app", "trust": true });
    assert_eq!(server.client.launch_with(body).await.refused(503), "busy");
    assert_eq!(fs::read(world.agent_config()).unwrap(), before);
    assert!(world.rows().await.is_empty(), "the row of the launch is gone");
    assert_ne!(world.cli(&["api-token", "issue", "phone"]).await.code, Some(0));
    let tokens = world.cli(&["api-token", "list", "--json"]).await.ok();
    assert!(!tokens.stdout.contains("phone"), "{}", tokens.stdout);
}
