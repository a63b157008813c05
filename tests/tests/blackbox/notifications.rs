//! What happens to sessions reaches the services that the configuration names.

use crate::direct_sessions::{SECRET, asked, enabled, launch, say};
use crate::harness::{
    Answer, Delivery, MailSink, Receiver, Server, Start, World, gone, service_with_fail_points,
};
use rcgen::{CertificateParams, KeyPair};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use svc_skip::{NO_FAIL_POINTS, skip};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Names that a service with fail points takes for this machine.
const NAMES: [&str; 4] = ["api.telegram.org", "hooks.slack.com", "discord.com", "mail.test"];

fn notifying(urls: &[String], more: Value) -> World {
    let world = World::with(json!({ "notifications": { "enabled": true, "urls": urls } }));
    world.configure(json!({ "notifications": more }));
    world
}

async fn report(server: &Server<'_>) -> Value {
    server.client.get("/api/notifications").await.expect(200).json()
}

/// The newest state of each target.
async fn states(server: &Server<'_>) -> Vec<Value> {
    let report = report(server).await;
    let targets = report["targets"].as_array().unwrap().iter();
    targets.map(|target| target["deliveries"][0]["state"].clone()).collect()
}

async fn crash(world: &World, project: &str) {
    let bridge = world.bridges_of(project).remove(0);
    bridge.signal(Signal::KILL);
    gone(&bridge).await;
}

/// Hours before and after this moment, in UTC.
fn around_now() -> String {
    let seconds = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let hour = seconds / 3600 % 24;
    format!("{:02}:00-{:02}:00", (hour + 23) % 24, (hour + 3) % 24)
}

/// A server for [`NAMES`], and the file that a client must believe.
fn certificate(world: &World) -> (TlsAcceptor, PathBuf) {
    let names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let path = world.root.join("authority.pem");
    std::fs::write(&path, made.pem()).unwrap();
    let chain = vec![CertificateDer::from(made.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), path)
}

/// Fail points under which each name has an address that leads to a port here.
fn leading_to(ports: &[(&str, u16, u16)]) -> String {
    let address = |index: usize| format!("1.1.1.{}", index + 1);
    let all = ports.iter().enumerate();
    let dns: Vec<String> =
        all.clone().map(|(index, (name, ..))| format!("{name}:{}", address(index))).collect();
    let dial =
        all.map(|(index, (_, asked, port))| format!("{}:{asked}>127.0.0.1:{port}", address(index)));
    let dial: Vec<String> = dial.collect();
    format!("webhook.dns={};webhook.dial={}", dns.join("/"), dial.join(","))
}

async fn serve_with<'w>(world: &'w World, points: &str, more: &[(&str, &str)]) -> Server<'w> {
    let env: Vec<(&str, &str)> =
        std::iter::once(("SVC_FAILPOINTS", points)).chain(more.iter().copied()).collect();
    let program = service_with_fail_points();
    world.serve_as(Start { program, env: &env, ..Start::default() }).await
}

