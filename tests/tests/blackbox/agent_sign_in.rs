//! A person signs the agent in from the page.

use crate::config_write::entries;
use crate::harness::{Client, Reply, Server, Start, World, service_with_fail_points};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use svc_skip::{NO_FAIL_POINTS, skip};

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

fn open(more: Value) -> World {
    let world = World::with(json!({
        "login_shepherd": { "enabled": true, "allow_setup_token": true },
    }));
    world.configure(more);
    world
}

/// How the next sign-ins go.
fn set(world: &World, login: &str) {
    let knobs = json!({ "auth": "logged_out", "login": login });
    fs::create_dir_all(&world.state).unwrap();
    fs::write(world.state.join(".agent-sim.json"), knobs.to_string()).unwrap();
}

async fn ask(client: &Client, verb: &str, body: Value) -> Reply {
    let request = client.request(Method::POST, &format!("/api/login-shepherd/{verb}"));
    let request = if body.is_null() { request } else { request.json(&body) };
    client.send(request).await
}

async fn start(client: &Client, mode: &str) -> Reply {
    ask(client, "start", json!({ "mode": mode })).await
}

async fn code(client: &Client, code: &str) -> Value {
    ask(client, "code", json!({ "code": code })).await.expect(200).json()
}

async fn state(client: &Client) -> Value {
    client.get("/api/login-shepherd/state").await.expect(200).json()
}

/// The sign-ins of the agent that run.
fn running(world: &World) -> usize {
    let is_one = |argv: &[String]| {
        argv.iter().any(|word| word == "login") || argv.iter().any(|word| word == "setup-token")
    };
    world.processes().iter().filter(|process| is_one(&process.argv)).count()
}

