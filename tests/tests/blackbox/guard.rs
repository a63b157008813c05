//! The guard from outside: refused starts, sign-out, revocation, hostile bytes.

use crate::harness::{Server, Start, World, service, within};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

/// A service that asks for a password.
pub(crate) fn closed() -> Value {
    json!({ "auth": { "enabled": true, "password_required": true, "password_hash": HASH } })
}

async fn sign_in(server: &Server<'_>) -> String {
    let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let reply = server.client.send(request.json(&json!({"password": PASSWORD}))).await.expect(200);
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

async fn with_cookie(server: &Server<'_>, method: Method, path: &str, cookie: &str) -> u16 {
    let request = server.client.request(method, path).header("Origin", &server.base);
    server.client.send(request.header("Cookie", cookie)).await.status
}

#[tokio::test]
async fn h17_h19_a_sign_out_survives_a_kill_and_another_key_signs_everybody_out() {
    let world = World::with(closed());
    let server = world.serve().await;
    let cookie = sign_in(&server).await;
    assert_eq!(with_cookie(&server, Method::GET, "/api/projects", &cookie).await, 200);
    assert_eq!(with_cookie(&server, Method::POST, "/logout", &cookie).await, 200);
    server.kill().await;

    let server = world.serve().await;
    assert_eq!(with_cookie(&server, Method::GET, "/api/projects", &cookie).await, 401);
    let cookie = sign_in(&server).await;
    server.stop().await;
    let server = world.serve().await;
    assert_eq!(with_cookie(&server, Method::GET, "/api/projects", &cookie).await, 200);
    server.stop().await;

    let other_key = [("SVC_SESSION_SECRET", "another key than the one that signed the cookie")];
    let server = world.serve_as(Start { env: &other_key, ..Start::default() }).await;
    assert_eq!(with_cookie(&server, Method::GET, "/api/projects", &cookie).await, 401);
    assert_eq!(server.client.get("/login").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn h18_a_token_revoked_by_another_process_ends_what_it_opened() {
    let world = World::with(closed());
    let server = world.serve().await;
    for verb in ["revoke", "rotate"] {
        let token = world.cli(&["api-token", "issue", verb, "--json"]).await.ok().json();
        let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
        let get = || {
            let request = server.client.request(Method::GET, "/api/projects");
            server.client.send(request.header("Authorization", &bearer))
        };
        assert_eq!(get().await.status, 200);
        let address = format!("{}/ws/events", server.base.replacen("http", "ws", 1));
        let mut request = address.into_client_request().unwrap();
        request.headers_mut().insert("authorization", bearer.parse().unwrap());
        let (mut socket, _) = within("a socket", connect_async(request)).await.unwrap();
        assert!(within("a snapshot", socket.next()).await.unwrap().unwrap().is_text());
        world.cli(&["api-token", verb, verb]).await.ok();
        let code = within("the close", async {
            loop {
                match socket.next().await {
                    Some(Ok(Message::Close(Some(frame)))) => return u16::from(frame.code),
                    Some(Ok(_)) => {}
                    other => panic!("{other:?}"),
                }
            }
        });
        assert_eq!(code.await, 4401, "{verb}");
        assert_eq!(get().await.refused(401), "auth_required");
    }
    server.stop().await;
}

#[tokio::test]
async fn h14_every_refusal_of_a_start_names_what_to_set() {
    let proxy = |more: Value| json!({ "auth": { "reverse_proxy": more } });
    let costly = HASH.replace("m=65536", "m=2000000");
    for (settings, env, code, words) in [
        (json!({ "host": "0.0.0.0" }), None, 2, "host"),
        (json!({ "host": "::" }), None, 2, "host"),
        (json!({ "auth": { "password_required": true } }), None, 2, "auth.password_hash"),
        (json!({ "auth": { "password_hash": costly } }), None, 2, "auth.password_hash"),
        (json!({ "auth": { "api_token_hash": "short" } }), None, 2, "auth.api_token_hash"),
        (proxy(json!({ "enabled": true })), None, 2, "auth.reverse_proxy.trusted_ips"),
        (
            proxy(json!({ "enabled": true, "trusted_ips": ["10.0.0.1"] })),
            None,
            2,
            "auth.reverse_proxy.shared_secret",
        ),
        (proxy(json!({ "trusted_ips": ["nobody"] })), None, 2, "auth.reverse_proxy.trusted_ips"),
        (json!({ "projects_root": "/nowhere/at/all" }), None, 2, "projects_root"),
        (json!({}), Some(("SVC_SESSION_SECRET", "short")), 2, "SVC_SESSION_SECRET"),
        (
            json!({}),
            Some(("SVC_AUTH_API_TOKEN_HASH_FILE", "/nowhere/at/all")),
            2,
            "SVC_AUTH_API_TOKEN_HASH_FILE",
        ),
        (json!({ "state_dir": "/dev/null/state" }), None, 1, "/dev/null"),
    ] {
        let world = World::with(settings.clone());
        let env: Vec<_> = env.into_iter().collect();
        let ran = world.cli_with(&["run"], &env).await;
        assert_eq!(ran.code, Some(code), "{settings} {env:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{settings} {env:?}: {}", ran.stderr);
    }
    let world = World::new();
    fs::create_dir(&world.state).unwrap();
    fs::set_permissions(&world.state, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(world.state.join("session.secret"), "short").unwrap();
    let mut command = world.command(&service(), &["run"]);
    let ran = within("its refusal", command.env_remove("SVC_SESSION_SECRET").output()).await;
    let ran = ran.unwrap();
    let words = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{words}");
    assert!(words.contains("session.secret"), "{words}");
}

#[tokio::test]
async fn every_weakness_is_told_at_the_start_by_its_key() {
    let proxy = |more: Value| {
        json!({ "auth": { "enabled": true, "reverse_proxy": {
            "enabled": true, "trusted_ips": ["10.0.0.0/8"], "require_hmac": false,
            "shared_secret": more,
        } } })
    };
    let mut without_page = closed();
    without_page["ui"] = json!({ "enabled": false });
    let mut reachable = closed();
    reachable["host"] = json!("0.0.0.0");
    for (settings, words) in [
        (reachable.clone(), "auth.cookie_secure"),
        (json!({ "auth": { "enabled": true } }), "auth.enabled"),
        (without_page, "ui.enabled"),
        (proxy(json!("0123456789abcdef")), "auth.reverse_proxy.trusted_ips"),
        (proxy(json!("short")), "auth.reverse_proxy.shared_secret"),
        (json!({ "auth": { "allowed_origins": ["nowhere"] } }), "auth.allowed_origins"),
        (json!({ "auth": { "password_hash": "plain" } }), "auth.password_hash"),
        (json!({ "auth": { "enabeld": true } }), "enabeld"),
    ] {
        let world = World::with(settings.clone());
        let ran = world.cli(&["config", "check"]).await.ok();
        let is_told = |line: &str| line.starts_with("warning: ") && line.contains(words);
        assert!(ran.stdout.lines().any(is_told), "{settings}: {}", ran.stdout);
    }
    let world = World::with(closed());
    let quiet = world.cli(&["config", "check"]).await.ok();
    assert!(!quiet.stdout.contains("auth.cookie_secure"), "{}", quiet.stdout);
    let world = World::with(reachable);
    for (mode, words) in [(0o644, "0644"), (0o620, "chmod g-w"), (0o602, "chmod o-w")] {
        fs::set_permissions(&world.config, fs::Permissions::from_mode(mode)).unwrap();
        let ran = world.cli(&["config", "check"]).await.ok();
        assert!(ran.stdout.contains(words), "{mode:o}: {}", ran.stdout);
    }
    let server = world.serve().await;
    let (_, log) = server.stop().await;
    assert!(log.contains("warning: ") && log.contains("auth.cookie_secure"), "{log}");
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.roll() >> 33).unwrap() % most
    }

    fn one_of<'t>(&mut self, words: &[&'t str]) -> &'t str {
        words[self.below(words.len())]
    }

    /// Bytes: any, or what looks like text of the protocol.
    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let is_any = self.below(3) == 0;
        let length = self.below(most) + 1;
        let telling = b"/%.;:\\\"'{}[]()=&?#<> \t\0\r\n,0aZ";
        (0..length)
            .map(|_| match is_any {
                true => (self.roll() >> 40) as u8,
                false => telling[self.below(telling.len())],
            })
            .collect()
    }

    /// A request that is wrong somewhere.
    fn request(&mut self, host: &str, token: &str, secret: &str) -> Vec<u8> {
        const PATHS: [&str; 12] = [
            "/",
            "/login",
            "/logout",
            "/setup",
            "/api/v1/instances",
            "/api/projects",
            "/api/reauth",
            "/api/instances/x/forget",
            "/api/projects/trust-all",
            "/healthz",
            "/ws/events",
            "/static/x",
        ];
        const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"];
        let kind = self.below(6);
        if kind == 0 {
            return self.bytes(2000);
        }
        let mut raw = Vec::new();
        raw.extend_from_slice(self.one_of(&METHODS).as_bytes());
        raw.push(b' ');
        raw.extend_from_slice(self.one_of(&PATHS).as_bytes());
        if kind == 1 {
            raw.extend(self.bytes(60));
        }
        raw.extend_from_slice(b" HTTP/1.1\r\nConnection: close\r\n");
        raw.extend_from_slice(format!("Host: {host}\r\n").as_bytes());
        let is_known = self.below(2) == 0;
        if is_known {
            raw.extend_from_slice(format!("Authorization: Bearer {token}\r\n").as_bytes());
        } else {
            raw.extend_from_slice(format!("Origin: http://{host}\r\n").as_bytes());
        }
        if kind == 2 {
            raw.extend_from_slice(
                self.one_of(&["Cookie", "Origin", "Accept", "X-A", "Range"]).as_bytes(),
            );
            raw.extend_from_slice(b": ");
            raw.extend(self.bytes(200));
            raw.extend_from_slice(b"\r\n");
        }
        if kind == 3 {
            let name = self.one_of(&[
                "Authorization: Bearer ",
                "Cookie: svc_session_0=",
                "X-Proxy-Auth: ",
            ]);
            raw.extend_from_slice(format!("{name}{secret}").as_bytes());
            raw.extend(self.bytes(20));
            raw.extend_from_slice(b"\r\n");
        }
        let mut body = self.bytes(800);
        let media = self.one_of(&["application/json", "application/x-www-form-urlencoded", "x/y"]);
        match self.below(4) {
            0 => body.splice(0..0, br#"{"password":""#.iter().copied()).for_each(drop),
            1 => body = format!("{{\"password\":\"{secret}\",\"project\":{}}}", self.roll()).into(),
            2 => body = format!("password={secret}&next=%00").into(),
            _ => {}
        }
        let length = body.len() + self.below(2);
        let head = format!("Content-Type: {media}\r\nContent-Length: {length}\r\n\r\n");
        raw.extend_from_slice(head.as_bytes());
        raw.extend(body);
        raw
    }
}

