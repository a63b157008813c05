//! Launches that wait for a plan limit: recorded, cancelled, started once.

use crate::conversations::{add, transcript};
use crate::harness::{Clock, Events, Server, Start, World, service, service_with_fail_points};
use crate::jobs;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::SystemTime;
use svc_shared::Timestamp;
use svc_shared::api::planned_launches::PlannedLaunch;
use svc_shared::internal::State;
use svc_skip::{NO_FAIL_POINTS, skip};

const PROMPT: &str = "look around after the reset";
const HOUR: i64 = 3600;
/// Until every launch that waits for a reset is due, seconds.
const MARGIN: i64 = 200;

/// Projects, a daemon, and an agent that stopped at a limit.
fn world() -> World {
    let daemon = service().with_file_name("svc-hosted");
    let world = World::with(json!({ "hosted": { "enabled": true, "binary": daemon } }));
    let talk = world.project("talk");
    at_limit(&world, &talk, 1, HOUR);
    world
}

/// Has a conversation stop at a limit that is reset in so many seconds.
fn at_limit(world: &World, cwd: &Path, number: u8, resets_in: i64) {
    let id = format!("22222222-2222-4333-8444-0000000000{number:02}");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seconds = i64::try_from(now.as_secs()).unwrap();
    let text = format!("Claude AI usage limit reached|{}", seconds + resets_in);
    let turn = json!({
        "type": "assistant", "cwd": cwd, "sessionId": id, "isSidechain": false,
        "isApiErrorMessage": true, "timestamp": Timestamp::from_millis(seconds * 1000),
        "message": { "role": "assistant", "model": "<synthetic>",
            "content": [{ "type": "text", "text": text }] },
    });
    add(&transcript(world, cwd, &id), &format!("{turn}\n"));
}

async fn serve<'w>(world: &'w World, clock: &Clock) -> Server<'w> {
    world.serve_as(Start { env: &clock.env(), ..Start::default() }).await
}

async fn limit_is_known(events: &mut Events) {
    events.until("the limit", |state| state.plan_limit.clone()).await;
}

async fn plan(server: &Server<'_>, body: &Value) -> PlannedLaunch {
    let planned = server.client.post_json("/api/launches", body).await.expect(202).json();
    let planned: PlannedLaunch = serde_json::from_value(planned).unwrap();
    assert_eq!(planned.state.to_string(), "waiting");
    planned
}

async fn plan_session(server: &Server<'_>, project: &str) -> PlannedLaunch {
    plan(server, &json!({ "session": { "project": project } })).await
}

fn runs(state: &State, project: &str) -> Option<()> {
    let row = state.instances.values().find(|row| row.project == project)?;
    (row.status.to_string() == "running").then_some(())
}

/// Waits until nothing is left to be started.
async fn all_started(events: &mut Events) {
    events.until("the end of every start", |state| state.launches.is_empty().then_some(())).await;
}

async fn states(server: &Server<'_>) -> Vec<String> {
    let listed = server.client.get("/api/launches").await.expect(200).json();
    let launches = listed["launches"].as_array().unwrap().iter();
    let mut states: Vec<String> =
        launches.map(|one| one["state"].as_str().unwrap().to_owned()).collect();
    states.sort();
    states
}

fn dispatches(world: &World) -> usize {
    let asked = |words: &&Vec<String>| words.iter().any(|word| word == PROMPT);
    jobs::dispatches(world).iter().filter(asked).count()
}

