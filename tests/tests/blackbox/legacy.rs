//! The records of an earlier service: taken over once, never lost.

use crate::harness::World;
use serde_json::{Value, json};
use std::path::PathBuf;

/// `uuid5(NAMESPACE_DNS, "svc.instance.app")`.
const ID_OF_APP: &str = "0986a69d-9aa0-5381-af2d-cbc01726f9da";

fn state_file(world: &World, name: &str) -> PathBuf {
    world.state_dir().join(name)
}

fn write(world: &World, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(world.state_dir()).unwrap();
    std::fs::write(state_file(world, "state.json"), content).unwrap();
}

fn read(world: &World, name: &str) -> String {
    std::fs::read_to_string(state_file(world, name)).unwrap()
}

#[tokio::test]
async fn records_of_an_earlier_service_are_taken_over_once_and_can_be_resumed() {
    let world = World::new();
    world.project("app");
    let old = json!({ "schema_version": 1, "instances": {
        "app": { "project_name": "app", "label": "Night shift", "intentional_stop": true,
                 "spawn_mode": "same-dir", "permission_mode": "acceptEdits",
                 "resume_mode": "standard", "pid": 4242 },
        "gone": { "permission_mode": "a mode nobody knows" },
        "../evil": {},
        "broken": 5,
    }})
    .to_string();
    write(&world, &old);
    let server = world.serve().await;
    let rows = server.client.instances().await;
    let names: Vec<&str> = rows.iter().map(|row| row.project.as_str()).collect();
    assert_eq!(names, ["app", "gone"]);
    let app = &rows[0];
    assert_eq!((app.instance_id.as_str(), app.label.as_str()), (ID_OF_APP, "Night shift"));
    assert_eq!(app.status.to_string(), "stopped");
    assert_eq!(app.permission_mode.to_string(), "acceptEdits");
    assert!(app.intentional_stop && app.resumable, "{app:?}");
    assert_eq!(rows[1].permission_mode.to_string(), "default");
    assert_eq!(read(&world, "state.json.imported"), old, "byte for byte");
    assert!(!state_file(&world, "state.json").exists());
    let resumed = server.client.resume(ID_OF_APP).await.expect(200).json();
    assert_eq!((&resumed["created"], &resumed["generation"]), (&json!(true), &json!(2)));
    server.client.stop(ID_OF_APP).await.expect(200);
    server.client.post("/api/instances/gone/forget").await.expect(200);
    let (_, log) = server.stop().await;
    for word in ["../evil", "broken", "gone"] {
        assert!(log.contains(word), "{word} is not explained: {log}");
    }

    // The registry is in use: a file that turns up again is not read, and nothing is overwritten.
    write(&world, &old);
    let server = world.serve().await;
    assert_eq!(server.client.instances().await.len(), 1);
    assert_eq!(read(&world, "state.json"), old);
}

#[tokio::test]
async fn a_file_that_is_none_is_kept_and_the_service_starts_empty() {
    let world = World::new();
    world.project("app");
    let broken = b"{\"instances\": {\"app\": \xff".to_vec();
    write(&world, &broken);
    let server = world.serve().await;
    assert!(server.client.instances().await.is_empty());
    let (_, log) = server.stop().await;
    assert!(log.contains("state.json.corrupt.bak"), "{log}");
    let copy = state_file(&world, "state.json.corrupt.bak");
    assert_eq!(std::fs::read(&copy).unwrap(), broken);

    // The first copy stays, and so does everything that was put aside.
    write(&world, "[]");
    let server = world.serve().await;
    assert_eq!(std::fs::read(&copy).unwrap(), broken);
    assert_eq!(read(&world, "state.json.imported.1"), "[]");
    server.stop().await;

    // What cannot be read was not read: it stays.
    std::fs::create_dir(state_file(&world, "state.json")).unwrap();
    let server = world.serve().await;
    assert!(state_file(&world, "state.json").is_dir());
    let (_, log) = server.stop().await;
    assert!(log.contains("no records of an earlier version"), "{log}");
}

#[tokio::test]
async fn a_command_takes_the_records_over_too_and_one_that_looks_does_not() {
    let world = World::new();
    world.project("app");
    world.project("other");
    write(&world, r#"{"schema_version": 2, "instances": {"app": {}}}"#);
    let before: Value = world.cli(&["status", "--json"]).await.ok().json();
    assert_eq!(before, json!([]));
    assert!(state_file(&world, "state.json").exists());
    world.cli(&["start", "other", "--wait", "20"]).await.ok();
    let after: Value = world.cli(&["status", "--json"]).await.ok().json();
    assert_eq!(after.as_array().unwrap().len(), 2, "{after}");
    assert!(read(&world, "state.json.bak").contains("\"schema_version\": 2"));
    world.cli(&["stop", "other"]).await.ok();
}

#[tokio::test]
async fn migrate_rewrites_what_it_understands_and_nothing_else() {
    let world = World::new();
    let none = world.cli(&["migrate"]).await.ok();
    assert!(none.stdout.is_empty() && none.stderr.contains("nothing to do"), "{}", none.stderr);
    assert!(!world.state_dir().exists(), "nothing is created");

    write(&world, r#"{"instances":{"app":{"label":"x","extra":1}},"schema_version":1}"#);
    let done = world.cli(&["migrate"]).await.ok();
    assert_eq!(done.stdout, "state at schema 1 (1 instance record(s))\n");
    let canonical = read(&world, "state.json");
    let parsed: Value = serde_json::from_str(&canonical).unwrap();
    assert_eq!(parsed, json!({ "schema_version": 1, "instances": { "app": { "label": "x" } } }));
    let document: Value = world.cli(&["migrate", "--json"]).await.ok().json();
    assert_eq!(document, json!({ "found": true, "schema_version": 1, "instances": 1 }));
    assert_eq!(read(&world, "state.json"), canonical);
    assert!(!state_file(&world, "svc.db").exists(), "the registry is not touched");

    for bad in [&b"{"[..], b"\xff\xfe", br#"{"instances": {"app": {"label": 5}}}"#] {
        write(&world, bad);
        let refused = world.cli(&["migrate"]).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
        assert!(refused.stderr.contains("left as it is"), "{}", refused.stderr);
        assert_eq!(std::fs::read(state_file(&world, "state.json")).unwrap(), bad);
    }
}
