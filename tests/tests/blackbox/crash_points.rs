//! Further fail points: takeover, readiness and tokens (H98).

use crate::adoption::bridge_by_hand;
use crate::crash_consistency::{armed, dies_of};
use crate::harness::{Start, World, service_with_fail_points, within};
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use svc_skip::{NO_FAIL_POINTS, skip};

/// Every fail point that a test of this program uses.
const COVERED: [&str; 34] = [
    "spawn.before_record",
    "spawn.after_record",
    "spawn.after_fork",
    "spawn.after_pid_saved",
    "spawn.after_exec",
    "spawn.after_ready",
    "stop.after_intent",
    "stop.after_term",
    "stop.after_exit",
    "stop.before_record",
    "stop.after_record",
    "forget.before_delete",
    "adopt.before_record",
    "adopt.after_record",
    "setup.before_write",
    "setup.written",
    "token.before_issue",
    "token.after_issue",
    "token.before_rotate",
    "token.after_rotate",
    "token.before_revoke",
    "token.after_revoke",
    "clone.after_begin",
    "clone.after_start",
    "clone.before_rename",
    "clone.after_rename",
    "hosted.before_record",
    "hosted.after_record",
    "hosted.after_stop_intent",
    "config.before_write",
    "planned.after_begin",
    "planned.before_finish",
    "outbox.before_record",
    "outbox.after_post",
];

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn h98_every_fail_point_of_the_source_is_died_at_by_a_test() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../server"), &mut files);
    let mut named = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for part in text.split("hit(\"").skip(1) {
            named.insert(part.split('"').next().unwrap().to_owned());
        }
    }
    let covered: BTreeSet<String> = COVERED.iter().map(|&point| point.to_owned()).collect();
    assert_eq!(named, covered, "source and tests differ");
}

#[tokio::test]
async fn h98_a_takeover_interrupted_at_any_point_is_repeatable() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in ["adopt.before_record", "adopt.after_record"] {
        let world = World::with(json!({ "claude": { "agents_json_poll_interval_seconds": 1 } }));
        world.project("app");
        let mut bridge = bridge_by_hand(&world, "app", "mine.debug").await;
        let server = armed(&world, &program, point).await;
        let mut page = server.events().await;
        page.until("the offer", |state| state.adoptable.first().cloned()).await;
        drop(page);
        dies_of(server, Method::POST, "/api/projects/app/adopt", None).await;

        let server = world.serve().await;
        let mut page = server.events().await;
        if point == "adopt.before_record" {
            page.until("the offer", |state| state.adoptable.first().cloned()).await;
        }
        let again = server.client.post("/api/projects/app/adopt").await;
        match point {
            "adopt.before_record" => drop(again.expect(200)),
            _ => assert_eq!(again.refused(409), "exists"),
        }
        let row = page.until_status("app", "running").await;
        assert_eq!(row.bridge_pid, bridge.id().map(u32::cast_signed), "{point}");
        assert!(page.happened.is_empty(), "{point}: {:?}", page.happened);
        let found = world.agree().await;
        assert_eq!((found.rows.len(), found.bridges.len()), (1, 1), "{point}");
        assert_eq!(world.starts("app").len(), 1, "{point}: nothing was started");
        drop(page);
        server.client.stop("app").await.expect(200);
        within("its end", bridge.wait()).await.unwrap();
    }
}

/// An event that the killed service announced is not announced by the next one.
#[tokio::test]
async fn h98_a_service_that_dies_after_readiness_announces_nothing_twice() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in ["spawn.after_exec", "spawn.after_ready"] {
        let world = World::new();
        world.project("app");
        let server = armed(&world, &program, point).await;
        let page = server.events().await;
        let listening = tokio::spawn(page.until_the_end());
        dies_of(server, Method::POST, "/api/v1/instances", Some(json!({ "project": "app" }))).await;
        let mut told = within("the end of the stream", listening).await.unwrap();

        let server = world.serve().await;
        let mut page = server.events().await;
        page.until_status("app", "running").await;
        world.agree().await;
        server.client.stop("app").await.expect(200);
        page.until_status("app", "stopped").await;
        page.until_happened("stop").await;
        told.extend(page.happened.clone());
        let mut seen = BTreeSet::new();
        for (name, data) in &told {
            let key =
                (name.clone(), data["instance_id"].to_string(), data["generation"].to_string());
            assert!(seen.insert(key), "{point}: {name} was announced twice: {told:?}");
        }
        assert!(told.iter().all(|(name, _)| name != "crash" && name != "error"), "{told:?}");
        assert_eq!(world.starts("app").len(), 1, "{point}");
        let history = server.client.get("/api/history").await.expect(200).json();
        let mut kinds = BTreeSet::new();
        for event in history["events"].as_array().unwrap() {
            assert!(kinds.insert(event["kind"].to_string()), "{point}: {history}");
        }
    }
}

/// A killed token command has taken effect or not, and can be repeated.
#[tokio::test]
async fn h98_a_command_that_dies_over_a_token_leaves_it_whole() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for (verb, point, is_done) in [
        ("issue", "token.before_issue", false),
        ("issue", "token.after_issue", true),
        ("rotate", "token.before_rotate", false),
        ("rotate", "token.after_rotate", true),
        ("revoke", "token.before_revoke", false),
        ("revoke", "token.after_revoke", true),
    ] {
        let world = World::with(json!({ "auth": { "enabled": true } }));
        let server = world.serve_as(Start::default()).await;
        let get = async |bearer: &str| {
            let request = server.client.request(Method::GET, "/api/projects");
            server.client.send(request.header("Authorization", format!("Bearer {bearer}"))).await
        };
        let mut old = String::new();
        if verb != "issue" {
            let issued = world.cli(&["api-token", "issue", "ci", "--json"]).await.ok().json();
            old = issued["token"].as_str().unwrap().to_owned();
            assert_eq!(get(&old).await.status, 200);
        }
        let mut command = world.command(&program, &["api-token", verb, "ci"]);
        command.env("SVC_FAILPOINTS", format!("{point}=abort"));
        let ran = within("its end", command.output()).await.unwrap();
        assert_eq!(ran.status.signal(), Some(9), "{point}");

        let labels = world.cli(&["api-token", "list", "--json"]).await.ok().stdout;
        let is_listed = labels.contains("\"ci\"");
        assert_eq!(
            is_listed,
            is_done == (verb == "issue") || verb == "rotate",
            "{point}: {labels}"
        );
        if verb != "issue" {
            let expected = if is_done { 401 } else { 200 };
            assert_eq!(get(&old).await.status, expected, "{point}: the old secret");
        }
        let again = world.cli(&["api-token", verb, "ci", "--json"]).await;
        // The secret of an issue that died was never seen: a new one is made by a rotation.
        let is_taken = is_done && verb != "rotate";
        assert_eq!(again.code == Some(0), !is_taken, "{point}: {}", again.stderr);
        if verb != "revoke" {
            let rotated = world.cli(&["api-token", "rotate", "ci", "--json"]).await.ok().json();
            assert_eq!(get(rotated["token"].as_str().unwrap()).await.status, 200, "{point}");
        }
        server.stop().await;
    }
}
