//! What each session does, who says so, and how sure that is.

use crate::conversations::transcript;
use crate::direct_sessions::{launch, say};
use crate::harness::{Events, World, service};
use crate::jobs;
use crate::restarts::auth;
use crate::sessions_in_terminals::{ready, session};
use serde_json::{Value, json};
use svc_shared::api::activity::Activity;
use svc_shared::api::instances::Instance;

const UUID: &str = "22222222-2222-4333-8444-666666666666";

/// Waits until a row does this; state, source and confidence, and the whole of it.
async fn until(events: &mut Events, id: &str, state: &str) -> Activity {
    let what = format!("{state} of {id}");
    let does = |one: &Instance| {
        one.activity.clone().filter(|activity| activity.state.to_string() == state)
    };
    events.until(&what, |all| all.instances.get(id).and_then(|one| does(one))).await
}

#[track_caller]
fn known(activity: &Activity, source: &str, confidence: &str) {
    let found = (activity.source.to_string(), activity.confidence.to_string(), activity.stale);
    assert_eq!(found, (source.to_owned(), confidence.to_owned(), false), "{activity:?}");
}

fn turns(turns: Value) -> World {
    let world = World::new();
    world.project_with("app", json!({ "turns": turns }));
    world
}

#[tokio::test]
async fn a_session_in_a_terminal_works_and_waits_as_its_process_says() {
    let world = turns(json!([
        { "role": "user", "text": "build it" },
        { "role": "permission", "text": "make", "tool": "Bash", "after_ms": 2500 },
    ]));
    let server = world.serve().await;
    let mut events = server.events().await;
    let row = ready(&server, session("app")).await;
    let id = row.instance_id.as_str();
    known(&until(&mut events, id, "working").await, "process", "certain");
    let waits = until(&mut events, id, "blocked").await;
    known(&waits, "process", "certain");
    assert_eq!((waits.working, waits.blocked, waits.idle), (0, 1, 0));
    // A command reads the same without the service.
    server.kill().await;
    let listed = world.cli(&["status", "--json"]).await.ok().json();
    assert_eq!(listed[0]["activity"]["state"], "blocked", "{listed}");
    assert_eq!(listed[0]["activity"]["since"], json!(waits.since));
    let server = world.serve().await;
    let mut events = server.events().await;
    let again = until(&mut events, id, "blocked").await;
    assert_eq!(again, waits, "the same as before the restart");
    server.client.stop(id).await.expect(200);
    let ended = server.client.instance(id).await.expect(200).instance();
    assert_eq!(ended.activity, None);
}

#[tokio::test]
async fn a_question_a_limit_and_a_sign_out_are_read_from_the_transcript() {
    for (turn, state) in [
        (json!({ "role": "permission", "text": "", "tool": "AskUserQuestion" }), "question"),
        (
            json!({ "role": "assistant",
                "text": "You've hit your session limit · resets 4pm (Asia/Tbilisi)" }),
            "limit",
        ),
        (
            json!({ "role": "assistant", "text": "Invalid API key · Please run /login" }),
            "logged_out",
        ),
    ] {
        let world = turns(json!([{ "role": "user", "text": "build it" }, turn]));
        let server = world.serve().await;
        let mut events = server.events().await;
        let row = ready(&server, session("app")).await;
        let id = row.instance_id.as_str();
        known(&until(&mut events, id, state).await, "transcript", "certain");
        let listed = world.cli(&["status", "--json"]).await.ok().json();
        assert_eq!(listed[0]["activity"]["state"], state, "{listed}");
        server.client.stop(id).await.expect(200);
    }
}

#[tokio::test]
async fn a_direct_session_says_itself_what_it_does() {
    let daemon = service().with_file_name("svc-hosted");
    let world = World::with(json!({ "hosted": { "enabled": true, "binary": daemon } }));
    let tool = |name: &str| json!({ "name": name, "input": {}, "ask": true });
    let cwd = world.project_with(
        "app",
        json!({ "hosted": { "uuid": UUID, "replies": [
            { "match": "^use", "chunks": ["I look"], "tool": tool("Bash") },
            { "match": "^ask", "chunks": ["I ask"], "tool": tool("AskUserQuestion") },
            { "chunks": ["Plain talk"] },
        ]}}),
    );
    let server = world.serve().await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "hello").await;
    known(&until(&mut events, id, "idle").await, "stream", "certain");
    for (text, state, tool) in [("use it", "blocked", Some("Bash")), ("ask me", "question", None)] {
        say(&server, id, text).await;
        let waits = until(&mut events, id, state).await;
        known(&waits, "stream", "certain");
        assert_eq!(waits.tool.as_deref(), tool);
        let row = server.client.instance(id).await.expect(200).instance();
        let asked = row.pending_permissions.first().expect("a question");
        assert_eq!(asked.since, waits.since, "since it was asked");
        let path = format!("/api/instances/{id}/permissions/{}", asked.request_id);
        server.client.post_json(&path, &json!({ "decision": "allow" })).await.expect(202);
        until(&mut events, id, "idle").await;
    }
    assert!(transcript(&world, &cwd, UUID).exists());
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn a_job_that_needs_an_answer_asks_and_a_working_one_works() {
    let world = World::new();
    world.project_with("busy", jobs::endless());
    let blocked = json!({ "state": "blocked", "tempo": "blocked", "needs": "an answer" });
    world.project_with("asks", json!({ "job_script": [[0, blocked]] }));
    let server = world.serve().await;
    let mut events = server.events().await;
    for (project, state, does) in [("busy", "working", "working"), ("asks", "blocked", "question")]
    {
        let id = jobs::start(&server, project).await;
        let job = jobs::until_alive(&mut events, &id, state).await;
        let activity = job.activity.expect("what it does");
        assert_eq!(activity.state.to_string(), does, "{activity:?}");
        assert!(!activity.stale, "{activity:?}");
    }
}

#[tokio::test]
async fn an_agent_that_was_signed_out_shows_on_rows_that_rest() {
    let world = turns(json!([
        { "role": "user", "text": "build it" },
        { "role": "assistant", "text": "done" },
    ]));
    world.configure(json!({ "claude": { "env": { "AGENT_SIM_AUTH": "logged_out" } } }));
    auth(&world, "login");
    let server = world.serve().await;
    let row = ready(&server, session("app")).await;
    let id = row.instance_id.as_str();
    let mut events = server.events().await;
    until(&mut events, id, "idle").await;
    // The first thing that a service asks the agent.
    auth(&world, "logout");
    server.kill().await;
    let server = world.serve().await;
    let mut events = server.events().await;
    known(&until(&mut events, id, "logged_out").await, "account", "likely");
    auth(&world, "login");
    server.kill().await;
    let server = world.serve().await;
    let mut events = server.events().await;
    until(&mut events, id, "idle").await;
    server.client.stop(id).await.expect(200);
}
