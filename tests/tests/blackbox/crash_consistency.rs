//! The service dies at every named point and at random times (H97, H98).
//!
//! Afterwards records and processes agree, and nothing is lost, doubled or orphaned.

use crate::harness::{Balance, Books, Dice, Server, Start, World, service_with_fail_points};
use reqwest::Method;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};
use svc_skip::{NO_FAIL_POINTS, skip};

pub const SPAWN_POINTS: [&str; 5] = [
    "spawn.before_record",
    "spawn.after_record",
    "spawn.after_fork",
    "spawn.after_pid_saved",
    "spawn.after_exec",
];
pub const STOP_POINTS: [&str; 5] = [
    "stop.after_intent",
    "stop.after_term",
    "stop.after_exit",
    "stop.before_record",
    "stop.after_record",
];

/// A service that kills itself at a point.
pub async fn armed<'w>(world: &'w World, program: &Path, point: &str) -> Server<'w> {
    let armed = format!("{point}=abort");
    let env = [("SVC_FAILPOINTS", armed.as_str())];
    world.serve_as(Start { program: Some(program.to_owned()), env: &env, ..Start::default() }).await
}

/// Sends, and waits for the service to have killed itself.
pub async fn dies_of(mut server: Server<'_>, method: Method, path: &str, body: Option<Value>) {
    let request = server.client.request(method, path);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    // The answer may still leave when the point lies behind the last record.
    let _ = server.client.try_send(request).await;
    assert_eq!(server.ended().await.signal(), Some(9), "{}", server.log());
}

#[tokio::test]
async fn h98_f11_a_launch_interrupted_at_any_point_is_repaired_and_repeatable() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in SPAWN_POINTS {
        let world = World::new();
        world.project("app");
        let server = armed(&world, &program, point).await;
        dies_of(server, Method::POST, "/api/v1/instances", Some(json!({ "project": "app" }))).await;

        let server = world.serve().await;
        let found = world.agree().await;
        assert!(found.bridges.len() <= 1 && found.rows.len() <= 1, "{point}: {found:?}");
        let again = server.client.launch("app").await;
        assert!([200, 201].contains(&again.status), "{point}: {}", again.text());
        let mut page = server.events().await;
        page.until_status("app", "running").await;
        let found = world.agree().await;
        assert_eq!(found.bridges.len(), 1, "{point}");
        // A process that ran before the crash is the one that runs now.
        let created = again.json()["created"].as_bool().unwrap();
        let reached_agent = matches!(point, "spawn.after_exec");
        assert_eq!(created, !reached_agent, "{point}");
        assert_eq!(world.starts("app").len(), 1, "{point}: the agent ran twice");
        told_once(&world, point).await;
    }
}

#[tokio::test]
async fn h98_a_resume_interrupted_at_any_point_is_repaired_and_repeatable() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in &SPAWN_POINTS[1..] {
        let world = World::new();
        world.project("app");
        let server = world.serve().await;
        let id = server.client.run("app").await.instance_id.to_string();
        server.client.stop(&id).await.expect(200);
        server.stop().await;
        let server = armed(&world, &program, point).await;
        dies_of(server, Method::POST, "/api/v1/instances/app/resume", None).await;

        let server = world.serve().await;
        world.agree().await;
        let again = server.client.resume(&id).await.expect(200).json();
        assert_eq!(again["instance_id"], id, "{point}: the same record");
        let mut page = server.events().await;
        page.until_status("app", "running").await;
        let found = world.agree().await;
        assert_eq!((found.rows.len(), found.bridges.len()), (1, 1), "{point}");
        assert_eq!(world.starts("app").len(), 2, "{point}: the resume ran twice");
        told_once(&world, point).await;
    }
}

#[tokio::test]
async fn h98_a_stop_interrupted_at_any_point_is_finished_and_never_a_crash() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in STOP_POINTS {
        let world = World::new();
        world.project("app");
        let server = armed(&world, &program, point).await;
        server.client.run("app").await;
        dies_of(server, Method::DELETE, "/api/v1/instances/app", None).await;

        let server = world.serve().await;
        let mut page = server.events().await;
        let row = page.until_status("app", "stopped").await;
        let reason = row.exit_reason.map(|reason| reason.to_string());
        assert_eq!(reason.as_deref(), Some("operator_stop"), "{point}");
        assert!(world.agree().await.bridges.is_empty(), "{point}");
        let again = server.client.stop("app").await.expect(200).instance();
        assert_eq!(again.status.to_string(), "stopped", "{point}");
        told_once(&world, point).await;
        server.client.resume("app").await.expect(200);
        assert_eq!(world.agree().await.bridges.len(), 1, "{point}");
    }
}

