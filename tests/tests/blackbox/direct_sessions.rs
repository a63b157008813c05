//! Direct Sessions with the real daemon and the simulated agent.

use crate::crash_consistency::{armed, dies_of};
use crate::harness::{
    Events, Process, Server, World, service, service_with_fail_points, socket, within,
};
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use svc_shared::api::instances::{Instance, PendingPermission};
use svc_skip::{NO_FAIL_POINTS, skip};

pub const SECRET: &str = "canary-of-a-tool-input";

pub fn enabled() -> World {
    // Named, because the build with fail points lies elsewhere, without the daemon.
    let daemon = service().with_file_name("svc-hosted");
    let world = World::with(json!({ "hosted": { "enabled": true, "binary": daemon } }));
    let ask = json!({ "name": "Bash", "input": { "command": format!("echo {SECRET}") },
        "ask": true });
    world.project_with(
        "app",
        json!({ "hosted": { "uuid": "22222222-2222-4333-8444-555555555555", "replies": [
            { "match": "^use", "chunks": ["I look"], "tool": ask },
            { "chunks": ["Plain talk"] },
        ]}}),
    );
    world
}

fn direct(project: &str) -> Value {
    json!({ "project": project, "channel": "hosted" })
}

/// The daemons that run.
pub fn daemons(world: &World) -> Vec<Process> {
    let mut found = world.processes();
    found.retain(|one| one.argv.first().is_some_and(|program| program.ends_with("svc-hosted")));
    found
}

/// How many agents were started for Direct Sessions.
fn agents(world: &World) -> usize {
    world.calls().iter().filter(|call| call["argv"].to_string().contains("stream-json")).count()
}

pub async fn launch(server: &Server<'_>) -> Instance {
    let one = server.client.launch_with(direct("app")).await.expect(201).instance();
    assert_eq!(one.status.to_string(), "running", "{one:?}");
    one
}

pub async fn say(server: &Server<'_>, id: &str, text: &str) {
    let path = format!("/api/instances/{id}/message");
    server.client.post_json(&path, &json!({ "text": text })).await.expect(202);
}

/// Waits until the session asks something.
pub async fn asked(events: &mut Events, id: &str) -> PendingPermission {
    events
        .until("a question", |state| state.instances.get(id)?.pending_permissions.first().cloned())
        .await
}

/// A session that has asked its first question.
async fn asking(server: &Server<'_>) -> (Instance, PendingPermission) {
    let mut events = server.events().await;
    let one = launch(server).await;
    let id = one.instance_id.as_str();
    say(server, id, "use a tool").await;
    let question = asked(&mut events, id).await;
    (one, question)
}

/// Waits until a session stands so.
pub async fn stands(events: &mut Events, id: &str, status: &str) {
    let is_so = |one: &Instance| (one.status.to_string() == status).then_some(());
    events.until(status, |state| state.instances.get(id).and_then(|one| is_so(one))).await;
}

/// The frames of a session until one of this kind, as it is watched now.
async fn frames_until(
    server: &Server<'_>,
    id: &str,
    is_last: impl Fn(&Value) -> bool,
) -> Vec<Value> {
    let mut socket = socket(&server.base, &format!("/ws/hosted/{id}")).await;
    let mut seen = Vec::new();
    within("a frame", async {
        while let Some(Ok(message)) = socket.next().await {
            let Ok(text) = message.to_text() else { continue };
            let Ok(frame) = serde_json::from_str::<Value>(text) else { continue };
            seen.push(frame.clone());
            if is_last(&frame) {
                return;
            }
        }
        panic!("the socket ended: {seen:?}");
    })
    .await;
    seen
}

fn is_result(frame: &Value) -> bool {
    frame["frame"]["type"] == "result"
}

fn answer_path(id: &str, request: &str) -> String {
    format!("/api/instances/{id}/permissions/{request}")
}

