//! The built daemon with real processes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_hosted::client::{CallError, Client, ConnectError};
use svc_hosted::protocol::{Reattached, Spawned, StreamFrame, StreamName, code};
use svc_hosted::start::{Start, start};
use svc_ports::ProcessHost as _;
use svc_ports::process::{Signal, Target};
use svc_process::{Host, HostOptions};
use tokio::sync::mpsc::Receiver;

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("daemon.sock")
    }

    async fn start(&self) {
        let env: BTreeMap<_, _> = std::env::vars_os().collect();
        start(&Start {
            program: env!("CARGO_BIN_EXE_svc-hosted").as_ref(),
            socket: &self.socket(),
            token: TOKEN,
            keep_children: true,
            env: &env,
            limit: LIMIT,
        })
        .await
        .unwrap();
    }

    async fn connect(&self) -> Client {
        let (client, reader) =
            Client::connect(&self.socket(), TOKEN.to_owned(), LIMIT).await.unwrap();
        tokio::spawn(reader);
        client
    }

    fn order(&self, id: &str, script: &str) -> Value {
        json!({ "id": id, "command": "/bin/sh", "args": ["-c", script], "cwd": self.dir.path() })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Ends the daemon that this test started, if it listens.
        let socket = self.socket();
        let stop = async move {
            if let Ok((client, reader)) =
                Client::connect(&socket, TOKEN.to_owned(), Duration::from_secs(1)).await
            {
                tokio::spawn(reader);
                let _ = client.call("server.shutdown", json!({})).await;
            }
        };
        std::thread::spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(stop);
        })
        .join()
        .unwrap();
    }
}

/// Reads to the end of the process; the text of its output and the code.
async fn to_end(frames: &mut Receiver<StreamFrame>) -> (String, Option<i32>, Vec<u64>) {
    let (mut text, mut seqs) = (Vec::new(), Vec::new());
    while let Some(frame) = frames.recv().await {
        seqs.push(frame.seq);
        if frame.stream == StreamName::Exit {
            return (String::from_utf8(text).unwrap(), frame.exit_code, seqs);
        }
        text.extend(STANDARD.decode(frame.data.unwrap()).unwrap());
    }
    panic!("the stream ended without an exit");
}

const ID: &str = "00000000000000000000000000000001";

#[tokio::test]
async fn a_process_is_started_fed_and_read_to_its_end() {
    let stage = Stage::new();
    stage.start().await;
    let client = stage.connect().await;
    assert_eq!(client.capabilities().protocol, 1);
    let mut frames = client.subscribe(ID);
    let spawned =
        client.call("process.spawn", stage.order(ID, "read x; echo got $x; exit 3")).await;
    let spawned: Spawned = serde_json::from_value(spawned.unwrap()).unwrap();
    assert!(spawned.pid > 1 && spawned.start_time > 0 && !spawned.boot_id.is_empty());
    let line = json!({ "id": ID, "data": STANDARD.encode("hello\n") });
    client.call("process.stdin", line).await.unwrap();
    let (text, exit, seqs) = to_end(&mut frames).await;
    assert_eq!((text.as_str(), exit), ("got hello\n", Some(3)));
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    // What comes later finds the frames again, and an ended id is used again only when forgotten.
    let other = stage.connect().await;
    let mut again = other.subscribe(ID);
    let answer = other.call("process.reattach", json!({ "id": ID, "fromSeq": 0 })).await.unwrap();
    let answer: Reattached = serde_json::from_value(answer).unwrap();
    assert!(answer.found && !answer.running && answer.last_seq == seqs.len() as u64);
    assert_eq!(to_end(&mut again).await.0, "got hello\n");
    let refused = client.call("process.spawn", stage.order(ID, "true")).await;
    assert!(matches!(refused, Err(CallError::Refused(error)) if error.code == code::ALREADY_LIVE));
    client.call("process.forget", json!({ "id": ID })).await.unwrap();
    client.call("process.spawn", stage.order(ID, "true")).await.unwrap();
}

#[tokio::test]
async fn hd8_all_frames_arrive_once_and_in_order_after_a_lost_connection() {
    let stage = Stage::new();
    stage.start().await;
    let first = stage.connect().await;
    let mut frames = first.subscribe(ID);
    let script = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 0";
    first.call("process.spawn", stage.order(ID, script)).await.unwrap();
    let mut seen = frames.recv().await.unwrap();
    let mut text = STANDARD.decode(seen.data.take().unwrap()).unwrap();
    drop(first);
    let second = stage.connect().await;
    let mut frames = second.subscribe(ID);
    let reattach = json!({ "id": ID, "fromSeq": seen.seq });
    let (answer, rest) =
        tokio::join!(second.call("process.reattach", reattach), to_end(&mut frames));
    assert_eq!(answer.unwrap()["found"], true);
    assert_eq!(rest.2.first(), Some(&(seen.seq + 1)));
    text.extend(rest.0.into_bytes());
    let all: String = (0..3000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8(text).unwrap(), all);
}

