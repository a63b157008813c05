//! The simulated standard bridge: its checks, its files, its sessions and its ends.

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Stage, feed, lines, read, value_of};

const PROGRAM: &str = env!("CARGO_BIN_EXE_svc-agent-sim");
/// The poll loop comes at once.
const NOW: (&str, &str) = ("ready_ms", "0");
/// Ends by itself once everything of a start has happened.
const BRIEF: [(&str, &str); 2] = [NOW, ("exit_after_ready_ms", "0")];

#[test]
fn a_logged_out_account_hides_every_other_mistake() {
    let stage = Stage::new(PROGRAM);
    let project = stage.directory("untrusted");
    for auth in ["logged_out", "api_key", "oauth_token"] {
        let plain = stage.run(&project, &["remote-control", "--bogus"], &[("auth", auth)]);
        assert_eq!(plain.code, Some(1));
        assert!(plain.stderr.starts_with("Error: You must be logged in to use Remote Control."));
        assert!(!plain.stderr.contains("auth state"), "{}", plain.stderr);
    }
    let (done, log) = stage.start(&project, &[], &[("fatal", "login")]);
    assert!(done.stderr.contains("[debug] Remote Control auth state:\n  isBareMode=false"));
    assert!(log.contains("[DEBUG] MDM settings load completed"), "{log}");
    assert!(!log.contains("[bridge:init]"), "{log}");
}

#[test]
fn wrong_arguments_end_with_the_words_of_the_agent() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    for (args, words) in [
        (&["--bogus"][..], "Unknown argument: --bogus\nRun 'claude remote-control --help'"),
        (&["--name"], "Unknown argument: --name"),
        (&["--verbose=1"], "Unknown argument: --verbose=1"),
        (&["--spawn", "up"], "--spawn requires one of: session, same-dir, worktree (got: up)"),
        (&["--spawn"], "--spawn requires one of: session, same-dir, worktree (got: <missing>)"),
        (&["--spawn=session", "--spawn=session"], "--spawn may only be specified once"),
        (&["--capacity", "0"], "--capacity requires a positive integer (got: 0)"),
        (&["--capacity", "2", "--capacity", "2"], "--capacity may only be specified once"),
        (&["--spawn", "session", "--capacity", "2"], "--capacity cannot be used with"),
        (&["--permission-mode", "yolo"], "Invalid permission mode 'yolo'. Valid modes: "),
    ] {
        let done = stage.start(&project, args, &[]).0;
        assert_eq!(done.code, Some(1), "{args:?}");
        assert!(done.stderr.starts_with(&format!("Error: {words}")), "{args:?}: {}", done.stderr);
    }
    let help = stage.run(&project, &["remote-control", "--help"], &[]);
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("--capacity <N>"));
}

#[test]
fn an_untrusted_directory_is_refused_by_the_rule_of_the_profile() {
    let mut stage = Stage::new(PROGRAM);
    let plain = stage.directory("plain");
    let (done, log) = stage.start(&plain, &[], &BRIEF);
    assert_eq!(done.code, Some(1));
    let words = format!("Error: Workspace not trusted. Please run `claude` in {}", plain.display());
    assert!(done.stderr.starts_with(&words), "{}", done.stderr);
    assert!(!log.contains("[bridge:"), "{log}");

    let inner = stage.directory("outer/repository");
    fs::create_dir(inner.join(".git")).unwrap();
    let outer = stage.root.join("outer");
    stage.trust(&outer);
    let ends = |profile| {
        let knobs = [BRIEF[0], BRIEF[1], ("exit_code", "5"), ("profile", profile)];
        stage.start(&inner, &[], &knobs).0.code
    };
    assert_eq!(ends("2.1.197"), Some(5), "an ancestor counts");
    assert_eq!(ends("2.1.232"), Some(1), "a repository needs its own key");
}

