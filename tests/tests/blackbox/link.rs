//! The remote link of a running bridge: what its log says, and nothing else.

use crate::crash_consistency::{armed, dies_of};
use crate::harness::{Events, Receiver, World, service_with_fail_points};
use reqwest::Method;
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use svc_shared::api::instances::Instance;
use svc_skip::{NO_FAIL_POINTS, skip};

/// The debug file of the project's bridge, and the file with its output.
fn logs(world: &World) -> (PathBuf, PathBuf) {
    let start = world.starts("app").pop().expect("a start");
    let argv: Vec<&str> =
        start["argv"].as_array().unwrap().iter().filter_map(|v| v.as_str()).collect();
    let at = argv.iter().position(|word| *word == "--debug-file").expect("a debug file");
    let debug = PathBuf::from(argv[at + 1]);
    let stem =
        debug.file_name().unwrap().to_string_lossy().replace(".raw.log", "").replace(".log", "");
    (debug.clone(), debug.with_file_name(format!("{stem}.stderr.log")))
}

fn append(path: &PathBuf, text: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A line of the debug file, written now.
fn line(text: &str) -> String {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let at = svc_shared::Timestamp::from_millis(i64::try_from(now).unwrap());
    format!("{at} [DEBUG] {text}\n")
}

async fn until_link(page: &mut Events, state: &str) -> Instance {
    page.until("a link", |records| {
        let mut rows = records.instances.values();
        rows.find(|row| row.link.state.to_string() == state).map(|row| (**row).clone())
    })
    .await
}

/// H107: a bridge that lives while its link is dead.
#[tokio::test]
async fn h107_a_lost_link_is_shown_and_told_once_and_the_status_stays() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    let id = row.instance_id.to_string();
    let mut page = server.events().await;
    let (debug, output) = logs(&world);
    let start = world.starts("app").pop().unwrap();
    assert!(start["argv"].as_array().unwrap().contains(&json!("--verbose")));
    append(
        &debug,
        &line("[bridge:api] GET .../work/poll -> 200 (no work, 1 consecutive empty polls)"),
    );
    let up = until_link(&mut page, "up").await;
    assert!(up.link.since.is_some() && up.link.reason.is_none());

    append(
        &output,
        "[10:20:30] Connection error, retrying in 8s (14s elapsed): connect ECONNREFUSED\n",
    );
    let down = until_link(&mut page, "down").await;
    assert_eq!(
        down.link.reason.as_deref(),
        Some("the remote service is not reached: connect ECONNREFUSED")
    );
    assert_eq!(down.link.source.unwrap().to_string(), "output");
    assert_eq!(down.status.to_string(), "running");
    let told = |log: &[String]| {
        log.iter().filter(|line| line.contains("has lost its remote link")).count()
    };
    append(
        &output,
        "[10:20:40] Connection error, retrying in 16s (24s elapsed): connect ECONNREFUSED\n",
    );
    let listed = world.cli(&["status", "--json"]).await.ok().json();
    assert_eq!(listed[0]["link"]["state"], "down", "{listed}");

    // What a conversation says is not believed.
    let forged = line("[bridge:poll] Reconnected after 2s").replace("20", "19");
    append(&debug, &line(&format!("[bridge:activity] sessionId=session_1 text look:\n{forged}")));
    let asks = "[bridge:perm] sessionId=session_1 tool=Bash request_id=r (not auto-approving)";
    append(&debug, &line(asks));
    let blocked = page
        .until("a question", |state| {
            let row = state.instances.get(&id)?;
            let activity = row.activity.as_ref()?;
            (activity.state.to_string() == "blocked").then(|| (**row).clone())
        })
        .await;
    let activity = blocked.activity.unwrap();
    assert_eq!(activity.tool.as_deref(), Some("Bash"));
    let known = (activity.source.to_string(), activity.confidence.to_string(), activity.stale);
    assert_eq!(known, ("debug_file".into(), "certain".into(), false));
    let said = world.cli(&["status"]).await.ok().stdout;
    assert!(said.contains("waiting for permission: Bash for "), "{said}");
    assert!(said.contains("(from the agent's log, certain)"), "{said}");
    assert_eq!(blocked.link.state.to_string(), "down");

    append(&debug, &line("[bridge:poll] Reconnected after 30s"));
    append(&output, "Reconnected after 30s\n");
    let back = until_link(&mut page, "up").await;
    assert_eq!((back.status.to_string(), back.generation), ("running".into(), 1));
    assert_eq!(told(&server.said()), 1, "{:?}", server.said());
    // A service that starts again reads it from the log.
    server.kill().await;
    let server = world.serve().await;
    let mut page = server.events().await;
    until_link(&mut page, "up").await;
}

/// H107: with `heal: restart`, a bridge whose agent has given up is restarted once.
#[tokio::test]
async fn h107_a_bridge_that_gave_up_is_restarted_once_when_no_session_works() {
    let world = World::with(json!({ "claude": { "heal": "restart" } }));
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let mut page = server.events().await;
    let (debug, output) = logs(&world);
    append(
        &debug,
        &line("[bridge:api] GET .../work/poll -> 200 (no work, 1 consecutive empty polls)"),
    );
    until_link(&mut page, "up").await;
    append(&output, "[10:20:30] Server unreachable for 10 minutes, giving up.\n");
    let next = page
        .until("the next generation", |state| {
            let mut rows = state.instances.values();
            rows.find(|row| row.generation == 2 && row.status.to_string() == "running")
                .map(|row| (**row).clone())
        })
        .await;
    assert_eq!(next.stranded, 0);
}

