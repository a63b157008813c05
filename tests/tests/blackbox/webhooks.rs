//! Events are posted to the configured targets, and to nobody else.

use crate::direct_sessions::{SECRET, asked, enabled, launch, say};
use crate::harness::{
    Answer, Delivery, GitServer, Receiver, Server, Start, World, gone, service_with_fail_points,
};
use hmac::{Hmac, Mac as _};
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::Sha256;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use svc_skip::{NO_FAIL_POINTS, skip};

const KEY: &str = "a-key-for-webhooks-CANARY";

/// Verifies as the guide tells a receiver to.
fn is_genuine(post: &Delivery, body: &str) -> bool {
    let Some(rest) = post.header("x-svc-signature").strip_prefix("t=") else { return false };
    let Some((time, signature)) = rest.split_once(",v1=") else { return false };
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).unwrap();
    mac.update(format!("{time}.{}.{body}", post.header("x-svc-delivery")).as_bytes());
    time == post.header("x-svc-timestamp")
        && hex::decode(signature).is_ok_and(|signature| mac.verify_slice(&signature).is_ok())
}

fn posting_to(urls: &[String], more: Value) -> World {
    let world = World::with(json!({ "webhooks": { "enabled": true, "urls": urls } }));
    world.configure(json!({ "webhooks": more }));
    world
}

/// Has the service announce ends of jobs, as commands do.
fn settle(world: &World, numbers: std::ops::Range<u32>) {
    let socket = UnixDatagram::unbound().unwrap();
    let service = world.state.join("run/notify.sock");
    for number in numbers {
        let id = format!("{number:08x}");
        let end = json!({ "id": id, "settled": true, "removed": true, "detail": null });
        socket.send_to(end.to_string().as_bytes(), &service).unwrap();
    }
}

fn ids(posts: &[Delivery]) -> Vec<u32> {
    let id =
        |post: &Delivery| u32::from_str_radix(post.json()["id"].as_str().unwrap(), 16).unwrap();
    posts.iter().map(id).collect()
}

#[tokio::test]
async fn events_are_posted_in_order_signed_and_with_the_fields_of_the_specification() {
    let (first, second) = (Receiver::start().await, Receiver::start().await);
    let world = posting_to(&[first.url("a"), second.url("b")], json!({ "secret": KEY }));
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    server.client.resume(&id).await.expect(200);
    world.bridges_of("app")[0].signal(Signal::KILL);
    let posts = first.until(5).await;
    let names: Vec<&str> = posts.iter().map(Delivery::event).take(5).collect();
    assert_eq!(names, ["spawn", "ready", "stop", "spawn", "ready"]);
    let crash = first.until_event("crash").await;
    assert_eq!(crash.json()["status"], "crashed");
    let mut deliveries = BTreeSet::new();
    for post in &posts {
        assert_eq!(post.path, "/a");
        assert_eq!(post.header("content-type"), "application/json");
        assert!(post.header("user-agent").starts_with("svc/"), "{post:?}");
        assert!(post.header("cookie").is_empty());
        let start = format!("{{\"event\":\"{}\",\"project\":\"app\",", post.event());
        assert!(post.body.starts_with(&start), "{}", post.body);
        let body = post.json();
        let mut members: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(
            members,
            ["event", "label", "project", "resume_mode", "session_ref", "spawn_mode", "status"]
        );
        assert!(is_genuine(post, &post.body), "{post:?}");
        assert!(!is_genuine(post, &post.body.replace("app", "api")), "a changed body");
        assert!(deliveries.insert(post.header("x-svc-delivery").to_owned()), "one id per event");
    }
    // Every target is told the same event under the same id, in the same order.
    second.until(6).await;
    assert_eq!(second.events(), first.events());
    let told: Vec<Delivery> = second.posts();
    for (one, other) in first.posts().iter().zip(&told) {
        assert_eq!(one.header("x-svc-delivery"), other.header("x-svc-delivery"));
        assert_eq!(one.body, other.body);
    }
    assert!(!server.log().contains("CANARY"), "the key is in the log");
}

