//! The main job over HTTP: launch, follow, stop, resume, forget, and the stream.

use crate::harness::{World, gone};
use reqwest::Method;
use serde_json::{Value, json};
use svc_shared::stream::MarkKind;

#[tokio::test]
async fn a_bridge_is_launched_followed_stopped_resumed_and_forgotten() {
    let world = World::new();
    world.repository("app");
    let server = world.serve().await;
    let mut page = server.events().await;

    let reply = server.client.launch("app").await.expect(201);
    assert_eq!(reply.json()["created"], true);
    let first = reply.instance();
    assert_eq!((first.status.to_string(), first.generation), ("running".into(), 1));
    assert_eq!(
        (first.phase.to_string(), first.origin.to_string()),
        ("ready".into(), "spawned".into())
    );
    assert_eq!(first.label, "app");
    assert!(first.connect.available, "{first:?}");
    let bridges = world.bridges_of("app");
    assert_eq!(bridges.len(), 1);
    assert_eq!(first.bridge_pid, Some(bridges[0].pid));
    let id = first.instance_id.to_string();

    let mut log = server.log_of(&id).await;
    let line = log.until("Starting poll loop").await;
    assert!(!line.contains("env_01SIM"), "a raw identifier is on the page: {line}");
    page.until_status("app", "running").await;
    page.until_event("spawn", &id).await;
    page.until_event("ready", &id).await;

    let stopped = server.client.stop(&id).await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
    assert_eq!(stopped.exit_reason.map(|reason| reason.to_string()), Some("operator_stop".into()));
    assert!(stopped.intentional_stop);
    assert_eq!(stopped.bridge_pid, None);
    assert!(!bridges[0].is_alive(), "the answer came before the process was gone");
    assert_eq!(log.until_mark(MarkKind::Ended).await, 1);
    page.until_event("stop", &id).await;

    let resumed = server.client.resume(&id).await.expect(200);
    assert_eq!(resumed.json()["created"], true);
    let second = resumed.instance();
    assert_eq!(second.instance_id, first.instance_id);
    assert_eq!((second.status.to_string(), second.generation), ("running".into(), 2));
    assert_eq!(second.exit_reason, None);
    assert_eq!(log.until_mark(MarkKind::Resumed).await, 2);
    assert_eq!(world.bridges_of("app").len(), 1);

    let forget = format!("/api/instances/{id}/forget");
    assert_eq!(server.client.post(&forget).await.refused(409), "still_live");
    server.client.stop(&id).await.expect(200);
    let forgotten = server.client.post(&forget).await.expect(200);
    assert_eq!(forgotten.json(), json!({ "id": id, "forgotten": true }));
    assert_eq!(server.client.instance(&id).await.refused(404), "unknown_instance");
    page.until("an empty list", |state| state.instances.is_empty().then_some(())).await;
    assert!(world.agree().await.rows.is_empty());
}

#[tokio::test]
async fn a_stop_of_an_ended_bridge_changes_nothing() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let first = server.client.stop(&id).await.expect(200);
    let again = server.client.stop(&id).await.expect(200);
    assert_eq!(first.json(), again.json());
}

#[tokio::test]
async fn a_second_launch_hands_out_the_bridge_that_is_live() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let first = server.client.run("app").await;
    let again = server.client.launch("app").await.expect(200);
    assert_eq!(again.json()["created"], false);
    assert_eq!(again.json()["reason_code"], "standard_already_live");
    assert_eq!(again.instance().instance_id, first.instance_id);
    assert_eq!(world.starts("app").len(), 1);
}

/// F46: a decline is reported as one and touches nothing.
#[tokio::test]
async fn f46_a_resume_beside_a_live_bridge_is_declined() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let old = server.client.run("app").await.instance_id.to_string();
    let stopped = server.client.stop(&old).await.expect(200).json();
    let live = server.client.run("app").await;
    assert_ne!(live.instance_id.to_string(), old, "a launch is a new record");

    let declined = server.client.resume(&old).await.expect(200);
    assert_eq!(declined.json()["created"], false);
    assert_eq!(declined.json()["reason_code"], "standard_already_live");
    assert_eq!(declined.instance().instance_id, live.instance_id);
    let mut now = server.client.instance(&old).await.json();
    assert_eq!(now["resume_blocked"], "standard_already_live");
    // What blocks it is the only thing that changed about the stopped record.
    for field in ["resume_blocked", "resumable"] {
        now[field] = stopped[field].clone();
    }
    assert_eq!(now, stopped);

    let itself = server.client.resume(live.instance_id.as_str()).await.expect(200);
    assert_eq!(itself.json()["reason_code"], "already_running");
    assert_eq!(world.starts("app").len(), 2);
}

