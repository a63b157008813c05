//! Background jobs of the simulator: dispatch, files, ends, and their service.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: what they cannot do fails the test that asked"
)]

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Knobs, Stage, kill, read};

const PROGRAM: &str = env!("CARGO_BIN_EXE_svc-agent-sim");
/// A job that works until somebody ends it.
const ENDLESS: (&str, &str) = ("job_script", r#"[[0, {"state": "working", "detail": "busy"}]]"#);
/// A job that waits for an answer until somebody ends it.
const WAITING: (&str, &str) =
    ("job_script", r#"[[0, {"state": "blocked", "needs": "an answer", "detail": "asked"}]]"#);
/// A job that ends at once.
const QUICK: (&str, &str) = (
    "job_script",
    r#"[[0, {"state": "working"}], [20, {"state": "blocked", "needs": "leave to run ls"}],
        [40, {"state": "done", "detail": "over", "result": "All is well."}]]"#,
);

struct Jobs {
    stage: Stage,
    cwd: PathBuf,
}

impl Jobs {
    fn new() -> Self {
        let mut stage = Stage::new(PROGRAM);
        let cwd = stage.project("work");
        Self { stage, cwd }
    }

    /// Dispatches and returns the id of the new job.
    #[track_caller]
    fn start(&self, args: &[&str], knobs: Knobs) -> String {
        let mut all = vec!["--bg"];
        all.extend(args);
        let done = self.stage.run(&self.cwd, &all, knobs);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let id = done.stdout.strip_prefix("backgrounded · ").expect("an acknowledgement");
        id[..8].to_owned()
    }

    fn dir(&self, id: &str) -> PathBuf {
        self.stage.home.join("jobs").join(id)
    }

    fn record(&self, id: &str) -> Value {
        let text = read(&self.dir(id).join("state.json"));
        serde_json::from_str(&text).unwrap_or_default()
    }

    #[track_caller]
    fn until_state(&self, id: &str, state: &str) -> Value {
        self.stage.until(state, || Some(self.record(id)).filter(|r| r["state"] == state))
    }

    fn worker(&self, id: &str) -> Value {
        let text = read(&self.stage.home.join("daemon/roster.json"));
        let roster: Value = serde_json::from_str(&text).unwrap_or_default();
        roster["workers"][id].clone()
    }

    fn host(&self, id: &str) -> u32 {
        u32::try_from(self.worker(id)["pid"].as_u64().expect("a worker")).expect("a pid")
    }

    fn service(&self) -> u32 {
        let lock: Value = serde_json::from_str(&read(&self.stage.home.join("daemon.lock")))
            .expect("the service's file");
        u32::try_from(lock["pid"].as_u64().expect("a pid")).expect("a pid")
    }

    fn log(&self) -> String {
        read(&self.stage.home.join("daemon.log"))
    }

    #[track_caller]
    fn until_log(&self, part: &str) {
        self.stage.until(part, || self.log().contains(part).then_some(()));
    }

    #[track_caller]
    fn until_gone(&self, path: &Path) {
        self.stage.until("the end of a file", || (!path.exists()).then_some(()));
    }

    fn entry(&self, id: &str) -> Option<Value> {
        let sessions = fs::read_dir(self.stage.home.join("sessions")).ok()?;
        sessions
            .filter_map(|entry| serde_json::from_str(&read(&entry.ok()?.path())).ok())
            .find(|entry: &Value| entry["jobId"] == id)
    }

    #[track_caller]
    fn until_entry(&self, id: &str) -> Value {
        self.stage.until("a registered session", || self.entry(id))
    }

    fn listed(&self, args: &[&str]) -> Vec<Value> {
        let mut all = vec!["agents", "--json"];
        all.extend(args);
        let list = self.stage.run(&self.cwd, &all, &[]).json();
        list.as_array().expect("a list").clone()
    }

    fn run(&self, args: &[&str]) -> stage::Done {
        self.stage.run(&self.cwd, args, &[])
    }

    fn door(&self, id: &str) -> Value {
        let door = self.record(id)["bridgeSessionId"].as_str().expect("a cloud door").to_owned();
        let remote: Value = serde_json::from_str(&self.stage.remote(&["show"])).expect("JSON");
        remote["sessions"][door]["state"].clone()
    }
}

fn parent_of(pid: &Value) -> u64 {
    let stat = read(Path::new(&format!("/proc/{pid}/stat")));
    let (_, rest) = stat.rsplit_once(") ").expect("a process");
    rest.split(' ').nth(1).expect("a parent").parse().expect("a number")
}

#[test]
fn a_dispatched_job_is_on_disk_in_the_roster_in_the_registry_and_in_the_list() {
    let jobs = Jobs::new();
    let done = jobs.stage.run(
        &jobs.cwd,
        &["--bg", "--rc", "door", "--model", "m", "--name", "night work", "--", "tidy up"],
        &[ENDLESS],
    );
    assert_eq!(done.code, Some(0));
    assert_eq!(done.stderr, "Starting background service…\n");
    let first = done.stdout.lines().next().expect("a line");
    let id = first.strip_prefix("backgrounded · ").expect("the id")[..8].to_owned();
    assert_eq!(first, format!("backgrounded · {id} · night work"));
    assert!(done.stdout.contains(&format!("\n  claude stop {id}      stop this session\n")));

    let entry = jobs.until_entry(&id);
    let record = jobs.stage.until("the first step", || {
        Some(jobs.record(&id)).filter(|record| record["detail"] == "busy")
    });
    for (field, expected) in [
        ("state", json!("working")),
        ("tempo", json!("active")),
        ("intent", json!("tidy up")),
        ("name", json!("night work")),
        ("daemonShort", json!(id)),
        ("cwd", json!(jobs.cwd)),
        ("template", json!("bg")),
        ("backend", json!("daemon")),
        ("output", Value::Null),
        ("firstTerminalAt", Value::Null),
        ("respawnFlags", json!(["--rc", "--name", "night work", "--model", "m"])),
    ] {
        assert_eq!(record[field], expected, "{field}");
    }
    assert!(record["sessionId"].as_str().expect("a session").starts_with(&id));
    let mode = |path: &str| {
        let file = jobs.stage.home.join(path);
        fs::metadata(file).expect("a file").permissions().mode() & 0o777
    };
    assert_eq!(mode(&format!("jobs/{id}/state.json")), 0o600);
    assert_eq!(mode("daemon/roster.json"), 0o600);

    let worker = jobs.worker(&id);
    assert_eq!(worker["sessionId"], record["sessionId"]);
    assert_eq!(worker["attempt"], 1);
    assert_eq!(worker["dispatch"]["launch"]["mode"], "prompt");
    assert_eq!(entry["kind"], "bg");
    assert_eq!(worker["pid"].as_u64(), Some(parent_of(&entry["pid"])), "the host is the parent");
    let list = jobs.listed(&[]);
    let [item] = list.as_slice() else { panic!("one job: {list:?}") };
    for (field, expected) in [
        ("pid", &entry["pid"]),
        ("id", &json!(id)),
        ("kind", &json!("background")),
        ("name", &json!("night work")),
        ("status", &json!("busy")),
        ("state", &json!("working")),
        ("startedAt", &entry["startedAt"]),
    ] {
        assert_eq!(&item[field], expected, "{field}");
    }
    assert_eq!(jobs.door(&id), "active");
    assert!(jobs.run(&["logs", &id]).stdout.contains("tidy up"));
}

#[test]
fn a_job_that_ends_leaves_its_result_and_no_process() {
    let jobs = Jobs::new();
    let id = jobs.start(&["--rc", "--", "look"], &[QUICK]);
    let record = jobs.until_state(&id, "done");
    assert_eq!(record["output"]["result"], "All is well.");
    assert_eq!(record["tempo"], "idle");
    assert!(record["firstTerminalAt"].is_string());
    assert!(record.get("needs").is_none());
    let states: Vec<Value> = stage::lines(&jobs.dir(&id).join("timeline.jsonl"))
        .iter()
        .map(|line| line["state"].clone())
        .collect();
    assert_eq!(states, ["working", "blocked", "done"]);
    jobs.until_log(&format!("bg settled {id} (done)"));
    assert_eq!(jobs.worker(&id), Value::Null);
    assert_eq!(jobs.entry(&id), None);
    assert_eq!(jobs.door(&id), "ended");
    assert_eq!(jobs.listed(&[]), [] as [Value; 0]);
    let all = jobs.listed(&["--all"]);
    assert_eq!(all[0]["state"], "done");
    assert!(all[0].get("pid").is_none() && all[0].get("status").is_none());
    let transcript = read(Path::new(record["linkScanPath"].as_str().expect("a transcript")));
    assert!(transcript.contains("\"sessionKind\":\"bg\"") && transcript.contains("All is well."));
}

#[test]
fn a_stopped_job_keeps_its_record_and_leaves_its_door_open() {
    let jobs = Jobs::new();
    let id = jobs.start(&["--rc", "--", "work"], &[ENDLESS]);
    let entry = jobs.until_entry(&id);
    jobs.stage.until("a door", || jobs.record(&id)["bridgeSessionId"].as_str().map(drop));
    assert_eq!(jobs.run(&["stop", &id]).stdout, format!("stopped {id}\n"));
    let record = jobs.record(&id);
    assert_eq!((&record["state"], &record["detail"]), (&json!("stopped"), &json!("stopped")));
    assert!(jobs.log().contains(&format!("bg settled {id} (killed)")));
    assert_eq!(jobs.worker(&id), Value::Null);
    jobs.until_gone(&jobs.stage.home.join(format!("sessions/{}.json", entry["pid"])));
    assert_eq!(jobs.door(&id), "active", "nobody told the service");
    assert_eq!(jobs.run(&["stop", &id]).stdout, format!("stopped {id}\n"), "a second time");
    assert_eq!(jobs.run(&["rm", &id]).stdout, format!("removed {id}\n"));
    assert!(!jobs.dir(&id).exists());
}

#[test]
fn an_id_of_no_job_is_refused_in_the_words_of_each_command() {
    let jobs = Jobs::new();
    let listed = ". Run 'claude agents' to list running sessions.";
    for (command, rest) in [("rm", ""), ("respawn", ""), ("stop", listed), ("logs", listed)] {
        for id in ["deadbeef", "..", "pins.json"] {
            let done = jobs.run(&[command, id]);
            assert_eq!(done.code, Some(1), "{command}");
            let words = format!("No job matching '{id}'{rest}\n");
            assert!(done.stderr.ends_with(&words), "{command}: {}", done.stderr);
        }
    }
    assert_eq!(jobs.run(&["stop"]).stderr, "Usage: claude stop <id>\n");
    assert_eq!(jobs.run(&["respawn"]).stderr, "usage: claude respawn <id>|--all\n");
}

#[test]
fn one_interrupt_to_the_host_ends_a_working_job_in_order() {
    let jobs = Jobs::new();
    let id = jobs.start(&["--rc", "--", "work"], &[ENDLESS]);
    jobs.stage.until("work", || (jobs.record(&id)["detail"] == "busy").then_some(()));
    kill(jobs.host(&id), Signal::INT);
    let record = jobs.until_state(&id, "done");
    assert_eq!(record["detail"], "busy");
    jobs.until_log(&format!("bg settled {id} (done)"));
    assert_eq!(jobs.door(&id), "ended");
    assert_eq!(jobs.entry(&id), None);
}

#[test]
fn one_interrupt_to_the_host_leaves_the_record_of_a_blocked_job_as_it_is() {
    let jobs = Jobs::new();
    let id = jobs.start(&["--", "work"], &[WAITING]);
    let before = jobs.until_state(&id, "blocked");
    kill(jobs.host(&id), Signal::INT);
    jobs.until_log(&format!("bg settled {id} (done)"));
    assert_eq!(jobs.record(&id), before);
    assert_eq!(jobs.worker(&id), Value::Null);
    assert_eq!(jobs.listed(&[])[0]["state"], "blocked", "still listed, without a process");
}

#[test]
fn a_job_deaf_to_interrupts_lives_on_until_it_is_killed() {
    let jobs = Jobs::new();
    let id = jobs.start(&["--", "work"], &[ENDLESS, ("job_ignore_sigint", "true")]);
    let entry = jobs.until_entry(&id);
    let session = u32::try_from(entry["pid"].as_u64().expect("a pid")).expect("a pid");
    kill(jobs.host(&id), Signal::INT);
    kill(session, Signal::INT);
    assert_eq!(jobs.run(&["stop", &id]).code, Some(0));
    assert!(jobs.log().contains(&format!("bg settled {id} (killed)")), "not (done)");
}

#[test]
fn a_killed_host_is_started_again_or_stays_lost() {
    let jobs = Jobs::new();
    let again = jobs.start(&["--", "work"], &[ENDLESS, ("bg_respawn_ms", "1")]);
    // The service has the knobs of the command that started it.
    jobs.until_entry(&again);
    let first = jobs.host(&again);
    kill(first, Signal::KILL);
    let worker = jobs.stage.until("a second host", || {
        Some(jobs.worker(&again)).filter(|worker| worker["attempt"] == 2)
    });
    assert_ne!(worker["pid"], json!(first));

    let other = Jobs::new();
    let lost = other.start(&["--", "work"], &[ENDLESS, ("bg_respawn_ms", "null")]);
    other.until_entry(&lost);
    kill(other.host(&lost), Signal::KILL);
    other.stage.until("an empty roster", || other.worker(&lost).is_null().then_some(()));
    assert_eq!(other.record(&lost)["state"], "working");
}

#[test]
fn jobs_outlive_a_killed_service_and_the_next_one_takes_them_over() {
    let jobs = Jobs::new();
    let first = jobs.start(&["--", "one"], &[ENDLESS]);
    let second = jobs.start(&["--", "two"], &[ENDLESS]);
    jobs.until_entry(&first);
    jobs.until_entry(&second);
    let host = jobs.host(&first);
    kill(jobs.service(), Signal::KILL);
    jobs.stage.until("no service", || {
        jobs.run(&["daemon", "status"]).stdout.starts_with("not running").then_some(())
    });
    // Without a service, a command ends what the last roster names.
    assert_eq!(jobs.run(&["stop", &second]).stdout, format!("stopped {second}\n"));
    assert_eq!(jobs.record(&second)["state"], "stopped");
    jobs.start(&["--", "three"], &[ENDLESS]);
    assert!(jobs.log().contains("bg adopt: adopted=1 respawned=0 dead=0"), "{}", jobs.log());
    assert_eq!(jobs.host(&first), host);
    kill(host, Signal::INT);
    jobs.until_log(&format!("bg settled {first} (done)"));
}

#[test]
fn a_service_told_to_stop_ends_its_jobs_and_nothing_can_be_removed_without_one() {
    let jobs = Jobs::new();
    let id = jobs.start(&["--", "work"], &[ENDLESS]);
    let refused = jobs.run(&["daemon", "stop"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("Run `claude daemon stop --any` to stop it."));
    let stopped = jobs.run(&["daemon", "stop", "--any"]);
    assert!(stopped.stdout.starts_with("stopped (terminated 1 background session)\n"));
    jobs.until_state(&id, "stopped");
    jobs.until_gone(&jobs.stage.home.join("daemon.lock"));
    for command in ["stop", "rm"] {
        let done = jobs.run(&[command, &id]);
        assert_eq!(done.code, Some(1), "{command}");
        assert!(done.stderr.starts_with(&format!("couldn't confirm {id} was stopped")));
    }
    assert!(jobs.dir(&id).exists());
    assert_eq!(jobs.run(&["daemon", "stop", "--any"]).stdout, "no daemon running\n");
}

#[test]
fn a_wrong_flag_fails_the_job_and_not_the_dispatch() {
    let jobs = Jobs::new();
    for (args, words) in [
        (&["--bogus", "--", "x"][..], "exit 1 before init — error: unknown option '--bogus'"),
        (&["--permission-mode", "odd", "--", "x"], "argument 'odd' is invalid. Allowed choices"),
        (
            &["--resume", "11111111-2222-4333-8444-555555555555"],
            "source session 11111111-2222-4333-8444-555555555555 not found",
        ),
    ] {
        let id = jobs.start(args, &[]);
        let record = jobs.until_state(&id, "failed");
        assert!(record["detail"].as_str().expect("a text").contains(words), "{record}");
        jobs.until_log(&format!("bg settled {id} (crashed)"));
    }
}

#[test]
fn a_resumed_job_is_a_new_one_and_a_respawned_one_the_same() {
    let jobs = Jobs::new();
    let old = jobs.start(&["--", "look"], &[QUICK]);
    let session = jobs.until_state(&old, "done")["sessionId"].clone();
    jobs.until_log(&format!("bg settled {old} (done)"));
    let new = jobs.start(&["--resume", session.as_str().expect("a session")], &[]);
    assert_ne!(new, old);
    jobs.until_entry(&new);
    let launch = jobs.worker(&new)["dispatch"]["launch"].clone();
    assert_eq!((&launch["mode"], &launch["sessionId"]), (&json!("resume"), &session));
    let record = jobs.record(&new);
    assert_eq!(record["needs"], "send a prompt to start");
    assert_eq!(jobs.listed(&[])[0]["state"], "blocked", "an idle job waits");

    assert_eq!(jobs.run(&["respawn", &old]).stdout, format!("respawned {old}\n"));
    assert_eq!(jobs.record(&old)["state"], "running");
    assert_eq!(jobs.until_entry(&old)["sessionId"], session);
}

#[test]
fn the_knobs_of_a_dispatch_change_what_is_said_and_what_is_left() {
    let jobs = Jobs::new();
    let bg = |kind| jobs.stage.run(&jobs.cwd, &["--bg", "--", "x"], &[ENDLESS, ("bg", kind)]);
    let count = || jobs.listed(&["--all"]).len();
    assert_eq!(bg("no_id").stdout, "backgrounded\n");
    assert_eq!(count(), 1);
    let reworded = bg("reworded").stdout;
    assert!(reworded.starts_with("Session ") && !reworded.contains("backgrounded"), "{reworded}");
    assert_eq!(count(), 2);
    let refused = bg("rc1");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(bg("ack_then_lost").stdout.starts_with("backgrounded · "));
    assert_eq!(count(), 2);
    let mut command = jobs.stage.command(&jobs.cwd, &[ENDLESS, ("bg", "hang")]);
    let endless = stage::Process::of(command.args(["--bg", "--", "x"]).spawn().expect("a start"));
    jobs.stage.until("a third job", || (count() == 3).then_some(()));
    endless.signal(Signal::KILL);
}

#[test]
fn without_a_login_a_job_is_blocked_for_good() {
    let jobs = Jobs::new();
    let id = jobs.start(&["--rc", "--", "work"], &[("auth", "logged_out")]);
    let record = jobs.until_state(&id, "blocked");
    assert_eq!(record["needs"], "login required — run /login");
    assert!(record.get("bridgeSessionId").is_none(), "no door without an account");
}

#[test]
fn rules_of_a_scenario_choose_the_nth_job_of_a_directory() {
    let jobs = Jobs::new();
    let scenario = jobs.stage.root.join("scenario.json");
    let rules = json!({
        "job_script": [[0, { "state": "working" }]],
        "rules": [{
            "match": { "form": "bg", "nth": 2 },
            "set": { "job_script": [[0, { "state": "failed", "detail": "the second" }]] },
        }],
    });
    fs::write(&scenario, rules.to_string()).expect("a scenario");
    let start = || {
        let mut command = jobs.stage.command(&jobs.cwd, &[]);
        command.env("AGENT_SIM_SCENARIO", &scenario).args(["--bg", "--", "x"]);
        let done = command.output().expect("the program runs");
        let text = String::from_utf8(done.stdout).expect("text");
        text.strip_prefix("backgrounded · ").expect("an id")[..8].to_owned()
    };
    let (first, second) = (start(), start());
    assert_eq!(jobs.until_state(&second, "failed")["detail"], "the second");
    assert_eq!(jobs.record(&first)["state"], "working");
}

#[test]
fn an_agent_before_background_sessions_knows_none_of_it() {
    let jobs = Jobs::new();
    let old = &[("profile", "2.1.130")];
    let done = jobs.stage.run(&jobs.cwd, &["--bg", "--", "x"], old);
    assert_eq!((done.code, done.stderr.as_str()), (Some(1), "error: unknown option '--bg'\n"));
    assert!(!jobs.stage.home.join("jobs").exists());
}

#[test]
fn a_newer_agent_takes_a_job_only_where_it_is_trusted_and_calls_it_a_session() {
    let jobs = Jobs::new();
    let new = &[ENDLESS, ("profile", "2.1.330")];
    let elsewhere = jobs.stage.directory("elsewhere");
    let refused = jobs.stage.run(&elsewhere, &["--bg", "--", "x"], new);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.starts_with("Workspace not trusted. Run `claude` in "));
    assert!(!jobs.stage.home.join("jobs").exists());
    assert_eq!(jobs.stage.run(&jobs.cwd, &["--bg", "--", "x"], new).code, Some(0));
    let unknown = jobs.stage.run(&jobs.cwd, &["rm", "deadbeef"], new);
    assert_eq!(unknown.stderr, "No session matching 'deadbeef'\n");
}

#[test]
fn parallel_dispatches_share_one_service() {
    let jobs = Jobs::new();
    let start = || {
        let mut command = jobs.stage.command(&jobs.cwd, &[ENDLESS]);
        command.args(["--bg", "--", "x"]);
        stage::Process::of(command.stdout(std::process::Stdio::null()).spawn().expect("a start"))
    };
    let mut starts: Vec<_> = (0..6).map(|_| start()).collect();
    for start in &mut starts {
        assert_eq!(start.wait().code(), Some(0));
    }
    assert_eq!(jobs.log().matches("daemon start").count(), 1);
    assert_eq!(jobs.listed(&[]).len(), 6);
}
