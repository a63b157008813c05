//! The rest of the interface: QR code, caching, repeated requests, history.

use crate::harness::World;
use qrcode::render::svg;
use qrcode::{EcLevel, QrCode};
use reqwest::Method;
use serde_json::{Value, json};

/// A row promises what is done, also where the configuration has several answers.
#[tokio::test]
async fn a_row_shows_the_restart_policy_that_is_carried_out() {
    let world = World::with(json!({
        "restart": { "policy": "on-crash" },
        "projects": { "app": { "restart": "always" } },
    }));
    world.project("app");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    assert_eq!(row.restart.policy.to_string(), "always");
}

#[tokio::test]
async fn the_picture_of_the_link_holds_the_link_and_is_treated_as_one() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let qr = format!("/api/instances/{id}/qr");
    let link = server.client.post(&format!("/api/instances/{id}/connect")).await.expect(200);
    let ask = server.client.request(Method::GET, &qr).header("accept-encoding", "br, gzip");
    let picture = server.client.send(ask).await.expect(200);
    assert_eq!(picture.header("content-type"), Some("image/svg+xml"));
    assert_eq!(picture.header("cache-control"), Some("no-store"));
    assert_eq!(picture.header("content-encoding"), None);
    let url = link.json()["url"].as_str().unwrap().to_owned();
    let code = QrCode::with_error_correction_level(&url, EcLevel::M).unwrap();
    let wanted = code.render::<svg::Color<'_>>().module_dimensions(4, 4).build();
    assert_eq!(picture.text(), wanted);
    let head = server.client.request(Method::HEAD, &qr);
    let head = server.client.send(head).await.expect(200);
    assert_eq!((head.body.len(), head.header("content-type")), (0, Some("image/svg+xml")));
    // By project name too, like every reference; never below the stable prefix.
    server.client.get("/api/instances/app/qr").await.expect(200);
    server.client.get(&format!("/api/v1/instances/{id}/qr")).await.expect(404);

    server.client.stop(&id).await.expect(200);
    assert_eq!(server.client.get(&qr).await.refused(409), "invalid_value");
    assert_eq!(
        server.client.get("/api/instances/absent/qr").await.refused(404),
        "unknown_instance"
    );
    server.stop().await;

    world.configure(json!({ "ui": { "enabled": false } }));
    let server = world.serve().await;
    assert_eq!(server.client.get(&qr).await.refused(404), "not_found");
}

/// H72: no identifier or address that a log quotes becomes the link of a bridge.
#[tokio::test]
async fn h72_no_text_of_a_log_becomes_the_link_of_a_bridge() {
    let world = World::new();
    world.project_with("app", json!({ "forge_markers": true }));
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let link = server.client.post(&format!("/api/instances/{id}/connect")).await.expect(200).json();
    for member in ["url", "session_url"] {
        let Some(url) = link[member].as_str() else { continue };
        assert!(url.starts_with("https://claude.ai/code"), "{url}");
        assert!(!url.contains("FORGED"), "{url}");
    }
    let printed = world.cli(&["open", &id]).await.ok().stdout;
    assert!(printed.starts_with("https://claude.ai/code"), "{printed}");
    assert!(!printed.contains("FORGED"), "{printed}");
    server.client.stop(&id).await.expect(200);
}

/// A request whose answer was lost is repeated, and nothing starts twice.
#[tokio::test]
async fn a_repeated_resume_with_the_same_key_gets_the_first_answer() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let resume = |prefix: &str, key: &str| {
        let path = format!("{prefix}/instances/{id}/resume");
        server.client.request(Method::POST, &path).header("Idempotency-Key", key)
    };
    let (first, again) = tokio::join!(
        server.client.send(resume("/api/v1", "one")),
        server.client.send(resume("/api", "one"))
    );
    assert_eq!(first.clone().expect(200).json()["created"], true);
    assert_eq!(first.body, again.body, "both prefixes are one route");
    assert_eq!(server.client.send(resume("/api", "one")).await.body, first.body);
    let other = resume("/api", "one").json(&json!({ "trust": true }));
    assert_eq!(server.client.send(other).await.refused(422), "invalid_value");
    // Another key is another request, and the bridge is live by now.
    let live = server.client.send(resume("/api", "two")).await.expect(200).json();
    assert_eq!(
        (&live["created"], &live["reason_code"]),
        (&json!(false), &json!("already_running"))
    );
    assert_eq!(world.starts("app").len(), 2);

    // A restart forgets the keys.
    server.stop().await;
    let server = world.serve().await;
    let path = format!("/api/instances/{id}/resume");
    let forgotten = server.client.request(Method::POST, &path).header("Idempotency-Key", "one");
    assert_eq!(server.client.send(forgotten).await.expect(200).json()["created"], false);
}

