//! Bridges through commands alone, and beside a server.
//!
//! The agent is a script that writes what a ready agent writes (agent 2.1.197) and waits.

use crate::workspace::{Ended, Server, Workspace};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

const AGENT: &str = r#"#!/bin/sh
case "$1" in
--version) echo '2.1.197 (Claude Code)'; exit 0 ;;
auth) echo '{"loggedIn":true,"authMethod":"claude.ai"}'; exit 0 ;;
agents) echo '[]'; exit 0 ;;
esac
while [ $# -gt 0 ]; do
    [ "$1" = --debug-file ] && log="$2"
    shift
done
say() { echo "2026-01-01T00:00:00.000Z [DEBUG] $1" >>"$log"; }
if [ -f fails ]; then
    echo 'Error: this project fails' >&2
    exit 1
fi
id=01AAAAAAAAAAAAAAAAAAAAAA
say "[bridge:init] Registered, server environmentId=env_$id"
[ -f hangs ] && exec /bin/sleep 600
say "[bridge:init] Created initial session session_$id"
say "[bridge:work] Starting poll loop spawnMode=same-dir maxSessions=32 environmentId=env_$id"
exec /bin/sleep 600
"#;

/// A workspace with the agent above; what still runs when the test ends is stopped.
struct Stage(Workspace);

impl Stage {
    fn new() -> Self {
        let workspace = Workspace::configured("claude:\n  stop_grace_seconds: 5\n");
        svc_programs::write(workspace.path("bin/claude"), AGENT).unwrap();
        Self(workspace)
    }

    #[track_caller]
    fn run(&self, line: &str, code: i32) -> Ended {
        self.0.run(line).exits(code)
    }

    fn instances(&self) -> Vec<Value> {
        self.run("status --json", 0).json().as_array().unwrap().clone()
    }

    /// Kills the agent of the only live bridge from outside.
    fn kill_agent(&self) {
        let live = self.instances().into_iter().find(|one| !one["bridge_pid"].is_null()).unwrap();
        let pid = i32::try_from(live["bridge_pid"].as_i64().unwrap()).unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        let exit = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        let mut ready = [rustix::event::PollFd::new(&exit, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut ready, None).unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let listed = self.0.run("status --json");
        let instances: Vec<Value> = serde_json::from_str(&listed.out).unwrap_or_default();
        for one in instances.iter().filter(|one| !one["bridge_pid"].is_null()) {
            self.0.run(&format!("stop {}", one["instance_id"].as_str().unwrap_or_default()));
        }
    }
}

#[test]
fn a_bridge_lives_through_all_commands_without_a_server() {
    let stage = Stage::new();
    let started = stage.run("start api --trust --wait", 0);
    assert!(started.out.starts_with("started "), "{started:#?}");
    assert!(started.out.trim_end().ends_with("(api) mode=standard status=running"), "{started:#?}");
    let short = started.out.split_whitespace().nth(1).unwrap().to_owned();

    let again = stage.run("start api", 0);
    let expected = format!("already running: {short} (api) status=running — ");
    assert!(again.out.starts_with(&expected), "{again:#?}");
    let again = stage.run("start api --json", 0).json();
    assert_eq!(again["created"], false);
    assert!(again["reason"].is_string() && again["warnings"].is_array());
    assert_eq!(again["connect"]["kind"], "session");

    let status = stage.run("status", 0);
    let row = status.out.lines().nth(1).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..5], [&*short, "api", "Server", "Mode", "running"]);
    let raw = stage.run("status --json", 0);
    assert!(!raw.out.contains("01AAAAAAAA"), "a raw identifier: {}", raw.out);

    let link = stage.run("open api", 0);
    assert!(link.out.starts_with("https://") && link.out.lines().count() == 1, "{link:#?}");
    let log = stage.run("logs api -n 1", 0);
    assert!(log.out.contains("environmentId=env_<redacted>"), "{log:#?}");
    assert_eq!(log.out.lines().count(), 1);
    let line: Value = stage.run("logs api -n 1 --json", 0).json();
    assert_eq!(line["line"].as_str(), Some(log.out.trim_end()));

    stage.run("forget api", 2);
    let live = stage.run("resume api --json", 0).json();
    assert_eq!((&live["resumed"], &live["reason"].is_string()), (&Value::Bool(false), &true));
    let stopped = stage.run(&format!("stop {short}"), 0);
    assert_eq!(stopped.out, format!("stopped {short} (api) status=stopped\n"));
    stage.run("stop api", 0);
    stage.run("open api", 2);
    assert!(stage.run("logs api", 0).out.contains("Starting poll loop"));

    let resumed = stage.run("resume api --json", 0).json();
    assert_eq!(resumed["resumed"], true);
    assert!(resumed["id"].as_str().unwrap().starts_with(&short) && resumed["session"].is_string());
    stage.run("stop api", 0);
    stage.run("forget api", 0);
    assert!(stage.instances().is_empty());
}

#[test]
fn a_start_that_fails_exits_1_with_the_agents_own_words() {
    let stage = Stage::new();
    stage.0.write("projects/api/fails", "");
    let failed = stage.run("start api --trust", 1);
    assert!(failed.out.contains("status=error"), "{failed:#?}");
    assert!(failed.err.contains("Error: this project fails"), "{failed:#?}");
    assert!(failed.err.lines().all(|line| line.starts_with("svc: ")), "{failed:#?}");
    let failed = stage.run("start api --json", 1).json();
    assert!(failed["error"]["message"].as_str().unwrap().contains("this project fails"));
    assert_eq!(failed["instance"]["status"], "error");
}