/// Sends bytes, ends the sending side, and reads until the service hangs up.
async fn answer(host: String, raw: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let mut socket = TcpStream::connect(&host).await.unwrap();
    // The service may hang up before it took everything.
    let _ = socket.write_all(&raw).await;
    let _ = socket.shutdown().await;
    let mut all = Vec::new();
    let _ = within("the end of an answer", socket.read_to_end(&mut all)).await;
    (raw, all)
}

#[tokio::test]
async fn h23_no_bytes_on_the_wire_break_the_service_or_leak_into_its_log() {
    let secret = "Zq7xW2mK9pL4vB8nC3sD6fG1hJ5kT0yR";
    let world = World::with(closed());
    let own = world.cli(&["hash-token", "--json"]).await.ok().json();
    world.configure(json!({ "auth": { "api_token_hash": own["hash"] }, "log_level": "debug" }));
    let token = own["token"].as_str().unwrap();
    let server = world.serve_as(Start::default()).await;
    let host = server.base.strip_prefix("http://").unwrap().to_owned();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for _ in 0..40 {
        let requests = (0..16).map(|_| answer(host.clone(), dice.request(&host, token, secret)));
        for (sent, got) in join_all(requests.collect::<Vec<_>>()).await {
            let got = String::from_utf8_lossy(&got);
            assert!(!got.contains("HTTP/1.1 5"), "{:?}\n{got}", String::from_utf8_lossy(&sent));
        }
    }
    let health = server.client.get("/healthz").await;
    assert_eq!(health.json(), json!({"status": "ok"}), "it still serves");
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0));
    for word in [secret, token, "panicked", " ERROR "] {
        assert!(!log.contains(word), "{word} is in the log:\n{log}");
    }
}
