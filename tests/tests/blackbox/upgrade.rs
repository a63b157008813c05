//! Another version in the place of the running one, and the way back (H114, H121).

use crate::harness::{Process, Ran, Server, Start, World, gone, service, service_with_fail_points};
use crate::in_place::started_at;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use svc_shared::api::instances::Instance;
use svc_skip::{NO_FAIL_POINTS, skip};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Clients that ask without a pause.
const CLIENTS: usize = 12;

/// A build of the program that differs from others by its last bytes.
fn build(world: &World, name: &str) -> PathBuf {
    build_of(world, &service(), name)
}

fn build_of(world: &World, program: &Path, name: &str) -> PathBuf {
    let path = world.root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut content = fs::read(program).unwrap();
    content.extend_from_slice(name.as_bytes());
    svc_programs::write(&path, content).unwrap();
    path
}

/// A program that is like the real one but for what a shell does in some cases.
fn broken(world: &World, cases: &str) -> PathBuf {
    let path = world.root.join("broken");
    let real = service();
    let text =
        format!("#!/bin/sh\ncase \"$1\" in\n{cases}\nesac\nexec '{}' \"$@\"\n", real.display());
    svc_programs::write(&path, text).unwrap();
    path
}

fn digest(path: &Path) -> String {
    hex::encode(Sha256::digest(fs::read(path).unwrap()))
}

async fn upgrade(world: &World, from: &Path) -> Ran {
    world.cli(&["upgrade", "--from", from.to_str().unwrap(), "--json"]).await
}

/// What a program does that takes the service's place and answers 503 to all.
async fn unwell(world: &World) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut caller, _)) = listener.accept().await {
            let reply = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
            let _ = caller.read(&mut [0; 4096]).await; // whatever it asks
            let _ = caller.write_all(reply.as_bytes()).await; // or it has gone
        }
    });
    let record = json!({
        "pid": "PID", "start_ticks": 1, "boot_id": "none", "started_at": 1,
        "address": format!("http://{address}/"),
    });
    let record = record.to_string().replace("\"PID\"", "%d");
    let file = world.state.join("run.lock");
    format!("run) printf '{record}' $$ >'{}'; exec sleep 600 ;;", file.display())
}

/// A service that runs from a build in a directory of its own, with a bridge.
async fn served<'w>(world: &'w World, program: &Path) -> (Server<'w>, Instance) {
    let start = Start { program: Some(program.to_owned()), ..Start::default() };
    let server = world.serve_as(start).await;
    let row = server.client.run("app").await;
    (server, row)
}

/// The bridge runs as before, and the service answers as the same process.
async fn goes_on(world: &World, server: &Server<'_>, old: &Instance) {
    let row = server.client.instance("app").await.expect(200).instance();
    assert_eq!((row.instance_id, row.bridge_pid), (old.instance_id.clone(), old.bridge_pid));
    assert_eq!(row.status.to_string(), "running");
    let record = fs::read(world.state_dir().join("run.lock")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["pid"], server.pid, "the same process");
    assert_eq!(world.agree().await.bridges.len(), 1);
}

