//! Lists, filters, bodies and the answers to what does not fit.

use crate::client::Sent;
use crate::harness::{Server, many_projects};
use serde_json::{Value, json};
use svc_shared::api::jobs::BackgroundJob;

#[tokio::test]
async fn both_prefixes_give_the_same_bytes() {
    let server = Server::filled().await;
    for path in [
        "/projects",
        "/instances",
        "/sessions",
        "/sessions/tracked",
        "/agents",
        "/sessions/adoptable",
        "/instances/b0000000-0000-4000-8000-000000000001",
        "/instances/b0000000%2D0000-4000-8000-000000000001",
        "/instances/zz",
    ] {
        let bare = server.get(&format!("/api{path}")).await;
        let versioned = server.get(&format!("/api/v1{path}")).await;
        assert_eq!((bare.status, &bare.body), (versioned.status, &versioned.body), "{path}");
        assert_eq!(bare.header("etag"), versioned.header("etag"));
        assert_eq!(bare.status == 200, path != "/instances/zz", "{path}");
    }
}

fn names(reply: &Value, member: &str) -> Vec<String> {
    reply.as_array().unwrap().iter().map(|row| row[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lists_are_filtered_or_within_and_across() {
    let server = Server::filled().await;
    let shorts = |reply: Value| -> Vec<String> {
        names(&reply, "instance_id").iter().map(|id| id[..2].to_owned()).collect()
    };
    for (query, expected) in [
        ("", vec!["b0", "a0", "a1"]),
        ("?status=error&status=crashed", vec!["b0", "a1"]),
        ("?project=api", vec!["b0", "a0"]),
        ("?project=api&status=crashed", vec![]),
        ("?project=has%20space&unknown=x", vec!["a1"]),
        ("?channel=hosted", vec![]),
    ] {
        let reply = server.get(&format!("/api/v1/instances{query}")).await;
        assert_eq!(
            (reply.status, shorts(reply.json())),
            (200, expected.into_iter().map(str::to_owned).collect()),
            "{query}"
        );
    }
    let trusted = server.get("/api/v1/projects?trust=trusted").await;
    assert_eq!(names(&trusted.json(), "name"), ["api"]);
}

#[tokio::test]
async fn h84_query_values_that_do_not_fit_are_named() {
    let server = Server::filled().await;
    for (path, member) in [
        ("/api/instances?status=RUNNING", "status"),
        ("/api/instances?channel=", "channel"),
        ("/api/projects?trust=yes", "trust"),
        ("/api/instances/b0/log?tail=-1", "tail"),
        ("/api/instances/b0/log?tail=1048577", "tail"),
        ("/api/instances/b0/log?tail=1.5", "tail"),
        ("/api/instances/b0/log?tail=1&tail=2", "tail"),
        ("/api/projects/api/preflight?facts=1", "facts"),
    ] {
        let reply = server.get(path).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, "schema"), "{path}");
        assert_eq!(reply.json()["detail"][0]["loc"], json!(["query", member]), "{path}");
    }
    for query in ["wait=31", "wait=x", "wait=1&wait=2"] {
        let reply = server.post(&format!("/api/instances?{query}"), &json!({"project": "a"})).await;
        assert_eq!(reply.json()["detail"][0]["loc"], json!(["query", "wait"]), "{query}");
    }
}

#[tokio::test]
async fn bodies_that_do_not_fit_are_refused_before_anything_happens() {
    let server = Server::filled().await;
    let send = |content_type: &'static str, body: &'static str| {
        server.send(Sent::new("POST", "/api/v1/instances").body(content_type, body.as_bytes()))
    };
    assert_eq!(send("text/plain", r#"{"project":"api"}"#).await.status, 415);
    assert_eq!(
        send("application/x-www-form-urlencoded", "project=api").await.code(),
        "invalid_json_type"
    );
    for (body, kind) in [
        ("{", "json_invalid"),
        (r#"{"project":"\ud800"}"#, "json_invalid"),
        (r#"{"project":"a","project":"b"}"#, "json_invalid"),
        ("[]", "object_type"),
        ("{}", "missing"),
        (r#"{"project":5}"#, "string_type"),
        (r#"{"project":"api","trust":"CANARY"}"#, "bool_type"),
    ] {
        let reply = send("application/json", body).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, "schema"), "{body}");
        assert_eq!(reply.json()["detail"][0]["type"], kind, "{body}");
        assert!(!reply.text().contains("CANARY"));
    }
    let nul = send("application/json", r#"{"project":"a\u0000"}"#).await;
    assert_eq!((nul.status, nul.code().as_str()), (422, "invalid_value"));
    assert!(nul.text().contains("`project`"));
}

/// Some clients declare a type for a body that they do not send.
///
/// aiohttp says `application/octet-stream` with every POST.
#[tokio::test]
async fn an_absent_optional_body_is_accepted_whatever_type_is_declared() {
    let server = Server::filled().await;
    let routes: Vec<_> = svc_http::table()
        .into_iter()
        .filter(|route| route.body == svc_http::BodyKind::OptionalJson)
        .collect();
    assert!(routes.len() >= 4, "two routes below two prefixes: {}", routes.len());
    for route in &routes {
        let post = || Sent::new("POST", &crate::coverage::path_of(route));
        let plain = server.send(post()).await;
        assert_ne!(plain.status, 415, "{}", route.pattern);
        for content_type in
            ["application/octet-stream", "text/plain", "application/x-www-form-urlencoded", ""]
        {
            let declared = || post().header("Content-Type", content_type);
            for empty in [
                declared(),
                declared().header("Content-Length", "0"),
                declared().header("Transfer-Encoding", "chunked").unframed(b"0\r\n\r\n"),
            ] {
                let reply = server.send(empty).await;
                let cell = format!("{} {content_type}", route.pattern);
                assert_eq!((reply.status, &reply.body), (plain.status, &plain.body), "{cell}");
            }
            for sent in [
                declared().header("Content-Length", "2").unframed(b"{}"),
                declared().header("Transfer-Encoding", "chunked").unframed(b"2\r\n{}\r\n0\r\n\r\n"),
            ] {
                assert_eq!(server.send(sent).await.status, 415, "{} {content_type}", route.pattern);
            }
            let foreign = declared().header("Origin", "https://evil.example");
            assert_eq!(server.send(foreign).await.code(), "origin_check_failed", "{content_type}");
        }
    }
}

#[tokio::test]
async fn an_unchanged_list_is_not_sent_again() {
    let server = Server::filled().await;
    for path in [
        "/api/instances",
        "/api/projects",
        "/api/state",
        "/api/agents",
        "/api/instances?project=api",
    ] {
        let first = server.get(path).await;
        let etag = first.header("etag").unwrap().to_owned();
        assert!(etag.starts_with('"'), "a strong tag: {etag}");
        let again = server.send(Sent::new("GET", path).header("If-None-Match", &etag)).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        assert_eq!(again.header("etag"), Some(etag.as_str()));
        assert_eq!(again.header("cache-control"), Some("no-store"));
    }
    let before = server.get("/api/projects").await.header("etag").unwrap().to_owned();
    server.app.read_model().replace_projects(many_projects(1));
    let changed =
        server.send(Sent::new("GET", "/api/projects").header("If-None-Match", &before)).await;
    assert_eq!(changed.status, 200);
}

#[tokio::test]
async fn large_lists_are_compressed_and_small_ones_are_not() {
    let server = Server::start().await;
    let ask = || Sent::new("GET", "/api/projects").header("Accept-Encoding", "gzip, br");
    assert_eq!(server.send(ask()).await.header("content-encoding"), None);
    server.app.read_model().replace_projects(many_projects(1000));
    let plain = server.get("/api/projects").await;
    let small = server.send(ask()).await;
    assert_eq!(small.header("content-encoding"), Some("br"));
    assert_eq!(small.header("vary"), Some("accept-encoding"));
    assert!(small.body.len() * 5 < plain.body.len());
    let tag = small.header("etag").unwrap();
    assert_ne!(tag, plain.header("etag").unwrap());
    let again = server.send(ask().header("If-None-Match", tag)).await;
    assert_eq!(again.status, 304);
}

#[tokio::test]
async fn state_lists_and_single_records_agree() {
    let server = Server::filled().await;
    let state = server.get("/api/state").await.json();
    assert_eq!(state["boot"].as_str().unwrap().len(), 16);
    for row in server.get("/api/instances").await.json().as_array().unwrap() {
        let id = row["instance_id"].as_str().unwrap();
        assert_eq!(&state["state"]["instances"][id], row);
        assert_eq!(&server.get(&format!("/api/instances/{id}")).await.json(), row);
    }
    for row in server.get("/api/projects").await.json().as_array().unwrap() {
        assert_eq!(&state["state"]["projects"][row["name"].as_str().unwrap()], row);
    }
    let widget = server.get("/api/widget").await.json();
    assert_eq!(widget["bridges"], state["state"]["counts"]);
    assert_eq!((&widget["projects_total"], &widget["running_total"]), (&json!(2), &json!(0)));
    for status in ["starting", "running", "stopped", "crashed", "error"] {
        assert!(widget["bridges"][status].is_u64(), "{status}");
    }
}

#[tokio::test]
async fn a_dispatch_is_refused_in_the_documented_order() {
    let server = Server::filled().await;
    let dispatch = |body: Value| {
        let server = &server;
        async move { server.post("/api/v1/agents", &body).await }
    };
    assert_eq!(dispatch(json!({"prompt": "x"})).await.code(), "schema");
    let unknown = dispatch(json!({"project": "nope", "prompt": "x"})).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "unknown_project"));
    assert_eq!(dispatch(json!({"project": "api", "prompt": "x", "model": "-x"})).await.status, 422);
    assert_eq!(dispatch(json!({"project": "api"})).await.status, 422);
    let bypass = dispatch(json!({"project": "api", "permission_mode": "bypassPermissions"})).await;
    assert_eq!((bypass.status, bypass.code().as_str()), (403, "bypass_forbidden"));
    let untrusted = dispatch(json!({"project": "api", "prompt": "x"})).await;
    assert_eq!((untrusted.status, untrusted.code().as_str()), (409, "not_trusted"));
    let refused = dispatch(json!({"project": " api ", "prompt": "x", "trust": true})).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "agent_missing"));
    assert!(refused.header("retry-after").is_some());
    let again = dispatch(json!({"project": "api", "prompt": "x"})).await;
    assert_eq!(again.status, 409, "a refused dispatch leaves nothing trusted");

    assert_eq!(server.get("/api/v1/agents").await.json(), json!([]));
    for (path, status, code) in [
        ("/api/v1/agents/xyz", 422, "invalid_value"),
        ("/api/v1/agents/0123ABCD", 422, "invalid_value"),
        ("/api/v1/agents/0123abcd", 404, "unknown_job"),
    ] {
        let reply = server.send(Sent::new("DELETE", path)).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{path}");
        let reply = server.send(Sent::new("POST", &format!("{path}/resume"))).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{path}/resume");
    }
}

#[tokio::test]
async fn jobs_are_listed_by_their_last_change_and_by_project() {
    let server = Server::filled().await;
    let job = |id: &str, project: Option<&str>, updated_at: &str| BackgroundJob {
        id: id.parse().unwrap(),
        project: project.map(str::to_owned),
        state: "working".into(),
        detail: String::new(),
        tempo: "active".into(),
        needs: None,
        result: None,
        intent: "x".into(),
        name: None,
        cwd: None,
        session_ref: None,
        remote_registered: false,
        has_transcript: false,
        cli_version: String::new(),
        created_at: String::new(),
        updated_at: updated_at.into(),
        worker_pid: None,
        worker_alive: false,
        limit: None,
        activity: None,
    };
    let jobs = [
        job("00000001", Some("api"), "2026-01-01T00:00:00.000Z"),
        job("00000002", Some("api"), "2026-01-02T00:00:00.000Z"),
        job("00000003", None, "2026-01-01T00:00:00.000Z"),
    ];
    let jobs = jobs.into_iter().map(|job| (job.id.to_string(), job)).collect();
    server.app.read_model().replace_jobs(jobs);
    let ids = |list: Value| -> Vec<String> {
        let list = list.as_array().unwrap().clone();
        list.iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = server.get("/api/v1/agents").await;
    assert_eq!(ids(all.json()), ["00000002", "00000003", "00000001"]);
    assert_eq!(server.get("/api/agents").await.body, all.body);
    let of_project = server.get("/api/v1/agents?project=api").await.json();
    assert_eq!(ids(of_project), ["00000002", "00000001"]);
    assert_eq!(server.get("/api/v1/agents?project=nope").await.json(), json!([]));
    let state = server.get("/api/state").await.json();
    assert_eq!(&state["state"]["jobs"]["00000001"], &all.json()[2]);
}

#[tokio::test]
async fn an_idempotency_key_is_checked_and_bound_to_its_body() {
    let server = Server::filled().await;
    let launch = |key: &str, project: &str| {
        Sent::new("POST", "/api/v1/instances")
            .header("Idempotency-Key", key)
            .json(&json!({"project": project}))
    };
    for bad in ["", &"k".repeat(129)] {
        let reply = server.send(launch(bad, "nope")).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, "invalid_value"), "{bad:?}");
    }
    let first = server.send(launch("k", "nope")).await;
    let again = server.send(launch("k", "nope")).await;
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!(first.status, 404);
    let other = server.send(launch("k", "nope-2")).await;
    assert_eq!((other.status, other.code().as_str()), (422, "invalid_value"));
}

#[tokio::test]
async fn old_session_lists_say_so() {
    let (looked, unlooked) = (Server::start().await, Server::start().await);
    let homeless = Server::homeless().await;
    for server in [&looked, &homeless] {
        server.app.sessions().refresh().await;
    }
    for path in ["/api/sessions", "/api/sessions/tracked", "/api/sessions/adoptable"] {
        assert_eq!(looked.get(path).await.header("x-svc-stale"), None, "{path}");
        for stale in [&unlooked, &homeless] {
            let reply = stale.get(path).await;
            assert_eq!((reply.status, reply.header("x-svc-stale")), (200, Some("true")), "{path}");
        }
    }
}
