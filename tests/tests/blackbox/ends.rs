//! How bridges end: by a person, by themselves, by another program; never twice.

use crate::harness::{World, gone, within};
use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::json;
use svc_shared::api::instances::Instance;

fn reason(instance: &Instance) -> String {
    instance.exit_reason.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// F45: somebody ends the bridge by hand.
#[tokio::test]
async fn f45_a_bridge_ended_from_outside_is_shown_crashed_with_its_cause() {
    for (signal, cause, number) in
        [(Signal::KILL, "killed", Some(9)), (Signal::INT, "external_stop", None)]
    {
        let world = World::new();
        world.project("app");
        let server = world.serve().await;
        let id = server.client.run("app").await.instance_id.to_string();
        let mut page = server.events().await;
        world.bridges_of("app")[0].signal(signal);
        let crashed = page.until_status("app", "crashed").await;
        assert_eq!(reason(&crashed), cause);
        assert_eq!(crashed.exit_signal, number);
        assert_eq!((crashed.bridge_pid, crashed.intentional_stop), (None, false));
        assert!(crashed.resumable && crashed.has_log);
        page.until_event("crash", &id).await;

        let resumed = server.client.resume(&id).await.expect(200).instance();
        assert_eq!((resumed.status.to_string(), resumed.generation), ("running".into(), 2));
        let crashes = page.happened.iter().filter(|(name, _)| name == "crash").count();
        assert_eq!(crashes, 1);
    }
}

/// F37: the words of the agent about a missing login.
#[tokio::test]
async fn f37_a_logged_out_account_fails_the_start_with_the_agents_words() {
    let world = World::new();
    world.project_with("app", json!({ "fatal": "login" }));
    let server = world.serve().await;
    let failed = server.client.launch("app").await.expect(201).instance();
    assert_eq!(
        (failed.status.to_string(), reason(&failed)),
        ("error".into(), "login_required".into())
    );
    let detail = failed.error_detail.unwrap();
    assert!(detail.contains("You must be logged in to use Remote Control"), "{detail}");
    assert_eq!(failed.exit_code, Some(1));
}

/// F32: an end before readiness is an error whenever it comes.
#[tokio::test]
async fn f32_an_end_before_readiness_is_an_error_with_its_cause() {
    for (knobs, cause) in [
        (json!({ "fatal": "network" }), "network"),
        (json!({ "fatal": "already_served" }), "already_served"),
        (json!({ "fatal": "org_policy" }), "remote_control_unavailable"),
        (json!({ "fatal": "bad_argument" }), "bad_argument"),
        (
            json!({ "ready": "never", "exit_at_ms": 100, "exit_code": 3, "stderr_text": "oh no" }),
            "unknown",
        ),
        (json!({ "ready": "never", "exit_at_ms": 100, "exit_signal": "SIGSEGV" }), "killed"),
    ] {
        let world = World::new();
        world.project_with("app", knobs.clone());
        let server = world.serve().await;
        let mut page = server.events().await;
        let failed = server.client.launch("app").await.expect(201).instance();
        assert_eq!(failed.status.to_string(), "error", "{knobs}: {failed:?}");
        assert_eq!(reason(&failed), cause, "{knobs}: {failed:?}");
        assert!(failed.error_detail.is_some(), "{knobs}: {failed:?}");
        page.until_status("app", "error").await;
        let told: Vec<&str> = page.happened.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(told, ["spawn"], "{knobs}");
        assert!(world.agree().await.bridges.is_empty());
    }
}

/// F28: a bridge that never registers is ended before it is called failed.
#[tokio::test]
async fn f28_grace_ends_a_bridge_that_never_registers() {
    for ready in ["never", "no_env", "no_poll_loop"] {
        let world = World::with(json!({ "claude": { "startup_grace_seconds": 0.7 } }));
        world.project_with("app", json!({ "ready": ready }));
        let server = world.serve().await;
        let mut page = server.events().await;
        let path = "/api/v1/instances?wait=0";
        let starting = server.client.post_json(path, &json!({ "project": "app" })).await;
        assert_eq!(starting.expect(201).json()["status"], "starting");
        let failed = page.until_status("app", "error").await;
        assert_eq!(reason(&failed), "not_registered", "{ready}");
        assert!(world.bridges().is_empty(), "{ready}: an error hides a live bridge");
        assert!(page.happened.iter().all(|(name, _)| name == "spawn"), "{:?}", page.happened);
    }
}

/// F33: ready, then dead: both are told, once, in this order.
#[tokio::test]
async fn f33_an_end_right_after_readiness_is_ready_and_then_a_crash() {
    let world = World::new();
    world.project_with("app", json!({ "exit_after_ready_ms": 10, "exit_code": 1 }));
    let server = world.serve().await;
    let mut page = server.events().await;
    let id = server.client.launch("app").await.expect(201).instance().instance_id;
    page.until_status("app", "crashed").await;
    page.until_event("crash", id.as_str()).await;
    let told: Vec<&str> = page.happened.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["spawn", "ready", "crash"]);
}

