//! What monitoring sees, and what is there with parts switched off.

use crate::harness::World;
use reqwest::Method;
use serde_json::{Value, json};

fn with_figures() -> World {
    World::with(json!({ "observability": { "prometheus_enabled": true } }))
}

/// The samples of a scrape, comments left out.
fn samples(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[tokio::test]
async fn the_scrape_counts_bridges_by_status_and_crashes_even_of_forgotten_ones() {
    let world = with_figures();
    for name in ["ended", "lost", "runs"] {
        world.project(name);
    }
    let server = world.serve().await;
    let mut page = server.events().await;
    let reply = server.client.get("/metrics").await.expect(200);
    let media = reply.header("content-type").unwrap().to_owned();
    assert_eq!(media, "text/plain; version=0.0.4; charset=utf-8");
    let text = reply.text();
    let version = server.client.get("/healthz").await.json()["version"].clone();
    let quiet = [
        format!("svc_build_info{{version=\"{}\"}} 1", version.as_str().unwrap()),
        "svc_bridges{status=\"crashed\"} 0".into(),
        "svc_bridges{status=\"error\"} 0".into(),
        "svc_bridges{status=\"running\"} 0".into(),
        "svc_bridges{status=\"starting\"} 0".into(),
        "svc_bridges{status=\"stopped\"} 0".into(),
        "svc_projects 3".into(),
    ];
    assert_eq!(samples(&text), quiet, "no crash family before the first crash");
    assert!(text.ends_with('\n') && text.starts_with("# HELP svc_build_info "), "{text}");

    server.client.run("runs").await;
    server.client.run("ended").await;
    server.client.stop("ended").await.expect(200);
    server.client.run("lost").await;
    world.bridges_of("lost")[0].signal(rustix::process::Signal::KILL);
    page.until_status("lost", "crashed").await;
    let text = server.client.get("/metrics").await.expect(200).text();
    for sample in [
        "svc_bridges{status=\"crashed\"} 1",
        "svc_bridges{status=\"running\"} 1",
        "svc_bridges{status=\"stopped\"} 1",
        "svc_bridge_crashes_total{project=\"lost\"} 1",
    ] {
        assert!(samples(&text).contains(&sample), "{sample}:\n{text}");
    }
    server.client.post("/api/instances/lost/forget").await;
    let text = server.client.get("/metrics").await.expect(200).text();
    assert!(samples(&text).contains(&"svc_bridges{status=\"crashed\"} 0"), "{text}");
    assert!(samples(&text).contains(&"svc_bridge_crashes_total{project=\"lost\"} 1"), "{text}");

    let head = server.client.send(server.client.request(Method::HEAD, "/metrics")).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn what_is_switched_off_does_not_exist() {
    let world = World::with(json!({ "api": { "openapi_enabled": false } }));
    let server = world.serve().await;
    for path in ["/metrics", "/docs", "/docs/start.js", "/openapi.json"] {
        assert_eq!(server.client.get(path).await.refused(404), "not_found", "{path}");
    }
    server.kill().await;

    let all = json!({
        "ui": { "enabled": false },
        "api": { "openapi_enabled": true },
        "observability": { "prometheus_enabled": true },
    });
    world.configure(all);
    let server = world.serve().await;
    for path in ["/", "/ui/p/app", "/static/anything.js", "/api/instances/x/qr"] {
        assert_eq!(server.client.get(path).await.status, 404, "{path}");
    }
    for path in ["/metrics", "/docs", "/docs/swagger-ui.js", "/openapi.json", "/healthz"] {
        assert_eq!(server.client.get(path).await.status, 200, "{path}");
    }
    assert_eq!(server.client.get("/api/v1/projects").await.status, 200);
}

#[tokio::test]
async fn the_health_report_is_whole_for_the_operator_and_minimal_for_a_foreign_name() {
    let world = World::new();
    let server = world.serve().await;
    let report = server.client.get("/healthz").await.expect(200);
    assert!(report.body.len() < 1024, "{} bytes", report.body.len());
    let whole: Value = report.json();
    for member in [
        "status",
        "version",
        "claude_ok",
        "claude_version",
        "claude_login_ok",
        "claude_login_method",
        "claude_login_expires_at",
        "instances_running",
    ] {
        assert!(whole.get(member).is_some(), "{member}: {whole}");
    }
    assert!(whole.get("demo").is_none() && whole.get("hosted").is_none(), "{whole}");
    let foreign = server.client.request(Method::GET, "/healthz").header("Host", "evil.example");
    let minimal = server.client.send(foreign).await.expect(200);
    assert_eq!(minimal.json(), json!({ "status": "ok" }));
    // The whole report may change between two requests; the minimal one never does.
    let foreign = server.client.request(Method::HEAD, "/healthz").header("Host", "evil.example");
    let head = server.client.send(foreign).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(minimal.body.len().to_string().as_str()));
}

#[tokio::test]
async fn the_api_page_is_small_changes_rarely_and_needs_nobody_else() {
    let world = World::with(json!({ "root_path": "/a" }));
    let server = world.serve().await;
    let page = server.client.get("/a/docs").await.expect(200);
    assert!(!page.text().contains("://"), "{}", page.text());
    assert!(page.text().contains("src=\"/a/docs/start.js\""), "{}", page.text());
    let script = server.client.get("/a/docs/swagger-ui.js").await.expect(200);
    let etag = script.header("etag").expect("a tag").to_owned();
    let again = server.client.request(Method::GET, "/a/docs/swagger-ui.js");
    let again = server.client.send(again.header("If-None-Match", etag)).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let packed = server.client.request(Method::GET, "/a/docs/swagger-ui.js");
    let packed = server.client.send(packed.header("Accept-Encoding", "br")).await.expect(200);
    assert_eq!(packed.header("content-encoding"), Some("br"));
    assert!(packed.body.len() < script.body.len() / 2, "{} bytes", packed.body.len());
    assert_eq!(server.client.get("/a/docs/nothing.js").await.status, 404);
}
