//! A service that may open 128 files goes on answering whoever is signed in (H79).

use crate::harness::{Client, Server, Socket, Start, World};
use reqwest::Method;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";
const DESCRIPTORS: usize = 128;
/// More of each kind than the service may open files.
const CROWD: usize = 160;

/// The program, started by a shell that lowers the limit first.
fn limited(world: &World) -> PathBuf {
    let path = world.root.join("limited");
    let program = crate::harness::service();
    let script =
        format!("#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec '{}' \"$@\"\n", program.display());
    svc_programs::write(&path, script).unwrap();
    path
}

async fn sign_in(server: &Server<'_>) -> String {
    let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let reply = server.client.send(request.json(&json!({ "password": PASSWORD }))).await;
    let cookie = reply.expect(200).header("set-cookie").unwrap().to_owned();
    cookie.split(';').next().unwrap().to_owned()
}

/// A socket of the one who is signed in; the service may refuse it.
async fn try_socket(server: &Server<'_>, cookie: &str) -> Option<Socket> {
    let address = server.base.replacen("http", "ws", 1) + "/ws/events";
    let mut request = address.into_client_request().unwrap();
    request.headers_mut().insert("Origin", server.base.parse().unwrap());
    request.headers_mut().insert("Cookie", cookie.parse().unwrap());
    Some(connect_async(request).await.ok()?.0)
}

/// Connections that stay: each says something else of a request, or nothing.
async fn stranger(server: &Server<'_>, number: usize) -> Option<TcpStream> {
    let address = server.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.ok()?;
    let said = match number % 4 {
        0 => String::new(),
        1 => format!("GET /login HTTP/1.1\r\nHost: {address}\r\n"),
        2 => format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n"),
        _ => format!(
            "POST /login HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             Content-Type: application/json\r\nContent-Length: 900\r\n\r\n "
        ),
    };
    stream.write_all(said.as_bytes()).await.ok()?;
    Some(stream)
}

/// On a connection of its own, as of a browser that comes new.
async fn with(server: &Server<'_>, method: Method, path: &str, cookie: &str) -> u16 {
    let client = Client::new(&server.base);
    let request = client.request(method, path).header("Origin", &server.base);
    client.send(request.header("Cookie", cookie)).await.status
}

#[tokio::test]
async fn h79_with_128_descriptors_who_is_signed_in_is_answered_in_any_crowd() {
    let world = World::with(json!({ "auth": {
        "enabled": true, "password_required": true, "password_hash": HASH,
    } }));
    for n in 0..4 {
        world.project(&format!("app-{n}"));
    }
    let start = Start { program: Some(limited(&world)), ..Start::default() };
    let server = world.serve_as(start).await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.pid)).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert!(line.contains(&format!(" {DESCRIPTORS} ")), "{line}");
    let cookie = sign_in(&server).await;
    for n in 0..4 {
        world.cli(&["start", &format!("app-{n}")]).await.ok();
    }

    // Strangers first, then sockets of the one who is signed in, then strangers again.
    let mut strangers = Vec::new();
    let mut sockets = Vec::new();
    for n in 0..CROWD {
        strangers.push(stranger(&server, n).await);
    }
    assert_eq!(with(&server, Method::GET, "/api/state", &cookie).await, 200, "strangers");
    for _ in 0..CROWD {
        let Some(socket) = try_socket(&server, &cookie).await else { break };
        sockets.push(socket);
    }
    assert!(!sockets.is_empty() && sockets.len() < DESCRIPTORS, "{}", sockets.len());
    for n in 0..CROWD {
        strangers.push(stranger(&server, n).await);
    }
    for n in 0..3 {
        assert_eq!(with(&server, Method::GET, "/api/state", &cookie).await, 200, "round {n}");
        assert_eq!(with(&server, Method::GET, "/healthz", &cookie).await, 200, "round {n}");
        let stop = format!("/api/v1/instances/app-{n}");
        assert_eq!(with(&server, Method::DELETE, &stop, &cookie).await, 200, "round {n}");
    }
    // A command beside it, and a new bridge in the place of those that were stopped.
    world.cli(&["stop", "app-3"]).await.ok();
    assert!(world.bridges().is_empty());
    let client = Client::new(&server.base);
    let launch = client.request(Method::POST, "/api/v1/instances").header("Origin", &server.base);
    let launch = launch.header("Cookie", &cookie).json(&json!({ "project": "app-0" }));
    client.send(launch).await.expect(201);
    assert_eq!(with(&server, Method::POST, "/logout?scope=all", &cookie).await, 200);
    assert_eq!(with(&server, Method::GET, "/api/state", &cookie).await, 401);
    drop((strangers, sockets, server));
}

/// Sessions that ask take the place of no stop.
#[tokio::test]
async fn h79_with_128_descriptors_sessions_that_ask_leave_some_for_a_stop() {
    let world = World::with(json!({ "claude": { "approval_hook": true } }));
    for n in 0..4 {
        world.project(&format!("app-{n}"));
    }
    let start = Start { program: Some(limited(&world)), ..Start::default() };
    let server = world.serve_as(start).await;
    let socket = world.state.join("run/ask.sock");
    world.until("the socket", || socket.exists().then_some(())).await;
    for n in 0..4 {
        world.cli(&["start", &format!("app-{n}")]).await.ok();
    }
    let mut hooks = Vec::new();
    for n in 0..CROWD {
        let Ok(mut stream) = UnixStream::connect(&socket).await else { break };
        let question = json!({
            "request_id": format!("0f1e2d3c-4b5a-4978-8796-a5b4c3d2e{n:03x}"),
            "launch": null, "session_id": "s", "cwd": world.projects.join("app-0"),
            "transcript": null, "call": null, "tool_name": "Bash",
            "tool_input": { "command": "make" },
        });
        // Some say nothing. One that is sent away may not hear it all.
        if n % 4 != 3 {
            let _ = stream.write_all(format!("{question}\n").as_bytes()).await;
        }
        hooks.push(stream);
    }
    let mut events = server.events().await;
    events.until("questions", |state| (!state.questions.is_empty()).then_some(())).await;
    for n in 0..3 {
        let client = Client::new(&server.base);
        client.get("/api/state").await.expect(200);
        client.stop(&format!("app-{n}")).await.expect(200);
    }
    world.cli(&["stop", "app-3"]).await.ok();
    assert!(world.bridges().is_empty());
    Client::new(&server.base).launch("app-0").await.expect(201);
    // Those who waited are let go, and others take their places.
    drop(hooks);
    events.until("no question", |state| state.questions.is_empty().then_some(())).await;
    Client::new(&server.base).stop("app-0").await.expect(200);
}