#[test]
fn waiting_is_bounded_and_what_still_starts_is_no_success() {
    let stage = Stage::new();
    stage.0.write("projects/api/hangs", "");
    let waited = stage.run("start api --trust --wait 0 --json", 1).json();
    assert_eq!(waited["error"]["code"], "not_running");
    assert_eq!(waited["instance"]["status"], "starting");
    stage.run("start api --wait 0", 1);
}

#[test]
fn an_interrupted_wait_exits_130_and_leaves_the_bridge() {
    let stage = Stage::new();
    stage.0.write("projects/api/hangs", "");
    let command = stage
        .0
        .command(["start", "api", "--trust", "--wait", "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = || stage.instances().iter().any(|one| one["phase"] == "registering");
    crate::workspace::until("the bridge is there", started);
    let pid = Pid::from_raw(i32::try_from(command.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    Ended::of(command.wait_with_output().unwrap()).exits(130);
    let instances = stage.instances();
    assert_eq!(instances[0]["status"], "starting");
    assert!(instances[0]["bridge_pid"].is_number());
}

#[test]
fn a_bridge_that_died_unwatched_is_seen_as_ended_and_can_be_resumed() {
    let stage = Stage::new();
    stage.run("start api --trust --wait", 0);
    stage.kill_agent();
    let instances = stage.instances();
    assert_eq!(instances[0]["status"], "crashed", "{:#}", instances[0]);
    let resumed = stage.run("resume api --json", 0).json();
    assert_eq!(resumed["resumed"], true, "{resumed:#}");
    assert_eq!(resumed["id"], instances[0]["instance_id"]);
}

#[test]
fn a_declined_resume_is_never_a_success() {
    let stage = Stage::new();
    let first = stage.run("start api --trust --wait --json", 0).json();
    stage.run("stop api", 0);
    let second = stage.run("start api --wait --json", 0).json();
    assert_ne!(first["instance_id"], second["instance_id"]);
    let id = first["instance_id"].as_str().unwrap();
    let declined = stage.run(&format!("resume {id} --json"), 1).json();
    assert_eq!(declined["error"]["code"], "standard_already_live");
    assert_eq!(declined["resumed"], false);
    // A name means the row that can be stopped; of two ended ones neither is meant.
    assert_eq!(stage.run("stop api --json", 0).json()["instance_id"], second["instance_id"]);
    let ambiguous = stage.run("stop api --json", 2).json();
    assert_eq!(ambiguous["error"]["code"], "ambiguous");
    assert_eq!(ambiguous["candidates"].as_array().unwrap().len(), 2);
}

#[test]
fn simultaneous_starts_give_one_bridge() {
    let stage = Stage::new();
    stage.run("start api --trust --wait", 0);
    stage.run("stop api", 0);
    let starts: Vec<_> = (0..8)
        .map(|_| {
            stage
                .0
                .command(["start", "api", "--json"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let answers: Vec<Value> = starts
        .into_iter()
        .map(|start| Ended::of(start.wait_with_output().unwrap()).exits(0).json())
        .collect();
    let created = answers.iter().filter(|answer| answer["created"] == true).count();
    assert_eq!(created, 1, "{answers:#?}");
    let live = stage.instances().iter().filter(|one| one["status"] == "running").count();
    assert_eq!(live, 1);
}

#[test]
fn a_server_shows_what_commands_do_and_leaves_it_running() {
    let stage = Stage::new();
    let server: Server = stage.0.serve();
    stage.run("start api --trust --wait", 0);
    let shown = || server.get("/api/v1/instances").contains("\"status\":\"running\"");
    crate::workspace::until("the server shows the bridge", shown);
    let pid = stage.instances()[0]["bridge_pid"].clone();
    server.signal(Signal::TERM);
    assert_eq!(server.exit_code(), Some(0));
    assert_eq!(stage.instances()[0]["bridge_pid"], pid);

    let again = stage.0.serve();
    let health = again.get("/healthz");
    assert!(health.contains("\"instances_running\":1"), "{health}");
    stage.run("stop api", 0);
    let stopped = || again.get("/api/v1/instances").contains("\"status\":\"stopped\"");
    crate::workspace::until("the server shows the stop", stopped);
    assert_eq!(stage.instances().len(), 1);
}

#[test]
fn a_followed_log_ends_with_0_when_it_is_interrupted() {
    let stage = Stage::new();
    stage.run("start api --trust --wait", 0);
    let mut follower = stage
        .0
        .command(["logs", "api", "-f", "-n", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = crate::workspace::lines(follower.stdout.take().unwrap());
    assert!(lines.next_with("poll loop").contains("env_<redacted>"));
    let logs: Vec<_> = fs::read_dir(stage.0.path("state/logs"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("-1.log"))
        .collect();
    let file = fs::File::options().append(true).open(&logs[0]).unwrap();
    std::io::Write::write_all(&mut &file, b"token ghp_0123456789abcd").unwrap();
    std::io::Write::write_all(&mut &file, b"efghij and more\n").unwrap();
    assert_eq!(lines.next_with("and more"), "token <redacted> and more");
    let pid = Pid::from_raw(i32::try_from(follower.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    Ended::of(follower.wait_with_output().unwrap()).exits(0);
}