#[tokio::test]
async fn h49_a_label_adds_no_header_and_the_secrets_of_a_url_are_not_told() {
    let receiver = Receiver::that(Answer::status("500 Internal Server Error")).await;
    let port = receiver.port;
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let urls = [
        format!("http://me:CANARY1@127.0.0.1:{port}/CANARY2?k=CANARY3"),
        format!("http://me:CANARY4@127.0.0.1:{nobody}/CANARY5?k=CANARY6"),
    ];
    let world = posting_to(&urls, json!({}));
    world.project("app");
    let server = world.serve().await;
    let label = "x\", \"X-A: b";
    let body = json!({ "project": "app", "name": label });
    let reply = server.client.launch_with(body).await.expect(201);
    let post = receiver.until_event("spawn").await;
    assert_eq!(post.json()["label"], reply.instance().label);
    assert!(post.header("x-a").is_empty());
    assert!(post.header("authorization").starts_with("Basic "), "{post:?}");
    assert_eq!(post.path, "/CANARY2?k=CANARY3");
    server.says("answered 500 to `spawn`").await;
    server.says("did not take `spawn`").await;
    for text in [server.log(), server.client.get("/api/state").await.text()] {
        assert!(!text.contains("CANARY"), "{text}");
    }
    let shown = world.cli(&["webhooks", "test", "--json"]).await;
    assert_eq!(shown.code, Some(1));
    assert!(!format!("{shown:?}").contains("CANARY"), "{shown:?}");
}

#[tokio::test]
async fn h50_a_target_that_hangs_delays_no_other_and_loses_the_oldest() {
    let (held, quick) = (Receiver::that(Answer::Holds).await, Receiver::start().await);
    let world = posting_to(
        &[held.url("held"), quick.url("quick")],
        json!({ "timeout_seconds": 300, "events": { "bg-settled": true } }),
    );
    world.project("app");
    let server = world.serve().await;
    settle(&world, 0..1);
    held.until(1).await;
    // One is under way, 1,000 wait, and 102 are dropped.
    for part in 0..11_u32 {
        let end = (1 + (part + 1) * 101).min(1_103);
        settle(&world, (1 + part * 101)..end);
        quick.until(end as usize).await;
    }
    assert_eq!(ids(&quick.until(1_103).await), (0..1_103).collect::<Vec<_>>());
    assert_eq!(held.posts().len(), 1);
    let warned = server.says("events wait for it").await;
    assert!(warned.contains("webhook 1 "), "{warned}");
    // The service does its work meanwhile.
    server.client.run("app").await;
    quick.until_event("ready").await;
    // Two more events, so two more of the oldest.
    held.release();
    let posts = held.until(1_001).await;
    let settled: Vec<Delivery> =
        posts.into_iter().filter(|post| post.event() == "bg-settled").collect();
    let expected: Vec<u32> = std::iter::once(0).chain(105..1_103).collect();
    assert_eq!(ids(&settled), expected);
    server.says("104 events were dropped").await;
}

#[tokio::test]
async fn the_end_of_the_service_waits_only_shortly_for_a_target_that_hangs() {
    let held = Receiver::that(Answer::Holds).await;
    let world = posting_to(&[held.url("held")], json!({ "timeout_seconds": 300 }));
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    held.until(1).await;
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0));
    assert!(log.contains("2 events were not delivered"), "{log}");
    world.cli(&["stop", "app"]).await.ok();
}

#[tokio::test]
async fn h48_a_redirect_is_no_success_and_is_not_followed() {
    let other = Receiver::start().await;
    let away = format!(
        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
        other.url("elsewhere")
    );
    let receiver = Receiver::that(Answer::Says(away)).await;
    let world = posting_to(&[receiver.url("x")], json!({}));
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    receiver.until_event("ready").await;
    let said = server.says("to `ready`").await;
    assert!(said.contains("answered 302"), "{said}");
    assert!(other.posts().is_empty());
}

#[tokio::test]
async fn h48_an_answer_without_end_is_given_up() {
    let (stalls, floods) =
        (Receiver::that(Answer::Stalls).await, Receiver::that(Answer::Floods).await);
    let urls = [stalls.url("stalls"), floods.url("floods")];
    let world = posting_to(&urls, json!({ "timeout_seconds": 0.5 }));
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    // Each is given up for the next event.
    stalls.until_event("ready").await;
    floods.until_event("ready").await;
    stalls.until_done(2).await;
    floods.until_done(2).await;
    let said = server.says("did not take `ready`").await;
    assert!(said.contains("webhooks.timeout_seconds"), "{said}");
}