async fn none_runs(world: &World, server: &Server<'_>) {
    // Nothing in the tree changes when a process ends; the state of the service does.
    let mut page = server.events().await;
    page.until("the end of the sign-in", |state| state.shepherd.is_none().then_some(())).await;
    while running(world) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nothing_of_it_is_there_while_it_is_off() {
    let world = World::new();
    let server = world.serve().await;
    let body = json!({ "mode": "login" });
    for verb in ["start", "status", "cancel"] {
        let reply = ask(&server.client, verb, body.clone()).await;
        assert_eq!(
            (reply.refused(404).as_str(), reply.text().contains("Not Found")),
            ("not_found", true)
        );
    }
    server.client.get("/api/login-shepherd/state").await.expect(404);
    assert_eq!(
        server.client.get("/api/bootstrap").await.json()["features"]["login_shepherd"],
        false
    );
    drop(server);
    world.configure(json!({ "login_shepherd": { "enabled": true } }));
    let server = world.serve().await;
    start(&server.client, "setup-token").await.expect(404);
    start(&server.client, "moon").await.expect(422);
    assert_eq!(state(&server.client).await, json!({ "active": false }));
    let features = server.client.get("/api/bootstrap").await.json()["features"].clone();
    assert_eq!(
        (&features["login_shepherd"], &features["setup_token"]),
        (&json!(true), &json!(false))
    );
}

#[tokio::test]
async fn the_agent_is_signed_in_with_a_link_and_a_code() {
    let world = open(json!({}));
    set(&world, "ok");
    let server = world.serve().await;
    let client = &server.client;
    let mut page = server.events().await;
    page.until("the agent signed out", |state| {
        state.login.as_ref().filter(|login| !login.claude_login_ok).map(|_| ())
    })
    .await;
    for verb in ["code", "status"] {
        ask(client, verb, json!({ "code": "a#b" })).await.expect(409);
    }
    let begun = start(client, "login").await.expect(200).json();
    let url = begun["authorize_url"].as_str().unwrap();
    assert!(url.starts_with("https://claude.com/cai/oauth/authorize?code=true&"), "{url}");
    let now = state(client).await;
    assert_eq!(
        (&now["active"], &now["mode"], &now["stage"]),
        (&json!(true), &json!("login"), &json!("waiting"))
    );
    assert_eq!((&now["authorize_url"], &now["pending"]), (&json!(url), &json!(false)));
    assert_eq!(now["idle_ttl_seconds"], 900);
    let picture = client.get("/api/login-shepherd/qr").await.expect(200);
    assert!(picture.text().contains("<svg"));
    // Others hear of it, and not of its address.
    let shown = page.until("the sign-in", |state| state.shepherd.clone()).await;
    assert!(!serde_json::to_string(&shown).unwrap().contains("claude.com"));
    assert_eq!(start(client, "login").await.refused(409), "invalid_value");
    // What cannot be a code is not typed.
    for bad in ["", "  ", "a\nb#c", "a b"] {
        ask(client, "code", json!({ "code": bad })).await.expect(422);
    }
    let half = code(client, "half").await;
    assert_eq!(
        (&half["ok"], &half["pending"], &half["active"]),
        (&json!(false), &json!(false), &json!(true))
    );
    assert!(half["message"].as_str().unwrap().contains("Invalid code"), "{half}");
    let done = code(client, "  whole#secret-state ").await;
    assert_eq!((&done["ok"], &done["active"]), (&json!(true), &json!(false)), "{done}");
    assert_eq!(done.get("token"), None);
    page.until("the agent signed in", |state| {
        state.login.as_ref().filter(|login| login.claude_login_ok).map(|_| ())
    })
    .await;
    assert_eq!(state(client).await, json!({ "active": false }));
    let told: Vec<_> = entries(&world).iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(told, ["start", "code", "code"]);
    let written = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    let (_, log) = server.stop().await;
    for secret in ["secret-state", "half#", "code_challenge"] {
        assert!(!log.contains(secret) && !written.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn decoys_in_the_output_are_never_passed_on() {
    let world = open(json!({}));
    let server = world.serve().await;
    for (login, mode) in
        [("decoy_url", "login"), ("ansi_url", "login"), ("decoy_url", "setup-token")]
    {
        set(&world, login);
        let begun = start(&server.client, mode).await.expect(200).json();
        let url = begun["authorize_url"].as_str().unwrap();
        assert!(url.starts_with("https://claude.com/cai/oauth/authorize?"), "{url}");
        assert!(url.contains("state=") && !url.contains('\u{1b}'), "{url}");
        ask(&server.client, "cancel", Value::Null).await.expect(200);
        ask(&server.client, "cancel", Value::Null).await.expect(200);
        none_runs(&world, &server).await;
    }
}

#[tokio::test]
async fn a_sign_in_that_fails_says_why_in_the_agents_words() {
    let world = open(json!({}));
    let server = world.serve().await;
    for mode in ["login", "setup-token"] {
        set(&world, "reject");
        start(&server.client, mode).await.expect(200);
        let refused = code(&server.client, "whole#state").await;
        assert_eq!(
            (&refused["ok"], &refused["active"]),
            (&json!(false), &json!(false)),
            "{refused}"
        );
        let why = refused["message"].as_str().unwrap();
        assert!(why.contains("400") && !why.contains("whole#state"), "{why}");
        assert_eq!(state(&server.client).await, json!({ "active": false }));
        set(&world, "url_then_exit");
        let ended = start(&server.client, mode).await;
        // The address may have been seen before the end, and the end after that.
        let why = match ended.status {
            200 => loop {
                let told = ask(&server.client, "status", Value::Null).await.expect(200);
                if told.json()["active"] == false {
                    break told.text();
                }
            },
            _ => ended.expect(400).text(),
        };
        assert!(why.contains("callback server"), "{why}");
    }
    none_runs(&world, &server).await;
}

#[tokio::test]
async fn a_token_is_told_once_to_who_has_proved_the_password() {
    let world = open(json!({
        "auth": { "enabled": true, "password_required": true, "password_hash": HASH },
    }));
    set(&world, "ok");
    let server = world.serve().await;
    let proof = json!({ "password": PASSWORD });
    let cookie =
        |reply: &Reply| reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let send = |path: &'static str, cookies: String, body: Value| {
        let request = server.client.request(Method::POST, path).header("Origin", &server.base);
        server.client.send(request.header("Cookie", cookies).json(&body))
    };
    let session = cookie(&send("/login", String::new(), proof.clone()).await.expect(200));
    let mode = json!({ "mode": "setup-token" });
    let refused = send("/api/login-shepherd/start", session.clone(), mode.clone()).await;
    assert_eq!(refused.refused(403), "reauth_required");
    let raised = send("/api/reauth", session.clone(), proof).await.expect(200);
    let both = format!("{session}; {}", cookie(&raised));
    send("/api/login-shepherd/start", both.clone(), mode).await.expect(200);
    // Whoever has not proved it hears nothing.
    let typed = json!({ "code": "whole#state" });
    let refused = send("/api/login-shepherd/code", session.clone(), typed.clone()).await;
    assert_eq!(refused.refused(403), "reauth_required");
    let reply = send("/api/login-shepherd/code", both.clone(), typed).await.expect(200);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("content-encoding"), None);
    let done = reply.json();
    let token = done["token"].as_str().unwrap_or_else(|| panic!("{done}")).to_owned();
    assert!(token.starts_with("sk-ant-oat01-") && token.len() > 60, "{token}");
    let again = send("/api/login-shepherd/status", both, Value::Null).await;
    assert_eq!(again.status, 409, "{}", again.text());
    let (_, log) = server.stop().await;
    assert!(!log.contains(&token));
    for file in fs::read_dir(&world.state).unwrap().flatten() {
        let text = fs::read(file.path()).unwrap_or_default();
        let holds = text.windows(token.len()).any(|part| part == token.as_bytes());
        assert!(!holds, "{:?}", file.path());
    }
}

/// A service with shorter waits.
async fn hurried<'w>(world: &'w World, points: &str) -> Server<'w> {
    let env = [("SVC_FAILPOINTS", points)];
    let program = service_with_fail_points();
    world.serve_as(Start { program, env: &env, ..Start::default() }).await
}

