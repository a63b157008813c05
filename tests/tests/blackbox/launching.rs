//! What a launch may contain, and that preflight and launch never disagree.

use crate::harness::{Server, World, within};
use serde_json::{Value, json};
use std::fs;

/// Words of the agent's arguments behind the program.
fn argv(call: &Value) -> Vec<String> {
    let words = call["argv"].as_array().unwrap().iter();
    words.map(|word| word.as_str().unwrap().to_owned()).collect()
}

fn value_of<'a>(argv: &'a [String], flag: &str) -> Option<&'a str> {
    let at = argv.iter().position(|word| word == flag)?;
    argv.get(at + 1).map(String::as_str)
}

async fn launch_words(server: &Server<'_>, world: &World, body: Value) -> Vec<String> {
    let project = body["project"].as_str().unwrap().to_owned();
    let reply = server.client.launch_with(body).await.expect(201);
    let words = argv(world.starts(&project).last().unwrap());
    server.client.stop(reply.instance().instance_id.as_str()).await.expect(200);
    words
}

#[tokio::test]
async fn every_option_reaches_the_agent() {
    let world = World::with(json!({ "instance_defaults": { "session_name_prefix": "desk" } }));
    world.repository("app");
    let server = world.serve().await;

    let plain = launch_words(&server, &world, json!({ "project": "app" })).await;
    assert_eq!(plain[..3], ["remote-control", "--name", "app"]);
    assert_eq!(value_of(&plain, "--spawn"), Some("same-dir"));
    assert_eq!(value_of(&plain, "--permission-mode"), Some("default"));
    assert_eq!(value_of(&plain, "--capacity"), Some("32"));
    assert_eq!(value_of(&plain, "--remote-control-session-name-prefix"), Some("desk"));
    let debug_file = value_of(&plain, "--debug-file").unwrap();
    assert!(debug_file.starts_with(world.state.join("logs").to_str().unwrap()), "{debug_file}");

    let named = json!({
        "project": "app", "name": "Night shift", "spawn_mode": "worktree",
        "permission_mode": "acceptEdits",
    });
    let named = launch_words(&server, &world, named).await;
    assert_eq!(value_of(&named, "--name"), Some("Night shift"));
    assert_eq!(value_of(&named, "--spawn"), Some("worktree"));
    assert_eq!(value_of(&named, "--permission-mode"), Some("acceptEdits"));

    let single = json!({ "project": "app", "spawn_mode": "session", "permission_mode": "inherit" });
    let single = launch_words(&server, &world, single).await;
    assert_eq!(value_of(&single, "--spawn"), Some("session"));
    for absent in ["--permission-mode", "--capacity", "--remote-control-session-name-prefix"] {
        assert!(!single.iter().any(|word| word == absent), "{single:?}");
    }
}

#[tokio::test]
async fn a_resume_uses_the_options_of_the_record() {
    let world = World::new();
    world.repository("app");
    let server = world.serve().await;
    let body = json!({
        "project": "app", "name": "Night shift", "spawn_mode": "worktree",
        "permission_mode": "plan",
    });
    let id = server.client.launch_with(body).await.expect(201).instance().instance_id;
    server.client.stop(id.as_str()).await.expect(200);
    let resumed = server.client.resume(id.as_str()).await.expect(200).instance();
    assert_eq!(resumed.spawn_mode.to_string(), "worktree");
    assert_eq!(resumed.permission_mode.to_string(), "plan");
    let again = argv(world.starts("app").last().unwrap());
    assert_eq!(value_of(&again, "--name"), Some("Night shift"));
    assert_eq!(value_of(&again, "--spawn"), Some("worktree"));
    assert_eq!(value_of(&again, "--permission-mode"), Some("plan"));
}