#[tokio::test]
async fn hd2_a_second_daemon_leaves_the_first_alone() {
    let stage = Stage::new();
    tokio::join!(stage.start(), stage.start());
    let client = stage.connect().await;
    let pid = client.capabilities().pid;
    stage.start().await;
    assert_eq!(stage.connect().await.capabilities().pid, pid);
}

#[tokio::test]
async fn hd3_a_wrong_token_is_refused_three_times_and_then_the_connection_ends() {
    let stage = Stage::new();
    stage.start().await;
    let wrong = Client::connect(&stage.socket(), "0".repeat(64), LIMIT).await;
    assert!(matches!(wrong.map(|_| ()), Err(ConnectError::Rejected)));
    let client = stage.connect().await;
    client.call("server.ping", json!({})).await.unwrap();
}

#[tokio::test]
async fn wrong_requests_are_answered_and_end_nothing() {
    let stage = Stage::new();
    stage.start().await;
    let client = stage.connect().await;
    let refused = async |method: &str, params: Value| match client.call(method, params).await {
        Err(CallError::Refused(error)) => error.code,
        other => panic!("{method}: {other:?}"),
    };
    let order = stage.order(ID, "true");
    assert_eq!(refused("process.fly", json!({})).await, code::UNKNOWN_METHOD);
    assert_eq!(refused("process.spawn", json!({})).await, code::INVALID_PARAMS);
    for (name, value) in [
        ("id", json!("UPPER")),
        ("command", json!("sh")),
        ("cwd", json!("relative")),
        ("cwd", json!("/nowhere/at/all")),
        ("args", json!([1])),
    ] {
        let mut order = order.clone();
        order[name] = value;
        assert_eq!(refused("process.spawn", order).await, code::INVALID_PARAMS, "{name}");
    }
    let mut missing = order.clone();
    missing["command"] = json!("/nowhere/program");
    assert_eq!(refused("process.spawn", missing).await, code::EXEC_FAILED);
    assert_eq!(refused("process.stdin", json!({ "id": ID })).await, code::INVALID_PARAMS);
    let unknown = client.call("process.kill", json!({ "id": ID })).await.unwrap();
    assert_eq!(unknown["found"], false);
    let running = stage.order(ID, "exec sleep 60");
    client.call("process.spawn", running).await.unwrap();
    assert_eq!(refused("process.forget", json!({ "id": ID })).await, code::STILL_RUNNING);
    let huge = json!({ "id": ID, "data": STANDARD.encode(vec![b'x'; 700_000]) });
    let mut full = None;
    for _ in 0..8 {
        if let Err(CallError::Refused(error)) = client.call("process.stdin", huge.clone()).await {
            full = Some(error.code);
        }
    }
    assert_eq!(full, Some(code::STDIN_FULL));
    let kill = json!({ "id": ID, "signal": "INT", "timeoutMs": 20_000 });
    let killed = client.call("process.killAndWait", kill).await.unwrap();
    assert_eq!((&killed["exited"], &killed["signal"]), (&json!(true), &json!(2)));
}

#[tokio::test]
async fn hd6_a_killed_daemon_leaves_orphans_that_the_next_one_lists() {
    let stage = Stage::new();
    stage.start().await;
    let client = stage.connect().await;
    let spawned = client.call("process.spawn", stage.order(ID, "exec sleep 60")).await.unwrap();
    let host = Host::new(HostOptions::default()).unwrap();
    let daemon = Pid::new(client.capabilities().pid).unwrap();
    let daemon = host.inspect(daemon).unwrap().identity;
    host.signal(&daemon, Signal::Kill, Target::Process);
    client.closed().cancelled().await;
    host.exited(&daemon).await;
    stage.start().await;
    let next = stage.connect().await;
    let listed = next.call("process.list", json!({})).await.unwrap();
    let one = &listed["processes"][0];
    assert_eq!((&one["id"], &one["orphan"]), (&json!(ID), &json!(true)));
    assert_eq!(one["pid"], spawned["pid"]);
    let answer = next.call("process.reattach", json!({ "id": ID, "fromSeq": 0 })).await.unwrap();
    assert_eq!(answer["found"], false);
    let orphan = ProcessIdentity {
        pid: Pid::new(one["pid"].as_i64().unwrap()).unwrap(),
        start_ticks: one["startTime"].as_u64().unwrap(),
        boot_id: host.boot_id().clone(),
    };
    host.signal(&orphan, Signal::Kill, Target::Group);
    host.exited(&orphan).await;
    let listed = next.call("process.list", json!({})).await.unwrap();
    assert_eq!(listed["processes"], json!([]));
}

