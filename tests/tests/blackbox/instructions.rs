//! The instructions of a project: read, replaced, and never by accident.

use crate::harness::{Client, Reply, World};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

const PATH: &str = "/api/projects/app/claude-md";

async fn put(client: &Client, body: &Value) -> Reply {
    client.send(client.request(Method::PUT, PATH).json(body)).await
}

#[tokio::test]
async fn the_file_is_made_changed_and_in_the_audit_log() {
    let world = World::new();
    let file = world.project("app").join("CLAUDE.md");
    let server = world.serve().await;
    let none = server.client.get(PATH).await.expect(200).json();
    assert_eq!((&none["exists"], &none["sha256"]), (&json!(false), &Value::Null));
    let one = put(&server.client, &json!({ "content": "Be brief.\n" })).await.expect(200).json();
    assert_eq!(fs::read_to_string(&file).unwrap(), "Be brief.\n");
    assert_eq!((&one["exists"], &one["size"]), (&json!(true), &json!(10)));
    assert_eq!(one["bridge_running"], false);
    server.client.run("app").await;
    let change = json!({ "content": "Be kind.\n", "base_sha256": one["sha256"] });
    let two = put(&server.client, &change).await.expect(200).json();
    assert_eq!(two["bridge_running"], true);
    assert_eq!(fs::read_to_string(&file).unwrap(), "Be kind.\n");
    let log = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    let own: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|entry: &Value| entry["surface"] == "claude-md")
        .collect();
    let told: Vec<&Value> = own.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(told, ["create", "update"]);
    assert!(!log.contains("Be kind"), "the log has no content");
    server.client.stop("app").await.expect(200);
}

#[tokio::test]
async fn what_somebody_else_has_written_is_never_overwritten() {
    let world = World::new();
    let file = world.project("app").join("CLAUDE.md");
    fs::write(&file, "one").unwrap();
    let server = world.serve().await;
    let known = server.client.get(PATH).await.expect(200).json();
    // Without a base, as if there were no file.
    assert_eq!(put(&server.client, &json!({ "content": "x" })).await.refused(409), "stale");
    fs::write(&file, "by hand").unwrap();
    let late = json!({ "content": "x", "base_sha256": known["sha256"] });
    assert_eq!(put(&server.client, &late).await.refused(409), "stale");
    assert_eq!(fs::read_to_string(&file).unwrap(), "by hand");
    // Of many at once one is written.
    let known = server.client.get(PATH).await.expect(200).json();
    let all = (0..20).map(|n| {
        let body = json!({ "content": format!("text {n}"), "base_sha256": known["sha256"] });
        let client = &server.client;
        async move { put(client, &body).await.status }
    });
    let statuses = futures_util::future::join_all(all).await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
}

#[tokio::test]
async fn h39_what_leads_elsewhere_or_is_no_text_is_refused_and_stays() {
    let world = World::new();
    let project = world.project("app");
    let (file, away) = (project.join("CLAUDE.md"), world.root.join("away"));
    fs::write(&away, "elsewhere").unwrap();
    let server = world.serve().await;
    let body = json!({ "content": "mine" });
    symlink(&away, &file).unwrap();
    assert_eq!(server.client.get(PATH).await.refused(400), "path_escape");
    assert_eq!(put(&server.client, &body).await.refused(400), "path_escape");
    fs::remove_file(&file).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(put(&server.client, &body).await.refused(400), "path_escape");
    fs::remove_file(&file).unwrap();
    fs::write(&file, vec![b'x'; 65_537]).unwrap();
    assert_eq!(server.client.get(PATH).await.refused(413), "too_large");
    fs::write(&file, [0xff]).unwrap();
    assert_eq!(server.client.get(PATH).await.refused(422), "invalid_value");
    fs::remove_file(&file).unwrap();
    let large = json!({ "content": "x".repeat(65_537) });
    assert_eq!(put(&server.client, &large).await.refused(413), "too_large");
    assert!(!file.exists());
    assert_eq!(fs::read_to_string(&away).unwrap(), "elsewhere");
}

#[tokio::test]
async fn an_untrusted_project_keeps_its_instructions() {
    let world = World::new();
    let file = world.untrusted("app").join("CLAUDE.md");
    let server = world.serve().await;
    let refused = put(&server.client, &json!({ "content": "x" })).await;
    assert_eq!(refused.refused(403), "not_trusted");
    assert!(!file.exists());
}