#[tokio::test]
async fn a_crash_is_told_by_each_service_and_a_stop_by_none() {
    let ntfy = Receiver::that(Answer::json("200 OK", &json!({ "id": "m1" }))).await;
    let gotify = Receiver::that(Answer::json("200 OK", &json!({ "id": 7 }))).await;
    let matrix = Receiver::that(Answer::json("200 OK", &json!({ "event_id": "$e" }))).await;
    let other = Receiver::start().await;
    let mail = MailSink::start(None).await;
    let urls = [
        format!("ntfy://me:word@127.0.0.1:{}/alerts", ntfy.port),
        format!("gotify://127.0.0.1:{}/sub/AppToken", gotify.port),
        format!("matrix://syt_tok@127.0.0.1:{}/!room:m.example", matrix.port),
        format!("json://127.0.0.1:{}/hook?k=v", other.port),
        format!("mailto://127.0.0.1:{}/you@b.example?from=svc@a.example", mail.port),
    ];
    let world = notifying(&urls, json!({}));
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    server.client.stop("app").await.expect(200);
    server.client.resume("app").await.expect(200);
    crash(&world, "app").await;

    let post = ntfy.until(1).await.remove(0);
    assert_eq!((post.method.as_str(), post.path.as_str()), ("POST", "/"));
    assert_eq!(post.header("authorization"), "Basic bWU6d29yZA==");
    let said = post.json();
    assert_eq!((&said["topic"], &said["title"]), (&json!("alerts"), &json!("app crashed")));
    assert!(said["message"].as_str().unwrap().contains("unexpectedly"), "{said}");

    let post = gotify.until(1).await.remove(0);
    assert_eq!(post.path, "/sub/message");
    assert_eq!(post.header("x-gotify-key"), "AppToken");
    assert_eq!(post.json()["title"], "app crashed");

    let post = matrix.until(1).await.remove(0);
    let start = "/_matrix/client/v3/rooms/!room:m.example/send/m.room.message/";
    assert!(post.method == "PUT" && post.path.starts_with(start), "{post:?}");
    assert_eq!(post.header("authorization"), "Bearer syt_tok");
    assert!(post.json()["body"].as_str().unwrap().starts_with("app crashed\n"), "{post:?}");

    let post = other.until(1).await.remove(0);
    assert_eq!(post.path, "/hook?k=v");
    let said = post.json();
    assert_eq!((&said["event"], &said["type"]), (&json!("crash"), &json!("warning")));

    let one = mail.until(1).await.remove(0);
    assert!(one.content.contains("Subject: svc: app crashed"), "{one:?}");
    assert!(one.content.contains("ended unexpectedly"), "{one:?}");
    let to = one.said.iter().any(|line| line == "RCPT TO:<you@b.example>");
    assert!(to && !one.said.iter().any(|line| line.starts_with("AUTH")), "{one:?}");

    // Another crash is another notification; nothing else was told before it.
    server.client.resume("app").await.expect(200);
    crash(&world, "app").await;
    for receiver in [&ntfy, &gotify, &matrix, &other] {
        let posts = receiver.until(2).await;
        assert!(posts.iter().all(|post| post.body.contains("app crashed")), "{posts:?}");
        receiver.until_done(2).await;
    }
    mail.until(2).await;
}

#[tokio::test]
async fn services_of_others_are_reached_over_tls_and_their_certificate_is_verified() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let taken = Answer::json("200 OK", &json!({ "id": "1", "result": { "message_id": 1 } }));
    let urls: Vec<String> = [
        "tgram://12345:TelegramKey/-100200",
        "slack://T00/B00/SlackKey",
        "https://discord.com/api/webhooks/42/DiscordKey",
        "mailtos://me:MailKey@mail.test?mode=ssl",
    ]
    .map(str::to_owned)
    .to_vec();
    let world = notifying(&urls, json!({}));
    world.project("app");
    let (tls, authority) = certificate(&world);
    let telegram = Receiver::secure(taken.clone(), tls.clone()).await;
    let slack = Receiver::secure(taken.clone(), tls.clone()).await;
    let discord = Receiver::secure(taken, tls.clone()).await;
    let mail = MailSink::start(Some(tls)).await;
    let points = leading_to(&[
        ("api.telegram.org", 443, telegram.port),
        ("hooks.slack.com", 443, slack.port),
        ("discord.com", 443, discord.port),
        ("mail.test", 465, mail.port),
    ]);
    let server =
        serve_with(&world, &points, &[("SSL_CERT_FILE", authority.to_str().unwrap())]).await;
    server.client.run("app").await;
    crash(&world, "app").await;

    let post = telegram.until(1).await.remove(0);
    assert_eq!(post.path, "/bot12345:TelegramKey/sendMessage");
    let said = post.json();
    assert_eq!(said["chat_id"], "-100200");
    assert!(said["text"].as_str().unwrap().starts_with("app crashed\n"), "{said}");
    let post = slack.until(1).await.remove(0);
    assert_eq!(post.path, "/services/T00/B00/SlackKey");
    let post = discord.until(1).await.remove(0);
    assert_eq!(post.path, "/api/webhooks/42/DiscordKey?wait=true");
    assert_eq!(post.json()["allowed_mentions"], json!({ "parse": [] }));
    let one = mail.until(1).await.remove(0);
    assert!(one.said.iter().any(|line| line.starts_with("AUTH")), "{one:?}");
    assert!(one.said.iter().any(|line| line == "RCPT TO:<me@mail.test>"), "{one:?}");
    let log = server.log();
    server.kill().await;

    // Nobody vouches for the certificate: nothing is handed over.
    let nobody = world.root.join("nobody.pem");
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["nobody.test".to_owned()]).unwrap();
    std::fs::write(&nobody, params.self_signed(&key).unwrap().pem()).unwrap();
    let server = serve_with(&world, &points, &[("SSL_CERT_FILE", nobody.to_str().unwrap())]).await;
    let tried =
        server.client.post_json("/api/notifications/send-test", &json!({})).await.expect(200);
    let tested = tried.json()["tested"].as_array().unwrap().clone();
    assert_eq!(tested.len(), 4);
    for one in &tested {
        assert_eq!(one["outcome"]["state"], "failed", "{one}");
        let why = one["outcome"]["reason"].as_str().unwrap();
        assert!(why.contains("certificate"), "{one}");
    }
    assert_eq!(telegram.posts().len() + slack.posts().len() + discord.posts().len(), 3);
    let shown = report(&server).await;
    for text in [tried.text(), shown.to_string(), log, server.log()] {
        for key in ["TelegramKey", "SlackKey", "DiscordKey", "MailKey"] {
            assert!(!text.contains(key), "{key}: {text}");
        }
    }
}

