//! Subagents of a project and of the user.

use crate::config_write::{MASK, entries, get, open, put, send, target};
use crate::harness::{Reply, World};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const REVIEW: &str = "---\nname: review\ndescription: Reviews a change.\ntools: Read, Grep\n---\n\
                      Look for faults.\n";

fn directory(world: &World, scope: &str) -> PathBuf {
    match scope {
        "user" => world.agent_home.join("agents"),
        _ => world.projects.join("app/.claude/agents"),
    }
}

fn delete_path(name: &str, scope: &str, more: &str) -> String {
    let confirm = target(scope)["confirm"].as_str().unwrap().replace(' ', "%20");
    format!("/api/config-write/subagents/{name}?scope={scope}&project=app&confirm={confirm}{more}")
}

#[tokio::test]
async fn a_subagent_is_made_read_changed_removed_and_put_back() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    for scope in ["project", "user"] {
        let none = get(client, "subagents/review", scope).await;
        assert_eq!((&none["exists"], &none["editable"]), (&json!(false), &json!(true)));
        let content = json!({ "content": REVIEW });
        put(client, "subagents/review", scope, content.clone()).await.expect(200);
        let path = directory(&world, scope).join("review.md");
        assert_eq!(fs::read_to_string(&path).unwrap(), REVIEW);
        let now = get(client, "subagents/review", scope).await;
        assert_eq!(now["frontmatter"]["tools"], "Read, Grep");
        assert_eq!((&now["source"], &now["content"]), (&json!(scope), &json!(REVIEW)));
        let listed = get(client, "subagents", scope).await;
        let agents = listed["agents"].as_array().unwrap();
        let names: Vec<&str> = agents.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["review", "explore", "general-purpose", "plan"], "{scope}");
        assert_eq!(agents[0]["description"], "Reviews a change.");
        assert_eq!(
            (&agents[1]["source"], &agents[1]["editable"]),
            (&json!("built-in"), &json!(false))
        );
        let late = put(client, "subagents/review", scope, content).await;
        assert_eq!(late.refused(409), "stale", "{scope}");
        let next = json!({ "content": REVIEW.replace("faults", "risks"), "hash": now["hash"] });
        let next = put(client, "subagents/review", scope, next).await.expect(200).json();
        let of = |saved: &Value| format!("&hash={}", saved["hash"].as_str().unwrap());
        // Only what was read is deleted.
        for stale in [of(&now), String::new()] {
            let refused = client.delete(&delete_path("review", scope, &stale)).await;
            assert_eq!(refused.refused(409), "stale", "{scope}");
        }
        let gone = client.delete(&delete_path("review", scope, &of(&next))).await;
        let gone = gone.expect(200).json();
        assert_eq!((&gone["name"], &gone["deleted"]), (&json!("review"), &json!(true)));
        assert!(!path.exists());
        let entry = entries(&world).pop().unwrap();
        assert_eq!((&entry["surface"], &entry["action"]), (&json!("subagents"), &json!("delete")));
        let refused = client.delete(&delete_path("review", scope, "")).await;
        assert_eq!(refused.refused(404), "not_found");
        // What was removed is put back from its copy.
        let list = format!(
            "/api/config-write/copies?surface=subagents&name=review&scope={scope}&project=app"
        );
        let listed = client.get(&list).await.expect(200).json();
        let mut undo = target(scope);
        undo["surface"] = json!("subagents");
        undo["name"] = json!("review");
        undo["copy"] = listed["copies"][0]["id"].clone();
        send(client, Method::POST, "copies/restore", &undo).await.expect(200);
        assert_eq!(fs::read_to_string(&path).unwrap(), REVIEW.replace("faults", "risks"));
    }
    let local = client.get("/api/config-write/subagents?scope=local&project=app").await;
    assert_eq!(local.refused(422), "invalid_value");
}

#[tokio::test]
async fn secrets_of_a_subagent_are_masked_both_ways() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let secret = format!("sk-ant-api03-{}", "a1B2c3D4".repeat(6));
    let content = format!(
        "---\nname: review\ndescription: Reviews.\nenv:\n  KEY: swordfish\n---\nUse {secret}.\n"
    );
    put(&server.client, "subagents/review", "project", json!({ "content": content }))
        .await
        .expect(200);
    let shown = get(&server.client, "subagents/review", "project").await;
    assert_eq!(shown["frontmatter"]["env"]["KEY"], MASK);
    let text = shown["content"].as_str().unwrap();
    assert!(!text.contains(&secret), "{text}");
    let next = json!({ "content": format!("{text}More.\n"), "hash": shown["hash"] });
    put(&server.client, "subagents/review", "project", next).await.expect(200);
    let path = directory(&world, "project").join("review.md");
    assert_eq!(fs::read_to_string(path).unwrap(), format!("{content}More.\n"));
}

