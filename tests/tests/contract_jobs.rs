//! The contract with the agent about background jobs, without an account.
//!
//! Checked with the simulator, and with a real agent when `SVC_CONTRACT_AGENT` names its
//! executable, like the rest of the contract.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: what they cannot do fails the test that asked"
)]

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

#[expect(dead_code, reason = "each test program uses a part of the agents")]
#[path = "support/agents.rs"]
mod agents;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use agents::Agent;
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{kill, read};

const LOGIN: &str = "login required — run /login";

/// The agents, in a trusted directory: agent 2.1.330 accepts no job elsewhere.
fn agents() -> Vec<Agent> {
    let mut all = agents::agents();
    for agent in &mut all {
        let cwd = agent.cwd.clone();
        agent.stage.trust(&cwd);
    }
    all
}

impl Agent {
    /// Dispatches and returns the id out of the acknowledgement.
    #[track_caller]
    fn dispatch(&self, args: &[&str]) -> String {
        let mut all = vec!["--bg"];
        all.extend(args);
        let done = self.run(&all);
        assert_eq!(done.code, Some(0), "{}: {}", self.name, done.stderr);
        let rest = done.stdout.strip_prefix("backgrounded · ").unwrap_or_else(|| {
            panic!("{}: {}", self.name, done.stdout);
        });
        rest[..8].to_owned()
    }

    fn job(&self, id: &str) -> PathBuf {
        self.stage.home.join("jobs").join(id)
    }

    fn record(&self, id: &str) -> Value {
        serde_json::from_str(&read(&self.job(id).join("state.json"))).unwrap_or_default()
    }

    #[track_caller]
    fn until_record(&self, id: &str, field: &str, wanted: &str) -> Value {
        let what = format!("{}: {field} {wanted}", self.name);
        self.stage.until(&what, || Some(self.record(id)).filter(|record| record[field] == wanted))
    }

    fn worker(&self, id: &str) -> Value {
        let text = read(&self.stage.home.join("daemon/roster.json"));
        let roster: Value = serde_json::from_str(&text).unwrap_or_default();
        roster["workers"][id].clone()
    }

    /// The roster is written a moment after the log.
    #[track_caller]
    fn until_no_worker(&self, id: &str) {
        let what = format!("{}: a roster without {id}", self.name);
        self.stage.until(&what, || self.worker(id).is_null().then_some(()));
    }

    #[track_caller]
    fn interrupt_host(&self, id: &str) {
        let host = self.worker(id)["pid"].as_u64().expect("a worker");
        kill(u32::try_from(host).unwrap(), Signal::INT);
    }

    #[track_caller]
    fn until_entry(&self, id: &str) -> Value {
        self.stage.until("a registered session", || {
            let sessions = fs::read_dir(self.stage.home.join("sessions")).ok()?;
            sessions
                .filter_map(|entry| serde_json::from_str(&read(&entry.ok()?.path())).ok())
                .find(|entry: &Value| entry["jobId"] == id && entry["status"].is_string())
        })
    }

    #[track_caller]
    fn until_log(&self, part: &str) {
        let file = self.stage.home.join("daemon.log");
        let what = format!("{}: {part}", self.name);
        self.stage.until(&what, || read(&file).contains(part).then_some(()));
    }

    fn listed(&self, args: &[&str], id: &str) -> Value {
        let mut all = vec!["agents", "--json"];
        all.extend(args);
        let list = self.run(&all).json();
        let list = list.as_array().expect("a list").clone();
        list.into_iter().find(|item| item["id"] == id).unwrap_or_default()
    }
}

