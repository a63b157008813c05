//! Commands without a terminal or a writable home, and the wrong user (H138, H139).

use crate::harness::{Row, Start, World, gone, service, within};
use crate::hostile_scarcity::{brought, give};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use svc_skip::skip;

/// Arguments and exit code of each command.
const MATRIX: [(&[&str], i32); 23] = [
    (&["status", "--json"], 0),
    (&["status"], 0),
    (&["projects", "--json"], 0),
    (&["sessions", "--json"], 0),
    (&["stranded", "--json"], 0),
    (&["strays", "--json"], 0),
    (&["jobs", "list", "--json"], 0),
    (&["config", "check"], 0),
    (&["config", "show", "--json"], 0),
    (&["config", "path"], 0),
    (&["config", "schema"], 0),
    (&["api-token", "list", "--json"], 0),
    (&["reap-environments"], 2),
    (&["worktrees", "--json"], 0),
    (&["worktrees", "remove", "nope", "nope"], 2),
    (&["changes", "nope"], 2),
    (&["usage", "nope"], 2),
    (&["logs", "nope"], 2),
    (&["stop", "nope"], 2),
    (&["resume", "nope"], 2),
    (&["forget", "nope"], 2),
    (&["start", "nope"], 2),
    (&["start", "untrusted"], 2),
];

/// Name, variables of the environment, and whether standard input is closed.
type Around = (&'static str, &'static [(&'static str, &'static str)], bool);

const AROUND: [Around; 4] = [
    ("plain", &[], false),
    ("LANG=C", &[("LANG", "C"), ("LC_ALL", "C"), ("TERM", "dumb")], false),
    ("closed input", &[], true),
    ("colour forced and forbidden", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
];

async fn call(
    world: &World,
    args: &[&str],
    env: &[(&str, &str)],
    is_closed: bool,
) -> (i32, String) {
    let mut command = world.command(&service(), args);
    command.envs(env.iter().copied()).env("HOME", world.root.join("read-only"));
    if is_closed {
        // The shell closes the descriptor before the program begins.
        let words: Vec<String> = std::iter::once(service().to_str().unwrap().to_owned())
            .chain(args.iter().map(|arg| (*arg).to_owned()))
            .collect();
        command = tokio::process::Command::new("sh");
        command.args(["-c", "exec \"$@\" <&-", "sh"]).args(words).arg("--config");
        command.arg(&world.config).current_dir(&world.root).env_clear();
        command.envs(world.environment()).env("HOME", world.root.join("read-only"));
    }
    let ran = within("its end", command.output()).await.unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    (ran.status.code().unwrap_or(-1), said)
}

#[tokio::test]
async fn h138_commands_end_the_same_without_a_service_a_terminal_a_language_or_a_home() {
    let world = World::new();
    world.project("app");
    world.untrusted("untrusted");
    let home = world.root.join("read-only");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o500)).unwrap();
    for is_served in [false, true] {
        let server = if is_served { Some(world.serve().await) } else { None };
        for (args, expected) in MATRIX {
            let mut plain = None;
            for (around, env, is_closed) in AROUND {
                let (code, said) = call(&world, args, env, is_closed).await;
                let cell = format!("svc {args:?}, {around}, served {is_served}");
                assert_eq!(code, expected, "{cell}: {said}");
                assert!(!said.contains("panicked") && !said.contains('\u{1b}'), "{cell}: {said:?}");
                assert!(said.is_ascii() || !around.starts_with("LANG"), "{cell}: {said}");
                if args.contains(&"--json") {
                    let document: Result<Value, _> = serde_json::from_str(&said);
                    assert!(document.is_ok(), "{cell}: {said}");
                }
                let first = plain.get_or_insert_with(|| said.clone());
                assert_eq!(*first, said, "{cell}");
            }
        }
        if let Some(server) = server {
            server.stop().await;
        }
    }
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
}

