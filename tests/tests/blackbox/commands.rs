//! The commands beside a running service, and without one: same store, same rules.

use crate::harness::{World, gone};
use serde_json::{Value, json};

#[tokio::test]
async fn commands_are_seen_on_an_open_page() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let mut page = server.events().await;

    let started = world.cli(&["start", "app", "--json"]).await.ok().json();
    assert_eq!(started["created"], true);
    let id = started["instance_id"].as_str().unwrap().to_owned();
    let running = page.until_status("app", "running").await;
    assert_eq!(running.instance_id.to_string(), id);
    assert_eq!(world.agree().await.bridges.len(), 1);

    let again = world.cli(&["start", "app"]).await.ok();
    assert!(again.stdout.starts_with(&format!("already running: {} (app)", &id[..8])), "{again:?}");

    let stopped = world.cli(&["stop", &id[..8]]).await.ok();
    assert_eq!(stopped.stdout, format!("stopped {} (app) status=stopped\n", &id[..8]));
    let row = page.until_status("app", "stopped").await;
    assert_eq!(row.exit_reason.map(|reason| reason.to_string()), Some("operator_stop".into()));

    let resumed = world.cli(&["resume", "app", "--json"]).await.ok().json();
    assert_eq!((&resumed["resumed"], &resumed["id"]), (&json!(true), &json!(id)));
    let row = page.until_status("app", "running").await;
    assert_eq!((row.instance_id.to_string(), row.generation), (id.clone(), 2));
    let again = world.cli(&["resume", "app", "--json"]).await.ok().json();
    assert_eq!((&again["resumed"], &again["id"]), (&json!(false), &json!(id)));

    assert_eq!(world.cli(&["forget", "app"]).await.code, Some(2), "it lives");
    world.cli(&["stop", "app"]).await.ok();
    world.cli(&["forget", "app"]).await.ok();
    page.until("an empty list", |state| state.instances.is_empty().then_some(())).await;
    assert!(page.happened.iter().all(|(name, _)| name != "crash"), "{:?}", page.happened);
}