/// F47: both answers name the one process.
#[tokio::test]
async fn f47_two_resumes_at_once_start_one_process() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let (one, two) = tokio::join!(server.client.resume(&id), server.client.resume(&id));
    let created = [&one, &two].map(|reply| reply.json()["created"].clone());
    assert!(created.contains(&json!(true)) && created.contains(&json!(false)), "{created:?}");
    assert_eq!(one.json()["instance_id"], two.json()["instance_id"]);
    assert_eq!(world.starts("app").len(), 2, "one launch and one resume");
    assert_eq!(world.agree().await.bridges.len(), 1);
}

#[tokio::test]
async fn references_are_ids_projects_and_unique_prefixes() {
    let world = World::new();
    world.project("app");
    world.project("idle");
    let server = world.serve().await;
    let first = server.client.run("app").await.instance_id.to_string();
    let found = |reference: String| {
        let client = server.client.clone();
        async move { client.instance(&reference).await }
    };
    assert_eq!(found("app".into()).await.expect(200).json()["instance_id"], *first);
    assert_eq!(found(first[..8].into()).await.expect(200).json()["instance_id"], *first);
    assert_eq!(found("idle".into()).await.refused(404), "unknown_instance");
    assert_eq!(found("zzz".into()).await.refused(404), "unknown_instance");

    server.client.stop(&first).await.expect(200);
    let second = server.client.run("app").await.instance_id.to_string();
    // Only one of them lives: the name means that one.
    assert_eq!(found("app".into()).await.expect(200).json()["instance_id"], *second);
    for command in [["stop", "app"], ["resume", "app"], ["logs", "app"]] {
        world.cli(&command).await.ok();
    }
    let resumed = found(second.clone()).await.expect(200).json();
    assert_eq!((&resumed["status"], &resumed["generation"]), (&json!("running"), &json!(2)));
    server.client.stop("app").await.expect(200);
    let ambiguous = found("app".into()).await;
    assert_eq!(ambiguous.refused(409), "ambiguous");
    let both_ids = world.cli(&["logs", "app"]).await;
    assert_eq!(both_ids.code, Some(2));
    assert!(both_ids.stderr.contains(&first) && both_ids.stderr.contains(&second));
    let mut both = [first, second];
    both.sort();
    assert_eq!(ambiguous.json()["candidates"], json!(both));
}

#[tokio::test]
async fn both_prefixes_give_the_same_bytes() {
    let world = World::new();
    world.repository("app");
    world.untrusted("other");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id;
    // Its session is found a moment later: not between two of the answers that are compared.
    let mut page = server.events().await;
    let key = id.to_string();
    page.until("its session", |state| state.tracked.get(&key).cloned()).await;
    let lists =
        ["projects", "instances", "sessions", "sessions/tracked", "sessions/adoptable", "agents"];
    let one = format!("instances/{id}");
    for path in lists.into_iter().chain([one.as_str()]) {
        let versioned = server.client.get(&format!("/api/v1/{path}")).await.expect(200);
        let plain = server.client.get(&format!("/api/{path}")).await.expect(200);
        assert_eq!(versioned.body, plain.body, "{path}");
        let head = server.client.request(Method::HEAD, &format!("/api/v1/{path}"));
        let head = server.client.send(head).await.expect(200);
        assert!(head.body.is_empty());
        assert_eq!(head.header("content-type"), versioned.header("content-type"), "{path}");
    }
}

#[tokio::test]
async fn an_unchanged_list_is_not_sent_again() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let list = server.client.get("/api/v1/instances").await.expect(200);
    let tag = list.header("etag").expect("a tag").to_owned();
    let ask = || {
        let request = server.client.request(Method::GET, "/api/v1/instances");
        server.client.send(request.header("If-None-Match", &tag))
    };
    let same = ask().await.expect(304);
    assert!(same.body.is_empty());
    server.client.run("app").await;
    let changed = ask().await.expect(200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[tokio::test]
async fn the_stream_folds_to_the_state_and_to_every_list() {
    let world = World::new();
    world.project("app");
    world.project("other");
    let server = world.serve().await;
    let mut page = server.events().await;
    server.client.run("app").await;
    server.client.run("other").await;
    server.client.stop("app").await.expect(200);
    page.until_status("app", "stopped").await;
    page.until_status("other", "running").await;
    let document = server.client.get("/api/state").await.expect(200).json();
    let seq = document["seq"].as_u64().unwrap();
    while page.seq < seq {
        page.next().await;
    }
    if page.seq == seq {
        assert_eq!(document["boot"], *page.boot);
        assert_eq!(document["state"], serde_json::to_value(&page.state).unwrap());
    }
    let listed: Vec<Value> = server
        .client
        .instances()
        .await
        .iter()
        .map(|row| serde_json::to_value(row).unwrap())
        .collect();
    for row in &listed {
        let id = row["instance_id"].as_str().unwrap();
        assert_eq!(serde_json::to_value(&page.state.instances[id]).unwrap(), *row);
    }
    assert_eq!(listed.len(), 2);
}

#[tokio::test]
async fn a_repeated_key_launches_once() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let launch = |body: Value| {
        let request = server.client.request(Method::POST, "/api/v1/instances").json(&body);
        server.client.send(request.header("Idempotency-Key", "one"))
    };
    let first = launch(json!({ "project": "app" })).await.expect(201);
    let repeat = launch(json!({ "project": "app" })).await.expect(201);
    assert_eq!(first.json()["instance_id"], repeat.json()["instance_id"]);
    assert_eq!(
        launch(json!({ "project": "app", "name": "x" })).await.refused(422),
        "invalid_value"
    );
    assert_eq!(world.starts("app").len(), 1);
}

