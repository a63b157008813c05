//! The entry of the simulator: gate, records, knobs, short commands.

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use stage::{Stage, read};

const PROGRAM: &str = env!("CARGO_BIN_EXE_svc-agent-sim");

#[test]
fn it_refuses_to_stand_in_without_the_variable() {
    let stage = Stage::new(PROGRAM);
    let output =
        stage.command(&stage.root, &[]).env("AGENT_SIM", "yes").arg("--version").output().unwrap();
    assert_eq!(output.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&output.stderr).contains("AGENT_SIM is not 1"));
    assert!(stage.calls().is_empty());
}

#[test]
fn it_refuses_a_home_that_was_not_made_for_it() {
    let stage = Stage::bare(PROGRAM);
    fs::create_dir(&stage.home).unwrap();
    let done = stage.run(&stage.root, &["auth", "status"], &[]);
    assert_eq!(done.code, Some(70));
    assert!(done.stderr.contains("svc-agent-sim init"), "{}", done.stderr);
    assert_eq!(fs::read_dir(&stage.home).unwrap().count(), 0, "nothing may be written");
    let remote = stage.run(&stage.root, &["remote", "show"], &[]);
    assert_eq!(remote.code, Some(70));
}

#[test]
fn init_takes_a_new_directory_and_never_one_a_real_agent_uses() {
    let stage = Stage::bare(PROGRAM);
    fs::create_dir(&stage.home).unwrap();
    fs::write(stage.home.join(".credentials.json"), "{}").unwrap();
    let home = stage.home.to_str().unwrap();
    let refused = stage.run(&stage.root, &["init", home], &[]);
    assert_eq!(refused.code, Some(70));
    assert!(refused.stderr.contains(".credentials.json"), "{}", refused.stderr);
    fs::remove_file(stage.home.join(".credentials.json")).unwrap();
    assert_eq!(stage.run(&stage.root, &["init", home], &[]).code, Some(0));
    // A double leaves such files itself: the second time is fine.
    stage.write_config(&json!({}));
    assert_eq!(stage.run(&stage.root, &["init", home], &[]).code, Some(0));
    assert_eq!(stage.run(&stage.root, &["--version"], &[]).code, Some(0));
}

#[test]
fn the_version_is_that_of_the_nearest_profile() {
    let stage = Stage::new(PROGRAM);
    let version = |knobs| stage.run(&stage.root, &["--version"], knobs).stdout;
    assert_eq!(version(&[]), "2.1.197 (Claude Code)\n");
    assert_eq!(version(&[("profile", "2.1.250")]), "2.1.232 (Claude Code)\n");
    assert_eq!(version(&[("version_output", "2.x")]), "2.x\n");
    assert_eq!(stage.run(&stage.root, &["-v"], &[]).stdout, "2.1.197 (Claude Code)\n");
}

