//! Open sockets end with the credential that opened them (H18).

use crate::harness::{Server, Socket, World, within};
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";
/// Of a password that nobody knows.
const OTHER_HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$dKAJrvSyqFRIZVvBNdC1aw\
    $GCPLi4h2UEKj9+sjyf7t3n3qMi0IDoylD0Hdd4WCTzQ";

/// A name and value of a header.
type Header = (&'static str, String);

fn closed() -> serde_json::Value {
    json!({ "auth": {
        "enabled": true, "password_required": true, "password_hash": HASH,
    } })
}

async fn sign_in(server: &Server<'_>) -> Header {
    let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let reply = server.client.send(request.json(&json!({ "password": PASSWORD }))).await;
    let cookie = reply.expect(200).header("set-cookie").unwrap().to_owned();
    ("cookie", cookie.split(';').next().unwrap().to_owned())
}

async fn issue(world: &World, label: &str) -> Header {
    let issued = world.cli(&["api-token", "issue", label, "--json"]).await.ok().json();
    ("authorization", format!("Bearer {}", issued["token"].as_str().unwrap()))
}

async fn ask(server: &Server<'_>, method: Method, path: &str, header: &Header) -> u16 {
    let request = server.client.request(method, path).header("Origin", &server.base);
    server.client.send(request.header(header.0, &header.1)).await.status
}

/// Opens a socket with this credential.
async fn open(server: &Server<'_>, path: &str, header: &Header) -> Result<Socket, String> {
    let address = server.base.replacen("http", "ws", 1) + path;
    let mut request = address.into_client_request().unwrap();
    request.headers_mut().insert("origin", server.base.parse().unwrap());
    request.headers_mut().insert(header.0, header.1.parse().unwrap());
    let opened = within("a socket", connect_async(request)).await;
    opened.map(|(socket, _)| socket).map_err(|error| error.to_string())
}

/// What came until the socket was closed, and the code of its close.
async fn until_closed(socket: &mut Socket) -> (Vec<String>, u16) {
    let mut texts = Vec::new();
    within("the close", async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(frame)))) => return (texts, u16::from(frame.code)),
                Some(Ok(Message::Text(text))) => texts.push(text.to_string()),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    })
    .await
}

/// Both kinds of sockets of one credential, each past its first frame.
async fn both(server: &Server<'_>, id: &str, header: &Header) -> [Socket; 2] {
    let log = format!("/ws/bridge-log/{id}?format=json");
    let mut events = open(server, "/ws/events", header).await.unwrap();
    let mut log = open(server, &log, header).await.unwrap();
    for socket in [&mut events, &mut log] {
        let first = within("a frame", socket.next()).await.unwrap().unwrap();
        assert!(first.is_text(), "{first:?}");
    }
    [events, log]
}

/// Makes the bridge write a line that can be looked for.
fn write(world: &World, line: &str) {
    let logs = std::fs::read_dir(world.state_dir().join("logs")).unwrap();
    let mut logs = logs.map(|entry| entry.unwrap().path());
    let is_log = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("app-") && name.ends_with(".log") && !name.ends_with(".stderr.log")
    };
    let path = logs.find(is_log).expect("the log of the bridge");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    let line = format!("2026-11-21T08:07:31.000Z [DEBUG] {line}\n");
    std::io::Write::write_all(&mut file, line.as_bytes()).unwrap();
}

#[tokio::test]
async fn h18_every_kind_of_socket_ends_with_its_credential_and_hears_nothing_after() {
    let world = World::with(closed());
    world.project("app");
    let server = world.serve().await;
    world.cli(&["start", "app", "--wait"]).await.ok();
    let id = world.row("app").await.instance_id;
    let keeps = issue(&world, "keeps").await;
    for end in ["logout", "revoke", "rotate", "other sign-in"] {
        let header = match end {
            "logout" | "other sign-in" => sign_in(&server).await,
            _ => issue(&world, end).await,
        };
        let [mut events, mut log] = both(&server, &id, &header).await;
        let [_, mut witness] = both(&server, &id, &keeps).await;
        match end {
            "logout" => assert_eq!(ask(&server, Method::POST, "/logout", &header).await, 200),
            "other sign-in" => {
                // Who signs in with the old cookie gets a new one, and the old one ends.
                let request = server.client.request(Method::POST, "/login");
                let request = request.header("Origin", &server.base).header("Cookie", &header.1);
                server
                    .client
                    .send(request.json(&json!({ "password": PASSWORD })))
                    .await
                    .expect(200);
            }
            verb => drop(world.cli(&["api-token", verb, verb]).await.ok()),
        }
        let (_, code) = until_closed(&mut events).await;
        assert_eq!(code, 4401, "{end}: events");
        // The log is closed within the same moment: what is written now is for others only.
        let (_, code) = until_closed(&mut log).await;
        assert_eq!(code, 4401, "{end}: log");
        let line = format!("written after {end}");
        write(&world, &line);
        within("the line at the other reader", async {
            loop {
                match witness.next().await.unwrap().unwrap() {
                    Message::Text(text) if text.contains(&line) => return,
                    Message::Close(why) => panic!("{end} closed the socket of a token: {why:?}"),
                    _ => {}
                }
            }
        })
        .await;
        for socket in [&mut events, &mut log] {
            let rest = within("the end of the socket", async {
                let mut rest = Vec::new();
                while let Some(Ok(message)) = socket.next().await {
                    rest.push(message);
                }
                rest
            });
            let rest = rest.await;
            assert!(rest.iter().all(|message| !message.is_text()), "{end}: {rest:?}");
        }
        assert_eq!(ask(&server, Method::GET, "/api/projects", &header).await, 401, "{end}");
    }
    server.stop().await;
}

