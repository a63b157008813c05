//! Secrets of sign-in, planted and used everywhere, are found nowhere (H65).

use crate::harness::{Server, World, within};
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const PASSWORD: &str = "c4n4ry-password-5be1a7d09c3f42e8";
const WRONG_PASSWORD: &str = "c4n4ry-wrong-password-0d3b58a1f7";
const PROXY_SECRET: &str = "c4n4ry-proxy-secret-77aa19e3b04d";
const WRONG_TOKEN: &str = "c4n4ry-wrong-token-4f8e2d7a9c10b6";

/// What was planted, by name.
struct Planted(Vec<(&'static str, String)>);

impl Planted {
    #[track_caller]
    fn check(&self, what: &str, text: &[u8]) {
        for (name, secret) in &self.0 {
            let found = text.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{what} tells the {name}:\n{}", String::from_utf8_lossy(text));
        }
    }
}

/// A token and its hash, as the command makes them.
async fn token(world: &World, command: &str) -> (String, Value) {
    let made = world.cli(&[command, "--json"]).await.ok().json();
    (made["token"].as_str().unwrap().to_owned(), made["hash"].clone())
}

/// Every file below a directory.
fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// Command lines of everything that ran in the world, looked at all the time.
async fn watch_command_lines(world: &World, planted: &[String]) {
    loop {
        for process in world.processes() {
            let line = process.argv.join(" ");
            for secret in planted {
                assert!(!line.contains(secret.as_str()), "a secret stands in {line}");
            }
        }
        // The kernel announces no new command line, so the process table is sampled.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// One request with a secret in every place a careless client puts it.
async fn everywhere(server: &Server<'_>, planted: &Planted, secret: &str, path: &str) {
    let client = &server.client;
    let bearer = format!("Bearer {secret}");
    let body = json!({ "project": 5, "prompt": secret, "password": secret, "label": 5 });
    for request in [
        client.request(Method::GET, path).header("Authorization", &bearer),
        client.request(Method::GET, path).header("Cookie", format!("svc_session_0={secret}")),
        client.request(Method::GET, path).header("X-Proxy-Auth", format!("t=1,v1={secret}")),
        client.request(Method::GET, &format!("{path}?token={secret}&password={secret}")),
        client.request(Method::POST, path).header("Origin", &server.base).json(&body),
        client
            .request(Method::POST, "/api/v1/instances")
            .header("Origin", &server.base)
            .header("Authorization", &bearer)
            .json(&body),
        client.request(Method::PATCH, "/api/instances/app").header("Origin", secret).json(&body),
    ] {
        let reply = client.send(request).await;
        assert!(reply.status < 500 || reply.status == 503, "{}", reply.text());
        planted.check(&format!("an answer of {path}"), &reply.body);
        planted.check(&format!("a head of {path}"), format!("{:?}", reply.headers).as_bytes());
    }
}

#[tokio::test]
async fn h65_password_tokens_cookie_and_proxy_secret_are_found_nowhere() {
    let world = World::new();
    world.project("app");
    let mut hash = world.command(&crate::harness::service(), &["hash-password", "--json"]);
    hash.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut hash = hash.spawn().unwrap();
    {
        use tokio::io::AsyncWriteExt as _;
        let mut stdin = hash.stdin.take().unwrap();
        stdin.write_all(format!("{PASSWORD}\n").as_bytes()).await.unwrap();
    }
    let hash = within("a hash", hash.wait_with_output()).await.unwrap();
    let hash: Value = serde_json::from_slice(&hash.stdout).unwrap();
    let (unnamed, unnamed_hash) = token(&world, "hash-token").await;
    let (scrape, scrape_hash) = token(&world, "hash-metrics-token").await;
    world.configure(json!({
        "log_level": "debug",
        "observability": { "prometheus_enabled": true, "metrics_token_hash": scrape_hash },
        "auth": {
            "enabled": true, "password_required": true, "password_hash": hash["hash"],
            "api_token_hash": unnamed_hash,
            "reverse_proxy": {
                "enabled": true, "trusted_ips": ["127.0.0.1"], "shared_secret": PROXY_SECRET,
            },
        },
    }));
    let server = world.serve().await;
    let issued = world.cli(&["api-token", "issue", "ci", "--json"]).await.ok().json();
    let rotated = world.cli(&["api-token", "rotate", "ci", "--json"]).await.ok().json();
    let sign_in = async |password: &str| {
        let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
        server.client.send(request.json(&json!({ "password": password }))).await
    };
    let welcomed = sign_in(PASSWORD).await.expect(200);
    let cookie = welcomed.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let value = cookie.split_once('=').unwrap().1.to_owned();
    let planted = Planted(vec![
        ("password", PASSWORD.to_owned()),
        ("wrong password", WRONG_PASSWORD.to_owned()),
        ("proxy secret", PROXY_SECRET.to_owned()),
        ("unnamed token", unnamed),
        ("scrape token", scrape),
        ("wrong token", WRONG_TOKEN.to_owned()),
        ("token before its rotation", issued["token"].as_str().unwrap().to_owned()),
        ("named token", rotated["token"].as_str().unwrap().to_owned()),
        ("cookie", value),
    ]);
    planted.check("the body of a sign-in", &welcomed.body);
    let secrets: Vec<String> = planted.0.iter().map(|(_, secret)| secret.clone()).collect();

    let using = async {
        for password in [WRONG_PASSWORD, PASSWORD] {
            let reply = sign_in(password).await;
            planted.check("the body of a sign-in", &reply.body);
        }
        let form = server.client.request(Method::POST, "/login").header("Origin", &server.base);
        let form = form.header("Content-Type", "application/x-www-form-urlencoded");
        let form = form.body(format!("password={WRONG_PASSWORD}&next=%2F"));
        let reply = server.client.send(form).await;
        assert!([401, 429].contains(&reply.status), "{}", reply.text());
        planted.check("the page of a sign-in", &reply.body);
        let client = server.client.clone();
        let get = async |path: &str| {
            let reply =
                client.send(client.request(Method::GET, path).header("Cookie", &cookie)).await;
            planted.check(path, &reply.body);
            reply
        };
        let launch = server.client.request(Method::POST, "/api/v1/instances");
        let launch = launch.header("Origin", &server.base).header("Cookie", &cookie);
        let launched = server.client.send(launch.json(&json!({ "project": "app" }))).await;
        let id = launched.expect(201).instance().instance_id.to_string();
        for path in [
            "/api/bootstrap",
            "/api/state",
            "/api/doctor",
            "/api/history",
            "/metrics",
            "/healthz",
            "/openapi.json",
            "/logout",
            "/",
            &format!("/api/instances/{id}/log"),
            &format!("/api/instances/{id}/report"),
        ] {
            get(path).await;
        }
        for secret in &secrets {
            for path in ["/api/projects", "/metrics", "/login", "/api/reauth"] {
                everywhere(&server, &planted, secret, path).await;
            }
        }
        for path in ["/ws/events".to_owned(), format!("/ws/bridge-log/{id}?format=json")] {
            let address = server.base.replacen("http", "ws", 1) + &path;
            let mut request = address.into_client_request().unwrap();
            request.headers_mut().insert("origin", server.base.parse().unwrap());
            request.headers_mut().insert("cookie", cookie.parse().unwrap());
            let (mut socket, _) = within("a socket", connect_async(request)).await.unwrap();
            for _ in 0..2 {
                let frame = within("a frame", socket.next()).await.unwrap().unwrap();
                planted.check(&path, &frame.into_data());
            }
        }
        for words in [
            &["status", "--json"][..],
            &["config", "show"],
            &["config", "show", "--resolved", "--json"],
            &["config", "check"],
            &["doctor", "--json"],
            &["api-token", "list", "--json"],
            &["logs", "app"],
            &["sessions"],
        ] {
            let ran = world.cli(words).await;
            planted.check(&format!("svc {words:?}"), ran.stdout.as_bytes());
            planted.check(&format!("svc {words:?}"), ran.stderr.as_bytes());
        }
        world.cli(&["api-token", "revoke", "ci"]).await.ok();
    };
    tokio::select! {
        () = using => {}
        () = watch_command_lines(&world, &secrets) => {}
    }

    let mut all = Vec::new();
    files(&world.root, &mut all);
    let is_config = |path: &PathBuf| *path == world.config; // the proxy's secret stands there
    let read: Vec<_> = all.iter().filter(|path| !is_config(path)).collect();
    assert!(read.iter().any(|path| path.ends_with("svc.db")), "{read:?}");
    for path in read {
        planted.check(&path.display().to_string(), &fs::read(path).unwrap_or_default());
    }
    let log = server.log();
    planted.check("the log", log.as_bytes());
    assert!(log.contains("DEBUG"), "the log has every level: {log}");
    let (_, log) = server.stop().await;
    planted.check("the log", log.as_bytes());
}