#[tokio::test]
async fn h48_h49_a_target_that_fails_says_why_and_shows_no_secret() {
    let sorry = json!({ "error": "no CANARY1 for topic", "code": 403 });
    let refusing = Receiver::that(Answer::json("403 Forbidden", &sorry)).await;
    let away = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let away = Receiver::that(Answer::Says(away.into())).await;
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let urls = [
        format!("ntfy://me:CANARY1@127.0.0.1:{}/CANARY2", refusing.port),
        format!("gotify://127.0.0.1:{}/CANARY3", away.port),
        format!("json://me:CANARY4@127.0.0.1:{nobody}/CANARY5?k=CANARY6"),
        "https://unknown.example/CANARY7".to_owned(),
    ];
    let world = notifying(&urls, json!({}));
    world.project("app");
    let server = world.serve().await;
    let label = "x\r\nX-A: b";
    let asked = json!({ "project": "app", "name": label });
    server.client.launch_with(asked).await;
    server.client.run("app").await;
    crash(&world, "app").await;
    for entry in 1..=3 {
        server.says(&format!("notification target {entry} (")).await;
    }
    let shown = report(&server).await;
    let why: Vec<&str> = shown["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| {
            let reason = &target["deliveries"][0]["reason"];
            reason.as_str().or(target["problem"].as_str()).unwrap()
        })
        .collect();
    assert_eq!(why[0], "it answered 403: no ******** for topic");
    assert_eq!(why[1], "it answered 302");
    assert!(why[2].contains("refused"), "{why:?}");
    assert!(why[3].contains("webhooks.urls"), "{why:?}");
    assert!(refusing.posts().iter().all(|post| post.header("x-a").is_empty()));
    let tried = world.cli(&["notifications", "test", "--json"]).await;
    assert_eq!(tried.code, Some(1), "{tried:?}");
    let config = world.cli(&["config", "show", "--effective"]).await;
    for text in [server.log(), shown.to_string(), format!("{tried:?}"), format!("{config:?}")] {
        assert!(!text.contains("CANARY"), "{text}");
    }
}

#[tokio::test]
async fn h48_private_targets_and_the_service_itself_are_refused() {
    let receiver = Receiver::start().await;
    let mail = MailSink::start(None).await;
    let port = receiver.port;
    let urls = [
        format!("ntfy://127.1:{port}/topic"),
        format!("json://2130706433:{port}/x"),
        format!("gotify://[::ffff:127.0.0.1]:{port}/token"),
        format!("mailto://localhost:{}/a@b.example?from=c@d.example", mail.port),
        "json://169.254.169.254/latest".to_owned(),
    ];
    let world = notifying(&urls, json!({}));
    world.configure(json!({ "webhooks": { "block_private_targets": true } }));
    let tried = world.cli(&["notifications", "test", "--json"]).await;
    let tested = tried.json()["tested"].as_array().unwrap().clone();
    assert_eq!((tried.code, tested.len()), (Some(1), urls.len()));
    for one in &tested {
        let why = one["outcome"]["reason"].as_str().unwrap();
        assert!(why.contains("webhooks.block_private_targets"), "{one}");
    }
    assert!(receiver.posts().is_empty());
    world.configure(json!({ "webhooks": { "block_private_targets": false } }));
    let own = format!("json://127.0.0.1:{}/x", world.port());
    world.configure(json!({ "notifications": { "urls": [own] } }));
    let tried = world.cli(&["notifications", "test"]).await;
    assert!(tried.stdout.contains("this service itself"), "{tried:?}");
}