#[tokio::test]
async fn launches_wait_over_a_kill_and_start_once_after_the_reset() {
    let world = world();
    for name in ["direct", "bridge", "taken-back"] {
        world.project(name);
    }
    world.project_with("job", jobs::endless());
    let clock = Clock::new(&world);
    let server = serve(&world, &clock).await;
    let mut events = server.events().await;
    limit_is_known(&mut events).await;
    let hosted = json!({ "session": { "project": "direct", "channel": "hosted" } });
    let direct = plan(&server, &hosted).await;
    assert_eq!((direct.mode.as_str(), direct.prompt), ("hosted", None));
    // Commands know the limit too: they read what was added to the transcripts.
    let said = world.cli(&["start", "bridge", "--wait-for-limit"]).await.ok().stdout;
    assert!(said.contains("bridge starts at "), "{said}");
    let said = world.cli(&["jobs", "start", "job", PROMPT, "--wait-for-limit"]).await.ok().stdout;
    assert!(said.contains("job starts at "), "{said}");
    let wrong = world.cli(&["start", "taken-back", "--wait-for-limit", "--json"]).await.ok().json();
    events.until("four", |state| (state.launches.len() == 4).then_some(())).await;
    let cancel = ["launches", "cancel", wrong["id"].as_str().unwrap()];
    world.cli(&cancel).await.ok();
    // The page hears of what a command did.
    events.until("three", |state| (state.launches.len() == 3).then_some(())).await;
    assert_ne!(world.cli(&cancel).await.code, Some(0), "nobody of this id waits any more");
    let listed = world.cli(&["launches"]).await.ok();
    assert!(listed.stdout.contains("bridge") && listed.stderr.contains("resets at"), "{listed:?}");
    assert!(server.client.instances().await.is_empty(), "nothing starts before the reset");
    drop(events);
    server.kill().await;
    clock.set(HOUR + MARGIN);
    let server = serve(&world, &clock).await;
    let mut events = server.events().await;
    events
        .until("all of them", |state| {
            let is_it = state.instances.contains_key(direct.id.as_str()) && !state.jobs.is_empty();
            is_it.then_some(())?;
            runs(state, "direct")?;
            runs(state, "bridge")
        })
        .await;
    // Another service finds nothing to do, or the end of a start that was not written.
    drop(events);
    server.kill().await;
    let server = serve(&world, &clock).await;
    all_started(&mut server.events().await).await;
    assert_eq!(states(&server).await, ["cancelled", "started", "started", "started"]);
    let rows = server.client.instances().await;
    let mut projects: Vec<&str> = rows.iter().map(|row| row.project.as_str()).collect();
    projects.sort_unstable();
    assert_eq!(projects, ["bridge", "direct"]);
    assert_eq!(dispatches(&world), 1);
    for row in rows {
        server.client.stop(row.instance_id.as_str()).await.expect(200);
    }
}

#[tokio::test]
async fn without_a_limit_a_launch_starts_at_once() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let body = json!({ "session": { "project": "app" } });
    let refused = server.client.post_json("/api/launches", &body).await;
    assert!(refused.refused(422).contains("invalid_value"));
    let ran = world.cli(&["start", "app", "--wait-for-limit", "--wait"]).await.ok();
    assert!(ran.stdout.contains("started "), "{ran:?}");
    assert!(ran.stderr.contains("No plan limit is known"), "{ran:?}");
    server.client.stop("app").await.expect(200);
}

#[tokio::test]
async fn h98_a_start_after_the_reset_that_was_interrupted_is_made_once() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for (point, channel) in [
        ("planned.after_begin", "remote-control"),
        ("spawn.before_record", "remote-control"),
        ("spawn.after_record", "remote-control"),
        ("spawn.after_fork", "remote-control"),
        ("spawn.after_exec", "remote-control"),
        ("planned.before_finish", "remote-control"),
        ("hosted.before_record", "hosted"),
        ("hosted.after_record", "hosted"),
        ("planned.before_finish", "hosted"),
    ] {
        let world = world();
        world.project("app");
        let clock = Clock::new(&world);
        let server = serve(&world, &clock).await;
        limit_is_known(&mut server.events().await).await;
        let body = json!({ "session": { "project": "app", "channel": channel } });
        let planned = plan(&server, &body).await;
        server.kill().await;
        clock.set(HOUR + MARGIN);
        let armed = format!("{point}=abort");
        let [library, offset] = clock.env();
        let env = [library, offset, ("SVC_FAILPOINTS", armed.as_str())];
        let start = Start { program: Some(program.clone()), env: &env, ..Start::default() };
        let mut server = world.serve_as(start).await;
        assert_eq!(server.ended().await.signal(), Some(9), "{point}: {}", server.log());

        let server = serve(&world, &clock).await;
        let mut events = server.events().await;
        all_started(&mut events).await;
        events.until(point, |state| runs(state, "app")).await;
        let rows = server.client.instances().await;
        let ids: Vec<&str> = rows.iter().map(|row| row.instance_id.as_str()).collect();
        assert_eq!(ids, [planned.id.as_str()], "{point}");
        if channel != "hosted" {
            assert_eq!(world.starts("app").len(), 1, "{point}: the agent ran twice");
        }
        server.client.stop(planned.id.as_str()).await.expect(200);
    }
}

