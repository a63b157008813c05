//! The contract with the agent, as far as it holds without an account.
//!
//! Every test runs against the simulator, and also against a real agent when
//! `SVC_CONTRACT_AGENT` names its executable. A difference fails and names the agent: then the
//! simulator's profile is extended, never the product alone. What the product relies on is asked
//! of every version; what only the simulator repeats, of the version it repeats.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: what they cannot do fails the test that asked"
)]

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

#[path = "support/agents.rs"]
mod agents;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use agents::{Agent, agents, done};
use serde_json::{Value, json};
use stage::read;

#[test]
fn the_first_word_of_the_version_text_is_the_version() {
    for agent in agents() {
        for flag in ["--version", "-v"] {
            let done = agent.run(&[flag]);
            assert_eq!(done.code, Some(0), "{}", agent.name);
            let (version, rest) = done.stdout.split_once(' ').unwrap();
            assert_eq!(rest, "(Claude Code)\n", "{}", agent.name);
            let parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
            assert_eq!(parts.len(), 3, "{}: {version}", agent.name);
        }
    }
}

#[test]
fn logged_out_is_json_with_exit_code_1() {
    for agent in agents() {
        for args in [&["auth", "status", "--json"][..], &["auth", "status"]] {
            let done = agent.run(args);
            assert_eq!(done.code, Some(1), "{}: {}", agent.name, done.stderr);
            let expected =
                json!({ "loggedIn": false, "authMethod": "none", "apiProvider": "firstParty" });
            assert_holds(&agent, &done.json(), &expected);
        }
        let text = agent.run(&["auth", "status", "--text"]);
        assert_eq!(text.code, Some(1), "{}", agent.name);
        assert!(text.stdout.contains("Not logged in."), "{}: {}", agent.name, text.stdout);
    }
}

#[test]
fn a_key_in_the_environment_is_a_login_with_exit_code_0() {
    for agent in agents() {
        let done = done(
            agent
                .command()
                .env("AGENT_SIM_AUTH", "api_key")
                .env("ANTHROPIC_API_KEY", "sk-ant-none")
                .args(["auth", "status", "--json"]),
        );
        assert_eq!(done.code, Some(0), "{}: {}", agent.name, done.stderr);
        let expected = json!({
            "loggedIn": true, "authMethod": "api_key", "apiProvider": "firstParty",
            "apiKeySource": "ANTHROPIC_API_KEY",
        });
        assert_holds(&agent, &done.json(), &expected);
    }
}

/// Every expected field exists with its value; the described version has no other.
fn assert_holds(agent: &Agent, found: &Value, expected: &Value) {
    let found = found.as_object().unwrap();
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(found.get(field), Some(value), "{}: {field}", agent.name);
    }
    let extra = found.keys().find(|field| expected.get(field.as_str()).is_none());
    assert!(extra.is_none() || !agent.is_described(), "{}: {extra:?}", agent.name);
}

#[test]
fn an_unknown_option_is_refused_by_name() {
    for agent in agents() {
        for args in [&["--bogus"][..], &["auth", "status", "--bogus"], &["agents", "--bogus"]] {
            let done = agent.run(args);
            assert_eq!(done.code, Some(1), "{} {args:?}", agent.name);
            let words = "error: unknown option '--bogus'";
            assert!(done.stderr.starts_with(words), "{} {args:?}: {}", agent.name, done.stderr);
        }
    }
}

#[test]
fn the_session_list_is_the_registry_checked_for_life() {
    for agent in agents() {
        assert_eq!(agent.run(&["agents", "--json"]).json(), json!([]), "{}", agent.name);
        let mut live = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
        let start = start_ticks(live.id());
        let sessions = agent.stage.home.join("sessions");
        fs::create_dir_all(&sessions).unwrap();
        let register = |pid: u32, start: &str| {
            let entry = json!({
                "pid": pid, "sessionId": "11111111-2222-4333-8444-555555555555",
                "cwd": agent.cwd, "startedAt": 1_700_000_000_000_u64, "procStart": start,
                "version": "2.1.197", "peerProtocol": 1, "kind": "interactive",
                "entrypoint": "cli", "name": "by hand", "status": "idle",
                "updatedAt": 1_700_000_000_000_u64, "statusUpdatedAt": 1_700_000_000_000_u64,
            });
            fs::write(sessions.join(format!("{pid}.json")), entry.to_string()).unwrap();
        };
        register(live.id(), &start);
        // A pid of nobody, and a process that started at another time than recorded.
        register(4_190_000, "1");
        register(std::process::id(), "1");
        fs::write(sessions.join("7.json"), "{torn").unwrap();
        let list = agent.run(&["agents", "--json"]);
        let elsewhere = agent.run(&["agents", "--json", "--cwd", "/nowhere"]);
        live.kill().unwrap();
        live.wait().unwrap();

        assert_eq!(list.code, Some(0), "{}: {}", agent.name, list.stderr);
        let expected = json!([{
            "pid": live.id(), "cwd": agent.cwd, "kind": "interactive",
            "startedAt": 1_700_000_000_000_u64,
            "sessionId": "11111111-2222-4333-8444-555555555555",
            "name": "by hand", "status": "idle",
        }]);
        assert_eq!(list.json(), expected, "{}", agent.name);
        assert_eq!(elsewhere.json(), json!([]), "{}", agent.name);
        let left = sessions.join("4190000.json").exists();
        assert!(!left || !agent.is_described(), "{}: a dead one is dropped", agent.name);
        assert_eq!(agent.run(&["agents", "--json"]).json(), json!([]), "{}", agent.name);
    }
}