#[tokio::test]
async fn wrong_requests_are_refused_and_leave_nothing() {
    let world =
        World::with(json!({ "projects": { "free": { "allow_bypass_permissions": true } } }));
    world.project("plain");
    world.project("free");
    let server = world.serve().await;
    let with = |field: &str, value: Value| {
        let mut body = json!({ "project": "plain" });
        body[field] = value;
        body
    };
    let cases = [
        (json!({}), 422, "schema"),
        (json!({ "project": 5 }), 422, "schema"),
        (json!({ "project": "" }), 422, "invalid_value"),
        (json!({ "project": "absent" }), 404, "unknown_project"),
        (json!({ "project": "../plain" }), 404, "unknown_project"),
        (with("spawn_mode", json!("sideways")), 422, "invalid_value"),
        (with("spawn_mode", json!("worktree")), 422, "invalid_value"),
        (with("permission_mode", json!("yolo")), 422, "invalid_value"),
        (with("permission_mode", json!("bypassPermissions")), 403, "bypass_forbidden"),
        (with("name", json!("-x")), 422, "invalid_value"),
        (with("name", json!("two\nlines")), 422, "invalid_value"),
        (with("name", json!("n".repeat(129))), 422, "invalid_value"),
        (with("mode", json!("sideways")), 422, "invalid_value"),
        (with("channel", json!("hosted")), 503, "hosted_unavailable"),
        (with("conversation", json!("0123456789abcdef")), 422, "invalid_value"),
        (with("trust", json!("yes")), 422, "schema"),
    ];
    for (body, status, code) in cases {
        let reply = server.client.launch_with(body.clone()).await;
        assert_eq!((reply.status, reply.refused(status)), (status, code.to_owned()), "{body}");
    }
    assert!(world.rows().await.is_empty());
    assert!(world.calls().iter().all(|call| call["argv"][0] != "remote-control"));
    let logs = fs::read_dir(world.state.join("logs")).map_or(0, Iterator::count);
    assert_eq!(logs, 0, "a refusal leaves no file");

    let free = json!({ "project": "free", "permission_mode": "bypassPermissions" });
    server.client.launch_with(free).await.expect(201);
}

#[tokio::test]
async fn an_unknown_field_is_a_warning_of_the_launch() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let body = json!({ "project": "app", "permision_mode": "plan", "resume_mode": "pty" });
    let launched = server.client.launch_with(body).await.expect(201).json();
    let warnings = launched["warnings"].as_array().unwrap();
    let says = |part: &str| warnings.iter().any(|text| text.as_str().unwrap().contains(part));
    assert!(says("permision_mode") && says("worktree"), "{warnings:?}");
    assert_eq!(launched["resume_mode"], "pty");
}

/// F19, F20: a refused start leaves neither a grant nor a row.
#[tokio::test]
async fn f19_f20_a_refused_start_leaves_the_agents_file_as_it_was() {
    let world = World::with(json!({ "instance_defaults": { "max_bridges": 1 } }));
    world.untrusted("new");
    world.project("old");
    let server = world.serve().await;
    server.client.run("old").await; // the cap is reached from here on
    let before = fs::read(world.agent_config()).unwrap();
    let trusting = |field: &str, value: &str| {
        let mut body = json!({ "project": "new", "trust": true });
        body[field] = value.into();
        body
    };
    for (body, status) in [
        (json!({ "project": "new" }), 409),
        (json!({ "project": "new", "trust": false }), 409),
        (trusting("name", "-x"), 422),
        (trusting("permission_mode", "bypassPermissions"), 403),
        (trusting("spawn_mode", "worktree"), 422),
        (json!({ "project": "new", "trust": true }), 409),
    ] {
        let reply = server.client.launch_with(body.clone()).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
        assert_eq!(fs::read(world.agent_config()).unwrap(), before, "{body}");
    }
    assert_eq!(world.rows().await.len(), 1);
    assert_eq!(world.starts("new").len(), 0);
}

