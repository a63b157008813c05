//! The description that the service publishes.
//!
//! `harness/contract.rs` checks every answer of this run against it. Here: that this check sees
//! something and can fail.

use crate::harness::{World, seen};
use serde_json::json;

#[tokio::test]
async fn recorded_answers_are_held_against_the_description() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.launch("app").await.expect(200);
    server.client.instances().await;
    server.client.instance(&id).await.expect(200);
    server.client.resume(&id).await.expect(200);
    server.client.stop(&id).await.expect(200);
    server.client.resume("absent").await.expect(404);
    server.client.launch_with(json!({})).await.expect(422);
    for list in ["projects", "sessions", "sessions/tracked", "sessions/adoptable", "agents"] {
        server.client.get(&format!("/api/v1/{list}")).await.expect(200);
    }
    let seen = seen();
    for name in [
        "POST /api/v1/instances 201",
        "POST /api/v1/instances 200",
        "POST /api/v1/instances 422",
        "GET /api/v1/instances 200",
        "GET /api/v1/instances/{instance_id} 200",
        "DELETE /api/v1/instances/{instance_id} 200",
        "POST /api/v1/instances/{instance_id}/resume 200",
        "POST /api/v1/instances/{instance_id}/resume 404",
        "GET /api/v1/projects 200",
        "GET /api/v1/sessions/tracked 200",
        "GET /api/v1/agents 200",
    ] {
        assert!(seen.contains(name), "{name} was not checked: {seen:?}");
    }
}

#[tokio::test]
async fn the_description_is_there_only_when_it_is_switched_on() {
    let world = World::with(json!({ "api": { "openapi_enabled": false } }));
    let server = world.serve().await;
    assert_eq!(server.client.get("/openapi.json").await.refused(404), "not_found");
    server.stop().await;
    world.configure(json!({ "api": { "openapi_enabled": true } }));
    let server = world.serve().await;
    let document = server.client.get("/openapi.json").await.expect(200).json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.0"), "{}", document["openapi"]);
}