fn start_ticks(pid: u32) -> String {
    let stat = read(format!("/proc/{pid}/stat").as_ref());
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').nth(19).unwrap().to_owned()
}

#[test]
fn a_logged_out_start_says_so_before_it_looks_at_anything_else() {
    for agent in agents() {
        let words = "Error: You must be logged in to use Remote Control.\n";
        let log = agent.stage.root.join("logs/start.log");
        for args in [&["--spawn", "same-dir"][..], &["--bogus"], &["--spawn", "worktree"]] {
            let done = agent.start(args, &log);
            assert_eq!(done.code, Some(1), "{} {args:?}", agent.name);
            assert_eq!(done.stdout, "", "{} {args:?}", agent.name);
            assert!(done.stderr.starts_with(words), "{} {args:?}: {}", agent.name, done.stderr);
            let state = "\n[debug] Remote Control auth state:\n  isBareMode=false\n";
            assert!(done.stderr.contains(state), "{} {args:?}: {}", agent.name, done.stderr);
        }
        let quiet = agent.run(&["remote-control"]);
        assert_eq!(quiet.code, Some(1), "{}", agent.name);
        assert!(quiet.stderr.starts_with(words), "{}: {}", agent.name, quiet.stderr);
        assert!(!quiet.stderr.contains("auth state"), "{}: without a debug file", agent.name);
        if agent.is_described() {
            let help = agent.run(&["remote-control", "--help"]);
            assert_eq!((help.code, help.stderr), (Some(1), quiet.stderr), "{}", agent.name);
        }
        let sessions = agent.stage.home.join("sessions");
        let entries = fs::read_dir(&sessions).map(Iterator::count).unwrap_or(0);
        assert_eq!(entries, 0, "{}: nothing is registered", agent.name);
    }
}

#[test]
fn the_debug_file_is_appended_to_in_the_documented_line_shape() {
    for agent in agents() {
        let log = agent.stage.root.join("logs/kept.log");
        fs::write(&log, "made before\n").unwrap();
        fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
        agent.start(&[], &log);
        let once = read(&log);
        agent.start(&[], &log);
        let twice = read(&log);
        assert!(once.starts_with("made before\n"), "{}: {once}", agent.name);
        assert!(twice.starts_with(&once) && twice.len() > once.len(), "{}: {twice}", agent.name);
        let mode = fs::metadata(&log).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", agent.name);
        for line in twice.lines().skip(1) {
            let (time, rest) = line.split_once(' ').unwrap_or_default();
            let shape: String =
                time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{}: {line}", agent.name);
            let level = rest.split(' ').next().unwrap();
            let levels = ["[DEBUG]", "[INFO]", "[WARN]", "[ERROR]"];
            assert!(levels.contains(&level), "{}: {line}", agent.name);
        }
        assert!(twice.contains("MDM settings load completed"), "{}: {twice}", agent.name);
    }
}

#[test]
fn a_debug_file_the_agent_makes_itself_has_the_mode_the_umask_leaves() {
    for agent in agents() {
        for (umask, expected) in [("022", 0o644), ("077", 0o600)] {
            let log = agent.stage.root.join(format!("logs/made-{umask}.log"));
            let agent_command = agent.command();
            let mut command = Command::new("sh");
            command.env_clear().current_dir(&agent.cwd).stdin(Stdio::null());
            let variables = agent_command.get_envs();
            command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
            command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
            command.arg(agent_command.get_program());
            command.args(["remote-control", "--debug-file", log.to_str().unwrap()]);
            assert_eq!(done(&mut command).code, Some(1), "{}", agent.name);
            let mode = fs::metadata(&log).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, expected, "{} under umask {umask}: {mode:o}", agent.name);
        }
    }
}

#[test]
fn a_broken_configuration_is_an_error_with_the_words_of_the_parser() {
    for agent in agents() {
        fs::write(agent.config_file(), "{bad").unwrap();
        let bridge = agent.run(&["remote-control", "--name", "X"]);
        assert_eq!(bridge.code, Some(1), "{}", agent.name);
        assert!(bridge.stderr.contains("JSON Parse error: "), "{}: {}", agent.name, bridge.stderr);
        assert_eq!(read(&agent.config_file()), "{bad", "{}: left alone", agent.name);

        let list = agent.run(&["agents", "--json"]);
        assert_eq!((list.code, list.stdout.as_str()), (Some(1), ""), "{}", agent.name);
        let words = format!("Configuration error in {}: ", agent.config_file().display());
        assert!(list.stderr.contains(&words), "{}: {}", agent.name, list.stderr);
        let backups = fs::read_dir(agent.stage.home.join("backups")).unwrap();
        let mut names = backups.map(|entry| entry.unwrap().file_name());
        let saved = names.any(|n| n.to_string_lossy().starts_with(".claude.json.corrupted."));
        assert!(saved, "{}: the broken file is kept", agent.name);
        if agent.is_described() {
            let fresh: Value = serde_json::from_str(&read(&agent.config_file())).unwrap();
            assert!(fresh.get("projects").is_none(), "{}: every grant is lost", agent.name);
        }
    }
}

#[test]
fn an_empty_configuration_ends_commands_of_the_described_version() {
    for agent in agents().iter().filter(|agent| agent.is_described()) {
        for args in [&["remote-control"][..], &["agents", "--json"]] {
            fs::write(agent.config_file(), "").unwrap();
            let done = agent.run(args);
            assert_eq!(done.code, Some(1), "{} {args:?}", agent.name);
            let words = "JSON Parse error: Unexpected EOF";
            assert!(done.stderr.contains(words), "{} {args:?}: {}", agent.name, done.stderr);
        }
    }
}
