//! What an agent gets from the service, and what it must not (H29 to H36).

use crate::harness::{Start, World};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// H29: whatever a value looks like, it is one word in its own place, or refused.
#[tokio::test]
async fn h29_no_value_is_read_as_an_option() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let hostile = [
        "-x",
        "--dangerously-skip-permissions",
        "--help",
        "-",
        "--",
        "--debug-file=/etc/x",
        "@file",
        "$(touch x)",
        "`touch x`",
        "a;b",
        "a&b",
        "%PATH%",
        "it's \"quoted\"",
        "--spawn session",
    ];
    for name in hostile {
        let reply = server.client.launch_with(json!({ "project": "app", "name": name })).await;
        if name.starts_with('-') {
            assert_eq!(reply.refused(422), "invalid_value", "{name}");
            let id = server.client.launch("app").await.instance().instance_id.to_string();
            let rename =
                server.client.request(reqwest::Method::PATCH, &format!("/api/instances/{id}"));
            let renamed = server.client.send(rename.json(&json!({ "label": name }))).await;
            assert_eq!(renamed.refused(422), "invalid_value", "{name}");
        } else {
            assert_eq!(reply.expect(201).instance().status.to_string(), "running", "{name}");
            let call = world.starts("app").pop().unwrap();
            assert_eq!(call["argv"][2], name, "verbatim, in the place of the value");
            let words = call["argv"].as_array().unwrap().iter();
            let options = words.filter(|word| word.as_str().unwrap().starts_with("--"));
            assert_eq!(options.count(), 6, "{call}");
        }
        server.client.stop(live(&world).await.as_str()).await.expect(200);
    }
    // On the command line too: what begins with a dash is an option or a mistake.
    for name in ["-x", "--dangerously-skip-permissions", "--"] {
        assert_eq!(world.cli(&["start", name]).await.code, Some(2), "{name}");
        let joined = format!("--name={name}");
        assert_eq!(world.cli(&["start", "app", &joined]).await.code, Some(2), "{name}");
    }
    assert!(!world.projects.join("app/x").exists());
}

async fn live(world: &World) -> String {
    let rows = world.rows().await;
    rows.into_iter().find(|row| row.is_live()).expect("a live record").instance_id
}

/// H30: characters that deceive a reader are refused where names come in.
#[tokio::test]
async fn h30_deceptive_characters_are_refused_in_names() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    for character in [
        '\0', '\u{1}', '\n', '\u{7f}', '\u{85}', '\u{2028}', '\u{2029}', '\u{202e}', '\u{2066}',
        '\u{200b}', '\u{feff}', '\u{e000}', '\u{378}',
    ] {
        let name = format!("a{character}b");
        let reply = server.client.launch_with(json!({ "project": "app", "name": name })).await;
        assert_eq!(reply.status, 422, "{character:?}: {}", reply.text());
        let reply = server.client.launch_with(json!({ "project": name })).await;
        assert!([404, 422].contains(&reply.status), "{character:?}: {}", reply.text());
    }
    let request = server.client.request(reqwest::Method::POST, "/api/v1/instances");
    let lone = request
        .header("Content-Type", "application/json")
        .body(r#"{"project": "app", "name": "\ud800"}"#);
    assert_eq!(server.client.send(lone).await.status, 422);
    assert!(world.rows().await.is_empty());
}

const CANARY: &str = "c4n4ry-0123456789abcdef0123456789";

