//! Who is let in, and how that ends.
//!
//! Every route with every kind of credential, sign-in and sign-out, revocation, throttle.

use crate::client::{Reply, Sent};
use crate::coverage::path_of;
use crate::harness::{DEADLINE, Server, read_to_end};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;
use std::time::Duration;
use svc_app::auth::{hash_password, new_token};
use svc_domain::scope::Scope;
use svc_http::{Guard, ServeOptions};
use svc_ports::Clock as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const PASSWORD: &str = "correct horse";
pub const UNNAMED: &str = "svc_pat_unnamed";
const SCRAPE: &str = "svc_pat_scrape";

static HASH: LazyLock<String> = LazyLock::new(|| hash_password(PASSWORD.as_bytes()).unwrap());

fn sha(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

pub fn configuration(more: &str) -> String {
    format!(
        "api:\n  openapi_enabled: true\nobservability:\n  prometheus_enabled: true\n  \
         metrics_token_hash: {}\nauth:\n  \
         enabled: true\n  password_required: true\n  password_hash: '{}'\n  api_token_hash: {}\n\
         {more}",
        sha(SCRAPE),
        *HASH,
        sha(UNNAMED)
    )
}

async fn guarded() -> Server {
    Server::with(&configuration(""), ServeOptions::default()).await
}

pub fn own(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.address.port())
}

/// Name of a credential, whether it is valid, and the headers that present it.
type Cell = (&'static str, bool, Vec<(&'static str, String)>);

#[tokio::test]
async fn h1_the_metrics_token_is_served_under_any_name_also_where_nobody_is_asked() {
    let configuration = format!(
        "observability:\n  prometheus_enabled: true\n  metrics_token_hash: {}\n",
        sha(SCRAPE)
    );
    let server = Server::with(&configuration, ServeOptions::default()).await;
    let status = async |path: &str, token: &str| {
        let sent = Sent::new("GET", path).header("Host", "svc.cluster.example");
        server.send(sent.header("Authorization", &format!("Bearer {token}"))).await.status
    };
    assert_eq!(status("/metrics", SCRAPE).await, 200);
    assert_eq!(status("/metrics", "svc_pat_other").await, 421);
    assert_eq!(status("/api/projects", SCRAPE).await, 421);
}

async fn try_password(server: &Server, password: &str) -> Reply {
    let sent = Sent::new("POST", "/login").header("Origin", &own(server));
    server.send(sent.json(&json!({"password": password}))).await
}

