//! The log directory: files are kept small, private, and no longer than wanted.

use crate::harness::{LogSocket, World};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

fn files(world: &World) -> Vec<(String, PathBuf)> {
    let mut files: Vec<(String, PathBuf)> = fs::read_dir(world.state.join("logs"))
        .expect("the log directory")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    files.sort();
    files
}

pub fn debug_file(world: &World, suffix: &str) -> PathBuf {
    let is_it = |name: &str| {
        name.strip_suffix(suffix).is_some_and(|stem| stem.ends_with(|c: char| c.is_ascii_digit()))
    };
    let found = files(world).into_iter().find(|(name, _)| is_it(name));
    found.expect("a debug file").1
}

pub fn append(path: &PathBuf, text: &str) {
    use std::io::Write as _;
    let mut file = fs::File::options().append(true).open(path).expect("the agent's log");
    file.write_all(text.as_bytes()).expect("room");
}

/// F60, F61: a growing log is truncated; page and commands read across the copies.
#[tokio::test]
async fn f60_a_live_log_is_rotated_and_read_over_its_files() {
    let world = World::with(json!({ "logs": { "bridge_log_max_size_mb": 1, "keep_rotated": 2 } }));
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let log = debug_file(&world, ".log");
    let line = "2026-03-01T10:20:30.123Z [DEBUG] filler ".to_owned() + &"x".repeat(1000);
    append(&log, &format!("{line}\n").repeat(980));
    // One small write crosses the limit: what is written while a log is cut may be lost.
    let crossing = format!("{line}\n").repeat(40) + "2026-03-01T10:20:30.123Z [DEBUG] before\n";
    append(&log, &crossing);
    let first = PathBuf::from(format!("{}.1", log.display()));
    world.until("a rotation", || first.exists().then_some(())).await;
    world.until("the cut", || (fs::metadata(&log).ok()?.len() < 100_000).then_some(())).await;
    append(&log, "2026-03-01T10:20:30.123Z [DEBUG] after\n");
    assert_eq!(fs::metadata(&first).expect("it").permissions().mode() & 0o777, 0o600);

    let page = server.client.get(&format!("/api/instances/{id}/log")).await.expect(200).json();
    let lines: Vec<&str> =
        page["lines"].as_array().unwrap().iter().flat_map(|l| l.as_str()).collect();
    let at = |end: &str| lines.iter().position(|line| line.ends_with(end));
    assert!(at(" before").is_some() && at(" before") < at(" after"), "{lines:.200?}");
    let stopped = server.client.stop(&id).await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
}

/// Resident memory of a process and its highest, in KiB.
fn memory(pid: i32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let figure = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
        line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
    };
    (figure("VmRSS:"), figure("VmHWM:"))
}

/// F58, H127: a line of 100 MB while readers follow, and the end of a 1 GB log.
#[tokio::test]
async fn f58_h127_giant_lines_and_giant_logs_are_read_in_bounded_memory() {
    const MEBI: usize = 1 << 20;
    let world = World::with(json!({ "logs": { "bridge_log_max_size_mb": 4000 } }));
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let log = debug_file(&world, ".log");
    let mut reader = server.log_of(&id).await;
    reader.until("Starting poll loop").await;
    let (before, _) = memory(server.pid);
    let part = "x".repeat(MEBI);
    append(&log, "2026-03-01T10:20:30.123Z [DEBUG] giant ");
    for _ in 0..100 {
        append(&log, &part);
    }
    append(&log, "\n2026-03-01T10:20:30.123Z [DEBUG] after the giant\n");
    reader.until("after the giant").await;
    let giant = reader.lines.iter().find(|line| line.contains("giant x")).expect("its beginning");
    assert!(giant.len() < 80 * 1024, "{}", giant.len());
    assert!(reader.lines.iter().any(|line| line.contains("[line truncated")));
    let (_, peak) = memory(server.pid);
    eprintln!("a line of 100 MB: {before} KiB before, {peak} KiB at most");
    assert!(peak < before + 64 * 1024, "{before} KiB, then {peak} KiB");

    server.client.stop(&id).await.expect(200);
    let file = fs::File::options().write(true).open(&log).expect("the log");
    file.set_len(1 << 30).expect("a file system with holes");
    append(&log, "\n2026-03-01T10:20:30.123Z [DEBUG] the very last words\n");
    let (before, _) = memory(server.pid);
    let page = server.client.get(&format!("/api/instances/{id}/log")).await.expect(200).json();
    assert!(page["lines"].to_string().contains("the very last words"));
    let told = world.cli(&["logs", &id]).await.ok();
    assert!(told.stdout.contains("the very last words"));
    let (_, peak) = memory(server.pid);
    eprintln!("a log of 1 GiB: {before} KiB before, {peak} KiB at most");
    assert!(peak < before + 64 * 1024, "{before} KiB, then {peak} KiB");
}

