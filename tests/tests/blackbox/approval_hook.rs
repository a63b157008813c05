//! Sessions of bridges ask in the inbox, through the agent's own hook.

use crate::harness::{Events, Server, World, within};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Stdio;
use svc_shared::api::instances::PendingPermission;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

pub const SESSION: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f2";
const SECRET: &str = "canary-of-a-tool-input";
pub const SETTINGS: &str = "{\n  \"model\": \"opus\",   \"hooks\": { \"Stop\": [] }\n}\n";

pub fn asking() -> World {
    let world = World::with(json!({ "claude": { "approval_hook": true } }));
    world.project("app");
    fs::write(world.agent_home.join("settings.json"), SETTINGS).unwrap();
    world
}

/// A service whose hook is in the settings, and which listens to it.
pub async fn serve(world: &World) -> Server<'_> {
    let server = world.serve().await;
    let (file, socket) = (world.agent_home.join("settings.json"), world.state.join("run/ask.sock"));
    let is_ready = || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        (text.contains("__permission-hook__") && socket.exists()).then_some(())
    };
    world.until("the hook", is_ready).await;
    server
}

pub fn settings(world: &World) -> String {
    fs::read_to_string(world.agent_home.join("settings.json")).unwrap()
}

/// The command that the settings of the user have for a permission.
pub fn hook(world: &World) -> String {
    let settings: Value = serde_json::from_str(&settings(world)).unwrap();
    let groups = settings["hooks"]["PermissionRequest"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{settings}");
    groups[0]["hooks"][0]["command"].as_str().unwrap().to_owned()
}

/// What a session of a bridge has in its environment.
pub fn environment_of(pid: i32) -> Vec<(OsString, OsString)> {
    let raw = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let pairs = raw.split(|byte| *byte == 0).filter_map(|one| {
        let at = one.iter().position(|byte| *byte == b'=')?;
        Some((OsString::from_vec(one[..at].to_vec()), OsString::from_vec(one[at + 1..].to_vec())))
    });
    pairs.collect()
}

/// Runs the hook as the agent does before it asks for a permission.
pub async fn ask(command: &str, env: &[(OsString, OsString)], input: &Value) -> Child {
    tell(command, env, &told(input)).await
}

/// What the agent tells the hook about a command.
pub fn told(input: &Value) -> Value {
    json!({
        "session_id": SESSION, "cwd": "/",
        "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": input,
    })
}

/// Runs the hook with what the agent tells it.
pub async fn tell(command: &str, env: &[(OsString, OsString)], told: &Value) -> Child {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec {command}")).env_clear().envs(env.iter().cloned());
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = shell.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A hook that has nothing to do ends before it has read.
    let _ = stdin.write_all(told.to_string().as_bytes()).await;
    child
}

pub async fn answer_of(child: Child) -> String {
    let done = within("the end of the hook", child.wait_with_output()).await.unwrap();
    assert!(done.status.success());
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    String::from_utf8(done.stdout).unwrap()
}

pub fn decision(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "PermissionRequest");
    answer["hookSpecificOutput"]["decision"].clone()
}

pub async fn waits(events: &mut Events, id: &str, many: usize) -> Vec<PendingPermission> {
    events
        .until("questions", |state| {
            let asked = &state.instances.get(id)?.pending_permissions;
            (asked.len() == many).then(|| asked.clone())
        })
        .await
}

/// A bridge that runs, and what its sessions have in their environment.
pub async fn bridge(server: &Server<'_>) -> (String, Vec<(OsString, OsString)>) {
    let one = server.client.run("app").await;
    (one.instance_id.to_string(), environment_of(one.bridge_pid.unwrap()))
}

pub fn path(id: &str, request: &str) -> String {
    format!("/api/instances/{id}/permissions/{request}")
}