/// `name=value` of the session that a sign-in gives.
pub async fn signed_in(server: &Server) -> String {
    let reply = try_password(server, PASSWORD).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let cookie = reply.header("set-cookie").unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

async fn with_cookie(server: &Server, path: &str, cookie: &str) -> u16 {
    server.send(Sent::new("GET", path).header("Cookie", cookie)).await.status
}

async fn with_token(server: &Server, path: &str, token: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    server.send(Sent::new("GET", path).header("Authorization", &bearer)).await
}

#[tokio::test]
async fn h5_h23_every_route_with_every_credential_valid_wrong_revoked_and_missing() {
    let server = guarded().await;
    let cookie = signed_in(&server).await;
    let named = server.app.tokens().issue("ci", &[], None).await.unwrap().token;
    let rotated = server.app.tokens().issue("old", &[], None).await.unwrap().token;
    server.app.tokens().rotate("old").await.unwrap();
    let revoked = server.app.tokens().issue("gone", &[], None).await.unwrap().token;
    server.app.tokens().revoke("gone").await.unwrap();
    // One session in sixteen ends with `A` by itself.
    let last = if cookie.ends_with('A') { 'E' } else { 'A' };
    let forged = format!("{}{last}", &cookie[..cookie.len() - 1]);
    let bearer = |token: &str| ("Authorization", format!("Bearer {token}"));
    let cells: Vec<Cell> = vec![
        ("nothing", false, vec![]),
        ("session", true, vec![("Cookie", cookie.clone())]),
        ("forged session", false, vec![("Cookie", forged)]),
        ("two sessions", false, vec![("Cookie", format!("{cookie}; {cookie}"))]),
        ("unnamed token", true, vec![bearer(UNNAMED)]),
        ("named token", true, vec![bearer(&named)]),
        ("unknown token", false, vec![bearer(&new_token().unwrap().0)]),
        ("revoked token", false, vec![bearer(&revoked)]),
        ("rotated token", false, vec![bearer(&rotated)]),
        ("metrics token", false, vec![bearer(SCRAPE)]),
        ("two tokens", false, vec![bearer(&named), bearer(&named)]),
        ("wrong token and session", false, vec![bearer("x"), ("Cookie", cookie.clone())]),
        ("proxy that is none", false, vec![("Remote-User", "alice".into())]),
        (
            "other scheme and session",
            true,
            vec![("Authorization", "Basic YTpi".into()), ("Cookie", cookie.clone())],
        ),
    ];
    for route in svc_http::table() {
        let signs_out =
            ["/logout", "/api/devices/sign-out-others"].contains(&route.pattern.as_str());
        let does_the_deed = route.method == "POST" && signs_out;
        for (name, is_valid, headers) in &cells {
            if does_the_deed && *is_valid {
                continue; // signs everybody out: has tests of its own
            }
            let mut sent =
                Sent::new(route.method.as_str(), &path_of(&route)).header("Origin", &own(&server));
            for (header, value) in headers {
                sent = sent.header(header, value);
            }
            let reply = server.send(sent).await;
            let cell = format!("{name}: {} {}: {}", route.method, route.pattern, reply.status);
            match route.guard {
                Guard::Public => {
                    assert_eq!(reply.status, 200, "{cell}");
                    let keys = reply.json().as_object().unwrap().len();
                    assert_eq!(keys > 1, *is_valid, "{cell}");
                }
                Guard::UiPublic => assert_ne!(reply.status, 401, "{cell}"),
                Guard::Guarded | Guard::Ui | Guard::Description | Guard::Metrics => {
                    let is_scrape = route.guard == Guard::Metrics && *name == "metrics token";
                    if *is_valid || is_scrape {
                        assert!(reply.status != 401 && reply.status != 403, "{cell}");
                    } else {
                        assert_eq!(reply.status, 401, "{cell}");
                        let challenge = reply.header("www-authenticate");
                        assert_eq!(challenge, Some("Bearer realm=\"svc\""), "{cell}");
                        assert_eq!(reply.code(), "auth_required", "{cell}");
                    }
                }
            }
            for header in ["content-security-policy", "x-frame-options", "x-request-id"] {
                assert!(reply.header(header).is_some(), "{header}: {cell}");
            }
            for header in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
                assert_eq!(reply.header(header), Some("same-origin"), "{cell}");
            }
        }
    }
    // A path that is not there tells nothing to strangers.
    assert_eq!(server.get("/api/v1/nowhere").await.status, 401);
    assert_eq!(with_token(&server, "/api/v1/nowhere", &named).await.status, 404);
    assert_eq!(
        server.send(Sent::new("PUT", "/api/projects").header("Origin", &own(&server))).await.status,
        401
    );
}

#[tokio::test]
async fn h4_h23_with_authentication_off_no_route_asks_who_is_there_but_every_write_where_from() {
    let server = Server::start().await;
    let foreign = |route: &svc_http::Route, origin: &str| {
        let sent = Sent::new(route.method.as_str(), &path_of(route));
        if origin.is_empty() { sent } else { sent.header("Origin", origin) }
    };
    for route in svc_http::table() {
        let is_write = !matches!(route.method.as_str(), "GET" | "HEAD");
        let is_guarded_by_origin = is_write || route.kind == svc_http::RouteKind::Socket;
        for (origin, is_refused) in
            [("", false), (&*own(&server), false), ("https://evil.example", true), ("null", true)]
        {
            let reply = server.send(foreign(&route, origin)).await;
            let cell = format!("{} {} {origin}: {}", route.method, route.pattern, reply.status);
            assert_ne!(reply.status, 401, "{cell}");
            assert_eq!(reply.status == 403, is_refused && is_guarded_by_origin, "{cell}");
        }
    }
}

