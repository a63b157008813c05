//! The client against a daemon that misbehaves.

use crate::double::{Act, listen, reply};
use serde_json::{Value, json};
use std::time::Duration;
use svc_hosted::client::{CallError, Client};
use svc_hosted::protocol::LONGEST_LINE;

async fn client(
    script: impl Fn(&Value) -> Act + Send + Sync + 'static,
    limit: Duration,
) -> (tempfile::TempDir, Client) {
    let dir = tempfile::tempdir().unwrap();
    let socket = listen(dir.path(), script);
    let (client, reader) = Client::connect(&socket, "t".to_owned(), limit).await.unwrap();
    tokio::spawn(reader);
    (dir, client)
}

fn frame(seq: u64) -> String {
    json!({ "type": "stream", "processId": "p", "stream": "stdout", "seq": seq, "data": "eA==" })
        .to_string()
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn hd11_what_cannot_be_understood_is_skipped_and_the_rest_arrives() {
    let script = |request: &Value| {
        let bad =
            ["", "[]", "17", "{\"type\":\"stream\"}", "{\"id\":4711,\"result\":1}", "{nonsense"];
        let mut lines: Vec<String> = bad.map(str::to_owned).into();
        lines.push(
            json!({ "type": "stream", "processId": "p", "stream": "tube", "seq": 1 }).to_string(),
        );
        lines.push(json!({ "type": "whatever", "new": true }).to_string());
        lines.extend([frame(1), reply(request, json!({ "pong": true }))]);
        Act::Send(lines)
    };
    let (_dir, client) = client(script, LONG).await;
    let mut frames = client.subscribe("p");
    assert_eq!(client.call("server.ping", json!({})).await.unwrap()["pong"], true);
    assert_eq!(frames.recv().await.unwrap().seq, 1);
}

#[tokio::test]
async fn hd11_a_line_that_is_too_long_ends_the_connection_and_fails_who_waits() {
    let script = |_: &Value| Act::Send(vec!["x".repeat(LONGEST_LINE)]);
    let (_dir, client) = client(script, LONG).await;
    let mut frames = client.subscribe("p");
    let failed = client.call("server.ping", json!({})).await;
    assert!(matches!(failed, Err(CallError::Unreachable)));
    assert!(client.closed().is_cancelled() && frames.recv().await.is_none());
    assert!(matches!(client.call("server.ping", json!({})).await, Err(CallError::Unreachable)));
}

#[tokio::test]
async fn hd14_a_request_without_an_answer_fails_and_others_go_on() {
    let script = |request: &Value| match request["method"].as_str() {
        Some("process.list") => Act::Hang,
        _ => Act::Send(vec![reply(request, json!({}))]),
    };
    let (_dir, client) = client(script, Duration::from_millis(200)).await;
    assert!(matches!(client.call("process.list", json!({})).await, Err(CallError::Unreachable)));
    client.call("server.ping", json!({})).await.unwrap();
    assert!(!client.closed().is_cancelled());
}

#[tokio::test]
async fn a_dropped_connection_fails_every_call_at_once() {
    let (_dir, client) = client(|_| Act::Drop, LONG).await;
    let (one, two) =
        tokio::join!(client.call("server.ping", json!({})), client.call("server.ping", json!({})));
    assert!(
        matches!(one, Err(CallError::Unreachable)) && matches!(two, Err(CallError::Unreachable))
    );
}
