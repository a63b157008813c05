//! `svc demo`: everything in one private tree, and nothing left of it.

use crate::harness::{Client, Events, World, service, within};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

struct Demo {
    child: Child,
    client: Client,
    address: String,
    said: String,
}

impl Demo {
    /// Starts the demo in a person's usual environment, and waits for its address.
    async fn start(world: &World, args: &[&str], env: &[(&str, &Path)]) -> Self {
        let mut command = Command::new(service());
        command.arg("demo").args(args).env_clear().envs(world.environment());
        command.envs(env.iter().copied()).current_dir(&world.root).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let address = within("the address", async {
            let mut is_open = [true, true];
            loop {
                let line = tokio::select! {
                    line = stdout.next_line(), if is_open[0] => (0, line.unwrap()),
                    line = stderr.next_line(), if is_open[1] => (1, line.unwrap()),
                };
                let Some(line) = line.1 else {
                    is_open[line.0] = false;
                    assert!(is_open[0] || is_open[1], "the demo ended: {said}");
                    continue;
                };
                said.push_str(&line);
                said.push('\n');
                let address = line.split_whitespace().find(|word| word.starts_with("http://"));
                if let Some(address) = address {
                    return address.trim_end_matches(['/', ',', '.']).to_owned();
                }
            }
        })
        .await;
        tokio::spawn(async move { while let Ok(Some(_)) = stderr.next_line().await {} });
        Self { child, client: Client::new(&address), address, said }
    }

    async fn stop(mut self) -> Option<i32> {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        within("its end", self.child.wait()).await.unwrap().code()
    }
}

#[tokio::test]
async fn the_demo_needs_nothing_and_leaves_nothing() {
    let world = World::new();
    let untouched = world.root.join("home");
    let elsewhere = world.root.join("real-agent-home");
    std::fs::create_dir(&elsewhere).unwrap();
    // Whatever the environment says, nothing real is read or written.
    let env = [
        ("CLAUDE_CONFIG_DIR", elsewhere.as_path()),
        ("SVC_STATE_DIR", elsewhere.as_path()),
        ("SVC_CONFIG", elsewhere.as_path()),
    ];
    let demo = Demo::start(&world, &[], &env).await;
    let health = demo.client.get("/healthz").await.expect(200).json();
    assert_eq!(health["demo"], true, "{}", demo.said);
    let projects = demo.client.get("/api/v1/projects").await.expect(200).json();
    assert_eq!(projects.as_array().unwrap().len(), 6, "{projects}");
    let untrusted = projects.as_array().unwrap().iter();
    let untrusted: Vec<_> = untrusted.filter(|row| row["trust_state"] == "untrusted").collect();
    assert_eq!(untrusted.len(), 1, "{projects}");
    let open = projects
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["trust_state"] == "trusted" && row["alias_of"].is_null());
    let name = open.unwrap()["name"].as_str().unwrap();
    let launched = demo.client.launch(name).await;
    assert!(launched.status < 300, "{}", launched.text());
    assert!(!world.bridges().is_empty());
    let mut events = Events::open(&demo.address).await;
    events
        .until("a job that waits and one that is done", |state| {
            let jobs = state.jobs.values();
            let mut states: Vec<_> = jobs.map(|job| job.state.as_str()).collect();
            states.sort_unstable();
            (states == ["blocked", "done"]).then_some(())
        })
        .await;
    drop(events);

    assert_eq!(demo.stop().await, Some(0));
    assert!(world.processes().is_empty(), "{:?}", world.processes());
    let left: Vec<_> = [&untouched, &elsewhere, &world.root.join("tmp")]
        .iter()
        .flat_map(|dir| std::fs::read_dir(dir).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_kept_demo_can_be_looked_at_afterwards_and_goes_on_where_it_was() {
    let world = World::new();
    let kept = world.root.join("kept");
    let mut ids = Vec::new();
    for round in 1..=2 {
        let demo = Demo::start(&world, &["--keep", kept.to_str().unwrap()], &[]).await;
        let mut events = Events::open(&demo.address).await;
        let shown = events.until("the samples", |state| {
            let running =
                state.instances.values().filter(|row| row.status.to_string() == "running");
            let done = state.jobs.values().any(|job| job.state == "done");
            let are_there = running.count() == 2 && state.jobs.len() == 2 && done;
            are_there.then(|| state.jobs.keys().cloned().collect::<Vec<_>>())
        });
        let shown = shown.await;
        let rows = demo.client.instances().await;
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(rows.iter().all(|row| row.generation == round), "{rows:?}");
        assert!(ids.is_empty() || ids == shown, "the same jobs");
        ids = shown;
        drop(events);
        assert_eq!(demo.stop().await, Some(0));
        assert!(kept.is_dir());
        assert!(world.processes().is_empty(), "{:?}", world.processes());
    }
}
