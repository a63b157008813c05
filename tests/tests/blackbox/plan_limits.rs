//! Plan limits: told by the agent, shown with their reset, and gone on from once.

use crate::conversations::transcript;
use crate::direct_sessions::{launch, say};
use crate::harness::{Events, World, service, within};
use crate::sessions_in_terminals::{ready, session};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use svc_shared::api::instances::Instance;
use svc_shared::api::limits::PlanLimit;

const UUID: &str = "22222222-2222-4333-8444-555555555555";
const GO_ON: &str = "The usage limit was reset. Continue where you stopped.";

/// A Direct Session's agent that stops at a limit when it is told to work.
fn limited(limit: &str, on_limit: &str) -> (World, PathBuf) {
    let daemon = service().with_file_name("svc-hosted");
    let world = World::with(json!({
        "hosted": { "enabled": true, "binary": daemon },
        "instance_defaults": { "on_limit": on_limit },
    }));
    let cwd = world.project_with(
        "app",
        json!({ "hosted": { "uuid": UUID, "replies": [
            { "match": "^work", "chunks": [limit] },
            { "chunks": ["Plain talk"] },
        ]}}),
    );
    let file = transcript(&world, &cwd, UUID);
    (world, file)
}

/// How a limit reads whose reset is this many seconds from now.
fn resets_in(seconds: i64) -> (String, i64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let reset = i64::try_from(now.as_secs()).unwrap() + seconds;
    (format!("Claude AI usage limit reached|{reset}"), reset * 1000)
}

async fn limit(events: &mut Events, id: &str) -> PlanLimit {
    events.until("a limit", |state| state.instances.get(id)?.limit.clone()).await
}

async fn no_limit(events: &mut Events, id: &str) {
    let free = |one: &Instance| one.limit.is_none().then_some(());
    events.until("no limit", |state| state.instances.get(id).and_then(|one| free(one))).await;
}

/// How often the agent was told to go on.
fn told(file: &Path) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    let turns = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    turns.filter(|turn| turn["message"]["content"] == GO_ON).count()
}

async fn until_written(file: &Path, words: &str) {
    let look = async {
        while !fs::read_to_string(file).is_ok_and(|text| text.contains(words)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within("words in the transcript", look).await;
}

#[tokio::test]
async fn a_limit_is_shown_with_its_reset_until_a_person_goes_on() {
    let (text, reset) = resets_in(3600);
    let (world, file) = limited(&text, "wait");
    let server = world.serve().await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "work").await;
    let shown = limit(&mut events, id).await;
    assert_eq!(shown.resets_at.unwrap().as_millis(), reset);
    assert_eq!((shown.source.to_string(), shown.continues_at), ("transcript".to_owned(), None));
    let listed = server.client.instance(id).await.expect(200).instance();
    assert_eq!(listed.limit, Some(shown));
    say(&server, id, "hello").await;
    no_limit(&mut events, id).await;
    assert_eq!(told(&file), 0, "nobody goes on unless it is configured");
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn a_session_goes_on_once_after_the_reset_whatever_happens_to_the_service() {
    let (text, _) = resets_in(-600);
    let (world, file) = limited(&text, "continue");
    let server = world.serve().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "work").await;
    until_written(&file, "Plain talk").await;
    assert_eq!(told(&file), 1);
    server.kill().await;
    let server = world.serve().await;
    // A second limit of the same conversation is waited for anew.
    say(&server, id, "work").await;
    let look = async {
        while told(&file) < 2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within("the second time", look).await;
    server.client.stop(id).await.expect(200);
    assert_eq!(told(&file), 2);
}

#[tokio::test]
async fn a_wait_outlives_the_service_and_ends_when_a_person_goes_on_before() {
    let (text, reset) = resets_in(3600);
    let (world, file) = limited(&text, "continue");
    let server = world.serve().await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "work").await;
    let waits = |one: &Instance| one.limit.clone()?.continues_at;
    let due =
        events.until("a time", |state| state.instances.get(id).and_then(|one| waits(one))).await;
    assert!(due.as_millis() > reset, "after the reset, not at it: {due}");
    server.kill().await;
    let server = world.serve().await;
    let mut events = server.events().await;
    let again = events
        .until("the same time", |state| state.instances.get(id).and_then(|one| waits(one)))
        .await;
    assert_eq!(again, due, "a killed service forgets nobody who waits");
    say(&server, id, "hello").await;
    no_limit(&mut events, id).await;
    let query = "SELECT group_concat(state) FROM limit_waits";
    let look = async { while world.sql_text(query).await.as_deref() != Some("called_off") {} };
    within("the end of the wait", look).await;
    assert_eq!(told(&file), 0);
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn an_interactive_session_is_told_in_its_terminal() {
    let (text, _) = resets_in(-600);
    let world = World::with(json!({
        "instance_defaults": { "on_limit": "continue" },
        "claude": { "pty_screen_enabled": true, "terminal_input": true },
    }));
    world.project_with(
        "app",
        json!({ "turns": [
            { "role": "user", "text": "build it" },
            { "role": "assistant", "text": text },
        ] }),
    );
    let server = world.serve().await;
    let row = ready(&server, session("app")).await;
    let look = async {
        loop {
            let screen = world.cli(&["screen", row.instance_id.as_str()]).await.ok().stdout;
            if screen.contains("The usage limit was reset") {
                return;
            }
        }
    };
    within("the words in the terminal", look).await;
    let audit = fs::read_to_string(world.state_dir().join("config_audit.log")).unwrap();
    assert!(audit.contains("\"continue\"") && audit.contains("\"service\""), "{audit}");
    server.client.stop(row.instance_id.as_str()).await.expect(200);
}