#[tokio::test]
async fn h45_h48_private_targets_are_refused_in_every_notation() {
    let receiver = Receiver::start().await;
    let hosts = [
        "127.0.0.1",
        "127.1",
        "0",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "①②⑦.0.0.1",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "[fd00::1]",
    ];
    let urls: Vec<String> =
        hosts.iter().map(|host| format!("http://{host}:{}/x", receiver.port)).collect();
    let world = posting_to(&urls, json!({ "block_private_targets": true, "timeout_seconds": 5 }));
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    for entry in 1..=hosts.len() {
        let said = server.says(&format!("webhook {entry} (")).await;
        assert!(said.contains("webhooks.block_private_targets"), "{said}");
    }
    let tried = world.cli(&["webhooks", "test", "--json"]).await;
    let results = tried.json();
    let results = results.as_array().unwrap();
    assert_eq!((tried.code, results.len()), (Some(1), hosts.len()));
    for result in results {
        assert!(result["error"].as_str().unwrap().contains("block_private_targets"), "{result}");
    }
    assert!(receiver.posts().is_empty());
    server.kill().await;

    // Without the setting such targets are fine, but never the service itself.
    let own = format!("http://127.0.0.1:{}/hook", world.port());
    world.configure(json!({ "webhooks": {
        "urls": [receiver.url("x"), own], "block_private_targets": false,
    } }));
    let _server = world.serve().await;
    let own = format!("http://127.0.0.1:{}/hook", world.port());
    world.configure(json!({ "webhooks": { "urls": [receiver.url("x"), own] } }));
    let results = world.cli(&["webhooks", "test", "--json"]).await.json();
    assert_eq!(results[0]["status"], 204, "{results}");
    assert!(results[1]["error"].as_str().unwrap().contains("this service itself"), "{results}");
}

/// A service for which the resolver answers this.
async fn serve_with<'w>(world: &'w World, points: &str, more: &[(&str, &str)]) -> Server<'w> {
    let env: Vec<(&str, &str)> =
        std::iter::once(("SVC_FAILPOINTS", points)).chain(more.iter().copied()).collect();
    let program = service_with_fail_points();
    world.serve_as(Start { program, env: &env, ..Start::default() }).await
}

#[tokio::test]
async fn h46_h48_names_are_judged_at_each_delivery_and_the_judged_address_is_dialled() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let receiver = Receiver::start().await;
    let port = receiver.port;
    let urls = [format!("http://hook.test:{port}/x"), format!("http://mixed.test:{port}/x")];
    let world = posting_to(&urls, json!({ "block_private_targets": true }));
    world.project("app");
    // The second answer is this machine, where the receiver would take the post.
    let dns = "hook.test:1.1.1.1|127.0.0.1/mixed.test:1.1.1.1,127.0.0.1";
    let points = format!("webhook.dns={dns};webhook.dial=1.1.1.1:{port}>127.0.0.1:{port}");
    let server = serve_with(&world, &points, &[]).await;
    server.client.run("app").await;
    let said = server.says("(http://hook.test").await;
    assert!(said.contains("did not take `ready`"), "{said}");
    assert!(said.contains("webhooks.block_private_targets"), "{said}");
    let said = server.says("(http://mixed.test").await;
    assert!(said.contains("did not take `spawn`"), "{said}");
    assert_eq!(receiver.events(), ["spawn"]);
}

#[tokio::test]
async fn h48_the_certificate_of_a_target_is_verified() {
    let Some(_) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let plain = World::new();
    let git = GitServer::start(&plain).await;
    let port = git.port();
    let world = posting_to(&[format!("https://git.test:{port}/plain/x")], json!({}));
    world.project("app");
    let points =
        format!("webhook.dns=git.test:1.1.1.1;webhook.dial=1.1.1.1:{port}>127.0.0.1:{port}");
    let server = serve_with(&world, &points, &[]).await;
    server.client.run("app").await;
    let said = server.says("did not take `spawn`").await;
    assert!(said.contains("certificate"), "{said}");
    assert!(git.asked().is_empty(), "{}", git.asked());
}

#[tokio::test]
async fn a_crash_while_the_service_was_down_is_posted_once() {
    let receiver = Receiver::start().await;
    let world = posting_to(&[receiver.url("x")], json!({}));
    world.project("app");
    world.project("other");
    let server = world.serve().await;
    server.client.run("app").await;
    receiver.until_event("ready").await;
    server.kill().await;
    let bridge = world.bridges_of("app").remove(0);
    bridge.signal(Signal::KILL);
    gone(&bridge).await;

    let server = world.serve().await;
    let crash = receiver.until_event("crash").await;
    assert_eq!(crash.json()["project"], "app");
    server.kill().await;
    let server = world.serve().await;
    server.client.run("other").await;
    let posts = receiver.until(5).await;
    let told: Vec<(String, String)> = posts
        .iter()
        .map(|post| (post.event().into(), post.json()["project"].as_str().unwrap().into()))
        .collect();
    let expected = [
        ("spawn", "app"),
        ("ready", "app"),
        ("crash", "app"),
        ("spawn", "other"),
        ("ready", "other"),
    ];
    assert_eq!(told, expected.map(|(event, project)| (event.to_owned(), project.to_owned())));
}