#[tokio::test]
async fn h98_a_forget_interrupted_is_repeatable() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    world.project("app");
    let server = armed(&world, &program, "forget.before_delete").await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let forget = format!("/api/instances/{id}/forget");
    dies_of(server, Method::POST, &forget, None).await;
    let server = world.serve().await;
    world.agree().await;
    server.client.post(&forget).await.expect(200);
    assert!(world.rows().await.is_empty());
}

/// The same points in a command, with a service that has to repair behind it.
#[tokio::test]
async fn h98_a_command_interrupted_at_any_point_is_repaired_by_the_running_service() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in SPAWN_POINTS.into_iter().chain(STOP_POINTS) {
        let world = World::new();
        world.project("app");
        let server = world.serve().await;
        let is_stop = point.starts_with("stop.");
        if is_stop {
            server.client.run("app").await;
        }
        let verb = if is_stop { "stop" } else { "start" };
        let mut command = world.command(&program, &[verb, "app"]);
        command.env("SVC_FAILPOINTS", format!("{point}=abort"));
        let status = crate::harness::within("its end", command.output()).await.unwrap().status;
        assert_eq!(status.signal(), Some(9), "{point}");
        let found = world.agree().await;
        assert!(found.bridges.len() <= 1, "{point}");
        world.cli(&[verb, "app"]).await.ok();
        let found = world.agree().await;
        let running = found.rows.iter().filter(|row| row.is_live()).count();
        assert_eq!(
            (running, found.bridges.len()),
            if is_stop { (0, 0) } else { (1, 1) },
            "{point}"
        );
        assert!(found.rows.iter().all(|row| row.status != "crashed"), "{point}: {:?}", found.rows);
    }
}

/// No deliberate end is a crash, and the history has each transition once.
/// A second `spawned`, `ready` or `ended` would be one more than there are generations.
pub async fn told_once(world: &World, point: &str) {
    let rows = world.rows().await;
    let crashes = rows.iter().filter(|row| row.status == "crashed").count();
    assert_eq!(crashes, 0, "{point}: {rows:?}");
    let query = "SELECT group_concat(instance_id || ' ' || kind || ' ' || count) FROM \
        (SELECT instance_id, kind, count(*) AS count, (SELECT generation FROM bridges \
         WHERE bridges.instance_id = session_events.instance_id) AS generations \
         FROM session_events GROUP BY instance_id, kind) WHERE count > generations";
    let twice = world.sql_text(query).await;
    assert_eq!(twice, None, "{point}: in the history more than once");
}

#[derive(Default)]
struct Figures {
    cycles: u64,
    kills: u64,
    interrupted: u64,
    refused: u64,
    slowest_repair: Duration,
    slowest_start: Duration,
}

const PROJECTS: [&str; 4] = ["one", "two", "three", "four"];
/// Instants are spread over the time one operation takes, and a little beyond.
const SPREAD_MS: u64 = 260;

