//! The agent simulator's login flow and its scripted conversations over pipes.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: what they cannot do fails the test that asked"
)]

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use stage::{Knobs, Stage};

const PROGRAM: &str = env!("CARGO_BIN_EXE_svc-agent-sim");

/// A start with pipes at both ends; it is killed when the test ends.
struct Piped {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Piped {
    fn start(stage: &Stage, args: &[&str], knobs: Knobs) -> Self {
        let mut command = stage.command(&stage.root, knobs);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program runs");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { input: child.stdin.take(), output, child }
    }

    fn conversation(stage: &Stage, hosted: &Value) -> Self {
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
        Self::start(stage, &argv, &[("hosted", &hosted.to_string())])
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open pipe");
        input.write_all(format!("{line}\n").as_bytes()).expect("the program reads");
    }

    fn say(&mut self, text: &str) {
        self.send(
            &json!({ "type": "user", "message": { "role": "user", "content": text } }).to_string(),
        );
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line
    }

    /// The next frame of this type.
    fn frame(&mut self, kind: &str) -> Value {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "the output ended before {kind}");
            match serde_json::from_str::<Value>(&line) {
                Ok(frame) if frame["type"] == kind => return frame,
                _ => {}
            }
        }
    }

    fn answer(&mut self, request: &Value, response: &Value) {
        let answer = json!({ "type": "control_response", "response": {
            "subtype": "success", "request_id": request["request_id"], "response": response,
        }});
        self.send(&answer.to_string());
    }

    fn end(mut self) -> (Option<i32>, String) {
        self.input = None;
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("an end").code(), rest)
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill(); // ended already
        let _ = self.child.wait();
    }
}

#[test]
fn a_login_takes_a_whole_code_and_is_remembered_until_logout() {
    let stage = Stage::new(PROGRAM);
    let out = &[("auth", "logged_out")];
    let state = || stage.run(&stage.root, &["auth", "status", "--json"], out);
    assert_eq!(state().code, Some(1));
    let mut login = Piped::start(&stage, &["auth", "login", "--claudeai"], out);
    assert_eq!(login.line(), "Opening browser to sign in…\n");
    let shown = login.line();
    assert!(shown.contains("visit: https://claude.com/cai/oauth/authorize?code=true"), "{shown}");
    login.send("half");
    login.send("code#state");
    let (code, rest) = login.end();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("Invalid code. Please make sure the full code was copied.\n"));
    assert!(rest.ends_with("Login successful.\n"), "{rest}");
    assert_eq!(state().json()["authMethod"], "claude.ai");
    assert_eq!(stage.run(&stage.root, &["auth", "logout"], out).code, Some(0));
    assert_eq!(state().code, Some(1));
}

#[test]
fn a_login_can_go_wrong_in_every_documented_way() {
    let stage = Stage::new(PROGRAM);
    let start = |kind| {
        let knobs = &[("auth", "logged_out"), ("login", kind)];
        Piped::start(&stage, &["auth", "login", "--claudeai"], knobs)
    };
    let mut reject = start("reject");
    reject.send("code#state");
    let (code, text) = reject.end();
    assert_eq!(code, Some(1));
    assert!(!text.contains("successful"));
    let (code, text) = start("url_then_exit").end();
    assert_eq!(code, Some(1));
    assert!(text.contains("/oauth/authorize?"));
    let mut none = start("no_url");
    none.send("half");
    none.line();
    assert!(!none.line().contains("https://"));
    let mut decoy = start("decoy_url");
    decoy.line();
    assert!(decoy.line().contains("https://docs.example.invalid/"));
    assert!(decoy.line().contains("https://claude.com/cai/oauth/authorize?"));
    let mut coloured = start("ansi_url");
    coloured.line();
    assert!(coloured.line().contains("\u{1b}[36mhttps://claude.com/"));
    let mut slow = start("slow_url:1");
    slow.line();
    assert!(slow.line().contains("/oauth/authorize?"));
}

