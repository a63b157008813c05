//! Background jobs from outside: every state, live, and across restarts.

use crate::harness::{Events, Reply, Server, World, gone, simulator};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use svc_shared::api::jobs::BackgroundJob;
use svc_shared::internal::State;

/// It works until somebody ends it.
pub fn endless() -> Value {
    json!({ "job_script": [[0, { "state": "working", "detail": "busy" }]] })
}

/// It waits for an answer until somebody ends it.
fn waiting() -> Value {
    json!({ "job_script": [[0, { "state": "blocked", "tempo": "blocked", "needs": "an answer" }]] })
}

/// Events of a service with a job that waits for an answer, and the job's id.
async fn with_waiting_job(world: &World) -> (Server<'_>, Events, String) {
    world.project_with("app", waiting());
    let server = world.serve().await;
    let mut events = server.events().await;
    let id = start(&server, "app").await;
    until_alive(&mut events, &id, "blocked").await;
    (server, events, id)
}

/// It ends at once.
pub fn quick(state: &str) -> Value {
    let last = json!({ "state": state, "detail": "over", "result": "All is well." });
    json!({ "job_script": [[0, { "state": "working" }], [20, last]] })
}

/// Runs the agent itself, as a person at its terminal does.
pub fn agent(world: &World, cwd: &Path, args: &[&str]) -> String {
    let mut command = std::process::Command::new(simulator());
    command.args(args).current_dir(cwd).env_clear().envs(world.environment());
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

pub fn job(state: &State, id: &str) -> Option<BackgroundJob> {
    Some((**state.jobs.get(id)?).clone())
}

pub async fn until_state(events: &mut Events, id: &str, word: &str) -> BackgroundJob {
    let what = format!("job {id} {word}");
    events.until(&what, |state| job(state, id).filter(|job| job.state == word)).await
}

/// Waits for the job in this state, with its process.
/// A working job says so itself; the first file of a dispatch does not.
pub async fn until_alive(events: &mut Events, id: &str, word: &str) -> BackgroundJob {
    let what = format!("job {id} {word} with a process");
    let fits = |job: &BackgroundJob| {
        job.state == word && job.worker_alive && (word != "working" || job.detail == "busy")
    };
    events.until(&what, |state| job(state, id).filter(fits)).await
}

/// Dispatches and returns the id of the new job.
#[track_caller]
pub fn id_of(reply: &Reply) -> String {
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json()["id"].as_str().unwrap().to_owned()
}

pub async fn start(server: &Server<'_>, project: &str) -> String {
    let body = json!({ "project": project, "prompt": "look around" });
    id_of(&server.client.post_json("/api/v1/agents", &body).await)
}

pub fn dir(world: &World, id: &str) -> PathBuf {
    world.agent_home.join("jobs").join(id)
}

/// Argument lists of the dispatches that the agent got.
pub fn dispatches(world: &World) -> Vec<Vec<String>> {
    let argv = |call: &Value| -> Vec<String> {
        let words = call["argv"].as_array().unwrap();
        words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut all: Vec<Vec<String>> = world.calls().iter().map(argv).collect();
    all.retain(|words| words.first().is_some_and(|word| word == "--bg"));
    all
}

/// Projects whose jobs end up in one state each.
fn world_of_states() -> World {
    let world = World::new();
    world.project_with("at-work", endless());
    world.project_with("asks", waiting());
    for state in ["done", "failed", "paused"] {
        world.project_with(state, quick(state));
    }
    world
}

#[tokio::test]
async fn each_state_that_the_agent_writes_is_shown_live_and_in_the_lists() {
    let world = world_of_states();
    let server = world.serve().await;
    let mut events = server.events().await;
    for (project, word) in [
        ("at-work", "working"),
        ("asks", "blocked"),
        ("done", "done"),
        ("failed", "failed"),
        // A word of a newer agent.
        ("paused", "paused"),
    ] {
        let id = start(&server, project).await;
        let shown = until_state(&mut events, &id, word).await;
        assert_eq!(shown.project.as_deref(), Some(project));
        assert_eq!(shown.intent, "look around");
        assert_eq!(shown.cwd.as_deref(), world.projects.join(project).to_str());
        assert_eq!(shown.session_ref.map(|token| token.to_string().len()), Some(16));
        match word {
            "blocked" => assert_eq!(shown.needs.as_deref(), Some("an answer")),
            "done" | "failed" => assert_eq!(shown.result.as_deref(), Some("All is well.")),
            _ => {}
        }
    }
    // Stopped by hand, with the agent itself.
    let id = start(&server, "at-work").await;
    until_alive(&mut events, &id, "working").await;
    agent(&world, &world.projects, &["stop", &id]);
    let stopped = until_state(&mut events, &id, "stopped").await;
    assert!(!stopped.worker_alive && stopped.worker_pid.is_none());

    let list = server.client.get("/api/v1/agents").await.expect(200).json();
    let state = server.client.get("/api/state").await.expect(200).json();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 6);
    for row in list {
        assert_eq!(&state["state"]["jobs"][row["id"].as_str().unwrap()], row);
    }
    let changes: Vec<&str> = list.iter().map(|row| row["updated_at"].as_str().unwrap()).collect();
    assert!(changes.is_sorted_by(|a, b| a >= b), "{changes:?}");
    let one = server.client.get("/api/agents?project=asks").await.expect(200).json();
    assert_eq!(one.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn h29_a_dispatch_reaches_the_agent_word_for_word() {
    let world = World::new();
    let app = world.project_with("app", endless());
    let server = world.serve().await;
    let prompt = "--dangerously-skip-permissions\n$(touch planted); `x`";
    let full = json!({
        "project": "app", "prompt": prompt, "rc_name": "night work", "model": "opus",
        "permission_mode": "plan", "permision_mode": "auto",
    });
    let reply = server.client.post_json("/api/v1/agents", &full).await.expect(201);
    let warnings = reply.json()["warnings"].as_array().unwrap().clone();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].as_str().unwrap().contains("permision_mode"));
    let plain = json!({ "project": "app", "prompt": "x", "permission_mode": "inherit" });
    server.client.post_json("/api/v1/agents", &plain).await.expect(201);
    let named = json!({ "project": "app", "rc_name": "door" });
    server.client.post_json("/api/v1/agents", &named).await.expect(201);
    let expected = [
        vec![
            "--bg",
            "--rc",
            "night work",
            "--model",
            "opus",
            "--permission-mode",
            "plan",
            "--",
            prompt,
        ],
        vec!["--bg", "--", "x"],
        vec!["--bg", "--rc", "door", "--permission-mode", "default"],
    ];
    assert_eq!(dispatches(&world), expected);
    assert!(!app.join("planted").exists());
    let call = world.calls().into_iter().find(|call| call["argv"][0] == "--bg").unwrap();
    assert_eq!(call["cwd"].as_str().map(Path::new), Some(&*app));
    assert_eq!(call["tty"], json!(false));
    let names = call["env_names"].as_array().unwrap();
    assert!(!names.iter().any(|name| name.as_str().unwrap().starts_with("SVC_")), "{names:?}");
    let leftovers = std::fs::read_dir(world.state.join("run")).unwrap();
    let leftovers: Vec<_> = leftovers.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(leftovers, ["notify.sock"], "no output of the agent stays behind");
}

#[tokio::test]
async fn a_stop_is_confirmed_announced_and_done_once_for_all_who_ask() {
    let world = World::new();
    world.project_with("app", endless());
    let server = world.serve().await;
    let mut events = server.events().await;
    let body = json!({ "project": "app", "prompt": "work", "rc_name": "door" });
    let id = id_of(&server.client.post_json("/api/v1/agents", &body).await);
    let registered = events.until("a door", |state| {
        job(state, &id).filter(|job| job.remote_registered && job.worker_alive)
    });
    let shown = registered.await;
    let path = format!("/api/v1/agents/{id}");
    let (one, two) = tokio::join!(server.client.delete(&path), server.client.delete(&path));
    let expected = json!({ "id": id, "settled": true, "removed": true, "detail": null });
    assert_eq!(one.expect(200).json(), expected);
    assert_eq!(two.expect(200).json(), expected);
    events.until("the job gone", |state| (!state.jobs.contains_key(&id)).then_some(())).await;
    assert!(!dir(&world, &id).exists());
    let pid = shown.worker_pid.unwrap();
    assert!(world.processes().iter().all(|process| process.pid != pid), "its host is gone");
    let announced = events.until_happened("bg-settled").await;
    assert_eq!(announced["id"], json!(id));
    assert_eq!(announced["settled"], json!(true));
    assert_eq!(announced["event_type"], json!("bg-settled"));
    assert_eq!(server.client.delete(&path).await.refused(404), "unknown_job");
    let remote = std::fs::read_to_string(world.agent_home.join(".agent-sim/remote.json")).unwrap();
    assert!(!remote.contains("\"active\""), "the cloud door was closed: {remote}");
}

/// The service announces the stop of a command as its own.
#[tokio::test]
async fn a_job_that_a_command_stopped_is_announced_once() {
    let world = World::new();
    let (server, mut events, id) = with_waiting_job(&world).await;
    let stopped = world.cli(&["jobs", "stop", &id, "--json"]).await.ok();
    let stopped: serde_json::Value = serde_json::from_str(&stopped.stdout).expect("JSON");
    let announced = events.until_happened("bg-settled").await;
    for field in ["id", "settled", "removed", "detail"] {
        assert_eq!(announced[field], stopped[field], "{field}");
    }
    assert_eq!((&announced["id"], &announced["settled"]), (&json!(id), &json!(true)));
    // A later change is shown, and nothing was announced twice until then.
    server.client.run("app").await;
    events.until_status("app", "running").await;
    let told = events.happened.iter().filter(|(name, _)| name == "bg-settled").count();
    assert_eq!(told, 1);
}

#[tokio::test]
async fn a_waiting_job_is_settled_although_its_file_does_not_say_so() {
    let world = World::new();
    let (server, _events, id) = with_waiting_job(&world).await;
    let reply = server.client.delete(&format!("/api/agents/{id}")).await.expect(200).json();
    assert_eq!((&reply["settled"], &reply["removed"]), (&json!(true), &json!(true)), "{reply}");
}

#[tokio::test]
async fn every_state_survives_a_restart_of_the_service_and_of_the_agents_own() {
    let world = world_of_states();
    let server = world.serve().await;
    let mut events = server.events().await;
    let mut states = Vec::new();
    for (project, word) in [
        ("at-work", "working"),
        ("asks", "blocked"),
        ("done", "done"),
        ("failed", "failed"),
        ("paused", "paused"),
        ("at-work", "stopped"),
    ] {
        let id = start(&server, project).await;
        if word == "stopped" {
            until_alive(&mut events, &id, "working").await;
            agent(&world, &world.projects, &["stop", &id]);
        }
        states.push((id, word));
    }
    // What no restart may change: all but the times.
    let settled = |state: &State| {
        let facts = |(id, word): &(String, &str)| {
            let job = job(state, id)?;
            let lives = ["working", "blocked", "paused"].contains(word);
            let is_whole = job.state == *word && job.worker_alive == lives;
            let says = job.state != "working" || job.detail == "busy";
            (is_whole && says).then_some((job.state, job.worker_pid, job.needs, job.result))
        };
        states.iter().map(facts).collect::<Option<Vec<_>>>()
    };
    let before = events.until("every state", settled).await;
    drop(events);
    server.kill().await;

    let server = world.serve().await;
    let mut events = server.events().await;
    assert_eq!(events.until("every state again", settled).await, before);
    let lock = std::fs::read_to_string(world.agent_home.join("daemon.lock")).unwrap();
    let lock: Value = serde_json::from_str(&lock).unwrap();
    let service = lock["pid"].as_i64().unwrap();
    let daemon = world.processes().into_iter().find(|p| i64::from(p.pid) == service).unwrap();
    daemon.signal(rustix::process::Signal::KILL);
    gone(&daemon).await;
    // The next dispatch starts the agent's service again, which takes the jobs over.
    let next = start(&server, "at-work").await;
    until_alive(&mut events, &next, "working").await;
    assert_eq!(events.until("every state at last", settled).await, before);
}

#[tokio::test]
async fn jobs_survive_a_restart_of_the_service_and_of_the_agents_own() {
    let world = World::new();
    world.project_with("app", endless());
    let server = world.serve().await;
    let mut events = server.events().await;
    let first = start(&server, "app").await;
    let before = until_alive(&mut events, &first, "working").await;
    drop(events);
    server.kill().await;

    let server = world.serve().await;
    let after = server.client.get("/api/v1/agents").await.expect(200).json();
    assert_eq!(after[0]["id"], json!(first));
    assert_eq!(after[0]["worker_pid"], json!(before.worker_pid), "the same process");

    let lock = std::fs::read_to_string(world.agent_home.join("daemon.lock")).unwrap();
    let lock: Value = serde_json::from_str(&lock).unwrap();
    let service = lock["pid"].as_i64().unwrap();
    let daemon = world.processes().into_iter().find(|p| i64::from(p.pid) == service).unwrap();
    daemon.signal(rustix::process::Signal::KILL);
    gone(&daemon).await;
    let mut events = server.events().await;
    until_alive(&mut events, &first, "working").await;
    // The next dispatch starts the agent's service again, which takes the first job over.
    let second = start(&server, "app").await;
    until_alive(&mut events, &second, "working").await;
    let still = until_alive(&mut events, &first, "working").await;
    assert_eq!(still.worker_pid, before.worker_pid);
    let reply = server.client.delete(&format!("/api/v1/agents/{first}")).await.expect(200).json();
    assert_eq!(reply["removed"], json!(true), "{reply}");
}

#[tokio::test]
async fn an_ended_job_goes_on_as_a_new_one_with_model_and_mode() {
    let world = World::new();
    let app = world.project_with("app", quick("done"));
    world.project_with("busy", endless());
    let server = world.serve().await;
    let mut events = server.events().await;
    let body =
        json!({ "project": "app", "prompt": "x", "model": "opus", "permission_mode": "plan" });
    let old = id_of(&server.client.post_json("/api/v1/agents", &body).await);
    events
        .until("the end", |state| {
            job(state, &old).filter(|job| job.state == "done" && !job.worker_alive)
        })
        .await;
    let path = format!("/api/v1/agents/{old}/resume");
    let reply = server.client.post(&path).await;
    let new = id_of(&reply);
    assert_ne!(new, old);
    assert_eq!(reply.json(), json!({ "id": new }));
    events.until("the new job", |state| job(state, &new)).await;
    let file = std::fs::read_to_string(dir(&world, &old).join("state.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let session = file["sessionId"].as_str().unwrap();
    let resumed = vec!["--bg", "--resume", session, "--model", "opus", "--permission-mode", "plan"];
    assert_eq!(dispatches(&world).last().unwrap(), &resumed);

    let key = |key: &str| server.client.request(Method::POST, &path).header("Idempotency-Key", key);
    let (one, two) = tokio::join!(server.client.send(key("k")), server.client.send(key("k")));
    assert_eq!(id_of(&one), id_of(&two), "a repeated request starts nothing");

    let live = start(&server, "busy").await;
    until_alive(&mut events, &live, "working").await;
    let refused = server.client.post(&format!("/api/v1/agents/{live}/resume")).await;
    assert_eq!(refused.refused(409), "still_live");
    std::fs::remove_dir_all(app).unwrap();
    assert_eq!(server.client.post(&path).await.refused(409), "not_resumable");
}

#[tokio::test]
async fn trust_and_the_ceiling_hold_for_jobs_as_for_bridges() {
    let world = World::new();
    let app = world.untrusted("app");
    world.set_knobs("app", quick("done"));
    let server = world.serve().await;
    let dispatch = |body: Value| {
        let server = &server;
        async move { server.client.post_json("/api/v1/agents", &body).await }
    };
    let body = json!({ "project": "app", "prompt": "x" });
    let before = std::fs::read(world.agent_config()).unwrap();
    assert_eq!(dispatch(body.clone()).await.refused(409), "not_trusted");
    let bypass = json!({
        "project": "app", "prompt": "x", "trust": true, "permission_mode": "bypassPermissions"
    });
    assert_eq!(dispatch(bypass).await.refused(403), "bypass_forbidden");
    let silent = json!({ "project": "app", "trust": true });
    assert_eq!(dispatch(silent).await.refused(422), "invalid_value");
    assert_eq!(std::fs::read(world.agent_config()).unwrap(), before, "nothing was granted");
    assert_eq!(dispatches(&world), Vec::<Vec<String>>::new());

    let trusting = json!({ "project": "app", "prompt": "x", "trust": true });
    let id = id_of(&dispatch(trusting).await);
    id_of(&dispatch(body).await);
    // A stored mode obeys the ceiling of today.
    let mut events = server.events().await;
    until_state(&mut events, &id, "done").await;
    let file = dir(&world, &id).join("state.json");
    let mut state: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    state["respawnFlags"] = json!(["--permission-mode", "bypassPermissions"]);
    std::fs::write(&file, state.to_string()).unwrap();
    let resume = server.client.post(&format!("/api/v1/agents/{id}/resume")).await;
    assert_eq!(resume.refused(403), "bypass_forbidden");
    // Settings of the project would turn it on where no flag is passed.
    std::fs::create_dir_all(app.join(".claude")).unwrap();
    let settings = r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#;
    std::fs::write(app.join(".claude/settings.json"), settings).unwrap();
    let inherit = json!({ "project": "app", "prompt": "x", "permission_mode": "inherit" });
    assert_eq!(dispatch(inherit).await.refused(403), "bypass_forbidden");
}

#[tokio::test]
async fn the_terminal_drives_jobs_beside_a_service_and_without_one() {
    let world = World::new();
    world.project_with("app", endless());
    assert_eq!(world.cli(&["jobs", "list", "--json"]).await.ok().json(), json!([]));
    let started = world.cli(&["jobs", "start", "app", "look", "--json"]).await.ok().json();
    let id = started["id"].as_str().unwrap().to_owned();
    let server = world.serve().await;
    let mut events = server.events().await;
    until_alive(&mut events, &id, "working").await;
    let listed = world.cli(&["jobs", "list", "--json"]).await.ok().json();
    assert_eq!(listed[0]["id"], json!(id));
    assert_eq!(listed[0]["worker_alive"], json!(true));
    let table = world.cli(&["jobs", "list"]).await.ok().stdout;
    assert!(table.starts_with("JOB") && table.contains("busy"), "{table}");

    let stopped = world.cli(&["jobs", "stop", &id]).await.ok();
    assert_eq!(stopped.stdout, format!("stopped {id} settled=yes removed=yes\n"));
    events.until("the job gone", |state| (!state.jobs.contains_key(&id)).then_some(())).await;
    server.stop().await;

    world.set_knobs("app", quick("done"));
    let started = world.cli(&["jobs", "start", "app", "look"]).await.ok().stdout;
    let id = started.strip_prefix("started ").unwrap()[..8].to_owned();
    world
        .until("the end", || {
            let text = std::fs::read_to_string(dir(&world, &id).join("state.json")).ok()?;
            text.contains("\"done\"").then_some(())
        })
        .await;
    let resumed = world.cli(&["jobs", "resume", &id]).await.ok().stdout;
    assert!(resumed.starts_with(&format!("resumed {id} as ")), "{resumed}");
    for (args, words) in [
        (vec!["jobs", "stop", "xyz"], "job id"),
        (vec!["jobs", "stop", "0123abcd"], "no background job"),
        (vec!["jobs", "resume", "0123abcd"], "no background job"),
        (vec!["jobs", "start", "nope", "x"], "no project"),
        (vec!["jobs", "start", "app"], "`prompt`"),
        (vec!["jobs", "start", "app", "x", "--model", "-x"], "`model`"),
    ] {
        let refused = world.cli(&args).await;
        assert_eq!(refused.code, Some(2), "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{args:?}: {}", refused.stderr);
    }
}