#[tokio::test]
async fn a_question_is_asked_answered_once_and_the_agent_goes_on() {
    let world = enabled();
    let server = world.serve().await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    assert_eq!((one.channel.to_string(), one.resumable), ("hosted".into(), false));
    let process = one.process_id.clone().unwrap();
    say(&server, &process, "use a tool").await;
    let question = asked(&mut events, id).await;
    assert_eq!(question.tool.as_deref(), Some("Bash"));
    assert_eq!(question.summary, format!("echo {SECRET}"));
    let open = server.client.get("/api/approvals").await.expect(200).json();
    assert_eq!(open["approvals"][0]["request_id"], question.request_id.as_str());
    let path = answer_path(id, &question.request_id);
    let allow = json!({ "decision": "allow" });
    server.client.post_json(&path, &json!({ "decision": "maybe" })).await.expect(422);
    // Two devices at the same moment: one of them is told that it came second.
    let deny = json!({ "decision": "deny" });
    let (first, second) = tokio::join!(
        server.client.post_json(&path, &allow),
        server.client.post_json(&path, &deny),
    );
    let mut codes = [first.status, second.status];
    codes.sort_unstable();
    assert_eq!(codes, [202, 409]);
    let frames = frames_until(&server, id, is_result).await;
    let resolved: Vec<&Value> =
        frames.iter().filter(|frame| frame["type"] == "control_resolved").collect();
    assert_eq!(resolved.len(), 1, "{frames:?}");
    assert_eq!(frames[0]["type"], "hello");
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    assert_eq!(history["approvals"][0]["decision"], resolved[0]["behavior"]);
    let text = serde_json::to_string(&frames).unwrap();
    assert!(!text.contains("22222222-2222"), "no raw id of the conversation: {text}");
    // One list with all others, and a list of their own.
    assert_eq!(server.client.instances().await.len(), 1);
    let own = server.client.get("/api/hosted").await.expect(200).json();
    assert_eq!(own[0]["instance_id"], id);
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn what_is_allowed_for_the_session_is_not_asked_again_until_it_ends() {
    let world = enabled();
    let mut server = world.serve().await;
    let (one, question) = asking(&server).await;
    let id = one.instance_id.as_str();
    assert_eq!(question.session_rules, ["Bash(echo:*)"]);
    // The service dies with the question; what the agent offered is known to the next one.
    server.kill().await;
    server = world.serve().await;
    let mut events = server.events().await;
    assert_eq!(asked(&mut events, id).await.session_rules, ["Bash(echo:*)"]);
    let answer = json!({ "decision": "allow", "for_session": true });
    server.client.post_json(&answer_path(id, &question.request_id), &answer).await.expect(202);
    frames_until(&server, id, is_result).await;
    say(&server, id, "use a tool").await;
    let results = |frames: &[Value]| frames.iter().filter(|frame| is_result(frame)).count();
    let count = std::cell::Cell::new(0);
    let frames = frames_until(&server, id, |frame| {
        count.set(count.get() + usize::from(is_result(frame)));
        count.get() == 2
    })
    .await;
    assert_eq!(results(&frames), 2);
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    assert_eq!(history["approvals"].as_array().unwrap().len(), 1, "asked once: {history}");
    assert_eq!(history["approvals"][0]["for_session"], true);
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn hd18_a_question_survives_a_killed_service_and_is_answered_once() {
    let world = enabled();
    let server = world.serve().await;
    let (one, question) = asking(&server).await;
    let id = one.instance_id.as_str();
    server.kill().await;
    let server = world.serve().await;
    let mut events = server.events().await;
    let again = asked(&mut events, id).await;
    assert_eq!(again.request_id, question.request_id);
    let after = server.client.instance(id).await.expect(200).instance();
    assert_eq!(after.agent_pid, one.agent_pid, "the same agent");
    let path = answer_path(id, &question.request_id);
    let deny = json!({ "decision": "deny", "message": "not today" });
    server.client.post_json(&path, &deny).await.expect(202);
    let frames = frames_until(&server, id, is_result).await;
    let text = serde_json::to_string(&frames).unwrap();
    assert!(text.contains("not today"), "the agent was told: {text}");
    server.client.post_json(&path, &deny).await.expect(409);
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn a_stopped_session_resumes_under_its_id_with_its_conversation() {
    let world = enabled();
    let server = world.serve().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    // HD20: before the first turn there is no conversation to continue.
    let stopped = server.client.stop(id).await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
    assert_eq!(stopped.exit_reason.unwrap().to_string(), "operator_stop");
    assert_eq!(server.client.resume(id).await.refused(409), "not_resumable");
    server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "hello").await;
    frames_until(&server, id, is_result).await;
    server.client.post(&format!("/api/instances/{id}/forget")).await.expect(409);
    server.client.stop(id).await.expect(200);
    server
        .client
        .post_json(&format!("/api/instances/{id}/message"), &json!({ "text": "x" }))
        .await
        .expect(409);
    let resumed = server.client.resume(id).await.expect(200).instance();
    assert_eq!((resumed.instance_id.as_str(), resumed.generation), (id, 2));
    assert_ne!(resumed.process_id, one.process_id);
    let argv = world.calls().pop().unwrap()["argv"].to_string();
    assert!(argv.contains("--resume") && argv.contains("22222222-2222"), "{argv}");
    // HD19: whoever comes second is told that it runs.
    let twice = server.client.resume(id).await.expect(200).json();
    assert_eq!((&twice["created"], &twice["generation"]), (&json!(false), &json!(2)));
    server.client.stop(id).await.expect(200);

    // All of it stands in the history, also after the session was forgotten.
    server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);
    let past = server.client.get(&format!("/api/history?instance={id}")).await.expect(200).json();
    let events = past["events"].as_array().unwrap();
    let told: Vec<_> = events.iter().rev().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(told, ["spawned", "ready", "ended", "spawned", "ready", "ended"], "{past}");
    assert!(events.iter().all(|event| event["mode"] == "hosted"), "{past}");
    assert_eq!(events[0]["exit_reason"], "operator_stop", "{past}");
    let used = server.client.get("/api/projects/sortmeta").await.expect(200).json();
    assert!(used.to_string().contains("last_used"), "{used}");
}

#[tokio::test]
async fn a_session_that_ends_by_itself_is_stopped_or_crashed_by_its_code() {
    let world = enabled();
    for (project, code, status) in [("fine", 0, "stopped"), ("broken", 3, "crashed")] {
        let hosted = json!({ "exit_after_turns": 1, "exit_code": code });
        world.project_with(project, json!({ "hosted": hosted }));
        let server = world.serve().await;
        let mut events = server.events().await;
        let one = server.client.launch_with(direct(project)).await.expect(201).instance();
        let id = one.instance_id.as_str();
        say(&server, id, "the only turn").await;
        stands(&mut events, id, status).await;
        let after = server.client.instance(id).await.expect(200).instance();
        assert_eq!(after.exit_code, Some(code));
        let past = server.client.get(&format!("/api/history?instance={id}")).await.expect(200);
        let end = if status == "crashed" { "crashed" } else { "ended" };
        assert_eq!(past.json()["events"][0]["kind"], end);
        server.stop().await;
    }
}

#[tokio::test]
async fn commands_start_tell_answer_and_stop_a_session() {
    let world = enabled();
    let server = world.serve().await;
    let mut events = server.events().await;
    let started = world.cli(&["start", "app", "--mode", "hosted", "--json"]).await.ok().json();
    let id = started["instance_id"].as_str().unwrap().to_owned();
    world.cli(&["message", "app", "use a tool"]).await.ok();
    let question = asked(&mut events, &id).await;
    let listed = world.cli(&["approvals", "list", "--json"]).await.ok().json();
    assert_eq!(listed[0]["request_id"], question.request_id.as_str());
    let table = world.cli(&["status"]).await.ok().stdout;
    let row = table.lines().nth(1).unwrap();
    assert!(row.contains("Direct Session") && row.contains("waiting for permission: "), "{table}");
    let short: String = question.request_id.chars().take(6).collect();
    world.cli(&["approvals", "deny", &short, "--message", "by command"]).await.ok();
    let frames = frames_until(&server, &id, is_result).await;
    assert!(serde_json::to_string(&frames).unwrap().contains("by command"));
    let shown = world.cli(&["approvals", "show", &short, "--json"]).await.ok().json();
    assert_eq!(shown["decision"], "deny");
    let status = world.cli(&["status", "--json"]).await.ok().json();
    assert_eq!(status[0]["channel"], "hosted");
    world.cli(&["stop", "app"]).await.ok();
    stands(&mut events, &id, "stopped").await;
    world.cli(&["forget", &id]).await.ok();
    events.until("nothing", |state| state.instances.is_empty().then_some(())).await;
}

#[tokio::test]
async fn hd1_without_a_daemon_the_channel_says_why_and_bridges_work() {
    let world = enabled();
    world.configure(json!({ "hosted": { "binary": "no-such-program" } }));
    let server = world.serve().await;
    let refused = server.client.launch_with(direct("app")).await;
    assert_eq!(refused.refused(503), "hosted_unavailable");
    assert!(refused.text().contains("hosted binary not found"), "{}", refused.text());
    assert!(server.client.instances().await.is_empty(), "nothing is left behind");
    let health = server.client.get("/healthz").await.expect(200).json();
    assert_eq!(health["hosted"]["running"], false);
    assert!(health["hosted"]["error"].as_str().unwrap().contains("not found"), "{health}");
    server.client.run("app").await;
}

#[tokio::test]
async fn h98_a_launch_interrupted_at_any_point_starts_at_most_one_agent() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in ["hosted.before_record", "hosted.after_record"] {
        let world = enabled();
        let server = armed(&world, &program, point).await;
        dies_of(server, Method::POST, "/api/v1/instances", Some(direct("app"))).await;
        assert_eq!(agents(&world), 0, "{point}: nothing runs before its record is whole");

        let server = world.serve().await;
        let left = server.client.instances().await;
        let written = usize::from(point == "hosted.after_record");
        assert_eq!(left.len(), written, "{point}: {left:?}");
        if let Some(left) = left.first() {
            let id = left.instance_id.as_str();
            let mut events = server.events().await;
            stands(&mut events, id, "error").await;
            server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);
        }
        let one = launch(&server).await;
        assert_eq!(server.client.instances().await.len(), 1, "{point}");
        assert_eq!(agents(&world), 1, "{point}: one agent was started in all");
        server.client.stop(one.instance_id.as_str()).await.expect(200);
    }
}

