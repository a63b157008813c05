//! Conversations that hung on a bridge that died: named, and continued once each.

use crate::harness::{Events, Server, World, gone};
use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use svc_shared::api::instances::Instance;
use svc_shared::api::stranded::StrandedSession;

/// Turns that come at once, so that every conversation has something to continue.
fn knobs() -> Value {
    json!({ "turns": [
        { "after_ms": 0, "role": "user", "text": "please look at session_01SECRETSECRET" },
        { "after_ms": 0, "role": "assistant", "text": "this is the whole answer" },
    ] })
}

/// The agent's ids of conversations that have an answer in their transcript.
fn answered(world: &World) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let Ok(projects) = std::fs::read_dir(world.agent_home.join("projects")) else { return found };
    let files = projects.flatten().filter_map(|dir| std::fs::read_dir(dir.path()).ok()).flatten();
    for path in files.flatten().map(|entry| entry.path()) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if text.contains("this is the whole answer") {
            found.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

/// Connects a device; the remote session, once its conversation has an answer.
async fn connect(world: &World) -> String {
    let before = answered(world).len();
    let dir: PathBuf = world.projects.join("app");
    let session = world.remote(&["connect", dir.to_str().unwrap()]);
    world.until("an answer", || (answered(world).len() > before).then_some(())).await;
    session.split(' ').next().unwrap().to_owned()
}

async fn stranded(server: &Server<'_>) -> Vec<StrandedSession> {
    let reply = server.client.get("/api/stranded").await.expect(200);
    serde_json::from_value(reply.json()).unwrap()
}

async fn until_stranded(page: &mut Events, count: u32) -> Instance {
    page.until("stranded conversations", |state| {
        let mut rows = state.instances.values();
        rows.find(|row| row.stranded == count && !row.is_live()).map(|row| (**row).clone())
    })
    .await
}

#[tokio::test]
async fn four_conversations_of_a_killed_bridge_are_named_and_continue_once_each() {
    let world = World::new();
    world.project_with("app", knobs());
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut page = server.events().await;
    // One is over before the death.
    let over = connect(&world).await;
    page.until("a session", |state| {
        state.tracked.get(&id).filter(|inside| inside.len() == 2).map(drop)
    })
    .await;
    world.remote(&["end", &over]);
    page.until("its end", |state| {
        state.tracked.get(&id).filter(|inside| inside.len() == 1).map(drop)
    })
    .await;
    let before = answered(&world);
    for _ in 0..4 {
        connect(&world).await;
    }
    let attached: BTreeSet<String> = answered(&world).difference(&before).cloned().collect();
    assert_eq!(attached.len(), 4);

    let bridge = world.bridges_of("app").remove(0);
    bridge.signal(Signal::KILL);
    let row = until_stranded(&mut page, 4).await;
    assert_eq!(row.status.to_string(), "crashed");
    let named = stranded(&server).await;
    assert_eq!(named.len(), 4);
    for one in &named {
        assert_eq!(one.title.as_deref(), Some("please look at session_<redacted>"));
        assert_eq!(
            (one.state.to_string(), one.instance_id.to_string()),
            ("stranded".into(), id.clone())
        );
    }
    let text = serde_json::to_string(&named).unwrap();
    assert!(attached.iter().all(|raw| !text.contains(raw)), "{text}");

    // The successor does not take the list away.
    let resumed = server.client.resume(&id).await.expect(200).instance();
    assert_eq!((resumed.generation, resumed.stranded), (2, 4));
    assert_eq!(stranded(&server).await.len(), 4);

    // Three devices at once: each conversation goes on once.
    let before = answered(&world);
    for one in &named {
        let path = format!("/api/stranded/{}/continue", one.session_ref);
        let replies = join_all((0..3).map(|_| server.client.post(&path))).await;
        let done: Vec<Value> =
            replies.iter().filter(|reply| reply.status == 200).map(|reply| reply.json()).collect();
        assert_eq!(done.len(), 1, "{:?}", replies.iter().map(|r| r.text()).collect::<Vec<_>>());
        let refused = replies.iter().filter(|reply| reply.status == 409).count();
        assert_eq!(refused, 2);
    }
    let after = stranded(&server).await;
    let jobs: BTreeSet<String> = after.iter().filter_map(|one| one.continued_as.clone()).collect();
    assert_eq!(jobs.len(), 4, "each has a successor of its own");
    assert!(after.iter().all(|one| one.state.to_string() == "continued"));
    let sources: BTreeSet<String> = world
        .calls()
        .iter()
        .filter_map(|call| {
            let argv: Vec<&str> =
                call["argv"].as_array()?.iter().filter_map(Value::as_str).collect();
            let at = argv
                .iter()
                .position(|word| *word == "--bg")
                .and_then(|_| argv.iter().position(|word| *word == "--resume"))?;
            argv.get(at + 1).map(|raw| (*raw).to_owned())
        })
        .collect();
    assert_eq!(sources, attached);
    // Each successor has the whole conversation; the originals stay.
    world
        .until("whole conversations", || (answered(&world).len() == before.len() + 4).then_some(()))
        .await;
    page.until("an empty list", |state| {
        state.instances.get(&id).filter(|row| row.stranded == 0).map(drop)
    })
    .await;
}

#[tokio::test]
async fn no_conversation_is_stranded_by_an_orderly_stop() {
    let world = World::new();
    world.project_with("app", knobs());
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    connect(&world).await;
    let stopped = server.client.stop(&id).await.expect(200).instance();
    assert_eq!((stopped.status.to_string(), stopped.stranded), ("stopped".into(), 0));
    assert_eq!(stranded(&server).await, []);
    let ran = world.cli(&["stranded", "--json"]).await.ok();
    assert_eq!(ran.json(), json!([]));
}

#[tokio::test]
async fn a_service_killed_with_its_bridge_names_the_conversations_at_its_next_start() {
    let world = World::new();
    world.project_with("app", knobs());
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    connect(&world).await;
    connect(&world).await;
    server.kill().await;
    let bridge = world.bridges_of("app").remove(0);
    bridge.signal(Signal::KILL);
    gone(&bridge).await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let row = until_stranded(&mut page, 2).await;
    assert_eq!(
        row.exit_reason.map(|reason| reason.to_string()).as_deref(),
        Some("died_unsupervised")
    );
    server.kill().await;
    // A command lists, continues and dismisses them without a service.
    let listed = world.cli(&["stranded", "--json"]).await.ok().json();
    let [first, second] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    let first = first["session_ref"].as_str().unwrap();
    let done = world.cli(&["stranded", "continue", first, "--json"]).await.ok().json();
    assert_eq!(done["job_id"].as_str().map(str::len), Some(8));
    let again = world.cli(&["stranded", "continue", first]).await;
    assert_ne!(again.code, Some(0));
    let second = second["session_ref"].as_str().unwrap();
    world.cli(&["stranded", "dismiss", second]).await.ok();
    assert_eq!(world.cli(&["stranded", "--json"]).await.ok().json(), json!([]));
    // A service that starts later sees what the commands did.
    let server = world.serve().await;
    let states: BTreeSet<String> =
        stranded(&server).await.iter().map(|one| one.state.to_string()).collect();
    assert_eq!(states, ["continued", "dismissed"].map(str::to_owned).into());
    assert_eq!(server.client.instance(&id).await.instance().stranded, 0);
    server.client.post(&format!("/api/instances/{id}/forget")).await;
}
