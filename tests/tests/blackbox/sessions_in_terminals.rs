//! Interactive Sessions: one agent each, in a terminal that outlives the service.

use crate::harness::{Server, World, within};
use serde_json::{Value, json};
use svc_shared::api::instances::Instance;
use svc_shared::status::BridgeStatus;

pub fn session(project: &str) -> Value {
    json!({ "project": project, "mode": "pty" })
}

/// Arguments of each start in a terminal, in the order of the starts.
pub fn starts(world: &World) -> Vec<Vec<String>> {
    let words = |call: &Value| -> Vec<String> {
        let words = call["argv"].as_array().into_iter().flatten();
        words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let all = world.calls().iter().map(words).collect::<Vec<_>>().into_iter();
    all.filter(|argv| argv.iter().any(|word| word == "--remote-control")).collect()
}

pub async fn ready(server: &Server<'_>, body: Value) -> Instance {
    let launched = server.client.launch_with(body).await.expect(201).instance();
    assert_eq!(launched.status.known(), Some(&BridgeStatus::Running), "{launched:?}");
    launched
}

/// The words of a session that was talked to.
pub const SAID: &str = "the build is green";

/// Options of a project whose sessions are talked to once.
pub fn talked_to() -> Value {
    json!({ "turns": [
        { "role": "user", "text": "build it" },
        { "role": "assistant", "text": SAID },
    ] })
}

/// Waits until the terminal shows what was said.
/// Then there is something to continue.
pub async fn until_said(world: &World, row: &Instance) {
    let look = async {
        while !world.cli(&["screen", row.instance_id.as_str()]).await.ok().stdout.contains(SAID) {}
    };
    within("the words in the terminal", look).await;
}

/// Whether the last start goes on with an earlier conversation.
pub fn continues(world: &World) -> bool {
    let last = starts(world).pop().unwrap();
    last.iter().any(|word| word == "--continue" || word == "--resume")
}

#[tokio::test]
async fn several_sessions_run_beside_a_server_mode_bridge_and_each_stops_for_itself() {
    let world = World::new();
    world.repository("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let one = ready(&server, session("app")).await;
    let worktree = json!({ "project": "app", "mode": "pty", "spawn_mode": "worktree" });
    let two = ready(&server, worktree).await;
    assert!(one.keeper_pid.is_some() && one.keeper_pid != two.keeper_pid);
    assert_eq!(one.worktree_name, None);
    let name = two.worktree_name.clone().unwrap();
    assert_eq!(name, format!("svc-{}", &two.instance_id.as_str()[..8]));
    let last = starts(&world).pop().unwrap();
    assert!(last.windows(2).any(|two| two == ["--worktree", &name]), "{last:?}");
    let stopped = server.client.stop(one.instance_id.as_str()).await.expect(200).instance();
    assert_eq!(stopped.status.known(), Some(&BridgeStatus::Stopped));
    assert_eq!((stopped.bridge_pid, stopped.keeper_pid), (None, None));
    let running = server.client.instances().await;
    assert_eq!(running.iter().filter(|one| one.bridge_pid.is_some()).count(), 2);
}

#[tokio::test]
async fn a_resume_continues_the_conversation_of_its_own_session() {
    let world = World::new();
    world.project_with("app", talked_to());
    let server = world.serve().await;
    let one = ready(&server, session("app")).await;
    until_said(&world, &one).await;
    assert!(!continues(&world));
    let id = one.instance_id.as_str();
    server.client.stop(id).await.expect(200);
    let resumed = server.client.resume(id).await.expect(200).instance();
    assert_eq!((resumed.generation, resumed.instance_id.as_str()), (2, id));
    assert_eq!(resumed.status.known(), Some(&BridgeStatus::Running));
    assert!(continues(&world), "{:?}", starts(&world));
}

#[tokio::test]
async fn f65_a_service_that_is_killed_finds_its_session_again_with_the_same_processes() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let before = ready(&server, session("app")).await;
    server.kill().await;
    let server = world.serve().await;
    let after = server.client.instance(before.instance_id.as_str()).await.expect(200).instance();
    assert_eq!((after.bridge_pid, after.keeper_pid), (before.bridge_pid, before.keeper_pid));
    assert_eq!(after.status.known(), Some(&BridgeStatus::Running));
    server.client.stop(before.instance_id.as_str()).await.expect(200);
}

#[tokio::test]
async fn f31_f70_a_session_that_cannot_be_used_ends_in_its_true_reason() {
    let world = World::new();
    world.project_with("refused", json!({ "rc_ignored": true }));
    world.project_with("asks", json!({ "trust_dialog": true }));
    world.project_with("new", json!({ "onboarding": true }));
    let server = world.serve().await;
    for (project, reason) in [
        ("refused", "remote_control_unavailable"),
        ("asks", "trust_required"),
        ("new", "onboarding_required"),
    ] {
        let ended = server.client.launch_with(session(project)).await.expect(201).instance();
        assert_eq!(ended.status.known(), Some(&BridgeStatus::Error), "{project}: {ended:?}");
        assert_eq!(ended.exit_reason.unwrap().to_string(), reason, "{project}");
        assert_eq!((ended.bridge_pid, ended.keeper_pid), (None, None));
    }
}
