//! Two processes on one session: everybody is told, and nothing is ended for it.

use crate::harness::{Server, World, gone};
use crate::outside::by_hand;
use serde_json::{Value, json};
use svc_shared::internal::State;

/// What the agent calls the session; nobody may see it.
const SESSION: &str = "5e5510a0-1111-4222-8333-444444444444";

fn on_one_session(world: &World, project: &str) {
    world.project_with(project, json!({ "session_id": SESSION }));
}

/// Other processes on the session of this process; `None` while it is not listed.
fn also_in(state: &State, pid: i32) -> Option<Vec<i32>> {
    let mut all = state.tracked.values().chain(state.external.values()).flatten();
    all.find(|session| session.pid == pid).map(|session| session.also_in.clone())
}

/// The check, as a command that looks by itself has it.
async fn check(world: &World) -> Value {
    let ran = world.cli(&["doctor", "--json", "--only", "duplicate-sessions"]).await;
    ran.json()["checks"][0].clone()
}

fn told(server: &Server<'_>) -> usize {
    server.said().iter().filter(|line| line.contains("work on the same session")).count()
}

#[tokio::test]
async fn two_processes_on_one_session_are_told_of_everywhere_and_both_go_on() {
    let world = World::new();
    on_one_session(&world, "app");
    on_one_session(&world, "web");
    world.project("other");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    let (id, ours) = (row.instance_id.to_string(), row.bridge_pid.unwrap());
    let mut page = server.events().await;
    page.until("the session", |state| also_in(state, ours)).await;
    assert_eq!(check(&world).await["status"], "ok");

    let mut hand = by_hand(&world, "web").await;
    let theirs = hand.id().unwrap().cast_signed();
    page.until("the mark of ours", |state| also_in(state, ours).filter(|all| *all == [theirs]))
        .await;
    page.until("the mark of theirs", |state| also_in(state, theirs).filter(|all| *all == [ours]))
        .await;
    let tracked = server.client.get("/api/v1/sessions/tracked").await.expect(200);
    assert_eq!(tracked.json()[&id][0]["also_in"], json!([theirs]));
    let external = server.client.get("/api/v1/sessions").await.expect(200);
    assert_eq!(external.json()["web"][0]["also_in"], json!([ours]));

    let (mut first, mut second) = ((ours, "app"), (theirs, "web"));
    if first > second {
        std::mem::swap(&mut first, &mut second);
    }
    let words = format!(
        "processes {} (project `{}`) and {} (project `{}`) work on the same session",
        first.0, first.1, second.0, second.1
    );
    server.says(&words).await;
    let doctor = server.client.get("/api/doctor").await.expect(200);
    for found in [check(&world).await, check_of(&doctor.json())] {
        assert_eq!((&found["status"], &found["detail"]), (&json!("warn"), &json!(words)));
        assert!(found["hint"].as_str().unwrap().starts_with("end one of them"), "{found}");
    }
    let listed = world.cli(&["sessions"]).await.ok();
    let note = format!("process {} works on the same session as {}", first.0, second.0);
    assert!(listed.stderr.contains(&note), "{listed:?}");

    // Another look has nothing new to say, and nobody was ended.
    let another = server.client.run("other").await.bridge_pid.unwrap();
    page.until("another look", |state| also_in(state, another)).await;
    assert_eq!(told(&server), 1, "{}", server.log());
    for reply in [tracked.text(), external.text(), doctor.text(), server.log(), listed.stdout] {
        assert!(!reply.contains(SESSION), "{reply}");
    }
    assert_eq!(world.bridges_of("app").len(), 1);
    assert!(hand.try_wait().unwrap().is_none());

    world.bridges_of("web")[0].signal(rustix::process::Signal::INT);
    hand.wait().await.unwrap();
    page.until("no mark", |state| also_in(state, ours).filter(Vec::is_empty)).await;
    let plain = server.client.get("/api/v1/sessions/tracked").await.expect(200).json();
    assert!(plain[&id][0].get("also_in").is_none(), "left out when empty: {plain}");
    assert_eq!(check(&world).await["status"], "ok");
}

fn check_of(doctor: &Value) -> Value {
    let mut checks = doctor["checks"].as_array().unwrap().iter();
    checks.find(|check| check["name"] == "duplicate-sessions").unwrap().clone()
}

#[tokio::test]
async fn a_child_with_the_session_of_its_parent_and_an_entry_of_the_dead_are_no_second() {
    let world = World::new();
    on_one_session(&world, "app");
    on_one_session(&world, "web");
    let server = world.serve().await;
    // Killed, it leaves its entry behind.
    let mut dead = by_hand(&world, "web").await;
    let left = world.agent_home.join(format!("sessions/{}.json", dead.id().unwrap()));
    let process = world.bridges_of("web").remove(0);
    let kept = std::fs::read(&left).unwrap();
    dead.kill().await.unwrap();
    gone(&process).await;
    let row = server.client.run("app").await;
    let id = row.instance_id.to_string();
    world.remote(&["connect", world.projects.join("app").to_str().unwrap()]);
    let mut page = server.events().await;
    let inside = page
        .until("bridge and worker", |state| {
            state.tracked.get(&id).filter(|sessions| sessions.len() == 2).cloned()
        })
        .await;
    std::fs::write(&left, kept).unwrap();
    assert!(inside.iter().all(|session| session.also_in.is_empty()), "{inside:?}");
    assert_eq!(check(&world).await["status"], "ok");
    let (_, log) = server.stop().await;
    assert!(!log.contains("work on the same session"), "{log}");
}