#[tokio::test]
async fn h98_a_job_that_was_taken_before_the_service_died_is_not_started_again() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = world();
    world.project_with("job", jobs::endless());
    let clock = Clock::new(&world);
    let server = serve(&world, &clock).await;
    limit_is_known(&mut server.events().await).await;
    plan(&server, &json!({ "job": { "project": "job", "prompt": PROMPT } })).await;
    server.kill().await;
    clock.set(HOUR + MARGIN);
    let [library, offset] = clock.env();
    let env = [library, offset, ("SVC_FAILPOINTS", "planned.before_finish=abort")];
    let start = Start { program: Some(program), env: &env, ..Start::default() };
    let mut server = world.serve_as(start).await;
    assert_eq!(server.ended().await.signal(), Some(9), "{}", server.log());
    // Times of day do not tell what was started by whom.
    clock.set(-HOUR);
    let server = serve(&world, &clock).await;
    all_started(&mut server.events().await).await;
    assert_eq!(states(&server).await, ["started"]);
    assert_eq!(dispatches(&world), 1);
}

#[tokio::test]
async fn what_cannot_start_at_the_reset_says_why_until_a_person_has_seen_it() {
    let world = world();
    let gone = world.project("gone");
    world.project("untrusted-since");
    let clock = Clock::new(&world);
    let server = serve(&world, &clock).await;
    let mut events = server.events().await;
    limit_is_known(&mut events).await;
    let first = plan_session(&server, "gone").await;
    let second = plan_session(&server, "untrusted-since").await;
    fs::remove_dir_all(gone).unwrap();
    let is_gone = |state: &State| (!state.projects.contains_key("gone")).then_some(());
    events.until("one project less", is_gone).await;
    fs::write(world.agent_config(), r#"{ "remoteDialogSeen": true }"#).unwrap();
    clock.set(HOUR + MARGIN);
    let reasons = events
        .until("two reasons", |state| {
            let reason = |one: &PlannedLaunch| {
                let one = state.launches.get(one.id.as_str())?;
                (one.state.to_string() == "failed").then(|| one.reason.clone())?
            };
            Some([reason(&first)?, reason(&second)?])
        })
        .await;
    assert!(reasons[0].contains("no project"), "{reasons:?}");
    assert!(reasons[1].contains("trust"), "{reasons:?}");
    assert!(server.client.instances().await.is_empty());
    for one in [&first, &second] {
        let path = format!("/api/launches/{}", one.id);
        server.client.delete(&path).await.expect(200);
    }
    all_started(&mut events).await;
    assert!(states(&server).await.is_empty());
}

#[tokio::test]
async fn a_limit_that_is_there_again_at_the_reset_is_waited_for() {
    let world = world();
    world.project("app");
    let clock = Clock::new(&world);
    let server = serve(&world, &clock).await;
    let mut events = server.events().await;
    limit_is_known(&mut events).await;
    let planned = plan_session(&server, "app").await;
    at_limit(&world, &world.projects.join("talk"), 2, 3 * HOUR);
    let later = |state: &State| {
        let limit = state.plan_limit.as_ref()?.resets_at?;
        (limit > planned.due_at).then_some(limit)
    };
    let reset = events.until("the later limit", later).await;
    clock.set(HOUR + MARGIN);
    let put_off = events
        .until("a later start", |state| {
            let one = state.launches.get(planned.id.as_str())?;
            (one.due_at > reset).then(|| one.clone())
        })
        .await;
    assert!(put_off.reason.is_some_and(|why| why.contains("limit")), "it says why it waits longer");
    assert!(server.client.instances().await.is_empty());
    // A clock that is set back makes it wait, and no more.
    clock.set(-HOUR);
    server.kill().await;
    let server = serve(&world, &clock).await;
    let mut events = server.events().await;
    limit_is_known(&mut events).await;
    assert!(server.client.instances().await.is_empty());
    clock.set(3 * HOUR + MARGIN);
    events.until("its start", |state| runs(state, "app")).await;
    all_started(&mut events).await;
    let limit_is_gone = |state: &State| state.plan_limit.is_none().then_some(());
    events.until("no limit", limit_is_gone).await;
    server.client.stop("app").await.expect(200);
}

#[tokio::test]
async fn trust_is_granted_when_the_launch_is_planned_and_never_at_the_reset() {
    let world = world();
    world.untrusted("app");
    let server = world.serve().await;
    let mut events = server.events().await;
    limit_is_known(&mut events).await;
    let mut body = json!({ "session": { "project": "app" } });
    let refused = server.client.post_json("/api/launches", &body).await;
    assert_eq!(refused.refused(409), "not_trusted");
    body["session"]["trust"] = json!(true);
    let planned = plan(&server, &body).await;
    let is_trusted = |state: &State| {
        let project = state.projects.get("app")?;
        (project.trust_state.to_string() == "trusted").then_some(())
    };
    events.until("the trust", is_trusted).await;
    // A repeat of the same request plans nothing more.
    let again = async || {
        let request = server.client.request(reqwest::Method::POST, "/api/launches");
        let request = request.header("Idempotency-Key", "once").json(&body);
        server.client.send(request).await.expect(202).json()["id"].clone()
    };
    assert_eq!(again().await, again().await);
    events.until("two", |state| (state.launches.len() == 2).then_some(())).await;
    assert!(events.state.launches.contains_key(planned.id.as_str()));
}

/// Records that no request could have made: kind, state, request, jobs of before.
const FORGED: [[&str; 4]; 12] = [
    ["session", "waiting", r#"{"project":"other","trust":true}"#, "[]"],
    ["session", "waiting", r#"{"project":"other","mode":"hosted","trust":true}"#, "[]"],
    ["session", "begun", r#"{"project":"other","mode":"pty","trust":true}"#, "[]"],
    ["session", "waiting", "{", "[]"],
    ["session", "begun", r#"{"project":7}"#, "[]"],
    ["session", "waiting", r#"{"project":"../home"}"#, "[]"],
    ["session", "waiting", r#"{"project":"app","name":"\u001b[2Jx"}"#, "[]"],
    ["session", "waiting", r#"{"project":"app","permission_mode":"bypassPermissions"}"#, "[]"],
    ["job", "waiting", r#"{"project":"other","prompt":"x","trust":true}"#, "[]"],
    ["job", "begun", "7", "[]"],
    ["job", "begun", r#"{"project":"app","prompt":"x"}"#, "no list"],
    ["job", "waiting", r#"{"project":"app","prompt":"x","model":"--help"}"#, "[]"],
];

/// Whoever can write the database gets nothing started or trusted at the reset.
#[tokio::test]
async fn h98_h29_a_forged_record_of_a_launch_starts_and_trusts_nothing() {
    let world = world();
    world.project("app");
    world.untrusted("other");
    let clock = Clock::new(&world);
    serve(&world, &clock).await.kill().await;
    for (n, [kind, state, request, before]) in FORGED.into_iter().enumerate() {
        let id = format!("0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1{n:02}");
        let row = format!(
            "INSERT INTO planned_launches (launch_id, kind, state, request, jobs_before, asked_at, \
             due_at) VALUES ('{id}', '{kind}', '{state}', '{request}', '{before}', 1, 1)"
        );
        assert_eq!(world.sql(&row).await.unwrap(), 1);
    }
    clock.set(HOUR + MARGIN);
    let server = serve(&world, &clock).await;
    let mut events = server.events().await;
    let failed = |state: &State| {
        let launches = state.launches.values();
        let failed = launches.filter(|one| one.state.to_string() == "failed").cloned();
        Some(failed.collect::<Vec<_>>()).filter(|failed| failed.len() == FORGED.len())
    };
    for one in events.until("all of them failed", failed).await {
        assert!(one.reason.is_some_and(|why| !why.is_empty()), "it says why");
        server.client.delete(&format!("/api/launches/{}", one.id)).await.expect(200);
    }
    all_started(&mut events).await;
    assert!(server.client.instances().await.is_empty());
    assert!(jobs::dispatches(&world).is_empty());
    let trusted = fs::read_to_string(world.agent_config()).unwrap();
    assert!(!trusted.contains("projects/other"), "{trusted}");
    let table = world.cli(&["launches"]).await.ok();
    assert!(!table.stdout.contains('\u{1b}'));
}
