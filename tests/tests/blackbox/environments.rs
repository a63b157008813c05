//! Remote environments that are left over are listed, archived and deleted.
//!
//! One that is in use is never touched.

use crate::config_write::entries;
use crate::harness::{Client, Server, Start, World, service_with_fail_points, within};
use serde_json::{Value, json};
use std::fs;
use std::sync::{Arc, Mutex};
use svc_skip::{NO_FAIL_POINTS, skip};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Begins the token that must never be seen again.
const TOKEN: &str = "sk-ant-oat01-test-token-of-the-account";

/// The account's service, pretended.
struct Account {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// As they are listed.
    environments: Vec<Value>,
    /// `METHOD path`, in order, with what proved the caller.
    calls: Vec<(String, String)>,
    /// Status that changes are refused with.
    refuses: Option<u16>,
    /// Environments on one page.
    page: usize,
    /// Every page says that another follows, and is the same.
    repeats: bool,
}

impl Account {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { page: 2, ..State::default() }));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }

    fn points(&self) -> String {
        format!("environments.api=http://127.0.0.1:{}", self.port)
    }

    fn add(&self, id: &str, directory: &str, more: Value) {
        let mut one = json!({
            "environment_id": id, "kind": "bridge", "name": "of a bridge", "state": "active",
            "bridge_info": { "directory": directory },
        });
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.state.lock().unwrap().environments.push(one);
    }

    /// What was asked besides lists.
    fn changes(&self) -> Vec<String> {
        let calls = &self.state.lock().unwrap().calls;
        calls.iter().map(|(call, _)| call.clone()).filter(|call| !call.starts_with("GET")).collect()
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (Vec::new(), String::new());
        while stream.read_line(&mut line).await.unwrap_or(0) > 2 {
            head.push(line.trim_end().to_owned());
            line.clear();
        }
        let Some(first) = head.first() else { return };
        let call = first.trim_end_matches(" HTTP/1.1").to_owned();
        let proof = head.iter().find_map(|line| line.strip_prefix("authorization: "));
        let (status, body) = state.lock().unwrap().answer(&call, proof.unwrap_or_default());
        let text = body.to_string();
        let length = text.len();
        let reply = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{text}");
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

impl State {
    fn answer(&mut self, call: &str, proof: &str) -> (u16, Value) {
        self.calls.push((call.to_owned(), proof.to_owned()));
        if let Some(query) = call.strip_prefix("GET /v1/environment_providers?") {
            let after = query.split('&').find_map(|part| part.strip_prefix("after_id="));
            let id = |one: &Value| one["environment_id"].as_str().unwrap_or_default().to_owned();
            let all = &self.environments;
            let from = after.and_then(|after| all.iter().position(|one| id(one) == after));
            let from = from.filter(|_| !self.repeats).map_or(0, |at| at + 1);
            let page: Vec<Value> = all.iter().skip(from).take(self.page).cloned().collect();
            let has_more = self.repeats || from + page.len() < all.len();
            let last = page.last().map(id);
            return (200, json!({ "environments": page, "has_more": has_more, "last_id": last }));
        }
        if let Some(status) = self.refuses {
            let words = format!("refused for {proof}");
            return (status, json!({ "error": { "message": words } }));
        }
        let named = call.split('/').find(|part| part.starts_with("env-")).unwrap_or_default();
        self.environments.retain(|one| one["environment_id"] != named);
        (200, json!({}))
    }
}

/// A world whose agent is signed in.
fn signed_in(more: Value) -> World {
    let world = World::with(json!({ "reaper": { "ui_enabled": true } }));
    world.configure(more);
    credentials(&world, 3_600_000);
    world
}

fn credentials(world: &World, left_ms: i128) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ends = i128::try_from(now.as_millis()).unwrap() + left_ms;
    let login = json!({ "claudeAiOauth": { "accessToken": TOKEN, "expiresAt": ends as i64 } });
    fs::write(world.agent_home.join(".credentials.json"), login.to_string()).unwrap();
}

async fn serving<'w>(world: &'w World, account: &Account) -> Server<'w> {
    let points = account.points();
    let env = [("SVC_FAILPOINTS", points.as_str())];
    let program = service_with_fail_points();
    world.serve_as(Start { program, env: &env, ..Start::default() }).await
}

async fn ghosts(client: &Client) -> Value {
    client.get("/api/environments/ghosts").await.expect(200).json()
}

fn directories(found: &Value) -> Vec<String> {
    let all = found["ghosts"].as_array().unwrap();
    all.iter()
        .map(|one| one["directory"].as_str().unwrap().rsplit('/').next().unwrap().to_owned())
        .collect()
}