#[test]
fn the_one_time_question_is_asked_once_and_silence_ends_the_start() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut config: Value = serde_json::from_str(&read(&stage.home.join(".claude.json"))).unwrap();
    config.as_object_mut().unwrap().remove("remoteDialogSeen");
    stage.write_config(&config);
    let silent = stage.start(&project, &[], &BRIEF).0;
    assert_eq!(silent.code, Some(0));
    assert!(silent.stdout.contains("Enable Remote Control? (y/n)"));

    let mut command = stage.command(&project, &[NOW, ("exit_at_ms", "50"), ("exit_code", "5")]);
    command.arg("remote-control");
    assert_eq!(feed(command, "yes\n").wait().code(), Some(5));
    let config: Value = serde_json::from_str(&read(&stage.home.join(".claude.json"))).unwrap();
    assert_eq!(config["remoteDialogSeen"], true);
    assert!(config["projects"].is_object(), "other keys stay");
    let asked = stage.start(&project, &[], &BRIEF).0;
    assert!(!asked.stdout.contains("Enable Remote Control?"));
}

#[test]
fn a_start_writes_the_markers_in_order_and_then_the_pointer() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.repository("demo");
    let mut bridge = stage.bridge(&project, &["same-dir", "--capacity", "4"], &[]);
    bridge.until_ready();
    let text = bridge.text();
    let marks = [
        "[DEBUG] [bridge:init] bridgeId=",
        "[DEBUG] [bridge:init] sandbox=false debugFile=",
        "[DEBUG] [bridge:api] POST /v1/environments/bridge -> 200 environment_id=env_01SIM",
        "[DEBUG] [bridge:init] Registered, server environmentId=env_01SIM",
        "[DEBUG] [bridge:init] Created initial session session_01SIM",
        "[DEBUG] [bridge:pointer] wrote ",
        "[DEBUG] [bridge:work] Starting poll loop spawnMode=same-dir maxSessions=4 environmentId=",
    ];
    let places: Vec<_> = marks.iter().map(|mark| text.find(mark).expect(mark)).collect();
    assert!(places.is_sorted(), "{text}");
    assert!(text.contains(" branch=main "), "{text}");
    for line in text.lines() {
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert!(rest.starts_with("[DEBUG] "), "{line}");
    }
    let environment = value_of(&text, "environment_id").unwrap();
    let session = text.split("initial session ").nth(1).unwrap().lines().next().unwrap();
    let pointer = stage.pointer(&project);
    assert_eq!(pointer["environmentId"], json!(environment));
    assert_eq!(pointer["sessionId"], json!(session));
    assert_eq!(pointer["source"], "standalone");
    assert_eq!(pointer["pid"], json!(bridge.process.pid));
    assert!(pointer["procStart"].as_str().unwrap().parse::<u64>().is_ok());
    let shown = bridge.stop();
    assert!(shown.contains("[bridge:shutdown] SIGINT received, shutting down"));
    assert!(
        read(&bridge.output).contains(&format!("https://claude.ai/code?environment={environment}"))
    );
}

#[test]
fn the_debug_file_is_appended_to_and_keeps_its_mode() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let log = stage.root.join("logs/made-before.log");
    fs::write(&log, "first line\n").unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
    let args = ["remote-control", "--debug-file", log.to_str().unwrap()];
    stage.run(&project, &args, &BRIEF);
    let text = read(&log);
    assert!(text.starts_with("first line\n") && text.contains("Starting poll loop"));
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn each_value_of_ready_leaves_out_exactly_its_marker() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    for (ready, environment, session, polls) in [
        ("ok", true, true, true),
        ("never", false, false, false),
        ("no_poll_loop", true, true, false),
        ("no_env", false, true, true),
        ("no_session", true, false, true),
    ] {
        let _ = fs::remove_file(stage.pointer_file(&project));
        let knobs = [("ready", ready), ("ready_ms", "20"), ("exit_at_ms", "200")];
        let (done, log) = stage.start(&project, &[], &knobs);
        assert_eq!(done.code, Some(1));
        assert_eq!(log.contains("env_01SIM"), environment, "{ready}: {log}");
        assert_eq!(log.contains("Created initial session"), session, "{ready}: {log}");
        assert_eq!(log.contains("Starting poll loop"), polls, "{ready}: {log}");
        assert_eq!(stage.pointer_file(&project).exists(), environment && session, "{ready}");
    }
}

