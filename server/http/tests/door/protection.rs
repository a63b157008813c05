//! What every reply carries, whatever its status (H12).

use crate::client::{Reply, Sent};
use crate::harness::Server;
use crate::sign_in::{configuration, own, signed_in};
use poem::http::HeaderMap;
use serde_json::json;
use std::collections::BTreeSet;
use svc_http::{HttpService, ServeOptions};

/// How many replies the row wants to be compared.
const REPLIES: usize = 10_000;

/// The nonce of a reply's content policy.
#[track_caller]
fn nonce(policy: &str) -> &str {
    policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap()
}

#[track_caller]
fn check(reply: &Reply, what: &str) {
    let header = |name: &str| reply.header(name).unwrap_or_else(|| panic!("{name}: {what}"));
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(header(name), value, "{name}: {what}");
    }
    let policy = header("content-security-policy");
    for rule in ["default-src 'self'", "frame-ancestors 'none'", "object-src 'none'"] {
        assert!(policy.contains(rule), "{what}: {policy}");
    }
    assert!(!policy.contains("unsafe-inline"), "{what}: {policy}");
    // 22 characters of base64 are 128 bit.
    assert_eq!(nonce(policy).len(), 22, "{what}");
    assert!(header("permissions-policy").contains("camera=()"), "{what}");
    assert_eq!(header("x-request-id").len(), 16, "{what}");
    assert_eq!(reply.header("server"), None, "{what}");
    let is_granted = reply.headers.iter().any(|(name, _)| name.starts_with("access-control-"));
    assert!(!is_granted, "{what}");
}

/// What a browser would run or apply although the policy is meant to forbid it.
fn has_inline_code(page: &str) -> bool {
    let tags = page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default());
    tags.filter(|tag| tag.starts_with(|first: char| first.is_ascii_alphabetic())).any(|tag| {
        let names = tag.split([' ', '\n', '\t']).skip(1).filter_map(|word| word.split_once('='));
        names
            .map(|(name, _)| name.to_ascii_lowercase())
            .any(|name| name == "style" || (name.starts_with("on") && name.len() > 2))
            || (tag.starts_with("script") && !tag.contains("src=") && !tag.contains("nonce="))
            || (tag.starts_with("style") && !tag.contains("nonce="))
    })
}

#[tokio::test]
async fn h12_replies_of_every_status_are_protected() {
    let server = Server::with(&configuration(""), ServeOptions::default()).await;
    server.fill().await;
    let cookie = signed_in(&server).await;
    let own = own(&server);
    let get = |path: &str| Sent::new("GET", path).header("Cookie", &cookie);
    let write = |method: &str, path: &str| {
        Sent::new(method, path).header("Cookie", &cookie).header("Origin", &own)
    };
    let launch = || write("POST", "/api/v1/instances");
    let mut requests = vec![
        get("/"),
        get("/api/projects"),
        get("/docs"),
        get("/openapi.json"),
        get("/metrics"),
        get("/healthz"),
        Sent::new("GET", "/login").header("Accept", "text/html"),
        get("/logout").header("Accept", "text/html"),
        get("/nowhere").header("Accept", "text/html"),
        get("/static/nothing.js"),
        Sent::new("HEAD", "/api/projects").header("Cookie", &cookie),
        Sent::new("OPTIONS", "/api/projects").header("Cookie", &cookie),
        Sent::new("GET", "/ui/p/api").header("Accept", "text/html"),
        Sent::new("GET", "/api/projects"),
        write("PUT", "/api/projects"),
        get("/api/projects").header("Host", "evil.example"),
        get("/api/projects").header("Host", "local host"),
        get(&format!("/{}", "x".repeat(9000))),
        get("/").header("X-Long", &"x".repeat(33_000)),
        launch().header("Origin", "null"),
        launch().body("text/plain", b"{}"),
        launch().json(&json!({"project": 5})),
        launch().json(&json!({"project": "nope"})),
        launch().json(&json!({"project": "api"})),
        launch().json(&json!({"project": "api", "trust": true})),
        launch().json(&json!({"project": "x".repeat(1024 * 1024)})),
        get("/ws/events").header("Origin", &own),
        get("/ws/bridge-log/b0?tail=x"),
        get("/ws/events").header("Origin", "https://evil.example"),
    ];
    requests.extend((0..6).map(|_| {
        Sent::new("POST", "/login").header("Origin", &own).json(&json!({"password": "wrong"}))
    }));
    let mut statuses = BTreeSet::new();
    for sent in requests {
        let reply = server.send(sent.clone()).await;
        let what = format!("{} of {} {:.60}", reply.status, sent.method, sent.path);
        check(&reply, &what);
        if reply.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            assert!(!has_inline_code(&reply.text()), "{what}:\n{}", reply.text());
        }
        statuses.insert(reply.status);
    }
    for expected in
        [200, 204, 303, 400, 401, 403, 404, 405, 409, 413, 414, 415, 421, 422, 426, 429, 431, 503]
    {
        assert!(statuses.contains(&expected), "no reply with {expected}: {statuses:?}");
    }
}