/// F20 for a resume: the grant comes after the last refusal there as well.
#[tokio::test]
async fn f20_a_refused_resume_leaves_the_agents_file_as_it_was() {
    let world = World::new();
    let dir = world.untrusted("new");
    let server = world.serve().await;
    let body = json!({ "project": "new", "trust": true });
    let launched = server.client.launch_with(body).await.expect(201).instance();
    let id = launched.instance_id.to_string();
    server.client.stop(&id).await.expect(200);
    let text = fs::read_to_string(world.agent_config()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    let key = dir.to_str().unwrap();
    config["projects"][key]["hasTrustDialogAccepted"] = json!(false);
    fs::write(world.agent_config(), config.to_string()).unwrap();
    // No log can be made: the last thing that refuses a start before its row is written.
    let (logs, aside) = (world.state.join("logs"), world.state.join("logs-aside"));
    fs::rename(&logs, &aside).unwrap();
    fs::write(&logs, "").unwrap();
    let before = fs::read(world.agent_config()).unwrap();
    let path = format!("/api/v1/instances/{id}/resume");
    let trusting = json!({ "trust": true });
    let refused = server.client.post_json(&path, &trusting).await;
    assert_eq!(refused.status, 507, "{}", refused.text());
    assert_eq!(fs::read(world.agent_config()).unwrap(), before);
    assert_eq!(world.rows().await[0].status, "stopped");

    fs::remove_file(&logs).unwrap();
    fs::rename(&aside, &logs).unwrap();
    let resumed = server.client.post_json(&path, &trusting).await.expect(200).instance();
    assert_eq!(resumed.generation, 2);
    let config: Value = serde_json::from_slice(&fs::read(world.agent_config()).unwrap()).unwrap();
    assert_eq!(config["projects"][key]["hasTrustDialogAccepted"], json!(true));
}

/// A record says before the click what a resume would answer.
/// That also holds when only the settings of the project ask for a bypass.
#[tokio::test]
async fn a_resume_that_would_bypass_through_settings_is_blocked_and_says_so() {
    let world = World::new();
    let dir = world.project("app");
    let server = world.serve().await;
    let body = json!({ "project": "app", "permission_mode": "inherit" });
    let id = server.client.launch_with(body).await.expect(201).instance().instance_id.to_string();
    let ended = server.client.stop(&id).await.expect(200).instance();
    assert_eq!(ended.resume_blocked, None);
    server.stop().await;
    fs::create_dir_all(dir.join(".claude")).unwrap();
    let settings = json!({ "permissions": { "defaultMode": "bypassPermissions" } });
    fs::write(dir.join(".claude/settings.json"), settings.to_string()).unwrap();

    let server = world.serve().await;
    let shown = server.client.instance(&id).await.expect(200).instance();
    let blocked = shown.resume_blocked.map(|word| word.to_string());
    assert_eq!((shown.resumable, blocked.as_deref()), (false, Some("bypass_forbidden")));
    assert_eq!(server.client.resume(&id).await.refused(403), "bypass_forbidden");
}

#[tokio::test]
async fn trust_is_granted_by_name_and_kept() {
    let world = World::new();
    let dir = world.untrusted("new");
    let other = world.untrusted("other");
    let server = world.serve().await;
    assert_eq!(server.client.launch("new").await.refused(409), "not_trusted");
    server.client.launch_with(json!({ "project": "new", "trust": true })).await.expect(201);
    let grants = |path: &std::path::Path| {
        let text = fs::read_to_string(world.agent_config()).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        config["projects"][path.to_str().unwrap()]["hasTrustDialogAccepted"].clone()
    };
    assert_eq!(grants(&dir), true);
    assert_eq!(grants(&other), Value::Null);

    let trusted = server.client.post("/api/projects/other/trust").await.expect(200).json();
    assert_eq!(trusted["trust_state"], "trusted");
    assert_eq!(grants(&other), true);
    server.client.run("other").await;
    assert_eq!(server.client.post("/api/projects/absent/trust").await.status, 404);
}

/// F21: a file that cannot be understood trusts nothing and is never rewritten.
#[tokio::test]
async fn f21_a_broken_agent_file_is_named_and_left_alone() {
    let world = World::new();
    world.project("app");
    let broken: [&[u8]; 5] =
        [b"{ \"projects\": {} ,}", b"", b"[]", &[b'['; 5000], b"{\"projects\": \"\xff\"}"];
    let server = world.serve().await;
    // Asked for its account the agent itself replaces a broken file: let that be over first.
    let mut page = server.events().await;
    page.until("the probes", |state| {
        let health = state.health.as_ref()?;
        (health.claude_version.is_some() && health.claude_login_method.is_some()).then_some(())
    })
    .await;
    drop(page);
    for bytes in broken {
        within("an answer while nobody repaired the file", async {
            loop {
                fs::write(world.agent_config(), bytes).unwrap();
                let body = json!({ "project": "app", "trust": true });
                let rows = world.rows().await.len();
                let reply = server.client.launch_with(body).await;
                let trust = server.client.post("/api/projects/app/trust").await;
                // A write is a reason to ask the agent for its account again.
                if fs::read(world.agent_config()).unwrap() != bytes {
                    if reply.status < 300 {
                        server.client.stop("app").await.expect(200);
                    }
                    continue;
                }
                assert_eq!(world.rows().await.len(), rows);
                assert_eq!(reply.status, 409, "{}", reply.text());
                assert!(reply.text().contains(".claude.json"), "{}", reply.text());
                assert_eq!(trust.status, 409, "{}", trust.text());
                return;
            }
        })
        .await;
    }
}

/// F23: a repository needs its own grant.
#[tokio::test]
async fn f23_a_repository_is_not_trusted_through_its_parent() {
    let world = World::new();
    world.trust(&world.projects);
    world.untrusted("plain");
    let repository = world.untrusted("repository");
    fs::create_dir(repository.join(".git")).unwrap();
    let server = world.serve().await;
    server.client.run("plain").await;
    assert_eq!(server.client.launch("repository").await.refused(409), "not_trusted");
}

/// F24: the second name of a directory cannot start a second bridge.
#[tokio::test]
async fn f24_two_names_of_one_directory_are_one_project() {
    let world = World::new();
    let dir = world.project("app");
    std::os::unix::fs::symlink(&dir, world.projects.join("zz-link")).unwrap();
    let server = world.serve().await;
    let projects = server.client.get("/api/v1/projects").await.expect(200).json();
    let alias = projects.as_array().unwrap().iter().find(|row| row["name"] == "zz-link").unwrap();
    assert_eq!(alias["alias_of"], "app");
    server.client.run("app").await;
    assert_eq!(server.client.launch("zz-link").await.refused(409), "held_elsewhere");
    assert_eq!(world.bridges().len(), 1);
}

#[tokio::test]
async fn the_cap_counts_every_live_bridge() {
    let world = World::with(json!({ "instance_defaults": { "max_bridges": 2 } }));
    for name in ["a", "b", "c"] {
        world.project(name);
    }
    let server = world.serve().await;
    server.client.run("a").await;
    let b = server.client.run("b").await;
    assert_eq!(server.client.launch("c").await.refused(409), "capacity");
    assert_eq!(server.client.launch("a").await.status, 200, "a live bridge is handed out");
    server.client.stop(b.instance_id.as_str()).await.expect(200);
    server.client.run("c").await;
    assert_eq!(server.client.resume(b.instance_id.as_str()).await.refused(409), "capacity");
    assert_eq!(world.bridges().len(), 2);
}

/// The cap is exact when many ask at once.
#[tokio::test]
async fn the_cap_holds_against_simultaneous_launches() {
    let world = World::with(json!({ "instance_defaults": { "max_bridges": 3 } }));
    let names: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
    for name in &names {
        world.project(name);
    }
    let server = world.serve().await;
    let launches = names.iter().map(|name| server.client.launch(name));
    let mut statuses: Vec<u16> =
        futures_util::future::join_all(launches).await.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 201, 201, 409, 409, 409, 409, 409]);
    assert_eq!(world.agree().await.bridges.len(), 3);
}

