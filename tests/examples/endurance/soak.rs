//! Bridges start and end for a long time, under many kinds of clients.
//!
//! At the end everything must be as it was at the beginning.

mod crowd;

use crate::arguments;
use crate::harness::{Books, Client, Dice, Row, Server, World};
use crate::plan::is_session;
use crate::vitals::{Vitals, log_sets};
use futures_util::StreamExt;
use futures_util::stream::iter;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Far more than the end of a churn of hundreds of bridges takes.
const AGREES_WITHIN: Duration = Duration::from_secs(120);
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
const SAY_EVERY: u32 = 12;
/// So many launches keep their logs; those of recorded bridges stay beside them.
const LOG_SETS: usize = 150;
/// How long logs without a record may stay, with a margin.
/// They are checked at the next launch.
const NAMELESS_LOGS: Duration = Duration::from_secs(11 * 60);
/// From this length on memory has had its time to become what it stays.
const MEMORY_FROM: Duration = Duration::from_secs(5 * 60);
/// Most threads of the pool for blocking work that may be idle.
/// The pool wakes its idle threads in turn, so any work within ten seconds keeps all of them: as
/// many as were busy at once, five on a machine that compiled at the same time. A thread per
/// bridge, task or request would be far more.
const POOL: u64 = 6;

/// What everybody in the crowd knows.
struct Scene {
    world: Arc<World>,
    base: String,
    projects: Vec<String>,
    /// The newest record of each project.
    newest: Mutex<BTreeMap<usize, String>>,
    books: Mutex<Books>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    /// Projects whose agents were killed.
    harmed: Mutex<BTreeSet<String>>,
    phase: watch::Receiver<Phase>,
}

/// How far the run is.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Churn,
    /// Nothing new is begun; who only looks goes on looking.
    Quiet,
    /// The status of every record: whoever followed must have come to the same.
    Over(Arc<BTreeMap<String, String>>),
}

impl Scene {
    fn count(&self, what: &'static str) {
        *self.counts.lock().unwrap().entry(what).or_default() += 1;
    }

    fn is_churning(&self) -> bool {
        *self.phase.borrow() == Phase::Churn
    }

    fn is_over(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Over(_))
    }

    fn client(&self) -> Client {
        Client::new(&self.base)
    }
}

/// Runs a soak; panics with what is not where it should be.
pub async fn run(arguments: &arguments::Soak) {
    let begun = Instant::now();
    let world = Arc::new(World::with(json!({
        "claude": { "stop_grace_seconds": 2, "startup_grace_seconds": 60 },
        "instance_defaults": { "max_bridges": arguments.bridges + 1 },
        "logs": { "retention_max_files": LOG_SETS },
    })));
    let projects: Vec<String> = (0..arguments.bridges).map(project).collect();
    let mut dice = Dice::new(arguments.seed);
    for name in &projects {
        std::fs::create_dir(world.projects.join(name)).unwrap();
        world.set_knobs(name, knobs(&mut dice));
    }
    world.trust(&world.projects);
    let server = world.serve().await;
    let mut witness = world.witness("bystander").await;

    warm_up(&server, &projects).await;
    let before = at_rest(&world, server.pid, None).await;
    eprintln!("at rest before: {before}");

    let (phases, phase) = watch::channel(Phase::Churn);
    let scene = Arc::new(Scene {
        world: Arc::clone(&world),
        base: server.base.clone(),
        projects,
        newest: Mutex::default(),
        books: Mutex::default(),
        counts: Mutex::default(),
        harmed: Mutex::default(),
        phase,
    });
    let mut crowd = crowd::gather(&scene, &mut dice);
    let samples = watch_over(&world, &server, arguments.time, &mut crowd).await;
    phases.send_replace(Phase::Quiet);
    crowd::until_idle(&scene).await;

    let rows = wind_up(&scene, &server).await;
    let statuses = rows.iter().map(|row| (row.instance_id.clone(), row.status.clone()));
    phases.send_replace(Phase::Over(Arc::new(statuses.collect())));
    while let Some(one) = crowd.join_next().await {
        ended_well(one);
    }
    let after = at_rest(&world, server.pid, Some(before)).await;
    eprintln!("at rest after:  {after}");
    let sets = log_sets(&world, NAMELESS_LOGS);
    assert!(sets <= LOG_SETS + rows.len(), "{sets} launches keep logs, {} records", rows.len());
    let balance = scene.books.lock().unwrap().balance(&world, &rows);
    witness.assert_untouched(&world).await;
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");

    let counts = scene.counts.lock().unwrap().clone();
    let counted: Vec<String> = counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
    let most = samples.iter().map(|sample| sample.resident_kib).max().unwrap_or_default();
    eprintln!(
        "seed {}, {} bridges for {} s ({} s in all): {}; {} agents ran, {} records; at most {most} \
         KiB resident; 0 lost, 0 doubled, 0 orphaned, 0 left behind",
        arguments.seed,
        arguments.bridges,
        arguments.time.as_secs(),
        begun.elapsed().as_secs(),
        counted.join(", "),
        balance.ran,
        balance.rows
    );
    no_growth(arguments.time, &samples);
}

/// In every eighth project Interactive Sessions run, with a keeper each.
fn project(number: usize) -> String {
    if number % 8 == 7 { format!("session-{number:03}") } else { format!("p{number:03}") }
}