fn fields(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn a_dispatched_job_without_a_login_is_blocked_and_its_files_have_the_documented_fields() {
    for agent in agents() {
        let name = agent.name;
        let id = agent.dispatch(&["--rc", "door", "--model", "opus", "--", "first line"]);
        let record = agent.until_record(&id, "needs", LOGIN);
        for (field, expected) in [
            ("state", json!("blocked")),
            ("tempo", json!("blocked")),
            ("output", Value::Null),
            ("template", json!("bg")),
            ("intent", json!("first line")),
            ("daemonShort", json!(id)),
            ("cwd", json!(agent.cwd)),
            ("firstTerminalAt", Value::Null),
            ("backend", json!("daemon")),
            ("respawnFlags", json!(["--rc", "--model", "opus"])),
            ("resumeSessionId", record["sessionId"].clone()),
        ] {
            assert_eq!(record[field], expected, "{name}: {field}");
        }
        assert!(record["sessionId"].as_str().unwrap().starts_with(&id), "{name}");
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(agent.job(&id).join("state.json")), 0o600, "{name}");
        assert_eq!(mode(agent.stage.home.join("daemon/roster.json")), 0o600, "{name}");
        let transcript = PathBuf::from(record["linkScanPath"].as_str().unwrap());
        assert!(transcript.starts_with(agent.stage.home.join("projects")), "{name}");

        let entry = agent.until_entry(&id);
        let worker = agent.worker(&id);
        for field in [
            "pid",
            "procStart",
            "sessionId",
            "cliVersion",
            "startedAt",
            "attempt",
            "cwd",
            "dispatch",
            "rendezvousSock",
            "ptySock",
            "rvAuth",
            "ptyAuth",
            "decModes",
        ] {
            assert!(worker.get(field).is_some(), "{name}: roster without {field}: {worker}");
        }
        assert_eq!(worker["dispatch"]["launch"]["mode"], "prompt", "{name}");
        let stat = read(format!("/proc/{}/stat", entry["pid"]).as_ref());
        let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().to_owned();
        assert_eq!(worker["pid"].to_string(), parent, "{name}: the host is the parent");
        assert_eq!((&entry["kind"], &entry["entrypoint"]), (&json!("bg"), &json!("cli")), "{name}");
        assert_eq!(entry["sessionId"], record["sessionId"], "{name}");

        let item = agent.listed(&[], &id);
        assert_eq!((&item["state"], &item["pid"]), (&json!("blocked"), &entry["pid"]), "{name}");
        if agent.is_described() {
            let documented =
                ["pid", "id", "cwd", "kind", "startedAt", "sessionId", "name", "status", "state"];
            assert_eq!(fields(&item), BTreeSet::from(documented), "{name}");
            let lock = read(&agent.stage.home.join("daemon.lock"));
            let lock: Value = serde_json::from_str(&lock).unwrap();
            for field in ["pid", "version", "logPath", "startedAt", "origin", "procStart"] {
                assert!(lock.get(field).is_some(), "{name}: daemon.lock without {field}");
            }
        }
    }
}

#[test]
fn a_job_without_a_prompt_waits_for_one_and_one_interrupt_settles_it() {
    for agent in agents() {
        let done = agent.run(&["--bg"]);
        let first = done.stdout.lines().next().unwrap_or_default().to_owned();
        let id = first.strip_prefix("backgrounded · ").unwrap()[..8].to_owned();
        let idle = format!("backgrounded · {id} (idle — send a prompt to start)");
        assert_eq!(first, idle, "{}", agent.name);
        agent.until_entry(&id);
        let record = agent.record(&id);
        assert_eq!(record["needs"], "send a prompt to start", "{}", agent.name);
        agent.interrupt_host(&id);
        agent.until_log(&format!("bg settled {id} (done)"));
        let record = agent.until_record(&id, "state", "done");
        assert!(record["firstTerminalAt"].is_string(), "{}", agent.name);
        agent.until_no_worker(&id);
        assert_eq!(agent.listed(&[], &id), Value::Null, "{}: ended", agent.name);
        let item = agent.listed(&["--all"], &id);
        assert_eq!(item["state"], "done", "{}", agent.name);
        assert!(item.get("pid").is_none() && item.get("status").is_none(), "{}", agent.name);
    }
}

#[test]
fn one_interrupt_settles_a_blocked_job_without_a_word_in_its_record() {
    for agent in agents().iter().filter(|agent| agent.is_described()) {
        let id = agent.dispatch(&["--", "work"]);
        let before = agent.until_record(&id, "needs", LOGIN);
        agent.interrupt_host(&id);
        agent.until_log(&format!("bg settled {id} (done)"));
        agent.until_no_worker(&id);
        assert_eq!(agent.record(&id)["state"], before["state"], "{}", agent.name);
        let item = agent.listed(&[], &id);
        assert_eq!(item["state"], "blocked", "{}: still listed", agent.name);
        assert!(item.get("pid").is_none(), "{}: without a process", agent.name);
    }
}