fn references(found: &Value) -> Vec<Value> {
    found["ghosts"].as_array().unwrap().iter().map(|one| one["ref"].clone()).collect()
}

async fn reap(
    client: &Client,
    action: &str,
    ids: &[Value],
    confirm: &str,
) -> crate::harness::Reply {
    let body = json!({ "action": action, "ids": ids, "confirm": confirm });
    client.post_json("/api/environments/reap", &body).await
}

#[tokio::test]
async fn nothing_of_it_is_there_while_it_is_off() {
    let world = World::new();
    let server = world.serve().await;
    server.client.get("/api/environments/ghosts").await.expect(404);
    reap(&server.client, "archive", &[], "archive").await.expect(404);
    let features = server.client.get("/api/bootstrap").await.json()["features"].clone();
    assert_eq!(features["reaper"], false);
}

#[tokio::test]
async fn h108_only_what_is_left_over_here_is_listed_and_removed() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = signed_in(json!({}));
    let account = Account::start().await;
    for name in ["gone", "old", "used", "kept"] {
        world.project(name);
    }
    let at = |name: &str| world.projects.join(name).to_str().unwrap().to_owned();
    account.add("env-old", &at("old"), json!({}));
    account.add("env-gone", &at("never-there"), json!({}));
    account.add("env-used", &at("used"), json!({}));
    account.add("env-root", world.projects.to_str().unwrap(), json!({}));
    account.add("env-outside", "/somewhere/else", json!({}));
    account.add("env-climbs", &format!("{}/../x", at("old")), json!({}));
    account.add("env-cloud", &at("kept"), json!({ "kind": "anthropic_cloud" }));
    account.add("env-archived", &at("kept"), json!({ "state": "archived" }));
    let elsewhere = json!({ "bridge_info": { "directory": at("kept"), "machine_name": "laptop" } });
    account.add("env-elsewhere", "", elsewhere);
    account.add("env-nowhere", "", json!({ "bridge_info": null }));
    let server = serving(&world, &account).await;
    server.client.run("used").await;
    let found = ghosts(&server.client).await;
    assert_eq!(directories(&found), ["never-there", "old"], "{found}");
    assert_eq!((&found["enabled"], &found["total"]), (&json!(true), &json!(10)));
    assert!(found["live_dirs"].as_u64().unwrap() >= 1, "{found}");
    // Looking changes nothing.
    assert_eq!(account.changes(), Vec::<String>::new());
    let ids = references(&found);
    for (action, confirm) in [("archive", "DELETE"), ("delete", "archive"), ("delete", "")] {
        let refused = reap(&server.client, action, &ids, confirm).await;
        assert_eq!(refused.refused(400), "confirm_required", "{action} {confirm}");
    }
    reap(&server.client, "burn", &ids, "archive").await.expect(422);
    assert_eq!(account.changes(), Vec::<String>::new());
    let stranger = json!("0123456789abcdef");
    let asked = [ids[1].clone(), stranger.clone()];
    let done = reap(&server.client, "archive", &asked, "archive").await.expect(200).json();
    assert_eq!(
        done,
        json!({
            "action": "archive", "reaped": [ids[1]], "skipped": [stranger], "errors": {},
        })
    );
    assert_eq!(account.changes(), ["POST /v1/environments/env-old/archive"]);
    let done = reap(&server.client, "delete", &ids, "DELETE").await.expect(200).json();
    assert_eq!((&done["reaped"], &done["skipped"]), (&json!([ids[0]]), &json!([ids[1]])));
    assert_eq!(account.changes()[1], "DELETE /v1/environments/bridge/env-gone");
    let told: Vec<_> = entries(&world)
        .iter()
        .filter(|entry| entry["surface"] == "environments")
        .map(|entry| (entry["action"].clone(), entry["target"].clone()))
        .collect();
    assert_eq!(told, [(json!("archive"), ids[1].clone()), (json!("delete"), ids[0].clone())]);
    let proofs = &account.state.lock().unwrap().calls;
    assert!(proofs.iter().all(|(_, proof)| proof == &format!("Bearer {TOKEN}")));
}

#[tokio::test]
async fn a_bridge_that_was_started_meanwhile_keeps_its_environment() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = signed_in(json!({}));
    let account = Account::start().await;
    account.add("env-api", world.project("api").to_str().unwrap(), json!({}));
    let server = serving(&world, &account).await;
    let found = ghosts(&server.client).await;
    assert_eq!(directories(&found), ["api"]);
    server.client.run("api").await;
    let done = reap(&server.client, "delete", &references(&found), "DELETE").await.expect(200);
    assert_eq!(done.json()["skipped"], json!(references(&found)));
    assert_eq!(account.changes(), Vec::<String>::new());
    assert_eq!(directories(&ghosts(&server.client).await), Vec::<String>::new());
}

