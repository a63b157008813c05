//! The simulated interactive form: screen, conversations, keys and ends.

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;
#[expect(dead_code, reason = "each test program uses a part of it")]
#[path = "support/terminal.rs"]
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Knobs, Stage, kill, lines, read};
use terminal::Terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_svc-agent-sim");
const ACTIVE: &str = "/remote-control is active";

/// The command of an interactive session and its debug file.
fn command(stage: &Stage, cwd: &Path, args: &[&str], knobs: Knobs) -> (Command, PathBuf) {
    let log = stage.root.join(format!("logs/{}.log", stage.calls().len()));
    let mut command = stage.command(cwd, knobs);
    command.args(["--remote-control", "demo", "--debug-file"]).arg(&log).args(args);
    (command, log)
}

fn start(stage: &Stage, cwd: &Path, args: &[&str], knobs: Knobs) -> (Terminal, PathBuf) {
    let (command, log) = command(stage, cwd, args, knobs);
    (Terminal::start(&command), log)
}

/// The registry entry of a live session.
fn entry(stage: &Stage, terminal: &Terminal) -> Value {
    let file = stage.home.join(format!("sessions/{}.json", terminal.process.pid));
    // The agent rewrites it in place, so that a reader may meet half of it.
    stage.until("the entry", || serde_json::from_str(&read(&file)).ok())
}

fn transcripts(stage: &Stage, cwd: &Path) -> Vec<PathBuf> {
    let dir = stage.pointer_file(cwd);
    let entries = dir.parent().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    found
}

#[test]
fn a_session_connects_and_its_address_is_whole_on_the_screen_only() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let (mut terminal, log) = start(&stage, &project, &[], &[]);
    let text = terminal.until(ACTIVE).replace('\n', "");
    let id = text.split("claude.ai/code/").nth(1).unwrap();
    let id: String = id.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    assert!(id.starts_with("session_01SIM"), "{text}");
    assert!(text.contains("Claude Code v2.1.197") && text.contains("? for shortcuts"), "{text}");
    let raw = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    assert!(!raw.contains(&id), "the address is fragmented");
    for sequence in ["\x1b]0;✳ Claude Code\x07", "\x1b[?2004h", "\x1b[?1004h", "\x1b[c", "\x1b[>0q"]
    {
        assert!(raw.contains(sequence), "{sequence:?} in {raw:?}");
    }
    let log = read(&log);
    assert!(log.contains(&format!("[DEBUG] [remote-bridge] Created session {id}\n")), "{log}");
    assert!(log.contains("[bridge:repl] handleStateChange state=connected"), "{log}");
    let entry = entry(&stage, &terminal);
    assert_eq!(entry["kind"], "interactive");
    assert_eq!(entry["entrypoint"], "cli");
    assert_eq!(entry["cwd"], json!(project));
    terminal.process.signal(Signal::INT);
    assert_eq!(terminal.process.wait().code(), Some(0), "one is enough without an open turn");
    let raw = String::from_utf8_lossy(&terminal.until_over()).into_owned();
    assert!(raw.contains("\x1b[?2004l"), "{raw:?}");
    assert!(!raw.contains("Resume this session"), "there was no conversation");
    assert!(!stage.home.join(format!("sessions/{}.json", terminal.process.pid)).exists());
    assert_eq!(transcripts(&stage, &project), Vec::<PathBuf>::new());
}

#[test]
fn answers_of_the_terminal_are_recorded_and_silence_is_too() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let answers = |terminal: &Terminal| {
        let pid = terminal.process.pid;
        stage.until("the answers", || {
            stage.calls().into_iter().find(|c| c["pid"] == pid && c.get("answers").is_some())
        })
    };
    let (terminal, _) = start(&stage, &project, &[], &[]);
    terminal.send("\x1b[?62;22c\x1bP>|probe 1.0\x1b\\");
    let record = answers(&terminal);
    assert_eq!(record["answers"], json!({ "da": "?62;22c", "xtversion": "probe 1.0" }));
    let (terminal, _) = start(&stage, &project, &[], &[]);
    assert_eq!(answers(&terminal)["answers"], json!({}));
    terminal.until(ACTIVE);
}

