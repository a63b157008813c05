//! Who may come in, from where, and what every reply carries.

use crate::client::{Reply, Sent};
use crate::harness::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use svc_http::{Guard, HttpService, RouteKind, ServeOptions};

async fn with_host(server: &Server, path: &str, host: &str) -> Reply {
    server.send(Sent::new("GET", path).header("Host", host)).await
}

#[tokio::test]
async fn h1_a_rebound_name_reads_nothing() {
    let server = Server::filled().await;
    let port = server.address.port();
    for host in
        ["127.0.0.1:9999", "[::1]", "192.168.1.5", "LOCALHOST", "svc.localhost", "localhost."]
    {
        assert_eq!(with_host(&server, "/api/projects", host).await.status, 200, "{host}");
    }
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "localhost.evil.example".into(),
        "127.0.0.1.evil.example".into(),
    ] {
        let reply = with_host(&server, "/api/projects", &host).await;
        assert_eq!((reply.status, reply.code().as_str()), (421, "host_not_allowed"), "{host}");
        assert!(!reply.text().contains("has space"));
        // Also before the router looks: an unknown path tells nothing either.
        assert_eq!(with_host(&server, "/nowhere", &host).await.status, 421);
    }
    let health = with_host(&server, "/healthz", "evil.example").await;
    assert_eq!(health.json(), json!({"status": "ok"}));
}

#[tokio::test]
async fn h1_configured_names_are_served() {
    let configuration = "auth:\n  allowed_hosts: [svc.home.example, '*.lan.example']\n  \
                         allowed_origins: ['https://proxy.example']\n";
    let server = Server::with(configuration, ServeOptions::default()).await;
    for host in ["svc.home.example", "SVC.home.example:80", "a.lan.example", "proxy.example"] {
        assert_eq!(with_host(&server, "/api/projects", host).await.status, 200, "{host}");
    }
    assert_eq!(with_host(&server, "/api/projects", "lan.example").await.status, 421);
}

#[tokio::test]
async fn h2_malformed_hosts_are_no_requests() {
    let server = Server::start().await;
    let get =
        |lines: &str| format!("GET /api/projects HTTP/1.1\r\n{lines}Connection: close\r\n\r\n");
    for lines in [
        "",
        "Host:\r\n",
        "Host: a\r\nHost: a\r\n",
        "Host: user@localhost\r\n",
        "Host: localhost@evil\r\n",
        "Host: evil.example#localhost\r\n",
        "Host: localhost/\r\n",
        "Host: local host\r\n",
        "Host: localhost:x\r\n",
        "Host: localhost:\r\n",
        "Host: [fe80::1%25eth0]\r\n",
    ] {
        let reply = Reply::parse(&server.raw(get(lines).as_bytes()).await, false);
        assert_eq!(reply.status, 400, "{lines:?}");
    }
    let raw = "GET http://evil.example/api/projects HTTP/1.1\r\nHost: localhost\r\n\
               Connection: close\r\n\r\n";
    let absolute = Reply::parse(&server.raw(raw.as_bytes()).await, false);
    assert_eq!(absolute.status, 400);
}

/// What a request says about where it comes from, and whether it may pass.
type Cell<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);

/// H3, H4: every cell of the table for "auth off", on unsafe routes and sockets.
#[tokio::test]
async fn a_foreign_page_can_neither_write_nor_open_a_socket() {
    let server = Server::start().await;
    let own = format!("http://127.0.0.1:{}", server.address.port());
    let cells: [Cell<'_>; 10] = [
        ("no origin", &[], true),
        ("listed", &[("Origin", &own)], true),
        ("null", &[("Origin", "null")], false),
        ("foreign", &[("Origin", "https://evil.example")], false),
        ("prefix", &[("Origin", "http://127.0.0.1.evil.example")], false),
        ("two", &[("Origin", &own), ("Origin", &own)], false),
        ("referer only", &[("Referer", &own), ("Sec-Fetch-Site", "cross-site")], false),
        ("same-site", &[("Sec-Fetch-Site", "same-site")], false),
        ("own page", &[("Sec-Fetch-Site", "same-origin")], true),
        ("typed", &[("Sec-Fetch-Site", "none")], true),
    ];
    for route in svc_http::table() {
        let is_socket = route.kind == RouteKind::Socket;
        if route.method == "GET" && !is_socket {
            continue;
        }
        let path = crate::coverage::path_of(&route);
        for (cell, headers, is_allowed) in cells {
            let mut sent = Sent::new(route.method.as_str(), &path);
            for (name, value) in headers {
                sent = sent.header(name, value);
            }
            let reply = server.send(sent).await;
            let is_refused = reply.status == 403 && reply.code() == "origin_check_failed";
            assert_eq!(
                is_refused,
                !is_allowed,
                "{cell}: {} {path}: {}",
                route.method,
                reply.text()
            );
            assert_ne!(reply.status, 101);
        }
    }
    // The answer to a refused write must not tell whether the path exists.
    let unknown = Sent::new("POST", "/nowhere").header("Origin", "https://evil.example");
    assert_eq!(server.send(unknown).await.status, 403);
}