#[tokio::test]
async fn h4_writes_by_origin_and_credential() {
    let server = guarded().await;
    let cookie = signed_in(&server).await;
    let token = format!("Bearer {UNNAMED}");
    let own = own(&server);
    // Absent, allowed, foreign, null. 415: the guard let it through.
    for (name, header, expected) in [
        ("nothing", None, [403, 401, 403, 403]),
        ("session", Some(("Cookie", cookie.as_str())), [403, 415, 403, 403]),
        ("token", Some(("Authorization", token.as_str())), [415, 415, 403, 403]),
        ("wrong token", Some(("Authorization", "Bearer x")), [401, 401, 403, 403]),
    ] {
        let origins = [None, Some(own.as_str()), Some("https://evil.example"), Some("null")];
        for (origin, expected) in origins.into_iter().zip(expected) {
            let mut sent = Sent::new("POST", "/api/v1/instances");
            for (header, value) in header.into_iter().chain(origin.map(|origin| ("Origin", origin)))
            {
                sent = sent.header(header, value);
            }
            let reply = server.send(sent).await;
            assert_eq!(reply.status, expected, "{name} {origin:?}");
        }
    }
}

#[tokio::test]
async fn h1_h24_a_foreign_host_is_served_only_to_what_no_page_can_send() {
    let proxy = "  reverse_proxy: {enabled: true, trusted_ips: [127.0.0.1], require_hmac: false}\n";
    let server = Server::with(&configuration(proxy), ServeOptions::default()).await;
    let cookie = signed_in(&server).await;
    let token = format!("Bearer {UNNAMED}");
    for (header, value, expected) in [
        ("X-None", "", 421),
        ("Cookie", cookie.as_str(), 421),
        ("Authorization", "Bearer x", 421),
        ("Authorization", token.as_str(), 200),
        ("Remote-User", "alice", 200),
    ] {
        let sent = Sent::new("GET", "/api/projects").header("Host", "evil.example");
        assert_eq!(server.send(sent.header(header, value)).await.status, expected, "{header}");
    }
    let health = Sent::new("GET", "/healthz").header("Host", "evil.example");
    let health = server.send(health.header("Cookie", &cookie)).await;
    assert_eq!(health.json(), json!({"status": "ok"}));
    // The proxy's browser side may be on a foreign page.
    let write = |origin: &str| {
        Sent::new("POST", "/api/v1/instances")
            .header("Remote-User", "alice")
            .header("Origin", origin)
    };
    assert_eq!(server.send(write("https://evil.example")).await.status, 403);
    assert_eq!(server.send(write(&own(&server))).await.status, 415);
    let told = Sent::new("GET", "/api/bootstrap").header("Remote-User", "alice");
    assert_eq!(server.send(told).await.json()["auth"]["method"], "proxy");
}