/// Who cannot show the token takes no place of those who can.
#[tokio::test]
async fn h79_a_crowd_without_the_token_keeps_nobody_out() {
    let stage = Stage::new();
    stage.start().await;
    let before = stage.connect().await;
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(tokio::net::UnixStream::connect(stage.socket()).await.unwrap());
    }
    let mut others = Vec::new();
    for _ in 0..8 {
        let client = stage.connect().await;
        client.call("process.list", json!({})).await.unwrap();
        others.push(client);
    }
    // Who was there goes on, and the oldest of the crowd had to make room.
    before.call("process.list", json!({})).await.unwrap();
    let mut byte = [0];
    let gone = tokio::io::AsyncReadExt::read(&mut crowd[0], &mut byte).await;
    assert!(matches!(gone, Ok(0) | Err(_)), "{gone:?}");
}

#[tokio::test]
async fn hd15_input_in_parts_arrives_whole_or_not_at_all() {
    let stage = Stage::new();
    stage.start().await;
    let client = stage.connect().await;
    let mut frames = client.subscribe(ID);
    client.call("process.spawn", stage.order(ID, "read x; echo got $x")).await.unwrap();
    let part = |text: &str, continued: bool, more: bool| {
        let data = STANDARD.encode(text);
        json!({ "id": ID, "data": data, "continued": continued, "more": more })
    };
    // Whoever sent this one went away in the middle of its line.
    client.call("process.stdin", part("half a li", false, true)).await.unwrap();
    let lost = stage.connect().await.call("process.stdin", part("ne\n", true, false)).await;
    assert!(matches!(lost, Err(CallError::Refused(error)) if error.code == code::INVALID_PARAMS));
    client.call("process.stdin", part("a whole ", false, true)).await.unwrap();
    client.call("process.stdin", part("line\n", true, false)).await.unwrap();
    assert_eq!(to_end(&mut frames).await.0, "got a whole line\n");
}

#[tokio::test]
async fn after_a_detach_no_frame_of_the_old_stream_comes() {
    let stage = Stage::new();
    stage.start().await;
    let client = stage.connect().await;
    let mut frames = client.subscribe(ID);
    // Few enough that every frame is kept, however long this takes.
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
    client.call("process.spawn", stage.order(ID, script)).await.unwrap();
    let (mut seen, mut rounds) = (0, 0);
    loop {
        for _ in 0..10 {
            let frame = frames.recv().await.unwrap();
            assert_eq!(frame.seq, seen + 1, "the first frame is the one that is missed");
            seen = frame.seq;
            if frame.stream == StreamName::Exit {
                assert!(rounds > 2, "{rounds}");
                return;
            }
        }
        let detached = client.call("process.detach", json!({ "id": ID }));
        // Whoever does not read holds up the connection, and with it the answer.
        let drained = async { while frames.recv().await.is_some() {} };
        tokio::select! {
            answer = detached => drop(answer.unwrap()),
            () = drained => unreachable!("the subscription stays"),
        }
        frames = client.subscribe(ID);
        let again = json!({ "id": ID, "fromSeq": seen });
        let attached = client.call("process.reattach", again);
        let first = tokio::select! {
            frame = frames.recv() => frame.unwrap(),
            _ = attached => frames.recv().await.unwrap(),
        };
        assert_eq!(first.seq, seen + 1, "the first frame is the one that is missed");
        seen = first.seq;
        rounds += 1;
        if first.stream == StreamName::Exit {
            return;
        }
    }
}

#[tokio::test]
async fn ended_processes_make_room_for_new_ones() {
    let stage = Stage::new();
    stage.start().await;
    let client = stage.connect().await;
    let id = |n: u32| format!("{n:032x}");
    for n in 0..300 {
        let mut frames = client.subscribe(&id(n));
        client.call("process.spawn", stage.order(&id(n), "exit 0")).await.unwrap();
        to_end(&mut frames).await;
    }
    let listed = client.call("process.list", json!({})).await.unwrap();
    assert!(listed["processes"].as_array().unwrap().len() <= 256);
    let oldest = json!({ "id": id(0), "fromSeq": 0 });
    let oldest: Reattached =
        serde_json::from_value(client.call("process.reattach", oldest).await.unwrap()).unwrap();
    assert!(!oldest.found);
}
