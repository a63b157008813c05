//! The real agent without a login, when `SVC_CONTRACT_AGENT` names it.
//!
//! The service tells the truth about it and never hangs.

use crate::harness::{Client, World};
use crate::jobs::{dir, id_of, job, until_state};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use svc_skip::skip;

pub const NO_AGENT: &str = "SVC_CONTRACT_AGENT names no agent";

/// The end of the agent's background service, also for a test that fails.
pub struct Real<'w> {
    world: &'w World,
    program: String,
}

impl<'w> Real<'w> {
    /// The named agent in a home without anything of the double.
    pub fn of(world: &'w World) -> Option<Self> {
        let program = std::env::var("SVC_CONTRACT_AGENT").ok()?;
        std::fs::remove_dir_all(world.agent_home.join(".agent-sim")).unwrap();
        world.configure(json!({ "claude": { "binary": program } }));
        Some(Self { world, program })
    }

    /// Runs it as a person at its terminal does; what it wrote to standard output.
    pub fn run(&self, args: &[&str]) -> String {
        self.run_in(&self.world.projects, args)
    }

    /// The same in a directory.
    pub fn run_in(&self, dir: &Path, args: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(dir).stdin(Stdio::null());
        let done = command.env_clear().envs(self.world.environment()).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Its own list of background jobs: id, state and directory.
    fn jobs(&self, args: &[&str]) -> Vec<[Value; 3]> {
        let mut all = vec!["agents", "--json"];
        all.extend(args);
        let list: Value = serde_json::from_str(&self.run(&all)).unwrap();
        let mut rows = list.as_array().unwrap().clone();
        rows.retain(|row| row["id"].is_string());
        facts(&rows)
    }
}

impl Drop for Real<'_> {
    fn drop(&mut self) {
        self.run(&["daemon", "stop", "--any"]);
    }
}

fn facts(rows: &[Value]) -> Vec<[Value; 3]> {
    let of = |row: &Value| ["id", "state", "cwd"].map(|field| row[field].clone());
    let mut all: Vec<_> = rows.iter().map(of).collect();
    all.sort_by_key(|row| row[0].to_string());
    all
}

async fn listed(client: &Client) -> Vec<[Value; 3]> {
    let list = client.get("/api/v1/agents").await.expect(200).json();
    facts(list.as_array().unwrap())
}

#[tokio::test]
async fn the_real_agent_is_reported_truthfully_and_fails_with_its_own_words() {
    let world = World::new();
    world.project("app");
    let Some(agent) = Real::of(&world) else { skip!("{NO_AGENT}") };
    let version = agent.run(&["--version"]);
    let version = version.split_whitespace().next().unwrap().to_owned();

    let server = world.serve().await;
    let mut page = server.events().await;
    let health = page
        .until("the probes", |state| {
            let health = state.health.clone()?;
            (health.claude_version.is_some() && !health.claude_login_ok).then_some(health)
        })
        .await;
    assert_eq!(health.claude_version.as_deref(), Some(&*version));
    assert!(health.claude_ok);
    let served = server.client.get("/healthz").await.expect(200).json();
    assert_eq!(
        (&served["claude_login_ok"], &served["claude_version"]),
        (&json!(false), &json!(version))
    );

    let reply = server.client.launch("app").await.expect(201);
    let failed = page.until_status("app", "error").await;
    assert_eq!(failed.exit_reason.map(|reason| reason.to_string()), Some("login_required".into()));
    let detail = failed.error_detail.unwrap();
    assert!(detail.contains("You must be logged in to use Remote Control"), "{detail}");
    assert!(world.agree().await.bridges.is_empty(), "{}", reply.text());
    let (code, _) = server.stop().await;
    assert_eq!(code, Some(0));
    eprintln!("real agent {version}: {}", detail.lines().next().unwrap_or_default());
}