#[tokio::test]
async fn h15_h16_a_person_signs_in_on_a_page_without_script_and_gets_a_fresh_session() {
    let server = guarded().await;
    let visit = Sent::new("GET", "/ui/p/api?x=1").header("Accept", "text/html");
    let sent_away = server.send(visit).await;
    assert_eq!(sent_away.status, 303);
    assert_eq!(sent_away.header("location"), Some("/login?next=%2Fui%2Fp%2Fapi%3Fx%3D1"));

    let page = server.get("/login?next=%2Fui%2Fp%2Fapi%3Fx%3D1").await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("value=\"/ui/p/api?x=1\"") && !page.text().contains("<script"));
    let nonce = page.text().split("nonce=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert!(page.header("content-security-policy").unwrap().contains(&format!("'nonce-{nonce}'")));

    let form = |body: &str| {
        let sent = Sent::new("POST", "/login").header("Origin", &own(&server));
        sent.body("application/x-www-form-urlencoded", body.as_bytes())
    };
    let wrong = server.send(form("password=nope&next=/ui")).await;
    assert_eq!(wrong.status, 401);
    assert!(wrong.text().contains("Wrong password") && wrong.header("set-cookie").is_none());
    let planted = signed_in(&server).await;
    let right = form("password=correct+horse&next=%2Fui%2Fp%2Fapi").header("Cookie", &planted);
    let right = server.send(right).await;
    assert_eq!((right.status, right.header("location")), (303, Some("/ui/p/api")));
    let cookie = right.header("set-cookie").unwrap();
    assert!(cookie.starts_with("svc_session_"), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"), "{cookie}");
    let fresh = cookie.split(';').next().unwrap();
    assert_ne!(fresh, planted);
    assert_eq!(with_cookie(&server, "/api/projects", fresh).await, 200);
    assert_eq!(with_cookie(&server, "/api/projects", &planted).await, 401, "the old one ended");
    assert_eq!(with_cookie(&server, "/login", fresh).await, 303);
}

#[tokio::test]
async fn h27_a_sign_in_leads_nowhere_else() {
    let server = guarded().await;
    for next in ["//evil", "/\\evil", "/%2f%2fevil", "https:evil", "/%0d%0aX:y", ""] {
        let next: String = next.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let sent = Sent::new("POST", "/login").header("Origin", &own(&server)).body(
            "application/x-www-form-urlencoded",
            format!("password=correct+horse&next={next}").as_bytes(),
        );
        let reply = server.send(sent).await;
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{next}");
    }
}

#[tokio::test]
async fn h17_a_sign_out_ends_every_session_and_needs_a_credential() {
    let server = guarded().await;
    let (one, other) = (signed_in(&server).await, signed_in(&server).await);
    let stranger = Sent::new("POST", "/logout").header("Origin", &own(&server));
    assert_eq!(server.send(stranger).await.status, 401);
    assert_eq!(with_cookie(&server, "/api/projects", &one).await, 200);

    let page = server.send(Sent::new("GET", "/logout").header("Cookie", &one)).await;
    assert!(page.text().contains("method=\"post\""), "{}", page.text());
    let out = Sent::new("POST", "/logout").header("Origin", &own(&server)).header("Cookie", &one);
    let out = server.send(out).await;
    assert_eq!(out.json(), json!({"authenticated": false}));
    let taken: Vec<_> = out.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
    assert!(taken.len() == 2 && taken.iter().all(|(_, value)| value.contains("Max-Age=0")));
    for cookie in [&one, &other] {
        assert_eq!(with_cookie(&server, "/api/projects", cookie).await, 401);
    }
    let again = signed_in(&server).await;
    assert_eq!(with_cookie(&server, "/api/projects", &again).await, 200);
}

#[tokio::test]
async fn h17_one_device_is_signed_out_and_the_others_stay() {
    let server = guarded().await;
    let (one, other) = (signed_in(&server).await, signed_in(&server).await);
    let page = server.send(Sent::new("GET", "/logout").header("Cookie", &one)).await.text();
    for words in ["scope=device", "scope=all", ">Cancel</a>"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let sent = |scope: &str| {
        let sent = Sent::new("POST", &format!("/logout?scope={scope}"));
        sent.header("Origin", &own(&server)).header("Cookie", &one)
    };
    assert_eq!(server.send(sent("everything")).await.status, 422);
    let out = server.send(sent("device")).await;
    assert_eq!(out.json(), json!({"authenticated": false}));
    let taken: Vec<_> = out.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
    assert!(taken.len() == 2 && taken.iter().all(|(_, value)| value.contains("Max-Age=0")));
    assert_eq!(with_cookie(&server, "/api/projects", &one).await, 401);
    assert_eq!(with_cookie(&server, "/api/projects", &other).await, 200);
}

#[tokio::test]
async fn h21_the_sixth_wrong_password_is_locked_out_and_nobody_else() {
    let server = guarded().await;
    let session = signed_in(&server).await;
    for _ in 0..5 {
        assert_eq!(try_password(&server, "nope").await.status, 401);
    }
    let locked = try_password(&server, PASSWORD).await;
    assert_eq!((locked.status, locked.code().as_str()), (429, "throttled"));
    let wait: u64 = locked.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=300).contains(&wait), "{wait}");
    for forged in ["X-Forwarded-For", "Forwarded", "X-Real-Ip"] {
        let sent = Sent::new("POST", "/login").header("Origin", &own(&server));
        let sent = sent.header(forged, "10.9.8.7").json(&json!({"password": PASSWORD}));
        assert_eq!(server.send(sent).await.status, 429, "{forged}");
    }
    assert_eq!(with_cookie(&server, "/api/projects", &session).await, 200);
    assert_eq!(with_token(&server, "/api/projects", UNNAMED).await.status, 200);
    let reauth = Sent::new("POST", "/api/reauth").header("Origin", &own(&server));
    let reauth = reauth.header("Cookie", &session).json(&json!({"password": PASSWORD}));
    assert_eq!(server.send(reauth).await.status, 429, "one throttle for all");
}