#[tokio::test]
async fn what_ended_while_the_service_was_down_is_one_summary() {
    let receiver = Receiver::start().await;
    let world = notifying(&[format!("json://127.0.0.1:{}/x", receiver.port)], json!({}));
    let projects = ["one", "two", "three"];
    projects.iter().for_each(|project| drop(world.project(project)));
    let server = world.serve().await;
    for project in projects {
        server.client.run(project).await;
    }
    server.kill().await;
    for project in projects {
        crash(&world, project).await;
    }
    let server = world.serve().await;
    let said = receiver.until(1).await.remove(0).json();
    assert_eq!(
        (&said["event"], &said["title"]),
        (&json!("summary"), &json!("Sessions: 3 crashed"))
    );
    let lines: BTreeSet<&str> = said["message"].as_str().unwrap().lines().collect();
    assert_eq!(lines, BTreeSet::from(["one crashed", "two crashed", "three crashed"]));
    receiver.until_done(1).await;
    server.kill().await;
    // Told once.
    let server = world.serve().await;
    server.client.run("one").await;
    crash(&world, "one").await;
    let posts = receiver.until(2).await;
    assert_eq!(posts.len(), 2);
    assert_eq!(posts[1].json()["title"], "one crashed");
}

#[tokio::test]
async fn a_question_that_is_answered_soon_notifies_nobody_and_an_answered_one_is_taken_back() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let ntfy = Receiver::that(Answer::json("200 OK", &json!({ "id": "m1" }))).await;
    let matrix = Receiver::that(Answer::json("200 OK", &json!({ "event_id": "$e:m" }))).await;
    let world = enabled();
    world.configure(json!({ "notifications": {
        "enabled": true, "notify_on_permission": true, "quiet_hours": "00:00-23:59",
        "urls": [
            format!("ntfy://127.0.0.1:{}/alerts", ntfy.port),
            format!("matrix://tok@127.0.0.1:{}/!r:m", matrix.port),
        ],
    } }));
    // Long enough for an answer on a machine that is busy.
    let server = serve_with(&world, "notify.settle=6000", &[]).await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    let path = |request: &str| format!("/api/instances/{id}/permissions/{request}");
    let allow = json!({ "decision": "allow" });
    say(&server, id, "use a tool").await;
    let first = asked(&mut events, id).await;
    server.client.post_json(&path(&first.request_id), &allow).await.expect(202);
    events
        .until("no question", |state| {
            state.instances.get(id)?.pending_permissions.is_empty().then_some(())
        })
        .await;
    say(&server, id, "use a tool").await;
    let second = asked(&mut events, id).await;
    // Quiet hours hold no question.
    let post = ntfy.until(1).await.remove(0);
    assert_eq!(post.json()["title"], "app waits for your answer");
    assert!(!post.body.contains(SECRET) && !post.body.contains("Bash"), "{post:?}");
    matrix.until(1).await;
    matrix.until_done(1).await;
    ntfy.until_done(1).await;
    server.client.post_json(&path(&second.request_id), &allow).await.expect(202);
    let posts: Vec<Delivery> = ntfy.until(2).await;
    assert_eq!((posts[1].method.as_str(), posts[1].path.as_str()), ("DELETE", "/alerts/m1"));
    let posts = matrix.until(2).await;
    assert!(posts[1].path.starts_with("/_matrix/client/v3/rooms/!r:m/redact/"), "{posts:?}");
    ntfy.until_done(2).await;
    assert_eq!(ntfy.posts().len(), 2, "the first question notified nobody");
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn quiet_hours_hold_what_can_wait() {
    let receiver = Receiver::start().await;
    let url = format!("json://127.0.0.1:{}/x", receiver.port);
    let world = notifying(&[url], json!({ "quiet_hours": around_now() }));
    world.project("app");
    let env = [("TZ", "UTC")];
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    server.client.run("app").await;
    crash(&world, "app").await;
    let tried =
        server.client.post_json("/api/notifications/send-test", &json!({ "entry": 1 })).await;
    tried.expect(200);
    // The end of the service is not the end of the quiet hours.
    let mut events = server.events().await;
    events.until_status("app", "crashed").await;
    let shown = report(&server).await;
    assert_eq!((&shown["is_quiet"], &shown["enabled"]), (&json!(true), &json!(true)));
    server.stop().await;
    assert_eq!(receiver.posts().len(), 1);
    assert_eq!(receiver.posts()[0].json()["event"], "test");
}

