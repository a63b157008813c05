//! Automatic restarts: counted, delayed, given up, cancelled, never doubled.

use crate::harness::{Events, Process, Server, World, gone, simulator, within};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Stdio};
use svc_shared::api::instances::Instance;

/// Short delays: a test waits for events, never for a time.
fn policy(policy: &str, changes: Value) -> Value {
    let mut restart = json!({
        "policy": policy, "initial_delay_seconds": 0.05, "max_delay_seconds": 0.2,
        "stable_after_seconds": 600,
    });
    let members = changes.as_object().cloned().unwrap_or_default();
    restart.as_object_mut().unwrap().extend(members);
    json!({ "restart": restart, "observability": { "prometheus_enabled": true } })
}

/// A world whose agents follow these rules, one start after the other.
fn scenario(world: &World, rules: Value) {
    let file = world.root.join("scenario.json");
    std::fs::write(&file, json!({ "rules": rules }).to_string()).unwrap();
    world.configure(json!({ "claude": { "env": { "AGENT_SIM_SCENARIO": file } } }));
}

/// Starts of a bridge in the project, as the agent counts them.
fn starts(world: &World, project: &str) -> usize {
    world.starts(project).len()
}

async fn until(page: &mut Events, what: &str, look: impl Fn(&Instance) -> bool) -> Instance {
    page.until(what, |state| {
        state.instances.values().find(|row| look(row)).map(|row| (**row).clone())
    })
    .await
}

/// Waits for so many crashes that were told.
/// Returns whether each said that it was the last.
async fn crashes(page: &mut Events, count: usize) -> Vec<bool> {
    within("the notices of crashes", async {
        loop {
            let told = page.happened.iter().filter(|(name, _)| name == "crash");
            let told: Vec<bool> =
                told.map(|(_, data)| data["restart_quarantined"] == true).collect();
            if told.len() >= count {
                return told;
            }
            page.next().await;
        }
    })
    .await
}

fn is_waiting(row: &Instance) -> bool {
    row.restart.state.to_string() == "waiting"
}

fn has_given_up(row: &Instance) -> bool {
    row.restart.state.to_string() == "quarantined"
}

fn is_running(row: &Instance, generation: u32) -> bool {
    row.status.to_string() == "running" && row.generation == generation
}

async fn end(bridge: &Process) {
    bridge.signal(Signal::KILL);
    gone(bridge).await;
}

/// Leaves a killed bridge of `app` and a killed service.
/// The restart of the bridge is due in ten minutes.
async fn waiting_without_a_service(world: &World) {
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let mut page = server.events().await;
    end(&world.bridges_of("app")[0]).await;
    until(&mut page, "a restart that is due", is_waiting).await;
    server.kill().await;
}

async fn make_due(world: &World) {
    let due = "UPDATE bridges SET next_restart_at = 1 WHERE next_restart_at IS NOT NULL";
    assert_eq!(world.sql(due).await.unwrap(), 1);
}

async fn scraped(server: &Server<'_>) -> String {
    server.client.get("/metrics").await.expect(200).text()
}

#[tokio::test]
async fn h112_three_crashes_in_a_row_are_followed_by_three_restarts() {
    let world = World::with(policy("on-crash", json!({ "stable_after_seconds": 1 })));
    let crash = json!({ "exit_after_ready_ms": 30, "exit_code": 3 });
    scenario(
        &world,
        json!([
            { "match": { "form": "standard", "nth": 1 }, "set": crash },
            { "match": { "form": "standard", "nth": 2 }, "set": crash },
            { "match": { "form": "standard", "nth": 3 }, "set": crash },
        ]),
    );
    world.project("app");
    let server = world.serve().await;
    let mut page = server.events().await;
    server.client.launch("app").await.expect(201);
    let row = until(&mut page, "the fourth generation", |row| is_running(row, 4)).await;
    assert_eq!((row.restart.policy.to_string(), row.restart.attempt), ("on-crash".into(), 3));
    assert_eq!(row.quarantined, None);
    // A stable run forgets the crashes.
    until(&mut page, "a stable run", |row| row.restart.attempt == 0).await;
    let count = |name: &str| page.happened.iter().filter(|(told, _)| told == name).count();
    assert_eq!((count("crash"), count("spawn"), count("ready")), (3, 4, 4));
    assert_eq!(starts(&world, "app"), 4);
    let metrics = scraped(&server).await;
    assert!(metrics.contains("svc_bridge_restarts_total{project=\"app\"} 3"), "{metrics}");
    assert_eq!(world.agree().await.bridges.len(), 1);
}

