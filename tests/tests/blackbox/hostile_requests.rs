//! Forged requests, directories that change under a bridge, missing answers.

use crate::harness::{Process, Server, Start, World, gone, within};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Content of every file of a tree that is not a log or a cache of the database.
fn contents(dir: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap().filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().unwrap().is_dir() {
            if !["logs", ".agent-sim", "sessions"].contains(&name.as_str()) {
                contents(&path, into);
            }
        } else if !name.ends_with("-shm") && name != "bridge-pointer.json" {
            into.insert(path.clone(), fs::read(path).unwrap_or_default());
        }
    }
}

async fn world_as_seen(world: &World) -> (BTreeMap<PathBuf, Vec<u8>>, String, Vec<i32>) {
    let mut files = BTreeMap::new();
    contents(&world.root, &mut files);
    let rows = format!("{:?}", world.rows().await);
    let mut pids: Vec<i32> = world.bridges().iter().map(|bridge| bridge.pid).collect();
    pids.sort_unstable();
    (files, rows, pids)
}

/// H8: reading changes nothing, whatever method the request claims to be.
#[tokio::test]
async fn h8_reading_changes_nothing_and_no_method_is_smuggled_in() {
    let world = World::new();
    world.repository("app");
    world.project("idle");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut page = server.events().await;
    page.until("the probes", |state| {
        let health = state.health.as_ref()?;
        (health.claude_version.is_some() && health.claude_login_method.is_some()).then_some(())
    })
    .await;
    let document = server.client.get("/openapi.json").await.expect(200).json();
    let documented = document["paths"].as_object().unwrap().iter();
    let documented = documented.filter(|(_, methods)| methods.get("get").is_some());
    let mut paths: Vec<String> =
        documented.map(|(path, _)| path.replace("{instance_id}", &id)).collect();
    let others = ["/", "/healthz", "/api/state", "/api/projects/app", "/api/projects/preflight"];
    paths.extend(others.map(str::to_owned));
    paths.push(format!("/api/instances/{id}/log"));
    let before = world_as_seen(&world).await;
    for path in &paths {
        for tail in ["", "?_method=DELETE", "?method=POST&_method=PUT"] {
            let request = server.client.request(Method::GET, &format!("{path}{tail}"));
            let request = request
                .header("X-HTTP-Method-Override", "DELETE")
                .header("X-HTTP-Method", "DELETE")
                .header("X-Method-Override", "POST");
            let reply = server.client.send(request).await;
            assert!(reply.status < 500, "{path}: {}", reply.text());
        }
    }
    let after = world_as_seen(&world).await;
    assert_eq!(before.1, after.1, "records");
    assert_eq!(before.2, after.2, "processes");
    let changed = after.0.iter().filter(|(path, now)| before.0.get(*path) != Some(now));
    let changed: Vec<_> = changed.map(|(path, _)| path).collect();
    assert!(changed.is_empty(), "files changed by reading: {changed:?}");
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let request = server.client.request(Method::POST, "/api/v1/instances");
        let request = request.header("Content-Type", kind).body(r#"{"project":"idle"}"#);
        assert_eq!(server.client.send(request).await.status, 415, "{kind}");
    }
    assert!(world.starts("idle").is_empty());
}