fn runs_from(server: &Server<'_>) -> PathBuf {
    fs::read_link(format!("/proc/{}/exe", server.pid)).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn h121_an_upgrade_under_load_refuses_no_connection_and_keeps_what_was() {
    let world = World::new();
    world.project("app");
    let program = build(&world, "bin/svc");
    let (before, next) = (digest(&program), build(&world, "next/svc"));
    let (server, row) = served(&world, &program).await;
    let (from, sha256) = (next.to_str().unwrap(), digest(&next));
    let is_over = AtomicBool::new(false);
    let work = async {
        let args = ["upgrade", "--from", from, "--sha256", &sha256, "--json"];
        let done = world.cli(&args).await.ok().json();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!((&done["upgraded"], &done["pid"]), (&json!(true), &json!(server.pid)));
    };
    // The program that is tried ends connections; none is refused.
    let clients = join_all((0..CLIENTS).map(|_| async {
        while !is_over.load(Ordering::Relaxed) {
            let request = server.client.request(Method::GET, "/api/v1/instances");
            match server.client.try_send(request.header("connection", "close")).await {
                Ok(reply) => drop(reply.expect(200)),
                Err(error) => assert!(!error.is_connect(), "refused: {error}"),
            }
        }
    }));
    tokio::join!(work, clients);
    assert_eq!(digest(&program), sha256);
    assert_eq!(digest(&world.root.join("bin/svc.previous")), before);
    assert_eq!(names(&world.root.join("bin")), ["svc", "svc.previous"]);
    let mode = fs::metadata(&program).unwrap().permissions().mode() & 0o7777;
    assert_eq!((runs_from(&server), mode), (program.clone(), 0o755));
    goes_on(&world, &server, &row).await;
    let audit = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    assert!(audit.contains("\"upgrade\"") && audit.contains(&sha256), "{audit}");
    // The same once more is nothing to do.
    let at = started_at(&world);
    let again = upgrade(&world, &next).await.ok().json();
    assert_eq!((&again["upgraded"], started_at(&world)), (&json!(false), at));
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn h121_what_does_not_serve_is_taken_back_with_the_registry() {
    let world = World::new();
    world.project("app");
    let program = build(&world, "bin/svc");
    let before = digest(&program);
    let (server, row) = served(&world, &program).await;
    let database = world.state.join("svc.db");
    // Behind the header of the file is the number of its schema.
    let migrated = format!(
        "printf '\\000\\000\\003\\347' | dd of='{}' bs=1 seek=60 conv=notrunc 2>/dev/null",
        database.display()
    );
    for (what, cases, words) in [
        ("exits at once", "run) exit 3 ;;".to_owned(), "exit status: 3"),
        ("dies at its migration", format!("run) {migrated}; kill -9 $$ ;;"), "signal: 9"),
        (
            "removes the database",
            format!("run) rm -f '{}'; exit 1 ;;", database.display()),
            "it ended",
        ),
        ("never serves", "run) exec sleep 600 ;;".to_owned(), "did not serve within"),
        ("answers that it is not well", unwell(&world).await, "did not serve within"),
    ] {
        let from = broken(&world, &cases);
        let ran = upgrade(&world, &from).await;
        assert_eq!(ran.code, Some(1), "{what}: {ran:?}");
        let error = ran.json()["error"].clone();
        assert_eq!(error["code"], "returned", "{what}: {error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{what}: {error}");
        assert_eq!(digest(&program), before, "{what}");
        assert_eq!(names(&world.root.join("bin")), ["svc"], "{what}");
        assert_eq!(runs_from(&server), program, "{what}");
        goes_on(&world, &server, &row).await;
    }
    let kept = names(&world.state.join("backups"));
    assert!(kept.iter().any(|name| name.starts_with("refused-after-")), "{kept:?}");
    let audit = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    assert_eq!(audit.matches("\"upgrade-failed\"").count(), 5, "{audit}");
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn h114_h121_what_cannot_start_is_refused_before_anything_ends() {
    let world = World::new();
    world.project("app");
    let program = build(&world, "bin/svc");
    let (server, row) = served(&world, &program).await;
    let (before, at) = (digest(&program), started_at(&world));
    let mut foreign = fs::read(service()).unwrap();
    foreign[18..20].copy_from_slice(&[0xff, 0x7f]);
    let other = world.root.join("other-processor");
    fs::write(&other, foreign).unwrap();
    let text = world.root.join("text");
    fs::write(&text, "no program\n").unwrap();
    let refusal = |reason: &str| format!("echo '{reason}' >&2; exit 2 ;;");
    let newer = "{\"error\":{\"code\":\"no_start\",\"message\":\"schema 7 is too new\"}}";
    for (what, from, words) in [
        ("another processor", other, "does not run on this machine"),
        ("no program", text, "nothing was changed"),
        ("not svc", broken(&world, "--version) echo other 1.0; exit 0 ;;"), "it is not svc"),
        (
            "a refused configuration",
            {
                let from = broken(&world, &format!("config) {}", refusal("svc.yml:1: no")));
                let own = world.root.join("refuses-configuration");
                fs::rename(from, &own).unwrap();
                own
            },
            "svc.yml:1: no",
        ),
        (
            "a refused schema",
            {
                let from = broken(&world, &format!("__can-start__) echo '{newer}'; exit 1 ;;"));
                let own = world.root.join("refuses-schema");
                fs::rename(from, &own).unwrap();
                own
            },
            "schema 7 is too new",
        ),
    ] {
        // The one that another case was made from is made again.
        let from = match what {
            "not svc" => broken(&world, "--version) echo other 1.0; exit 0 ;;"),
            _ => from,
        };
        let ran = upgrade(&world, &from).await;
        assert_eq!(ran.code, Some(1), "{what}: {ran:?}");
        let error = ran.json()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains(words), "{what}: {error}");
        assert_eq!((digest(&program), started_at(&world)), (before.clone(), at), "{what}");
        assert_eq!(names(&world.root.join("bin")), ["svc"], "{what}");
    }
    let next = build(&world, "next/svc");
    let zeros = "0".repeat(64);
    let args = ["upgrade", "--from", next.to_str().unwrap(), "--sha256", &zeros, "--json"];
    let ran = world.cli(&args).await;
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("digest_mismatch")));
    assert_eq!(started_at(&world), at);
    goes_on(&world, &server, &row).await;
    server.stop().await;
    let ran = upgrade(&world, &next).await;
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(2), &json!("not_running")));
    // The question that a program is asked: a schema of the future is named.
    assert_eq!(world.sql("PRAGMA user_version = 999").await.unwrap(), 0);
    let config = world.config.to_str().unwrap();
    let ran = world.cli(&["__can-start__", "--json", "-c", config]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.json()["error"]["message"].as_str().unwrap().contains("999"), "{ran:?}");
}