#[tokio::test]
async fn commands_work_without_a_service_and_the_next_start_shows_it_all() {
    let world = World::new();
    for name in ["kept", "ended"] {
        world.project(name);
    }
    let kept = world.cli(&["start", "kept", "--wait", "--json"]).await.ok().json();
    assert_eq!(kept["status"], "running", "{kept}");
    world.cli(&["start", "ended", "--wait"]).await.ok();
    world.cli(&["stop", "ended"]).await.ok();
    world.cli(&["resume", "ended"]).await.ok();
    world.cli(&["stop", "ended"]).await.ok();

    let server = world.serve().await;
    let mut page = server.events().await;
    let running = page.until_status("kept", "running").await;
    assert_eq!(running.instance_id.to_string(), kept["instance_id"].as_str().unwrap());
    let ended = page.until_status("ended", "stopped").await;
    assert_eq!(ended.generation, 2);
    let found = world.agree().await;
    assert_eq!((found.rows.len(), found.bridges.len()), (2, 1));

    // What it took over it also watches.
    found.bridges[0].signal(rustix::process::Signal::KILL);
    let crashed = page.until_status("kept", "crashed").await;
    // F9: not its child. What the kernel keeps is read, and nothing is made up.
    assert!([None, Some(9)].contains(&crashed.exit_signal), "{crashed:?}");
    assert_eq!(crashed.exit_code, None);
    server.kill().await;
    world.cli(&["forget", "kept"]).await.ok();
    let status = world.cli(&["status", "--json"]).await.ok().json();
    assert_eq!(status.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_bridge_started_by_command_has_no_deadline_and_no_announcement() {
    let world = World::with(json!({ "claude": { "startup_grace_seconds": 0.3 } }));
    world.project_with("app", json!({ "ready_ms": 1500 }));
    let server = world.serve().await;
    let mut page = server.events().await;
    world.cli(&["start", "app", "--wait", "20"]).await.ok();
    let row = page.until_status("app", "running").await;
    assert!(page.happened.is_empty(), "{:?}", page.happened);
    server.client.stop(row.instance_id.as_str()).await.expect(200);
}

#[tokio::test]
async fn status_is_the_record_of_the_api() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let listed: Value = server.client.get("/api/v1/instances").await.expect(200).json();
    let status = world.cli(&["status", "--json"]).await.ok().json();
    assert_eq!(status, listed);
    assert!(status[0]["agent_version"].is_string(), "{status}");
    let table = world.cli(&["status"]).await.ok().stdout;
    let mut lines = table.lines();
    let heads: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(heads, ["INSTANCE", "PROJECT", "MODE", "STATUS", "SINCE", "CAUSE", "LABEL"]);
    let running = lines.next().unwrap();
    assert!(running.contains("Server Mode  running"), "{table}");
    assert_eq!(lines.next(), None);
}

#[tokio::test]
async fn status_begins_with_what_needs_attention_and_says_why() {
    let world = World::new();
    for project in ["calm", "done", "bad"] {
        world.project(project);
    }
    let server = world.serve().await;
    for project in ["calm", "done", "bad"] {
        server.client.run(project).await;
    }
    let mut page = server.events().await;
    world.cli(&["stop", "done"]).await.ok();
    world.bridges_of("bad")[0].signal(rustix::process::Signal::KILL);
    page.until_status("bad", "crashed").await;
    page.until_status("done", "stopped").await;
    let table = world.cli(&["status"]).await.ok().stdout;
    let rows: Vec<&str> = table.lines().skip(1).collect();
    let order: Vec<&str> = rows.iter().map(|row| row.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(order, ["bad", "calm", "done"], "{table}");
    assert!(rows[0].contains("killed by signal KILL"), "{table}");
    assert!(rows[2].contains("stopped on purpose"), "{table}");
}

#[tokio::test]
async fn status_without_a_service_does_not_believe_the_dead() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    server.kill().await;
    let bridge = world.bridges_of("app").remove(0);
    bridge.signal(rustix::process::Signal::KILL);
    gone(&bridge).await;
    let before = world.row("app").await;
    let status = world.cli(&["status", "--json"]).await.ok().json();
    assert_eq!(status[0]["status"], "crashed", "{status}");
    let after = world.row("app").await;
    assert_eq!(
        (before.status.as_str(), after.status.as_str()),
        ("running", "running"),
        "it only reads"
    );
}

#[tokio::test]
async fn the_projects_are_those_of_the_api() {
    let world = World::new();
    world.repository("app");
    world.untrusted("other");
    let without = world.cli(&["projects", "--json"]).await.ok().json();
    assert!(!world.state.exists(), "a read command creates nothing");
    let server = world.serve().await;
    let served = server.client.get("/api/v1/projects").await.expect(200).json();
    assert_eq!(without.as_array().unwrap().len(), 2);
    for row in without.as_array().unwrap() {
        let of = |other: &&Value| other["name"] == row["name"];
        let other = served.as_array().unwrap().iter().find(of).unwrap();
        for field in [
            "path",
            "is_git_repo",
            "has_claude_md",
            "has_claude_dir",
            "trust_state",
            "allow_bypass_permissions",
        ] {
            assert_eq!(row[field], other[field], "{field}");
        }
    }
}

#[tokio::test]
async fn requests_that_cannot_be_attempted_exit_with_two() {
    let world = World::new();
    world.project("app");
    world.untrusted("new");
    for args in [
        &["start", "absent"][..],
        &["start", "new"],
        &["start", "app", "--name", "-x"],
        &["start", "app", "--permission-mode", "bypassPermissions"],
        &["start", "app", "--spawn-mode", "worktree"],
        &["start", "app", "--mode", "sideways"],
        &["stop", "absent"],
        &["resume", "absent"],
        &["forget", "absent"],
        &["logs", "absent"],
        &["open", "absent"],
        &["nonsense"],
        &[],
    ] {
        // Without words `svc` serves; the flag makes that a mistake too.
        let args = if args.is_empty() { &["--nonsense"][..] } else { args };
        let ran = world.cli(args).await;
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(!ran.stderr.is_empty() && !ran.stderr.contains("panicked"), "{args:?}: {ran:?}");
    }
    let refused = world.cli(&["start", "new"]).await;
    assert!(refused.stderr.contains("--trust"), "{refused:?}");
    let refused = world.cli(&["start", "new", "--json"]).await;
    assert_eq!(refused.json()["error"]["code"], "not_trusted");
    assert!(world.rows().await.is_empty());
    world.cli(&["start", "new", "--trust"]).await.ok();
}

#[tokio::test]
async fn a_failed_start_exits_with_one_and_the_cause() {
    let world = World::new();
    world.project_with("app", json!({ "fatal": "login" }));
    let failed = world.cli(&["start", "app"]).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let said = format!("{}{}", failed.stdout, failed.stderr);
    assert!(said.contains("login_required"), "{said}");
    let row = world.row("app").await;
    assert_eq!(
        (row.status.as_str(), row.exit_reason.as_deref()),
        ("error", Some("login_required"))
    );
}

#[tokio::test]
async fn the_log_is_printed_and_followed() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let printed = world.cli(&["logs", "app"]).await.ok().stdout;
    assert!(printed.contains("Starting poll loop"), "{printed}");
    assert!(!printed.contains("env_01SIM"), "{printed}");

    let mut follow = world.command(&crate::harness::service(), &["logs", &id, "-f"]);
    let mut follow = follow.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut until = async |part: &str| {
        while let Some(line) = crate::harness::within(part, lines.next_line()).await.unwrap() {
            if line.contains(part) {
                return;
            }
        }
        panic!("the log ended before {part:?}");
    };
    until("Starting poll loop").await;
    server.client.stop(&id).await.expect(200);
    until("SIGINT received").await;
    // Nothing more comes after the end, now or later.
    assert_eq!(crate::harness::within("its end", follow.wait()).await.unwrap().code(), Some(0));
    let again = crate::harness::within("its end", world.cli(&["logs", &id, "-f"])).await.ok();
    assert!(again.stderr.contains("the session ended at 20"), "{}", again.stderr);
}

