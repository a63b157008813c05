//! Devices are notified while the page is closed.
//!
//! Here a push service of this machine hands the notifications over.

use crate::direct_sessions::{SECRET, asked, enabled, launch, say};
use crate::harness::{
    Answer, Browser, Delivery, Receiver, Reply, Server, Start, World, claims, gone,
    service_with_fail_points,
};
use rcgen::{CertificateParams, KeyPair};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use svc_skip::{NO_FAIL_POINTS, skip};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Names of push services that a service with fail points takes for this machine.
const NAMES: [&str; 2] = ["one.push.test", "two.push.test"];
const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// Two push services behind [`NAMES`].
///
/// The service takes them for those of browsers.
struct Services {
    one: Receiver,
    two: Receiver,
    authority: PathBuf,
    points: String,
}

impl Services {
    async fn that(world: &World, one: Answer, two: Answer) -> Self {
        let key = KeyPair::generate().unwrap();
        let names = NAMES.map(str::to_owned).to_vec();
        let made = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        let authority = world.root.join("authority.pem");
        std::fs::write(&authority, made.pem()).unwrap();
        let chain = vec![CertificateDer::from(made.der().to_vec())];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let tls = TlsAcceptor::from(Arc::new(config));
        let one = Receiver::secure(one, tls.clone()).await;
        let two = Receiver::secure(two, tls).await;
        let points = format!(
            "webhook.dns={}:1.1.1.1/{}:1.1.1.2;\
             webhook.dial=1.1.1.1:443>127.0.0.1:{},1.1.1.2:443>127.0.0.1:{};notify.settle=300",
            NAMES[0], NAMES[1], one.port, two.port
        );
        Self { one, two, authority, points }
    }

    async fn taking(world: &World) -> Self {
        let taken = Answer::status("201 Created");
        Self::that(world, taken.clone(), taken).await
    }

    async fn serve<'w>(&self, world: &'w World) -> Server<'w> {
        let authority = self.authority.to_str().unwrap();
        let env = [("SVC_FAILPOINTS", self.points.as_str()), ("SSL_CERT_FILE", authority)];
        let program = service_with_fail_points();
        world.serve_as(Start { program, env: &env, ..Start::default() }).await
    }
}

fn subscription(browser: &Browser, endpoint: &str) -> Value {
    json!({ "endpoint": endpoint, "keys": browser.keys() })
}

async fn subscribe(server: &Server<'_>, browser: &Browser, endpoint: &str) -> Value {
    let body = subscription(browser, endpoint);
    server.client.post_json("/api/push/subscriptions", &body).await.expect(201).json()
}

async fn devices(server: &Server<'_>) -> Vec<Value> {
    let listed = server.client.get("/api/push/subscriptions").await.expect(200).json();
    listed.as_array().unwrap().clone()
}

async fn public_key(server: &Server<'_>) -> String {
    let answer = server.client.get("/api/push/key").await.expect(200).json();
    answer["public_key"].as_str().unwrap().to_owned()
}

async fn crash(world: &World, project: &str) {
    let bridge = world.bridges_of(project).remove(0);
    bridge.signal(Signal::KILL);
    gone(&bridge).await;
}

fn seconds_now() -> i64 {
    i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap()
}

fn pushing(more: Value) -> World {
    let world = World::with(json!({ "push": { "enabled": true } }));
    world.configure(more);
    world.project("app");
    world
}