#[test]
fn every_start_leaves_one_whole_record() {
    let stage = Stage::new(PROGRAM);
    let start = |n: usize| {
        let mut command = stage.command(&stage.root, &[("record_env", r#"["SEEN","ABSENT"]"#)]);
        command.env("SEEN", n.to_string()).env("UNSEEN", "secret");
        command.args(["auth", "status", "--json"]).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..12).map(start).collect();
    let pids: BTreeSet<u64> = children.iter().map(|child| u64::from(child.id())).collect();
    for mut child in children {
        child.wait().unwrap();
    }
    let calls = stage.calls();
    assert_eq!(calls.len(), 12);
    let recorded: BTreeSet<u64> = calls.iter().map(|c| c["pid"].as_u64().unwrap()).collect();
    assert_eq!(recorded, pids);
    let call = &calls[0];
    assert_eq!(call["argv"], json!(["auth", "status", "--json"]));
    assert_eq!(call["cwd"], json!(stage.root));
    assert_eq!(call["ppid"], json!(std::process::id()));
    assert_eq!(call["stdin"], "null");
    assert_eq!(call["tty"], false);
    assert_eq!(call["winsize"], Value::Null);
    assert_eq!(call["umask"].as_str().map(str::len), Some(3));
    let names = call["env_names"].as_array().unwrap();
    assert!(names.contains(&json!("UNSEEN")) && names.contains(&json!("SEEN")));
    let seen = call["env"].as_object().unwrap();
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["SEEN"]);
    assert!(!read(&stage.home.join(".agent-sim/calls.jsonl")).contains("secret"));
    let fds: Vec<&String> = call["fds"].as_object().unwrap().keys().collect();
    assert!(["0", "1", "2"].iter().all(|fd| fds.contains(&&(*fd).to_owned())), "{fds:?}");
}

#[test]
fn a_wrong_knob_is_named_and_the_start_still_recorded() {
    let stage = Stage::new(PROGRAM);
    for (knob, value, named) in [
        ("reddy", "ok", "reddy"),
        ("ready", "soon", "soon"),
        ("ready_ms", "-1", "ready_ms"),
        ("auth", "expiring:x", "expiring:x"),
        ("log_target", "rename_at_ms", "rename_at_ms"),
        ("exit_signal", "SIGNOT", "SIGNOT"),
        ("profile", "two", "two"),
    ] {
        let done = stage.run(&stage.root, &["--version"], &[(knob, value)]);
        assert_eq!(done.code, Some(70), "{knob}");
        let expected = if knob == "ready_ms" { "-1" } else { named };
        assert!(done.stderr.contains(expected), "{knob}: {}", done.stderr);
    }
    assert_eq!(stage.calls().len(), 7);
}

#[test]
fn what_the_build_does_not_simulate_says_so() {
    let stage = Stage::new(PROGRAM);
    let token = stage.run(&stage.root, &["setup-token"], &[]);
    assert_eq!(token.code, Some(1));
    assert!(token.stderr.contains("Raw mode is not supported"), "{}", token.stderr);
    for flags in [&["--remote-control", "x"][..], &["--continue", "--rc"]] {
        let flag_form = stage.run(&stage.root, flags, &[]);
        assert_eq!(flag_form.code, Some(1), "{flags:?}");
        assert!(flag_form.stderr.starts_with("Error: Input must be provided"), "{flags:?}");
    }
    let odd = stage.run(&stage.root, &["--frobnicate"], &[]);
    assert_eq!(
        (odd.code, odd.stderr.as_str()),
        (Some(1), "error: unknown option '--frobnicate'\n")
    );
}

#[test]
fn the_login_state_is_told_by_text_and_exit_code() {
    let stage = Stage::new(PROGRAM);
    for (auth, code, method) in [
        ("claude_ai", 0, "claude.ai"),
        ("api_key", 0, "api_key"),
        ("oauth_token", 0, "oauth_token"),
        ("logged_out", 1, "none"),
    ] {
        let done = stage.run(&stage.root, &["auth", "status", "--json"], &[("auth", auth)]);
        assert_eq!(done.code, Some(code), "{auth}");
        let state = done.json();
        assert_eq!(state["authMethod"], method);
        assert_eq!(state["loggedIn"], code == 0);
        assert_eq!(state["apiProvider"], "firstParty");
        assert_eq!(state.get("email").is_some(), auth == "claude_ai");
    }
    let garbage = stage.run(&stage.root, &["auth", "status", "--json"], &[("auth", "garbage")]);
    assert_eq!(garbage.code, Some(0));
    assert!(serde_json::from_str::<Value>(&garbage.stdout).is_err());
}

#[test]
fn a_login_that_expires_says_when_in_the_credentials_file() {
    let stage = Stage::new(PROGRAM);
    stage.run(&stage.root, &["auth", "status"], &[("auth", "expiring:60000")]);
    let file: Value =
        serde_json::from_str(&read(&stage.home.join(".credentials.json"))).expect("JSON");
    let started = stage.calls()[0]["ts"].as_u64().unwrap();
    let ends = file["claudeAiOauth"]["expiresAt"].as_u64().unwrap();
    assert!(ends >= started + 60_000, "{ends} after {started}");
}

#[test]
fn a_broken_agent_configuration_ends_a_bridge_and_is_replaced_by_other_commands() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let file = stage.home.join(".claude.json");
    for broken in ["", "{bad", "[1,"] {
        fs::write(&file, broken).unwrap();
        let bridge = stage.run(&project, &["remote-control"], &[]);
        assert_eq!(bridge.code, Some(1), "{broken:?}");
        assert!(bridge.stderr.contains("ConfigParseError: JSON Parse error"), "{}", bridge.stderr);
        assert_eq!(read(&file), broken, "a bridge leaves it alone");

        let list = stage.run(&project, &["agents", "--json"], &[]);
        assert_eq!((list.code, list.stdout.as_str()), (Some(1), ""), "{broken:?}");
        assert!(list.stderr.starts_with("Configuration error in "), "{}", list.stderr);
        assert!(serde_json::from_str::<Value>(&read(&file)).is_ok());

        fs::write(&file, broken).unwrap();
        let login = stage.run(&project, &["auth", "status"], &[]);
        assert!(login.stderr.starts_with("Configuration error in "), "{}", login.stderr);
        assert_eq!(login.json()["loggedIn"], true);
    }
    assert!(fs::read_dir(stage.home.join("backups")).unwrap().count() >= 3);
}

#[test]
fn the_session_list_can_be_wrong_in_every_documented_way() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let bridge = stage.bridge(&project, &[], &[("ready_ms", "0")]);
    bridge.until_ready();
    let list = |output| stage.run(&project, &["agents", "--json"], &[("agents_output", output)]);
    assert_eq!(list("ok").json().as_array().map(Vec::len), Some(1));
    assert_eq!(list("empty").stdout, "");
    assert!(serde_json::from_str::<Value>(&list("garbage").stdout).is_err());
    assert_eq!(list("object").json()["agents"].as_array().map(Vec::len), Some(1));
    assert!(list("huge").stdout.len() > 20_000_000);
    assert_eq!(list("missing_fields").json()[0].get("cwd"), None);
    assert_eq!(list("rc1").code, Some(1));
    let file = stage.root.join("list.json");
    fs::write(&file, "[{}]").unwrap();
    let literal = stage.run(
        &project,
        &["agents", "--json"],
        &[("agents_file", file.to_str().unwrap()), ("agents_output", "rc1")],
    );
    assert_eq!(literal.stdout, "[{}]");
    assert_eq!(stage.run(&project, &["agents"], &[]).code, Some(1));
}

