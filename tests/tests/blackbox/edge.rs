//! What a foreign page or a forged name gets from the real listener.
//!
//! The tests of `server/http` go through every form; here it is the shipped program.

use crate::harness::{Start, World, service_with_fail_points};
use reqwest::Method;
use serde_json::{Value, json};
use svc_skip::{NO_FAIL_POINTS, skip};

#[tokio::test]
async fn h1_a_forged_host_reads_nothing() {
    let world = World::new();
    world.project("secret-project");
    let server = world.serve().await;
    let ask = |path: &str, host: &str| {
        server.client.send(server.client.request(Method::GET, path).header("Host", host))
    };
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7621"] {
        for path in ["/api/v1/projects", "/api/state", "/", "/ws/events"] {
            let reply = ask(path, host).await;
            assert_eq!(reply.refused(421), "host_not_allowed", "{host}{path}");
            assert!(!reply.text().contains("secret-project"));
        }
        let health = ask("/healthz", host).await.expect(200).json();
        assert_eq!(health, json!({ "status": "ok" }), "{host}");
    }
    for host in ["localhost", "127.0.0.1:9999", "[::1]", "svc.localhost"] {
        ask("/api/v1/projects", host).await.expect(200);
    }
}

#[tokio::test]
async fn h4_a_foreign_page_starts_and_stops_nothing() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let launch = server.client.request(Method::POST, "/api/v1/instances");
        let launch = launch.header("Origin", origin).json(&json!({ "project": "app" }));
        assert_eq!(
            server.client.send(launch).await.refused(403),
            "origin_check_failed",
            "{origin}"
        );
    }
    let form = server.client.request(Method::POST, "/api/v1/instances");
    let form = form.header("Content-Type", "text/plain").body(r#"{"project":"app"}"#);
    assert_eq!(server.client.send(form).await.refused(415), "invalid_json_type");
    assert!(world.rows().await.is_empty());

    server.client.run("app").await;
    let stop = server.client.request(Method::DELETE, "/api/v1/instances/app");
    let stop = stop.header("Origin", "https://evil.example");
    assert_eq!(server.client.send(stop).await.refused(403), "origin_check_failed");
    assert_eq!(world.bridges().len(), 1);
}

#[tokio::test]
async fn h12_every_reply_is_protected_and_named() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let mut nonces = std::collections::BTreeSet::new();
    for (method, path, status) in [
        (Method::GET, "/api/v1/projects", 200),
        (Method::GET, "/api/v1/projects/", 404),
        (Method::GET, "/nothing", 404),
        (Method::PUT, "/api/v1/projects", 405),
        (Method::POST, "/api/v1/instances", 415),
        (Method::GET, "/ws/events", 426),
        (Method::OPTIONS, "/api/v1/instances", 204),
    ] {
        let reply = server.client.send(server.client.request(method.clone(), path)).await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{method} {path}");
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{method} {path}");
        assert_eq!(reply.header("x-request-id").map(str::len), Some(16), "{method} {path}");
        assert!(reply.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
        let policy = reply.header("content-security-policy").unwrap_or_default();
        let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next());
        assert!(nonces.insert(nonce.expect("a nonce").to_owned()), "a nonce was used twice");
    }
}

/// H12, H69: a fail point panics inside a request.
#[tokio::test]
async fn h12_h69_a_reply_about_a_defect_is_protected_and_tells_an_id_that_is_in_the_log() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    world.project("app");
    let env = [("SVC_FAILPOINTS", "spawn.before_record=panic")];
    let start = Start { program: Some(program), env: &env, ..Start::default() };
    let server = world.serve_as(start).await;
    // No description promises a defect, so the client that holds answers against it is not used.
    let request = server.client.request(Method::POST, "/api/v1/instances");
    let reply = request.json(&json!({ "project": "app" })).send().await.unwrap();
    assert_eq!(reply.status(), 500);
    let headers = reply.headers().clone();
    let text = reply.text().await.unwrap();
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    assert!(headers["content-security-policy"].to_str().unwrap().contains("'nonce-"));
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["code"], "internal");
    for word in ["panick", "fail point", ".rs:", "SQLITE"] {
        assert!(!text.contains(word), "{text}");
    }
    server.says(body["error_id"].as_str().unwrap()).await;
    // Everything else goes on, and so does the project.
    server.client.get("/api/v1/instances").await.expect(200);
    assert!(world.bridges().is_empty());
    world.agree().await;
}

/// The prefix of a reverse proxy, taken off by it or not.
#[tokio::test]
async fn the_service_works_below_a_prefix() {
    let world = World::with(json!({ "root_path": "/tools/svc" }));
    world.project("app");
    let server = world.serve().await;
    for root in ["", "/tools/svc"] {
        server.client.get(&format!("{root}/healthz")).await.expect(200);
        let launch = format!("{root}/api/v1/instances");
        let launched = server.client.post_json(&launch, &json!({ "project": "app" })).await;
        let launched = launched.expect(201);
        let id = launched.instance().instance_id;
        server.client.delete(&format!("{root}/api/v1/instances/{id}")).await.expect(200);
    }
    assert_eq!(server.client.get("/tools/svcx/healthz").await.status, 404);
}