#[tokio::test]
async fn each_device_is_told_what_it_wants_also_after_the_service_was_killed() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = pushing(json!({}));
    let services = Services::taking(&world).await;
    let server = services.serve(&world).await;
    let (phone, desk) = (Browser::new(), Browser::new());
    let key = public_key(&server).await;
    let listed = subscribe(&server, &phone, "https://one.push.test/send/CANARY1").await;
    assert_eq!(listed["host"], "one.push.test");
    assert_eq!(listed["events"], json!(["permission-needed", "crash", "quarantine"]));
    let body = json!({
        "endpoint": "https://two.push.test/send/CANARY2?k=CANARY3", "keys": desk.keys(),
        "label": "Desk", "events": ["stop"],
    });
    server.client.post_json("/api/push/subscriptions", &body).await.expect(201);
    // The same address again is the same device.
    let again = server.client.post_json("/api/push/subscriptions", &body).await.expect(200);
    assert_eq!((&again.json()["label"], devices(&server).await.len()), (&json!("Desk"), 2));

    server.client.run("app").await;
    crash(&world, "app").await;
    let post = services.one.until(1).await.remove(0);
    assert_eq!(post.path, "/send/CANARY1");
    let said = phone.read(&post);
    assert_eq!((&said["event"], &said["title"]), (&json!("crash"), &json!("app crashed")));
    assert_eq!((&said["kind"], &said["project"]), (&json!("show"), &json!("app")));
    let id = said["instance_id"].as_str().unwrap();
    assert_eq!(said["url"], format!("/ui/s/{id}"));
    let claimed = claims(&post, &key);
    assert_eq!(claimed["aud"], "https://one.push.test");
    let left = claimed["exp"].as_i64().unwrap() - seconds_now();
    assert!((1..=24 * 3600).contains(&left), "{claimed}");
    assert_eq!(post.header("urgency"), "high");
    assert!(post.header("ttl").parse::<u32>().unwrap() > 0);
    assert!((1..=32).contains(&post.header("topic").len()), "{post:?}");
    services.one.until_done(1).await;
    assert!(services.two.posts().is_empty(), "it wants to know of stops only");

    // Nothing of it is lost with the process.
    let log = server.log();
    server.kill().await;
    let file = world.state_dir().join("push.key");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let server = services.serve(&world).await;
    assert_eq!(public_key(&server).await, key);
    server.client.resume("app").await.expect(200);
    server.client.stop("app").await.expect(200);
    let post = services.two.until(1).await.remove(0);
    assert_eq!(desk.read(&post)["title"], "app stopped");
    claims(&post, &key);
    server.client.resume("app").await.expect(200);
    crash(&world, "app").await;
    let post = services.one.until(2).await.remove(1);
    assert_eq!(phone.read(&post)["title"], "app crashed");
    services.one.until_done(2).await;

    // Secrets of addresses and keys are told to nobody.
    let id = devices(&server).await[0]["id"].as_str().unwrap().to_owned();
    let tested = server.client.post(&format!("/api/push/subscriptions/{id}/test")).await;
    let tested = tested.expect(202);
    assert_eq!(tested.json()["outcome"]["state"], "accepted");
    let list = devices(&server).await;
    let kept = list[0]["deliveries"].as_array().unwrap();
    assert!(kept.iter().any(|one| one["event"] == "crash" && one["state"] == "accepted"));
    assert!(list[0]["last_delivery_at"].is_string() && list[0]["last_error"].is_null());
    let report = server.client.get("/api/notifications").await.expect(200);
    assert_eq!(report.json()["devices"].as_array().unwrap().len(), 2);
    let listed = world.cli(&["push", "list"]).await.ok();
    assert!(listed.stdout.contains("one.push.test"), "{listed:?}");
    let json = world.cli(&["push", "list", "--json"]).await.ok();
    let auth = phone.keys()["auth"].as_str().unwrap().to_owned();
    let all = [log, server.log(), tested.text(), json!(list).to_string(), report.text()];
    for text in all.into_iter().chain([format!("{listed:?}"), format!("{json:?}")]) {
        assert!(!text.contains("CANARY") && !text.contains(&auth), "{text}");
    }

    // A command removes one while the service runs.
    world.cli(&["push", "remove", &id]).await.ok();
    assert_eq!(world.cli(&["push", "remove", &id]).await.code, Some(2));
    server.client.resume("app").await.expect(200);
    crash(&world, "app").await;
    let mut events = server.events().await;
    events.until_status("app", "crashed").await;
    assert_eq!(devices(&server).await.len(), 1);
    server.stop().await;
    assert_eq!(services.one.posts().len(), 3, "two crashes and the test");
}

