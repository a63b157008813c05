//! A signing reverse proxy in front of the service, over HTTP (H24).

use crate::client::{Reply, Sent};
use crate::harness::Server;
use crate::sign_in::{configuration, own};
use futures_util::StreamExt as _;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use svc_http::ServeOptions;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// The time of the test's clock, in seconds.
const NOW: i64 = 1_767_225_600;

/// A service that trusts signatures of a proxy at this address.
async fn behind(address: &str, more: &str) -> Server {
    let proxy = format!(
        "  reverse_proxy: {{enabled: true, trusted_ips: ['{address}'], \
         shared_secret: {SECRET}{more}}}\n"
    );
    Server::with(&configuration(&proxy), ServeOptions::default()).await
}

fn sign(user: &str, time: i64, method: &str, path: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("{user}:{time}:{method}:{path}").as_bytes());
    format!("t={time},v1={}", hex::encode(mac.finalize().into_bytes()))
}

/// A request that the proxy signed for alice.
fn signed(method: &str, path: &str) -> Sent {
    let bare = path.split('?').next().unwrap();
    let signature = sign("alice", NOW, method, bare);
    Sent::new(method, path).header("Remote-User", "alice").header("X-Proxy-Auth", &signature)
}

fn with(user: &str, signature: &str) -> Sent {
    Sent::new("GET", "/api/projects").header("Remote-User", user).header("X-Proxy-Auth", signature)
}

#[tokio::test]
async fn h24_a_signature_opens_its_own_request_and_no_other() {
    let server = behind("127.0.0.1", "").await;
    server.fill().await;
    let good = sign("alice", NOW, "GET", "/api/projects");
    let reply = server.send(signed("GET", "/api/bootstrap")).await;
    assert_eq!((reply.status, &reply.json()["auth"]["method"]), (200, &"proxy".into()));
    for sent in [
        with("alice", &good),
        with("alice", &sign("alice", NOW + 60, "GET", "/api/projects")),
        with("alice", &sign("alice", NOW - 60, "GET", "/api/projects")),
        signed("GET", "/api/projects?trust=trusted"),
        signed("HEAD", "/api/projects"),
        signed("GET", "/api/projects/has%20space/row"),
        // Some proxies sign the path as they read it, not as it travels.
        Sent::new("GET", "/api/projects/has%20space/row")
            .header("Remote-User", "alice")
            .header("X-Proxy-Auth", &sign("alice", NOW, "GET", "/api/projects/has space/row")),
    ] {
        let reply = server.send(sent.clone()).await;
        assert_eq!(reply.status, 200, "{sent:?}: {}", reply.text());
    }
    let upper = good.to_uppercase().replace("T=", "t=").replace("V1", "v1");
    assert_ne!(upper, good);
    for (what, sent) in [
        ("another user", with("bob", &good)),
        ("another method", with("alice", &sign("alice", NOW, "POST", "/api/projects"))),
        ("another path", with("alice", &sign("alice", NOW, "GET", "/api/state"))),
        ("too old", with("alice", &sign("alice", NOW - 61, "GET", "/api/projects"))),
        ("too new", with("alice", &sign("alice", NOW + 61, "GET", "/api/projects"))),
        ("two signatures", with("alice", &good).header("X-Proxy-Auth", &good)),
        ("two users", with("alice", &good).header("Remote-User", "alice")),
        ("upper-case digits", with("alice", &upper)),
        ("a trailing comma", with("alice", &format!("{good},"))),
        ("a space inside", with("alice", &good.replace(",v1", ", v1"))),
        ("half a signature", with("alice", good.split_at(60).0)),
        ("no signature", Sent::new("GET", "/api/projects").header("Remote-User", "alice")),
        ("an empty user", with("", &sign("", NOW, "GET", "/api/projects"))),
        ("a user that is not plain", with("a\tb", &sign("a\tb", NOW, "GET", "/api/projects"))),
        (
            "a user in a header with underscores",
            Sent::new("GET", "/api/projects")
                .header("Remote_User", "alice")
                .header("X-Proxy-Auth", &good),
        ),
        (
            "a signature in a header with underscores",
            Sent::new("GET", "/api/projects")
                .header("Remote-User", "alice")
                .header("X_Proxy_Auth", &good),
        ),
    ] {
        let reply = server.send(sent).await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "auth_required"), "{what}");
    }
}

#[tokio::test]
async fn h24_what_a_signing_proxy_passes_on_from_a_foreign_page_writes_nothing() {
    let server = behind("127.0.0.1", "").await;
    let path = "/api/v1/instances";
    for (name, value, expected) in [
        ("Origin", "https://evil.example".to_owned(), 403),
        ("Origin", "null".to_owned(), 403),
        ("Sec-Fetch-Site", "cross-site".to_owned(), 403),
        ("Sec-Fetch-Site", "same-site".to_owned(), 403),
        // The body has no type: the guard let the request through.
        ("Origin", own(&server), 415),
        ("Sec-Fetch-Site", "same-origin".to_owned(), 415),
        ("X-None", String::new(), 415),
    ] {
        let reply = server.send(signed("POST", path).header(name, &value)).await;
        assert_eq!(reply.status, expected, "{name}: {value}: {}", reply.text());
    }
}

#[tokio::test]
async fn h24_a_signature_of_a_get_opens_a_socket() {
    let server = behind("127.0.0.1", "").await;
    let open = async |signature: &str| {
        let mut request = format!("ws://{}/ws/events", server.address).into_client_request()?;
        let headers = request.headers_mut();
        headers.insert("origin", own(&server).parse().unwrap());
        headers.insert("remote-user", "alice".parse().unwrap());
        headers.insert("x-proxy-auth", signature.parse().unwrap());
        connect_async(request).await
    };
    let (mut socket, _) = open(&sign("alice", NOW, "GET", "/ws/events")).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_text());
    for wrong in [
        sign("alice", NOW, "POST", "/ws/events"),
        sign("alice", NOW, "GET", "/ws"),
        sign("alice", NOW - 61, "GET", "/ws/events"),
    ] {
        let error = open(&wrong).await.unwrap_err();
        assert!(error.to_string().contains("401"), "{error}");
    }
}

#[tokio::test]
async fn h24_a_peer_that_is_not_the_proxy_names_nobody() {
    for more in ["", ", require_hmac: false"] {
        let server = behind("10.0.0.9", more).await;
        let status = async |sent: Sent| {
            let reply: Reply = server.send(sent).await;
            reply.status
        };
        assert_eq!(status(signed("GET", "/api/projects")).await, 401, "{more}");
        let bare = Sent::new("GET", "/api/projects").header("Remote-User", "alice");
        assert_eq!(status(bare).await, 401, "{more}");
    }
}