#[tokio::test]
async fn what_is_told_and_when_can_be_changed_while_the_service_runs() {
    let receiver = Receiver::start().await;
    let url = format!("json://127.0.0.1:{}/x", receiver.port);
    let world = notifying(&[url], json!({ "enabled": false, "notify_on_stop": false }));
    world.project("app");
    let env = [("TZ", "UTC")];
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let set = async |words: &[&str]| {
        let words: Vec<&str> = ["config", "set"].iter().chain(words).copied().collect();
        let done = world.cli(&words).await.ok();
        assert!(done.stderr.contains("the running service uses this now"), "{}", done.stderr);
    };
    server.client.run("app").await;
    crash(&world, "app").await;
    server.events().await.until_status("app", "crashed").await;

    set(&["notifications.enabled", "true", "notifications.notify_on_stop", "true"]).await;
    server.client.resume("app").await.expect(200);
    server.client.stop("app").await.expect(200);
    let posts = receiver.until(1).await;
    assert_eq!(posts[0].json()["event"], "stop", "what happened while it was off is not told");

    set(&["notifications.notify_on_crash", "false"]).await;
    set(&["notifications.quiet_hours", &around_now()]).await;
    let shown = report(&server).await;
    assert_eq!((&shown["enabled"], &shown["events"]), (&json!(true), &json!(["stop"])));
    assert_eq!(shown["is_quiet"], true);
    server.client.resume("app").await.expect(200);
    server.client.stop("app").await.expect(200);
    // The end of the service is not the end of the quiet hours.
    server.stop().await;
    assert_eq!(receiver.posts().len(), 1);
}

#[tokio::test]
async fn a_test_tells_what_each_target_answered() {
    let receiver = Receiver::start().await;
    let url = format!("json://127.0.0.1:{}/x", receiver.port);
    let world = notifying(&[url], json!({ "enabled": false }));
    let tried = world.cli(&["notifications", "test"]).await.ok();
    assert!(tried.stdout.contains("accepted (204)"), "{tried:?}");
    assert!(tried.stderr.contains("notifications.enabled"), "{tried:?}");
    let unknown = world.cli(&["notifications", "test", "7"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let server = world.serve().await;
    let tried =
        server.client.post_json("/api/notifications/send-test", &json!({ "entry": 1 })).await;
    assert_eq!(tried.expect(200).json()["tested"][0]["outcome"]["state"], "accepted");
    assert_eq!(states(&server).await, [json!("accepted")]);
    let posts = receiver.until(2).await;
    assert_eq!(posts[1].json()["event"], "test");
    server
        .client
        .post_json("/api/notifications/send-test", &json!({ "entry": 7 }))
        .await
        .expect(422);
}

#[tokio::test]
async fn what_became_of_the_last_notifications_is_known_after_a_kill() {
    let takes = Receiver::start().await;
    let holds = Receiver::that(Answer::Holds).await;
    let urls = [&takes, &holds].map(|at| format!("json://127.0.0.1:{}/SecretWay", at.port));
    let world = notifying(&urls, json!({}));
    world.project("app");
    let server = world.serve().await;
    let first = json!({ "entry": 1 });
    server.client.post_json("/api/notifications/send-test", &first).await.expect(200);
    server.client.run("app").await;
    crash(&world, "app").await;
    // That it is sent was recorded before.
    holds.until(1).await;
    server.kill().await;
    // A command reads what the service has recorded.
    let listed = world.cli(&["notifications", "list"]).await.ok().stdout;
    assert!(listed.contains("accepted") && listed.contains("app crashed"), "{listed}");
    let server = world.serve().await;
    let after = report(&server).await;
    let deliveries = |at: usize| after["targets"][at]["deliveries"].as_array().unwrap().clone();
    let tested = deliveries(0).into_iter().find(|one| one["event"] == "test").unwrap();
    assert_eq!((&tested["state"], &tested["status"]), (&json!("accepted"), &json!(204)));
    let [unknown] = deliveries(1).try_into().unwrap();
    assert_eq!((&unknown["event"], &unknown["state"]), (&json!("crash"), &json!("failed")));
    let why = unknown["reason"].as_str().unwrap();
    assert!(why.contains("svc ended before the answer came"), "{why}");
    assert_eq!(holds.posts().len(), 1, "it is not sent again");
    server.kill().await;
    let server = world.serve().await;
    assert_eq!(report(&server).await["targets"], after["targets"], "nothing changes by itself");
    let stored = "SELECT group_concat(target || title) FROM notification_deliveries";
    assert!(!world.sql_text(stored).await.unwrap().contains("SecretWay"));
    server.stop().await;
    // What is not configured any more is forgotten.
    world.configure(json!({ "notifications": { "urls": [urls[0]] } }));
    world.serve().await.stop().await;
    world.configure(json!({ "notifications": { "urls": urls } }));
    let server = world.serve().await;
    let again = report(&server).await;
    assert_eq!(again["targets"][0], after["targets"][0]);
    assert_eq!(again["targets"][1]["deliveries"], json!([]));
}