#[tokio::test]
async fn h25_a_password_is_proved_again_for_one_session_only() {
    let server = guarded().await;
    let session = signed_in(&server).await;
    let ask = |password: &str| {
        let sent = Sent::new("POST", "/api/reauth").header("Origin", &own(&server));
        sent.header("Cookie", &session).json(&json!({"password": password}))
    };
    assert_eq!(server.send(ask("nope")).await.code(), "bad_password");
    let reply = server.send(ask(PASSWORD)).await;
    assert_eq!(reply.json(), json!({"elevated": true, "expires_in": 600}));
    let proof = reply.header("set-cookie").unwrap();
    assert!(proof.starts_with("svc_elevation_") && proof.contains("Max-Age=600"), "{proof}");
    // It is no session, whatever name it is sent under.
    let value = proof.split(';').next().unwrap().split_once('=').unwrap().1;
    let name = session.split('=').next().unwrap();
    assert_eq!(with_cookie(&server, "/api/projects", &format!("{name}={value}")).await, 401);
}

#[tokio::test]
async fn h23_a_token_with_scopes_does_what_they_say() {
    let server = guarded().await;
    let read = server.app.tokens().issue("read", &[Scope::Read], None).await.unwrap().token;
    assert_eq!(with_token(&server, "/api/projects", &read).await.status, 200);
    let bearer = format!("Bearer {read}");
    let stop = Sent::new("DELETE", "/api/v1/instances/x").header("Authorization", &bearer);
    let reply = server.send(stop).await;
    assert_eq!((reply.status, reply.code().as_str()), (403, "scope_denied"));
    let out = Sent::new("POST", "/logout").header("Authorization", &bearer);
    assert_eq!(server.send(out).await.status, 403);
}

#[tokio::test]
async fn h23_preferences_are_for_whoever_may_do_everything() {
    let server = guarded().await;
    let read = server.app.tokens().issue("read", &[Scope::Read], None).await.unwrap().token;
    let full = server.app.tokens().issue("full", &[], None).await.unwrap().token;
    let wanted = json!({"prefs": {"theme": "dark", "of a newer page": [1]}, "rev": 0});
    let put = |token: &str| {
        let sent = Sent::new("PUT", "/api/ui-prefs").json(&wanted);
        sent.header("Authorization", &format!("Bearer {token}"))
    };
    let reply = server.send(put(&read)).await;
    assert_eq!((reply.status, reply.code().as_str()), (403, "scope_denied"));
    assert_eq!(with_token(&server, "/api/ui-prefs", &read).await.status, 403);
    assert_eq!(server.send(put(&full)).await.status, 200);
    let again = server.send(put(&full)).await;
    assert_eq!((again.status, again.code().as_str()), (409, "stale"));
    let long = json!({"prefs": {"favourites": ["x".repeat(17 * 1024)]}, "rev": 1});
    let sent = Sent::new("PUT", "/api/ui-prefs").json(&long);
    let reply = server.send(sent.header("Authorization", &format!("Bearer {full}"))).await;
    assert_eq!((reply.status, reply.code().as_str()), (413, "too_large"));
    let detail = reply.json()["detail"].to_string();
    assert!(detail.contains("favourites"), "{detail}");
    let kept = json!({"prefs": wanted["prefs"], "rev": 1});
    assert_eq!(with_token(&server, "/api/ui-prefs", &full).await.json(), kept);
    let told = |token: String| {
        let server = &server;
        async move { with_token(server, "/api/bootstrap", &token).await.json()["ui_prefs"].clone() }
    };
    assert_eq!(told(full).await, kept);
    assert_eq!(told(read).await, Value::Null);
}