/// H11: what a stranger says about where it comes from is not believed.
#[tokio::test]
async fn h11_forwarding_headers_of_strangers_change_nothing() {
    let world = World::new();
    let server = world.serve().await;
    let plain = server.client.get("/api/v1/projects").await.expect(200);
    let request = server.client.request(Method::GET, "/api/v1/projects");
    let forged = request
        .header("X-Forwarded-For", "203.0.113.7")
        .header("X-Forwarded-Proto", "https")
        .header("X-Forwarded-Host", "evil.example")
        .header("Forwarded", "for=203.0.113.7;proto=https;host=evil.example")
        .header("X-Real-IP", "203.0.113.7");
    let forged = server.client.send(forged).await.expect(200);
    assert_eq!(forged.body, plain.body);
    let names = |reply: &crate::harness::Reply| {
        let mut names: Vec<_> = reply.headers.keys().map(ToString::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(names(&forged), names(&plain), "no cookie, no transport security");
    let (_, log) = server.stop().await;
    assert!(!log.contains("203.0.113.7") && !log.contains("evil.example"), "{log}");
}

/// H10: no request follows a body that nobody read, and whoever asks is told.
#[tokio::test]
async fn h10_the_answer_to_an_unread_body_says_that_the_connection_ends() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let ask = || {
        let body = json!({ "project": "app", "spawn_mode": "odd" });
        server.client.request(Method::POST, "/api/v1/instances").json(&body)
    };
    let foreign = ask().header("Origin", "https://elsewhere.example");
    let refused = server.client.send(foreign).await.expect(403);
    assert_eq!(refused.header("connection"), Some("close"));
    let refused = server.client.send(ask()).await.expect(422);
    assert_eq!(refused.header("connection"), None, "it was read");
}

/// H42: an id of a request is looked up, never made a path.
#[tokio::test]
async fn h42_ids_that_look_like_paths_are_unknown() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let long = "a".repeat(7000);
    for id in [
        "..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "..%5c..%5cetc",
        "app%2f..%2fapp",
        "app%00",
        "%00",
        "%ff%fe",
        "app%0a",
        long.as_str(),
    ] {
        for path in [
            format!("/api/v1/instances/{id}"),
            format!("/api/instances/{id}/log"),
            format!("/ws/bridge-log/{id}"),
            format!("/api/projects/{id}"),
        ] {
            let reply = server.client.get(&path).await;
            assert!([400, 404, 414, 422, 426].contains(&reply.status), "{path}: {}", reply.status);
            assert!(!reply.text().contains("root:"), "{path}");
        }
        let stopped = server.client.stop(id).await;
        assert!([400, 404, 414, 422].contains(&stopped.status), "{id}: {}", stopped.status);
    }
    assert_eq!(world.bridges().len(), 1);
}

/// H82: asking for health starts no process.
#[tokio::test]
async fn h82_health_is_answered_without_asking_the_agent_each_time() {
    let world = World::new();
    let server = world.serve().await;
    for _ in 0..20 {
        let crowd = join_all((0..50).map(|_| server.client.get("/healthz"))).await;
        assert!(crowd.iter().all(|reply| reply.status == 200));
    }
    let calls = world.calls();
    let asked = |word: &str| {
        let with = |call: &&serde_json::Value| {
            call["argv"].as_array().is_some_and(|argv| argv.iter().any(|arg| arg == word))
        };
        calls.iter().filter(with).count()
    };
    assert!(asked("--version") <= 3 && asked("auth") <= 3, "{calls:?}");
}

/// H41: what a repository configures for git runs nothing when its facts are read.
#[tokio::test]
async fn h41_a_repository_full_of_commands_runs_none_of_them() {
    let world = World::new();
    let dir = world.repository("app");
    let mark = world.root.join("the-repository-ran-something");
    let run = format!("touch {}", mark.display());
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"{run}\"\n\thooksPath = .git/hooks\n\
         \tpager = \"{run}\"\n\teditor = \"{run}\"\n\tsshCommand = \"{run}\"\n\
         [diff]\n\texternal = \"{run}\"\n[filter \"x\"]\n\tclean = \"{run}\"\n\tsmudge = \"{run}\"\n\
         [alias]\n\tstatus = \"!{run}\"\n"
    );
    fs::write(dir.join(".git/config"), config).unwrap();
    fs::write(dir.join(".gitattributes"), "* filter=x diff=x\n").unwrap();
    for hook in ["post-checkout", "pre-commit", "post-index-change", "reference-transaction"] {
        let file = dir.join(".git/hooks").join(hook);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        svc_programs::write(&file, format!("#!/bin/sh\n{run}\n")).unwrap();
    }
    // A repository that claims to be somewhere else.
    let astray = world.project("astray");
    fs::write(astray.join(".git"), "gitdir: /etc\n").unwrap();
    let server = world.serve().await;
    for path in ["/api/v1/projects", "/api/projects/preflight", "/api/state", "/api/v1/sessions"] {
        server.client.get(path).await.expect(200);
    }
    server.client.run("app").await;
    server.client.run("astray").await;
    assert!(!mark.exists(), "something of the repository was run");
}