#[tokio::test]
async fn what_the_process_printed_is_in_the_log_with_its_source() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut page = server.events().await;
    crate::reports::print(&world, "fatal: no memory left\n");
    world.bridges_of("app")[0].signal(rustix::process::Signal::KILL);
    page.until_status("app", "crashed").await;
    let told = world.cli(&["logs", &id]).await.ok().stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.last(), Some(&"[output] fatal: no memory left"), "{told}");
    assert!(lines.iter().any(|line| line.contains("Starting poll loop")), "{told}");
    let told = world.cli(&["logs", &id, "--json"]).await.ok().stdout;
    let last: serde_json::Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["line"], &last["source"]),
        (&"fatal: no memory left".into(), &"output".into())
    );
    let first: serde_json::Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    assert_eq!(first.get("source"), None, "{told}");
}

#[tokio::test]
async fn the_connect_link_is_printed_alone() {
    let world = World::new();
    world.project("app");
    world.cli(&["start", "app", "--wait"]).await.ok();
    let link = world.cli(&["open", "app"]).await.ok().stdout;
    assert!(link.starts_with("https://claude.ai/code"), "{link}");
    assert_eq!(link.lines().count(), 1);
    world.cli(&["stop", "app"]).await.ok();
    assert_eq!(world.cli(&["open", "app"]).await.code, Some(2));
}

#[tokio::test]
async fn the_sessions_of_the_agent_are_listed() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    world.remote(&["connect", world.projects.join("app").to_str().unwrap()]);
    let mut page = server.events().await;
    page.until("the session", |state| state.tracked.get(&id).map(|_| ())).await;
    let listed = world.cli(&["sessions", "--json"]).await.ok().json();
    assert!(!listed.as_array().unwrap().is_empty());
    for row in listed.as_array().unwrap() {
        assert!(row.get("session_ref").is_some() && row.get("local_uuid").is_none(), "{row}");
        assert!([Value::Null, json!(id)].contains(&row["parent_instance"]), "{row}");
    }
}

/// The number of a bridge that is gone may be somebody else's process by now.
#[tokio::test]
async fn a_bridge_that_is_gone_owns_no_session() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    world.remote(&["connect", world.projects.join("app").to_str().unwrap()]);
    let mut page = server.events().await;
    page.until("the session", |state| state.tracked.get(&id).map(|_| ())).await;
    server.kill().await;
    let owners = async || -> Vec<Value> {
        let listed = world.cli(&["sessions", "--json"]).await.ok().json();
        listed.as_array().unwrap().iter().map(|row| row["parent_instance"].clone()).collect()
    };
    assert!(owners().await.contains(&json!(id)));
    // The record is about an earlier process of the same number.
    let edit = "UPDATE bridges SET bridge_start_ticks = bridge_start_ticks - 1, \
                revision = revision + 1";
    world.sql(edit).await.unwrap();
    let owners = owners().await;
    assert!(!owners.is_empty() && owners.iter().all(Value::is_null), "{owners:?}");
}