#[tokio::test]
async fn without_certainty_or_credentials_nothing_is_asked_or_removed() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = signed_in(json!({}));
    let account = Account::start().await;
    let api = world.project("api");
    account.add("env-api", api.to_str().unwrap(), json!({}));
    let server = serving(&world, &account).await;
    let ids = references(&ghosts(&server.client).await);
    let refused = async |why: &str| {
        let before = account.changes().len();
        let list = server.client.get("/api/environments/ghosts").await.expect(503);
        assert!(list.text().contains(why), "{}", list.text());
        reap(&server.client, "delete", &ids, "DELETE").await.expect(503);
        assert_eq!(account.changes().len(), before, "{why}");
    };
    credentials(&world, -1000);
    refused("expired").await;
    fs::remove_file(world.agent_home.join(".credentials.json")).unwrap();
    refused("no credentials").await;
    fs::write(world.agent_home.join(".credentials.json"), "{}").unwrap();
    refused("hold no login").await;
    credentials(&world, 3_600_000);
    let root = world.root.join("moved");
    fs::rename(&world.projects, &root).unwrap();
    refused("projects_root").await;
    fs::rename(&root, &world.projects).unwrap();
    assert_eq!(references(&ghosts(&server.client).await), ids);
}

#[tokio::test]
async fn what_the_accounts_service_refuses_is_told_without_the_token() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = signed_in(json!({}));
    let account = Account::start().await;
    for name in ["a", "b", "c"] {
        account.add(&format!("env-{name}"), world.project(name).to_str().unwrap(), json!({}));
    }
    let server = serving(&world, &account).await;
    let found = ghosts(&server.client).await;
    assert_eq!(directories(&found), ["a", "b", "c"], "over two pages");
    account.state.lock().unwrap().refuses = Some(403);
    let done = reap(&server.client, "archive", &references(&found), "archive").await.expect(200);
    let text = done.text();
    assert_eq!(done.json()["errors"].as_object().unwrap().len(), 3, "{text}");
    assert!(text.contains("403") && !text.contains(TOKEN), "{text}");
    let after: Vec<_> = entries(&world).iter().map(|entry| entry["action"].clone()).collect();
    assert!(after.contains(&json!("archive-failed")), "{after:?}");
    account.state.lock().unwrap().repeats = true;
    let refused = server.client.get("/api/environments/ghosts").await;
    assert_eq!(refused.refused(502), "agent_failed");
    let (_, log) = server.stop().await;
    assert!(!log.contains(TOKEN) && !log.contains("env-a"), "{log}");
}

#[tokio::test]
async fn the_command_lists_archives_and_deletes_only_after_a_confirmation() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    // The command is there while the list over JSON is not.
    let world = signed_in(json!({ "reaper": { "ui_enabled": false } }));
    let account = Account::start().await;
    for name in ["a", "b"] {
        account.add(&format!("env-{name}"), world.project(name).to_str().unwrap(), json!({}));
    }
    let run = async |args: &[&str], typed: &str| {
        let mut all = vec!["reap-environments"];
        all.extend(args);
        let mut command = world.command(&program, &all);
        command.env("SVC_FAILPOINTS", account.points());
        command.stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).await.unwrap();
        let ran = within("the command", child.wait_with_output()).await.unwrap();
        let (out, err) = (ran.stdout, ran.stderr);
        let text = format!("{}{}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
        assert!(!text.contains(TOKEN) && !text.contains("env-"), "{text}");
        (ran.status.code().unwrap(), text)
    };
    let (code, text) = run(&[], "").await;
    assert_eq!((code, account.changes().len()), (0, 0), "{text}");
    assert!(text.contains("/projects/a") && text.contains("2 of 2"), "{text}");
    let (code, text) = run(&["--json"], "").await;
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, listed["total"].as_u64()), (0, Some(2)));
    for typed in ["", "no\n", "delete\n"] {
        let (code, text) = run(&["--force-delete"], typed).await;
        assert_eq!((code, account.changes().len()), (2, 0), "{text}");
    }
    run(&["--archive", "--force-delete"], "").await;
    assert_eq!(run(&["--force-delete"], "DELETE\n").await.0, 0);
    assert_eq!(account.changes().len(), 2);
    assert!(run(&["--archive"], "").await.1.contains("0 of 0"));
    account.add("env-c", world.project("c").to_str().unwrap(), json!({}));
    account.state.lock().unwrap().refuses = Some(500);
    assert_eq!(run(&["--archive"], "").await.0, 1);
    assert_eq!(run(&["--force-delete", "--yes"], "").await.0, 1);
    credentials(&world, -1);
    assert_eq!(run(&[], "").await.0, 2);
}
