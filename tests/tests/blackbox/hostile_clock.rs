//! A clock that is set, and a machine that sleeps, while the service runs.
//!
//! F77, F79, H93.

use crate::harness::{Clock, Start, World};
use reqwest::Method;
use serde_json::json;

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

const JUMPS: [i64; 6] = [-7200, 86_400, 1800, -1, 315_360_000, -315_360_000];

/// F77, F79, H93: the clock jumps while a bridge starts, runs, stops and resumes.
#[tokio::test]
async fn f77_f79_h93_a_clock_that_jumps_ends_no_start_and_no_bridge() {
    let world = World::new();
    let clock = Clock::new(&world);
    world.project_with("app", json!({ "ready_ms": 1500 }));
    world.project("runs");
    let env = clock.env();
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let running = server.client.run("runs").await;
    let mut page = server.events().await;
    for jump in JUMPS {
        clock.set(0);
        let path = "/api/v1/instances?wait=0";
        let row = server.client.post_json(path, &json!({ "project": "app" })).await;
        assert_eq!(row.expect(201).json()["status"], "starting");
        clock.set(jump);
        let row = page.until_status("app", "running").await;
        let all = server.client.instances().await;
        assert!(all.iter().all(|row| row.status.to_string() == "running"), "{jump}: {all:?}");
        let health = server.client.get("/healthz").await.expect(200).json();
        assert_eq!(health["instances_running"], 2, "{jump}: {health}");
        let stopped = server.client.stop(row.instance_id.as_str()).await.expect(200).instance();
        assert_eq!(stopped.status.to_string(), "stopped", "{jump}");
        page.until_status("app", "stopped").await;
        server.client.post(&format!("/api/instances/{}/forget", row.instance_id)).await.expect(200);
        page.until("the record is gone", |state| (state.instances.len() == 1).then_some(())).await;
    }
    let still = server.client.instance("runs").await.instance();
    assert_eq!(
        (still.status.to_string(), still.bridge_pid),
        ("running".into(), running.bridge_pid)
    );
    let crashes = page.happened.iter().filter(|(name, _)| name == "crash" || name == "error");
    assert_eq!(crashes.count(), 0, "{:?}", page.happened);
    // The next service wakes up in yet another time.
    drop(page);
    server.kill().await;
    clock.set(-86_400);
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let still = server.client.instance("runs").await.instance();
    assert_eq!(
        (still.status.to_string(), still.bridge_pid),
        ("running".into(), running.bridge_pid)
    );
    world.agree().await;
}

/// F77, F79, H93: a changed clock does not change the grace of a start.
#[tokio::test]
async fn f77_f79_h93_a_start_has_its_grace_by_no_clock_that_jumps() {
    let world = World::with(json!({ "claude": { "startup_grace_seconds": 8 } }));
    let clock = Clock::new(&world);
    world.project_with("slow", json!({ "ready_ms": 1500 }));
    world.project_with("never", json!({ "ready": "never" }));
    let env = clock.env();
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let mut page = server.events().await;
    let jumps: [(&str, &dyn Fn()); 3] = [
        ("slept", &|| clock.sleep(1800)),
        ("set back", &|| clock.set(-7200)),
        ("set ahead", &|| clock.set(315_360_000)),
    ];
    for (what, jump) in jumps {
        clock.set(0);
        let mut ids = Vec::new();
        for project in ["slow", "never"] {
            let body = json!({ "project": project });
            let path = "/api/v1/instances?wait=0";
            let row = server.client.post_json(path, &body).await.expect(201).instance();
            assert_eq!(row.status.to_string(), "starting", "{what}");
            ids.push(row.instance_id.to_string());
        }
        jump();
        let slow = page.until_status("slow", "running").await;
        assert_eq!(slow.instance_id.as_str(), ids[0], "{what}");
        page.until_event("ready", &ids[0]).await;
        let failed = page.until_status("never", "error").await;
        let reason = failed.exit_reason.map(|reason| reason.to_string());
        assert_eq!(reason.as_deref(), Some("not_registered"), "{what}");
        assert!(world.bridges_of("never").is_empty(), "{what}");
        server.client.stop(&ids[0]).await.expect(200);
        for id in &ids {
            server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);
        }
        page.until("no record", |state| state.instances.is_empty().then_some(())).await;
    }
    let crashes = page.happened.iter().filter(|(name, _)| name == "crash");
    assert_eq!(crashes.count(), 0, "{:?}", page.happened);
    drop(page);
    world.agree().await;
}