#[tokio::test]
async fn f70_a_real_session_without_a_login_ends_in_its_true_reason() {
    let world = World::new();
    world.project("app");
    let Some(agent) = Real::of(&world) else { skip!("{NO_AGENT}") };
    let file = world.agent_config();
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    config["hasCompletedOnboarding"] = json!(true);
    std::fs::write(&file, config.to_string()).unwrap();

    let server = world.serve().await;
    let mut page = server.events().await;
    let start = json!({ "project": "app", "mode": "pty" });
    let ended = server.client.launch_with(start).await.expect(201).instance();
    let failed = page.until_status("app", "error").await;
    let reason = ended.exit_reason.map(|reason| reason.to_string());
    assert_eq!(reason.as_deref(), Some("remote_control_unavailable"));
    let detail = failed.error_detail.unwrap();
    assert!(detail.contains("Remote Control requires a claude.ai subscription"), "{detail}");
    assert_eq!((ended.bridge_pid, ended.keeper_pid), (None, None));
    assert!(world.agree().await.bridges.is_empty());
    let (code, _) = server.stop().await;
    assert_eq!(code, Some(0));
    drop(agent);
}

#[tokio::test]
async fn jobs_of_the_real_agent_are_started_listed_stopped_and_removed() {
    let world = World::new();
    let app = world.project("app");
    let Some(agent) = Real::of(&world) else { skip!("{NO_AGENT}") };
    let server = world.serve().await;
    let mut page = server.events().await;
    let body = json!({ "project": "app", "prompt": "look around" });
    let first = id_of(&server.client.post_json("/api/v1/agents", &body).await);
    let started = world.cli(&["jobs", "start", "app", "and again", "--json"]).await.ok().json();
    let second = started["id"].as_str().unwrap().to_owned();
    for id in [&first, &second] {
        let job = until_state(&mut page, id, "blocked").await;
        assert_eq!(job.project.as_deref(), Some("app"));
        assert!(job.needs.unwrap_or_default().starts_with("login required"));
    }
    let expected = |ids: [(&String, &str); 2]| {
        let rows = ids.map(|(id, state)| json!({ "id": id, "state": state, "cwd": app }));
        facts(&rows)
    };
    let both = expected([(&first, "blocked"), (&second, "blocked")]);
    assert_eq!(listed(&server.client).await, both);
    assert_eq!(agent.jobs(&[]), both);

    // They outlive the service.
    server.kill().await;
    let server = world.serve().await;
    let mut page = server.events().await;
    assert_eq!(listed(&server.client).await, both);
    let table = world.cli(&["jobs", "list", "--json"]).await.ok().json();
    assert_eq!(facts(table.as_array().unwrap()), both);

    let reply = server.client.delete(&format!("/api/v1/agents/{first}")).await.expect(200).json();
    assert_eq!((&reply["settled"], &reply["removed"]), (&json!(true), &json!(true)), "{reply}");
    assert!(!dir(&world, &first).exists());
    page.until("the job gone", |state| (!state.jobs.contains_key(&first)).then_some(())).await;

    // Stopped by hand, continued as a new job.
    agent.run(&["stop", &second]);
    page.until("the second stopped", |state| {
        job(state, &second).filter(|job| job.state == "stopped" && !job.worker_alive)
    })
    .await;
    let third = id_of(&server.client.post(&format!("/api/v1/agents/{second}/resume")).await);
    until_state(&mut page, &third, "blocked").await;
    let after = expected([(&second, "stopped"), (&third, "blocked")]);
    assert_eq!(listed(&server.client).await, after);
    assert_eq!(agent.jobs(&["--all"]), after);

    for id in [&second, &third] {
        let said = world.cli(&["jobs", "stop", id]).await.ok().stdout;
        eprintln!("real agent: {}", said.trim_end());
        assert!(said.ends_with("removed=yes\n"), "{said}");
    }
    page.until("no job", |state| state.jobs.is_empty().then_some(())).await;
    assert_eq!(agent.jobs(&["--all"]), Vec::<[Value; 3]>::new());
    let (code, _) = server.stop().await;
    assert_eq!(code, Some(0));
}
