//! Signed-in devices and named tokens over the API (N11).

use crate::harness::{Reply, Server, Start, World, within};
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
    (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";

fn closed() -> Value {
    json!({ "auth": { "enabled": true, "password_required": true, "password_hash": HASH } })
}

/// The `name=value` of the cookie that an answer sets.
fn cookie(reply: &Reply) -> String {
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

async fn sign_in(server: &Server<'_>, agent: &str) -> String {
    let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let request = request.header("User-Agent", agent).json(&json!({"password": PASSWORD}));
    cookie(&server.client.send(request).await.expect(200))
}

async fn ask(server: &Server<'_>, method: Method, path: &str, cookie: &str, body: Value) -> Reply {
    let request = server.client.request(method, path).header("Origin", &server.base);
    let request = request.header("Cookie", cookie);
    let request = if body.is_null() { request } else { request.json(&body) };
    server.client.send(request).await
}

async fn look(server: &Server<'_>, path: &str, cookie: &str) -> Reply {
    ask(server, Method::GET, path, cookie, Value::Null).await
}

/// Waits until a socket with this cookie is closed, and returns the code.
async fn closes(server: &Server<'_>, cookie: &str) -> impl Future<Output = u16> + use<> {
    let address = format!("{}/ws/events", server.base.replacen("http", "ws", 1));
    let mut request = address.into_client_request().unwrap();
    request.headers_mut().insert("cookie", cookie.parse().unwrap());
    request.headers_mut().insert("origin", server.base.parse().unwrap());
    let (mut socket, _) = within("a socket", connect_async(request)).await.unwrap();
    assert!(within("a snapshot", socket.next()).await.unwrap().unwrap().is_text());
    async move {
        within("the close", async {
            loop {
                match socket.next().await {
                    Some(Ok(Message::Close(Some(frame)))) => return u16::from(frame.code),
                    Some(Ok(_)) => {}
                    other => panic!("{other:?}"),
                }
            }
        })
        .await
    }
}

#[tokio::test]
async fn h18_a_device_is_signed_out_alone_and_its_sockets_with_it() {
    let world = World::with(closed());
    let server = world.serve().await;
    let (own, phone) = (sign_in(&server, FIREFOX).await, sign_in(&server, IPHONE).await);
    let listed = look(&server, "/api/devices", &own).await.expect(200).json();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["Firefox on Linux", "Safari on iPhone"], "the own one is first");
    assert_eq!((&listed[0]["current"], &listed[1]["current"]), (&json!(true), &json!(false)));
    assert_eq!(listed[1]["peer"], "127.0.0.1");
    let id = listed[1]["id"].as_str().unwrap();

    let closed = closes(&server, &phone).await;
    let path = format!("/api/devices/{id}");
    let gone = ask(&server, Method::DELETE, &path, &own, Value::Null).await.expect(200).json();
    assert_eq!(gone, json!({ "id": id, "revoked": true }));
    assert_eq!(closed.await, 4401);
    assert_eq!(look(&server, "/api/projects", &phone).await.refused(401), "auth_required");
    look(&server, "/api/projects", &own).await.expect(200);
    let again = ask(&server, Method::DELETE, &path, &own, Value::Null).await;
    assert_eq!(again.refused(404), "not_found");

    let others = [sign_in(&server, FIREFOX).await, sign_in(&server, "odd thing").await];
    let path = "/api/devices/sign-out-others";
    let ended = ask(&server, Method::POST, path, &own, Value::Null).await.expect(200).json();
    assert_eq!(ended, json!({ "revoked": 2 }));
    for other in &others {
        assert_eq!(look(&server, "/api/projects", other).await.status, 401);
    }
    look(&server, "/api/projects", &own).await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn h18_a_command_signs_a_device_out_of_the_running_service() {
    let world = World::with(closed());
    let server = world.serve().await;
    let (one, other) = (sign_in(&server, FIREFOX).await, sign_in(&server, IPHONE).await);
    let listed = world.cli(&["devices", "list", "--json"]).await.ok().json();
    let phone = listed.as_array().unwrap().iter().find(|one| one["name"] == "Safari on iPhone");
    let id = phone.unwrap()["id"].as_str().unwrap();
    let closed = closes(&server, &other).await;
    world.cli(&["devices", "sign-out", id]).await.ok();
    assert_eq!(closed.await, 4401);
    let closed = closes(&server, &one).await;
    let all = world.cli(&["devices", "sign-out", "--all", "--json"]).await.ok().json();
    assert_eq!(all, json!({ "revoked": 1 }));
    assert_eq!(closed.await, 4401);
    assert_eq!(world.cli(&["devices", "sign-out", "0123456789abcdef"]).await.code, Some(2));
    server.stop().await;
}

#[tokio::test]
async fn h23_tokens_are_made_on_the_page_only_after_the_password_was_proved_again() {
    let world = World::with(closed());
    let server = world.serve().await;
    let own = sign_in(&server, FIREFOX).await;
    let new =
        json!({ "label": "ci/nightly", "scopes": ["read"], "expires_at": "2090-01-31T00:00:00Z" });
    let early = ask(&server, Method::POST, "/api/tokens", &own, new.clone()).await;
    assert_eq!(early.refused(403), "reauth_required");
    let proof = json!({ "password": PASSWORD });
    let proved = ask(&server, Method::POST, "/api/reauth", &own, proof).await.expect(200);
    let both = format!("{own}; {}", cookie(&proved));
    let issued = ask(&server, Method::POST, "/api/tokens", &both, new.clone()).await.expect(201);
    let issued = issued.json();
    let secret = issued["token"].as_str().unwrap();
    assert_eq!(issued["scopes"], json!(["read"]));
    assert_eq!(ask(&server, Method::POST, "/api/tokens", &both, new).await.refused(409), "exists");
    for bad in [
        json!({ "label": "x", "scopes": [] }),
        json!({ "label": "x", "scopes": ["write"] }),
        json!({ "label": "x", "expires_at": "soon" }),
        json!({ "label": "x", "expires_at": "2001-01-01T00:00:00Z" }),
        json!({ "label": " x" }),
        json!({ "label": "x", "scopes": "read" }),
    ] {
        assert_eq!(ask(&server, Method::POST, "/api/tokens", &both, bad).await.status, 422);
    }

    let with = async |token: &str, path: &str| {
        let request = server.client.request(Method::GET, path);
        server.client.send(request.header("Authorization", format!("Bearer {token}"))).await.status
    };
    assert_eq!(with(secret, "/api/projects").await, 200);
    assert_eq!(with(secret, "/api/access").await, 200);
    for full in ["/api/tokens", "/api/devices"] {
        assert_eq!(with(secret, full).await, 403, "{full}");
    }
    let rotate = json!({ "label": "ci/nightly" });
    let path = "/api/tokens/rotate";
    assert_eq!(ask(&server, Method::POST, path, &own, rotate.clone()).await.status, 403);
    let rotated = ask(&server, Method::POST, path, &both, rotate).await.expect(200).json();
    assert_eq!(with(secret, "/api/projects").await, 401);
    let secret = rotated["token"].as_str().unwrap();
    assert_eq!(with(secret, "/api/projects").await, 200);
    let listed = look(&server, "/api/tokens", &own).await.expect(200);
    assert!(!listed.text().contains("svc_pat_"), "{}", listed.text());
    assert_eq!(listed.json()[0]["label"], "ci/nightly");
    let path = "/api/tokens?label=ci%2Fnightly";
    let gone = ask(&server, Method::DELETE, path, &own, Value::Null).await.expect(200).json();
    assert_eq!(gone, json!({ "label": "ci/nightly", "revoked": true }));
    assert_eq!(with(secret, "/api/projects").await, 401);
    server.stop().await;
}

#[tokio::test]
async fn a_use_from_a_new_address_is_told_once() {
    let world = World::with(closed());
    world.configure(json!({ "auth": { "reverse_proxy": { "trusted_ips": ["127.0.0.1"] } } }));
    let server = world.serve_as(Start::default()).await;
    let own = sign_in(&server, FIREFOX).await;
    let from = async |address: &str, path: &str| {
        let request = server.client.request(Method::GET, path).header("Cookie", &own);
        let request = request.header("X-Forwarded-For", format!("198.51.100.9, {address}"));
        server.client.send(request).await.expect(200).json()
    };
    let told = |access: &Value| {
        let found = access["findings"].as_array().unwrap().iter();
        found.filter(|one| one["code"] == "new_address").count()
    };
    assert_eq!(told(&from("127.0.0.1", "/api/access").await), 0);
    from("203.0.113.7", "/api/projects").await;
    let line = server.says("203.0.113.7").await;
    assert!(line.contains("had not been used before"), "{line}");
    assert_eq!(told(&from("203.0.113.7", "/api/access").await), 1);
    from("127.0.0.1", "/api/projects").await;
    from("2001:db8:1:2:3::4", "/api/projects").await;
    server.says("2001:db8:1:2::/64").await;
    from("2001:db8:1:2:ffff::1", "/api/projects").await;
    assert_eq!(told(&from("127.0.0.1", "/api/access").await), 2, "one network is one address");
    let devices = from("127.0.0.1", "/api/devices").await;
    let seen: Vec<_> = devices[0]["addresses"].as_array().unwrap().iter().collect();
    assert_eq!(seen.len(), 3, "{devices}");
    let said = server.said();
    assert_eq!(said.iter().filter(|line| line.contains("203.0.113.7")).count(), 1, "{said:?}");

    // A token that is carried off is told of by its name.
    let issued = world.cli(&["api-token", "issue", "nightly", "--json"]).await.ok().json();
    let bearer = format!("Bearer {}", issued["token"].as_str().unwrap());
    for address in ["203.0.113.8", "203.0.113.9", "203.0.113.8", "203.0.113.9"] {
        let request = server.client.request(Method::GET, "/api/projects");
        let request = request.header("Authorization", &bearer).header("X-Forwarded-For", address);
        server.client.send(request).await.expect(200);
    }
    let line = server.says("the token `nightly` was used").await;
    assert!(line.contains("203.0.113."), "{line}");
    let access = from("127.0.0.1", "/api/access").await;
    let findings = access["findings"].as_array().unwrap().iter();
    let of_token = findings.filter(|one| one["title"].as_str().unwrap().contains("`nightly`"));
    assert_eq!(of_token.count(), 1, "{access}");
    let said = server.said();
    assert_eq!(said.iter().filter(|line| line.contains("`nightly`")).count(), 1, "{said:?}");
    server.stop().await;
}

#[tokio::test]
async fn who_can_reach_the_service_is_said_alike_by_command_and_api() {
    let world = World::with(closed());
    let server = world.serve().await;
    let own = sign_in(&server, FIREFOX).await;
    let access = look(&server, "/api/access", &own).await.expect(200).json();
    assert_eq!(access["listen"]["loopback"], true);
    assert_eq!(access["auth"]["devices"], 1);
    assert_eq!(access["tls"], "off");
    let command = world.cli(&["access", "--json"]).await.ok().json();
    assert_eq!(command["findings"], access["findings"]);
    let text = world.cli(&["access"]).await.ok().stdout;
    assert!(text.contains("Only this machine can reach svc."), "{text}");
    assert!(text.contains("auth.enabled"), "{text}");
    server.stop().await;
}