/// H32, H35: secrets of the service reach no child, by environment or by argument.
#[tokio::test]
async fn h32_h35_no_secret_of_the_service_reaches_a_child() {
    let world = World::new();
    world.repository("app");
    world.set_knobs("app", json!({ "children": 1 }));
    let planted = [
        "SVC_SESSION_SECRET",
        "SVC_SOMETHING_NEW",
        "SVC_NOTIFICATIONS_URLS",
        "CLAUDECODE",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
        "AI_AGENT",
        "LD_AUDIT",
        "DYLD_LIBRARY_PATH",
        "NODE_OPTIONS",
        "LISTEN_FDS",
        "LISTEN_PID",
        "WATCHDOG_USEC",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "CREDENTIALS_DIRECTORY",
        "NOTIFY_SOCKET",
        "SVC_LAUNCH_ID",
    ];
    let env: Vec<(&str, &str)> = planted
        .iter()
        .filter(|name| **name != "LISTEN_FDS" && **name != "LISTEN_PID")
        // The loader takes its own variable for a list of libraries and complains.
        .map(|name| (*name, if *name == "LD_AUDIT" { "" } else { CANARY }))
        .chain([("ANTHROPIC_BASE_URL", "https://kept.invalid"), ("TZ", "UTC")])
        .collect();
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    server.client.run("app").await;
    let mut tree = world.trees();
    // The service was given a launch id too.
    tree.retain(|process| process.pid != server.pid);
    assert_eq!(tree.len(), 2, "{tree:?}");
    for process in &tree {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        assert!(!environment.contains(CANARY), "{environment}");
        assert!(!process.argv.concat().contains(CANARY));
        assert!(environment.contains("ANTHROPIC_BASE_URL=https://kept.invalid"));
    }
    let calls = world.calls();
    assert!(calls.len() >= 2, "the probes ran too");
    for call in &calls {
        let names = call["env_names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let leaked: Vec<&str> = names
            .filter(|name| planted.contains(name) || name.starts_with("SVC_"))
            .filter(|name| *name != "SVC_LAUNCH_ID")
            .collect();
        assert!(leaked.is_empty(), "{leaked:?} in {call}");
    }
    let own = &world.starts("app")[0];
    assert!(own["env_names"].as_array().unwrap().contains(&json!("SVC_LAUNCH_ID")));
    let everything = [server.log(), server.client.get("/api/state").await.text()].concat();
    assert!(!everything.contains(CANARY), "{everything}");
}

/// H33, H36: three descriptors, an own session, no terminal, the operator's umask.
#[tokio::test]
async fn h33_h36_an_agent_inherits_nothing_it_was_not_given() {
    let world = World::new();
    let names: Vec<String> = (0..6).map(|number| format!("p{number}")).collect();
    for name in &names {
        world.project(name);
    }
    let server = world.serve().await;
    // Sockets, database and locks of the service are busy while agents start.
    let _pages = [server.events().await, server.events().await];
    let lists = async {
        for _ in 0..60 {
            server.client.get("/api/v1/instances").await.expect(200);
        }
    };
    let launches = futures_util::future::join_all(names.iter().map(|name| server.client.run(name)));
    tokio::join!(lists, launches);
    for name in &names {
        let call = world.starts(name).pop().unwrap();
        let descriptors: Vec<&String> = call["fds"].as_object().unwrap().keys().collect();
        assert_eq!(descriptors, ["0", "1", "2"], "{}", call["fds"]);
        assert_eq!(call["fds"]["0"], "/dev/null");
        assert_eq!((&call["stdin"], &call["tty"]), (&json!("null"), &json!(false)));
        assert_eq!((&call["sid"], &call["pgid"]), (&call["pid"], &call["pid"]));
        assert_eq!(call["umask"], own_umask(), "the umask the service was started with");
        assert_clean_signals(call["pid"].as_i64().unwrap());
    }
    for bridge in world.bridges() {
        let limits = fs::read_to_string(format!("/proc/{}/limits", bridge.pid)).unwrap();
        let cores = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(cores.split_whitespace().nth(4), Some("0"), "{cores}");
    }
}

fn own_umask() -> Value {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
    json!(line.trim().trim_start_matches('0').to_owned())
        .as_str()
        .map(|text| format!("{text:0>3}"))
        .into()
}

/// No signal is blocked, and almost none is ignored or caught.
/// The exceptions are those that the agent itself handles or that every program ignores.
fn assert_clean_signals(pid: i64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    assert_eq!(set("SigBlk:"), 0);
    // A Rust program ignores SIGPIPE (13) by itself, and the double is one; the C library ignores
    // its own two (32, 33) in everything it spawns.
    let expected = 1 << 12 | 1 << 31 | 1 << 32;
    assert_eq!(set("SigIgn:") & !expected, 0, "{status}");
}

/// H34: programs come from the path of the start, never from a project.
#[tokio::test]
async fn h34_planted_programs_are_never_run() {
    let world = World::new();
    let dir = world.repository("app");
    let bin = world.root.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(crate::harness::simulator(), bin.join("claude")).unwrap();
    let mark = world.root.join("planted-was-run");
    for place in [&dir, &world.root, &world.projects] {
        for name in ["claude", "git", "node", "bash"] {
            plant(&place.join(name), &mark);
        }
    }
    world.configure(json!({ "claude": { "binary": "claude", "node_from_nvm": true } }));
    let path = std::env::var("PATH").unwrap();
    let path = format!(".::bin:{}:{path}", bin.display());
    let env = [("PATH", path.as_str())];
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let running =
        server.client.launch_with(json!({ "project": "app", "spawn_mode": "worktree" })).await;
    assert_eq!(running.expect(201).json()["status"], "running");
    let exe = world.starts("app")[0]["exe"].clone();
    assert_eq!(
        exe.as_str().map(Path::new),
        Some(&*crate::harness::simulator().canonicalize().unwrap())
    );
    server.client.get("/api/projects/preflight").await.expect(200);
    assert!(!mark.exists(), "a planted program ran");
}

fn plant(file: &Path, mark: &Path) {
    svc_programs::write(file, format!("#!/bin/sh\necho $0 >> '{}'\nexit 1\n", mark.display()))
        .unwrap();
}

/// H110: an agent that hangs, floods or babbles leaves the service usable.
#[tokio::test]
async fn f86_h110_a_misbehaving_probe_leaves_the_service_usable() {
    for knobs in [
        &[("AGENT_SIM_VERSION_MS", "600000"), ("AGENT_SIM_AUTH", "hang")][..],
        &[("AGENT_SIM_AGENTS_OUTPUT", "huge"), ("AGENT_SIM_AUTH", "garbage")],
        &[("AGENT_SIM_AGENTS_OUTPUT", "hang"), ("AGENT_SIM_VERSION_OUTPUT", "what?")],
        &[("AGENT_SIM_AGENTS_OUTPUT", "garbage")],
        &[("AGENT_SIM_AGENTS_OUTPUT", "rc1")],
    ] {
        let world = World::new();
        world.project("app");
        let server = world.serve_as(Start { env: knobs, ..Start::default() }).await;
        server.client.get("/healthz").await.expect(200);
        server.client.run("app").await;
        server.client.get("/api/v1/sessions").await.expect(200);
        server.client.stop("app").await.expect(200);
        let (code, _) = server.stop().await;
        assert_eq!(code, Some(0), "{knobs:?}");
    }
}
