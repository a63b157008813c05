//! What the service says on standard error, as a program reads it.

use crate::harness::{Start, World};
use serde_json::{Value, json};
use std::net::TcpListener;

#[track_caller]
fn assert_json(what: &str, lines: &[String]) {
    assert!(!lines.is_empty(), "{what}: it says something");
    for line in lines {
        let parsed: Result<Value, _> = serde_json::from_str(line);
        let is_entry = parsed.is_ok_and(|entry| entry["level"].is_string());
        assert!(is_entry, "{what}: not an entry: {line}");
    }
}

/// H67: with `log_format: json` every line is one object, the first too.
#[tokio::test]
async fn h67_with_json_every_line_of_a_server_is_json() {
    let world = World::with(json!({
        "log_format": "json", "unknown_key": 1,
        "clone": { "timeout_seconds": 5 },
    }));
    let server = world.serve().await;
    server.says("projects in").await;
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0));
    let lines: Vec<String> = log.lines().map(ToOwned::to_owned).collect();
    assert_json("a whole run", &lines);
    assert!(log.contains("unknown_key"), "{log}");

    let taken = TcpListener::bind(("127.0.0.1", world.port())).unwrap();
    let Err(words) = world.try_serve(&Start::default()).await else { panic!("the port is taken") };
    drop(taken);
    let lines: Vec<String> = words.lines().map(ToOwned::to_owned).collect();
    assert_json("a start that fails", &lines);
    assert!(words.contains("another `port`"), "{words}");
}
