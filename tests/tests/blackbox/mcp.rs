//! `svc mcp` from outside: a child process that is spoken to line by line.

use crate::harness::canary::{self, Audience};
use crate::harness::{Dice, World, service, within};
use serde_json::{Value, json};
use std::process::Stdio;
use svc_shared::status::BridgeStatus;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

const VERSION: &str = "2025-06-18";

/// A client and its server.
struct Agent {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    errors: ChildStderr,
    last_id: u64,
}

impl World {
    fn agent(&self) -> Agent {
        let mut command = self.command(&service(), &["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        Agent {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")).lines(),
            errors: child.stderr.take().expect("a pipe"),
            child,
            last_id: 1000,
        }
    }

    /// With the tools that write.
    fn writer(&self) -> Agent {
        self.configure(json!({ "mcp": { "allow_writes": true } }));
        self.agent()
    }
}

fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn tool(id: u64, name: &str, arguments: &Value) -> String {
    request(&json!(id), "tools/call", &json!({ "name": name, "arguments": arguments }))
}

impl Agent {
    async fn send(&mut self, line: impl AsRef<[u8]>) {
        let mut line = line.as_ref().to_vec();
        line.push(b'\n');
        within("a line is taken", self.input.write_all(&line)).await.expect("it reads");
    }

    /// The next document; nothing private stands in it.
    async fn next(&mut self) -> Value {
        let line = within("a line", self.output.next_line()).await.expect("UTF-8");
        checked(&line.expect("the server lives"))
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.send(request(&id, method, &params)).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn hello(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let answer = self.ask("initialize", params).await;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        answer["result"].clone()
    }

    /// The result of a call, as an object.
    #[track_caller]
    fn call<'a>(
        &'a mut self,
        name: &'a str,
        arguments: Value,
    ) -> impl Future<Output = Value> + use<'a> {
        let at = std::panic::Location::caller();
        async move {
            let answer = self.try_call(name, arguments).await;
            assert_eq!(answer["isError"], false, "{at}: {answer}");
            let text = answer["content"][0]["text"].as_str().unwrap();
            let told: Value = serde_json::from_str(text).unwrap();
            assert_eq!(told, answer["structuredContent"], "the same twice");
            told
        }
    }

    async fn try_call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.ask("tools/call", params).await["result"].clone()
    }

    /// What a call that fails tells.
    async fn fails(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.try_call(name, arguments).await;
        assert_eq!(answer["isError"], true, "{answer}");
        answer["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The names of the tools.
    async fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// It still works.
    async fn pings(&mut self) {
        let answer = self.ask("ping", json!({})).await;
        assert_eq!(answer["result"], json!({}));
    }

    /// Ends the input: exit code, what was still written, and standard error.
    async fn end(self) -> (Option<i32>, Vec<Value>, String) {
        let Self { mut child, input, mut output, mut errors, .. } = self;
        drop(input);
        let (mut rest, mut said) = (Vec::new(), String::new());
        let status = within("the end of the server", async {
            while let Some(line) = output.next_line().await.unwrap() {
                rest.push(checked(&line));
            }
            errors.read_to_string(&mut said).await.unwrap();
            child.wait().await.unwrap()
        })
        .await;
        canary::check("standard error of `svc mcp`", Audience::Operator, &said);
        (status.code(), rest, said)
    }
}

fn checked(line: &str) -> Value {
    canary::check("a line of `svc mcp`", Audience::Operator, line);
    let document: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let all = document.as_array().cloned().unwrap_or_else(|| vec![document.clone()]);
    assert!(all.iter().all(|one| one["jsonrpc"] == "2.0"), "{line}");
    document
}

#[tokio::test]
async fn versions_of_the_protocol_are_echoed_and_others_are_offered_the_newest() {
    let world = World::new();
    for (asked, told) in [
        (VERSION, VERSION),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", VERSION),
        ("1.0", VERSION),
    ] {
        let mut agent = world.agent();
        let hello = agent.hello(asked).await;
        assert_eq!(hello["protocolVersion"], told, "{asked}");
        assert_eq!(hello["serverInfo"]["name"], "svc");
        assert_eq!(hello["capabilities"]["tools"], json!({ "listChanged": false }));
        agent.pings().await;
        let (code, rest, said) = agent.end().await;
        assert_eq!((code, rest), (Some(0), Vec::new()), "{said}");
        let version = hello["serverInfo"]["version"].as_str().unwrap();
        let banner = format!("svc mcp {version} | read-only (mcp.allow_writes is false) | stdio");
        assert_eq!(said.lines().collect::<Vec<_>>(), [banner]);
    }
}

#[tokio::test]
async fn h137_tools_that_write_are_neither_listed_nor_called_unless_allowed() {
    let world = World::new();
    world.project("app");
    let mut agent = world.agent();
    agent.hello(VERSION).await;
    assert_eq!(agent.tools().await, ["list_sessions", "session_status"]);
    for name in ["spawn_session", "stop_session", "resume_session", "nothing"] {
        let told = agent.fails(name, json!({ "id": "app", "project": "app" })).await;
        assert_eq!(told, format!("unknown tool: '{name}'"));
    }
    let told = agent.call("list_sessions", json!({})).await;
    assert_eq!(told, json!({ "count": 0, "sessions": [] }));
    let told = agent.call("session_status", json!({ "id": "app" })).await;
    assert_eq!(told, json!({ "found": false, "id": "app" }));
    assert!(!world.state.exists(), "reading creates nothing");
    assert!(world.starts("app").is_empty());
    agent.end().await;
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    assert_eq!(agent.tools().await.len(), 5);
    let (code, _, said) = agent.end().await;
    assert!(said.contains("| read+write ("), "{said}");
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn an_agent_starts_finds_stops_and_resumes_a_bridge_without_a_service() {
    let world = World::new();
    world.project("app");
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    let spawned = agent.call("spawn_session", json!({ "project": "app" })).await;
    assert_eq!((&spawned["created"], &spawned["warnings"]), (&json!(true), &json!([])));
    let session = &spawned["session"];
    assert_eq!(session["status"], "running", "{spawned}");
    assert_eq!(
        (&session["kind"], &session["channel"]),
        (&json!("bridge"), &json!("remote-control"))
    );
    let id = session["id"].as_str().unwrap();
    let again = agent.call("spawn_session", json!({ "project": "app" })).await;
    assert_eq!((&again["created"], &again["session"]["id"]), (&json!(false), &json!(id)));
    assert!(again["reason"].is_string(), "{again}");
    for asked in [id, "app", &id[..8]] {
        let told = agent.call("session_status", json!({ "id": asked })).await;
        assert_eq!((&told["found"], &told["session"]["id"]), (&json!(true), &json!(id)));
    }
    let all = agent.call("list_sessions", json!({})).await;
    let bridges: Vec<&Value> =
        all["sessions"].as_array().unwrap().iter().filter(|one| one["kind"] == "bridge").collect();
    assert_eq!((bridges.len(), &bridges[0]["project"]), (1, &json!("app")), "{all}");
    let stopped = agent.call("stop_session", json!({ "id": "app" })).await;
    assert_eq!(
        (&stopped["stopped"], &stopped["session"]["status"]),
        (&json!(true), &json!("stopped"))
    );
    assert!(world.bridges_of("app").is_empty());
    let resumed = agent.call("resume_session", json!({ "id": id })).await;
    assert_eq!((&resumed["resumed"], &resumed["id"]), (&json!(true), &json!(id)), "{resumed}");
    let again = agent.call("resume_session", json!({ "id": id })).await;
    assert_eq!(again["resumed"], false);
    assert!(again["reason"].is_string(), "{again}");
    for name in ["stop_session", "resume_session"] {
        let told = agent.call(name, json!({ "id": "nobody" })).await;
        assert_eq!((told["id"].as_str(), told.get("ambiguous")), (Some("nobody"), None));
    }
    agent.end().await;
    assert_eq!(world.bridges_of("app").len(), 1, "bridges outlive their client");
    // The service that starts next knows it all.
    let server = world.serve().await;
    let one = server.client.instances().await.remove(0);
    assert_eq!(one.instance_id.as_str(), id);
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn an_agent_works_beside_the_service() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let mut events = server.events().await;
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    let spawned = agent.call("spawn_session", json!({ "project": "app" })).await;
    let id = spawned["session"]["id"].as_str().unwrap().to_owned();
    let status = async |events: &mut crate::harness::Events, wanted: BridgeStatus| {
        events
            .until("the status", |state| {
                let one = state.instances.get(id.as_str())?;
                one.status.is(&wanted).then_some(())
            })
            .await;
    };
    status(&mut events, BridgeStatus::Running).await;
    agent.call("stop_session", json!({ "id": id })).await;
    status(&mut events, BridgeStatus::Stopped).await;
    server.client.run("app").await;
    let told = agent.call("session_status", json!({ "id": "app" })).await;
    assert_eq!(told["session"]["status"], "running", "{told}");
    agent.end().await;
    server.client.stop("app").await.expect(200);
}

#[tokio::test]
async fn what_a_tool_refuses_is_told_by_name() {
    let world = World::new();
    world.untrusted("new");
    world.project("app");
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    for (arguments, expected) in [
        (json!({ "project": "missing" }), "missing"),
        (json!({ "project": "new" }), "trust"),
        (json!({ "project": "../app" }), "../app"),
        (json!({}), "`project` is missing"),
        (json!({ "project": "app", "spawn_mode": "x" }), "`spawn_mode` cannot be 'x'"),
        (json!({ "project": "app", "colour": "red" }), "'colour' is no property"),
        (json!({ "project": "app", "trust": "yes" }), "`trust` must be true or false"),
        (json!({ "project": "app", "custom_name": "--help" }), "name"),
        (json!({ "project": "app", "permission_mode": "bypassPermissions" }), "bypass"),
        (json!([]), "`arguments` must be an object"),
    ] {
        let told = agent.fails("spawn_session", arguments.clone()).await;
        assert!(told.starts_with("spawn_session failed: "), "{told}");
        assert!(told.contains(expected), "{arguments}: {told}");
    }
    for name in ["session_status", "stop_session", "resume_session"] {
        for arguments in [json!({}), json!({ "id": " " }), json!({ "id": 7 })] {
            let told = agent.fails(name, arguments).await;
            assert!(told.contains("`id`"), "{told}");
        }
    }
    assert!(world.bridges().is_empty());
    let trusted = agent.call("spawn_session", json!({ "project": "new", "trust": true })).await;
    assert_eq!(trusted["created"], true);
    agent.call("stop_session", json!({ "id": "new" })).await;
    agent.end().await;
}

#[tokio::test]
async fn an_ambiguous_reference_tells_all_that_it_could_mean() {
    let world = World::new();
    world.repository("app");
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    let interactive = json!({ "project": "app", "resume_mode": "pty", "spawn_mode": "worktree" });
    let mut ids = Vec::new();
    for _ in 0..2 {
        let spawned = agent.call("spawn_session", interactive.clone()).await;
        assert!(spawned["session"]["keeper_pid"].is_i64(), "{spawned}");
        ids.push(spawned["session"]["id"].clone());
    }
    ids.sort_by_key(ToString::to_string);
    for (name, done) in
        [("session_status", "found"), ("stop_session", "stopped"), ("resume_session", "resumed")]
    {
        let told = agent.call(name, json!({ "id": "app" })).await;
        assert_eq!(told, json!({ done: false, "id": "app", "ambiguous": ids }));
    }
    for id in &ids {
        agent.call("stop_session", json!({ "id": id })).await;
    }
    agent.end().await;
}

#[tokio::test]
async fn h137_every_odd_line_gets_its_error_and_the_loop_goes_on() {
    let world = World::new();
    let mut agent = world.agent();
    // Before anybody said hello, too.
    for greeted in [false, true] {
        if greeted {
            agent.hello(VERSION).await;
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(4000), "}".repeat(4000));
        let long = "x".repeat(8 * 1024 * 1024 + 1);
        for (line, code, id) in [
            ("{", -32700, Value::Null),
            ("nonsense", -32700, Value::Null),
            (deep.as_str(), -32700, Value::Null),
            (long.as_str(), -32700, Value::Null),
            ("7", -32600, Value::Null),
            ("[]", -32600, Value::Null),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
            (r#"{"jsonrpc":"1.0","id":2,"method":"ping"}"#, -32600, json!(2)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":3,"method":"nothing"}"#, -32601, json!(3)),
            (r#"{"jsonrpc":"2.0","id":4,"method":"prompts/list"}"#, -32601, json!(4)),
            (r#"{"jsonrpc":"2.0","id":"5","method":"ping","params":[]}"#, -32602, json!("5")),
            (r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{}}"#, -32602, json!(6)),
        ] {
            agent.send(line).await;
            let answer = agent.next().await;
            let shown: String = line.chars().take(80).collect();
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{shown}");
        }
        agent.send([b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}".as_slice()].concat()).await;
        assert_eq!(agent.next().await["error"]["code"], -32700);
        // Never answered: notifications, and lines with nothing in them.
        agent.send("\n \r\n{\"jsonrpc\":\"2.0\",\"method\":\"nothing\",\"params\":[]}").await;
        agent.send(r#"{"jsonrpc":"2.0","method":"tools/list"}"#).await;
        agent.pings().await;
    }
    let (code, rest, said) = agent.end().await;
    assert_eq!((code, rest), (Some(0), Vec::new()));
    assert_eq!(said.lines().count(), 1, "only the banner: {said}");
}

#[tokio::test]
async fn h137_while_a_tool_runs_a_ping_is_answered_and_its_id_is_taken() {
    let world = World::new();
    world.project_with("app", json!({ "ready_ms": 6_000 }));
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    let spawn = tool(7, "spawn_session", &json!({ "project": "app" }));
    agent.send(format!("{spawn}\n{}", request(&json!(7), "ping", &json!({})))).await;
    let answer = agent.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)));
    agent.send(request(&json!("7"), "ping", &json!({}))).await;
    assert_eq!(agent.next().await["id"], "7", "a text is another id");
    let answer = agent.next().await;
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(7), &json!(false)));
    agent.send(request(&json!(7), "ping", &json!({}))).await;
    assert_eq!(agent.next().await["result"], json!({}), "it is free again");
    agent.call("stop_session", json!({ "id": "app" })).await;
    agent.end().await;
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_and_the_end_waits_for_the_others() {
    let world = World::new();
    world.project_with("app", json!({ "ready_ms": 600_000 }));
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    agent.send(tool(7, "spawn_session", &json!({ "project": "app" }))).await;
    let cancel = json!({ "requestId": 7, "reason": "enough" });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel });
    agent.send(cancel.to_string()).await;
    agent.pings().await;
    agent.send(request(&json!("last"), "tools/list", &json!({}))).await;
    let (code, rest, _) = agent.end().await;
    assert_eq!(code, Some(0));
    let ids: Vec<&Value> = rest.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!("last")]);
}

