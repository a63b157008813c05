//! Why a session stopped: one report of every kind of session.

use crate::direct_sessions;
use crate::harness::{Server, World, within};
use crate::jobs::{quick, start, until_state};
use crate::sessions_in_terminals::{SAID, ready, session, talked_to, until_said};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;

/// A credential of the remote service, as an agent might print it by mistake.
const SECRET: &str = "sk-ant-api03-not-a-real-key-0123456789abcdefghijklmnopqrstuvwxyz";

/// Adds to what the agent of the only session has printed.
pub fn print(world: &World, text: &str) {
    let logs = fs::read_dir(world.state_dir().join("logs")).unwrap().flatten();
    let output = logs.map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".stderr.log"))
    });
    let mut file = fs::File::options().append(true).open(output.unwrap()).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

async fn report(server: &Server<'_>, reference: &str) -> Value {
    server.client.get(&format!("/api/instances/{reference}/report")).await.expect(200).json()
}

fn kinds(report: &Value) -> Vec<&str> {
    report["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect()
}

fn all(report: &Value, list: &str) -> String {
    report[list].to_string()
}

#[tokio::test]
async fn a_kill_is_reported_with_its_signal_what_was_used_and_the_last_output() {
    let world = World::with(json!({ "metrics": { "poll_seconds": 1.0 } }));
    let knobs = json!({ "memory_mb": 64 });
    world.project_with("app", knobs);
    let server = world.serve().await;
    let mut page = server.events().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let runs = server.client.get(&format!("/api/instances/{id}/report")).await;
    assert_eq!(runs.refused(409), "still_live");
    within("a sample", async {
        while server.client.get("/api/metrics").await.json()[&id]["rss_bytes"].as_u64()
            < Some(64 << 20)
        {
            page.next().await;
        }
    })
    .await;
    print(&world, &format!("the key is {SECRET}\nlast words\n"));
    world.bridges_of("app")[0].signal(Signal::KILL);
    page.until_status("app", "crashed").await;

    let found = report(&server, &id).await;
    assert_eq!((&found["kind"], &found["reason"]), (&json!("server-mode"), &json!("killed")));
    assert_eq!((&found["exit_signal"], &found["exit_code"]), (&json!(9), &Value::Null));
    assert_eq!(found["cause"], "Killed by signal KILL (137), possibly out of memory.");
    assert!(found["last_use"]["rss_bytes"].as_u64() >= Some(64 << 20), "{found}");
    assert!(
        found["last_use"]["peak_rss_bytes"].as_u64() >= found["last_use"]["rss_bytes"].as_u64()
    );
    assert!(all(&found, "evidence").contains("did not come from this service"), "{found}");
    assert!(all(&found, "next").contains(&format!("svc resume {}", &id[..8])), "{found}");
    assert_eq!(kinds(&found), ["spawned", "ready", "crashed"]);
    let output = found["output"].as_array().unwrap();
    assert!(output.iter().any(|one| one["source"] == "output"), "{found}");
    assert!(output.iter().any(|one| one["source"] == "log"), "{found}");
    assert!(all(&found, "output").contains("last words"), "{found}");
    assert!(!found.to_string().contains(SECRET), "{found}");
    let private = world.state_dir().display().to_string();
    assert!(!found.to_string().contains(&private), "it is made to be passed on: {found}");

    // The command says the same, also when no service runs.
    let markdown = found["markdown"].as_str().unwrap();
    assert!(markdown.contains("- Signal: 9") && markdown.contains("## Evidence"), "{markdown}");
    server.stop().await;
    let printed = world.cli(&["report", "app"]).await.ok().stdout;
    assert_eq!(printed.trim_end(), markdown.trim_end());
    let again = world.cli(&["report", &id, "--json"]).await.ok().json();
    assert_eq!(again["last_use"], found["last_use"]);
    assert!(!world.cli(&["report", "nothing-like-it"]).await.stderr.is_empty());
}

#[tokio::test]
async fn a_stop_names_who_asked_for_it() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let found = report(&server, &id).await;
    assert_eq!(found["asked"]["by"], "admin", "{found}");
    assert_eq!(kinds(&found), ["spawned", "ready", "stop_asked", "ended"]);

    let mut page = server.events().await;
    server.client.resume(&id).await.expect(200);
    page.until_status("app", "running").await;
    world.cli(&["stop", &id]).await.ok();
    page.until_status("app", "stopped").await;
    let found = report(&server, &id).await;
    let by = found["asked"]["by"].as_str().unwrap();
    assert!(by.starts_with("cli:"), "{found}");
    assert_eq!(found["generation"], 2);
    assert_eq!(kinds(&found).iter().filter(|kind| **kind == "stop_asked").count(), 2);
    assert!(found["cause"].as_str().unwrap().contains("by a command"), "{found}");

    // What is forgotten has no report.
    server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);
    server.client.get(&format!("/api/instances/{id}/report")).await.refused(404);
}

#[tokio::test]
async fn an_interactive_session_is_reported_with_its_last_screen() {
    let world = World::with(json!({ "claude": { "pty_screen_enabled": true } }));
    world.project_with("app", talked_to());
    let server = world.serve().await;
    let row = ready(&server, session("app")).await;
    until_said(&world, &row).await;
    let id = row.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let found = report(&server, &id).await;
    assert_eq!(found["kind"], "interactive");
    let screen = found["output"].as_array().unwrap().iter().find(|one| one["source"] == "screen");
    assert!(screen.unwrap().to_string().contains(SAID), "{found}");
}

#[tokio::test]
async fn a_direct_session_is_reported_with_who_stopped_it() {
    let world = direct_sessions::enabled();
    let server = world.serve().await;
    let id = direct_sessions::launch(&server).await.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let found = report(&server, &id).await;
    assert_eq!((&found["kind"], &found["asked"]["by"]), (&json!("direct"), &json!("admin")));
    assert_eq!(kinds(&found), ["spawned", "ready", "stop_asked", "ended"], "{found}");
}

#[tokio::test]
async fn a_background_job_is_reported_by_its_own_id() {
    let world = World::new();
    world.project_with("app", quick("failed"));
    let server = world.serve().await;
    let mut events = server.events().await;
    let id = start(&server, "app").await;
    until_state(&mut events, &id, "failed").await;
    let found = report(&server, &id).await;
    assert_eq!((&found["kind"], &found["cause"]), (&json!("job"), &json!("The job failed.")));
    assert!(all(&found, "output").contains("All is well."), "{found}");
    assert!(all(&found, "next").contains(&format!("svc jobs resume {id}")), "{found}");
    let printed = world.cli(&["report", &id]).await.ok().stdout;
    assert!(printed.contains("background job"), "{printed}");
}

/// A report is made to be passed on.
#[tokio::test]
async fn the_report_of_a_job_does_not_say_where_this_machine_keeps_things() {
    let world = World::new();
    let result = "I wrote /srv/somebody/notes.md";
    let last = json!({ "state": "failed", "detail": "over", "result": result });
    world.project_with("app", json!({ "job_script": [[0, { "state": "working" }], [20, last]] }));
    let server = world.serve().await;
    let mut events = server.events().await;
    let id = start(&server, "app").await;
    until_state(&mut events, &id, "failed").await;
    let home = [("HOME", "/srv/somebody")];
    for args in [&["report", &id][..], &["report", &id, "--json"]] {
        let told = world.cli_with(args, &home).await.ok().stdout;
        assert!(told.contains("I wrote ~/notes.md") && !told.contains("somebody"), "{told}");
    }
}