#[tokio::test]
async fn a_single_session_that_ends_well_is_no_crash() {
    let world = World::new();
    world.project_with("app", json!({ "exit_after_ready_ms": 200, "exit_code": 0 }));
    let server = world.serve().await;
    let mut page = server.events().await;
    let body = json!({ "project": "app", "spawn_mode": "session" });
    let id = server.client.launch_with(body).await.expect(201).instance().instance_id;
    let ended = page.until_status("app", "stopped").await;
    assert_eq!(reason(&ended), "session_ended");
    assert!(!ended.intentional_stop);
    let told = page.until_event("session-end", id.as_str()).await;
    assert_eq!(told["status"], "stopped");
    let told: Vec<&str> = page.happened.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["spawn", "ready", "session-end"]);
}

/// F39, F40: a bridge that ignores the orderly signal is killed with its group.
#[tokio::test]
async fn f39_f40_a_deaf_bridge_and_its_deaf_child_are_killed() {
    let world = World::with(json!({ "claude": { "stop_grace_seconds": 0.5 } }));
    let knobs = json!({ "ignore_sigint": true, "ignore_sigterm": true, "children": 1, "child_mode": "ignore_signals" });
    world.project_with("app", knobs);
    let server = world.serve().await;
    server.client.run("app").await;
    let tree = world.trees();
    assert_eq!(tree.len(), 2, "{tree:?}");
    let stopped = server.client.stop("app").await.expect(200).instance();
    assert_eq!(
        (stopped.status.to_string(), reason(&stopped)),
        ("stopped".into(), "operator_stop".into())
    );
    assert_eq!(stopped.exit_signal, Some(9), "it says that it was forced");
    assert!(tree.iter().all(|process| !process.is_alive()), "{tree:?}");
}

/// H104, F41: what left the group is found and ended.
#[tokio::test]
async fn f41_h104_a_child_in_a_session_of_its_own_is_ended_with_its_bridge() {
    let world = World::new();
    world.project_with("app", json!({ "children": 3, "child_mode": "new_session" }));
    let server = world.serve().await;
    server.client.run("app").await;
    let tree = world.trees();
    assert_eq!(tree.len(), 4, "{tree:?}");
    server.client.stop("app").await.expect(200);
    assert!(tree.iter().all(|process| !process.is_alive()), "{tree:?}");
}

/// H104: a stopped tree is ended too.
#[tokio::test]
async fn h104_a_suspended_bridge_is_ended() {
    let world = World::with(json!({ "claude": { "stop_grace_seconds": 0.5 } }));
    world.project_with("app", json!({ "children": 1, "child_mode": "same_group" }));
    let server = world.serve().await;
    server.client.run("app").await;
    let tree = world.trees();
    for process in &tree {
        process.signal(Signal::STOP);
    }
    let stopped = server.client.stop("app").await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
    assert!(tree.iter().all(|process| !process.is_alive()), "{tree:?}");
}

