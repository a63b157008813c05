//! The doctor: every check is brought to every verdict it can have.
//!
//! The command and the service give the same report.

use crate::harness::{Start, World, service};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The report of the command.
async fn report(world: &World) -> Value {
    report_with(world, &[]).await
}

async fn report_with(world: &World, env: &[(&str, &str)]) -> Value {
    world.cli_with(&["doctor", "--json"], env).await.json()
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name} in {report:#}"))
}

/// The verdict on `name` and its text; everything but `ok` must have a remedy.
#[track_caller]
fn says(report: &Value, name: &str, status: &str, words: &str) {
    let check = check(report, name);
    assert_eq!(check["status"], status, "{check:#}");
    assert!(check["detail"].as_str().unwrap().contains(words), "{check:#}");
    assert_eq!(check["hint"].is_null(), status == "ok", "{check:#}");
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

#[track_caller]
fn ends(ran: &crate::harness::Ran, code: i32, last: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_eq!(ran.stdout.lines().last(), Some(last), "{ran:?}");
}

/// What the command examines on every machine, in this order.
const SOUND: [&str; 20] = [
    "config",
    "config-keys",
    "config-mode",
    "env",
    "claude",
    "claude-login",
    "projects_root",
    "state_dir",
    "git",
    "auth",
    "workspace-trust",
    "extra:pty",
    "disk",
    "db",
    "strays",
    "keepers",
    "restart",
    "duplicate-sessions",
    "systemd",
    "port",
];

/// A call that examines all but `disk`.
///
/// Its verdict is up to the machine of the test.
fn beside_disk<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let beside = SOUND.iter().filter(|name| **name != "disk");
    ["doctor"].iter().chain(words).chain(&["--only"]).chain(beside).copied().collect()
}

#[tokio::test]
async fn a_sound_machine_passes_and_nothing_is_created() {
    let world = World::new();
    world.project("app");
    let ran = world.cli(&beside_disk(&[])).await;
    ends(&ran, 0, "svc: all checks passed");
    assert!(ran.stdout.contains("  PASS  config              loaded "), "{}", ran.stdout);
    assert!(ran.stdout.contains("  PASS  claude-login        logged in (claude.ai)"), "{ran:?}");
    assert_eq!(ran.stderr, "");
    assert!(!world.state.exists(), "looking creates nothing");

    let report = report(&world).await;
    let mut names: Vec<&str> = report["checks"].as_array().unwrap().iter().map(name).collect();
    // Only a checkout that follows another repository has it.
    names.retain(|name| *name != "version");
    assert_eq!(names, SOUND);
    assert_eq!((&report["ok"], &report["config_path"]), (&json!(true), &json!(world.config)));
    assert!(report["version"].is_string() && report["at"].is_string(), "{report:#}");
    says(&report, "db", "ok", "none yet");
    says(&report, "workspace-trust", "ok", "1/1 trusted");
    says(&report, "port", "ok", "free");
    says(&report, "claude", "ok", "2.1.197 (>= 2.1.145)");
}

fn name(check: &Value) -> &str {
    check["name"].as_str().expect("a name")
}

#[tokio::test]
async fn the_exit_code_tells_failures_and_on_request_warnings() {
    let world = World::new();
    world.untrusted("app");
    ends(&world.cli(&beside_disk(&[])).await, 0, "svc: 1 warning(s)");
    ends(&world.cli(&beside_disk(&["--strict"])).await, 3, "svc: 1 warning(s)");
    let only = ["doctor", "--strict", "--only", "config", "git"];
    let ran = world.cli(&only).await;
    ends(&ran, 0, "svc: all checks passed");
    assert_eq!(ran.stdout.lines().count(), 3, "{}", ran.stdout);
    world.configure(json!({ "claude": { "binary": "/nowhere/claude" } }));
    ends(&world.cli(&["doctor"]).await, 1, "svc: FAILURES above");
    let ran = world.cli(&["doctor", "--strict", "--json"]).await;
    assert_eq!((ran.code, &ran.json()["ok"]), (Some(1), &json!(false)));
    let unknown = world.cli(&["doctor", "--only", "nothing"]).await;
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("no check `nothing`"), "{}", unknown.stderr);
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_the_only_finding() {
    let world = World::new();
    for (text, words) in [
        ("port: [", "svc.yml"),
        ("projects_root: /nowhere/at/all\n", "projects_root"),
        ("port: 99999999\nprojects_root: 7\n", "port"),
        ("auth:\n  password_hash: [hunter2]\n", "password_hash"),
    ] {
        fs::write(&world.config, text).unwrap();
        let ran = world.cli(&["doctor", "--json"]).await;
        assert_eq!(ran.code, Some(1), "{text}");
        assert_eq!(ran.json()["checks"].as_array().unwrap().len(), 1, "{text}");
        says(&ran.json(), "config", "fail", words);
        assert!(!ran.stdout.contains("hunter2") && !ran.stderr.contains("hunter2"), "{ran:?}");
    }
    fs::remove_file(&world.config).unwrap();
    says(&report(&world).await, "config", "fail", "not found; searched");
}