#[tokio::test]
async fn h98_a_stop_interrupted_after_its_intent_is_finished_and_never_a_crash() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = enabled();
    let server = armed(&world, &program, "hosted.after_stop_intent").await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    dies_of(server, Method::DELETE, &format!("/api/v1/instances/{id}"), None).await;

    let server = world.serve().await;
    let mut events = server.events().await;
    stands(&mut events, id, "stopped").await;
    let after = server.client.instance(id).await.expect(200).instance();
    assert_eq!(after.exit_reason.unwrap().to_string(), "operator_stop");
}

/// H104: what the agent started ends with it.
#[tokio::test]
async fn h104_a_stop_ends_everything_that_the_agent_started() {
    for mode in ["ignore_signals", "new_session", "unmarked"] {
        let world = enabled();
        let knobs = json!({ "children": 2, "child_mode": mode, "child_life_ms": 600_000,
            "hosted": { "uuid": "22222222-2222-4333-8444-555555555555" } });
        world.set_knobs("app", knobs);
        let server = world.serve().await;
        let one = launch(&server).await;
        let is_child =
            |process: &Process| process.argv.iter().any(|word| word.contains("bystander"));
        let left = || world.processes().into_iter().filter(is_child).count();
        within("the children", async {
            while left() < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        server.client.delete(&format!("/api/instances/{}", one.instance_id)).await.expect(200);
        assert_eq!(left(), 0, "{mode}");
    }
}

/// What was answered before a restart of the service stays answered.
#[tokio::test]
async fn an_answer_of_before_a_restart_stays_an_answer() {
    let world = enabled();
    let server = world.serve().await;
    let (one, question) = asking(&server).await;
    let id = one.instance_id.as_str();
    let path = answer_path(id, &question.request_id);
    server.client.post_json(&path, &json!({ "decision": "allow" })).await.expect(202);
    frames_until(&server, id, is_result).await;
    server.kill().await;

    let server = world.serve().await;
    frames_until(&server, id, is_result).await;
    server.client.delete(&format!("/api/instances/{id}")).await.expect(200);
    let frames = frames_until(&server, id, |frame| frame["type"] == "exit").await;
    let ends: Vec<&Value> =
        frames.iter().filter(|frame| frame["type"] == "control_resolved").collect();
    assert_eq!(ends.len(), 1, "{frames:?}");
    assert_eq!(ends[0]["behavior"], "allow", "{frames:?}");
}

/// F20: what is refused leaves nothing trusted, here as at every other launch.
#[tokio::test]
async fn f20_a_refused_direct_session_leaves_the_agents_file_as_it_was() {
    let world = enabled();
    let dir = world.untrusted("new");
    let server = world.serve().await;
    let mut body = direct("new");
    body["trust"] = true.into();
    let before = std::fs::read(world.agent_config()).unwrap();
    // The row cannot be written: the last thing that refuses a start.
    let lock = world.locked().await;
    assert_eq!(server.client.launch_with(body.clone()).await.status, 503);
    assert_eq!(std::fs::read(world.agent_config()).unwrap(), before);
    lock.release().await;

    let one = server.client.launch_with(body).await.expect(201).instance();
    let id = one.instance_id.as_str();
    let mut events = server.events().await;
    say(&server, id, "hello").await;
    frames_until(&server, id, is_result).await;
    server.client.stop(id).await.expect(200);
    stands(&mut events, id, "stopped").await;
    let text = std::fs::read_to_string(world.agent_config()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    let key = dir.to_str().unwrap();
    assert_eq!(config["projects"][key]["hasTrustDialogAccepted"], true, "{config}");
    config["projects"][key]["hasTrustDialogAccepted"] = json!(false);
    std::fs::write(world.agent_config(), config.to_string()).unwrap();
    let before = std::fs::read(world.agent_config()).unwrap();
    let lock = world.locked().await;
    let path = format!("/api/v1/instances/{id}/resume");
    let refused = server.client.post_json(&path, &json!({ "trust": true })).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(std::fs::read(world.agent_config()).unwrap(), before);
    lock.release().await;
    let resumed = server.client.post_json(&path, &json!({ "trust": true })).await;
    assert_eq!(resumed.expect(200).instance().generation, 2);
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn hd6_an_agent_without_a_daemon_is_killed_before_a_resume() {
    let world = enabled();
    let server = world.serve().await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "use a tool").await;
    asked(&mut events, id).await;
    daemons(&world).iter().for_each(|daemon| daemon.signal(rustix::process::Signal::KILL));
    // The agent ends with its pipes, or it is an orphan: both are told, and neither is killed.
    stands(&mut events, id, "crashed").await;
    let open = server.client.get("/api/approvals").await.expect(200).json();
    assert_eq!(open["approvals"], json!([]));
    server.client.stop(id).await.expect(200);
    let resumed = server.client.resume(id).await.expect(200).instance();
    assert_eq!((resumed.status.to_string().as_str(), resumed.generation), ("running", 2));
    server.client.stop(id).await.expect(200);
}