/// A person restarts what has lost its link; what has not is left alone.
#[tokio::test]
async fn h107_a_bridge_is_restarted_by_hand_only_while_its_link_is_lost() {
    let world = World::with(json!({ "claude": { "heal": "off" } }));
    world.project("app");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    let id = row.instance_id.to_string();
    let mut page = server.events().await;
    let heal = format!("/api/instances/{id}/heal");
    let refused = server.client.post(&heal).await.expect(409).text();
    assert!(refused.contains("not lost"), "{refused}");
    let ran = world.cli(&["heal", "app"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert_eq!(world.starts("app").len(), 1, "a refusal stops nothing");

    let lost = "[10:20:30] Connection error, retrying in 8s (14s elapsed): connect ECONNREFUSED\n";
    append(&logs(&world).1, lost);
    until_link(&mut page, "down").await;
    server.client.post(&heal).await.expect(200);
    let second = page
        .until("the second generation", |state| {
            let row = state.instances.get(&id)?;
            (row.generation == 2 && row.status.to_string() == "running").then(|| (**row).clone())
        })
        .await;
    assert_ne!(second.bridge_pid, row.bridge_pid);
    assert_eq!(world.agree().await.bridges.len(), 1);

    append(&logs(&world).1, lost);
    until_link(&mut page, "down").await;
    let healed = world.cli(&["heal", "app", "--json"]).await.ok().json();
    assert_eq!((&healed["instance_id"], &healed["generation"]), (&json!(id), &json!(3)));
}

/// H112: a bridge that was stopped to be healed is started again.
#[tokio::test]
async fn h112_a_heal_that_dies_between_stop_and_start_is_finished() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in ["stop.after_intent", "stop.after_record"] {
        let world = World::with(json!({ "claude": { "heal": "off" } }));
        world.project("app");
        let server = armed(&world, &program, point).await;
        let id = server.client.run("app").await.instance_id.to_string();
        let mut page = server.events().await;
        let lost =
            "[10:20:30] Connection error, retrying in 8s (14s elapsed): connect ECONNREFUSED\n";
        append(&logs(&world).1, lost);
        until_link(&mut page, "down").await;
        dies_of(server, Method::POST, &format!("/api/instances/{id}/heal"), None).await;

        let server = world.serve().await;
        let mut page = server.events().await;
        page.until("the next generation", |state| {
            let row = state.instances.get(&id)?;
            (row.generation == 2 && row.status.to_string() == "running").then_some(())
        })
        .await;
        // Whoever stops it afterwards means it.
        server.client.delete(&format!("/api/instances/{id}")).await.expect(200);
        let after = server.client.instance(&id).await.expect(200).instance();
        assert_eq!((after.status.to_string(), after.restart.next_at), ("stopped".into(), None));
        assert_eq!(world.starts("app").len(), 2);
    }
}

/// The timeline keeps each loss and its end, also over a restart of the service.
#[tokio::test]
async fn h107_the_timeline_tells_when_a_link_was_lost_and_came_back() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut page = server.events().await;
    let (debug, output) = logs(&world);
    append(
        &output,
        "[10:20:30] Connection error, retrying in 8s (14s elapsed): connect ECONNREFUSED\n",
    );
    until_link(&mut page, "down").await;
    server.kill().await;
    let server = world.serve().await;
    let mut page = server.events().await;
    until_link(&mut page, "down").await;
    append(&debug, &line("[bridge:poll] Reconnected after 4s"));
    until_link(&mut page, "up").await;
    let path = format!("/api/history?instance={id}");
    let told = server.client.get(&path).await.expect(200).json();
    let events = told["events"].as_array().unwrap();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, ["link_restored", "link_lost", "ready", "spawned"]);
    assert!(events[1]["detail"].as_str().unwrap().contains("ECONNREFUSED"), "{told}");
}

#[tokio::test]
async fn a_lost_link_and_an_end_in_order_reach_the_phone_where_they_are_wanted() {
    let phone = Receiver::start().await;
    let world = World::with(json!({ "notifications": {
        "enabled": true,
        "urls": [format!("json://127.0.0.1:{}/", phone.port)],
        "notify_on_reconnect_failed": true,
        "notify_on_session_end": true,
    } }));
    world.project_with("app", json!({ "exit_code": 0 }));
    let server = world.serve().await;
    let body = json!({ "project": "app", "spawn_mode": "session" });
    server.client.launch_with(body).await.expect(201);
    let mut page = server.events().await;
    page.until_status("app", "running").await;
    // What the agent mends by itself is told to nobody.
    let (debug, output) = logs(&world);
    append(
        &output,
        "[10:20:30] Connection error, retrying in 8s (14s elapsed): connect ECONNREFUSED\n",
    );
    until_link(&mut page, "down").await;
    append(&debug, &line("[bridge:poll] Reconnected after 4s"));
    until_link(&mut page, "up").await;
    append(&debug, &line("[bridge:repl] handleStateChange state=failed detail=\"gone\""));
    let told = phone.until(1).await.remove(0).json();
    assert_eq!(told["title"], "app has lost its remote link");
    page.until_happened("reconnect-failed").await;
    world.bridges_of("app").remove(0).signal(rustix::process::Signal::INT);
    let told = phone.until(2).await.remove(1).json();
    assert_eq!((&told["title"], &told["event"]), (&json!("app ended"), &json!("session-end")));
}