/// What ends the socket that a credential opened, and how long that may take.
async fn closed_by(
    server: &Server,
    header: (&'static str, String),
    end: impl AsyncFnOnce(),
) -> u16 {
    let mut request = format!("ws://{}/ws/events", server.address).into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("origin", own(server).parse().unwrap());
    headers.insert(header.0, header.1.parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();
    let hello = socket.next().await.unwrap().unwrap();
    assert!(hello.is_text(), "{hello:?}");
    end().await;
    let closed = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(DEADLINE, closed).await.expect("the socket closes")
}

#[tokio::test]
async fn h18_open_sockets_end_with_their_credential() {
    let server = guarded().await;
    let app = &server.app;
    let cookie = signed_in(&server).await;
    let header = ("cookie", cookie.clone());
    assert_eq!(
        closed_by(&server, header, async || app.auth().sign_out().await.unwrap()).await,
        4401
    );
    let bearer = async |label: &str| {
        let issued = app.tokens().issue(label, &[], None).await.unwrap();
        ("authorization", format!("Bearer {}", issued.token))
    };
    let header = bearer("one").await;
    assert_eq!(
        closed_by(&server, header, async || app.tokens().revoke("one").await.unwrap()).await,
        4401
    );
    let header = bearer("two").await;
    let rotate = async || drop(app.tokens().rotate("two").await.unwrap());
    assert_eq!(closed_by(&server, header, rotate).await, 4401);
    // A sign-out is not the end of a token.
    let header = bearer("three").await;
    let both = async || {
        app.auth().sign_out().await.unwrap();
        app.tokens().revoke("three").await.unwrap();
    };
    assert_eq!(closed_by(&server, header, both).await, 4401);
}

#[tokio::test]
async fn h18_h23_a_token_that_expires_is_refused_and_its_open_socket_ends() {
    let server = guarded().await;
    let expires = server.clock.now().plus(Duration::from_millis(200));
    let issued = server.app.tokens().issue("brief", &[], Some(expires)).await.unwrap();
    server.clock.go_on(199);
    assert_eq!(with_token(&server, "/api/projects", &issued.token).await.status, 200);
    let header = ("authorization", format!("Bearer {}", issued.token));
    // Nobody does anything about it: the time alone ends it.
    assert_eq!(closed_by(&server, header, async || server.clock.go_on(1)).await, 4401);
    assert_eq!(with_token(&server, "/api/projects", &issued.token).await.status, 401);
}

#[tokio::test]
async fn h3_a_socket_by_cookie_needs_an_allowed_origin() {
    let server = guarded().await;
    let cookie = signed_in(&server).await;
    for (origin, expected) in
        [(None, 403), (Some("https://evil.example".to_owned()), 403), (Some(own(&server)), 426)]
    {
        let mut sent = Sent::new("GET", "/ws/events").header("Cookie", &cookie);
        if let Some(origin) = &origin {
            sent = sent.header("Origin", origin);
        }
        assert_eq!(server.send(sent).await.status, expected, "{origin:?}");
    }
    let token = format!("Bearer {UNNAMED}");
    let sent = Sent::new("GET", "/ws/events").header("Authorization", &token);
    assert_eq!(server.send(sent).await.status, 426, "a program sends no origin");
}

#[tokio::test]
async fn h18_a_request_whose_body_is_still_arriving_ends_with_its_credential() {
    let server = guarded().await;
    let token = server.app.tokens().issue("slow", &[], None).await.unwrap().token;
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/v1/instances HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        server.address
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    // The token is known to be used as soon as the guard has let the request through.
    loop {
        let tokens = server.app.tokens().list().await.unwrap();
        if tokens.iter().any(|token| token.last_used.is_some()) {
            break;
        }
        tokio::task::yield_now().await;
    }
    server.app.tokens().revoke("slow").await.unwrap();
    let reply = Reply::parse(&read_to_end(&mut socket).await, false);
    assert_eq!((reply.status, reply.code().as_str()), (401, "auth_required"));
}