#[tokio::test]
async fn a_batch_is_answered_in_one_line_where_batches_exist() {
    let world = World::new();
    let mut agent = world.agent();
    agent.hello("2025-03-26").await;
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let silent = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
    agent.send(json!([ping(1), silent, 5, ping(2), ping(2), list]).to_string()).await;
    let answers = agent.next().await;
    let answers = answers.as_array().unwrap();
    let mut told: Vec<(String, bool)> = answers
        .iter()
        .map(|answer| (answer["id"].to_string(), answer["error"].is_object()))
        .collect();
    told.sort();
    let expected = [("1", false), ("2", false), ("2", true), ("3", false), ("null", true)];
    assert_eq!(told, expected.map(|(id, is_error)| (id.to_owned(), is_error)));
    agent.send(json!([silent]).to_string()).await;
    agent.send("[]").await;
    assert_eq!(agent.next().await["error"]["code"], -32600);
    agent.pings().await;
    agent.end().await;
}

#[tokio::test]
async fn h137_no_line_ends_the_loop() {
    let world = World::new();
    let mut agent = world.agent();
    agent.hello(VERSION).await;
    let seeds = [
        request(&json!(1), "tools/list", &json!({})),
        request(&json!("a"), "ping", &json!({ "_meta": { "progressToken": 1 } })),
        tool(2, "nothing", &json!({ "id": "\u{202e}" })),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#.into(),
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#.into(),
    ];
    let mut dice = Dice::seeded("MCP_SEED").0;
    let mut text = Vec::new();
    for _ in 0..5_000 {
        let mut line = dice.pick(&seeds).clone().into_bytes();
        for _ in 0..dice.roll(4) {
            let at = usize::try_from(dice.roll(line.len() as u64)).unwrap();
            line[at] = u8::try_from(dice.roll(256)).unwrap();
        }
        line.retain(|byte| *byte != b'\n');
        text.extend(line);
        text.push(b'\n');
    }
    text.extend(request(&json!("the last one"), "ping", &json!({})).into_bytes());
    text.push(b'\n');
    let Agent { mut input, mut output, child, errors, last_id } = agent;
    let written = tokio::spawn(async move {
        input.write_all(&text).await.expect("it reads on");
        input
    });
    within("the last answer", async {
        while let Some(line) = output.next_line().await.unwrap() {
            if checked(&line)["id"] == "the last one" {
                return;
            }
        }
        panic!("the server ended");
    })
    .await;
    let input = written.await.unwrap();
    let agent = Agent { input, output, child, errors, last_id };
    let (code, _, said) = agent.end().await;
    assert_eq!((code, said.lines().count()), (Some(0), 1), "{said}");
}