/// H38: a directory is swapped for a link all the time.
/// The agent starts in the directory that was checked, or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn h38_an_agent_never_starts_where_a_swapped_link_leads() {
    let world = World::new();
    // Without a pointer no start waits for the fate of an earlier session.
    let inside = world.project_with("app", json!({ "pointer": "none" }));
    let outside = world.root.join("outside");
    fs::create_dir(&outside).unwrap();
    // A link among the projects is a project, but what it leads to was never trusted.
    let link = world.root.join("link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let server = world.serve().await;
    let over = AtomicBool::new(false);
    let (swaps, answers) = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0_u64;
            while !over.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let cwd = rustix::fs::CWD;
                rustix::fs::renameat_with(cwd, &inside, cwd, &link, flags).unwrap();
                swaps += 1;
                // Mostly the directory is itself, so that launches get far enough to be misled.
                let rest = if swaps.is_multiple_of(2) { 4000 } else { 100 };
                std::thread::sleep(std::time::Duration::from_micros(rest));
            }
            if !swaps.is_multiple_of(2) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let cwd = rustix::fs::CWD;
                rustix::fs::renameat_with(cwd, &inside, cwd, &link, flags).unwrap();
            }
            swaps
        });
        let answers = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(launches(&server, 40))
        });
        over.store(true, Ordering::Relaxed);
        (swapper.join().unwrap(), answers)
    });
    // Left in peace, the directory serves as ever, as soon as the last swap has been seen.
    let served = async { while ![200, 201].contains(&server.client.launch("app").await.status) {} };
    within("a launch", served).await;
    let starts: Vec<String> = world
        .calls()
        .iter()
        .filter(|call| call["argv"][0] == "remote-control")
        .filter_map(|call| call["cwd"].as_str().map(str::to_owned))
        .collect();
    let strays: Vec<_> = starts.iter().filter(|cwd| cwd.contains("outside")).collect();
    assert!(strays.is_empty(), "{strays:?} of {}", starts.len());
    assert!(answers.iter().all(|status| *status < 500 || *status == 503), "{answers:?}");
    assert!(!starts.is_empty());
    eprintln!(
        "{answers:?} {swaps} swaps, {} launches asked for, {} started",
        answers.len(),
        starts.len()
    );
}

async fn launches(server: &Server<'_>, count: usize) -> Vec<u16> {
    let mut answers = Vec::new();
    for _ in 0..count {
        let reply = server.client.launch("app").await;
        answers.push(reply.status);
        if let Some(id) = reply.json()["instance_id"].as_str() {
            answers.push(server.client.stop(id).await.status);
        }
    }
    answers
}

/// H116: the state directory is removed under the service.
#[tokio::test]
async fn h116_a_removed_state_directory_is_told_and_not_quietly_made_anew() {
    let world = World::new();
    world.project("app");
    world.project("other");
    let server = world.serve().await;
    server.client.run("app").await;
    // The service may make a file in it while it goes.
    loop {
        match fs::remove_dir_all(&world.state) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
            gone => break gone.unwrap(),
        }
    }
    let refused = server.client.launch("other").await;
    assert!([503, 507].contains(&refused.status), "{}: {}", refused.status, refused.text());
    assert!(!world.state.join("svc.db").exists(), "an empty registry was made");
    let shown = server.client.instances().await;
    assert_eq!(shown.len(), 1);
    server.client.get("/api/state").await.expect(200);
    server.client.get("/healthz").await.expect(200);
    let stop = server.client.stop("app").await;
    assert!([200, 503, 507].contains(&stop.status), "{}", stop.text());
    assert!(world.starts("other").is_empty());
}

/// F63: the directory of the logs is removed: the next launch makes it again.
#[tokio::test]
async fn f63_a_removed_log_directory_is_made_again_and_the_bridge_goes_on() {
    let world = World::new();
    world.project("app");
    world.project("other");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    fs::remove_dir_all(world.state.join("logs")).unwrap();
    server.client.run("other").await;
    let still = server.client.instance("app").await.instance();
    assert_eq!((still.status.to_string(), still.bridge_pid), ("running".into(), row.bridge_pid));
    server.client.stop("app").await.expect(200);
}

/// F27: another directory takes the name while the bridge runs in the old one.
#[tokio::test]
async fn f27_a_bridge_whose_directory_was_replaced_is_known_by_its_process() {
    let world = World::new();
    let dir = world.project("app");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    let bridge = world.bridges_of("app").remove(0);
    fs::rename(&dir, world.root.join("moved")).unwrap();
    fs::create_dir(&dir).unwrap();
    let still = server.client.instance(row.instance_id.as_str()).await.instance();
    assert_eq!((still.status.to_string(), still.bridge_pid), ("running".into(), row.bridge_pid));
    let adoptable = server.client.get("/api/v1/sessions/adoptable").await.expect(200).json();
    assert_eq!(adoptable, json!([]), "what runs elsewhere is not taken over");
    let stopped = server.client.stop(row.instance_id.as_str()).await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
    gone(&bridge).await;
}