#[tokio::test]
async fn preflight_says_what_a_launch_would_answer() {
    let world = World::with(json!({ "instance_defaults": { "max_bridges": 1 } }));
    let ready = world.project("ready");
    world.untrusted("untrusted");
    std::os::unix::fs::symlink(&ready, world.projects.join("zz-alias")).unwrap();
    let server = world.serve().await;
    let verdict = |name: &'static str| {
        let client = server.client.clone();
        async move {
            let one = client.get(&format!("/api/projects/{name}/preflight")).await.expect(200);
            let all = client.get("/api/projects/preflight").await.expect(200).json();
            let one = one.json();
            assert_eq!(one["ok"], all[name]["ok"], "{name}");
            let failed = one["checks"].as_array().unwrap().iter();
            let failed = failed.filter(|check| check["status"] == "fail").count();
            assert_eq!(failed == 0, one["ok"].as_bool().unwrap(), "{one}");
            let launch = one["launch"]["standard"].clone();
            assert_eq!(launch["ok"], one["ok"]);
            (one["ok"].as_bool().unwrap(), launch["code"].clone())
        }
    };
    for name in ["untrusted", "zz-alias", "ready"] {
        let (ok, code) = verdict(name).await;
        let reply = server.client.launch(name).await;
        assert_eq!(ok, reply.status < 300, "{name}: {}", reply.text());
        if !ok {
            assert_eq!(code, reply.json()["code"], "{name}");
        }
    }
    // The one allowed bridge runs now; launching it again is no refusal.
    assert!(verdict("ready").await.0);
    world.project("late");
    let mut page = server.events().await;
    page.until("the new project", |state| state.projects.get("late").cloned()).await;
    let (ok, code) = verdict("late").await;
    assert_eq!((ok, code), (false, json!("capacity")));
    assert_eq!(server.client.launch("late").await.refused(409), "capacity");
    assert_eq!(server.client.get("/api/projects/absent/preflight").await.status, 404);
}