#[tokio::test]
async fn h78_a_subagent_with_front_matter_that_does_not_fit_is_refused() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let bomb = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), ["*a"; 100].join(", "));
    let front = |front: &str| format!("---\n{front}---\nText.\n");
    for (content, why) in [
        ("Text.".to_owned(), "front matter"),
        (front("name: other\ndescription: x\n"), "make them the same"),
        (front("name: review\n"), "description"),
        (front("name: [review\n"), "line"),
        (front(&format!("name: review\ndescription: x\n{bomb}")), "250000"),
        (front("name: review\ndescription: x\npermissionMode: bypassPermissions\n"), "bypass"),
    ] {
        let content = json!({ "content": content });
        let refused = put(&server.client, "subagents/review", "project", content).await;
        assert!(refused.text().contains(why), "{why}: {}", refused.text());
        assert_eq!(refused.refused(422), "invalid_value", "{why}");
    }
    let large = json!({ "content": format!("{REVIEW}{}", "x".repeat(65_536)) });
    let refused = put(&server.client, "subagents/review", "project", large).await;
    assert_eq!(refused.refused(413), "too_large");
    let content = json!({ "content": REVIEW });
    for odd in ["Review", "a--b", "..%2Fx", "a_b"] {
        let path = format!("subagents/{odd}");
        let refused = put(&server.client, &path, "project", content.clone()).await;
        assert!([404, 422].contains(&refused.status), "{odd}: {}", refused.text());
    }
    assert!(!directory(&world, "project").exists());
}

#[tokio::test]
async fn h39_a_subagent_that_is_built_in_linked_or_no_plain_file_stays() {
    let world = open();
    world.project("app");
    let away = world.root.join("away");
    fs::create_dir(&away).unwrap();
    fs::write(away.join("kept"), REVIEW).unwrap();
    let server = world.serve().await;
    let client = &server.client;
    let content = || json!({ "content": REVIEW.replace("review", "plan") });
    let refused = put(client, "subagents/plan", "project", content()).await;
    assert_eq!(refused.refused(403), "read_only");
    let directory = directory(&world, "project");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("review.md");
    let both = async |status: u16, code: &str| {
        let saved = put(client, "subagents/review", "project", json!({ "content": REVIEW })).await;
        let removed: Reply = client.delete(&delete_path("review", "project", "")).await;
        assert_eq!(saved.refused(status), code);
        assert_eq!(removed.refused(status), code);
    };
    for to in [away.join("kept"), away.join("dangling")] {
        symlink(to, &path).unwrap();
        both(403, "read_only").await;
        let shown = get(client, "subagents/review", "project").await;
        assert_eq!((&shown["source"], &shown["content"]), (&json!("plugin"), &json!("")));
        let listed = get(client, "subagents", "project").await;
        assert_eq!(listed["agents"][0]["source"], "plugin");
        fs::remove_file(&path).unwrap();
    }
    fs::hard_link(away.join("kept"), &path).unwrap();
    both(400, "path_escape").await;
    fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
    both(400, "path_escape").await;
    assert_eq!(get(client, "subagents", "project").await["agents"].as_array().unwrap().len(), 3);
    fs::remove_file(&path).unwrap();
    fs::remove_dir(&directory).unwrap();
    symlink(&away, &directory).unwrap();
    both(400, "path_escape").await;
    let list = client.get("/api/config-write/subagents?project=app").await;
    assert_eq!(list.refused(400), "path_escape");
    assert!(away.join("kept").exists() && !away.join("review.md").exists());
}

#[tokio::test]
async fn h92_without_an_entry_no_subagent_is_written_or_removed() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let content: Value = json!({ "content": REVIEW });
    let saved = put(&server.client, "subagents/review", "project", content.clone()).await;
    let hash = format!("&hash={}", saved.expect(200).json()["hash"].as_str().unwrap());
    let log = world.state.join("config_audit.log");
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    let removed = server.client.delete(&delete_path("review", "project", &hash)).await;
    assert_eq!(removed.refused(503), "busy");
    let other = json!({ "content": REVIEW.replace("review", "other") });
    let refused = put(&server.client, "subagents/other", "project", other).await;
    assert_eq!(refused.refused(503), "busy");
    let left: Vec<_> = fs::read_dir(directory(&world, "project")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1);
}