#[tokio::test]
async fn a_renamed_bridge_is_resumed_under_its_new_name() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let rename = server.client.request(Method::PATCH, &format!("/api/instances/{id}"));
    let renamed = server.client.send(rename.json(&json!({ "label": "Night shift" }))).await;
    assert_eq!(renamed.expect(200).json()["label"], "Night shift");
    server.client.stop(&id).await.expect(200);
    server.client.resume(&id).await.expect(200);
    let starts = world.starts("app");
    let name_of = |call: &Value| call["argv"][2].clone();
    assert_eq!(
        starts.iter().map(name_of).collect::<Vec<_>>(),
        [json!("app"), json!("Night shift")]
    );
}

#[tokio::test]
async fn the_connect_link_leaves_only_on_request() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let reply = server.client.launch("app").await.expect(201);
    let id = reply.instance().instance_id.to_string();
    let link = server.client.post(&format!("/api/instances/{id}/connect")).await.expect(200);
    let url = link.json()["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("https://claude.ai/code"), "{url}");
    assert_eq!(link.header("cache-control"), Some("no-store"));
    assert_eq!(link.header("content-encoding"), None);
    let raw = url.split(['/', '?', '=', '&']).find(|part| part.contains("_01SIM")).unwrap();
    let state = server.client.get("/api/state").await.expect(200);
    for elsewhere in [reply.text(), state.text(), server.log()] {
        assert!(!elsewhere.contains(raw), "the raw identifier is elsewhere: {elsewhere}");
    }
    server.client.stop(&id).await.expect(200);
    assert_eq!(server.client.post(&format!("/api/instances/{id}/connect")).await.status, 409);
}

/// F12: a bridge outlives the service and is told of once.
#[tokio::test]
async fn f12_a_killed_service_finds_its_bridge_again() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let before = server.client.run("app").await;
    server.kill().await;
    assert_eq!(world.bridges_of("app").len(), 1, "the bridge lives on");

    let server = world.serve().await;
    let mut page = server.events().await;
    let after = page.until_status("app", "running").await;
    assert_eq!(after.instance_id, before.instance_id);
    assert_eq!(after.bridge_pid, before.bridge_pid);
    assert_eq!(after.generation, 1);
    world.agree().await;
    let bridge = world.bridges_of("app").remove(0);
    server.client.stop("app").await.expect(200);
    gone(&bridge).await;
    page.until_event("stop", before.instance_id.as_str()).await;
    let told: Vec<&str> = page.happened.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["stop"], "nothing is announced twice");
}

#[tokio::test]
async fn the_log_of_an_ended_bridge_is_read_after_a_restart() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let (code, _) = server.stop().await;
    assert_eq!(code, Some(0));

    let server = world.serve().await;
    let page = server.client.get(&format!("/api/instances/{id}/log")).await.expect(200).json();
    let lines = page["lines"].as_array().unwrap();
    let has = |part: &str| lines.iter().any(|line| line.as_str().unwrap().contains(part));
    assert!(has("Starting poll loop") && has("SIGINT received"), "{lines:?}");
    assert_eq!(page["eof"], true);
    let mut log = server.log_of(&id).await;
    log.until("SIGINT received").await;
    log.until_mark(MarkKind::Ended).await;
}

#[tokio::test]
async fn health_tells_of_the_agent_and_its_account() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let mut page = server.events().await;
    let health = page
        .until("the probes", |state| {
            let health = state.health.clone()?;
            (health.claude_version.is_some() && health.claude_login_method.is_some())
                .then_some(health)
        })
        .await;
    assert_eq!(health.claude_version.as_deref(), Some("2.1.197"));
    assert!(health.claude_ok && health.claude_login_ok);
    server.client.run("app").await;
    let report = server.client.get("/healthz").await.expect(200).json();
    assert_eq!(report["status"], "ok");
    assert_eq!(report["instances_running"], 1);
    assert_eq!(report.get("demo"), None);
}