#[tokio::test]
async fn h114_a_link_that_leads_to_another_version_is_followed() {
    let world = World::new();
    world.project("app");
    let (one, two) = (build(&world, "one/svc"), build(&world, "two/svc"));
    let link = world.root.join("svc-link");
    symlink(&one, &link).unwrap();
    let (server, row) = served(&world, &link).await;
    assert_eq!(runs_from(&server), one);
    fs::remove_file(&link).unwrap();
    symlink(&two, &link).unwrap();
    world.cli(&["restart"]).await.ok();
    assert_eq!(runs_from(&server), two);
    goes_on(&world, &server, &row).await;
    // An upgrade keeps the link and exchanges what it leads to.
    let next = build(&world, "next/svc");
    upgrade(&world, &next).await.ok();
    assert_eq!((fs::read_link(&link).unwrap(), digest(&two)), (two.clone(), digest(&next)));
    assert_eq!(runs_from(&server), two);
    goes_on(&world, &server, &row).await;
    let mut command = world.command(&link, &["install-service", "systemd"]);
    let unit = crate::harness::within("a unit", command.output()).await.unwrap();
    let unit = String::from_utf8(unit.stdout).unwrap();
    assert!(unit.contains(&format!("ExecStart={} run", link.display())), "{unit}");
}

/// A service that runs from a build with fail points, and the build to follow it.
async fn served_with<'w>(
    world: &'w World,
    program: &Path,
    points: &str,
) -> (Server<'w>, PathBuf, PathBuf) {
    world.project("app");
    let target = build_of(world, program, "bin/svc");
    let next = build_of(world, program, "next/svc");
    let env = [("SVC_FAILPOINTS", points)];
    let start = Start { program: Some(target.clone()), env: &env, ..Start::default() };
    (world.serve_as(start).await, target, next)
}

/// The process of the program that is tried, once it serves.
async fn tried(world: &World, server: &Server<'_>) -> Process {
    let record = || -> Option<i64> {
        let record = fs::read(world.state_dir().join("run.lock")).ok()?;
        let record: Value = serde_json::from_slice(&record).ok()?;
        let pid = record["pid"].as_i64().filter(|pid| *pid != i64::from(server.pid))?;
        record["address"].is_string().then_some(pid)
    };
    let pid = world.until("the program that is tried", record).await;
    let mut all = world.processes().into_iter();
    all.find(|process| i64::from(process.pid) == pid).expect("it runs")
}

fn stage(world: &World) -> String {
    let outcome = fs::read(world.state_dir().join("upgrade.json")).unwrap();
    let outcome: Value = serde_json::from_slice(&outcome).unwrap();
    outcome["stage"].as_str().unwrap().to_owned()
}

/// The program that is tried ends with its service, and the next start goes on.
#[tokio::test]
async fn h121_a_service_that_is_killed_in_a_trial_starts_again_and_names_the_program() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    let (server, target, next) = served_with(&world, &program, "upgrade.served=600000").await;
    let row = server.client.run("app").await;
    let killed = async {
        let child = tried(&world, &server).await;
        server.kill().await;
        gone(&child).await;
    };
    tokio::select! {
        done = upgrade(&world, &next) => panic!("the command waits: {done:?}"),
        () = killed => {}
    }
    assert_eq!((stage(&world), digest(&target)), ("trying".to_owned(), digest(&next)));

    let start = Start { program: Some(target.clone()), ..Start::default() };
    let server = world.serve_as(start).await;
    server.says("was killed while the new program was tried; the new program serves now").await;
    world.until("the outcome", || (stage(&world) == "kept").then_some(())).await;
    goes_on(&world, &server, &row).await;
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
}

/// A request to end is not forgotten while the program that served makes room.
#[tokio::test]
async fn h121_a_service_that_is_asked_to_end_in_a_trial_ends_when_it_is_done() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    let (server, target, next) = served_with(&world, &program, "upgrade.served=1000").await;
    let ended = async {
        tried(&world, &server).await;
        server.says("the new program serves").await;
        server.stop().await
    };
    let (code, log) = tokio::select! {
        done = upgrade(&world, &next) => panic!("the service ends: {done:?}"),
        ended = ended => ended,
    };
    assert_eq!((code, stage(&world)), (Some(0), "kept".to_owned()), "{log}");
    assert_eq!(digest(&target), digest(&next));
}

/// Nobody reads in the audit log of an upgrade that did not happen.
#[tokio::test]
async fn a_refused_upgrade_is_told_of_as_failed() {
    let world = World::new();
    let target = build(&world, "bin/svc");
    let start = Start { program: Some(target.clone()), ..Start::default() };
    let server = world.serve_as(start).await;
    let done = upgrade(&world, &broken(&world, "config) echo no >&2; exit 3 ;;")).await;
    assert_ne!(done.code, Some(0), "{done:?}");
    let audit = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    let entries: Vec<Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let actions: Vec<&str> =
        entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["upgrade", "upgrade-failed"]);
    assert_eq!(entries[0]["keys"], entries[1]["keys"]);
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
}
