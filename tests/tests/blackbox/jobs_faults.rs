//! Background jobs when the agent, its files or its processes misbehave.

use crate::harness::{Start, World, gone};
use crate::jobs::{agent, dir, dispatches, endless, id_of, quick, start, until_alive, until_state};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn f72_a_dispatch_that_the_agent_answers_oddly_is_understood_or_said_to_have_failed() {
    let world = World::new();
    for (project, bg) in [
        ("no-id", "no_id"),
        ("reworded", "reworded"),
        ("refused", "rc1"),
        ("gone", "ack_then_lost"),
    ] {
        let mut knobs = endless();
        knobs["bg"] = json!(bg);
        world.project_with(project, knobs);
    }
    let server = world.serve().await;
    let dispatch = |project: &'static str| {
        let body = json!({ "project": project, "prompt": "x" });
        let client = &server.client;
        async move { client.post_json("/api/v1/agents", &body).await }
    };
    let mut events = server.events().await;
    let id = id_of(&dispatch("reworded").await);
    until_alive(&mut events, &id, "working").await;
    // Accepted without a name: nobody knows the id, but the job is in the list.
    assert_eq!(dispatch("no-id").await.refused(502), "agent_failed");
    events
        .until("the nameless job", |state| {
            let mut jobs = state.jobs.values();
            jobs.find(|job| job.project.as_deref() == Some("no-id")).cloned()
        })
        .await;
    let refused = dispatch("refused").await;
    assert_eq!(refused.refused(502), "agent_failed");
    assert!(refused.text().contains("could not reach the background service"));
    // Accepted is not running: what became of it shows in the list, where it is not.
    id_of(&dispatch("gone").await);
    let list = server.client.get("/api/v1/agents").await.expect(200).json();
    assert!(list.as_array().unwrap().iter().all(|job| job["project"] != "gone"));
    world.configure(json!({ "claude": { "binary": world.root.join("no-agent") } }));
    server.stop().await;
    let server = world.serve().await;
    let body = json!({ "project": "gone", "prompt": "x" });
    let missing = server.client.post_json("/api/v1/agents", &body).await;
    assert_eq!(missing.refused(503), "agent_missing");
    let stop = server.client.delete(&format!("/api/v1/agents/{id}")).await;
    assert_eq!(stop.refused(503), "agent_missing");
    assert!(dir(&world, &id).exists());
}

#[tokio::test]
async fn f73_odd_job_files_cost_the_list_nothing() {
    let world = World::new();
    let app = world.project("app");
    let put = |id: &str, text: &str| {
        std::fs::create_dir_all(dir(&world, id)).unwrap();
        std::fs::write(dir(&world, id).join("state.json"), text).unwrap();
    };
    put("00000001", &json!({ "state": "paused", "cwd": app, "intent": "x" }).to_string());
    put("00000002", "{\"state\":\"wor");
    put("00000003", "[1]");
    put("00000004", &"[".repeat(5000));
    put("00000005", "");
    std::fs::write(world.agent_home.join("jobs/pins.json"), "{}").unwrap();
    let server = world.serve().await;
    let mut events = server.events().await;
    assert_eq!(
        until_state(&mut events, "00000001", "paused").await.project.as_deref(),
        Some("app")
    );
    assert_eq!(events.state.jobs.len(), 1);
    // What is whole again is shown again.
    put("00000002", &json!({ "state": "done", "cwd": "/somewhere/else" }).to_string());
    let other = until_state(&mut events, "00000002", "done").await;
    assert_eq!((other.project, other.cwd), (None, None), "places outside are nobody's business");
    let resume = server.client.post("/api/v1/agents/00000001/resume").await;
    assert_eq!(resume.refused(409), "still_live");
    let resume = server.client.post("/api/v1/agents/00000002/resume").await;
    assert_eq!(resume.refused(409), "not_resumable");
    assert_eq!(server.client.get("/api/v1/agents").await.expect(200).json()[0].get("error"), None);
}