#[tokio::test]
async fn h134_a_question_is_told_without_its_content_and_taken_back_when_it_is_answered() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = enabled();
    world.configure(json!({ "push": { "enabled": true, "allow_action": true } }));
    let services = Services::taking(&world).await;
    let server = services.serve(&world).await;
    let (phone, desk) = (Browser::new(), Browser::new());
    subscribe(&server, &phone, "https://one.push.test/a").await;
    subscribe(&server, &desk, "https://two.push.test/b").await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "use a tool").await;
    let first = asked(&mut events, id).await;
    let said = phone.read(&services.one.until(1).await[0]);
    assert_eq!(desk.read(&services.two.until(1).await[0])["tag"], said["tag"]);
    assert_eq!(said["title"], "app waits for your answer");
    assert_eq!((&said["request_id"], &said["instance_id"]), (&json!(first.request_id), &json!(id)));
    assert_eq!(said["actions"], json!(["deny", "allow"]));
    let text = said.to_string();
    assert!(!text.contains(SECRET) && !text.contains("Bash"), "{text}");

    // What the button of one device sends takes the notification back on both.
    let path = format!("/api/instances/{id}/permissions/{}", first.request_id);
    let deny = json!({ "decision": "deny" });
    server.client.post_json(&path, &deny).await.expect(202);
    server.client.post_json(&path, &deny).await.expect(409);
    for (service, browser) in [(&services.one, &phone), (&services.two, &desk)] {
        let posts: Vec<Delivery> = service.until(2).await;
        let closed = browser.read(&posts[1]);
        assert_eq!((&closed["kind"], &closed["tag"]), (&json!("close"), &said["tag"]));
        assert_eq!(posts[0].header("topic"), posts[1].header("topic"));
        service.until_done(2).await;
    }

    // One that was shown before the service was killed is taken back as well.
    events
        .until("no question", |state| {
            state.instances.get(id)?.pending_permissions.is_empty().then_some(())
        })
        .await;
    say(&server, id, "use a tool").await;
    let second = asked(&mut events, id).await;
    services.one.until(3).await;
    services.one.until_done(3).await;
    server.kill().await;
    let server = services.serve(&world).await;
    let path = format!("/api/instances/{id}/permissions/{}", second.request_id);
    server.client.post_json(&path, &deny).await.expect(202);
    let posts = services.one.until(4).await;
    assert_eq!(phone.read(&posts[3])["kind"], "close");
    server.client.stop(id).await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn a_subscription_that_ended_is_forgotten_and_one_that_fails_says_why() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = pushing(json!({}));
    let sorry = json!({ "message": "bad token CANARY12 for you" });
    let (over, sorry) = (Answer::status("410 Gone"), Answer::json("403 Forbidden", &sorry));
    let services = Services::that(&world, over, sorry).await;
    let server = services.serve(&world).await;
    let browser = Browser::new();
    let gone = subscribe(&server, &browser, "https://one.push.test/CANARY11").await;
    let failing = subscribe(&server, &browser, "https://two.push.test/CANARY12").await;
    let test =
        |one: &Value| format!("/api/push/subscriptions/{}/test", one["id"].as_str().unwrap());
    let tried = server.client.post(&test(&gone)).await.expect(202);
    assert_eq!(tried.json()["outcome"]["status"], 410);
    server.client.post(&test(&gone)).await.expect(404);
    let tried = server.client.post(&test(&failing)).await.expect(202);
    let why = "it answered 403: bad token ******** for you";
    assert_eq!(tried.json()["outcome"]["reason"], why);
    let left = devices(&server).await;
    assert_eq!((left.len(), &left[0]["last_error"]), (1, &json!(why)));
    let id = left[0]["id"].as_str().unwrap();
    let tried = world.cli(&["push", "test", id]).await;
    assert_eq!(tried.code, Some(1), "{tried:?}");
    let log = server.log();
    assert!(log.contains("is not notified any more") && !log.contains("CANARY"), "{log}");
    server.stop().await;
}