#[test]
fn a_scripted_turn_streams_asks_and_obeys_the_answer() {
    let stage = Stage::new(PROGRAM);
    let hosted = json!({ "uuid": "22222222-2222-4333-8444-555555555555", "replies": [
        { "match": "^list", "chunks": ["I ", "look"], "usage": { "output_tokens": 7 },
          "tool": { "name": "Bash", "input": { "command": "ls" }, "ask": true } },
        { "chunks": ["Anything else"] },
    ]});
    let mut talk = Piped::conversation(&stage, &hosted);
    for (answer, fails) in [
        (json!({ "behavior": "allow", "updatedInput": { "command": "ls" } }), false),
        (json!({ "behavior": "allow" }), true),
        (json!({ "behavior": "deny", "message": "no" }), true),
    ] {
        talk.say("list the files");
        assert_eq!(talk.frame("system")["session_id"], hosted["uuid"]);
        assert_eq!(talk.frame("user")["isReplay"], true);
        assert_eq!(talk.frame("stream_event")["event"]["delta"]["text"], "I ");
        let request = talk.frame("control_request");
        assert_eq!(request["request"]["tool_name"], "Bash");
        talk.answer(&request, &answer);
        let tool = talk.frame("user");
        assert_eq!(tool["message"]["content"][0]["is_error"], fails, "{answer}");
        let result = talk.frame("result");
        assert_eq!((&result["result"], &result["is_error"]), (&json!("I look"), &json!(false)));
        assert_eq!(result["usage"]["output_tokens"], 7);
    }
    talk.say("something");
    assert_eq!(talk.frame("result")["result"], "Anything else");
    assert_eq!(talk.end().0, Some(0));
}

#[test]
fn requests_are_answered_and_an_interrupt_ends_the_turn() {
    let stage = Stage::new(PROGRAM);
    let hosted = json!({ "replies": [{ "chunks": ["a", "b"], "chunk_ms": 60_000 }] });
    let mut talk = Piped::conversation(&stage, &hosted);
    let request = |subtype: &str| {
        json!({ "type": "control_request", "request_id": subtype, "request": { "subtype": subtype } })
            .to_string()
    };
    talk.send(&request("initialize"));
    let answer = talk.frame("control_response");
    assert_eq!(answer["response"]["subtype"], "success", "before any init");
    talk.say("slowly");
    talk.frame("user");
    talk.send(&request("interrupt"));
    assert_eq!(talk.frame("control_response")["response"]["request_id"], "interrupt");
    assert_eq!(talk.frame("result")["subtype"], "error_during_execution");
    talk.send(&request("dance"));
    assert_eq!(talk.frame("control_response")["response"]["subtype"], "error");
}

#[test]
fn a_conversation_can_be_bad_in_every_documented_way() {
    let stage = Stage::new(PROGRAM);
    for kind in ["garbage", "deep", "huge", "split_utf8"] {
        let mut talk = Piped::conversation(&stage, &json!({ "bad_line": kind }));
        talk.say("x");
        assert_eq!(talk.frame("result")["is_error"], false, "{kind}: goes on");
    }
    let hosted = json!({ "exit_after_turns": 1, "exit_code": 3, "init_once": true });
    let mut brief = Piped::conversation(&stage, &hosted);
    brief.say("x");
    assert_eq!(brief.end().0, Some(3));
    let hosted = json!({ "cancel_request_ms": 1, "replies": [
        { "chunks": ["x"], "tool": { "name": "Bash", "ask": true } },
    ]});
    let mut hasty = Piped::conversation(&stage, &hosted);
    hasty.say("x");
    let request = hasty.frame("control_request");
    assert_eq!(hasty.frame("control_cancel_request")["request_id"], request["request_id"]);
    assert_eq!(hasty.frame("result")["is_error"], false);
}

#[test]
fn one_reply_is_text_or_json_and_lies_in_the_transcript() {
    let stage = Stage::new(PROGRAM);
    let run = |args: &[&str], knobs| stage.run(&stage.root, args, knobs);
    assert_eq!(run(&["-p", "hi"], &[]).stdout, "A simulated reply to: hi\n");
    let json = run(&["-p", "hi", "--output-format", "json"], &[]).json();
    assert_eq!(json["result"], "A simulated reply to: hi");
    let refused = run(&["-p", "hi"], &[("auth", "logged_out")]);
    assert_eq!(refused.code, Some(1));
    assert_eq!(refused.stdout, "Not logged in · Please run /login\n");
    let stream = run(&["-p", "hi", "--output-format", "stream-json", "--verbose"], &[]).stdout;
    assert!(stream.lines().last().expect("frames").contains("\"type\":\"result\""));
    let slug = stage.pointer_file(&stage.root);
    let files = std::fs::read_dir(slug.parent().expect("a directory")).expect("transcripts");
    assert_eq!(files.count(), 1, "only a conversation of frames is kept");
}