#[test]
fn a_canned_failure_ends_with_its_words() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    for (fatal, words) in [
        ("login", "You must be logged in to use Remote Control"),
        ("trust", "Workspace not trusted"),
        ("bad_argument", "Unknown argument:"),
        ("network", "ENOTFOUND"),
        ("already_served", "This folder is already served by another Claude Code"),
        ("org_policy", "disabled by your organization's policy"),
        ("config_error", "Configuration error in "),
    ] {
        let knobs = [("fatal", fatal), NOW, ("stderr_text", "a word before")];
        let (done, log) = stage.start(&project, &[], &knobs);
        assert_eq!(done.code, Some(1), "{fatal}");
        assert!(done.stderr.starts_with("a word before\n"), "{fatal}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{fatal}: {}", done.stderr);
        assert!(!log.contains("environment_id="), "{fatal}: {log}");
    }
    assert!(!stage.pointer_file(&project).exists());
    assert!(fs::read_dir(stage.home.join("sessions")).unwrap().next().is_none());
}

#[test]
fn worktree_mode_needs_a_repository() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("plain");
    let done = stage.start(&project, &["--spawn", "worktree"], &BRIEF).0;
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.starts_with("Error: Worktree mode requires a git repository"));
}

#[test]
fn an_orderly_stop_keeps_the_environment_for_the_next_start() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut first = stage.bridge(&project, &[], &[NOW]);
    first.until_ready();
    let text = first.stop();
    let environment = value_of(&text, "environment_id").unwrap();
    assert!(text.contains(&format!(
        "[bridge:shutdown] Skipping archive+deregister to allow resume (env {environment}"
    )));
    let mut second = stage.bridge(&project, &[], &[NOW]);
    second.until_ready();
    second.signal(Signal::TERM);
    assert_eq!(second.process.wait().code(), Some(0));
    let text = second.text();
    assert!(text.contains(&format!("Found prior environment {environment} in pointer (ageMs=")));
    assert_eq!(value_of(&text, "reuseEnvironmentId"), Some(environment.clone()));
    assert_eq!(value_of(&text, "environment_id"), Some(environment));
    assert!(!text.contains("Created initial session"), "{text}");
    assert!(text.contains("[bridge:shutdown] SIGTERM received, shutting down"), "{text}");
}

#[test]
fn a_pointer_without_a_session_reuses_the_environment_with_a_new_one() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    stage.bridge(&project, &[], &BRIEF).process.wait();
    let mut pointer = stage.pointer(&project);
    let environment = pointer["environmentId"].as_str().unwrap().to_owned();
    pointer["sessionId"] = json!("");
    fs::write(stage.pointer_file(&project), pointer.to_string()).unwrap();
    let log = stage.start(&project, &[], &BRIEF).1;
    assert_eq!(value_of(&log, "environment_id"), Some(environment));
    assert!(log.contains("Created initial session"), "{log}");
}

#[test]
fn a_pointer_that_does_not_count_is_cleared() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    stage.bridge(&project, &[], &BRIEF).process.wait();
    let path = stage.pointer_file(&project);
    let good = read(&path);
    let old = SystemTime::now() - Duration::from_secs(5 * 3600);
    for (text, aged, words) in [
        ("not json", false, "invalid schema, clearing"),
        (r#"{"sessionId":"","environmentId":5,"source":"standalone"}"#, false, "invalid schema"),
        (&good.replace("standalone", "next"), false, "invalid schema"),
        (&good, true, "stale (>4h mtime), clearing"),
    ] {
        fs::write(&path, text).unwrap();
        if aged {
            fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        }
        let log = stage.start(&project, &[], &BRIEF).1;
        assert!(log.contains(words), "{text}: {log}");
        assert!(!log.contains("Found prior environment"), "{log}");
    }
}

