//! With `webhooks.outbox` every event reaches every target.

use crate::harness::{
    Answer, Clock, Delivery, Receiver, Server, Start, World, service_with_fail_points, within,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;
use svc_skip::{NO_FAIL_POINTS, skip};

/// Seconds.
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

fn keeping(urls: &[String]) -> World {
    let world = World::with(json!({
        "webhooks": { "enabled": true, "outbox": true, "urls": urls, "secret": "outbox-key-CANARY" },
    }));
    world.project("app");
    world
}

async fn serve<'w>(world: &'w World, clock: &Clock) -> Server<'w> {
    world.serve_as(Start { env: &clock.env(), ..Start::default() }).await
}

async fn report(server: &Server<'_>) -> Value {
    server.client.get("/api/webhooks").await.expect(200).json()
}

/// Asks until the report is as wanted.
async fn until(server: &Server<'_>, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    within(what, async {
        loop {
            let report = report(server).await;
            if is_so(&report) {
                return report;
            }
        }
    })
    .await
}

/// Waits until no target has anything left to be posted.
async fn all_posted(server: &Server<'_>) -> Value {
    until(server, "an empty outbox", |report| {
        report["targets"].as_array().unwrap().iter().all(|target| target["waiting"] == 0)
    })
    .await
}

fn id(post: &Delivery) -> String {
    post.header("x-svc-delivery").to_owned()
}