/// A reader that reads nothing gets no close frame, but its connection ends.
#[tokio::test]
async fn h18_a_stalled_socket_ends_with_its_credential_too() {
    let world = World::with(closed());
    world.project("app");
    let server = world.serve().await;
    world.cli(&["start", "app", "--wait"]).await.ok();
    let id = world.row("app").await.instance_id;
    let keeps = issue(&world, "keeps").await;
    let header = issue(&world, "stalls").await;
    let address = server.base.trim_start_matches("http://");
    let mut stalled = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /ws/bridge-log/{id}?format=json HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        header.1
    );
    stalled.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stalled.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");

    // More than every buffer between the service and the reader holds, and a reader that follows.
    let [_, mut witness] = both(&server, &id, &keeps).await;
    for part in 0..400 {
        write(&world, &format!("{part:04} {}", "x".repeat(30_000)));
    }
    write(&world, "before the revocation");
    let follow = async |witness: &mut Socket, line: &str| {
        within(line, async {
            loop {
                match witness.next().await.unwrap().unwrap() {
                    Message::Text(text) if text.contains(line) => return,
                    Message::Close(why) => panic!("{why:?}"),
                    _ => {}
                }
            }
        })
        .await;
    };
    follow(&mut witness, "before the revocation").await;
    world.cli(&["api-token", "revoke", "stalls"]).await.ok();
    assert_eq!(ask(&server, Method::GET, "/api/projects", &header).await, 401);
    write(&world, "after the revocation");
    follow(&mut witness, "after the revocation").await;

    let mut rest = Vec::new();
    let mut block = vec![0; 1 << 16];
    within("the end of the stalled connection", async {
        while let Ok(got @ 1..) = stalled.read(&mut block).await {
            rest.extend_from_slice(&block[..got]);
        }
    })
    .await;
    let rest = String::from_utf8_lossy(&rest);
    assert!(!rest.contains("after the revocation"), "{} bytes came", rest.len());
    server.stop().await;
}

/// A password is changed in the configuration and by a restart.
#[tokio::test]
async fn h18_another_password_ends_every_sign_in_of_before() {
    let world = World::with(closed());
    let server = world.serve().await;
    let header = sign_in(&server).await;
    let token = issue(&world, "keeps").await;
    let mut socket = open(&server, "/ws/events", &header).await.unwrap();
    assert!(within("a frame", socket.next()).await.unwrap().unwrap().is_text());
    world.configure(json!({ "auth": { "password_hash": OTHER_HASH } }));
    server.stop().await;
    let server = world.serve().await;
    within("the end of the socket", async { while let Some(Ok(_)) = socket.next().await {} }).await;
    assert_eq!(ask(&server, Method::GET, "/api/projects", &header).await, 401);
    let refused = open(&server, "/ws/events", &header).await.map(drop);
    assert!(refused.is_err_and(|why| why.contains("401")));
    assert_eq!(ask(&server, Method::GET, "/api/projects", &token).await, 200);
    let old = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let old = server.client.send(old.json(&json!({ "password": PASSWORD }))).await;
    assert_eq!(old.status, 401, "{}", old.text());
    server.stop().await;
}

/// A token that ends by itself ends what it opened, at that second.
#[tokio::test]
async fn h23_a_socket_ends_when_its_token_does() {
    let world = World::with(closed());
    let server = world.serve().await;
    let ends = time::OffsetDateTime::now_utc() + time::Duration::seconds(8);
    let ends = ends.replace_nanosecond(0).unwrap();
    let ends = ends.format(&time::format_description::well_known::Rfc3339).unwrap();
    let issued = world.cli(&["api-token", "issue", "short", "--expires", &ends, "--json"]).await;
    let token = issued.ok().json()["token"].as_str().unwrap().to_owned();
    let header = ("authorization", format!("Bearer {token}"));
    let mut socket = open(&server, "/ws/events", &header).await.unwrap();
    assert_eq!(until_closed(&mut socket).await.1, 4401);
    assert_eq!(ask(&server, Method::GET, "/api/projects", &header).await, 401);
    server.stop().await;
}

/// A sign-in that ends by its age ends what it opened.
#[tokio::test]
async fn h18_a_socket_ends_when_its_sign_in_is_too_old() {
    let mut settings = closed();
    settings["auth"]["session_max_age_seconds"] = json!(2);
    let world = World::with(settings);
    let server = world.serve().await;
    let header = sign_in(&server).await;
    let mut socket = open(&server, "/ws/events", &header).await.unwrap();
    assert_eq!(until_closed(&mut socket).await.1, 4401);
    assert_eq!(ask(&server, Method::GET, "/api/projects", &header).await, 401);
    server.stop().await;
}