#[test]
fn a_second_bridge_leaves_the_pointer_of_a_live_one_alone() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let first = stage.bridge(&project, &[], &[NOW]);
    first.until_ready();
    let before = stage.pointer(&project);
    let mut second = stage.bridge(&project, &[], &[NOW]);
    second.until_ready();
    let text = second.stop();
    assert!(text.contains(&format!("Pointer writer pid {} still running", first.process.pid)));
    assert!(text.contains("[bridge:shutdown] Environment deregistered, bridge offline"), "{text}");
    assert_eq!(stage.pointer(&project), before);
}

#[test]
fn a_lost_pointer_is_a_conflict_from_2_1_280_on() {
    let mut stage = Stage::new(PROGRAM);
    for (profile, code) in [("2.1.197", 5), ("2.1.280", 1)] {
        let project = stage.project(profile);
        let knobs = [NOW, BRIEF[1], ("exit_code", "5"), ("profile", profile)];
        assert_eq!(stage.start(&project, &[], &knobs).0.code, Some(5));
        assert_eq!(stage.start(&project, &[], &knobs).0.code, Some(5), "reused");
        fs::remove_file(stage.pointer_file(&project)).unwrap();
        let done = stage.start(&project, &[], &knobs).0;
        assert_eq!(done.code, Some(code), "{profile}");
        assert_eq!(done.stderr.contains("already served"), code == 1, "{}", done.stderr);
    }
}

#[test]
fn a_deaf_bridge_ignores_exactly_the_signals_it_should() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut bridge = stage.bridge(&project, &[], &[NOW, ("ignore_sigint", "true")]);
    bridge.until_ready();
    bridge.signal(Signal::INT);
    bridge.signal(Signal::TERM);
    assert_eq!(bridge.process.wait().code(), Some(0));
    let text = bridge.text();
    assert!(!text.contains("SIGINT received") && text.contains("SIGTERM received"), "{text}");
    let deaf = [NOW, ("ignore_sigint", "true"), ("ignore_sigterm", "true")];
    let mut bridge = stage.bridge(&project, &[], &deaf);
    bridge.until_ready();
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        bridge.signal(signal);
    }
    assert_eq!(bridge.process.wait_signal(), Some(9));
    assert!(!bridge.text().contains("[bridge:shutdown]"));
}

#[test]
fn a_planned_death_has_its_code_or_its_signal_and_its_last_words() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let text = ("stderr_text", "boom");
    let done = stage.start(&project, &[], &[NOW, BRIEF[1], ("exit_code", "42"), text]).0;
    assert_eq!((done.code, done.stderr.as_str()), (Some(42), "boom\n"));
    for (name, number) in [("SIGKILL", 9), ("SEGV", 11), ("15", 15)] {
        let knobs = [NOW, BRIEF[1], ("exit_signal", name)];
        let mut bridge = stage.bridge(&project, &[], &knobs);
        assert_eq!(bridge.process.wait_signal(), Some(number), "{name}");
        let entry = stage.home.join(format!("sessions/{}.json", bridge.process.pid));
        assert!(entry.exists(), "no clean exit, so the entry stays");
    }
}