/// Kills at random instants of launches, stops and resumes, by HTTP and by command.
#[tokio::test]
async fn h98_a_service_killed_at_random_instants_loses_and_doubles_nothing() {
    let cycles = std::env::var("SVC_CHAOS_CYCLES").ok().and_then(|text| text.parse().ok());
    let cycles: u64 = cycles.unwrap_or(12);
    let (mut dice, seed) = Dice::seeded("SVC_CHAOS_SEED");
    eprintln!("seed {seed}");
    let world = World::with(json!({ "claude": { "stop_grace_seconds": 2 } }));
    for name in PROJECTS {
        world.project_with(name, json!({ "shutdown_ms": 30 }));
    }
    let mut figures = Figures::default();
    let mut books = Books::default();
    let mut server = world.serve().await;
    for _ in 0..cycles {
        let project = PROJECTS[usize::try_from(dice.roll(4)).unwrap()];
        for is_start in [true, false] {
            let instant = Duration::from_millis(dice.roll(SPREAD_MS));
            let kill = dice.roll(4) != 0;
            let answer = operation(&world, &server, &mut dice, project, is_start);
            let answered = if kill {
                // The random instant is the point of the test, not a wait for something.
                tokio::time::timeout(instant, answer).await.ok()
            } else {
                Some(answer.await)
            };
            match answered {
                Some(Some(id)) => books.promise(&id),
                Some(None) => figures.refused += 1,
                None => figures.interrupted += 1,
            }
            if kill {
                figures.kills += 1;
                server.kill().await;
                let start = Instant::now();
                server = world.serve().await;
                figures.slowest_start = figures.slowest_start.max(start.elapsed());
            }
            let start = Instant::now();
            world.agree().await;
            figures.slowest_repair = figures.slowest_repair.max(start.elapsed());
        }
        figures.cycles += 1;
    }
    settle(&world, &server, &books, &figures).await;
}

/// One launch, resume or stop, by HTTP or command; returns the promised instance.
async fn operation(
    world: &World,
    server: &Server<'_>,
    dice: &mut Dice,
    project: &str,
    is_start: bool,
) -> Option<String> {
    let (by_command, resumes) = (dice.roll(2) == 0, dice.roll(2) == 0);
    let ended = world.rows().await.into_iter().rev().find(|row| row.project == project);
    let ended = ended.filter(|row| !row.is_live()).map(|row| row.instance_id);
    let reference = ended.filter(|_| is_start && resumes);
    if by_command {
        let ran = match (&reference, is_start) {
            (Some(id), true) => world.cli(&["resume", id, "--json"]).await,
            (None, true) => world.cli(&["start", project, "--json"]).await,
            (_, false) => match live(world, project).await {
                Some(id) => world.cli(&["stop", &id, "--json"]).await,
                None => return None,
            },
        };
        // Repairs are under way beside it: a refusal is an answer, a death by signal is not.
        assert!(ran.code.is_some(), "{ran:?}");
        let answer: Value = serde_json::from_str(&ran.stdout).ok()?;
        let id = [&answer["instance_id"], &answer["id"]].into_iter().find_map(Value::as_str)?;
        return Some(id.to_owned());
    }
    let request = match (&reference, is_start) {
        (Some(id), true) => {
            server.client.request(Method::POST, &format!("/api/v1/instances/{id}/resume"))
        }
        (None, true) => server
            .client
            .request(Method::POST, "/api/v1/instances")
            .json(&json!({ "project": project })),
        (_, false) => {
            let id = live(world, project).await?;
            server.client.request(Method::DELETE, &format!("/api/v1/instances/{id}"))
        }
    };
    let reply = server.client.try_send(request).await.ok()?;
    assert!(reply.status < 500 || reply.status == 503, "{}: {}", reply.status, reply.text());
    Some(reply.json()["instance_id"].as_str()?.to_owned())
}

async fn live(world: &World, project: &str) -> Option<String> {
    let rows = world.rows().await;
    rows.into_iter().find(|row| row.project == project && row.is_live()).map(|row| row.instance_id)
}

/// Everything is stopped; the books are closed.
async fn settle(world: &World, server: &Server<'_>, books: &Books, figures: &Figures) {
    for project in PROJECTS {
        if let Some(id) = live(world, project).await {
            server.client.stop(&id).await.expect(200);
        }
    }
    let found = world.agree().await;
    assert!(found.bridges.is_empty(), "{:?}", found.bridges);
    let crashed = found.rows.iter().filter(|row| row.status == "crashed").count();
    assert_eq!(crashed, 0, "nothing but deliberate stops happened: {:?}", found.rows);

    let Balance { rows, generations, ran } = books.balance(world, &found.rows);
    let Figures { cycles, kills, interrupted, refused, slowest_repair, slowest_start } = figures;
    eprintln!(
        "{cycles} cycles, {kills} kills of the service ({interrupted} inside an operation), \
         {refused} without an answer; {rows} records, {generations} generations, {ran} agents ran; \
         0 lost, 0 doubled, 0 orphaned; slowest restart {slowest_start:?}, slowest agreement \
         {slowest_repair:?}"
    );
}