#[test]
fn what_is_typed_is_shown_answered_and_kept() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let (mut terminal, _) = start(&stage, &project, &[], &[("tui", r#"{"reply_ms":0}"#)]);
    terminal.until(ACTIVE);
    terminal.send("hellp\x7fo 日本");
    terminal.until("❯\u{a0}hello 日本");
    terminal.send("\r");
    terminal.until("A simulated reply to: hello 日本");
    let file = transcripts(&stage, &project).remove(0);
    let records = lines(&file);
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!(records[0]["message"]["content"], "hello 日本");
    assert_eq!(records[0]["entrypoint"], "cli");
    assert_eq!(records[1]["parentUuid"], records[0]["uuid"]);
    let id = entry(&stage, &terminal)["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(file.file_stem().unwrap().to_str(), Some(id.as_str()));
    terminal.send("/exit\r");
    assert_eq!(terminal.process.wait().code(), Some(0));
    let raw = String::from_utf8_lossy(&terminal.until_over()).into_owned();
    assert!(raw.contains(&format!("claude --resume {id}")), "{raw:?}");
}

#[test]
fn a_continued_conversation_is_the_same_and_a_fork_is_another() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let quick = [("tui", r#"{"reply_ms":0}"#), ("ready_ms", "0")];
    let run = |args: &[&str], word: &str| {
        let (mut terminal, log) = start(&stage, &project, args, &quick);
        terminal.until(ACTIVE);
        terminal.send(&format!("{word}\r"));
        terminal.until(&format!("reply to: {word}"));
        let id = entry(&stage, &terminal)["sessionId"].as_str().unwrap().to_owned();
        terminal.process.signal(Signal::INT);
        assert_eq!(terminal.process.wait().code(), Some(0));
        (id, read(&log))
    };
    let file = |id: &str| stage.pointer_file(&project).with_file_name(format!("{id}.jsonl"));
    let (first, log) = run(&[], "one");
    let session = log.split("Created session ").nth(1).unwrap().lines().next().unwrap();
    let (second, log) = run(&["--continue"], "two");
    assert_eq!(first, second);
    assert_eq!(lines(&file(&first)).len(), 4, "the transcript grew");
    assert!(log.contains(&format!("Reattaching to session {session}\n")), "{log}");
    assert!(log.contains(&format!("Unarchive {session} status=200")), "{log}");
    let before = read(&file(&first));
    let (fork, log) = run(&["--resume", &first, "--fork-session"], "three");
    assert_ne!(fork, first);
    assert_eq!(read(&file(&first)), before, "the original is untouched");
    assert_eq!(lines(&file(&fork)).len(), 6);
    assert!(lines(&file(&fork)).iter().all(|record| record["sessionId"] == json!(fork)));
    assert!(log.contains("Created session session_01SIM"), "{log}");
    assert!(!log.contains(session), "{log}");
    let (named, _) = run(&["--resume", &first], "four");
    assert_eq!(named, first);
}

#[test]
fn a_conversation_that_is_not_there_ends_the_start() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let gone = "11111111-2222-4333-8444-555555555555";
    for (args, words) in [
        (&["--continue"][..], "No conversation found to continue".to_owned()),
        (&["--resume", gone], format!("No conversation found with session ID: {gone}")),
    ] {
        let (mut terminal, _) = start(&stage, &project, args, &[]);
        assert_eq!(terminal.process.wait().code(), Some(1));
        let raw = String::from_utf8_lossy(&terminal.until_over()).into_owned();
        assert!(raw.contains(&words), "{raw:?}");
    }
}

#[test]
fn an_open_turn_wants_a_second_signal() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let open = [("tui", r#"{"reply_ms":null,"redraw_ms":20}"#)];
    for by_key in [false, true] {
        let (mut terminal, _) = start(&stage, &project, &[], &open);
        terminal.until(ACTIVE);
        terminal.send("work\r");
        terminal.until("esc to interrupt");
        assert_eq!(entry(&stage, &terminal)["status"], "busy");
        let interrupt = |terminal: &Terminal| {
            if by_key { terminal.send("\x03") } else { terminal.process.signal(Signal::INT) }
        };
        interrupt(&terminal);
        terminal.until("Press Ctrl-C again to exit");
        interrupt(&terminal);
        assert_eq!(terminal.process.wait().code(), Some(0));
    }
    let (mut terminal, _) = start(&stage, &project, &[], &[("ignore_sigint", "true")]);
    terminal.until(ACTIVE);
    terminal.process.signal(Signal::INT);
    terminal.process.signal(Signal::TERM);
    assert_eq!(terminal.process.wait().code(), Some(143), "as the agent ends on SIGTERM");
}

#[test]
fn a_worktree_is_made_once_and_the_session_lives_in_it() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.repository("demo");
    let place = project.join(".claude/worktrees/svc-0123abcd");
    for _ in 0..2 {
        let args = ["--worktree", "svc-0123abcd"];
        let (mut terminal, _) = start(&stage, &project, &args, &[("ready_ms", "0")]);
        terminal.until(ACTIVE);
        let entry = entry(&stage, &terminal);
        assert_eq!(entry["cwd"], json!(place));
        let cwd = fs::read_link(format!("/proc/{}/cwd", terminal.process.pid)).unwrap();
        assert_eq!(cwd, place);
        terminal.process.signal(Signal::INT);
        assert_eq!(terminal.process.wait().code(), Some(0));
    }
    let head = read(&project.join(".git/worktrees/svc-0123abcd/HEAD"));
    assert_eq!(head, "ref: refs/heads/worktree-svc-0123abcd\n");
    let untrusted = stage.directory("other");
    fs::create_dir(untrusted.join(".git")).unwrap();
    let (mut terminal, _) = start(&stage, &untrusted, &["--worktree", "svc-0123abcd"], &[]);
    assert_eq!(terminal.process.wait().code(), Some(1));
    let raw = String::from_utf8_lossy(&terminal.until_over()).into_owned();
    assert!(raw.contains("Error creating worktree: Workspace trust not yet accepted"), "{raw:?}");
}

#[test]
fn the_questions_of_a_first_start_come_before_the_session() {
    let mut stage = Stage::new(PROGRAM);
    let untrusted = stage.directory("untrusted");
    let (mut terminal, _) = start(&stage, &untrusted, &[], &[]);
    terminal.until("Quick safety check");
    terminal.process.signal(Signal::INT);
    assert_eq!(terminal.process.wait().code(), Some(0), "a signal ends it at once");
    let knobs = [("onboarding", "true")];
    let (terminal, _) = start(&stage, &untrusted, &[], &knobs);
    terminal.until("Choose the text style");
    terminal.send("\r");
    terminal.until("Quick safety check");
    terminal.send("\r");
    terminal.until(ACTIVE);
    let config: Value = serde_json::from_str(&read(&stage.home.join(".claude.json"))).unwrap();
    let trusted = &config["projects"][untrusted.to_str().unwrap()]["hasTrustDialogAccepted"];
    assert_eq!(trusted, true);
    assert_eq!(config["hasCompletedOnboarding"], true);
    let project = stage.project("demo");
    let (terminal, _) = start(&stage, &project, &[], &[("trust_dialog", "true")]);
    terminal.until("Quick safety check");
}

#[test]
fn a_refused_link_is_in_the_debug_file_and_the_session_goes_on() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    for (knob, reason) in [
        (("rc_ignored", "true"), "Remote Control requires a claude.ai subscription."),
        (("auth", "logged_out"), "Remote Control requires a claude.ai subscription."),
        (("fatal", "org_policy"), "Remote Control is disabled by your organization's policy."),
    ] {
        let (terminal, log) = start(&stage, &project, &[], &[knob]);
        terminal.until("Not logged in");
        let log = read(&log);
        let line = format!("[WARN] [stderr] \x1b[33m{reason}");
        assert!(log.contains(&line), "{log}");
        assert!(log.contains("\x1b[39m\n\x1b[33m--rc flag ignored.\x1b[39m\n"), "{log}");
        assert!(!log.contains("[remote-bridge]"), "{log}");
        assert!(!terminal.text().contains(ACTIVE));
    }
}

#[test]
fn each_kind_of_evidence_can_be_left_out() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    for (ready, on_screen, in_log) in
        [("no_poll_loop", true, false), ("no_env", false, true), ("no_session", false, false)]
    {
        let (terminal, log) = start(&stage, &project, &[], &[("ready", ready)]);
        terminal.until("Remote Control active");
        assert_eq!(terminal.text().contains(ACTIVE), on_screen, "{ready}");
        assert_eq!(read(&log).contains("[remote-bridge] Created"), in_log, "{ready}");
    }
}

#[test]
fn planned_ends_have_their_code_signal_and_words() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let end = |knobs: Knobs| start(&stage, &project, &[], knobs).0;
    let mut terminal = end(&[("exit_at_ms", "50"), ("exit_code", "7"), ("stderr_text", "broke")]);
    assert_eq!(terminal.process.wait().code(), Some(7));
    assert!(String::from_utf8_lossy(&terminal.until_over()).contains("broke"));
    let mut terminal =
        end(&[("ready_ms", "0"), ("exit_after_ready_ms", "0"), ("exit_signal", "KILL")]);
    assert_eq!(terminal.process.wait_signal(), Some(9));
    let mut terminal = end(&[("fatal", "network")]);
    assert_eq!(terminal.process.wait().code(), Some(1));
    let mut terminal = end(&[("fatal", "bad_argument")]);
    assert_eq!(terminal.process.wait().code(), Some(1));
}