#[tokio::test]
async fn h138_a_reference_that_fits_several_lists_them_and_does_nothing() {
    let world = World::new();
    world.project("app");
    for _ in 0..2 {
        world.cli(&["start", "app", "--wait"]).await.ok();
        world.cli(&["stop", "app"]).await.ok();
    }
    let rows = world.rows().await;
    assert_eq!(rows.len(), 2, "{rows:?}");
    for verb in ["stop", "forget", "logs", "open"] {
        let ran = world.cli(&[verb, "app"]).await;
        assert_eq!(ran.code, Some(2), "{verb}: {}{}", ran.stdout, ran.stderr);
        for row in &rows {
            assert!(ran.stderr.contains(&row.instance_id), "{verb}: {}", ran.stderr);
        }
    }
    assert_eq!(world.rows().await.len(), 2, "none of them was carried out");
    // To go on means the one that ran last.
    world.cli(&["resume", "app"]).await.ok();
    let live: Vec<_> =
        world.rows().await.into_iter().filter(|row| row.status == "running").collect();
    assert_eq!(live.len(), 1, "{live:?}");
    assert_eq!(live[0].instance_id, rows[1].instance_id);
    world.cli(&["stop", "app"]).await.ok();
}

/// After an interrupted command, records and processes agree.
#[tokio::test]
async fn h138_an_interrupted_command_leaves_what_agrees() {
    let world = World::new();
    world.project_with("slow", json!({ "ready_ms": 60_000 }));
    world.project_with("deaf", json!({ "ignore_sigint": true }));
    let server = world.serve().await;
    server.client.run("deaf").await;
    for (args, project) in [(&["start", "slow", "--wait"][..], "slow"), (&["stop", "deaf"], "deaf")]
    {
        let mut child = world.command(&service(), args).stdout(Stdio::null()).spawn().unwrap();
        let pid = rustix::process::Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        within("the command at work", async {
            loop {
                let rows = world.rows().await;
                let mut rows = rows.iter().filter(|row| row.project == project);
                let is_under_way = |row: &Row| match project {
                    "slow" => row.pid.is_some(),
                    _ => row.intentional_stop,
                };
                if rows.any(is_under_way) {
                    return;
                }
            }
        })
        .await;
        rustix::process::kill_process(pid, Signal::INT).unwrap();
        let status = within("its end", child.wait()).await.unwrap();
        // A stop that was begun is finished; a wait for readiness is given up.
        let is_done = project == "deaf" && status.code() == Some(0);
        // On a busy machine what was killed may take more than two seconds to go.
        let is_late = project == "deaf" && status.code() == Some(2);
        assert!(is_done || is_late || status.code() == Some(130), "{args:?}: {status}");
        if is_late {
            for bridge in world.bridges_of(project) {
                gone(&bridge).await;
            }
            server.events().await.until_status(project, "stopped").await;
        }
        world.agree().await;
        if is_done {
            assert!(world.bridges_of(project).is_empty(), "{args:?} said it was done");
        }
    }
    for project in ["slow", "deaf"] {
        for bridge in world.bridges_of(project) {
            let _ = server.client.stop(project).await;
            gone(&bridge).await;
        }
    }
    world.agree().await;
}

/// Owner and mode of everything below a directory.
fn owners(dir: &Path) -> Vec<(PathBuf, u32, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        found.push((path.clone(), meta.uid(), meta.mode()));
        if meta.is_dir() {
            found.extend(owners(&path));
        }
    }
    found.sort();
    found
}