/// With `logs.redact_session_url` identifiers stay in a file that nothing shows.
#[tokio::test]
async fn a_redacted_copy_takes_the_place_of_the_log() {
    let world = World::with(json!({ "logs": { "redact_session_url": true } }));
    world.project("app");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    let (raw, public) = (debug_file(&world, ".raw.log"), debug_file(&world, ".log"));
    let raw_text = fs::read_to_string(raw).expect("the agent's own file");
    assert!(raw_text.contains("environmentId=env_"), "the agent's words are unchanged");
    let copied = || fs::read_to_string(&public).ok().filter(|t| t.contains("Starting poll loop"));
    let text = world.until("the copy", copied).await;
    assert!(text.contains("environmentId=env_<redacted>"), "{text:.2000}");
    let environment = raw_text.split("environmentId=").nth(1).expect("an id");
    let environment = environment.split_whitespace().next().expect("an id");
    // The captured output is the agent's own, as the raw file is.
    let is_own = |name: &str| name.contains(".raw.log") || name.ends_with(".stderr.log");
    for (name, path) in files(&world).iter().filter(|(name, _)| !is_own(name)) {
        let text = fs::read_to_string(path).expect("a text");
        assert!(!text.contains(environment), "{name}");
    }
    assert!(row.has_log);
    let id = row.instance_id.to_string();
    let shown = server.client.get(&format!("/api/instances/{id}/log")).await.expect(200).json();
    assert!(shown["lines"].to_string().contains("Starting poll loop"));
}

/// H96: a launch deletes old sets and the files of their sessions, nothing else.
#[tokio::test]
async fn h96_only_the_wanted_number_of_log_sets_is_kept() {
    let world = World::with(json!({ "logs": { "retention_max_files": 1 } }));
    world.project("app");
    world.project("other");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let old = debug_file(&world, ".log");
    let stem = old.with_extension("").display().to_string();
    let logs = world.state.join("logs");
    let beside = [
        PathBuf::from(format!("{stem}-session_01AB.log")),
        logs.join("bridge-transcript-session_01AB.jsonl"),
    ];
    let foreign = [logs.join("notes.txt"), PathBuf::from(format!("{stem}.log.bak"))];
    for path in beside.iter().chain(&foreign) {
        fs::write(path, "x").expect("a file");
    }
    // A live bridge keeps its log, whatever the number.
    server.client.run("other").await;
    world.until("the look", || old.exists().then_some(())).await;
    server.client.stop(&id).await.expect(200);
    // A launch makes its files before its record: only what is older than a launch can go.
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for (_, path) in files(&world).iter().filter(|(_, path)| !foreign.contains(path)) {
        let file = fs::File::options().append(true).open(path).expect("a log file");
        file.set_modified(hour_ago).expect("its time");
    }
    let resumed = server.client.resume(&id).await.expect(200).instance();
    assert_eq!(resumed.generation, 2);
    world.until("the old log to go", || (!old.exists()).then_some(())).await;
    for path in &beside {
        world.until("its sessions to go", || (!path.exists()).then_some(())).await;
    }
    assert!(foreign.iter().all(|path| path.exists()));
    let page = server.client.get(&format!("/api/instances/{id}/log")).await.expect(200).json();
    assert!(page["lines"].to_string().contains("Starting poll loop"));
}