#[test]
fn a_connected_session_is_a_worker_that_plays_its_script() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let turns = r#"[{"role":"user","text":"hello"},
        {"role":"assistant","text":"hi there","tool":"Read"},
        {"role":"permission","tool":"Bash","text":"rm -r build"}]"#;
    let knobs = [NOW, ("turns", turns), ("record_env", r#"["CLAUDE_CODE_ENVIRONMENT_KIND"]"#)];
    let mut bridge = stage.bridge(&project, &[], &knobs);
    bridge.until_ready();
    let session = stage.remote(&["connect", project.to_str().unwrap()]);
    bridge.until(&format!("[bridge:perm] sessionId={session} tool=Bash request_id="));
    let text = bridge.text();
    assert!(text.contains(&format!("[bridge:activity] sessionId={session} text \"hi there\"")));
    assert!(text.contains(&format!("[bridge:activity] sessionId={session} tool_use name=Read")));
    let started = bridge.until(&format!("[bridge:session] sessionId={session} pid="));
    let pid: u32 = value_of(&started, " pid").unwrap().parse().unwrap();

    let entry: Value =
        serde_json::from_str(&read(&stage.home.join(format!("sessions/{pid}.json")))).unwrap();
    assert_eq!((&entry["kind"], &entry["status"]), (&json!("interactive"), &json!("waiting")));
    assert_eq!(entry["cwd"], json!(project));
    let uuid = entry["sessionId"].as_str().unwrap();
    let transcript = stage.pointer_file(&project).with_file_name(format!("{uuid}.jsonl"));
    let roles: Vec<_> =
        lines(&transcript).iter().map(|line| line["message"]["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "assistant"]);
    let call = stage.calls().into_iter().find(|call| call["pid"] == json!(pid)).unwrap();
    assert_eq!(call["env"]["CLAUDE_CODE_ENVIRONMENT_KIND"], "bridge");
    assert_eq!(call["argv"][0], "--print");
    let beside = |name: String| bridge.log.with_file_name(name).exists();
    assert!(
        beside(format!("0-{session}.log")) && beside(format!("bridge-transcript-{session}.jsonl"))
    );

    let text = bridge.stop();
    assert!(text.contains(&format!("sessionId={session} interrupted signal=SIGTERM pid={pid}")));
    assert!(!stage.home.join(format!("sessions/{pid}.json")).exists());
}

#[test]
fn workers_end_with_a_bridge_that_was_killed() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut bridge = stage.bridge(&project, &[], &[NOW, ("turns", "[]")]);
    bridge.until_ready();
    stage.remote(&["connect", project.to_str().unwrap()]);
    let pid = value_of(&bridge.until(" pid="), " pid").unwrap();
    let entry = stage.home.join(format!("sessions/{pid}.json"));
    stage.until("the worker's entry", || entry.exists().then_some(()));
    bridge.signal(Signal::KILL);
    bridge.process.wait();
    stage.until("the worker's end", || (!entry.exists()).then_some(()));
}

#[test]
fn an_archived_session_ends_its_worker_with_the_poison_message() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut bridge = stage.bridge(&project, &[], &[NOW, ("turns", "[]")]);
    bridge.until_ready();
    for (act, reason) in [("archive", Some("archived")), ("delete", Some("deleted")), ("end", None)]
    {
        let session = stage.remote(&["connect", project.to_str().unwrap()]);
        bridge.until(&format!("sessionId={session} pid="));
        stage.remote(&[act, &session]);
        bridge.until(&format!("sessionId={session} completed exit_code=0"));
        let message = bridge.text().lines().find_map(|line| {
            let (_, json) = line.split_once(&format!("sessionId={session} <<< "))?;
            serde_json::from_str::<Value>(json).ok().filter(|m| m["type"] == "control_request")
        });
        let found = message.as_ref().map(|m| (&m["request"]["subtype"], &m["request"]["reason"]));
        let expected = reason.map(|reason| (json!("end_session"), json!(reason)));
        assert_eq!(found, expected.as_ref().map(|(a, b)| (a, b)), "{act}");
        bridge.until("returning to idle (multi-session mode)");
    }
    bridge.stop();
}

#[test]
fn a_single_session_bridge_ends_with_its_session() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut bridge = stage.bridge(&project, &["session"], &[NOW, ("turns", "[]")]);
    let line = bridge.until("Starting poll loop");
    assert!(line.contains("spawnMode=single-session maxSessions=1 "), "{line}");
    let session = stage.pointer(&project)["sessionId"].as_str().unwrap().to_owned();
    stage.remote(&["connect", &session]);
    bridge.until(&format!("sessionId={session} pid="));
    stage.remote(&["end", &session]);
    assert_eq!(bridge.process.wait().code(), Some(0));
    assert!(bridge.text().contains("Session completed, aborting poll loop"));
}