/// F13: nothing runs and nothing is recorded when the program is not there.
#[tokio::test]
async fn f13_a_missing_agent_is_said_before_anything_is_recorded() {
    let world = World::new();
    world.project("app");
    let empty = world.root.join("nothing-here");
    world.configure(json!({ "claude": { "binary": empty } }));
    let server = world.serve().await;
    assert_eq!(server.client.launch("app").await.refused(503), "agent_missing");
    let preflight = server.client.get("/api/projects/app/preflight").await.expect(200).json();
    assert_eq!(preflight["launch"]["standard"], json!({ "ok": false, "code": "agent_missing" }));
    assert!(world.rows().await.is_empty());
    let health = server.client.get("/healthz").await.expect(200).json();
    assert_eq!(health["claude_ok"], false);
}

/// F13: a program that the kernel cannot run fails the start, with a record.
#[tokio::test]
async fn f13_a_program_of_another_kind_fails_the_start() {
    let world = World::new();
    world.project("app");
    let program = world.root.join("claude");
    svc_programs::write(&program, b"\x7fELF no machine runs this").unwrap();
    world.configure(json!({ "claude": { "binary": program } }));
    let server = world.serve().await;
    let failed = server.client.launch("app").await.expect(201).instance();
    assert_eq!(failed.status.to_string(), "error");
    assert_eq!(failed.exit_reason.map(|reason| reason.to_string()), Some("exec_failed".into()));
    assert!(world.agree().await.bridges.is_empty());
}

#[tokio::test]
async fn h31_h37_projects_of_every_legal_name_are_found_and_started() {
    let world = World::new();
    let names =
        ["has.dot", "has space", "übung", "ａ", "trailing-dash-", "q\"uote", "$(x)`y`;&%VAR%"];
    for name in names {
        world.project(name);
    }
    for ignored in [".hidden", "con", "trailing.", "NUL.txt"] {
        world.untrusted(ignored);
    }
    let server = world.serve().await;
    let listed = server.client.get("/api/v1/projects").await.expect(200).json();
    let mut listed: Vec<String> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect();
    let mut expected = names.map(str::to_owned).to_vec();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    for name in names {
        let reply = server.client.launch(name).await.expect(201).instance();
        assert_eq!(reply.status.to_string(), "running", "{name}: {reply:?}");
        let words = argv(&world.starts(name)[0]);
        assert_eq!(value_of(&words, "--name"), Some(name), "verbatim");
    }
}

/// Sessions work without an unapproved server: it is told of, not refused.
#[tokio::test]
async fn a_preflight_names_the_servers_that_wait_for_approval() {
    let world = World::new();
    let dir = world.project("app");
    let server = world.serve().await;
    let check = async || {
        let shown = server.client.get("/api/projects/app/preflight").await.expect(200).json();
        assert_eq!(shown["ok"], true, "{shown}");
        let checks = shown["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "mcp-approval").expect("the check")
    };
    assert_eq!(check().await["status"], "ok");
    let servers = json!({ "mcpServers": {
        "known": { "command": "true" }, "open": { "command": "true" }, "no": { "command": "true" },
    } });
    fs::write(dir.join(".mcp.json"), servers.to_string()).unwrap();
    fs::create_dir(dir.join(".claude")).unwrap();
    let local = dir.join(".claude/settings.local.json");
    let decided = json!({ "enabledMcpjsonServers": ["known"], "disabledMcpjsonServers": ["no"] });
    fs::write(&local, decided.to_string()).unwrap();
    let found = check().await;
    assert_eq!(found["status"], "warn", "{found}");
    let detail = found["detail"].as_str().unwrap();
    assert!(detail.ends_with(": open"), "{detail}");
    let decided =
        json!({ "enabledMcpjsonServers": ["known", "open"], "disabledMcpjsonServers": ["no"] });
    fs::write(&local, decided.to_string()).unwrap();
    assert_eq!(check().await["status"], "ok");
    server.client.run("app").await;
}
