//! Plan limits: told by the agent, shown with their reset, and gone on from once.

use crate::conversations::transcript;
use crate::direct_sessions::{launch, say};
use crate::harness::{Clock, Events, Start, World, service, service_with_fail_points, within};
use crate::jobs;
use crate::sessions_in_terminals::{ready, session};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use svc_shared::api::instances::Instance;
use svc_shared::api::limits::PlanLimit;
use svc_shared::internal::State;
use svc_skip::{NO_FAIL_POINTS, skip};

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

/// Options of a project whose sessions are talked to once, and answer this.
fn answers(text: &str) -> Value {
    json!({ "turns": [
        { "role": "user", "text": "build it" },
        { "role": "assistant", "text": text },
    ] })
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
pub fn told(file: &Path) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    let turns = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    turns.filter(|turn| turn["message"]["content"] == GO_ON).count()
}

pub async fn until_written(world: &World, file: &Path, words: &str) {
    let is_there = || fs::read_to_string(file).is_ok_and(|text| text.contains(words)).then_some(());
    world.until("words in the transcript", is_there).await;
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
    until_written(&world, &file, "Plain talk").await;
    assert_eq!(told(&file), 1);
    server.kill().await;
    let server = world.serve().await;
    // A second limit of the same conversation is waited for anew.
    say(&server, id, "work").await;
    world.until("the second time", || (told(&file) == 2).then_some(())).await;
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
    world.project_with("app", answers(&text));
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

#[tokio::test]
async fn a_terminal_that_takes_no_text_says_so_and_names_no_time() {
    let (text, _) = resets_in(3600);
    let world = World::with(json!({ "instance_defaults": { "on_limit": "continue" } }));
    world.project_with("app", answers(&text));
    let server = world.serve().await;
    let mut events = server.events().await;
    let row = ready(&server, session("app")).await;
    let limit = limit(&mut events, row.instance_id.as_str()).await;
    assert!(limit.hint.unwrap().contains("claude.terminal_input"));
    assert_eq!(limit.continues_at, None);
    server.client.stop(row.instance_id.as_str()).await.expect(200);
    let waits = "SELECT CAST(count(*) AS TEXT) FROM limit_waits";
    assert_eq!(world.sql_text(waits).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn nobody_goes_on_when_the_machine_slept_long_past_the_reset() {
    let (text, _) = resets_in(3600);
    let (world, file) = limited(&text, "continue");
    let clock = Clock::new(&world);
    let env = clock.env();
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "work").await;
    continues(&mut events, id).await;
    clock.set(14 * 3600);
    waits(&mut events, id).await;
    assert_eq!(told(&file), 0);
    let state = "SELECT group_concat(state) FROM limit_waits";
    assert_eq!(world.sql_text(state).await.as_deref(), Some("called_off"));
    server.client.stop(id).await.expect(200);
}

/// When the session goes on by itself.
async fn continues(events: &mut Events, id: &str) -> i64 {
    let when = |one: &Instance| one.limit.clone()?.continues_at;
    let when =
        events.until("a time", |state| state.instances.get(id).and_then(|one| when(one))).await;
    when.as_millis()
}

/// Waits until the session waits for a person.
async fn waits(events: &mut Events, id: &str) {
    let free = |one: &Instance| one.limit.clone()?.continues_at.is_none().then_some(());
    events.until("no time", |state| state.instances.get(id).and_then(|one| free(one))).await;
}

#[tokio::test]
async fn a_session_has_its_own_choice_and_every_change_counts_at_once() {
    let (text, reset) = resets_in(3600);
    let (world, file) = limited(&text, "wait");
    let server = world.serve().await;
    let mut events = server.events().await;
    let body = json!({ "project": "app", "channel": "hosted", "on_limit": "continue" });
    let one = server.client.launch_with(body).await.expect(201).instance();
    assert_eq!(one.on_limit.to_string(), "continue");
    let id = one.instance_id.as_str();
    say(&server, id, "work").await;
    assert!(continues(&mut events, id).await > reset);
    let told_as = |told: &str| told.contains("Usage limit reached");
    assert!(told_as(&world.cli(&["status"]).await.ok().stdout));
    // A command, which the service hears of.
    let said = world.cli(&["on-limit", "app", "wait"]).await.ok().stdout;
    assert!(said.trim_end().ends_with("on_limit=wait"), "{said}");
    waits(&mut events, id).await;
    // The page or a program.
    let path = format!("/api/instances/{id}");
    let patch = async |choice: Value| {
        let request = server.client.request(reqwest::Method::PATCH, &path);
        server.client.send(request.json(&json!({ "on_limit": choice }))).await
    };
    patch(json!("continue")).await.expect(200);
    continues(&mut events, id).await;
    patch(json!("sometimes")).await.expect(422);
    // The configuration, which it follows from now on.
    assert_eq!(patch(Value::Null).await.expect(200).instance().on_limit.to_string(), "wait");
    waits(&mut events, id).await;
    world.cli(&["config", "set", "instance_defaults.on_limit", "continue"]).await.ok();
    continues(&mut events, id).await;
    world.cli(&["config", "set", "instance_defaults.on_limit", "wait"]).await.ok();
    waits(&mut events, id).await;
    assert_eq!(told(&file), 0);
    server.client.stop(id).await.expect(200);
}

/// Each change is judged while another one arrives.
#[tokio::test]
async fn what_was_decided_is_shown_whatever_else_changes_in_the_same_moment() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let (text, _) = resets_in(3600);
    let (world, _file) = limited(&text, "wait");
    let env = [("SVC_FAILPOINTS", "limits.judged_late=100;writes.tick=600000")];
    let start = Start { program: Some(program), env: &env, ..Start::default() };
    let server = world.serve_as(start).await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "work").await;
    waits(&mut events, id).await;
    let path = format!("/api/instances/{id}");
    let patch = async |change: Value| {
        let request = server.client.request(reqwest::Method::PATCH, &path);
        server.client.send(request.json(&change)).await.expect(200);
    };
    for round in 0..8 {
        patch(json!({ "on_limit": "continue" })).await;
        patch(json!({ "label": format!("{round}") })).await;
        continues(&mut events, id).await;
        patch(json!({ "on_limit": "wait" })).await;
        patch(json!({ "label": format!("{round} again") })).await;
        waits(&mut events, id).await;
    }
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn a_server_mode_bridge_shows_the_limit_of_its_session_and_is_told_nothing() {
    let (text, reset) = resets_in(3600);
    let world = World::with(json!({ "instance_defaults": { "on_limit": "continue" } }));
    let dir = world.project_with(
        "app",
        json!({ "turns": [
            { "role": "user", "text": "build it" },
            { "role": "assistant", "text": text },
        ] }),
    );
    let server = world.serve().await;
    let mut events = server.events().await;
    let body = json!({ "project": "app", "on_limit": "continue" });
    let launched = server.client.launch_with(body).await.expect(201);
    let warned = launched.json()["warnings"][0].as_str().unwrap().to_owned();
    assert!(warned.contains("no effect on a Server Mode bridge"), "{warned}");
    let row = launched.instance();
    let id = row.instance_id.as_str();
    assert_eq!(row.on_limit.to_string(), "wait");
    world.remote(&["connect", dir.to_str().unwrap()]);
    let shown = limit(&mut events, id).await;
    assert_eq!((shown.resets_at.unwrap().as_millis(), shown.continues_at), (reset, None));
    let does = |one: &Instance| {
        one.activity.as_ref().is_some_and(|one| one.state.to_string() == "limit").then_some(())
    };
    events.until("its activity", |all| all.instances.get(id).and_then(|one| does(one))).await;
    let said = world.cli(&["status"]).await.ok().stdout;
    assert!(said.contains("Usage limit reached, resets at "), "{said}");
    let refused = world.cli(&["on-limit", "app", "continue"]).await;
    assert!(refused.stderr.contains("Server Mode"), "{refused:?}");
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn an_ended_job_goes_on_once_as_a_new_job_and_a_stopped_one_does_not() {
    let (text, reset) = resets_in(3600);
    let world = World::with(json!({ "instance_defaults": { "on_limit": "continue" } }));
    let clock = Clock::new(&world);
    let env = clock.env();
    let script = |state: &str| {
        let last = json!({ "state": state, "result": text });
        json!({ "job_script": [[0, { "state": "working" }], [20, last]] })
    };
    world.project_with("fails", script("failed"));
    world.project_with("ends", script("stopped"));
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let mut events = server.events().await;
    let stopped = jobs::start(&server, "ends").await;
    let failed = jobs::start(&server, "fails").await;
    let limit_of = |state: &State, id: &str| jobs::job(state, id)?.limit;
    let at = events
        .until("a time", |state| limit_of(state, &failed).and_then(|limit| limit.continues_at))
        .await;
    assert!(at.as_millis() > reset);
    let other = events.until("a limit", |state| limit_of(state, &stopped)).await;
    assert_eq!((other.continues_at, other.hint), (None, None), "somebody stopped it");
    world.set_knobs("fails", jobs::endless());
    clock.set(3600 + 200);
    events.until("the new job", |state| (state.jobs.len() > 2).then_some(())).await;
    let told = |words: &&Vec<String>| words.iter().any(|word| word == GO_ON);
    assert_eq!(jobs::dispatches(&world).iter().filter(told).count(), 1);
    let query = "SELECT group_concat(state) FROM limit_waits";
    assert_eq!(world.sql_text(query).await.as_deref(), Some("begun"));
}

#[tokio::test]
async fn a_job_that_a_person_resumed_does_not_go_on_by_itself_as_well() {
    let (text, _) = resets_in(3600);
    let world = World::with(json!({ "instance_defaults": { "on_limit": "continue" } }));
    let clock = Clock::new(&world);
    let env = clock.env();
    let last = json!({ "state": "failed", "result": text });
    world.project_with("fails", json!({ "job_script": [[0, { "state": "working" }], [20, last]] }));
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let mut events = server.events().await;
    let taken = jobs::start(&server, "fails").await;
    let left = jobs::start(&server, "fails").await;
    let waits = |state: &State, id: &str| jobs::job(state, id)?.limit?.continues_at;
    for id in [&taken, &left] {
        events.until("a time", |state| waits(state, id)).await;
    }
    world.set_knobs("fails", jobs::endless());
    world.cli(&["jobs", "resume", &taken]).await.ok();
    clock.set(3600 + 200);
    events.until("both new jobs", |state| (state.jobs.len() > 3).then_some(())).await;
    let waiting = "SELECT CAST(count(*) AS TEXT) FROM limit_waits WHERE state = 'waiting'";
    while world.sql_text(waiting).await.as_deref() != Some("0") {
        within("another change", events.next()).await;
    }
    let begun = "SELECT CAST(count(*) AS TEXT) FROM limit_waits WHERE state = 'begun'";
    assert_eq!(world.sql_text(begun).await.as_deref(), Some("1"), "the other one went on");
}