/// H93: sign-in, lock and token under a clock that jumps.
#[tokio::test]
async fn h93_a_clock_that_jumps_locks_nobody_out_and_lets_nobody_in() {
    let auth = json!({ "enabled": true, "password_required": true, "password_hash": HASH });
    let world = World::with(json!({ "auth": auth }));
    let clock = Clock::new(&world);
    let env = clock.env();
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let token = world.cli(&["api-token", "issue", "ci", "--json"]).await.ok().json();
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    let sign_in = async |password: &str| {
        let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
        server.client.send(request.json(&json!({ "password": password }))).await
    };
    let get = async |name: &str, value: &str| {
        let request = server.client.request(Method::GET, "/api/projects");
        server.client.send(request.header(name, value)).await.status
    };
    let reply = sign_in(PASSWORD).await.expect(200);
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    for attempt in 0..5 {
        assert_eq!(sign_in("wrong").await.status, 401, "{attempt}");
    }
    for jump in [0, 1, -1, 3600, -3600, 86_400, -86_400, 315_360_000, -315_360_000] {
        clock.set(jump);
        let locked = sign_in(PASSWORD).await;
        assert_eq!(locked.refused(429), "throttled", "{jump}: the lock is not a matter of dates");
        let wait: u64 = locked.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=300).contains(&wait), "{jump}: {wait}");
        assert_eq!(get("Authorization", &bearer).await, 200, "{jump}: the token");
        // An hour of the future is refused; within its age a sign-in goes on.
        let expected = if (-60..604_800).contains(&jump) { 200 } else { 401 };
        assert_eq!(get("Cookie", &cookie).await, expected, "{jump}: the sign-in");
    }
    clock.set(0);
    assert_eq!(get("Cookie", &cookie).await, 200, "the jumps ended nothing");
    server.stop().await;
}

/// F29: starts that register around the end of their grace, before and after it.
#[tokio::test]
async fn f29_at_the_edge_of_the_grace_a_start_is_running_or_an_error_and_never_both() {
    let world = World::with(json!({ "claude": { "startup_grace_seconds": 1.5 } }));
    let names: Vec<String> = (0..12).map(|number| format!("p{number:02}")).collect();
    for (name, ready_ms) in names.iter().zip((900..).step_by(100)) {
        world.project_with(name, json!({ "ready_ms": ready_ms }));
    }
    world.project("last");
    let server = world.serve().await;
    let mut page = server.events().await;
    for name in &names {
        let body = json!({ "project": name });
        server.client.post_json("/api/v1/instances?wait=0", &body).await.expect(201);
    }
    page.until("the outcome of all", |state| {
        let open = state.instances.values().filter(|row| row.status.to_string() == "starting");
        (state.instances.len() == names.len() && open.count() == 0).then_some(())
    })
    .await;
    // The announcements come in order, so this one comes after all that belong to the starts.
    let last = server.client.run("last").await;
    page.until_event("ready", last.instance_id.as_str()).await;
    for row in page.state.instances.values().filter(|row| row.project != "last") {
        let told = page
            .happened
            .iter()
            .filter(|(_, data)| data["instance_id"] == row.instance_id.as_str());
        let told: Vec<&str> = told.map(|(name, _)| name.as_str()).collect();
        let bridges = world.bridges_of(row.project.as_str()).len();
        match row.status.to_string().as_str() {
            "running" => assert_eq!((told.as_slice(), bridges), (&["spawn", "ready"][..], 1)),
            "error" => {
                assert_eq!((told.as_slice(), bridges), (&["spawn"][..], 0), "{row:?}");
                let reason = row.exit_reason.as_ref().map(ToString::to_string);
                assert_eq!(reason.as_deref(), Some("not_registered"));
            }
            other => panic!("{other}: {row:?}"),
        }
    }
    world.agree().await;
}
