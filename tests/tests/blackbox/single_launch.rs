//! One live Server Mode bridge per project, whoever asks, however many at once.

use crate::harness::World;
use futures_util::future::{join, join_all};
use std::collections::BTreeSet;

/// H99, F16, F17: half by HTTP, half by command.
#[tokio::test]
async fn h99_f16_f17_fifty_simultaneous_launches_start_one_process() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let over_http = join_all((0..25).map(|_| server.client.launch("app")));
    let by_command = join_all((0..25).map(|_| world.cli(&["start", "app", "--json"])));
    let (over_http, by_command) = join(over_http, by_command).await;

    let mut created = 0;
    let mut reused = 0;
    let mut ids = BTreeSet::new();
    let answers = over_http
        .iter()
        .map(|reply| reply.json())
        .chain(by_command.into_iter().map(|ran| ran.ok().json()));
    for answer in answers {
        match answer["created"].as_bool() {
            Some(true) => created += 1,
            Some(false) => reused += 1,
            None => panic!("{answer}"),
        }
        ids.insert(answer["instance_id"].as_str().unwrap().to_owned());
    }
    assert_eq!((created, reused, ids.len()), (1, 49, 1));
    assert_eq!(world.starts("app").len(), 1, "the agent was started once");
    let found = world.agree().await;
    assert_eq!((found.rows.len(), found.bridges.len()), (1, 1));
    eprintln!("50 launches at once: {created} created, {reused} reused, 1 process, 1 record");
}

/// F17 without a service: commands alone hold the same rule.
#[tokio::test]
async fn f17_commands_without_a_service_start_one_process() {
    let world = World::new();
    world.project("app");
    let ran = join_all((0..8).map(|_| world.cli(&["start", "app", "--json"]))).await;
    let answers: Vec<_> = ran.into_iter().map(|ran| ran.ok().json()).collect();
    let created = answers.iter().filter(|answer| answer["created"] == true).count();
    assert_eq!(created, 1, "{answers:?}");
    assert_eq!(world.starts("app").len(), 1);
    let server = world.serve().await;
    assert_eq!(world.agree().await.bridges.len(), 1);
    server.kill().await;
}

/// H99: a lock dies with its holder.
#[tokio::test]
async fn h99_a_killed_command_leaves_no_lock() {
    let world = World::new();
    world.project_with("app", serde_json::json!({ "ready_ms": 600_000 }));
    let mut waiting = world.command(&crate::harness::service(), &["start", "app", "--wait"]);
    let mut waiting = waiting.stdout(std::process::Stdio::null()).spawn().unwrap();
    world.until("the start", || (!world.starts("app").is_empty()).then_some(())).await;
    waiting.start_kill().unwrap();
    waiting.wait().await.unwrap();
    world.set_knobs("app", serde_json::json!({}));
    world.cli(&["stop", "app"]).await.ok();
    world.cli(&["start", "app", "--wait"]).await.ok();
    assert_eq!(world.bridges().len(), 1);
}

/// Counts the transactions in the write-ahead log.
/// They are the frames that carry the size of the database after a commit and belong to the present
/// log (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>).
fn commits(world: &World) -> usize {
    let wal = std::fs::read(world.state.join("svc.db-wal")).unwrap();
    if wal.is_empty() {
        return 0;
    }
    let word = |at: usize| u32::from_be_bytes(wal[at..at + 4].try_into().unwrap());
    let frame = 24 + usize::try_from(word(8)).unwrap();
    let frames = (32..wal.len()).step_by(frame).filter(|at| at + frame <= wal.len());
    frames
        .take_while(|at| wal[at + 8..at + 16] == wal[16..24])
        .filter(|at| word(at + 4) != 0)
        .count()
}

/// Each transaction waits for the disk: row, identity, agent runs, registered.
/// A stop has two: intent and end. Announcements are recorded with them.
#[tokio::test]
async fn a_start_commits_four_times_and_a_stop_twice() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let mut page = server.events().await;
    let before = commits(&world);
    let id = server.client.run("app").await.instance_id.to_string();
    page.until_event("ready", &id).await;
    let started = commits(&world);
    server.client.stop(&id).await.expect(200);
    page.until_event("stop", &id).await;
    assert_eq!((started - before, commits(&world) - started), (4, 2));
}

/// H94: the schema itself refuses what the rules forbid.
#[tokio::test]
async fn h94_the_database_refuses_a_second_live_bridge() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let columns = "instance_id, revision, project, cwd, resume_mode, spawn_mode, permission_mode, \
         origin, generation, status, phase, status_since, created_at, updated_at";
    let insert = |id: &str| {
        format!(
            "INSERT INTO bridges ({columns}) VALUES ('{id}', 1, 'app', '/x', 'standard', \
             'same-dir', 'default', 'spawned', 1, 'starting', 'launching', 1, 1, 1)"
        )
    };
    let fresh = "00000000-0000-4000-8000-000000000001";
    let refused = world.sql(&insert(fresh)).await.unwrap_err().to_string();
    assert!(refused.contains("UNIQUE"), "{refused}");
    server.client.stop("app").await.expect(200);
    let taken = world.row("app").await.instance_id;
    let refused = world.sql(&insert(&taken)).await.unwrap_err().to_string();
    assert!(refused.contains("UNIQUE"), "{refused}");
    assert_eq!(world.rows().await.len(), 1);
}
