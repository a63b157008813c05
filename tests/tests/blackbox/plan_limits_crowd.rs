//! Twenty sessions at a plan limit: each goes on once, whatever happens meanwhile.

use crate::conversations::transcript;
use crate::direct_sessions::say;
use crate::harness::{Clock, Events, Server, Start, World, service};
use crate::plan_limits::{told, until_written};
use futures_util::future::join_all;
use serde_json::json;
use std::path::PathBuf;
use std::time::SystemTime;
use svc_shared::api::instances::Instance;

const SESSIONS: usize = 20;
/// A person goes on with the last two before their reset.
const BY_HAND: [usize; 2] = [18, 19];
const MINUTE: i64 = 60;

/// Zones without summer time, and their offset in minutes.
const ZONES: [(&str, i64); 3] =
    [("Asia/Tbilisi", 240), ("Asia/Calcutta", 330), ("America/Phoenix", -420)];

/// One session.
struct One {
    id: String,
    file: PathBuf,
    /// When its limit is reset, seconds since the Unix epoch.
    reset: i64,
}

/// Seconds since the Unix epoch, of the true time of day.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

/// How the agent names a time in a zone.
fn clock_time(at: i64, (zone, offset): (&str, i64)) -> String {
    let minutes = (at / MINUTE + offset).rem_euclid(24 * 60);
    let (hour, minute) = (minutes / 60, minutes % 60);
    let half = if hour < 12 { "am" } else { "pm" };
    let hour = if hour % 12 == 0 { 12 } else { hour % 12 };
    format!("You've hit your session limit · resets {hour}:{minute:02}{half} ({zone})")
}

/// Makes projects whose agents stop at a limit when they are told to work.
///
/// The transcripts to come.
fn projects(world: &World, resets: [i64; 3]) -> Vec<PathBuf> {
    let project = |n: usize| {
        let uuid = format!("22222222-2222-4333-8444-0000000000{n:02}");
        let cwd = world.project_with(
            &format!("p{n:02}"),
            json!({ "hosted": { "uuid": uuid, "replies": [
                { "match": "^work", "chunks": [clock_time(resets[n % 3], ZONES[n % 3])] },
                { "chunks": ["Plain talk"] },
            ]}}),
        );
        transcript(world, &cwd, &uuid)
    };
    (0..SESSIONS).map(project).collect()
}

/// Starts the sessions, and has each of them stop at its limit.
async fn limited(server: &Server<'_>, files: Vec<PathBuf>, resets: [i64; 3]) -> Vec<One> {
    let start = async |(n, file): (usize, PathBuf)| {
        let body = json!({ "project": format!("p{n:02}"), "channel": "hosted" });
        let row = server.client.launch_with(body).await.expect(201).instance();
        let id = row.instance_id.to_string();
        say(server, &id, "work").await;
        One { id, file, reset: resets[n % 3] }
    };
    join_all(files.into_iter().enumerate().map(start)).await
}

/// Waits until these sessions wait, and tells until when each does.
async fn all_wait(events: &mut Events, sessions: &[&One]) -> Vec<i64> {
    let until = |row: &Instance| row.limit.clone()?.continues_at;
    events
        .until("all of them to wait", |state| {
            let of = |one: &&One| Some(until(state.instances.get(&one.id)?)?.as_millis() / 1000);
            sessions.iter().map(of).collect::<Option<Vec<i64>>>()
        })
        .await
}

#[tokio::test]
async fn twenty_sessions_in_three_zones_go_on_once_each_over_kills_and_a_clock_that_is_set() {
    let daemon = service().with_file_name("svc-hosted");
    let world = World::with(json!({
        "hosted": { "enabled": true, "binary": daemon },
        "instance_defaults": { "on_limit": "continue" },
    }));
    let clock = Clock::new(&world);
    let env = clock.env();
    let serve = async || world.serve_as(Start { env: &env, ..Start::default() }).await;
    let begun = now();
    let next_minute = begun + MINUTE - begun % MINUTE;
    let resets = [1, 2, 3].map(|hours| next_minute + hours * 3600);
    let files = projects(&world, resets);
    let server = serve().await;
    let mut events = server.events().await;
    let all = limited(&server, files, resets).await;
    let everybody: Vec<&One> = all.iter().collect();
    let due = all_wait(&mut events, &everybody).await;
    for (one, due) in all.iter().zip(&due) {
        let after = due - one.reset;
        assert!((60..=180).contains(&after), "{after} s after the reset");
    }
    // A person goes on with two of them.
    for at in BY_HAND {
        say(&server, &all[at].id, "hello").await;
        until_written(&world, &all[at].file, "hello").await;
    }
    let rest: Vec<&One> = everybody.iter().take(BY_HAND[0]).copied().collect();
    // Killed while all wait; the next service wakes up a moment before the first reset.
    drop(events);
    server.kill().await;
    clock.set(resets[0] - now() - 30);
    let server = serve().await;
    let mut events = server.events().await;
    assert_eq!(all_wait(&mut events, &rest).await, due[..BY_HAND[0]], "nobody is forgotten");
    assert!(all.iter().all(|one| told(&one.file) == 0), "nobody before the reset");
    // The clock is set over the first reset while the service runs.
    clock.set(resets[0] - now() + 200);
    for one in rest.iter().filter(|one| one.reset == resets[0]) {
        until_written(&world, &one.file, "The usage limit was reset").await;
    }
    let later = |one: &&&One| one.reset != resets[0];
    assert!(rest.iter().filter(later).all(|one| told(&one.file) == 0), "the others still wait");
    // It is set back, and the service is killed: nobody is told again.
    clock.set(0);
    drop(events);
    server.kill().await;
    let server = serve().await;
    let mut events = server.events().await;
    let waiting: Vec<&One> = rest.iter().filter(later).copied().collect();
    all_wait(&mut events, &waiting).await;
    // It sleeps over both other resets.
    drop(events);
    server.kill().await;
    clock.set(resets[2] - now() + 200);
    let server = serve().await;
    for one in &waiting {
        until_written(&world, &one.file, "The usage limit was reset").await;
    }
    let mut events = server.events().await;
    events
        .until("no limit", |state| {
            let is_free =
                |one: &One| state.instances.get(&one.id).is_some_and(|row| row.limit.is_none());
            all.iter().all(is_free).then_some(())
        })
        .await;
    let counts: Vec<usize> = all.iter().map(|one| told(&one.file)).collect();
    let wanted: Vec<usize> = (0..SESSIONS).map(|at| usize::from(!BY_HAND.contains(&at))).collect();
    assert_eq!(counts, wanted, "each once, and none that a person went on with");
    let rows = "SELECT group_concat(state || ' ' || n, ', ') FROM \
        (SELECT state, count(*) AS n FROM limit_waits GROUP BY state ORDER BY state)";
    assert_eq!(world.sql_text(rows).await.as_deref(), Some("begun 18, called_off 2"));
    for one in &all {
        server.client.stop(&one.id).await.expect(200);
    }
}