#[tokio::test]
async fn what_was_piped_in_is_answered_before_the_end() {
    let world = World::new();
    let mut agent = world.agent();
    agent.hello(VERSION).await;
    agent.send(tool(1, "list_sessions", &json!({}))).await;
    // The last line has no end.
    let last = request(&json!(2), "tools/list", &json!({}));
    agent.input.write_all(last.as_bytes()).await.unwrap();
    let (code, rest, _) = agent.end().await;
    let mut ids: Vec<u64> = rest.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!((code, ids), (Some(0), vec![1, 2]));
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_exits_2_before_any_word() {
    let world = World::new();
    world.configure(json!({ "port": "many" }));
    let ran = world.cli(&["mcp"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("port"), "{}", ran.stderr);
    std::fs::remove_file(&world.config).unwrap();
    let ran = world.cli(&["mcp"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
}

#[tokio::test]
async fn resources_are_listed_and_read_masked() {
    let world = World::new();
    world.project("app");
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    let spawned = agent.call("spawn_session", json!({ "project": "app" })).await;
    let id = spawned["session"]["id"].as_str().unwrap();
    let listed = agent.ask("resources/list", json!({})).await;
    let listed = listed["result"]["resources"].as_array().unwrap().clone();
    let uris: Vec<&str> = listed.iter().map(|one| one["uri"].as_str().unwrap()).collect();
    let log = format!("svc://logs/{id}");
    assert!(uris.contains(&"svc://approvals") && uris.contains(&log.as_str()), "{uris:?}");
    for uri in uris {
        let read = agent.ask("resources/read", json!({ "uri": uri })).await;
        let content = &read["result"]["contents"][0];
        assert_eq!(content["uri"], uri, "{read}");
        assert!(content["text"].is_string(), "{read}");
    }
    let read = agent.ask("resources/read", json!({ "uri": "svc://approvals" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "[]");
    let read = agent.ask("resources/read", json!({ "uri": log })).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.lines().count() > 1, "{text}");
    for uri in
        ["file:///etc/passwd", "svc://logs/nobody", "svc://conversations/app/0000000000000000"]
    {
        let read = agent.ask("resources/read", json!({ "uri": uri })).await;
        assert!(read["error"]["code"].is_i64(), "{uri}: {read}");
    }
    agent.call("stop_session", json!({ "id": id })).await;
    agent.end().await;
}

#[tokio::test]
async fn h137_what_cannot_be_listed_is_named_beside_the_rest() {
    let world = World::new();
    world.project("app");
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    let spawned = agent.call("spawn_session", json!({ "project": "app" })).await;
    let log = format!("svc://logs/{}", spawned["session"]["id"].as_str().unwrap());
    agent.call("stop_session", json!({ "id": "app" })).await;

    // Logs that are gone, and a daemon that nobody reaches.
    for entry in std::fs::read_dir(world.state.join("logs")).unwrap().flatten() {
        std::fs::remove_file(entry.path()).unwrap();
    }
    world.configure(json!({ "hosted": { "enabled": true } }));
    let mut agent = world.agent();
    agent.hello(VERSION).await;
    let listed = agent.ask("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"][0]["uri"], "svc://approvals", "{listed}");
    assert!(listed["result"]["_meta"].is_null(), "{listed}");
    agent.ask("resources/read", json!({ "uri": log })).await;
    agent.ask("resources/read", json!({ "uri": "svc://approvals" })).await;
    agent.end().await;

    let database = world.state.join("svc.db");
    std::fs::write(&database, "no database").unwrap();
    let mut agent = world.agent();
    agent.hello(VERSION).await;
    let listed = agent.ask("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"][0]["uri"], "svc://approvals", "{listed}");
    let missing = listed["result"]["_meta"]["svc/missing"].as_array().unwrap();
    assert!(missing[0].as_str().unwrap().contains("are not listed"), "{listed}");
    agent.pings().await;
    agent.end().await;
}

#[tokio::test]
async fn h99_calls_at_the_same_time_start_one_bridge() {
    let world = World::new();
    world.project("app");
    let mut agent = world.writer();
    agent.hello(VERSION).await;
    for id in 0..10 {
        agent.send(tool(id, "spawn_session", &json!({ "project": "app" }))).await;
    }
    let mut created = 0;
    for _ in 0..10 {
        let answer = agent.next().await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        created += u32::from(answer["result"]["structuredContent"]["created"] == true);
    }
    assert_eq!((created, world.bridges_of("app").len()), (1, 1));
    agent.call("stop_session", json!({ "id": "app" })).await;
    agent.end().await;
}

/// A signal sent by mistake does not take its tools from an agent (H113).
#[tokio::test]
async fn h113_h137_no_signal_by_accident_ends_the_server_of_an_agent() {
    let world = World::new();
    let mut agent = world.agent();
    agent.hello(VERSION).await;
    let pid = agent.child.id().expect("it runs").to_string();
    for signal in ["USR1", "USR2", "ALRM", "XCPU", "XFSZ", "VTALRM", "PROF", "PWR", "POLL", "40"] {
        let sent = std::process::Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{signal}");
        agent.ask("ping", json!({})).await;
    }
    let sent = std::process::Command::new("kill").args(["-s", "TERM", &pid]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    within("its end", agent.child.wait()).await.expect("it is our child");
}