#[test]
fn a_stopped_job_stays_and_a_removed_one_goes() {
    for agent in agents() {
        let id = agent.dispatch(&["--name", "night work", "--", "work"]);
        agent.until_entry(&id);
        assert_eq!(agent.run(&["stop", &id]).stdout, format!("stopped {id}\n"), "{}", agent.name);
        agent.until_log(&format!("bg settled {id} (killed)"));
        let record = agent.until_record(&id, "state", "stopped");
        assert_eq!((&record["detail"], &record["tempo"]), (&json!("stopped"), &json!("idle")));
        assert_eq!(record["name"], "night work", "{}", agent.name);
        // With a job at work the agent's service stays: alone it ends after 5 s, and answers no more.
        let live = agent.dispatch(&["--", "work"]);
        let removed = agent.run(&["rm", &id]);
        assert_eq!(removed.stdout, format!("removed {id}\n"), "{}: {removed:?}", agent.name);
        assert!(!agent.job(&id).exists(), "{}", agent.name);
        assert_eq!(agent.run(&["rm", &live]).stdout, format!("removed {live}\n"), "{}", agent.name);
        assert!(!agent.job(&live).exists(), "{}", agent.name);
    }
}

#[test]
fn an_unknown_job_is_refused_with_exit_code_1() {
    for agent in agents() {
        for command in ["rm", "stop", "logs", "respawn"] {
            let done = agent.run(&[command, "deadbeef"]);
            assert_eq!(done.code, Some(1), "{} {command}", agent.name);
            // "No session matching" in agent 2.1.330.
            let job = if agent.is_described() { "job" } else { "" };
            let words = format!("{job} matching 'deadbeef'");
            assert!(done.stderr.contains(&words), "{} {command}: {}", agent.name, done.stderr);
        }
    }
}

#[test]
fn a_wrong_flag_fails_the_job_after_it_was_accepted() {
    for agent in agents() {
        let id = agent.dispatch(&["--bogus", "--", "x"]);
        let record = agent.until_record(&id, "state", "failed");
        let detail = record["detail"].as_str().unwrap();
        assert!(detail.contains("unknown option '--bogus'"), "{}: {detail}", agent.name);
        agent.until_log(&format!("bg settled {id} (crashed)"));
    }
}

#[test]
fn a_host_that_was_killed_comes_back_for_the_same_job() {
    for agent in agents().iter().filter(|agent| agent.is_described()) {
        let id = agent.dispatch(&["--", "work"]);
        let before = agent.until_record(&id, "needs", LOGIN);
        let first = agent.worker(&id)["pid"].clone();
        kill(u32::try_from(first.as_u64().unwrap()).unwrap(), Signal::KILL);
        let worker = agent.stage.until("a second host", || {
            Some(agent.worker(&id)).filter(|worker| worker["attempt"] == 2)
        });
        assert_ne!(worker["pid"], first, "{}", agent.name);
        assert_eq!(agent.record(&id)["state"], before["state"], "{}", agent.name);
    }
}

#[test]
fn a_service_that_is_told_to_stop_ends_its_jobs_and_then_nothing_can_be_removed() {
    for agent in agents().iter().filter(|agent| agent.is_described()) {
        assert_eq!(agent.run(&["daemon", "status"]).code, Some(1), "{}", agent.name);
        let id = agent.dispatch(&["--", "work"]);
        agent.until_entry(&id);
        let status = agent.run(&["daemon", "status"]);
        assert_eq!(status.code, Some(0), "{}", agent.name);
        assert!(status.stdout.starts_with("pid: "), "{}: {}", agent.name, status.stdout);
        assert_eq!(agent.run(&["daemon", "stop"]).code, Some(1), "{}", agent.name);
        let stopped = agent.run(&["daemon", "stop", "--any"]).stdout;
        assert!(stopped.starts_with("stopped (terminated 1 background session)"), "{stopped}");
        agent.until_record(&id, "state", "stopped");
        let lock = agent.stage.home.join("daemon.lock");
        agent.stage.until("no service", || (!lock.exists()).then_some(()));
        let refused = agent.run(&["rm", &id]);
        assert_eq!(refused.code, Some(1), "{}", agent.name);
        let words = format!("couldn't confirm {id} was stopped");
        assert!(refused.stderr.starts_with(&words), "{}: {}", agent.name, refused.stderr);
        assert!(agent.job(&id).exists(), "{}", agent.name);
    }
}