/// How the agent of one project behaves.
fn knobs(dice: &mut Dice) -> Value {
    let chatter = 20 + dice.roll(400);
    match dice.roll(10) {
        0 => json!({ "exit_after_ready_ms": 200 + dice.roll(4000), "chatter_ms": chatter }),
        1 => json!({ "shutdown_ms": dice.roll(200), "chatter_ms": chatter }),
        2 => json!({ "ready_ms": dice.roll(800) }),
        3 => json!({ "children": 2, "child_mode": "same_group" }),
        4 => json!({ "log_mb_per_s": 2, "log_for_ms": 300 }),
        _ => json!({ "chatter_ms": chatter }),
    }
}

/// Takes every path once, so that first use does not count as growth.
async fn warm_up(server: &Server<'_>, projects: &[String]) {
    let once = async |name: &String| {
        let launched = if is_session(name) {
            let body = json!({ "project": name, "mode": "pty" });
            server.client.post_json("/api/v1/instances", &body).await
        } else {
            server.client.launch(name).await
        };
        let row = launched.expect(201).instance();
        let id = row.instance_id.as_str();
        server.client.stop(id).await.expect(200);
        server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);
    };
    iter(projects).map(once).buffer_unordered(8).for_each(async |()| {}).await;
    server.open_connections().await;
}

/// Waits until everything that was held only for a moment is released.
/// With `as_before`: until it is no more than that, and panics when it never is.
async fn at_rest(world: &World, pid: i32, as_before: Option<Vitals>) -> Vitals {
    // Idle connections and threads are let go after 10 s and less.
    let mut patience = if as_before.is_some() { 60 } else { 12 };
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = Vitals::of(world, pid).await;
        patience -= 1;
        let is_back = as_before.is_some_and(|before| {
            now.descriptors <= before.descriptors && now.threads <= before.threads + POOL
        });
        if is_back || (patience == 0 && as_before.is_none()) {
            return now;
        }
        assert!(patience > 0, "not given back: {now}; before: {as_before:?}; {:?}", open(pid));
    }
}

/// What the open descriptors of a process are.
fn open(pid: i32) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter_map(Result::ok) {
        let target = std::fs::read_link(entry.path()).unwrap_or_default().display().to_string();
        let kind = target.split_once(":[").map_or(target.clone(), |(kind, _)| kind.to_owned());
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

/// Lets it go on for so long, and looks. Nobody of the crowd may end before.
async fn watch_over(
    world: &World,
    server: &Server<'_>,
    time: Duration,
    crowd: &mut JoinSet<()>,
) -> Vec<Vitals> {
    let end = Instant::now() + time;
    let mut samples = Vec::new();
    let mut said = 0;
    while Instant::now() < end {
        let pause = SAMPLE_EVERY.min(end.saturating_duration_since(Instant::now()));
        if let Ok(Some(one)) = tokio::time::timeout(pause, crowd.join_next()).await {
            ended_well(one);
            panic!("somebody of the crowd went home");
        }
        let now = Vitals::of(world, server.pid).await;
        if said % SAY_EVERY == 0 {
            eprintln!(
                "{:>5} s to go: {now}",
                end.saturating_duration_since(Instant::now()).as_secs()
            );
        }
        said += 1;
        samples.push(now);
    }
    samples
}

fn ended_well(one: Result<(), tokio::task::JoinError>) {
    if let Err(error) = one {
        resume_unwind(error.into_panic());
    }
}

/// Everything is stopped; records, processes, answers and books must agree.
async fn wind_up(scene: &Scene, server: &Server<'_>) -> Vec<Row> {
    let live = scene.world.rows().await.into_iter().filter(Row::is_live);
    let stop = async |row: Row| drop(server.client.stop(&row.instance_id).await.expect(200));
    iter(live).map(stop).buffer_unordered(8).for_each(async |()| {}).await;
    let found = scene.world.agree_within(AGREES_WITHIN).await;
    assert!(found.bridges.is_empty(), "{:?}", found.bridges);
    let shown = server.client.instances().await;
    assert_eq!(shown.len(), found.rows.len(), "what is shown is what is recorded");
    for row in &found.rows {
        let seen = shown.iter().find(|seen| seen.instance_id.as_str() == row.instance_id);
        assert_eq!(seen.map(|seen| seen.status.to_string()).as_ref(), Some(&row.status));
    }
    let of_nobody = "SELECT (SELECT count(*) FROM announcements WHERE instance_id NOT IN \
         (SELECT instance_id FROM bridges UNION SELECT instance_id FROM hosted_sessions)) || ''";
    let left = scene.world.sql_text(of_nobody).await;
    assert_eq!(left.as_deref(), Some("0"), "announcements of forgotten bridges");
    let trees = scene.world.trees();
    assert!(trees.is_empty(), "left of bridges: {trees:?}");
    found.rows
}

/// Compares the memory of the last quarter with that of the second.
/// The first quarter is for warming up.
fn no_growth(time: Duration, samples: &[Vitals]) {
    let quarter = samples.len() / 4;
    if time < MEMORY_FROM || quarter == 0 {
        return;
    }
    let most = |part: &[Vitals]| part.iter().map(|one| one.resident_kib).max().unwrap_or_default();
    let (early, late) = (most(&samples[quarter..2 * quarter]), most(&samples[3 * quarter..]));
    eprintln!("resident at most {early} KiB in the second quarter, {late} KiB in the last");
    // H130: no growth by more than a tenth; 2 MiB are what an allocator may keep of a moment.
    assert!(late <= early + early / 10 + 2048, "memory grows: {early} KiB, then {late} KiB");
}