#[tokio::test]
async fn an_end_that_a_command_recorded_is_posted_once() {
    let receiver = Receiver::start().await;
    let world = posting_to(&[receiver.url("x")], json!({}));
    for project in ["app", "late"] {
        world.project(project);
    }
    let server = world.serve().await;
    server.client.run("app").await;
    world.cli(&["stop", "app"]).await.ok();
    assert_eq!(receiver.until_event("stop").await.json()["status"], "stopped");
    // Started by a command, it is announced only when it ends.
    let mut page = server.events().await;
    world.cli(&["start", "late", "--wait", "30"]).await.ok();
    page.until_status("late", "running").await;
    world.cli(&["stop", "late"]).await.ok();
    receiver.until(4).await;
    server.client.resume("app").await.expect(200);
    receiver.until(6).await;
    assert_eq!(receiver.events(), ["spawn", "ready", "stop", "stop", "spawn", "ready"]);
}

#[tokio::test]
async fn a_direct_session_tells_its_life_and_each_question_once() {
    let receiver = Receiver::start().await;
    let world = enabled();
    world.configure(json!({ "webhooks": {
        "enabled": true, "urls": [receiver.url("x")], "events": { "permission-needed": true },
    } }));
    let server = world.serve().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    say(&server, id, "use a tool").await;
    let question = receiver.until_event("permission-needed").await;
    assert!(!question.body.contains(SECRET), "{question:?}");
    let mut body = question.json();
    assert_eq!(body["process_id"].as_str(), one.process_id.as_deref());
    let members = body.as_object_mut().unwrap();
    assert!(members.remove("subtype").is_some_and(|subtype| subtype.is_string()));
    assert_eq!(members.keys().collect::<Vec<_>>(), ["event", "event_type", "process_id"]);

    // The daemon tells the question again.
    server.kill().await;
    let server = world.serve().await;
    asked(&mut server.events().await, id).await;
    server.client.stop(id).await.expect(200);
    let stop = receiver.until_event("stop").await.json();
    assert_eq!((&stop["status"], &stop["resume_mode"]), (&json!("stopped"), &json!("standard")));
    server.client.resume(id).await;
    receiver.until(6).await;
    let expected = ["spawn", "ready", "permission-needed", "stop", "spawn", "ready"];
    assert_eq!(receiver.events(), expected);
    server.client.stop(id).await.expect(200);
}

#[tokio::test]
async fn events_that_are_off_are_not_posted_and_a_test_is() {
    let receiver = Receiver::start().await;
    let world = posting_to(
        &[receiver.url("x")],
        json!({ "secret": KEY, "events": { "spawn": false, "ready": false } }),
    );
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    server.client.stop("app").await.expect(200);
    receiver.until_event("stop").await;
    let tried = world.cli(&["webhooks", "test"]).await.ok();
    assert!(tried.stdout.contains("accepted (204)"), "{tried:?}");
    let post = receiver.until_event("test").await;
    assert_eq!(post.body, r#"{"event":"test"}"#);
    assert!(is_genuine(&post, &post.body));
    assert_eq!(receiver.events(), ["stop", "test"]);
    let unknown = world.cli(&["webhooks", "test", "7"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    server.kill().await;
    world.configure(json!({ "webhooks": { "enabled": false } }));
    let tried = world.cli(&["webhooks", "test", "1"]).await.ok();
    assert!(tried.stderr.contains("webhooks.enabled"), "{tried:?}");
}

#[tokio::test]
async fn h48_private_targets_are_refused_as_soon_as_the_running_service_is_told_so() {
    let receiver = Receiver::start().await;
    let world = posting_to(&[receiver.url("x")], json!({ "timeout_seconds": 5 }));
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let taken = receiver.until(2).await.len();
    let set = world.cli(&["config", "set", "webhooks.block_private_targets", "true"]).await.ok();
    assert!(set.stderr.contains("the running service uses this now"), "{}", set.stderr);
    server.client.stop(&id).await.expect(200);
    let said = server.says("did not take `stop`").await;
    assert!(said.contains("webhooks.block_private_targets"), "{said}");
    assert_eq!(receiver.posts().len(), taken);
    server.stop().await;
}