/// F43: many stops at once end one process, once, and all say so.
#[tokio::test]
async fn f43_h100_twenty_stops_at_once_are_one_stop() {
    let world = World::new();
    world.project_with("app", json!({ "shutdown_ms": 100 }));
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut page = server.events().await;
    let stops = join_all((0..20).map(|_| server.client.stop(&id))).await;
    for stop in &stops {
        assert_eq!((stop.status, &stop.json()["status"]), (200, &json!("stopped")));
    }
    page.until_event("stop", &id).await;
    page.until_status("app", "stopped").await;
    let stops = page.happened.iter().filter(|(name, _)| name == "stop").count();
    assert_eq!(stops, 1);
}

/// F43: a client that goes away does not call the stop off.
#[tokio::test]
async fn f43_a_stop_goes_on_without_its_client() {
    let world = World::new();
    world.project_with("app", json!({ "shutdown_ms": 200 }));
    let server = world.serve().await;
    server.client.run("app").await;
    let mut page = server.events().await;
    {
        let stop = server.client.stop("app");
        let signalled = world.until("the signal", || {
            let log = std::fs::read_dir(world.state.join("logs")).ok()?;
            let mut texts = log.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
            texts.any(|text| text.contains("SIGINT received")).then_some(())
        });
        tokio::select! {
            _ = signalled => {} // the request is dropped here
            reply = stop => panic!("the stop was answered early: {reply:?}"),
        }
    }
    let stopped = page.until_status("app", "stopped").await;
    assert_eq!(reason(&stopped), "operator_stop");
}

#[tokio::test]
async fn h100_a_stop_during_the_start_never_reports_a_crash() {
    let world = World::new();
    world.project_with("app", json!({ "ready_ms": 600_000 }));
    let server = world.serve().await;
    let mut page = server.events().await;
    let path = "/api/v1/instances?wait=0";
    let id = server.client.post_json(path, &json!({ "project": "app" })).await.expect(201);
    let id = id.instance().instance_id.to_string();
    let stopped = server.client.stop(&id).await.expect(200).instance();
    assert_eq!(
        (stopped.status.to_string(), reason(&stopped)),
        ("stopped".into(), "operator_stop".into())
    );
    page.until_event("stop", &id).await;
    assert!(page.happened.iter().all(|(name, _)| name != "crash"));
    assert!(world.agree().await.bridges.is_empty());
}

/// F18: a launch during a stop waits, then starts one new bridge.
#[tokio::test]
async fn f18_a_launch_during_a_stop_waits_for_it() {
    let world = World::new();
    world.project_with("app", json!({ "shutdown_ms": 300 }));
    let server = world.serve().await;
    let old = server.client.run("app").await.instance_id;
    let (stopped, launched) =
        tokio::join!(server.client.stop(old.as_str()), server.client.launch("app"));
    stopped.expect(200);
    match launched.status {
        200 => assert_eq!(launched.instance().instance_id, old, "asked before the stop"),
        status => {
            assert_eq!(status, 201, "{}", launched.text());
            assert_ne!(launched.instance().instance_id, old);
        }
    }
    assert!(world.agree().await.bridges.len() <= 1);
}

/// F44: the intent was durable, so the next service finishes the stop.
#[tokio::test]
async fn f44_a_service_killed_in_the_middle_of_a_stop_ends_it_after_its_restart() {
    let world = World::with(json!({ "claude": { "stop_grace_seconds": 60 } }));
    // Deaf to the first service's signal; the knob is taken back before the second one's.
    world.project_with("app", json!({ "shutdown_ms": 400 }));
    let server = world.serve().await;
    server.client.run("app").await;
    let bridge = world.bridges_of("app").remove(0);
    let client = server.client.clone();
    let stop = tokio::spawn(async move {
        let request = client.request(reqwest::Method::DELETE, "/api/v1/instances/app");
        client.try_send(request).await
    });
    let logs = world.state.join("logs");
    world
        .until("the signal", || {
            let log = std::fs::read_dir(&logs).ok()?;
            let mut texts = log.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
            texts.any(|text| text.contains("SIGINT received")).then_some(())
        })
        .await;
    server.kill().await;
    assert!(within("the broken answer", stop).await.unwrap().is_err());

    let server = world.serve().await;
    let mut page = server.events().await;
    let stopped = page.until_status("app", "stopped").await;
    assert_eq!(reason(&stopped), "operator_stop");
    gone(&bridge).await;
    world.agree().await;
}