#[tokio::test]
async fn a_permission_is_asked_in_the_inbox_and_answered_once() {
    let world = asking();
    let server = serve(&world).await;
    let (id, env) = bridge(&server).await;
    // One entry beside the others, every other byte kept, in the audit log.
    let written = settings(&world);
    assert!(written.starts_with("{\n  \"model\": \"opus\",   \"hooks\": { "), "{written}");
    let audit = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    assert!(audit.contains("PermissionRequest"), "{audit}");

    let mut events = server.events().await;
    let command = hook(&world);
    let input = json!({ "command": format!("echo {SECRET}") });
    let child = ask(&command, &env, &input).await;
    let question = waits(&mut events, &id, 1).await.remove(0);
    assert_eq!(question.tool.as_deref(), Some("Bash"));
    assert_eq!(question.summary, format!("echo {SECRET}"));
    let open = server.client.get("/api/approvals").await.expect(200).json();
    assert_eq!(open["approvals"][0]["request_id"], question.request_id.as_str());
    assert_eq!(open["approvals"][0]["instance_id"], id.as_str());
    // Two devices at the same moment: one of them is told that it came second.
    let path = path(&id, &question.request_id);
    let (allow, deny) = (json!({ "decision": "allow" }), json!({ "decision": "deny" }));
    let (first, second) =
        tokio::join!(server.client.post_json(&path, &allow), server.client.post_json(&path, &deny));
    let mut codes = [first.status, second.status];
    codes.sort_unstable();
    assert_eq!(codes, [202, 409]);
    let word = if first.status == 202 { "allow" } else { "deny" };
    assert_eq!(decision(&answer_of(child).await)["behavior"], word);
    waits(&mut events, &id, 0).await;
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    assert_eq!(history["approvals"][0]["decision"], word);

    // A command answers too, with a text.
    let child = ask(&command, &env, &input).await;
    let question = waits(&mut events, &id, 1).await.remove(0);
    let listed = world.cli(&["approvals", "list"]).await.ok();
    assert!(listed.stdout.contains(&question.request_id), "{listed:?}");
    let deny = ["approvals", "deny", &question.request_id, "--message", "not that"];
    world.cli(&deny).await.ok();
    let answer = decision(&answer_of(child).await);
    assert_eq!((&answer["behavior"], &answer["message"]), (&json!("deny"), &json!("not that")));
    assert!(!server.log().contains(SECRET), "{}", server.log());
    server.client.stop(&id).await.expect(200);
}

#[tokio::test]
async fn a_question_survives_a_killed_service_and_is_answered_once() {
    let world = asking();
    let server = serve(&world).await;
    let (id, env) = bridge(&server).await;
    let mut events = server.events().await;
    let child = ask(&hook(&world), &env, &json!({ "command": "make" })).await;
    let question = waits(&mut events, &id, 1).await.remove(0);
    server.kill().await;
    let server = world.serve().await;
    let mut events = server.events().await;
    assert_eq!(waits(&mut events, &id, 1).await[0].request_id, question.request_id);
    let path = path(&id, &question.request_id);
    server.client.post_json(&path, &json!({ "decision": "allow" })).await.expect(202);
    assert_eq!(decision(&answer_of(child).await), json!({ "behavior": "allow" }));
    server.client.post_json(&path, &json!({ "decision": "deny" })).await.expect(409);
    server.client.stop(&id).await.expect(200);
}

#[tokio::test]
async fn the_agent_asks_by_itself_where_nobody_else_can() {
    let world = asking();
    let server = serve(&world).await;
    let (id, env) = bridge(&server).await;
    let (command, input) = (hook(&world), json!({ "command": "make" }));
    // Sessions outside of the projects are none of our business.
    let plain: Vec<_> = world.environment();
    assert_eq!(answer_of(ask(&command, &plain, &input).await).await, "");
    // What is more than yes or no can only be asked by the agent.
    let mut choice = told(&json!({ "questions": [] }));
    choice["tool_name"] = json!("AskUserQuestion");
    assert_eq!(answer_of(tell(&command, &env, &choice).await).await, "");
    // A Direct Session asks through its pipes.
    let mut direct = plain.clone();
    direct.push(("SVC_APPROVAL_SOCKET".into(), "".into()));
    let mut inside = told(&input);
    inside["cwd"] = json!(world.projects.join("app"));
    assert_eq!(answer_of(tell(&command, &direct, &inside).await).await, "");
    let mut strange = env.clone();
    strange.retain(|(name, _)| name != "SVC_LAUNCH_ID");
    strange.push(("SVC_LAUNCH_ID".into(), "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f2".into()));
    assert_eq!(answer_of(ask(&command, &strange, &input).await).await, "");

    // A session that goes away takes its question back.
    let mut events = server.events().await;
    let mut child = ask(&command, &env, &input).await;
    let question = waits(&mut events, &id, 1).await.remove(0);
    child.kill().await.unwrap();
    waits(&mut events, &id, 0).await;
    let path = path(&id, &question.request_id);
    server.client.post_json(&path, &json!({ "decision": "allow" })).await.expect(409);
    let history = server.client.get("/api/approvals?state=answered").await.expect(200).json();
    assert_eq!(history["approvals"][0]["decision"], "cancelled");
    assert_eq!(history["approvals"][0]["reason"], "asker-gone");
    let shown = world.cli(&["approvals", "show", &question.request_id]).await.ok();
    assert!(shown.stdout.contains("The session stopped waiting"), "{shown:?}");

    // While the service is away.
    server.kill().await;
    assert_eq!(answer_of(ask(&command, &env, &input).await).await, "");
    world.cli(&["stop", "app"]).await.ok();
}