#[tokio::test]
async fn lists_have_tags_that_change_with_the_lists_alone() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let tag = async |path: &str| {
        let reply = server.client.get(path).await.expect(200);
        reply.header("etag").expect("a tag").to_owned()
    };
    let id = server.client.run("app").await.instance_id.to_string();
    for list in
        ["/api/instances", "/api/v1/instances", "/api/projects", "/api/agents", "/api/state"]
    {
        let etag = tag(list).await;
        assert!(etag.starts_with('"') && etag.ends_with('"'), "{list}: {etag} is not strong");
        for method in [Method::GET, Method::HEAD] {
            let ask = server.client.request(method, list).header("If-None-Match", &etag);
            let reply = server.client.send(ask).await.expect(304);
            assert_eq!(
                (reply.body.len(), reply.header("etag")),
                (0, Some(etag.as_str())),
                "{list}"
            );
            assert_eq!(reply.header("cache-control"), Some("no-store"), "{list}");
        }
        let ask = server.client.request(Method::GET, list).header("If-None-Match", "\"other\"");
        server.client.send(ask).await.expect(200);
    }
    let (instances, projects) = (tag("/api/instances").await, tag("/api/projects").await);
    server.client.stop(&id).await.expect(200);
    assert_ne!(tag("/api/instances").await, instances);
    assert_eq!(tag("/api/projects").await, projects);
}

#[tokio::test]
async fn the_history_outlives_its_bridge_and_is_read_page_by_page() {
    let world = World::new();
    world.project("app");
    world.project("idle");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);

    let all = server.client.get("/api/history").await.expect(200).json();
    let events = all["events"].as_array().unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ended", "ready", "spawned"]);
    let newest = &events[0];
    assert_eq!((&newest["instance_id"], &newest["project"]), (&json!(id), &json!("app")));
    assert_eq!((&newest["mode"], &newest["cost_usd"]), (&json!("standard"), &Value::Null));
    assert_eq!(newest["exit_reason"], "operator_stop");
    assert_eq!(newest["session_ref"].as_str().map(str::len), Some(16), "{newest}");
    assert_eq!(all["next_before"], Value::Null);

    let mut seen = Vec::new();
    let mut next = String::from("/api/history?limit=1&project=app");
    loop {
        let page = server.client.get(&next).await.expect(200).json();
        seen.extend(page["events"].as_array().unwrap().iter().cloned());
        let Some(before) = page["next_before"].as_i64() else { break };
        next = format!("/api/history?limit=1&project=app&before={before}");
    }
    assert_eq!(&seen, events);
    let of = async |query: &str| {
        let page = server.client.get(&format!("/api/history?{query}")).await.expect(200).json();
        page["events"].as_array().unwrap().len()
    };
    assert_eq!(of(&format!("instance={id}")).await, 3);
    assert_eq!(of("project=idle").await, 0);

    let sort = server.client.get("/api/projects/sortmeta").await.expect(200).json();
    assert_eq!(sort["app"]["last_used"], newest["at"]);
    assert_eq!(sort["idle"], json!({ "last_used": null, "cost_usd": null }));
}

#[tokio::test]
async fn the_row_of_a_project_is_what_the_lists_say_of_it() {
    let world = World::new();
    world.project("app");
    world.project("other");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.run("other").await;
    let row = server.client.get("/api/projects/app/row").await.expect(200).json();
    let get = async |path: &str| server.client.get(path).await.expect(200).json();
    assert_eq!(row["project"], get("/api/projects").await[0]);
    assert_eq!(row["preflight"], get("/api/projects/app/preflight").await);
    assert_eq!(row["instances"], json!([get(&format!("/api/instances/{id}")).await]));
    assert_eq!((&row["external"], &row["adoptable"]), (&json!([]), &json!(false)));
    assert_eq!(row["usage"], Value::Null);
    // A sample may have been taken by now.
    assert!(row["metrics"].is_null() || row["metrics"]["bridges"] == 1, "{row}");
    for unknown in ["absent", "%2e", "a%20%20b."] {
        server.client.get(&format!("/api/projects/{unknown}/row")).await.expect(404);
    }
}