/// The `name=value` of the cookie that an answer sets.
fn cookie(reply: &Reply) -> String {
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

async fn sign_in(server: &Server<'_>) -> String {
    let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let request = request.header("User-Agent", FIREFOX).json(&json!({"password": PASSWORD}));
    cookie(&server.client.send(request).await.expect(200))
}

async fn ask(server: &Server<'_>, method: Method, path: &str, cookie: &str, body: Value) -> Reply {
    let request = server.client.request(method, path).header("Origin", &server.base);
    let request = request.header("Cookie", cookie).header("User-Agent", FIREFOX);
    let request = if body.is_null() { request } else { request.json(&body) };
    server.client.send(request).await
}

#[tokio::test]
async fn h18_a_device_that_is_signed_out_is_not_notified_any_more() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let auth = json!({ "enabled": true, "password_required": true, "password_hash": HASH });
    let world = pushing(json!({ "auth": auth }));
    let services = Services::taking(&world).await;
    let server = services.serve(&world).await;
    let (own, phone) = (sign_in(&server).await, sign_in(&server).await);
    let (path, get) = ("/api/push/subscriptions", Method::GET);
    for (cookie, endpoint) in
        [(&own, "https://two.push.test/own"), (&phone, "https://one.push.test/phone")]
    {
        let body = subscription(&Browser::new(), endpoint);
        let made = ask(&server, Method::POST, path, cookie, body).await.expect(201).json();
        assert_eq!((&made["current"], &made["label"]), (&json!(true), &json!("Firefox on Linux")));
    }
    let listed = ask(&server, get.clone(), path, &own, Value::Null).await.expect(200).json();
    assert_eq!((&listed[0]["current"], &listed[1]["current"]), (&json!(true), &json!(false)));
    assert_eq!(listed[0]["host"], "two.push.test", "the own one is first");
    let mobile = listed[1]["id"].as_str().unwrap().to_owned();

    let others = "/api/devices/sign-out-others";
    ask(&server, Method::POST, others, &own, Value::Null).await.expect(200);
    server.says("its sign-in ended").await;
    let listed = ask(&server, get.clone(), path, &own, Value::Null).await.expect(200).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let test = format!("{path}/{mobile}/test");
    assert_eq!(ask(&server, Method::POST, &test, &own, Value::Null).await.status, 404);
    let run = json!({ "project": "app" });
    ask(&server, Method::POST, "/api/instances?wait=30", &own, run).await.expect(201);
    crash(&world, "app").await;
    services.two.until(1).await;
    services.two.until_done(1).await;
    assert!(services.one.posts().is_empty());

    // A log-out ends the last one, and another sign-in does not bring it back.
    ask(&server, Method::POST, "/logout", &own, Value::Null).await;
    let own = sign_in(&server).await;
    let listed = ask(&server, get, path, &own, Value::Null).await.expect(200).json();
    assert_eq!(listed, json!([]));
    server.stop().await;
}

#[tokio::test]
async fn a_device_ends_with_the_unnamed_token_and_keeps_what_was_chosen() {
    let token = |letter: &str| letter.repeat(48);
    let hash = |token: &str| hex::encode(Sha256::digest(token.as_bytes()));
    let world = pushing(json!({
        "auth": { "enabled": true, "api_token_hash": hash(&token("a")) }
    }));
    let server = world.serve().await;
    let ask = async |server: &Server<'_>, letter: &str, method: Method, body: Option<&Value>| {
        let request = server.client.request(method, "/api/push/subscriptions");
        let request = request.bearer_auth(token(letter));
        server.client.send(body.iter().fold(request, |request, body| request.json(body))).await
    };
    let browser = Browser::new();
    let mut body = subscription(&browser, "https://1.1.1.1/send/1");
    body["events"] = json!(["stop"]);
    body["label"] = json!("Kitchen");
    ask(&server, "a", Method::POST, Some(&body)).await.expect(201);
    // The page subscribes anew each time that it opens, and chooses nothing.
    let plain = subscription(&browser, "https://1.1.1.1/send/1");
    let kept = ask(&server, "a", Method::POST, Some(&plain)).await.expect(200).json();
    assert_eq!((&kept["events"], &kept["label"]), (&json!(["stop"]), &json!("Kitchen")));
    server.stop().await;

    world.configure(json!({ "auth": { "api_token_hash": hash(&token("b")) } }));
    let server = world.serve().await;
    let left = ask(&server, "b", Method::GET, None).await.expect(200).json();
    assert_eq!(left, json!([]));
}