/// A killed service, and its one live bridge, whose record says that it ended.
async fn ended_on_paper(world: &World, intentional: bool) -> (String, Process) {
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let bridge = world.bridges_of("app").remove(0);
    server.kill().await;
    let (switch, reason) =
        if intentional { (1, "operator_stop") } else { (0, "died_unsupervised") };
    let edit = format!(
        "UPDATE bridges SET status = 'stopped', phase = 'exited', ended_at = 2, \
         intentional_stop = {switch}, exit_reason = '{reason}', revision = revision + 1"
    );
    world.sql(&edit).await.unwrap();
    // A command looks before the service has corrected it.
    let forgotten = world.cli(&["forget", &id]).await;
    assert_ne!(forgotten.code, Some(0), "{forgotten:?}");
    assert!(bridge.is_alive());
    (id, bridge)
}

/// F48: a record that is wrongly ended keeps its process.
#[tokio::test]
async fn f48_a_record_edited_to_be_ended_is_not_forgotten_over_its_live_process() {
    let world = World::new();
    let (id, bridge) = ended_on_paper(&world, false).await;
    let server = world.serve().await;
    let forgotten = server.client.post(&format!("/api/instances/{id}/forget")).await;
    assert_eq!(forgotten.status, 409, "{}", forgotten.text());
    assert!(bridge.is_alive());
    server.client.stop(&id).await.expect(200);
}

/// F48: a recorded stop that was not finished is finished, whatever else happens.
#[tokio::test]
async fn f48_a_stop_that_is_only_on_record_is_finished_by_the_service() {
    let world = World::new();
    let (id, bridge) = ended_on_paper(&world, true).await;
    let server = world.serve().await;
    gone(&bridge).await;
    let row = server.events().await.until_status("app", "stopped").await;
    assert!(row.intentional_stop && row.instance_id.as_str() == id, "{row:?}");
}

fn list_calls(world: &World) -> Vec<Process> {
    let mut calls = world.processes();
    calls.retain(|process| process.argv.get(1).is_some_and(|word| word == "agents"));
    calls
}

/// F53: the agent's list never comes back; fifty pages ask for sessions.
#[tokio::test]
async fn f53_a_session_list_that_hangs_is_asked_for_once_and_holds_up_nobody() {
    let world = World::new();
    world.project("app");
    let env = [("AGENT_SIM_AGENTS_OUTPUT", "hang")];
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    server.client.run("app").await;
    for _ in 0..4 {
        let asked = join_all((0..50).map(|_| server.client.get("/api/v1/sessions"))).await;
        assert!(asked.iter().all(|reply| reply.status == 200));
        let running = list_calls(&world);
        assert!(running.len() <= 1, "{running:?}");
    }
    let row = server.client.instance("app").await.instance();
    assert_eq!(row.status.to_string(), "running", "no bridge is demoted");
}

/// F89: yesterday's registry beside today's bridges.
#[tokio::test]
async fn f89_a_restored_registry_finds_the_bridges_again_and_doubles_none() {
    let world = World::new();
    world.project("old");
    world.project("new");
    let server = world.serve().await;
    server.client.run("old").await;
    server.stop().await;
    let kept = world.root.join("yesterday.db");
    fs::copy(world.state.join("svc.db"), &kept).unwrap();

    let server = world.serve().await;
    let launched = server.client.run("new").await;
    server.client.stop("old").await.expect(200);
    let resumed = server.client.resume("old").await.expect(200).instance();
    server.kill().await;
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(world.state.join(format!("svc.db{suffix}")));
    }
    fs::copy(&kept, world.state.join("svc.db")).unwrap();

    let server = world.serve().await;
    // The bridge that the registry does not know is taken over, not doubled.
    let again = within("the launch", server.client.launch("new")).await;
    assert!([200, 201].contains(&again.status), "{}", again.text());
    assert_eq!(again.instance().bridge_pid, launched.bridge_pid, "{}", again.text());
    let old = server.client.launch("old").await;
    assert!([200, 201, 409].contains(&old.status), "{}", old.text());
    assert_eq!(world.bridges_of("new").len(), 1);
    let olds = world.bridges_of("old");
    assert_eq!(olds.len(), 1, "{olds:?}");
    assert_eq!(Some(i64::from(olds[0].pid)), resumed.bridge_pid.map(i64::from));
    let ids: Vec<String> = world.rows().await.into_iter().map(|row| row.instance_id).collect();
    let unique: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
}