#[tokio::test]
async fn h6_cross_origin_access_is_never_granted() {
    let server = Server::start().await;
    let reply = server
        .send(
            Sent::new("OPTIONS", "/api/instances")
                .header("Origin", "https://evil.example")
                .header("Access-Control-Request-Method", "POST")
                .header("Access-Control-Request-Headers", "authorization")
                .header("Access-Control-Request-Private-Network", "true"),
        )
        .await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("allow"), Some("GET, HEAD, OPTIONS, POST"));
    assert!(!reply.headers.iter().any(|(name, _)| name.starts_with("access-control")));
}

#[tokio::test]
async fn h9_no_path_is_normalised() {
    for (configuration, prefix) in
        [("", ""), ("root_path: /a/b\n", ""), ("root_path: /a/b\n", "/a/b")]
    {
        let server = Server::with(configuration, ServeOptions::default()).await;
        assert_eq!(server.get(&format!("{prefix}/api/projects")).await.status, 200);
        for path in [
            "//api/projects",
            "/api//projects",
            "/api/projects/",
            "/api/./projects",
            "/api/x/../projects",
            "/api/%2e%2e/api/projects",
            "/api%2fprojects",
            "/API/projects",
            "/api/Projects",
            "/api/projects;x=y",
            "/api/projects%00",
            "/api/projects%20",
            "/static/../svc.yml",
            "/static/%2e%2e/svc.yml",
            "/static/..%2fsvc.yml",
            "/static/",
            "/static",
            "/ui",
            "/ui//",
            "/ui/%2e%2e/api",
            "/api/",
            "/api",
            "/api/v1",
            "/api/v1/",
            "/api/v1/bootstrap",
            "/api/v1/healthz",
            "/healthz/",
            "/%ff",
            "/api/instances/%00",
            "/api/instances/..%2f..%2fetc%2fpasswd",
            "/ws/bridge-log/..%2f..%2fetc%2fpasswd",
            "/ws/nowhere",
            "/api/projects\\",
        ] {
            let reply = server.get(&format!("{prefix}{path}")).await;
            assert_eq!(reply.status, 404, "{prefix}{path}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn a_prefix_may_be_taken_off_by_the_proxy_or_not() {
    let server = Server::with("root_path: /a/b/\n", ServeOptions::default()).await;
    for path in ["/a/b/api/projects", "/api/projects"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    for path in ["/a/bc/api/projects", "/a/api/projects", "/a/b/a/b/api/projects"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn with_the_pages_off_their_routes_are_not_there() {
    // Settings that may not be changed from the page have no routes either.
    let config = "ui:\n  enabled: false\nconfig_write:\n  enabled: true\n\
                  login_shepherd:\n  enabled: true\nreaper:\n  ui_enabled: true\npush:\n  enabled: true\n";
    let server = Server::with(config, ServeOptions::default()).await;
    for route in svc_http::table() {
        let path = crate::coverage::path_of(&route);
        let is_ui = matches!(route.guard, Guard::Ui | Guard::UiPublic);
        let sent = Sent::new(route.method.as_str(), &path).header("Accept", "text/html");
        let reply = server.send(sent).await;
        if route.pattern.ends_with("/probe") {
            continue; // there for the holder of a pass only: has tests of its own
        }
        let is_gone = reply.text() == r#"{"detail":"Not Found","code":"not_found"}"#;
        assert_eq!(is_gone, is_ui, "{} {path}: {}", route.method, reply.text());
    }
    let head = server.send(Sent::new("HEAD", "/")).await;
    assert_eq!(head.status, 404);
}

#[tokio::test]
async fn h12_every_reply_carries_the_same_protection() {
    let server = Server::filled().await;
    let long = "x".repeat(9000);
    let requests = [
        Sent::new("GET", "/"),
        Sent::new("GET", "/ui/p/api"),
        Sent::new("GET", "/static/nothing.js"),
        Sent::new("GET", "/nowhere").header("Accept", "text/html"),
        Sent::new("GET", "/api/projects"),
        Sent::new("HEAD", "/api/projects"),
        Sent::new("OPTIONS", "/api/projects"),
        Sent::new("PUT", "/api/projects"),
        Sent::new("GET", "/api/projects").header("Host", "evil.example"),
        Sent::new("GET", &format!("/{long}")),
        Sent::new("GET", "/").header("X-Long", &"x".repeat(33_000)),
        Sent::new("POST", "/api/instances").header("Origin", "null"),
        Sent::new("POST", "/api/instances"),
        Sent::new("POST", "/api/instances").json(&json!({"project": 5})),
        Sent::new("POST", "/api/agents")
            .json(&json!({"project": "api", "prompt": "x", "trust": true})),
        Sent::new("GET", "/ws/events"),
        Sent::new("GET", "/healthz"),
    ];
    let mut statuses = BTreeSet::new();
    let mut nonces = BTreeSet::new();
    for sent in requests {
        let reply = server.send(sent.clone()).await;
        let header = |name: &str| reply.header(name).unwrap_or_else(|| panic!("{name}: {sent:?}"));
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "same-origin");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        assert!(header("permissions-policy").contains("camera=()"));
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("x-request-id").len(), 16);
        assert_eq!(reply.header("server"), None);
        let policy = header("content-security-policy");
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        assert_eq!(nonce.len(), 22);
        assert!(nonces.insert(nonce.to_owned()), "a nonce was used twice");
        statuses.insert(reply.status);
    }
    for expected in [200, 204, 400, 403, 404, 405, 414, 415, 421, 422, 426, 431] {
        // 400 comes from malformed requests, tested beside the wire.
        assert!(expected == 400 || statuses.contains(&expected), "{expected}: {statuses:?}");
    }
}

#[tokio::test]
async fn unknown_paths_are_told_to_people_as_a_page_and_to_programs_as_json() {
    let server = Server::start().await;
    let ask = |path: &str| Sent::new("GET", path).header("Accept", "text/html,*/*");
    let page = server.send(ask("/nowhere")).await;
    assert_eq!(page.status, 404);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    for path in ["/api/nowhere", "/ws/nowhere", "/api"] {
        assert_eq!(server.send(ask(path)).await.code(), "not_found", "{path}");
    }
    assert_eq!(server.get("/nowhere").await.code(), "not_found");
}

#[tokio::test]
async fn a_wrong_method_says_which_are_right() {
    let server = Server::start().await;
    let reply = server.send(Sent::new("PUT", "/api/v1/instances/x")).await;
    assert_eq!((reply.status, reply.code().as_str()), (405, "method_not_allowed"));
    assert_eq!(reply.header("allow"), Some("DELETE, GET, HEAD, OPTIONS"));
    let overridden = Sent::new("POST", "/api/bootstrap").header("X-HTTP-Method-Override", "GET");
    assert_eq!(server.send(overridden).await.status, 405);
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = Server::filled().await;
    for path in ["/api/projects", "/api/v1/instances", "/healthz", "/api/state", "/nowhere", "/"] {
        let get = server.get(path).await;
        let head = server.send(Sent::new("HEAD", path)).await;
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        // The health report changes by itself.
        let length = if path == "/healthz" { "content-type" } else { "content-length" };
        for name in ["content-type", length, "etag"] {
            assert_eq!(head.header(name), get.header(name), "{path}: {name}");
        }
    }
}

#[tokio::test]
async fn what_still_arrives_during_the_end_of_the_service_is_told_so() {
    let configuration = "api:\n  openapi_enabled: true\nobservability:\n  \
                         prometheus_enabled: true\n";
    let server = Server::with(configuration, ServeOptions::default()).await;
    let service =
        HttpService::new(server.app.clone(), server.address.port(), &ServeOptions::default());
    server.app.shutdown().cancel();
    for route in svc_http::table() {
        let path = crate::coverage::path_of(&route);
        let request = poem::Request::builder()
            .method(route.method.clone())
            .uri(path.parse().unwrap())
            .header("Host", "localhost")
            .finish();
        let mut response = service.answer(request).await;
        if route.kind == RouteKind::Health {
            assert_eq!(response.status(), 200, "{path}");
            continue;
        }
        assert_eq!(response.status(), 503, "{} {path}", route.method);
        assert!(response.headers().contains_key("retry-after"), "{} {path}", route.method);
        let body: Value = response.take_body().into_json().await.unwrap();
        assert_eq!(body["code"], "shutting_down", "{} {path}", route.method);
    }
}
