//! The sockets as a client sees them.

use crate::client::Sent;
use crate::harness::{DEADLINE, Server, instance, many_projects};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use svc_http::ServeOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn open(server: &Server, path: &str) -> Socket {
    let (socket, reply) = connect_async(format!("ws://{}{path}", server.address)).await.unwrap();
    assert!(reply.headers().get("sec-websocket-extensions").is_none());
    assert!(reply.headers().get("x-request-id").is_some());
    socket
}

async fn next(socket: &mut Socket) -> Message {
    tokio::time::timeout(DEADLINE, socket.next()).await.expect("a frame").unwrap().unwrap()
}

async fn next_json(socket: &mut Socket) -> Value {
    loop {
        match next(socket).await {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Code and reason of the close that comes next.
async fn close(socket: &mut Socket) -> (u16, String) {
    loop {
        match next(socket).await {
            Message::Close(Some(frame)) => {
                return (frame.code.into(), frame.reason.to_string());
            }
            Message::Close(None) => panic!("a close says why"),
            _ => {}
        }
    }
}

fn handshake(path: &str) -> Sent {
    Sent::new("GET", path)
        .header("Upgrade", "websocket")
        .header("Connection", "Upgrade")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
}

#[tokio::test]
async fn the_stream_begins_with_the_state_and_goes_on_with_changes() {
    let server = Server::filled().await;
    let mut socket = open(&server, "/ws/events").await;
    let hello = next_json(&mut socket).await;
    assert_eq!(
        (&hello["type"], &hello["v"], &hello["resumed"]),
        (&json!("hello"), &json!(1), &json!(false))
    );
    let snapshot = next_json(&mut socket).await;
    assert_eq!((&snapshot["type"], &snapshot["reason"]), (&json!("snapshot"), &json!("initial")));
    let document = server.get("/api/state").await.json();
    assert_eq!(document["state"], snapshot["state"]);
    assert_eq!(document["seq"], snapshot["seq"]);

    let row = instance("b0000000-0000-4000-8000-000000000009", "api", "starting");
    server.app.read_model().change_instances(vec![(9, row)], &[]);
    let delta = next_json(&mut socket).await;
    assert_eq!(delta["type"], "delta");
    assert_eq!(delta["seq"].as_u64(), snapshot["seq"].as_u64().map(|seq| seq + 1));
    let puts: Vec<&Value> =
        delta["ops"].as_array().unwrap().iter().filter(|op| op["op"] == "put").collect();
    assert_eq!(puts.len(), 1);
    assert_eq!((&puts[0]["k"], &puts[0]["v"]["status"]), (&json!("instance"), &json!("starting")));
}

#[tokio::test]
async fn a_client_that_comes_back_gets_only_what_it_missed() {
    let server = Server::filled().await;
    let state = server.get("/api/state").await.json();
    let (boot, seq) = (state["boot"].as_str().unwrap(), state["seq"].as_u64().unwrap());
    server.app.read_model().replace_adoptable(["api".to_owned()]);
    let mut socket = open(&server, &format!("/ws/events?boot={boot}&since={seq}")).await;
    assert_eq!(next_json(&mut socket).await["resumed"], true);
    let delta = next_json(&mut socket).await;
    assert_eq!(delta["seq"], seq + 1);
    assert_eq!(delta["ops"], json!([{"op": "put", "k": "adoptable", "id": "api", "v": true}]));

    let mut other = open(&server, &format!("/ws/events?boot=0000000000000000&since={seq}")).await;
    assert_eq!(next_json(&mut other).await["resumed"], false);
    assert_eq!(next_json(&mut other).await["reason"], "boot");
}

#[tokio::test]
async fn a_snapshot_comes_on_request_and_nonsense_is_ignored() {
    let server = Server::filled().await;
    let mut socket = open(&server, "/ws/events").await;
    next_json(&mut socket).await;
    next_json(&mut socket).await;
    for text in ["nonsense", "[]", r#"{"type":"unknown"}"#, r#"{"type":"samples","on":true}"#] {
        socket.send(Message::text(text)).await.unwrap();
    }
    socket.send(Message::text(r#"{"type":"snapshot"}"#)).await.unwrap();
    assert_eq!(next_json(&mut socket).await["reason"], "requested");
}

#[tokio::test]
async fn h59_what_a_client_may_not_send_ends_the_socket_with_a_reason() {
    let server = Server::start().await;
    let send = async |message: Message| {
        let mut socket = open(&server, "/ws/events").await;
        socket.send(message).await.unwrap();
        close(&mut socket).await.0
    };
    assert_eq!(send(Message::Binary(Bytes::from_static(b"x"))).await, 1003);
    assert_eq!(send(Message::text("x".repeat(16 * 1024 + 1))).await, 1009);

    let mut flood = open(&server, "/ws/events").await;
    for _ in 0..150 {
        // The server may have closed already.
        let _ = flood.feed(Message::text("{}")).await;
    }
    let _ = flood.flush().await;
    assert_eq!(close(&mut flood).await, (1008, "too_many_messages".into()));
}

/// A handshake by hand, for frames no library would send.
async fn by_hand(server: &Server, frames: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let raw = format!(
        "GET /ws/bridge-log/nothing HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address
    )
    .replace("/ws/bridge-log/nothing", "/ws/events");
    socket.write_all(raw.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    let _ = socket.write_all(frames).await;
    crate::harness::read_to_end(&mut socket).await
}

fn has_close(frames: &[u8], code: u16) -> bool {
    frames.windows(4).any(|window| window[0] == 0x88 && window[2..4] == code.to_be_bytes())
}

#[tokio::test]
async fn h59_broken_frames_end_the_socket() {
    let server = Server::start().await;
    let mask = [0; 4];
    let unmasked = by_hand(&server, b"\x81\x02{}").await;
    assert!(has_close(&unmasked, 1002));
    let reserved = by_hand(&server, &[&[0xf1, 0x80][..], &mask].concat()).await;
    assert!(has_close(&reserved, 1002));
    let not_text = by_hand(&server, &[&[0x81, 0x81][..], &mask, &[0xff]].concat()).await;
    assert!(has_close(&not_text, 1007));
    let huge = by_hand(&server, &[&[0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0][..], &mask].concat()).await;
    assert!(has_close(&huge, 1009));
    // Fragments without end: the connection goes, with or without a word.
    let mut fragments = [&[0x01, 0x80][..], &mask].concat();
    for _ in 0..20_000 {
        fragments.extend_from_slice(&[0x00, 0x80]);
        fragments.extend_from_slice(&mask);
    }
    by_hand(&server, &fragments).await;
}

#[tokio::test]
async fn h61_there_are_only_so_many_sockets_and_places_come_back() {
    let options = ServeOptions { max_sockets: 2, ..ServeOptions::default() };
    let server = Server::with("", options).await;
    let one = open(&server, "/ws/events").await;
    let _two = open(&server, "/ws/events").await;
    let refused = server.send(handshake("/ws/events")).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "busy"));
    assert!(refused.header("retry-after").is_some());
    drop(one);
    tokio::time::timeout(DEADLINE, async {
        while connect_async(format!("ws://{}/ws/events", server.address)).await.is_err() {}
    })
    .await
    .expect("a place comes back when a client leaves");
}

#[tokio::test]
async fn h60_a_client_that_leaves_is_forgotten_although_nothing_happens() {
    let server = Server::start().await;
    let mut sockets = Vec::new();
    for _ in 0..5 {
        let mut socket = open(&server, "/ws/events").await;
        next_json(&mut socket).await;
        sockets.push(socket);
    }
    assert_eq!(server.app.read_model().subscribers(), 5);
    drop(sockets);
    tokio::time::timeout(DEADLINE, async {
        while server.app.read_model().subscribers() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("every subscription ends");
}

#[tokio::test]
async fn h57_a_reader_that_stalls_holds_up_nobody() {
    let server = Server::start().await;
    let mut stalled = open(&server, "/ws/events").await;
    next_json(&mut stalled).await;
    let mut reader = open(&server, "/ws/events").await;
    next_json(&mut reader).await;
    next_json(&mut reader).await;
    for round in 0..50 {
        server.app.read_model().replace_projects(many_projects(300 + round));
    }
    let head = server.app.read_model().head();
    tokio::time::timeout(DEADLINE, async {
        while next_json(&mut reader).await["seq"].as_u64() != Some(head) {}
    })
    .await
    .expect("the other reader gets everything");
    let mut seen = 0;
    tokio::time::timeout(DEADLINE, async {
        // It wakes up again: the state it ends with is the state there is.
        while seen != head {
            let frame = next_json(&mut stalled).await;
            let seq = frame["seq"].as_u64().unwrap();
            assert!(frame["type"] == "snapshot" || seq == seen + 1, "a hole: {seen} {seq}");
            seen = seq;
        }
    })
    .await
    .expect("the stalled reader catches up");
}

#[tokio::test]
async fn a_handshake_that_is_none_is_answered_as_http() {
    let server = Server::start().await;
    let plain = server.get("/ws/events").await;
    assert_eq!(plain.status, 426);
    assert_eq!(plain.header("upgrade"), Some("websocket"));
    let without = |name: &str| {
        let mut sent = handshake("/ws/events");
        sent.headers.retain(|(header, _)| header != name);
        sent
    };
    assert_eq!(server.send(without("Sec-WebSocket-Key")).await.status, 400);
    assert_eq!(server.send(without("Sec-WebSocket-Version")).await.status, 426);
    assert_eq!(
        server.send(Sent { method: "POST".into(), ..handshake("/ws/events") }).await.status,
        405
    );
    let foreign = handshake("/ws/events").header("Host", "evil.example");
    assert_eq!(server.send(foreign).await.status, 421);
    let foreign = handshake("/ws/events").header("Origin", "https://evil.example");
    assert_eq!(server.send(foreign).await.status, 403);
    assert_eq!(server.send(handshake("/ws/nowhere")).await.status, 404);
}

#[tokio::test]
async fn an_unknown_log_is_told_by_the_close_code() {
    let server = Server::filled().await;
    let mut socket = open(&server, "/ws/bridge-log/zz?format=json").await;
    assert_eq!(close(&mut socket).await, (4404, "unknown_instance".into()));
    for query in ["format=xml", "tail=1048577", "tail=-1"] {
        let reply = server.send(handshake(&format!("/ws/bridge-log/b0?{query}"))).await;
        assert_eq!(reply.status, 422, "{query}");
    }
}

#[tokio::test]
async fn shutdown_tells_every_socket_to_come_back() {
    let server = Server::start().await;
    let mut socket = open(&server, "/ws/events").await;
    next_json(&mut socket).await;
    server.app.shutdown().cancel();
    assert_eq!(close(&mut socket).await, (1001, "shutting_down".into()));
    tokio::time::timeout(DEADLINE, server.task).await.unwrap().unwrap().unwrap();
}

/// H10: after a refused handshake nothing that follows is read.
#[tokio::test]
async fn h3_h10_a_refused_handshake_closes_the_connection() {
    let server = Server::filled().await;
    let second = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let without = |name: &str| {
        let mut sent = handshake("/ws/events");
        sent.headers.retain(|(header, _)| header != name);
        sent
    };
    for (what, sent) in [
        ("no key", without("Sec-WebSocket-Key")),
        ("no version", without("Sec-WebSocket-Version")),
        ("a foreign origin", handshake("/ws/events").header("Origin", "https://evil.example")),
        ("a foreign host", handshake("/ws/events").header("Host", "evil.example")),
        ("an unknown path", handshake("/ws/nowhere")),
        ("a page", handshake("/healthz")),
        ("another method", Sent { method: "POST".into(), ..handshake("/ws/events") }),
        ("a bad query", handshake("/ws/bridge-log/b0?tail=-1")),
        ("another protocol", Sent::new("GET", "/ws/events").header("Upgrade", "h2c")),
    ] {
        let text = String::from_utf8(sent.to_bytes(server.address)).unwrap();
        // The client itself does not ask for a close.
        let kept = text.replace("Connection: close\r\n", "");
        let all = server.raw(format!("{kept}{second}").as_bytes()).await;
        let all = String::from_utf8_lossy(&all);
        assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{what}: {all}");
        assert!(all.to_lowercase().contains("connection: close"), "{what}: {all}");
    }
}

/// H59: fragments are limited, however small, whatever stands between them.
#[tokio::test]
async fn h59_a_message_has_at_most_64_fragments() {
    let server = Server::start().await;
    // A masked frame with a payload of up to 125 bytes.
    let frame = |first: u8, payload: &[u8]| {
        let mut bytes = vec![first, 0x80 | u8::try_from(payload.len()).unwrap(), 0, 0, 0, 0];
        bytes.extend_from_slice(payload);
        bytes
    };
    let (text, more, last, ping) = (0x01, 0x00, 0x80, 0x89);
    for (what, fragments, between, is_served) in [
        ("as many as allowed", 63, None, true),
        ("one too many", 65, None, false),
        ("empty ones", 500, None, false),
        ("with pings between", 90, Some(frame(ping, b"x")), false),
    ] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let opening = String::from_utf8(handshake("/ws/events").to_bytes(server.address))
            .unwrap()
            .replace("Connection: close\r\n", "");
        socket.write_all(opening.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n\r\n") {
            reply.push(socket.read_u8().await.unwrap());
        }
        let mut bytes = frame(text, b"{");
        for _ in 1..fragments {
            bytes.extend(frame(more, if fragments > 100 { b"" } else { b" " }));
            bytes.extend(between.iter().flatten());
        }
        bytes.extend(frame(last, b"}"));
        bytes.extend(frame(0x81, br#"{"type":"snapshot"}"#));
        let _ = socket.write_all(&bytes).await;
        let mut all = Vec::new();
        let answered = tokio::time::timeout(DEADLINE, async {
            let mut part = [0; 4096];
            while let Ok(n @ 1..) = socket.read(&mut part).await {
                all.extend_from_slice(&part[..n]);
                if all.windows(9).any(|window| window == b"requested") {
                    return true;
                }
            }
            false
        });
        assert_eq!(answered.await.expect("an end"), is_served, "{what}");
    }
}
