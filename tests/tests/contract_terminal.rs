//! The contract with the agent's interactive form, without an account.
//!
//! Checked with the simulator, and with a real agent when `SVC_CONTRACT_AGENT` names its
//! executable.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: what they cannot do fails the test that asked"
)]

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

#[expect(dead_code, reason = "each test program uses a part of it")]
#[path = "support/agents.rs"]
mod agents;

#[expect(dead_code, reason = "each test program uses a part of it")]
#[path = "support/terminal.rs"]
mod terminal;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use agents::{Agent, agents};
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::read;
use terminal::Terminal;

/// An interactive start; the words are those of the spec's second invocation.
fn start(agent: &Agent, args: &[&str]) -> (Terminal, PathBuf) {
    let log = agent.stage.root.join("logs/terminal.log");
    let mut command = agent.command();
    command.args(["--remote-control", "demo", "--debug-file"]).arg(&log).args(args);
    (Terminal::start(&command), log)
}

fn configure(agent: &Agent, trusted: bool) {
    let mut config = json!({ "hasCompletedOnboarding": true, "remoteDialogSeen": true });
    if trusted {
        config["projects"][agent.cwd.to_string_lossy().as_ref()] =
            json!({ "hasTrustDialogAccepted": true });
    }
    fs::write(agent.config_file(), config.to_string()).unwrap();
}

#[test]
fn without_a_login_the_flag_is_ignored_and_one_signal_ends_the_session() {
    for agent in agents() {
        configure(&agent, true);
        let (mut terminal, log) = start(&agent, &[]);
        terminal.until("Not logged in");
        agent
            .stage
            .until("the warning", || read(&log).contains("--rc flag ignored.").then_some(()));
        let text = read(&log);
        let warning = text.lines().find(|line| line.contains("[WARN] [stderr] ")).unwrap();
        let words = "Remote Control requires a claude.ai subscription.";
        assert!(warning.contains(words), "{}: {warning}", agent.name);
        assert!(text.contains("\n\x1b[33m--rc flag ignored."), "{}", agent.name);
        let file = agent.stage.home.join(format!("sessions/{}.json", terminal.process.pid));
        let entry: Value =
            agent.stage.until("the entry", || serde_json::from_str(&read(&file)).ok());
        assert_eq!(entry["kind"], "interactive", "{}", agent.name);
        assert_eq!(entry["cwd"], json!(agent.cwd), "{}", agent.name);
        for sequence in ["\x1b[?2004h", "\x1b[?1004h", "\x1b[c", "\x1b[>0q"] {
            terminal.until_bytes(sequence);
        }
        terminal.process.signal(Signal::INT);
        assert_eq!(terminal.process.wait().code(), Some(0), "{}", agent.name);
        assert!(!file.exists(), "{}", agent.name);
    }
}

#[test]
fn an_untrusted_directory_is_asked_about_and_a_signal_ends_the_question() {
    for agent in agents() {
        configure(&agent, false);
        let (mut terminal, _) = start(&agent, &[]);
        terminal.until("Quick safety check");
        terminal.until("1. Yes, I trust this folder");
        terminal.process.signal(Signal::INT);
        assert_eq!(terminal.process.wait().code(), Some(0), "{}", agent.name);
    }
}

#[test]
fn a_worktree_of_a_session_has_its_name_and_its_branch() {
    for agent in agents() {
        let git = |args: &[&str]| {
            let done = Command::new("git").arg("-C").arg(&agent.cwd).args(args).output().unwrap();
            assert!(done.status.success(), "git {args:?}");
            String::from_utf8(done.stdout).unwrap()
        };
        git(&["init", "-q", "-b", "main"]);
        let author = ["-c", "user.name=t", "-c", "user.email=t@t.invalid"];
        git(&[&author[..], &["commit", "-q", "--allow-empty", "-m", "one"]].concat());
        configure(&agent, true);
        let (mut terminal, _) = start(&agent, &["--worktree", "svc-0123abcd"]);
        terminal.until("Not logged in");
        terminal.process.signal(Signal::INT);
        assert_eq!(terminal.process.wait().code(), Some(0), "{}", agent.name);
        let trees = git(&["worktree", "list", "--porcelain"]);
        let place = agent.cwd.join(".claude/worktrees/svc-0123abcd");
        let line = format!("worktree {}\n", place.display());
        assert!(trees.contains(&line), "{}: {trees}", agent.name);
        assert!(trees.contains("branch refs/heads/worktree-svc-0123abcd\n"), "{}", agent.name);
    }
}

#[test]
fn a_conversation_that_is_not_there_ends_the_start() {
    for agent in agents() {
        configure(&agent, true);
        let (mut terminal, _) = start(&agent, &["--continue"]);
        assert_eq!(terminal.process.wait().code(), Some(1), "{}", agent.name);
        let raw = String::from_utf8_lossy(&terminal.until_over()).into_owned();
        assert!(raw.contains("No conversation found to continue"), "{}: {raw:?}", agent.name);
    }
}