#[test]
fn a_hang_up_ends_the_session_unless_it_is_ignored() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    for (ignored, name) in [(false, "ends"), (true, "lives")] {
        let knobs = [("ignore_sighup", if ignored { "true" } else { "false" })];
        let (terminal, _) = start(&stage, &project, &[], &knobs);
        terminal.until(ACTIVE);
        kill(terminal.process.pid, Signal::HUP);
        if ignored {
            terminal.send("still here");
            terminal.until("still here");
        } else {
            let mut process = terminal.process;
            assert_eq!(process.wait_signal(), Some(1), "{name}");
        }
    }
}

#[test]
fn scripts_draw_what_they_are_told() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let bare =
        r#"{"bare":true,"lines":3,"bytes":"\\e[2J\\e[5;7Hx\\x41\\e[1;1Hend","bytes_chunk":1}"#;
    let (terminal, log) = start(&stage, &project, &[], &[("tui", bare), ("ready_ms", "0")]);
    let text = terminal.until("end");
    assert_eq!(text.lines().nth(4), Some("      xA"), "{text:?}");
    assert!(String::from_utf8_lossy(&terminal.bytes()).contains("line 000003\r\n"));
    assert!(
        read(&log).contains("[remote-bridge] Created session"),
        "the link is there all the same"
    );

    let pipe = stage.root.join("feed");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let tui = json!({ "bare": true, "feed": pipe }).to_string();
    let (terminal, _) = start(&stage, &project, &[], &[("tui", &tui)]);
    fs::write(&pipe, "\x1b[3;3Hfirst").unwrap();
    terminal.until("first");
    fs::write(&pipe, "\x1b[4;3Hsecond").unwrap();
    terminal.until("second");

    let (terminal, _) = start(&stage, &project, &[], &[("tui", r#"{"storm_lines_per_s":5000}"#)]);
    let numbers = |text: &str| {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let after = words.windows(2).filter(|pair| pair[0] == "storm");
        after.filter_map(|pair| pair[1].parse::<u64>().ok()).max()
    };
    terminal.until_screen("2000 lines", |text| numbers(text) >= Some(2000));
    let tui = r#"{"alt_screen":true,"wide":true,"resize_echo":true}"#;
    let (terminal, _) = start(&stage, &project, &[], &[("tui", tui)]);
    let text = terminal.until(ACTIVE);
    assert!(text.contains("日本語の表示"), "{text}");
    terminal.resize(30, 60);
    terminal.until("resized to 60x30");
}

#[test]
fn a_script_of_turns_is_played_and_asks_for_permission() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let turns = json!([
        { "role": "user", "text": "list the files" },
        { "role": "permission", "text": "ls", "tool": "Bash" },
        { "role": "assistant", "text": "There is one." },
    ])
    .to_string();
    let (terminal, _) = start(&stage, &project, &[], &[("turns", &turns)]);
    terminal.until("Do you want to proceed?");
    assert_eq!(entry(&stage, &terminal)["status"], "waiting");
    terminal.send("\r");
    terminal.until("There is one.");
    stage.until("the end of the turn", || {
        (entry(&stage, &terminal)["status"] == "idle").then_some(())
    });
}

#[test]
fn a_deleted_remote_session_ends_the_link_and_no_more() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let (terminal, log) = start(&stage, &project, &[], &[]);
    terminal.until(ACTIVE);
    let id =
        read(&log).split("Created session ").nth(1).unwrap().lines().next().unwrap().to_owned();
    stage.remote(&["delete", &id]);
    terminal.until("Remote Control disconnected");
    let log = read(&log);
    assert!(log.contains("\"reason\":\"deleted\""), "{log}");
}

#[test]
fn a_script_says_how_the_link_of_a_session_is() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let script = json!([
        [0, { "state": { "state": "reconnecting", "detail": "socket closed" } }],
        [0, { "sdk_state": "closed" }],
        [0, { "failed": { "detail": "gone", "was_connected": true } }],
        [0, { "out": "a line on the screen" }],
    ])
    .to_string();
    let (terminal, log) = start(&stage, &project, &[], &[("link", &script)]);
    terminal.until("a line on the screen");
    let log = read(&log);
    for line in [
        "[bridge:repl] handleStateChange state=reconnecting detail=\"socket closed\"",
        "[bridge:sdk] State change: closed",
        "[bridge:repl] notifyBridgeFailed detail=\"gone\" stateKey=sim wasConnected=true",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
}
