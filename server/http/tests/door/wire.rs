//! Bytes that are no request, too much of a request, and requests that never end.

use crate::client::{Reply, Sent};
use crate::harness::{DEADLINE, Server, read_to_end};
use std::time::Duration;
use svc_http::ServeOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A request that must never be answered on the connection of a malformed one.
const SECOND: &str = "GET /api/projects HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn h10_a_request_that_two_readers_could_split_differently_ends_the_connection() {
    let server = Server::start().await;
    for (name, head, body) in [
        ("both", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("differing", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
        ("signed", "Content-Length: +5\r\n", "hello"),
        ("hex", "Content-Length: 0x5\r\n", "hello"),
        ("folded", "X-A: b\r\n c\r\n", ""),
        ("space before colon", "Content-Length : 5\r\n", "hello"),
        ("bare line feed", "X-A: b\nX-B: c\r\n", ""),
        ("unknown coding", "Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        ("long chunk size", "Transfer-Encoding: chunked\r\n", "00000000000000005\r\nhello\r\n"),
        ("chunk overflow", "Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\nhello\r\n"),
        ("bad chunk end", "Transfer-Encoding: chunked\r\n", "5\r\nhelloX\r\n0\r\n\r\n"),
    ] {
        let raw = format!(
            "POST /api/instances HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             {head}\r\n{body}{SECOND}"
        );
        let answer = String::from_utf8(server.raw(raw.as_bytes()).await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{name}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}: {answer}");
        assert!(answer.contains("\r\ncontent-security-policy: default-src 'self'"), "{answer}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_up_to_the_malformed_one() {
    let server = Server::start().await;
    let raw = format!("{SECOND}{SECOND}GET / HTTP/1.1\nHost: a\n\n{SECOND}");
    let answer = String::from_utf8(server.raw(raw.as_bytes()).await).unwrap();
    assert_eq!(answer.matches("HTTP/1.1 200 ").count(), 2, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 400 ").count(), 1, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 3, "{answer}");
}

#[tokio::test]
async fn h75_each_limit_of_a_head_holds_at_one_more() {
    let server = Server::start().await;
    let target = |length: usize| Sent::new("GET", &format!("/{}", "x".repeat(length - 1)));
    assert_eq!(server.send(target(8192)).await.status, 404);
    let reply = server.send(target(8193)).await;
    assert_eq!((reply.status, reply.code().as_str()), (414, "too_large"));

    let fields = |count: usize| {
        // Host and Connection are two more.
        (0..count - 2)
            .fold(Sent::new("GET", "/healthz"), |sent, n| sent.header(&format!("x-{n}"), "a"))
    };
    assert_eq!(server.send(fields(100)).await.status, 200);
    assert_eq!(server.send(fields(101)).await.status, 431);
    assert_eq!(server.send(fields(1000)).await.status, 431);

    let block = |length: usize| {
        let sent = Sent::new("GET", "/healthz");
        let others = "host".len() + server.address.to_string().len() + "connectionclose".len() + 8;
        sent.header("x-long", &"a".repeat(length - others - "x-long".len() - 4))
    };
    assert_eq!(server.send(block(32 * 1024)).await.status, 200);
    assert_eq!(server.send(block(32 * 1024 + 1)).await.status, 431);
    assert_eq!(server.send(block(1024 * 1024)).await.status, 431);
}

#[tokio::test]
async fn h74_bodies_end_at_the_limit_announced_or_not() {
    let server = Server::start().await;
    let head =
        "POST /api/instances HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    // Announced: refused before a single byte of it arrives.
    let announced = format!("{head}Content-Length: 1048577\r\n\r\n");
    let reply = Reply::parse(&server.raw(announced.as_bytes()).await, false);
    assert_eq!((reply.status, reply.code().as_str()), (413, "too_large"));
    assert_eq!(reply.header("connection"), Some("close"));

    let mut streamed = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..1024 {
        streamed.extend_from_slice(b"1000\r\n");
        streamed.extend_from_slice(&[b' '; 4096]);
        streamed.extend_from_slice(b"\r\n");
    }
    let reply = Reply::parse(&server.raw(&streamed).await, false);
    assert_eq!(reply.status, 413);

    let zipped = format!("{head}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}");
    let zipped = zipped.replace("\r\nHost", "\r\nConnection: close\r\nHost");
    assert_eq!(Reply::parse(&server.raw(zipped.as_bytes()).await, false).status, 415);
}

fn impatient() -> ServeOptions {
    ServeOptions {
        head: Duration::from_millis(300),
        idle: Duration::from_millis(600),
        body_idle: Duration::from_millis(300),
        ..ServeOptions::default()
    }
}

#[tokio::test]
async fn h76_slow_heads_and_bodies_are_cut_and_idle_connections_closed() {
    let server = Server::with("", impatient()).await;
    let mut slow_head = TcpStream::connect(server.address).await.unwrap();
    slow_head.write_all(b"GET / HTTP/1.1\r\nHost: local").await.unwrap();
    let answer = String::from_utf8(read_to_end(&mut slow_head).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");

    let mut slow_body = TcpStream::connect(server.address).await.unwrap();
    slow_body
        .write_all(
            b"POST /api/instances HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
              Content-Length: 100\r\n\r\n{",
        )
        .await
        .unwrap();
    let answer = String::from_utf8(read_to_end(&mut slow_body).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");

    let mut idle = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(read_to_end(&mut idle).await, b"");

    let mut kept = TcpStream::connect(server.address).await.unwrap();
    kept.write_all(SECOND.as_bytes()).await.unwrap();
    let answer = String::from_utf8(read_to_end(&mut kept).await).unwrap();
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

#[tokio::test]
async fn h76_a_crowd_of_slow_clients_does_not_keep_others_out() {
    let server = Server::with("", ServeOptions { max_connections: 20, ..impatient() }).await;
    let mut crowd = Vec::new();
    for _ in 0..60 {
        let mut slow = TcpStream::connect(server.address).await.unwrap();
        let _ = slow.write_all(b"G").await;
        crowd.push(slow);
    }
    let reply = tokio::time::timeout(DEADLINE, server.get("/healthz")).await.unwrap();
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    let server = Server::start().await;
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    for _ in 0..3 {
        socket.write_all(SECOND.as_bytes()).await.unwrap();
        let mut part = [0; 4096];
        let n = tokio::time::timeout(DEADLINE, socket.read(&mut part)).await.unwrap().unwrap();
        assert!(part[..n].starts_with(b"HTTP/1.1 200 "));
    }
}

#[tokio::test]
async fn shutdown_ends_idle_connections_and_stops_listening() {
    let server = Server::start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(SECOND.as_bytes()).await.unwrap();
    let mut part = [0; 4096];
    assert!(idle.read(&mut part).await.unwrap() > 0);
    server.app.shutdown().cancel();
    assert_eq!(read_to_end(&mut idle).await, b"");
    tokio::time::timeout(DEADLINE, server.task).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

/// H76: by a clock that runs on whenever everybody waits.
#[tokio::test]
async fn h76_a_kept_connection_ends_75_seconds_after_its_last_request() {
    let server = Server::start().await;
    tokio::time::pause();
    let idle = ServeOptions::default().idle;
    for requests in [0, 1, 3] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let mut last = tokio::time::Instant::now();
        for _ in 0..requests {
            tokio::time::sleep(Duration::from_secs(40)).await;
            socket.write_all(SECOND.as_bytes()).await.unwrap();
            let mut part = [0; 4096];
            assert!(socket.read(&mut part).await.unwrap() > 0);
            last = tokio::time::Instant::now();
        }
        read_to_end(&mut socket).await;
        let waited = last.elapsed();
        assert!(waited < idle + Duration::from_secs(2), "{requests} requests: {waited:?}");
        assert!(waited > idle - Duration::from_secs(2), "{requests} requests: {waited:?}");
    }
}

/// H76: empty lines are no requests, and a body that nobody reads ends too.
#[tokio::test]
async fn h76_nothing_but_a_request_keeps_a_connection() {
    let server = Server::start().await;
    tokio::time::pause();
    let unread = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n";
    for (what, first, drop) in [
        ("empty lines", "", "\r\n"),
        ("half an empty line", "", "\r"),
        ("an unread body", unread, "x"),
        ("empty lines after a request", SECOND, "\r\n"),
    ] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let began = tokio::time::Instant::now();
        socket.write_all(first.as_bytes()).await.unwrap();
        let ended = loop {
            let mut part = [0; 4096];
            match tokio::time::timeout(Duration::from_secs(9), socket.read(&mut part)).await {
                Ok(Ok(0) | Err(_)) => break began.elapsed(),
                Ok(Ok(_)) => {}
                // A half line and its other half are one empty line.
                Err(_) => {
                    let next = if drop == "\r" { "\r\n" } else { drop };
                    if socket.write_all(next.as_bytes()).await.is_err() {
                        break began.elapsed();
                    }
                }
            }
            assert!(began.elapsed() < Duration::from_secs(300), "{what}: kept for ever");
        };
        assert!(ended < Duration::from_secs(100), "{what}: {ended:?}");
    }
}

/// H76: a login that drips does not hold its place for as long as it likes.
#[tokio::test]
async fn h76_a_strangers_body_has_a_deadline_as_a_whole() {
    let total = Duration::from_millis(300);
    let server = Server::with(
        "auth:\n  enabled: true\n  password_required: true\n  password_hash: \
         '$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'\n",
        ServeOptions { body_anonymous: total, ..ServeOptions::default() },
    )
    .await;
    let origin = server.address;
    for kind in ["application/json", "application/x-www-form-urlencoded"] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST /login HTTP/1.1\r\nHost: {origin}\r\nOrigin: http://{origin}\r\n\
             Content-Type: {kind}\r\nContent-Length: 16000\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut all = Vec::new();
        for _ in 0..10_000 {
            let mut part = [0; 4096];
            // Far below the pause that ends a body by itself.
            match tokio::time::timeout(total / 10, socket.read(&mut part)).await {
                Ok(Ok(0) | Err(_)) => break,
                Ok(Ok(n)) => all.extend_from_slice(&part[..n]),
                Err(_) if socket.write_all(b"x").await.is_err() => break,
                Err(_) => {}
            }
        }
        let text = String::from_utf8_lossy(&all);
        assert!(text.starts_with("HTTP/1.1 408 "), "{kind}: {text}");
    }
}