#[tokio::test]
async fn keys_variables_and_modes_of_the_configuration_are_judged() {
    let world = World::with(json!({ "portt": 1, "usage": { "mode": "off" } }));
    says(&report(&world).await, "config-keys", "warn", "portt");
    world.configure(json!({ "auth": { "enabledd": true } }));
    says(&report(&world).await, "config-keys", "fail", "auth.enabled?");

    let env = [("SVC_PORTT", "1"), ("SVC_PROJECTS", "x")];
    let odd = report_with(&world, &env).await;
    says(&odd, "env", "warn", "SVC_PORTT");
    says(&odd, "env", "warn", "SVC_PROJECTS");
    says(&report(&world).await, "env", "ok", "understood");

    chmod(&world.config, 0o664);
    says(&report(&world).await, "config-mode", "warn", "group");
    // H28
    chmod(&world.config, 0o666);
    says(&report(&world).await, "config-mode", "fail", "every user");
    world.configure(json!({ "auth": { "api_token_hash": "0".repeat(64) } }));
    chmod(&world.config, 0o644);
    says(&report(&world).await, "config-mode", "warn", "secret");
    chmod(&world.config, 0o600);
    says(&report(&world).await, "config-mode", "ok", "owner");
}

#[tokio::test]
async fn f86_an_agent_that_is_missing_old_silent_or_odd_fails() {
    let world = World::new();
    world.project("app");
    for (version, words) in [
        ("2.1.100 (Claude Code)", "below 2.1.145"),
        ("8f14e45f", "printed no version"),
        ("20260101", "no dotted version"),
        ("hello", "printed no version"),
    ] {
        let found = report_with(&world, &[("AGENT_SIM_VERSION_OUTPUT", version)]).await;
        says(&found, "claude", "fail", words);
    }
    world.configure(json!({ "claude": { "min_version": "newest" } }));
    says(&report(&world).await, "claude", "fail", "claude.min_version");
    world.configure(json!({ "claude": { "binary": "no-such-agent" } }));
    let found = report(&world).await;
    says(&found, "claude", "fail", "`no-such-agent` was not found");
    says(&found, "claude-login", "warn", "unknown");
}

#[tokio::test]
async fn a_login_that_is_missing_or_of_another_kind_warns() {
    let world = World::new();
    world.project("app");
    says(&report(&world).await, "claude-login", "ok", "claude.ai");
    for (knob, words) in [("logged_out", "not logged in"), ("api_key", "subscription")] {
        let found = report_with(&world, &[("AGENT_SIM_AUTH", knob)]).await;
        says(&found, "claude-login", "warn", words);
    }
}

#[tokio::test]
async fn session_logs_that_others_may_read_are_counted_and_not_named() {
    let world = World::new();
    world.project("app");
    world.cli(&["start", "app", "--wait"]).await.ok();
    world.cli(&["stop", "app"]).await.ok();
    let logs = world.state.join("logs");
    for name in [
        "app-1760000000000-1-session_01SECRETSECRET.log",
        "app-1760000000000-1-cse_01SECRETSECRET.log.1",
        "bridge-transcript-session_01SECRETSECRET.jsonl",
        "bridge-transcript-0abcdef1-059b-4282-b68e-91a110e7f06b.jsonl",
    ] {
        fs::write(logs.join(name), "x").unwrap();
        chmod(&logs.join(name), 0o644);
    }
    for also in [None, Some("notes-session_01SECRETSECRET")] {
        if let Some(also) = also {
            fs::write(world.state.join(also), "x").unwrap();
            chmod(&world.state.join(also), 0o644);
        }
        let report = report(&world).await;
        says(&report, "state_dir", "warn", "4 session logs");
        let said = serde_json::to_string(&report).unwrap();
        assert!(!said.contains("01SECRET") && !said.contains("0abcdef1"), "{said}");
    }
}

