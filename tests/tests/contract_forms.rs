//! The contract with the agent: servers, plugins, replies, worktrees.
//!
//! Checked with the simulator, and with a real agent when `SVC_CONTRACT_AGENT` names its
//! executable.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: what they cannot do fails the test that asked"
)]

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

#[expect(dead_code, reason = "each test program uses a part of the agents")]
#[path = "support/agents.rs"]
mod agents;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use agents::{Agent, agents};
use serde_json::{Value, json};
use stage::{Done, read};

impl Agent {
    /// One command; its code, and both outputs as one text.
    fn said(&self, args: &[&str]) -> (Option<i32>, String) {
        let done = self.run(args);
        (done.code, format!("{}{}", done.stdout, done.stderr))
    }

    fn fed(&self, args: &[&str], input: &str) -> Done {
        let mut command = self.command();
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        Done {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

#[test]
fn a_server_is_added_once_and_removed_once_in_the_file_of_its_scope() {
    for agent in agents() {
        let name = agent.name;
        let key = agent.cwd.to_str().unwrap().to_owned();
        let config = || -> Value { serde_json::from_str(&read(&agent.config_file())).unwrap() };
        let server = r#"{"type":"stdio","command":"true"}"#;
        for scope in ["local", "user", "project"] {
            let add = ["mcp", "add-json", "srv", server, "--scope", scope];
            let (code, text) = agent.said(&add);
            assert_eq!(code, Some(0), "{name} {scope}: {text}");
            assert!(text.contains(&format!("Added stdio MCP server srv to {scope} config")));
            let found = match scope {
                "project" => {
                    let file = read(&agent.cwd.join(".mcp.json"));
                    let file: Value = serde_json::from_str(&file).unwrap();
                    file.pointer("/mcpServers/srv").cloned()
                }
                "user" => config().pointer("/mcpServers/srv").cloned(),
                _ => {
                    let projects = config().get("projects").cloned().unwrap_or_default();
                    projects.get(&key).and_then(|p| p.pointer("/mcpServers/srv")).cloned()
                }
            };
            let command = found.as_ref().and_then(|server| server.get("command"));
            assert_eq!(command, Some(&json!("true")), "{name} {scope}");
            let (code, text) = agent.said(&add);
            assert_eq!(code, Some(1), "{name} {scope}");
            assert!(text.contains("already exists"), "{name} {scope}: {text}");
            let remove = ["mcp", "remove", "srv", "--scope", scope];
            let (code, text) = agent.said(&remove);
            assert_eq!(code, Some(0), "{name} {scope}: {text}");
            let (code, text) = agent.said(&remove);
            assert_eq!(code, Some(1), "{name} {scope}");
            assert!(text.contains("No MCP server named"), "{name} {scope}: {text}");
        }
        let (code, text) = agent.said(&["mcp", "add-json", "bad", "{}", "--scope", "local"]);
        assert_eq!(code, Some(1), "{name}: {text}");
        assert_eq!(agent.run(&["mcp", "reset-project-choices"]).code, Some(0), "{name}");
        assert_eq!(agent.run(&["mcp", "bogus"]).code, Some(1), "{name}");
    }
}

#[test]
fn a_plugin_of_a_local_marketplace_is_installed_switched_and_removed() {
    for agent in agents() {
        let name = agent.name;
        let list = || agent.run(&["plugin", "list", "--json"]).json();
        assert_eq!(list(), json!([]), "{name}");
        assert_eq!(agent.run(&["plugin", "marketplace", "list", "--json"]).json(), json!([]));
        let market = agent.cwd.join("mk");
        for dir in [".claude-plugin", "plug/.claude-plugin"] {
            fs::create_dir_all(market.join(dir)).unwrap();
        }
        let index = json!({ "name": "mk", "owner": { "name": "o" }, "plugins": [
            { "name": "plug", "source": "./plug", "description": "d", "version": "1.0.0" },
        ]});
        fs::write(market.join(".claude-plugin/marketplace.json"), index.to_string()).unwrap();
        let plugin = json!({ "name": "plug", "version": "1.0.0", "description": "d" });
        let manifest = market.join("plug/.claude-plugin/plugin.json");
        fs::write(manifest, plugin.to_string()).unwrap();

        let steps: [(&[&str], i32, &str); 12] = [
            (&["marketplace", "add", "./mk", "--scope", "user"], 0, "added marketplace: mk"),
            (&["install", "none@mk", "--scope", "user"], 1, "not found in marketplace \"mk\""),
            (&["install", "plug@mk", "--scope", "user"], 0, "installed plugin: plug@mk"),
            (&["install", "plug@mk", "--scope", "user"], 0, "already installed"),
            (&["enable", "plug@mk", "--scope", "user"], 1, "already enabled at user scope"),
            (&["disable", "plug@mk", "--scope", "user"], 0, "disabled plugin: plug"),
            (&["disable", "plug@mk", "--scope", "user"], 1, "already disabled at user scope"),
            (&["details", "plug"], 0, "Source: plug@mk"),
            (&["update", "plug@mk", "--scope", "user"], 0, "already at the latest version"),
            (&["marketplace", "update", "mk"], 0, "updated marketplace: mk"),
            (&["marketplace", "update", "none"], 1, "Marketplace 'none' not found"),
            (&["details", "nope"], 1, "Plugin \"nope\" not found"),
        ];
        for (args, code, words) in steps {
            let mut all = vec!["plugin"];
            all.extend(args);
            let (found, text) = agent.said(&all);
            assert_eq!(found, Some(code), "{name} {args:?}: {text}");
            assert!(text.contains(words) || !agent.is_described(), "{name} {args:?}: {text}");
        }
        let item = list().get(0).cloned().unwrap();
        for (field, expected) in
            [("id", json!("plug@mk")), ("version", json!("1.0.0")), ("enabled", json!(false))]
        {
            assert_eq!(item.get(field), Some(&expected), "{name}: {field}");
        }
        let uninstall = ["plugin", "uninstall", "plug@mk", "--scope", "user"];
        assert_eq!(agent.run(&uninstall).code, Some(0), "{name}");
        let (code, text) = agent.said(&uninstall);
        assert_eq!(code, Some(1), "{name}");
        assert!(text.contains("not found in installed plugins"), "{name}: {text}");
        assert_eq!(list(), json!([]), "{name}");
        let remove = ["plugin", "marketplace", "remove", "mk"];
        assert_eq!(agent.run(&remove).code, Some(0), "{name}");
        assert_eq!(agent.run(&remove).code, Some(1), "{name}");
    }
}

#[test]
fn a_turn_over_json_lines_without_a_login_is_init_replay_error_and_result() {
    let argv = [
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--permission-prompt-tool",
        "stdio",
        "--include-partial-messages",
        "--replay-user-messages",
    ];
    for agent in agents() {
        let name = agent.name;
        let line = json!({ "type": "user", "message": { "role": "user", "content": "hello" } });
        let done = agent.fed(&argv, &format!("{line}\n"));
        let frames: Vec<Value> =
            done.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let find = |kind: &str, what: &str| {
            let of = |frame: &&Value| frame.get("type") == Some(&json!(kind));
            frames
                .iter()
                .find(of)
                .unwrap_or_else(|| panic!("{name}: no {what}: {frames:?}"))
                .clone()
        };
        let init = find("system", "init");
        assert_eq!(init.get("subtype"), Some(&json!("init")), "{name}: comes first");
        assert_eq!(init.get("cwd"), Some(&json!(agent.cwd)), "{name}");
        let replay = find("user", "replay");
        assert_eq!(replay.get("isReplay"), Some(&json!(true)), "{name}");
        assert_eq!(replay.pointer("/message/content"), Some(&json!("hello")), "{name}");
        let said = find("assistant", "answer");
        assert_eq!(said.get("error"), Some(&json!("authentication_failed")), "{name}");
        let result = find("result", "result");
        assert_eq!(result.get("is_error"), Some(&json!(true)), "{name}");
        let session = init.get("session_id");
        for frame in [&replay, &said, &result] {
            assert_eq!(frame.get("session_id"), session, "{name}");
            assert!(frame.get("uuid").is_some_and(Value::is_string), "{name}");
        }
        if agent.is_described() {
            let text = Some(json!("Not logged in · Please run /login"));
            assert_eq!(result.get("result").cloned(), text, "{name}");
        }
        let broken = agent.fed(&argv, "no json\n");
        assert_eq!(broken.code, Some(1), "{name}");
        assert!(broken.stderr.contains("Error parsing streaming input line"), "{}", broken.stderr);
    }
}

#[test]
fn what_needs_a_terminal_or_a_repository_says_so_without_one() {
    for agent in agents() {
        let (code, text) = agent.said(&["--remote-control", "x"]);
        assert_eq!(code, Some(1), "{}", agent.name);
        let words = "Input must be provided either through stdin or as a prompt argument";
        assert!(text.contains(words), "{}: {text}", agent.name);
        let (code, text) = agent.said(&["--worktree", "w1", "-p", "hi"]);
        assert_eq!(code, Some(1), "{}", agent.name);
        let words = "Can only use --worktree in a git repository";
        assert!(text.contains(words), "{}: {text}", agent.name);
    }
}

#[test]
fn a_worktree_lies_below_the_project_on_a_branch_of_its_name() {
    for agent in agents() {
        let name = agent.name;
        let git = |args: &[&str]| {
            let done = Command::new("git").arg("-C").arg(&agent.cwd).args(args).output().unwrap();
            assert!(done.status.success(), "git {args:?}");
            String::from_utf8(done.stdout).unwrap()
        };
        git(&["init", "-q", "-b", "main"]);
        git(&[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t.invalid",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "one",
        ]);
        let trust = json!({ "projects": { agent.cwd.to_str().unwrap():
            { "hasTrustDialogAccepted": true } } });
        fs::write(agent.config_file(), trust.to_string()).unwrap();
        agent.run(&["--worktree", "w1", "-p", "hi"]);
        let trees = git(&["worktree", "list", "--porcelain"]);
        let place = agent.cwd.join(".claude/worktrees/w1");
        assert!(trees.contains(&format!("worktree {}\n", place.display())), "{name}: {trees}");
        assert!(trees.contains("branch refs/heads/worktree-w1\n"), "{name}: {trees}");
        assert!(!trees.contains("\nlocked") || !agent.is_described(), "{name}: {trees}");
    }
}