#[tokio::test]
async fn h12_h15_secure_and_transport_security_follow_what_a_trusted_proxy_says() {
    let trusting = "  reverse_proxy: {enabled: true, trusted_ips: [127.0.0.1], require_hmac: true, \
                    shared_secret: 0123456789abcdef0123456789abcdef}\n";
    for (proxy, protocols, is_https) in [
        (trusting, &["https"] as &[&str], true),
        (trusting, &["http"], false),
        (trusting, &["https", "https"], false),
        (trusting, &["https, http"], false),
        (trusting, &[], false),
        ("", &["https"], false),
    ] {
        let server = Server::with(&configuration(proxy), ServeOptions::default()).await;
        let mut sent = Sent::new("POST", "/login").header("Origin", &own(&server));
        for protocol in protocols {
            sent = sent.header("X-Forwarded-Proto", protocol);
        }
        let reply = server.send(sent.json(&json!({"password": "correct horse"}))).await;
        let what = format!("{proxy:?} {protocols:?}: {}", reply.text());
        assert_eq!(reply.status, 200, "{what}");
        let cookie = reply.header("set-cookie").unwrap();
        assert_eq!(cookie.split("; ").any(|word| word == "Secure"), is_https, "{what} {cookie}");
        let told = reply.header("strict-transport-security");
        assert_eq!(told, is_https.then_some("max-age=31536000"), "{what}");
    }
}

#[test]
fn inline_code_is_seen_where_there_is_some() {
    for bad in [
        "<p style=\"color:red\">",
        "<img src=x onerror=x()>",
        "<body\n OnLoad='x'>",
        "<script>x()</script>",
        "<style>p{}</style>",
    ] {
        assert!(has_inline_code(bad), "{bad}");
    }
    for good in
        ["a style=b is text", "<p class=\"onward\">x = y", "<style nonce=\"n\">", "<script src=x>"]
    {
        assert!(!has_inline_code(good), "{good}");
    }
}

#[tokio::test]
async fn h12_ten_thousand_replies_repeat_no_nonce() {
    let server = Server::start().await;
    let service =
        HttpService::new(server.app.clone(), server.address.port(), &ServeOptions::default());
    let mut seen = BTreeSet::new();
    for number in 0..REPLIES {
        // Pages, documents and refusals take turns.
        let path = ["/healthz", "/nowhere", "/login", "/ws/events"][number % 4];
        let request = poem::Request::builder().uri(path.parse().unwrap());
        let response = service.answer(request.header("Host", "localhost").finish()).await;
        let headers: &HeaderMap = response.headers();
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(seen.insert(nonce(policy).to_owned()), "a nonce was used twice: {policy}");
    }
    assert_eq!(seen.len(), REPLIES);
}
