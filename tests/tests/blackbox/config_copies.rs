//! What a surface of the agent's configuration contained is put back.

use crate::config_write::{MASK, entries, get, open, put, send, target};
use crate::harness::Client;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;

async fn copies(client: &Client, surface: &str, scope: &str) -> Value {
    let path = format!("/api/config-write/copies?surface={surface}&scope={scope}&project=app");
    client.get(&path).await.expect(200).json()
}

/// Puts one copy of a surface back, based on a state of the file.
fn back(surface: &str, scope: &str, copy: &Value, hash: &Value) -> Value {
    let mut body = target(scope);
    body["surface"] = json!(surface);
    body["copy"] = copy.clone();
    body["hash"] = hash.clone();
    body
}

async fn write(client: &Client, surface: &str, scope: &str, mut change: Value) {
    let now = get(client, surface, scope).await;
    if now["exists"] == true {
        change["hash"] = now["hash"].clone();
    }
    put(client, surface, scope, change).await.expect(200);
}

#[tokio::test]
async fn what_a_file_contained_is_listed_shown_and_put_back_and_forth() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    for scope in ["project", "local", "user"] {
        assert_eq!(copies(client, "claude-md", scope).await["copies"], json!([]), "{scope}");
        for text in ["one", "two", "three"] {
            write(client, "claude-md", scope, json!({ "content": text })).await;
        }
        let listed = copies(client, "claude-md", scope).await;
        let sizes: Vec<&Value> =
            listed["copies"].as_array().unwrap().iter().map(|copy| &copy["bytes"]).collect();
        assert_eq!(sizes, [3, 3], "{scope}: {listed}");
        let oldest = &listed["copies"][1]["id"];
        let path = format!(
            "/api/config-write/copies/content?surface=claude-md&scope={scope}&project=app&copy={}",
            oldest.as_str().unwrap()
        );
        let shown = client.get(&path).await.expect(200).json();
        assert_eq!((&shown["content"], &shown["hash"]), (&json!("one"), &listed["hash"]));
        // Based on another state of the file, nothing is put back.
        for hash in [Value::Null, json!("00")] {
            let late = back("claude-md", scope, oldest, &hash);
            let refused = send(client, Method::POST, "copies/restore", &late).await;
            assert_eq!(refused.refused(409), "stale", "{scope}");
        }
        let undo = back("claude-md", scope, oldest, &listed["hash"]);
        let saved = send(client, Method::POST, "copies/restore", &undo).await.expect(200).json();
        let now = get(client, "claude-md", scope).await;
        assert_eq!((&now["content"], &now["hash"]), (&json!("one"), &saved["hash"]), "{scope}");
        let entry = entries(&world).pop().unwrap();
        assert_eq!((&entry["action"], &entry["scope"]), (&json!("restore"), &json!(scope)));
        // What was there is a copy now, so that this is undone as well.
        let listed = copies(client, "claude-md", scope).await;
        let redo = back("claude-md", scope, &listed["copies"][0]["id"], &listed["hash"]);
        send(client, Method::POST, "copies/restore", &redo).await.expect(200);
        assert_eq!(get(client, "claude-md", scope).await["content"], "three", "{scope}");
    }
}

#[tokio::test]
async fn a_part_of_the_settings_is_put_back_and_the_other_parts_stay() {
    let world = open();
    let path = world.project("app").join(".claude/settings.json");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let text = "{\n  \"env\": { \"KEY\": \"swordfish\" },\n  \"permissions\": { \"allow\": \
                [\"Read\"] }\n}\n";
    fs::write(&path, text).unwrap();
    let server = world.serve().await;
    let client = &server.client;
    write(client, "permissions", "project", json!({ "permissions": { "deny": ["Bash"] } })).await;
    write(client, "settings", "project", json!({ "settings": { "model": "opus" } })).await;
    let listed = copies(client, "permissions", "project").await;
    let first = &listed["copies"][1]["id"];
    let undo = back("permissions", "project", first, &listed["hash"]);
    let saved = send(client, Method::POST, "copies/restore", &undo).await.expect(200).json();
    let now: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(now, json!({ "permissions": { "allow": ["Read"] }, "model": "opus" }));
    let entry = entries(&world).pop().unwrap();
    assert_eq!((&entry["surface"], &entry["action"]), (&json!("permissions"), &json!("restore")));
    assert_eq!(entry["keys"], json!(["allow", "deny"]));
    // A copy is shown without its secrets, and put back with them.
    let shown = format!(
        "/api/config-write/copies/content?surface=settings&project=app&copy={}",
        first.as_str().unwrap()
    );
    let shown = client.get(&shown).await.expect(200).json();
    assert_eq!(shown["settings"], json!({ "env": { "KEY": MASK } }));
    let undo = back("settings", "project", first, &saved["hash"]);
    send(client, Method::POST, "copies/restore", &undo).await.expect(200);
    let now: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(now, serde_json::from_str::<Value>(text).unwrap());
}

#[tokio::test]
async fn h92_a_copy_that_is_not_there_or_not_told_of_is_not_put_back() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    for text in ["one", "two"] {
        write(client, "claude-md", "project", json!({ "content": text })).await;
    }
    let listed = copies(client, "claude-md", "project").await;
    let ask = async |body: Value| send(client, Method::POST, "copies/restore", &body).await;
    for odd in ["", "1", "../../svc.db", "00000000000000000001"] {
        let refused = ask(back("claude-md", "project", &json!(odd), &listed["hash"])).await;
        assert_eq!(refused.refused(404), "not_found", "{odd}");
    }
    let copy = &listed["copies"][0]["id"];
    let other = ask(back("settings", "project", copy, &Value::Null)).await;
    assert_eq!(other.refused(404), "not_found", "a copy of another file");
    let odd = ask(back("odd", "project", copy, &listed["hash"])).await;
    assert_eq!(odd.refused(422), "invalid_value");
    let none = ask(back("mcp", "user", copy, &Value::Null)).await;
    assert_eq!(none.refused(422), "invalid_value", "the agent's own state file");
    let mut unconfirmed = back("claude-md", "project", copy, &listed["hash"]);
    unconfirmed["confirm"] = json!("App");
    assert_eq!(ask(unconfirmed).await.refused(400), "confirm_required");
    let log = world.state.join("config_audit.log");
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    let refused = ask(back("claude-md", "project", copy, &listed["hash"])).await;
    assert_eq!(refused.refused(503), "busy");
    assert_eq!(get(client, "claude-md", "project").await["content"], "two");
}