#[tokio::test]
async fn h112_a_bridge_that_crashes_for_ever_is_given_up_after_five_starts_with_one_notice() {
    let world = World::with(policy("on-crash", json!({})));
    world.project_with("app", json!({ "exit_after_ready_ms": 20, "exit_code": 1 }));
    let server = world.serve().await;
    let mut page = server.events().await;
    let id = server.client.launch("app").await.expect(201).instance().instance_id.to_string();
    let row = until(&mut page, "the end of the restarts", has_given_up).await;
    assert_eq!(row.status.to_string(), "crashed");
    let held = row.quarantined.clone().unwrap();
    assert_eq!(
        (held.kind.to_string().as_str(), &*held.code),
        ("crash-loop", "restart_quarantined")
    );
    assert_eq!((row.restart.crashes_in_window, row.restart.next_at), (5, None));
    assert!(row.resumable, "a person may try again: {row:?}");
    assert_eq!(crashes(&mut page, 5).await, [false, false, false, false, true]);
    assert_eq!(starts(&world, "app"), 5);

    let shown = world.cli(&["status"]).await.ok().stdout;
    assert!(shown.contains("gave up after 5 crashes"), "{shown}");
    // It stays given up over a restart of the service.
    server.kill().await;
    let server = world.serve().await;
    world.agree().await;
    assert_eq!(starts(&world, "app"), 5);
    let released = server.client.post(&format!("/api/instances/{id}/release")).await.expect(200);
    assert_eq!((released.instance().quarantined, starts(&world, "app")), (None, 5));
    // A person's Resume begins anew.
    world.set_knobs("app", json!({}));
    let resumed = world.cli(&["resume", "app", "--json"]).await.ok().json();
    assert_eq!(resumed["resumed"], true);
    let row = server.client.instance(&id).await.expect(200).instance();
    assert_eq!((row.restart.attempt, row.restart.crashes_in_window), (0, 0));
}

#[tokio::test]
async fn h112_restarts_that_fail_before_they_are_ready_are_given_up_as_well() {
    let world = World::with(policy("on-crash", json!({})));
    scenario(
        &world,
        json!([
            { "match": { "form": "standard", "nth": 1 }, "set": { "exit_after_ready_ms": 20, "exit_code": 1 } },
            { "match": { "form": "standard" }, "set": { "fatal": "network" } },
        ]),
    );
    world.project("app");
    let server = world.serve().await;
    let mut page = server.events().await;
    server.client.launch("app").await.expect(201);
    let row = until(&mut page, "the end of the restarts", has_given_up).await;
    assert_eq!(row.status.to_string(), "error");
    let said = crashes(&mut page, 2).await;
    assert_eq!(said, [false, true], "the crash, and once that it stays down");
    assert_eq!(starts(&world, "app"), 5);
}

#[tokio::test]
async fn h112_a_stop_during_the_wait_is_not_undone() {
    for by_command in [false, true] {
        let world = World::with(policy(
            "always",
            json!({
                "initial_delay_seconds": 600, "max_delay_seconds": 600,
            }),
        ));
        world.project("app");
        let server = world.serve().await;
        let id = server.client.run("app").await.instance_id.to_string();
        let mut page = server.events().await;
        end(&world.bridges_of("app")[0]).await;
        let row = until(&mut page, "a restart that is due", is_waiting).await;
        assert!(row.restart.next_at.is_some());
        match by_command {
            true => drop(world.cli(&["stop", "app"]).await.ok()),
            false => drop(server.client.stop(&id).await.expect(200)),
        }
        let row = until(&mut page, "a cancelled restart", |row| !is_waiting(row)).await;
        assert_eq!((row.restart.next_at, row.status.to_string()), (None, "crashed".into()));
        server.kill().await;
        let server = world.serve().await;
        world.agree().await;
        let row = server.client.instance(&id).await.expect(200).instance();
        assert_eq!((row.generation, row.restart.state.to_string()), (1, "idle".into()));
        assert_eq!(starts(&world, "app"), 1);
    }
}

#[tokio::test]
async fn h112_a_killed_service_neither_forgets_nor_doubles_a_restart() {
    let world = World::with(policy(
        "on-crash",
        json!({
            "initial_delay_seconds": 600, "max_delay_seconds": 600,
        }),
    ));
    waiting_without_a_service(&world).await;
    make_due(&world).await;
    let server = world.serve().await;
    let mut page = server.events().await;
    until(&mut page, "the restart", |row| is_running(row, 2)).await;
    server.kill().await;
    let server = world.serve().await;
    world.agree().await;
    assert_eq!(starts(&world, "app"), 2);
    assert_eq!(server.client.instances().await.len(), 1);
}

#[tokio::test]
async fn a_crash_while_no_service_runs_is_followed_by_a_restart_too() {
    let world = World::with(policy("on-crash", json!({})));
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    server.kill().await;
    end(&world.bridges_of("app")[0]).await;
    let server = world.serve().await;
    let mut page = server.events().await;
    until(&mut page, "the restart", |row| is_running(row, 2)).await;
    assert_eq!(starts(&world, "app"), 2);
}