#[test]
fn the_session_list_holds_live_processes_and_drops_the_files_of_dead_ones() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let other = stage.project("other");
    let mut first = stage.bridge(&project, &[], &[("ready_ms", "0")]);
    let mut second = stage.bridge(&other, &[], &[("ready_ms", "0")]);
    first.until_ready();
    second.until_ready();
    let list = |args: &[&str]| stage.run(&project, args, &[]).json();
    let all = list(&["agents", "--json", "--all"]);
    assert_eq!(all.as_array().map(Vec::len), Some(2));
    let mine = list(&["agents", "--json", "--cwd", project.to_str().unwrap()]);
    assert_eq!(mine.as_array().map(Vec::len), Some(1));
    assert_eq!(mine[0]["pid"], json!(first.process.pid));
    assert_eq!(mine[0]["cwd"], json!(project));
    assert_eq!(mine[0]["kind"], "interactive");
    assert_eq!(mine[0]["status"], "idle");
    assert_eq!(mine[0]["sessionId"].as_str().map(str::len), Some(36));
    assert!(mine[0]["startedAt"].is_u64());
    assert_eq!(mine[0].get("state"), None);

    // A clean exit takes the entry along, a killed process leaves it for the next reader.
    let entry = |pid| stage.home.join(format!("sessions/{pid}.json"));
    first.stop();
    assert!(!entry(first.process.pid).exists());
    second.signal(rustix::process::Signal::KILL);
    second.process.wait();
    assert!(entry(second.process.pid).exists());
    assert_eq!(list(&["agents", "--json"]), json!([]));
    assert!(!entry(second.process.pid).exists());
}

#[test]
fn agents_before_the_registry_show_no_status_and_no_files() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let old: stage::Knobs = &[("profile", "2.1.130"), ("ready_ms", "0")];
    let bridge = stage.bridge(&project, &[], old);
    bridge.until_ready();
    let list = stage.run(&project, &["agents", "--json"], old).json();
    assert_eq!(list[0]["pid"], json!(bridge.process.pid));
    assert_eq!(list[0].get("status"), None);
    assert!(!stage.home.join("sessions").exists());
}

#[test]
fn a_scenario_can_make_the_second_start_of_one_project_fail() {
    let mut stage = Stage::new(PROGRAM);
    let unlucky = stage.project("unlucky");
    let lucky = stage.project("lucky");
    let scenario = stage.root.join("scenario.json");
    let rules = json!({
        "exit_at_ms": 0, "exit_code": 7,
        "rules": [{
            "match": { "form": "standard", "project": "unl*", "nth": 2 },
            "set": { "exit_code": 9 },
        }],
    });
    fs::write(&scenario, rules.to_string()).unwrap();
    let knobs: stage::Knobs = &[("scenario", scenario.to_str().unwrap())];
    let code = |dir, knobs| stage.start(dir, &[], knobs).0.code;
    assert_eq!(code(&unlucky, knobs), Some(7));
    assert_eq!(code(&lucky, knobs), Some(7));
    assert_eq!(code(&unlucky, knobs), Some(9));
    assert_eq!(code(&unlucky, knobs), Some(7));
    // The environment beats the scenario, the project's own file beats both.
    let both = &[knobs[0], ("exit_code", "11")];
    assert_eq!(code(&lucky, both), Some(11));
    fs::write(lucky.join(".agent-sim.json"), r#"{"exit_code": 13}"#).unwrap();
    assert_eq!(code(&lucky, both), Some(13));
    assert_eq!(code(&unlucky, both), Some(11));
}