/// A directory for a state that its owner may fill, and nothing beside it.
#[tokio::test]
async fn h119_a_restore_needs_no_right_to_write_beside_the_state_directory() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can start a command of another user");
    }
    let world = World::inside(Path::new("/tmp"), json!({}));
    world.project("app");
    let user = 63_273;
    let program = brought(&world.root, &service());
    let locked = world.root.join("locked");
    let state = locked.join("state");
    fs::create_dir_all(&state).unwrap();
    give(&world.root, user);
    std::os::unix::fs::chown(&locked, Some(0), Some(0)).unwrap();
    world.configure(json!({ "state_dir": state }));
    give(&world.config, user);
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(args).env_clear().envs(world.environment()).current_dir(&world.root);
        let ran = command.uid(user).gid(user).stdin(Stdio::null()).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let config = world.config.to_str().unwrap();
    let issued = |label| run(&["api-token", "issue", label, "--config", config]);
    assert_eq!(issued("before").0, Some(0));
    let archive = world.root.join("backup.tar.gz");
    let archive = archive.to_str().unwrap();
    assert_eq!(run(&["backup", "-o", archive, "--config", config]).0, Some(0));
    assert_eq!(issued("after").0, Some(0));
    fs::write(state.join("session.epoch"), "7").unwrap();

    let at = state.to_str().unwrap();
    let (code, words) = run(&["restore", archive, "--state-dir", at, "--force"]);
    assert_eq!(code, Some(0), "{words}");
    let labels = || {
        let mut command = std::process::Command::new(&program);
        command.args(["api-token", "list", "--json", "--config", config]).env_clear();
        command.envs(world.environment()).uid(user).gid(user);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(labels().contains("before") && !labels().contains("after"), "{}", labels());
    assert_eq!(fs::read_to_string(state.join("session.epoch")).unwrap(), "8");
    let hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    let left: Vec<_> = fs::read_dir(&state).unwrap().flatten().filter(hidden).collect();
    assert!(left.is_empty(), "{left:?}");

    // Nothing there at all: it says what has to be made.
    let none = locked.join("none");
    let (code, words) = run(&["restore", archive, "--state-dir", none.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("may not write into") && words.contains("install -d"), "{words}");

    // Interrupted after the old database was taken away: no service begins with nothing.
    fs::create_dir(state.join(".svc-restore-x")).unwrap();
    give(&state, user);
    fs::rename(state.join("svc.db"), state.join(".svc-restore-x/svc.db")).unwrap();
    let (code, words) = issued("again");
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("a restore into this directory was interrupted"), "{words}");
    let (code, words) = run(&["restore", archive, "--state-dir", at, "--force"]);
    assert_eq!(code, Some(0), "{words}");
    assert!(labels().contains("before"), "{}", labels());
}

#[tokio::test]
async fn h139_another_user_than_the_owner_of_the_state_is_refused_and_changes_no_owner() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can start a service of another user");
    }
    let world = World::inside(Path::new("/tmp"), json!({}));
    world.project("app");
    let (one, other) = (63_273, 63_274);
    let program = brought(&world.root, &service());
    give(&world.root, one);
    let start = Start { uid: Some(one), program: Some(program.clone()), ..Start::default() };
    world.serve_as(start).await.stop().await;
    let before = owners(&world.root);
    // Root may do everything, and makes nothing its own.
    for uid in [0, other] {
        for args in [
            &["run"][..],
            &["start", "app"],
            &["status"],
            &["api-token", "issue", "ci"],
            &["backup", "-o", "made/"],
        ] {
            let mut command = std::process::Command::new(&program);
            command.args(args).arg("--config").arg(&world.config).env_clear();
            command.envs(world.environment()).current_dir("/").stdin(Stdio::null());
            let ran = command.uid(uid).gid(uid).output().unwrap();
            let words = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(matches!(ran.status.code(), Some(1 | 2)), "{uid} {args:?}: {words}");
            assert!(!words.contains("panicked"), "{uid} {args:?}: {words}");
            let about = words.lines().filter(|line| !line.contains("WARN")).count();
            let advice = match args[0] {
                "backup" => "run this as that user".to_owned(),
                _ => format!("sudo -u '#{one}' svc"),
            };
            assert!(uid != 0 || words.contains(&advice), "{uid} {args:?}: {words}");
            assert_eq!(about, 1, "{uid} {args:?}: one line: {words}");
            assert_eq!(owners(&world.root), before, "{uid} {args:?} changed an owner or a mode");
        }
    }
}