/// Deliveries in the order of their first post.
fn first_posts(posts: &[Delivery]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for post in posts {
        let one = (id(post), post.event().to_owned());
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

#[tokio::test]
async fn everything_arrives_in_order_after_an_hour_of_downtime_and_five_kills() {
    let down = Answer::status("503 Service Unavailable");
    let (held, sound) = (Receiver::that(down).await, Receiver::start().await);
    let world = keeping(&[held.url("held"), sound.url("sound")]);
    let clock = Clock::new(&world);
    let mut server = serve(&world, &clock).await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut told = 2;
    for _ in 0..5 {
        server.client.stop(&id).await.expect(200);
        server.client.resume(&id).await.expect(200);
        told += 3;
        // The other target is told meanwhile.
        sound.until(told).await;
        server.kill().await;
        server = serve(&world, &clock).await;
    }
    assert!(held.posts().iter().all(|post| post.event() == "spawn"), "the order holds");
    clock.set(HOUR);
    held.answers(Answer::status("204 No Content"));
    let end = all_posted(&server).await;
    let arrived = first_posts(&held.posts());
    let names: Vec<&str> = arrived.iter().map(|(_, event)| event.as_str()).collect();
    let mut expected = vec!["spawn", "ready"];
    (0..5).for_each(|_| expected.extend(["stop", "spawn", "ready"]));
    assert_eq!(names, expected);
    assert_eq!(arrived, first_posts(&sound.posts()), "the same ids at every target");
    assert_eq!(end["targets"][0]["failed"], 0);
    assert_eq!(end["targets"][0]["posts"][0]["state"], "delivered");
}

#[tokio::test]
async fn h98_an_event_that_was_recorded_before_the_service_died_is_posted() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for (point, times) in [("outbox.before_record", 1), ("outbox.after_post", 2)] {
        let receiver = Receiver::start().await;
        let world = keeping(&[receiver.url("a")]);
        let server = world.serve().await;
        let id = server.client.run("app").await.instance_id.to_string();
        // Both events are recorded: none is left for the service that dies.
        receiver.until(2).await;
        all_posted(&server).await;
        server.kill().await;
        let armed = format!("{point}=abort");
        let env = [("SVC_FAILPOINTS", armed.as_str())];
        let start = Start { program: Some(program.clone()), env: &env, ..Start::default() };
        let mut server = world.serve_as(start).await;
        let stop = server.client.request(Method::DELETE, &format!("/api/v1/instances/{id}"));
        // It may die before it answers.
        drop(server.client.try_send(stop).await);
        assert_eq!(server.ended().await.signal(), Some(9), "{point}: {}", server.log());

        let server = world.serve().await;
        receiver.until(2 + times).await;
        all_posted(&server).await;
        let posts = receiver.posts();
        let first: Vec<String> = first_posts(&posts).into_iter().map(|(_, event)| event).collect();
        assert_eq!(first, ["spawn", "ready", "stop"], "{point}");
        assert_eq!(posts.len(), 2 + times, "{point}: posted again with the same id");
        assert_eq!(posts[2].json()["status"], "stopped");
        server.stop().await;
        // Nothing is owed any more.
        let server = world.serve().await;
        server.client.resume(&id).await.expect(200);
        let posts = receiver.until(4 + times).await;
        assert_eq!(posts[2 + times].event(), "spawn", "{point}");
    }
}

#[tokio::test]
async fn what_a_target_refuses_is_given_up_and_can_be_posted_again() {
    let receiver = Receiver::that(Answer::status("404 Not Found")).await;
    let world = keeping(&[receiver.url("CANARY1")]);
    let server = world.serve().await;
    let instance = server.client.run("app").await.instance_id.to_string();
    receiver.until(2).await;
    let given_up = all_posted(&server).await;
    let target = &given_up["targets"][0];
    assert_eq!((&target["failed"], &target["posts"][0]["state"]), (&json!(2), &json!("failed")));
    assert_eq!(target["posts"][0]["reason"], "it answered 404");
    let shown = world.cli(&["webhooks", "list"]).await.ok().stdout;
    assert!(shown.contains("given up: it answered 404"), "{shown}");

    // A command has it posted by the service.
    receiver.answers(Answer::status("200 OK"));
    let said = world.cli(&["webhooks", "replay"]).await.ok();
    assert!(format!("{said:?}").contains("2 posts"), "{said:?}");
    let again = receiver.until(4).await;
    assert_eq!(again.iter().skip(2).map(id).collect::<Vec<_>>(), ids(&again, 0..2));
    all_posted(&server).await;

    // And over HTTP everything after a delivery, also what was delivered.
    server.client.stop(&instance).await.expect(200);
    let posts = receiver.until(5).await;
    // Only what is settled is posted again; its answer is recorded after it was given.
    all_posted(&server).await;
    let body = json!({ "since": id(&posts[0]), "entry": 1 });
    let replayed = server.client.post_json("/api/webhooks/replay", &body).await.expect(200);
    assert_eq!(replayed.json()["replayed"], 2);
    let posts = receiver.until(7).await;
    assert_eq!(ids(&posts, 5..7), [id(&posts[1]), id(&posts[4])]);
    let unknown = json!({ "since": "018f3a7e-7c3e-7d1c-a3f0-0123456789ab" });
    let refused = server.client.post_json("/api/webhooks/replay", &unknown).await;
    assert!(refused.text().contains("`since`"), "{}", refused.text());
    refused.expect(422);
    for text in [shown, report(&server).await.to_string(), server.log()] {
        assert!(!text.contains("CANARY"), "{text}");
    }
}

#[tokio::test]
async fn a_target_that_stays_away_is_given_up_after_three_days_and_delays_no_other() {
    let (away, sound) = (Receiver::that(Answer::status("500 Oh")).await, Receiver::start().await);
    let world = keeping(&[away.url("a"), sound.url("b")]);
    let clock = Clock::new(&world);
    let server = serve(&world, &clock).await;
    server.client.run("app").await;
    sound.until(2).await;
    until(&server, "two posts of one target that wait", |report| {
        report["targets"][0]["waiting"] == 2 && report["targets"][1]["waiting"] == 0
    })
    .await;
    clock.set(3 * DAY + HOUR);
    let end = all_posted(&server).await;
    assert_eq!(end["targets"][0]["failed"], 2);
}

#[tokio::test]
async fn a_clock_that_is_set_back_stops_nothing() {
    let receiver = Receiver::that(Answer::status("503 Later")).await;
    let world = keeping(&[receiver.url("a")]);
    let clock = Clock::new(&world);
    clock.set(HOUR);
    let server = serve(&world, &clock).await;
    server.client.run("app").await;
    receiver.until(1).await;
    clock.set(-HOUR);
    receiver.answers(Answer::status("200 OK"));
    let end = all_posted(&server).await;
    assert_eq!(end["targets"][0]["posts"][0]["state"], "delivered");
}

#[tokio::test]
async fn the_same_address_twice_is_posted_to_once() {
    let receiver = Receiver::start().await;
    let world = keeping(&[receiver.url("a"), receiver.url("a")]);
    let server = world.serve().await;
    server.client.run("app").await;
    receiver.until(2).await;
    all_posted(&server).await;
    assert_eq!(receiver.events(), ["spawn", "ready"]);
    server.says("is in `webhooks.urls` twice").await;
}

#[tokio::test]
async fn without_an_outbox_nothing_is_kept_and_nothing_is_posted_again() {
    let receiver = Receiver::that(Answer::status("503 Later")).await;
    let world = keeping(&[receiver.url("a")]);
    world.configure(json!({ "webhooks": { "outbox": false } }));
    let server = world.serve().await;
    server.client.run("app").await;
    let posts = receiver.until(2).await;
    assert_eq!(posts.iter().map(Delivery::event).collect::<Vec<_>>(), ["spawn", "ready"]);
    let shown = until(&server, "two failures", |report| {
        let posts = report["targets"][0]["posts"].as_array().unwrap();
        posts.iter().all(|post| post["state"] == "failed")
    })
    .await;
    assert_eq!(shown["targets"][0]["posts"][0]["reason"], "it answered 503");
    let refused = world.cli(&["webhooks", "replay"]).await;
    assert!(format!("{refused:?}").contains("`webhooks.outbox` is off"), "{refused:?}");
    assert_ne!(refused.code, Some(0));
}

/// Deliveries of some posts.
fn ids(posts: &[Delivery], which: std::ops::Range<usize>) -> Vec<String> {
    posts[which].iter().map(id).collect()
}