#[tokio::test]
async fn directories_that_cannot_be_used_fail_and_open_ones_warn() {
    let world = World::new();
    world.project("app");
    world.cli(&["start", "app", "--wait"]).await.ok();
    world.cli(&["stop", "app"]).await.ok();
    says(&report(&world).await, "state_dir", "ok", "writable");
    says(&report(&world).await, "db", "ok", "sound");
    fs::write(world.state.join("notes"), "x").unwrap();
    chmod(&world.state.join("notes"), 0o644);
    says(&report(&world).await, "state_dir", "warn", "notes");
    chmod(&world.state, 0o755);
    says(&report(&world).await, "state_dir", "warn", "0755");

    let file = world.root.join("a-file");
    fs::write(&file, "").unwrap();
    for impossible in [file.clone(), file.join("below")] {
        world.configure(json!({ "state_dir": impossible }));
        says(&report(&world).await, "state_dir", "fail", "a-file");
    }
    world.configure(json!({ "state_dir": world.root.join("projects/app/state") }));
    says(&report(&world).await, "state_dir", "ok", "first start");
    fs::create_dir(world.root.join("projects/app/state")).unwrap();
    chmod(&world.root.join("projects/app/state"), 0o700);
    says(&report(&world).await, "state_dir", "warn", "projects_root");

    world.configure(json!({ "state_dir": world.state }));
    says(&report(&world).await, "projects_root", "ok", "1 project");
    fs::create_dir(world.projects.join("trailing.")).unwrap();
    says(&report(&world).await, "projects_root", "warn", "trailing.");
}

#[tokio::test]
async fn without_git_worktrees_are_said_to_be_missing() {
    let world = World::new();
    let found = report_with(&world, &[("PATH", "/nowhere")]).await;
    says(&found, "git", "warn", "worktrees");
    says(&report(&world).await, "git", "ok", "/git");
}

#[tokio::test]
async fn h14_what_the_start_refuses_fails_in_the_same_words() {
    let world = World::with(json!({ "host": "0.0.0.0" }));
    let found = report(&world).await;
    says(&found, "config", "ok", "loaded");
    says(&found, "auth", "fail", "host is not a loopback address");
    let refused = world.cli(&["run"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let words = check(&found, "auth")["detail"].as_str().unwrap();
    let reason = words.strip_prefix("host ").unwrap();
    assert!(refused.stderr.contains(reason), "{words}\n{}", refused.stderr);

    world.configure(json!({ "auth": { "allow_unauthenticated_network": true } }));
    says(&report(&world).await, "auth", "warn", "allow_unauthenticated_network");
    world.configure(json!({ "host": "127.0.0.1", "auth": { "password_hash": "hunter2" } }));
    let found = report(&world).await;
    says(&found, "auth", "fail", "argon2id");
    assert!(!found.to_string().contains("hunter2"), "{found:#}");
    world.configure(json!({ "auth": { "password_hash": null } }));
    says(&report(&world).await, "auth", "ok", "127.0.0.1");
}

#[tokio::test]
async fn untrusted_projects_and_none_at_all_warn() {
    let world = World::new();
    says(&report(&world).await, "workspace-trust", "warn", "no projects");
    world.project("one");
    world.untrusted("two");
    says(&report(&world).await, "workspace-trust", "warn", "1/2 trusted; not yet: two");
}

/// Takes back what the last migration did.
const BEFORE_THE_LAST_MIGRATION: &str = "ALTER TABLE hosted_prompts DROP COLUMN for_session; \
     ALTER TABLE hosted_prompts DROP COLUMN session_rules; \
     ALTER TABLE bridge_prompts DROP COLUMN for_session; \
     ALTER TABLE bridge_prompts DROP COLUMN session_rules; PRAGMA user_version = 20";

#[tokio::test]
async fn a_damaged_older_or_newer_database_is_told_apart() {
    let world = World::new();
    world.project("app");
    world.cli(&["start", "app", "--wait"]).await.ok();
    world.cli(&["stop", "app"]).await.ok();
    let db = world.state.join("svc.db");
    let sound = fs::read(&db).unwrap();
    world.schema(BEFORE_THE_LAST_MIGRATION).await;
    says(&report(&world).await, "db", "warn", "needs");
    fs::write(&db, &sound).unwrap();
    world.schema("PRAGMA user_version = 250").await;
    says(&report(&world).await, "db", "fail", "schema 250");
    let mut torn = sound.clone();
    let half = torn.len() / 2;
    torn[half..half + 4096].fill(0x5a);
    fs::write(&db, &torn).unwrap();
    says(&report(&world).await, "db", "fail", "svc.db");
    fs::write(&db, "not a database at all, but long enough to be looked at").unwrap();
    says(&report(&world).await, "db", "fail", "svc.db");
    assert_eq!(fs::read(&db).unwrap().len(), 54, "it is left as it is");
}

#[tokio::test]
async fn the_port_and_whoever_has_it_are_looked_at() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let found = report(&world).await;
    says(&found, "port", "ok", "by this service");
    says(&found, "server", "ok", "200");
    server.kill().await;

    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    world.configure(json!({ "port": port }));
    let answer =
        "HTTP/1.1 421 Misdirected\r\ncontent-length: 29\r\n\r\n{\"detail\":\"host not allowed\"}";
    let foreign = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 1024];
        let read = stream.read(&mut head).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        // What is no HTTP gets no verdict.
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"220 mail.example ESMTP\r\n").unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    });
    let found = report(&world).await;
    says(&found, "port", "warn", "another program");
    says(&found, "server", "fail", "421: host not allowed");
    let mail = report(&world).await;
    says(&mail, "port", "warn", "another program");
    assert!(mail["checks"].as_array().unwrap().iter().all(|check| name(check) != "server"));
    assert!(foreign.join().unwrap().starts_with("GET /healthz HTTP/1.1"));
}

