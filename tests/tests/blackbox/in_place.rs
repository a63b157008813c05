//! The service restarts itself: same process, same socket, same bridges (H114).

use crate::guard::closed;
use crate::harness::{Client, Start, World, gone, service, socket, stat_of, within};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio_tungstenite::tungstenite::Message;

/// Clients that ask without a pause.
const CLIENTS: usize = 24;
/// Open pages.
const PAGES: usize = 50;
/// Requests of each client after the restart.
const AFTERWARDS: usize = 20;

/// What the running service wrote about itself.
fn record(world: &World) -> Option<Value> {
    serde_json::from_slice(&fs::read(world.state_dir().join("run.lock")).ok()?).ok()
}

pub fn started_at(world: &World) -> i64 {
    record(world).and_then(|record| record["started_at"].as_i64()).expect("a service runs")
}

/// Waits until another start than this one listens; its address.
async fn restarted(world: &World, before: i64) -> String {
    world
        .until("the restarted service", || {
            let record = record(world)?;
            let is_new = record["started_at"].as_i64().is_some_and(|now| now != before);
            is_new.then(|| record["address"].as_str().map(str::to_owned))?
        })
        .await
}

pub async fn restart(world: &World, client: &Client) {
    let before = started_at(world);
    let reply = client.post("/api/restart").await.expect(202);
    assert_eq!(reply.json(), json!({ "restarting": true }));
    restarted(world, before).await;
}

/// Whether an open connection ended before a byte of the answer.
///
/// The service waits a second for one more request on it. A client that this machine does not run
/// for longer asks too late, and repeats a request that changes nothing (RFC 9110, 9.2.2).
fn is_closing(error: &reqwest::Error) -> bool {
    format!("{error:?}").contains("IncompleteMessage")
}

/// Clients that ask without a pause during some work, and a while after it.
/// None fails.
async fn under_load(client: impl Fn() -> Client, work: impl Future<Output = ()>) {
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let clients = join_all((0..CLIENTS).map(|number| {
        let (is_over, answered, client) = (&is_over, &answered, client());
        async move {
            let mut left = AFTERWARDS;
            while left > 0 {
                let mut request = client.request(Method::GET, "/api/v1/instances");
                // Half of them open a connection for each request.
                if number % 2 == 0 {
                    request = request.header("connection", "close");
                }
                let again = request.try_clone().expect("no body");
                let reply = match client.try_send(request).await {
                    Err(error) if number % 2 == 1 && is_closing(&error) => {
                        client.try_send(again).await
                    }
                    reply => reply,
                };
                reply.expect("no request fails").expect(200);
                answered.fetch_add(1, Ordering::Relaxed);
                left -= usize::from(is_over.load(Ordering::Relaxed));
            }
        }
    }));
    let work = async {
        work.await;
        is_over.store(true, Ordering::Relaxed);
    };
    tokio::join!(clients, work);
    eprintln!("{} requests, none failed", answered.load(Ordering::Relaxed));
}

/// A program that passes its standard input on as a service manager passes sockets.
fn activated(world: &World) -> PathBuf {
    let script = world.root.join("activated");
    let text = format!(
        "#!/bin/sh\nexec 3<&0 </dev/null\nexport LISTEN_PID=$$ LISTEN_FDS=1\nexec '{}' \"$@\"\n",
        service().display()
    );
    svc_programs::write(&script, text).unwrap();
    script
}

/// The umask of a process, which its files get.
fn umask(pid: i64) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find(|line| line.starts_with("Umask")).unwrap().to_owned()
}