#[test]
fn a_resumed_session_that_is_gone_poisons_the_start_and_a_new_one_does_not() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let poison = r#""subtype":"end_session","reason":"archived""#;
    let knob = [NOW, ("poison_ms", "10"), ("exit_at_ms", "300")];
    assert!(!stage.start(&project, &[], &knob).1.contains(poison), "a cold start");
    assert!(stage.start(&project, &[], &knob).1.contains(poison), "a reattach");
    let always = [NOW, knob[1], knob[2], ("poison_on", "any")];
    let fresh = stage.project("fresh");
    assert!(stage.start(&fresh, &[], &always).1.contains(poison), "a cold start, if wanted");

    let session = stage.pointer(&project)["sessionId"].as_str().unwrap().to_owned();
    stage.remote(&["archive", &session]);
    let bridge = stage.bridge(&project, &[], &[NOW]);
    let line = bridge.until(poison);
    assert!(line.contains(&format!("[bridge:ws] sessionId={session} <<< ")), "{line}");
}

#[test]
fn a_script_says_how_the_link_is_in_the_lines_of_the_agent() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let script = json!([
        [0, { "poll": 100 }],
        [0, { "connection_error": { "elapsed_s": 12, "cause": "ECONNREFUSED" } }],
        [0, { "poll_status": 503 }],
        [0, { "reconnected": 14 }],
        [0, { "unauthorized": {} }],
        [0, { "slept": 3600 }],
        [0, { "heartbeat_failed": { "session": "session_01SIMx" } }],
        [0, { "at_capacity": [4, 4] }],
        [0, { "perm": { "tool": "Bash", "session": "session_01SIMx" } }],
        [0, { "activity": { "what": "tool_start Bash ls", "session": null } }],
        [0, { "skipping": "no tokens" }],
        [0, { "line": "[bridge:work] anything" }],
        [0, { "give_up": 10 }],
    ])
    .to_string();
    for verbose in [true, false] {
        let flags: &[&str] = if verbose { &["same-dir", "--verbose"] } else { &["same-dir"] };
        let mut bridge = stage.bridge(&project, flags, &[NOW, ("link", &script)]);
        assert_eq!(bridge.process.wait().code(), Some(1));
        let (log, output) = (bridge.text(), read(&bridge.output));
        for line in [
            "[bridge:api] GET .../work/poll -> 200 (no work, 100 consecutive empty polls)",
            "[bridge:api] GET .../work/poll -> 503",
            "[bridge:poll] Reconnected after 14s",
            "[bridge:api] poll: 401 received",
            "Retry after refresh also got 401",
            "[bridge:work] Detected system sleep (3600s gap), resetting error budget",
            "[bridge:heartbeat] Failed for sessionId=session_01SIMx",
            "[bridge:work] At capacity (4/4), cannot spawn new session",
            "[bridge:perm] sessionId=session_01SIMx tool=Bash request_id=req_sim (not auto-",
            " tool_start Bash ls",
            "[bridge:repl] Skipping: no tokens",
            "[bridge:work] anything",
        ] {
            assert!(log.contains(line), "{line}: {log}");
        }
        assert_eq!(output.contains("retrying in 2.0s (12s elapsed): ECONNREFUSED"), verbose);
        assert!(output.contains("Server unreachable for 10 minutes, giving up."), "{output}");
    }
}

#[test]
fn a_death_leaves_the_conversations_of_all_that_were_attached() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut bridge = stage.bridge(&project, &[], &[]);
    bridge.until_ready();
    let sessions = stage.remote(&["connect", project.to_str().unwrap(), "4"]);
    assert_eq!(sessions.lines().count(), 4);
    let conversations = || {
        let dir = stage.pointer_file(&project);
        let entries = fs::read_dir(dir.parent().unwrap()).unwrap();
        let names = entries.map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).count()
    };
    stage.until("four transcripts", || (conversations() == 4).then_some(()));
    bridge.signal(Signal::KILL);
    assert_eq!(bridge.process.wait_signal(), Some(9));
    assert_eq!(conversations(), 4);
}