#[tokio::test]
async fn a_slow_check_is_pending_until_somebody_asks_again() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = open(json!({}));
    set(&world, "hang_after_code");
    let server = hurried(&world, "sign-in.outcome=50").await;
    start(&server.client, "login").await.expect(200);
    let late = code(&server.client, "whole#state").await;
    assert_eq!((&late["ok"], &late["pending"]), (&json!(false), &json!(true)));
    let now = state(&server.client).await;
    assert_eq!((&now["pending"], &now["stage"]), (&json!(true), &json!("checking")));
    // Another code would be typed into whatever the agent does now.
    ask(&server.client, "code", json!({ "code": "other#state" })).await.expect(409);
    let asked = ask(&server.client, "status", Value::Null).await.expect(200).json();
    assert_eq!(asked["pending"], true);
    ask(&server.client, "cancel", Value::Null).await.expect(200);
    none_runs(&world, &server).await;
    ask(&server.client, "status", Value::Null).await.expect(409);
}

#[tokio::test]
async fn an_agent_without_an_address_is_given_up() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = open(json!({}));
    let server = hurried(&world, "sign-in.address=400").await;
    for login in ["no_url", "slow_url:60000"] {
        set(&world, login);
        let reply = start(&server.client, "login").await;
        assert_eq!(reply.refused(400), "agent_failed", "{login}");
        assert!(reply.text().contains("claude auth login"), "{}", reply.text());
        none_runs(&world, &server).await;
    }
}

#[tokio::test]
async fn an_abandoned_sign_in_is_reclaimed_and_so_is_its_process() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = open(json!({}));
    set(&world, "ok");
    let server = hurried(&world, "sign-in.idle=3000").await;
    start(&server.client, "setup-token").await.expect(200);
    none_runs(&world, &server).await;
    assert_eq!(state(&server.client).await, json!({ "active": false }));
    start(&server.client, "login").await.expect(200);
}

#[tokio::test]
async fn a_sign_in_ends_with_the_service_however_that_ends() {
    let world = open(json!({}));
    set(&world, "ok");
    for (is_killed, mode) in [(true, "login"), (true, "setup-token"), (false, "login")] {
        let server = world.serve().await;
        start(&server.client, mode).await.expect(200);
        assert_eq!(running(&world), 1);
        if is_killed {
            server.kill().await;
        } else {
            server.stop().await;
        }
        let end = std::time::Instant::now() + crate::harness::DEADLINE;
        while running(&world) > 0 {
            assert!(std::time::Instant::now() < end, "{mode} outlived the service");
            tokio::task::yield_now().await;
        }
    }
}