#[tokio::test]
async fn the_service_reports_the_same_and_sees_the_file_as_it_is_now() {
    let world = World::new();
    world.untrusted("app");
    let server = world.serve().await;
    let reply = server.client.get("/api/doctor").await.expect(200);
    let own = reply.json();
    let beside = report(&world).await;
    // Free space changes between the two.
    let known = |check: &&Value| !["port", "server", "disk"].contains(&name(check));
    let of_command: Vec<&Value> =
        beside["checks"].as_array().unwrap().iter().filter(known).collect();
    // Only the service can tell of the program that runs.
    let shared = |check: &&Value| !["program", "disk"].contains(&name(check));
    let of_service: Vec<&Value> = own["checks"].as_array().unwrap().iter().filter(shared).collect();
    assert_eq!(of_service, of_command);
    for report in [&own, &beside] {
        assert!(check(report, "disk")["detail"].as_str().unwrap().contains("state_dir"));
    }
    assert_eq!(own["config_path"], beside["config_path"]);

    // Another health report than the doctor's would be a contradiction.
    let health = server.client.get("/healthz").await.json();
    assert_eq!(health["claude_login_ok"], true);
    says(&own, "claude-login", "ok", "logged in");
    server.kill().await;
    let server = world.serve().await;
    world.configure(json!({ "portt": 5 }));
    let now = server.client.get("/api/doctor").await.json();
    says(&now, "config-keys", "warn", "portt");
}