#[tokio::test]
async fn an_exit_with_code_0_is_restarted_by_always_only() {
    for (word, restarts) in [("on-crash", false), ("always", true)] {
        let world = World::new();
        scenario(
            &world,
            json!([
                { "match": { "form": "standard", "nth": 1 }, "set": { "exit_after_ready_ms": 20, "exit_code": 0 } },
            ]),
        );
        world.configure(policy("never", json!({})));
        world.project("app");
        let server = world.serve().await;
        let mut page = server.events().await;
        let wanted = json!({ "project": "app", "restart": word });
        let row = server.client.launch_with(wanted).await.expect(201).instance();
        assert_eq!(row.restart.policy.to_string(), word, "its own policy acts");
        if restarts {
            until(&mut page, "the restart", |row| is_running(row, 2)).await;
        } else {
            let row = page.until_status("app", "crashed").await;
            assert_eq!((row.restart.state.to_string(), row.exit_code), ("idle".into(), Some(0)));
        }
    }
}

pub fn auth(world: &World, verb: &str) {
    let mut agent = Command::new(simulator())
        .args(["auth", verb])
        .env_clear()
        .envs(world.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // A logout reads nothing.
    let _ = agent.stdin.take().unwrap().write_all(b"code#state\n");
    assert!(agent.wait().unwrap().success());
}

#[tokio::test]
async fn a_logged_out_agent_pauses_the_restart_until_the_login() {
    let world = World::with(policy("on-crash", json!({})));
    world.configure(json!({ "claude": { "env": { "AGENT_SIM_AUTH": "logged_out" } } }));
    auth(&world, "login");
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let mut page = server.events().await;
    auth(&world, "logout");
    end(&world.bridges_of("app")[0]).await;
    let is_paused = |row: &Instance| {
        row.notice.as_deref().is_some_and(|notice| notice.contains("not logged in"))
    };
    let row = until(&mut page, "the pause", is_paused).await;
    assert!(is_waiting(&row));
    assert_eq!(starts(&world, "app"), 1);
    auth(&world, "login");
    let row = until(&mut page, "the restart", |row| is_running(row, 2)).await;
    assert_eq!(row.notice, None);
    assert_eq!(starts(&world, "app"), 2);
}

#[tokio::test]
async fn a_restart_waits_for_a_free_place_and_is_given_up_without_its_directory() {
    let world = World::with(policy(
        "on-crash",
        json!({
            "initial_delay_seconds": 600, "max_delay_seconds": 600,
        }),
    ));
    world.configure(json!({ "instance_defaults": { "max_bridges": 1 } }));
    world.project("other");
    waiting_without_a_service(&world).await;
    let server = world.serve().await;
    server.client.run("other").await;
    server.kill().await;
    make_due(&world).await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let row = until(&mut page, "a later restart", |row| row.restart.attempt == 1).await;
    assert!(is_waiting(&row) && row.restart.crashes_in_window == 1, "{row:?}");
    server.client.stop("other").await.expect(200);
    server.kill().await;
    make_due(&world).await;
    std::fs::remove_dir_all(world.projects.join("app")).unwrap();
    let server = world.serve().await;
    let mut page = server.events().await;
    let called_off = |row: &Instance| {
        row.notice.as_deref().is_some_and(|notice| notice.starts_with("not restarted: "))
    };
    let row = until(&mut page, "the end of the restarts", called_off).await;
    assert_eq!((row.restart.next_at, row.project.as_str()), (None, "app"));
    assert_eq!(starts(&world, "app"), 1);
}

#[tokio::test]
async fn the_policy_of_a_row_is_set_by_command_and_api_and_shown_as_it_acts() {
    let world = World::with(policy("always", json!({})));
    world.project("app");
    let server = world.serve().await;
    let started = world.cli(&["start", "app", "--restart", "never", "--json"]).await.ok().json();
    assert_eq!(started["restart"]["policy"], "never");
    let set = world.cli(&["restart-policy", "app", "on-crash", "--json"]).await.ok().json();
    assert_eq!(set["restart"]["policy"], "on-crash");
    let inherited = world.cli(&["restart-policy", "app", "inherit", "--json"]).await.ok().json();
    assert_eq!(inherited["restart"]["policy"], "always");
    let wrong = world.cli(&["restart-policy", "app", "sometimes"]).await;
    assert!(wrong.stderr.contains("never, on-crash, always"), "{}", wrong.stderr);
    let id = started["instance_id"].as_str().unwrap();
    let path = format!("/api/instances/{id}");
    let body = json!({ "restart": "never" });
    let patch = server.client.request(reqwest::Method::PATCH, &path).json(&body);
    let row = server.client.send(patch).await.expect(200).instance();
    assert_eq!(row.restart.policy.to_string(), "never");
    end(&world.bridges_of("app")[0]).await;
    let mut page = server.events().await;
    let row = page.until_status("app", "crashed").await;
    assert_eq!((row.restart.state.to_string(), row.restart.next_at), ("idle".into(), None));
}