#[tokio::test]
async fn f74_a_job_whose_process_was_killed_is_lost_and_can_go_on_or_go() {
    let world = World::new();
    world.project_with("app", endless());
    // The agent's service would start the process again after ten seconds.
    let env = [("AGENT_SIM_BG_RESPAWN_MS", "null")];
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let mut events = server.events().await;
    let id = start(&server, "app").await;
    let shown = until_alive(&mut events, &id, "working").await;
    let path = format!("/api/v1/agents/{id}");
    let pid = shown.worker_pid.unwrap();
    let host = world.processes().into_iter().find(|process| process.pid == pid).unwrap();
    host.signal(rustix::process::Signal::KILL);
    gone(&host).await;
    let lost = until_state(&mut events, &id, "lost").await;
    assert!(!lost.worker_alive);
    // The page sees it as lost after a restart, too.
    server.stop().await;
    let server = world.serve().await;
    let list = server.client.get("/api/v1/agents").await.expect(200).json();
    assert_eq!(list[0]["state"], json!("lost"));
    let new = id_of(&server.client.post(&format!("{path}/resume")).await);
    assert_ne!(new, id);
    let reply = server.client.delete(&path).await.expect(200).json();
    assert_eq!((&reply["settled"], &reply["removed"]), (&json!(false), &json!(true)), "{reply}");
    assert!(reply["detail"].as_str().unwrap().contains("unconfirmed"), "{reply}");
    assert!(!dir(&world, &id).exists());
}

#[tokio::test]
async fn f75_a_recycled_pid_is_never_signalled_and_the_job_is_removed_without_it() {
    let world = World::new();
    let app = world.project("app");
    let mut witness = world.witness("stranger").await;
    let id = "450f4654";
    std::fs::create_dir_all(dir(&world, id)).unwrap();
    let session = format!("{id}-059b-4282-b68e-91a110e7f06b");
    let state = json!({
        "state": "working", "tempo": "active", "cwd": app, "intent": "x", "sessionId": session
    });
    std::fs::write(dir(&world, id).join("state.json"), state.to_string()).unwrap();
    std::fs::create_dir_all(world.agent_home.join("daemon")).unwrap();
    let ticks = witness.process.start_ticks + 1;
    let roster = json!({ "proto": 1, "supervisorPid": 1, "workers": {
        id: { "pid": witness.process.pid, "procStart": ticks.to_string(), "sessionId": session }
    }});
    std::fs::write(world.agent_home.join("daemon/roster.json"), roster.to_string()).unwrap();
    let server = world.serve().await;
    let list = server.client.get("/api/v1/agents").await.expect(200).json();
    assert_eq!(list[0]["worker_alive"], json!(false));
    assert_eq!(list[0]["worker_pid"], Value::Null);
    let reply = server.client.delete(&format!("/api/v1/agents/{id}")).await.expect(200).json();
    assert_eq!((&reply["settled"], &reply["removed"]), (&json!(false), &json!(true)), "{reply}");
    witness.assert_untouched(&world).await;
}

#[tokio::test]
async fn f76_a_job_that_ignores_both_interrupts_is_still_live_and_never_killed() {
    let world = World::new();
    let mut knobs = endless();
    knobs["job_ignore_sigint"] = json!(true);
    world.project_with("app", knobs);
    let server = world.serve().await;
    let mut events = server.events().await;
    let id = start(&server, "app").await;
    let shown = until_alive(&mut events, &id, "working").await;
    let path = format!("/api/v1/agents/{id}");
    // Twenty seconds are the agent's to take; the deadline of the harness is longer.
    let refused = server.client.delete(&path).await;
    assert_eq!(refused.refused(409), "still_live");
    let pid = shown.worker_pid.unwrap();
    assert!(world.processes().iter().any(|process| process.pid == pid), "it lives on");
    assert!(dir(&world, &id).exists());
    let list = server.client.get("/api/v1/agents").await.expect(200).json();
    assert_eq!(list[0]["worker_pid"], json!(pid));
    agent(&world, &world.projects, &["stop", &id]);
    until_state(&mut events, &id, "stopped").await;
}

