//! Measures the discovery of projects (H125).
//!
//! Run `cargo run --release -p svc-projects --example ten_thousand [COUNT]`. It creates COUNT (10,000)
//! directories in a temporary directory, every third a repository. It prints the time for a list and
//! for a change, the processor time of an idle half minute, and the memory.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use svc_projects::{Discovery, Projects, Rules, scan};
use svc_shared::ids::ProjectName;
use svc_watch::Watcher;

type Outcome<T> = Result<T, Box<dyn Error>>;

const IDLE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Outcome<()> {
    let count = std::env::args().nth(1).map_or(Ok(10_000), |given| given.parse::<usize>())?;
    let dir = tempfile::tempdir()?;
    let root = dir.path().canonicalize()?;
    for n in 0..count {
        let project = root.join(format!("project-{n:06}"));
        fs::create_dir_all(if n % 3 == 0 { project.join(".git") } else { project })?;
    }
    let rules = Rules { root: root.clone(), refused: vec![], private: vec![] };

    let before = resident_kib();
    let started = Instant::now();
    let projects = scan(&rules);
    println!("scan of {} projects: {:?}", projects.len(), started.elapsed());
    drop(projects);

    let started = Instant::now();
    let discovery = Discovery::start(rules, &Watcher::new()).await;
    println!("start of discovery, first list included: {:?}", started.elapsed());

    let started = Instant::now();
    let snapshot = discovery.snapshot();
    let repositories = snapshot.iter().filter(|project| project.is_git_repo()).count();
    println!("list from the snapshot ({repositories} repositories): {:?}", started.elapsed());

    tokio::time::sleep(Duration::from_secs(10)).await;
    measure(&discovery, &root).await?;

    let (cpu, started) = (cpu_time(), Instant::now());
    tokio::time::sleep(IDLE).await;
    let used = cpu_time().saturating_sub(cpu);
    let share = used.as_secs_f64() / started.elapsed().as_secs_f64() * 100.0;
    println!("idle for {IDLE:?}: {used:?} of processor time ({share:.2} %)");
    println!("resident memory gained: {} KiB", resident_kib().saturating_sub(before));
    Ok(())
}

async fn measure(discovery: &Discovery, root: &Path) -> Outcome<()> {
    let new: ProjectName = "project-new".parse()?;
    let path = root.join(new.as_str());
    let seen = timed(discovery, || fs::create_dir(&path), |now| now.get(&new).is_some()).await?;
    println!("a created project is seen after {seen:?}");
    let seen = timed(discovery, || fs::remove_dir(&path), |now| now.get(&new).is_none()).await?;
    println!("a deleted project is seen after {seen:?}");
    let has_md = |now: &Projects| now.iter().filter(|project| project.has_claude_md).count();
    let names: Vec<_> = discovery.snapshot().iter().map(|project| project.path.clone()).collect();
    for (n, place) in [0, names.len() / 2, names.len().saturating_sub(1)].into_iter().enumerate() {
        let Some(project) = names.get(place) else { continue };
        let write = || fs::write(project.join("CLAUDE.md"), "");
        let seen = timed(discovery, write, |now| has_md(now) > n).await?;
        println!("a CLAUDE.md in project {place} is seen after {seen:?}");
    }
    Ok(())
}

async fn timed(
    discovery: &Discovery,
    change: impl FnOnce() -> std::io::Result<()>,
    is_so: impl Fn(&Projects) -> bool,
) -> Outcome<Duration> {
    let mut changes = discovery.changes();
    let started = Instant::now();
    change()?;
    changes.wait_for(|_| is_so(&discovery.snapshot())).await?;
    Ok(started.elapsed())
}

/// Resident memory; 0 if the system does not report it.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Processor time of all threads, in steps of 10 ms.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // User and system time, fields 14 and 15, in hundredths.
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks.saturating_mul(10))
}