/// H96: the log of a live bridge is kept, even if no record or pointer names it.
/// While one record cannot be read at all, every log may belong to it.
#[tokio::test]
async fn h96_logs_that_may_be_in_use_without_a_record_are_kept() {
    let world = World::new();
    for project in ["lost", "ended", "broken"] {
        world.project(project);
    }
    let server = world.serve().await;
    server.client.run("lost").await;
    let lost = debug_file(&world, ".log");
    for project in ["ended", "broken"] {
        server.client.run(project).await;
        server.client.stop(project).await.expect(200);
    }
    let logs = || -> Vec<PathBuf> {
        let all = files(&world).into_iter();
        all.filter(|(name, _)| name.ends_with(".log") && !name.ends_with(".stderr.log"))
            .map(|(_, path)| path)
            .collect()
    };
    server.stop().await;
    assert_eq!(logs().len(), 3);
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for (_, path) in files(&world) {
        let file = fs::File::options().append(true).open(path).expect("a log file");
        file.set_modified(hour_ago).expect("its time");
    }
    world.sql("DELETE FROM bridges WHERE project = 'lost'").await.expect("the database");
    let pointers = fs::read_dir(world.agent_home.join("projects")).expect("the agent's files");
    for project in pointers.flatten() {
        let _ = fs::remove_file(project.path().join("bridge-pointer.json")); // may not have one
    }
    world.sql("INSERT INTO projects VALUES ('', 1, 1)").await.expect("the database");
    let edit = "UPDATE bridges SET project = '', revision = revision + 1 WHERE project = 'broken'";
    world.sql(edit).await.expect("the database");

    world.configure(json!({ "logs": { "retention_max_files": 1 } }));

    // A launch looks for old logs, and so does a start.
    let server = world.serve().await;
    server.client.run("ended").await;
    server.stop().await;
    assert_eq!(logs().len(), 4, "nobody knows which is the broken record's");
    world.sql("DELETE FROM bridges WHERE project = ''").await.expect("the database");
    let ended = logs().into_iter().filter(|path| path.to_string_lossy().contains("ended-")).min();
    let ended = ended.expect("a log");
    let server = world.serve().await;
    world.until("an old log to go", || (!ended.exists()).then_some(())).await;
    assert!(lost.exists(), "its bridge writes it");
    server.kill().await;
}

/// Resident memory of a process at its highest, in KiB.
fn highest(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

/// F58, H127: a line of a hundred megabytes in a live log, and a log of a gigabyte.
#[tokio::test]
async fn f58_h127_giant_logs_are_read_in_bounded_memory_and_what_follows_is_shown() {
    let world = World::with(json!({ "logs": { "bridge_log_max_size_mb": 4096 } }));
    world.project("app");
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    let file = debug_file(&world, ".log");
    let mut log = LogSocket::open(&server.base, &id).await;
    log.until("Starting poll loop").await;
    let before = highest(server.pid);

    append(&file, "2026-03-01T10:20:30.123Z [DEBUG] giant ");
    let part = "x".repeat(1 << 20);
    for _ in 0..100 {
        append(&file, &part);
    }
    append(&file, "\n2026-03-01T10:20:30.124Z [DEBUG] behind the line\n");
    log.until("behind the line").await;
    assert!(log.lines.iter().all(|line| line.len() <= 70_000), "lines are cut");
    drop(log);
    server.client.stop(&id).await.expect(200);
    let live = highest(server.pid);

    let open = fs::File::options().append(true).open(&file).unwrap();
    open.set_len(1 << 30).unwrap(); // what lies between is a hole
    append(&file, "\n2026-03-01T10:20:30.125Z [DEBUG] behind the gap\n");
    let path = format!("/api/instances/{id}/log");
    let page = server.client.get(&path).await.expect(200).json();
    assert!(page.to_string().contains("behind the gap"), "{page:.300}");
    let mut log = LogSocket::open(&server.base, &id).await;
    log.until("behind the gap").await;
    let after = highest(server.pid);
    eprintln!("{before} KiB, {live} KiB after the line, {after} KiB after the gigabyte");
    assert!(live < before + 64 * 1024, "{before} KiB, then {live} KiB");
    assert!(after < live + 16 * 1024, "{live} KiB, then {after} KiB");
}