#[tokio::test]
async fn f75_a_job_whose_process_may_live_keeps_its_directory() {
    let world = World::new();
    world.project_with("app", endless());
    let server = world.serve().await;
    let mut events = server.events().await;
    let id = start(&server, "app").await;
    let shown = until_alive(&mut events, &id, "working").await;
    let path = format!("/api/v1/agents/{id}");
    let roster = world.agent_home.join("daemon/roster.json");
    let whole = std::fs::read(&roster).unwrap();
    let state = dir(&world, &id).join("state.json");
    // Nobody knows which process it is: torn, and then without the job although its session runs.
    for odd in ["{\"proto\":1,\"workers\":{\"", "{\"proto\":1,\"workers\":{}}"] {
        std::fs::write(&roster, odd).unwrap();
        assert_eq!(server.client.delete(&path).await.refused(409), "still_live", "{odd}");
        assert!(state.exists(), "{odd}");
    }
    // Its own file is torn as well.
    let words = std::fs::read(&state).unwrap();
    std::fs::write(&state, "{\"state\":\"wor").unwrap();
    assert_eq!(server.client.delete(&path).await.refused(409), "still_live");
    let pid = shown.worker_pid.unwrap();
    assert!(world.processes().iter().any(|process| process.pid == pid), "it lives on");
    std::fs::write(&state, words).unwrap();
    std::fs::write(&roster, whole).unwrap();
    let reply = server.client.delete(&path).await.expect(200).json();
    assert_eq!((&reply["settled"], &reply["removed"]), (&json!(true), &json!(true)), "{reply}");
}

#[tokio::test]
async fn a_job_whose_removal_the_agent_refuses_keeps_its_directory() {
    let world = World::new();
    let refusing = world.root.join("refusing-agent");
    let script = "#!/bin/sh\necho \"No job matching\" >&2\nexit 1\n";
    svc_programs::write(&refusing, script).unwrap();
    world.configure(json!({ "claude": { "binary": refusing } }));
    let id = "450f4654";
    std::fs::create_dir_all(dir(&world, id)).unwrap();
    std::fs::write(dir(&world, id).join("state.json"), r#"{"state":"done"}"#).unwrap();
    let server = world.serve().await;
    let reply = server.client.delete(&format!("/api/v1/agents/{id}")).await.expect(200).json();
    assert_eq!(reply["removed"], json!(false), "{reply}");
    assert!(reply["detail"].as_str().unwrap().contains("No job matching"), "{reply}");
    assert!(dir(&world, id).join("state.json").exists());
}

#[tokio::test]
async fn f57_a_job_with_a_cloud_door_is_neither_an_external_bridge_nor_adoptable() {
    let world = World::new();
    world.project_with("app", endless());
    let server = world.serve().await;
    let mut events = server.events().await;
    let body = json!({ "project": "app", "prompt": "work", "rc_name": "door" });
    let id = id_of(&server.client.post_json("/api/v1/agents", &body).await);
    until_alive(&mut events, &id, "working").await;
    // The bridge that is launched beside it is a new one, and the job is not counted as tracked.
    let bridge = server.client.run("app").await;
    assert!(!bridge.adopted);
    for path in ["/api/v1/sessions", "/api/v1/sessions/tracked"] {
        let sessions = server.client.get(path).await.expect(200).text();
        assert!(!sessions.contains("background"), "{path}: {sessions}");
    }
    assert_eq!(server.client.get("/api/v1/sessions/adoptable").await.expect(200).json(), json!([]));
}

#[tokio::test]
async fn a_repeated_dispatch_with_the_same_key_starts_one_job() {
    let world = World::new();
    world.project_with("app", quick("done"));
    let server = world.serve().await;
    let body = json!({ "project": "app", "prompt": "x" });
    let dispatch = || {
        let request = server.client.request(Method::POST, "/api/v1/agents");
        request.header("Idempotency-Key", "one").json(&body)
    };
    let (one, two) = tokio::join!(server.client.send(dispatch()), server.client.send(dispatch()));
    assert_eq!(id_of(&one), id_of(&two));
    assert_eq!(id_of(&server.client.send(dispatch()).await), id_of(&one));
    assert_eq!(dispatches(&world).len(), 1);
}