#[tokio::test]
async fn h48_h49_hostile_subscriptions_are_refused_with_the_reason() {
    let world = pushing(json!({}));
    let server = world.serve().await;
    let browser = Browser::new();
    let path = "/api/push/subscriptions";
    let long = format!("https://a.example/CANARY{}", "x".repeat(10_000));
    for endpoint in [
        "http://a.example/CANARY",
        "https://me:CANARY@a.example/x",
        "https://127.0.0.1/CANARY",
        "https://127.1/CANARY",
        "https://2130706433/CANARY",
        "https://[::ffff:10.0.0.1]/CANARY",
        "https://169.254.169.254/CANARY",
        "https://localhost/CANARY",
        "javascript:CANARY",
        "CANARY",
        "",
        &long,
    ] {
        let refused = server.client.post_json(path, &subscription(&browser, endpoint)).await;
        assert_eq!(refused.status, 422, "{endpoint}: {}", refused.text());
        let text = refused.text();
        assert!(text.contains("endpoint") && !text.contains("CANARY"), "{text}");
    }
    let good = "https://1.1.1.1/CANARY";
    for keys in [
        json!(null),
        json!([]),
        json!({}),
        json!({ "p256dh": "CANARY", "auth": "CANARY" }),
        json!({ "p256dh": browser.keys()["p256dh"], "auth": "x".repeat(10_000) }),
        json!({ "p256dh": "x".repeat(10_000), "auth": browser.keys()["auth"] }),
        json!({ "p256dh": 5, "auth": { "deep": [1] } }),
    ] {
        let body = json!({ "endpoint": good, "keys": keys });
        let refused = server.client.post_json(path, &body).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(!refused.text().contains("CANARY"), "{}", refused.text());
    }
    let body = json!({ "endpoint": good, "keys": browser.keys(), "events": ["spawn"] });
    server.client.post_json(path, &body).await.expect(422);
    let body = json!({ "endpoint": good, "keys": browser.keys(), "label": "x\r\ny\u{202e}" });
    let made = server.client.post_json(path, &body).await.expect(201).json();
    assert_eq!(made["label"], "x\\x0d\\x0ay\\u202e");
    for number in 1..50 {
        subscribe(&server, &browser, &format!("{good}{number}")).await;
    }
    let full = server.client.post_json(path, &subscription(&browser, "https://1.1.1.1/x")).await;
    assert_eq!(full.refused(409), "capacity");
    // Those that are known stay welcome.
    server.client.post_json(path, &body).await.expect(200);
    assert!(!server.log().contains("CANARY"), "{}", server.log());
    server.stop().await;
}

#[tokio::test]
async fn nothing_is_there_while_it_is_switched_off() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    for path in ["/api/push/key", "/api/push/subscriptions"] {
        assert_eq!(server.client.get(path).await.refused(404), "not_found");
    }
    assert!(!world.state_dir().join("push.key").exists());
    let report = server.client.get("/api/notifications").await.expect(200).json();
    assert_eq!((&report["push_enabled"], &report["devices"]), (&json!(false), &json!([])));
    let listed = world.cli(&["push", "list"]).await.ok();
    assert!(listed.stderr.contains("push.enabled"), "{listed:?}");
    // Switched on, it needs no restart.
    world.cli(&["config", "set", "push.enabled", "true"]).await.ok();
    server.client.get("/api/push/key").await.expect(200);
    server.stop().await;
}