/// F34: a poisoned session is replaced once, in the same operation.
#[tokio::test]
async fn f34_a_poisoned_session_is_replaced_by_a_fresh_one() {
    let world = World::new();
    world.project_with("app", json!({ "poison_ms": 200 }));
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let resumed = server.client.resume(&id).await.expect(200);
    let mut page = server.events().await;
    let running = page.until_status("app", "running").await;
    assert_eq!(running.instance_id.to_string(), id, "{}", resumed.text());
    assert_eq!(world.starts("app").len(), 3, "one launch, one poisoned resume, one fresh start");
    world.agree().await;
}

/// F26: a bridge outlives its directory and can still be stopped.
#[tokio::test]
async fn f26_a_bridge_whose_directory_is_deleted_can_be_stopped_and_forgotten() {
    let world = World::new();
    let dir = world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut page = server.events().await;
    std::fs::remove_dir_all(&dir).unwrap();
    page.until("the project is gone", |state| state.projects.is_empty().then_some(())).await;
    let row = page
        .until("a notice", |state| {
            state.instances.values().find(|row| row.notice.is_some()).cloned()
        })
        .await;
    assert_eq!(row.status.to_string(), "running");
    server.client.stop(&id).await.expect(200);
    let log = server.client.get(&format!("/api/instances/{id}/log")).await.expect(200).json();
    assert!(!log["lines"].as_array().unwrap().is_empty());
    assert_eq!(server.client.resume(&id).await.refused(404), "unknown_project");
    server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);
}

/// F28: the grace is for registering.
/// A bridge that took up the environment of a killed one in time is watched a little longer before
/// it counts as running. That must not end it.
#[tokio::test]
async fn f28_a_grace_that_ends_while_a_taken_up_environment_is_watched_ends_no_bridge() {
    let world = World::with(json!({ "claude": { "startup_grace_seconds": 3 } }));
    world.project("app");
    let server = world.serve().await;
    let mut page = server.events().await;
    server.client.run("app").await;
    let bridge = world.bridges_of("app").remove(0);
    bridge.signal(Signal::KILL);
    page.until_status("app", "crashed").await;
    server.client.resume("app").await.expect(200);
    let row = page
        .until("an outcome", |state| {
            let row = state.instances.values().next()?;
            ["running", "error"].contains(&row.status.to_string().as_str()).then(|| row.clone())
        })
        .await;
    assert_eq!(row.status.to_string(), "running", "{row:?}");
    assert_eq!(world.agree().await.bridges.len(), 1);
}

/// A bridge of a command is no child of the service, but its end is read.
#[tokio::test]
async fn f9_a_bridge_of_a_command_that_is_killed_shows_the_signal() {
    let world = World::new();
    world.project_with("app", json!({ "stderr_text": "space to show QR code" }));
    let server = world.serve().await;
    let mut page = server.events().await;
    world.cli(&["start", "app", "--wait"]).await.ok();
    page.until_status("app", "running").await;
    world.bridges_of("app")[0].signal(Signal::KILL);
    let crashed = page.until_status("app", "crashed").await;
    if crashed.exit_signal.is_none() {
        assert_eq!((reason(&crashed), crashed.exit_code), ("unknown".into(), None));
        svc_skip::skip!("this kernel keeps no exit status (Linux 6.15 does)");
    }
    assert_eq!((reason(&crashed), crashed.exit_signal), ("killed".into(), Some(9)));
}