#[tokio::test]
async fn h83_two_hundred_askers_cause_one_examination() {
    let world = World::new();
    let server = world.serve_as(crate::harness::Start {
        env: &[("AGENT_SIM_VERSION_MS", "300")],
        ..Default::default()
    });
    let server = server.await;
    let probes = || {
        let calls = world.calls();
        calls.iter().filter(|call| call["argv"][1] == "--version").count()
    };
    let asks = (0..200).map(|_| server.client.get("/api/doctor"));
    let answers = futures_util::future::join_all(asks).await;
    let first = answers[0].body.clone();
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == first));
    assert!(probes() <= 1, "{} probes", probes());
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn fix_closes_to_others_what_it_warns_of_and_says_so() {
    let world = World::new();
    world.project("app");
    world.serve().await.stop().await;
    let inside = world.state.join("svc.db");
    for (path, bits) in [(&world.config, 0o646), (&world.state, 0o755), (&inside, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    }
    let named = ["doctor", "--fix", "--only", "config-mode", "state_dir"];
    let before = world.cli(&["doctor", "--only", "config-mode", "state_dir"]).await;
    ends(&before, 1, "svc: FAILURES above");
    assert_eq!(mode(&world.config), 0o646, "looking changes nothing");
    // What was not asked for is left alone.
    world.cli(&["doctor", "--fix", "--only", "git"]).await.ok();
    assert_eq!(mode(&world.config), 0o646);
    let fixed = world.cli(&named).await;
    ends(&fixed, 0, "svc: all checks passed");
    let said: Vec<&str> = fixed.stderr.lines().collect();
    let told = ["0646 -> 0600", "0755 -> 0700", "0644 -> 0600"];
    for (path, change) in [&world.config, &world.state, &inside].into_iter().zip(told) {
        let line = format!("svc: fixed: closed {} to others ({change})", path.display());
        assert!(said.contains(&&*line), "{said:?}");
    }
    // Looking may have left a log of the database behind, with the rights of the database.
    let known = |line: &&str| line.starts_with("svc: fixed: closed ");
    assert!(said.iter().all(known), "{said:?}");
    for entry in fs::read_dir(&world.state).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    let modes = [&world.config, &world.state, &inside].map(|path| mode(path));
    assert_eq!(modes, [0o600, 0o700, 0o600]);
    let again = world.cli(&named).await;
    ends(&again, 0, "svc: all checks passed");
    assert_eq!(again.stderr, "", "nothing is left to do");
}

#[tokio::test]
async fn a_session_that_was_given_up_is_named_until_it_is_resumed() {
    let restart = json!({ "policy": "on-crash", "max_crashes": 1, "initial_delay_seconds": 0.05 });
    let world = World::with(json!({ "restart": restart }));
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let mut page = server.events().await;
    world.bridges_of("app")[0].signal(rustix::process::Signal::KILL);
    page.until("the end of the restarts", |state| {
        let mut rows = state.instances.values();
        rows.find(|row| row.restart.state.to_string() == "quarantined").map(|_| ())
    })
    .await;
    let found = world.cli(&["doctor", "--json", "--only", "restart"]).await.json();
    says(&found, "restart", "warn", "1 session held: app (crashed too often)");
    says(&server.client.get("/api/doctor").await.expect(200).json(), "restart", "warn", "app");
    world.cli(&["resume", "app"]).await.ok();
    let found = world.cli(&["doctor", "--json", "--only", "restart"]).await.json();
    says(&found, "restart", "ok", "no session is held");
}

#[tokio::test]
async fn a_program_file_that_is_gone_is_told_of_by_the_service() {
    let world = World::new();
    let program = world.root.join("svc");
    svc_programs::copy(service(), &program).unwrap();
    let start = Start { program: Some(program.clone()), ..Start::default() };
    let server = world.serve_as(start).await;
    fs::rename(&program, world.root.join("aside")).unwrap();
    let report = server.client.get("/api/doctor").await.expect(200).json();
    says(&report, "program", "fail", "cannot start again");
    assert_eq!(report["ok"], false);
    fs::rename(world.root.join("aside"), &program).unwrap();
    server.stop().await;
    let server = world.serve().await;
    let report = server.client.get("/api/doctor").await.expect(200).json();
    says(&report, "program", "ok", "the one installed");
    says(&report, "extra:pty", "ok", "built in");
}

#[tokio::test]
async fn the_daemon_of_direct_sessions_is_looked_for_where_they_are_on() {
    let world = World::with(json!({ "hosted": { "enabled": true } }));
    let report = async || world.cli(&["doctor", "--json", "--only", "binary:hosted"]).await.json();
    says(&report().await, "binary:hosted", "ok", "(>= ");
    let odd = world.root.join("odd");
    svc_programs::write(&odd, "#!/bin/sh\necho svc-hosted 0.0.1\n").unwrap();
    world.configure(json!({ "hosted": { "binary": odd } }));
    says(&report().await, "binary:hosted", "warn", "0.0.1 is older");
    world.configure(json!({ "hosted": { "binary": "/nowhere/svc-hosted" } }));
    says(&report().await, "binary:hosted", "warn", "/nowhere/svc-hosted");
}

#[tokio::test]
async fn nvm_without_a_usable_default_is_told_of() {
    let world = World::with(json!({ "claude": { "node_from_nvm": true } }));
    let nvm = world.root.join("nvm");
    let bin = nvm.join("versions/node/v20.1.0/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(nvm.join("alias")).unwrap();
    fs::write(bin.join("node"), "").unwrap();
    let found = async || {
        let env = [("NVM_DIR", nvm.to_str().unwrap())];
        world.cli_with(&["doctor", "--json", "--only", "node-toolchain"], &env).await.json()
    };
    says(&found().await, "node-toolchain", "warn", "alias `default`");
    fs::write(nvm.join("alias/default"), "v20.1.0\n").unwrap();
    says(&found().await, "node-toolchain", "ok", "v20.1.0/bin");
    world.configure(json!({ "claude": { "node_from_nvm": false } }));
    says(&found().await, "node-toolchain", "warn", "claude.node_from_nvm");
}
