//! Random requests and frames: each gets a documented answer.
//!
//! `SVC_RANDOM_STEPS` and `SVC_RANDOM_SEED` choose another run.

use crate::harness::{Dice, World, socket};
use futures_util::{SinkExt, StreamExt};
use reqwest::Method;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

fn steps(usual: usize) -> usize {
    std::env::var("SVC_RANDOM_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

const SEGMENTS: [&str; 30] = [
    "api",
    "api",
    "api",
    "v1",
    "v1",
    "instances",
    "instances",
    "projects",
    "agents",
    "sessions",
    "adoptable",
    "app",
    "ID",
    "resume",
    "forget",
    "connect",
    "log",
    "qr",
    "trust",
    "preflight",
    "row",
    "history",
    "state",
    "bootstrap",
    "healthz",
    "static",
    "ui",
    "..",
    "%2e%2e",
    "%ff",
];
const NAMES: [&str; 14] = [
    "tail", "cursor", "limit", "since", "boot", "status", "project", "facts", "wait", "format",
    "order", "before", "after", "x",
];
const VALUES: [&str; 26] = [
    "",
    "0",
    "1",
    "-1",
    "30",
    "99999999999999999999",
    "1e9",
    "0x1",
    "true",
    "false",
    "TRUE",
    "null",
    "running",
    "stopped",
    "app",
    "1:0",
    "9:99",
    ":",
    "json",
    "%00",
    "%ff",
    "%F0%9F%A6%80",
    "a%0Ab",
    "..%2f..",
    "%E2%80%AE",
    "desc",
];
const MEMBERS: [&str; 14] = [
    "project",
    "name",
    "mode",
    "channel",
    "trust",
    "spawn_mode",
    "permission_mode",
    "resume_mode",
    "label",
    "names",
    "prompt",
    "model",
    "conversation",
    "y",
];
const JSON: [&str; 20] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e999",
    "123456789012345678901234567890",
    "\"\"",
    "\"app\"",
    "\"plan\"",
    "\"session\"",
    "\"--help\"",
    "\"a\\u0000b\"",
    "\"\\ud800\"",
    "\"\\u202e\"",
    "[]",
    "[\"app\"]",
    "{}",
    "{\"a\":{\"a\":[[[]]]}}",
    "[1,",
];

fn path(dice: &mut Dice, routes: &[String], id: &str) -> String {
    if dice.roll(3) > 0 {
        let route = dice.pick(routes).clone();
        let filled = route.split('/').map(|part| match part.starts_with('{') {
            true => (*dice.pick(&["app", id, "nothing", "%00", "..", "a%2fb", "APP"])).to_owned(),
            false => part.to_owned(),
        });
        return filled.collect::<Vec<_>>().join("/");
    }
    let parts = (0..1 + dice.roll(5)).map(|_| *dice.pick(&SEGMENTS));
    format!("/{}", parts.collect::<Vec<_>>().join("/").replace("ID", id))
}

fn query(dice: &mut Dice) -> String {
    let parts = (0..dice.roll(4)).map(|_| format!("{}={}", dice.pick(&NAMES), dice.pick(&VALUES)));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

fn body(dice: &mut Dice) -> Vec<u8> {
    match dice.roll(8) {
        0 => Vec::new(),
        1 => dice.bytes(40),
        2 => dice.pick(&JSON).as_bytes().to_vec(),
        _ => {
            let parts = (0..dice.roll(5))
                .map(|_| format!("\"{}\":{}", dice.pick(&MEMBERS), dice.pick(&JSON)));
            format!("{{{}}}", parts.collect::<Vec<_>>().join(",")).into_bytes()
        }
    }
}

/// H77, H84: path, query and body at random, most of them nearly right.
#[tokio::test]
async fn h77_h84_random_requests_get_documented_answers_and_never_an_internal_error() {
    let (mut dice, seed) = Dice::seeded("SVC_RANDOM_SEED");
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let document = server.client.get("/openapi.json").await.expect(200).json();
    let mut routes: Vec<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
    let internal = ["/healthz", "/api/state", "/api/bootstrap", "/api/instances/{r}/log"];
    routes.extend(internal.map(str::to_owned));
    let short: Vec<String> =
        routes.iter().map(|route| route.replace("/api/v1/", "/api/")).collect();
    routes.extend(short);
    let methods =
        [Method::GET, Method::GET, Method::POST, Method::PATCH, Method::DELETE, Method::PUT];
    for step in 0..steps(400) {
        let method = dice.pick(&methods).clone();
        let target = format!("{}{}", path(&mut dice, &routes, &id), query(&mut dice));
        let mut request = server.client.request(method.clone(), &target);
        let mut sent = Vec::new();
        if method != Method::GET {
            sent = body(&mut dice);
            let kinds = ["application/json", "application/json; charset=utf-8", "text/plain"];
            let kind = if dice.roll(8) == 0 { kinds[2] } else { kinds[0] };
            request = request.header("Content-Type", kind).body(sent.clone());
        }
        let reply = server.client.send(request).await;
        let said = String::from_utf8_lossy(&sent).into_owned();
        assert!(
            reply.status < 500 || reply.status == 503,
            "step {step} of seed {seed}: {method} {target} {said} answered {}: {}",
            reply.status,
            reply.text()
        );
    }
    server.client.get("/api/state").await.expect(200);
    world.agree().await;
    let (_, log) = server.stop().await;
    assert!(!log.contains("panicked"), "{log}");
}

/// Frames that no page sends are ignored, or close the socket with a code.
/// The next socket works.
#[tokio::test]
async fn h77_random_frames_end_no_more_than_their_own_socket() {
    let (mut dice, seed) = Dice::seeded("SVC_RANDOM_SEED");
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let log = format!("/ws/bridge-log/{id}?format=json");
    let texts = [
        "{\"type\":\"snapshot\"}",
        "{\"type\":\"samples\",\"on\":true}",
        "{\"type\":\"samples\"}",
        "{\"type\":\"nothing\"}",
        "{",
        "",
        "null",
        "[[[[",
        "\u{0}\u{202e}",
        "{\"type\":5}",
    ];
    for round in 0..steps(40) {
        let to = if dice.roll(2) == 0 { "/ws/events" } else { log.as_str() };
        let mut socket = socket(&server.base, to).await;
        for _ in 0..dice.roll(12) {
            let message = match dice.roll(10) {
                0 => Message::Binary(dice.bytes(60).into()),
                1 => Message::Text("x".repeat(1 << dice.roll(18)).into()),
                2 => Message::Ping(dice.bytes(100).into()),
                3 => Message::Pong(dice.bytes(100).into()),
                _ => Message::Text((*dice.pick(&texts)).into()),
            };
            if socket.send(message).await.is_err() {
                break;
            }
        }
        let _ = socket.close(None).await;
        let end = async { while let Some(Ok(_)) = socket.next().await {} };
        crate::harness::within(&format!("the end of round {round} of seed {seed}"), end).await;
    }
    let mut page = server.events().await;
    page.until_status("app", "running").await;
    assert_eq!(page.state.instances.len(), 1);
    let answer = server.client.post_json("/api/v1/instances", &json!({ "project": "app" })).await;
    answer.expect(200);
    let (_, log) = server.stop().await;
    assert!(!log.contains("panicked"), "{log}");
}