#[tokio::test]
async fn h114_a_restart_under_load_fails_no_request_and_ends_no_bridge() {
    let world = World::new();
    for name in ["before", "after"] {
        world.project(name);
    }
    let server = world.serve().await;
    let old = server.client.run("before").await;
    assert!(server.client.get("/api/bootstrap").await.json()["features"]["restart"] == true);
    let pages = join_all((0..PAGES).map(|_| socket(&server.base, "/ws/events"))).await;
    under_load(|| Client::new(&server.base), restart(&world, &server.client)).await;
    for mut page in pages {
        let goodbye = within("a goodbye", async {
            loop {
                if let Message::Close(frame) = page.next().await.expect("a frame").expect("whole") {
                    return frame.expect("a reason");
                }
            }
        });
        assert_eq!(u16::from(goodbye.await.code), 1012);
    }
    assert_eq!(record(&world).unwrap()["pid"], server.pid, "the same process");
    let row = server.client.instance("before").await.expect(200).instance();
    assert_eq!((row.status.to_string().as_str(), row.bridge_pid), ("running", old.bridge_pid));
    let new = server.client.run("after").await;
    let pid = |row: &svc_shared::api::instances::Instance| i64::from(row.bridge_pid.unwrap());
    assert_eq!(umask(pid(&old)), umask(pid(&new)), "agents keep the umask of the first start");
    // The end of a bridge that the program before the restart started is seen and collected.
    let bridge = world.bridges_of("before").remove(0);
    let mut events = server.events().await;
    bridge.signal(Signal::KILL);
    let ended = events.until_status("before", "crashed").await;
    assert_eq!(ended.exit_signal, Some(9), "{ended:?}");
    gone(&bridge).await;
    assert!(stat_of(bridge.pid).is_none(), "it was collected");
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn h114_what_would_not_start_is_refused_and_the_old_process_keeps_serving() {
    let world = World::new();
    let program = world.root.join("svc");
    svc_programs::copy(service(), &program).unwrap();
    let start = Start { program: Some(program.clone()), ..Start::default() };
    let server = world.serve_as(start).await;
    let before = started_at(&world);
    let refused = async |words: &str| {
        let reply = server.client.post("/api/restart").await;
        assert_eq!(reply.refused(409), "invalid_value");
        assert!(reply.text().contains(words), "{words}: {}", reply.text());
        server.client.get("/api/v1/instances").await.expect(200);
        assert_eq!(started_at(&world), before, "the same start");
    };
    let own = world.port();
    world.configure(json!({ "port": "many" }));
    refused("port").await;
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    world.configure(json!({ "port": taken.local_addr().unwrap().port() }));
    refused("another program listens there").await;
    world.configure(json!({ "port": own, "host": "0.0.0.0" }));
    refused("auth").await;
    world.configure(json!({ "host": "127.0.0.1" }));
    let aside = world.root.join("aside");
    fs::rename(&program, &aside).unwrap();
    refused("does not run").await;
    fs::rename(&aside, &program).unwrap();
    restart(&world, &server.client).await;
    server.client.get("/api/v1/instances").await.expect(200);
}

#[tokio::test]
async fn h114_a_changed_port_is_served_after_the_restart_and_the_old_one_is_free() {
    let world = World::new();
    let server = world.serve().await;
    let (old, before) = (world.port(), started_at(&world));
    world.move_port();
    server.client.post("/api/restart").await.expect(202);
    let address = restarted(&world, before).await;
    assert!(address.contains(&format!(":{}/", world.port())), "{address}");
    Client::new(address.trim_end_matches('/')).get("/healthz").await.expect(200);
    TcpListener::bind(("127.0.0.1", old)).expect("nobody listens there any more");
}

#[tokio::test]
async fn h114_h13_over_tls_a_restart_under_load_fails_no_request_either() {
    let tls = json!({ "provision": "self-signed", "hostnames": ["127.0.0.1"] });
    let world = World::with(json!({ "tls": tls }));
    let _server = world.serve().await;
    let base = format!("https://127.0.0.1:{}", world.port());
    let certificate = fs::read(world.state_dir().join("tls/self-signed.crt")).unwrap();
    let client = || Client::trusting(&base, &certificate);
    under_load(client, restart(&world, &client())).await;
    let shown = fs::read(world.state_dir().join("tls/self-signed.crt")).unwrap();
    assert_eq!(shown, certificate, "the same certificate");
}

#[tokio::test]
async fn h114_a_socket_that_the_service_manager_holds_is_served() {
    let world = World::new();
    let program = activated(&world);
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    world.configure(json!({ "port": held.local_addr().unwrap().port() }));
    // Callers that come before the service wait for it.
    let early = Client::new(&format!("http://127.0.0.1:{}", world.port()));
    let stdin = Some(held.try_clone().unwrap().into());
    let start = Start { program: Some(program), stdin, ..Start::default() };
    let start = || world.try_serve(&start);
    let (reply, server) = tokio::join!(early.get("/healthz"), start());
    reply.expect(200);
    let server = server.expect("it serves, although its address is taken");
    // The socket stays the manager's: it is there after the service, and serves the next one.
    restart(&world, &server.client).await;
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
    let (reply, server) = tokio::join!(early.get("/healthz"), start());
    reply.expect(200);
    server.expect("it serves again").stop().await;
    drop(held);
}

#[tokio::test]
async fn h114_a_socket_that_listens_elsewhere_is_not_served() {
    let world = World::new();
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let program = Some(activated(&world));
    let stdin = Some(held.try_clone().unwrap().into());
    let server = world.serve_as(Start { program, stdin, ..Start::default() }).await;
    server.says("a socket that was handed over listens at").await;
    server.client.get("/healthz").await.expect(200);
}

/// A socket unit may have several `ListenStream=`.
#[tokio::test]
async fn h114_of_several_sockets_the_one_that_is_configured_is_served() {
    let world = World::new();
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    world.configure(json!({ "port": held.local_addr().unwrap().port() }));
    let script = world.root.join("several");
    svc_programs::write(
        &script,
        format!(
            "#!/usr/bin/env python3\nimport os, socket, sys\n\
             one = socket.socket()\none.bind(('127.0.0.1', 0))\none.listen()\n\
             os.dup2(0, 20)\nos.dup2(one.fileno(), 3)\nos.dup2(20, 4)\nos.close(20)\nos.set_inheritable(3, True)\n\
             os.dup2(os.open('/dev/null', os.O_RDONLY), 0)\n\
             os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2')\n\
             os.execv('{0}', ['{0}', *sys.argv[1:]])\n",
            service().display()
        ),
    )
    .unwrap();
    let stdin = Some(held.try_clone().unwrap().into());
    let start = Start { program: Some(script), stdin, ..Start::default() };
    let server = world.try_serve(&start).await.expect("it serves, although its address is taken");
    server.says("a socket that was handed over listens at").await;
    server.client.get("/healthz").await.expect(200);
    restart(&world, &server.client).await;
    server.client.get("/healthz").await.expect(200);
    drop(held);
}

#[tokio::test]
async fn h114_the_command_restarts_the_running_service_and_says_what_came_of_it() {
    let world = World::new();
    let none = world.cli(&["restart"]).await;
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(none.stderr.contains("svc run"), "{}", none.stderr);
    let server = world.serve().await;
    let before = started_at(&world);
    let done = world.cli(&["restart", "--json"]).await.ok().json();
    assert_eq!((&done["restarted"], &done["pid"]), (&json!(true), &json!(server.pid)), "{done}");
    assert_ne!(started_at(&world), before);
    let text = world.cli(&["restart"]).await.ok().stdout;
    assert!(text.contains(&server.base), "{text}");
    server.client.get("/healthz").await.expect(200);
    let before = started_at(&world);
    let (own, taken) = (world.port(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    world.configure(json!({ "port": taken.local_addr().unwrap().port() }));
    let refused = world.cli(&["restart"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for words in ["goes on as it is", "another program listens there"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    let refused = world.cli(&["restart", "--json"]).await;
    assert_eq!(refused.json()["error"]["code"], "invalid_value", "{}", refused.stdout);
    assert_eq!(started_at(&world), before, "the same start");
    world.configure(json!({ "port": own }));
    let left: Vec<_> = fs::read_dir(world.state_dir().join("run")).unwrap().flatten().collect();
    let sockets =
        left.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with("restart-"));
    assert_eq!(sockets.count(), 0, "{left:?}");
}

#[tokio::test]
async fn h114_h23_a_token_with_a_scope_cannot_restart_the_service() {
    let world = World::with(closed());
    let server = world.serve().await;
    let before = started_at(&world);
    let post = async |token: &str| {
        let request = server.client.request(Method::POST, "/api/restart");
        server.client.send(request.header("authorization", format!("Bearer {token}"))).await
    };
    let issue = ["api-token", "issue", "ci", "--scope", "operate"];
    let limited = world.cli(&issue).await.ok().stdout;
    assert_eq!(post(limited.trim()).await.refused(403), "scope_denied");
    assert_eq!(started_at(&world), before);
    let full = world.cli(&["api-token", "issue", "owner"]).await.ok().stdout;
    post(full.trim()).await.expect(202);
    restarted(&world, before).await;
}
