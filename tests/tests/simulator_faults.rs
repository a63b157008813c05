//! The simulator's faults: wrong files, hostile logs, children, load, worktrees.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: what they cannot do fails the test that asked"
)]

#[expect(dead_code, reason = "each test program uses a part of the stage")]
#[path = "support/stage.rs"]
mod stage;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::SystemTime;

use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Bridge, Stage, kill, read, value_of};

const PROGRAM: &str = env!("CARGO_BIN_EXE_svc-agent-sim");
/// The poll loop comes at once.
const NOW: (&str, &str) = ("ready_ms", "0");
/// Ends by itself once everything of a start has happened.
const BRIEF: [(&str, &str); 2] = [NOW, ("exit_after_ready_ms", "0")];

#[test]
fn every_variant_of_the_pointer_is_wrong_in_its_own_way() {
    let mut stage = Stage::new(PROGRAM);
    for variant in
        ["none", "garbage", "truncated", "no_pid", "foreign_pid", "old_boot", "huge", "mode000"]
    {
        let project = stage.project(variant);
        let bridge = stage.bridge(&project, &[], &[NOW, ("pointer", variant)]);
        bridge.until_ready();
        let path = stage.pointer_file(&project);
        let parsed = serde_json::from_slice::<Value>(&fs::read(&path).unwrap_or_default());
        let meta = fs::metadata(&path);
        match variant {
            "none" => assert!(meta.is_err()),
            "garbage" => assert!(String::from_utf8(fs::read(&path).unwrap()).is_err()),
            "truncated" => {
                assert!(read(&path).starts_with(r#"{"environmentId":"env_"#) && parsed.is_err());
            }
            "no_pid" => assert_eq!(parsed.unwrap().get("pid"), None),
            "foreign_pid" => {
                let pid = parsed.unwrap()["pid"].as_u64().unwrap();
                assert_ne!(pid, u64::from(bridge.process.pid));
                assert!(fs::exists(format!("/proc/{pid}")).unwrap(), "a live process");
            }
            "old_boot" => {
                let written = meta.unwrap().modified().unwrap();
                let age = SystemTime::now().duration_since(written).unwrap();
                let uptime = read("/proc/uptime".as_ref());
                let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
                assert!(age.as_secs_f64() > uptime, "{age:?} against {uptime} s");
                assert!(parsed.is_ok());
            }
            "huge" => assert!(meta.unwrap().len() >= 100 << 20),
            _ => assert_eq!(meta.unwrap().permissions().mode() & 0o777, 0),
        }
    }
}

#[test]
fn a_live_stranger_in_the_pointer_makes_the_next_start_defer() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let bridge = stage.bridge(&project, &[], &[NOW, ("pointer", "foreign_pid")]);
    bridge.until_ready();
    let stranger = stage.pointer(&project)["pid"].as_u64().unwrap();
    let log = stage.start(&project, &[], &BRIEF).1;
    assert!(log.contains(&format!("Pointer writer pid {stranger} still running")), "{log}");
}

#[test]
fn wrong_registry_entries_are_not_listed() {
    let mut stage = Stage::new(PROGRAM);
    for (variant, exists, listed) in
        [("off", false, 0), ("garbage", true, 0), ("stale", true, 0), ("wrong_pid", true, 1)]
    {
        let project = stage.project(variant);
        let bridge = stage.bridge(&project, &[], &[NOW, ("registry", variant)]);
        bridge.until_ready();
        let pid = bridge.process.pid;
        let file = stage.home.join(format!("sessions/{pid}.json"));
        assert_eq!(file.exists(), exists, "{variant}");
        let entry = serde_json::from_str::<Value>(&read(&file)).ok();
        match variant {
            "stale" => assert_eq!(entry.unwrap()["procStart"], "1"),
            "wrong_pid" => assert_ne!(entry.unwrap()["pid"], json!(pid)),
            _ => assert_eq!(entry, None),
        }
        let args = ["agents", "--json", "--cwd", project.to_str().unwrap()];
        let list = stage.run(&project, &args, &[]).json();
        assert_eq!(list.as_array().map(Vec::len), Some(listed), "{variant}");
    }
}

#[test]
fn conversation_text_imitates_markers_but_never_with_their_tag_in_place() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let knobs = [("forge_markers", "true"), ("ready", "never"), ("exit_at_ms", "0")];
    let log = stage.start(&project, &[], &knobs).1;
    assert!(log.contains("Starting poll loop") && log.contains("env_01FORGED"), "{log}");
    assert!(log.contains("end_session"), "{log}");
    let tagged = log.lines().filter(|line| line.contains("01FORGED")).filter(|line| {
        let text = line.split_once("Z [DEBUG] ").map(|(_, text)| text);
        ["[bridge:work]", "[bridge:init]", "[bridge:api]"]
            .iter()
            .any(|tag| text.is_some_and(|text| text.starts_with(tag)))
    });
    assert_eq!(tagged.count(), 0, "{log}");
}

#[test]
fn bytes_that_are_no_text_and_sequences_in_identifiers_reach_the_debug_file() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let log = |knob| {
        let path = stage.root.join("logs/bytes.log");
        let _ = fs::remove_file(&path);
        let args = ["remote-control", "--debug-file", path.to_str().unwrap()];
        stage.run(&project, &args, &[BRIEF[0], BRIEF[1], knob]);
        fs::read(&path).unwrap()
    };
    assert!(String::from_utf8(log(("invalid_utf8", "true"))).is_err());
    let split = String::from_utf8(log(("split_utf8", "true"))).expect("whole in the end");
    assert!(split.contains("日本語 🚀 café"));
    let text = |ansi| String::from_utf8(log(("ansi", ansi))).unwrap();
    assert!(text("color").contains("[bridge:work] \x1b[36mStarting poll loop"));
    assert!(text("split_ids").contains("environmentId=env_\x1b[31m01SIM"));
    assert!(text("osc").contains("\x1b]8;;https://claude.ai/code\x1b\\env_01SIM"));
    let open = text("unterminated");
    let (_, rest) = open.split_once("\x1b]0;").unwrap();
    assert!(!rest.contains('\x07') && rest.contains("Starting poll loop"), "{open}");
}

#[test]
fn the_debug_file_can_vanish_behind_the_reader() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    for (target, moved) in
        [("truncate_at_ms:80", false), ("delete_at_ms:80", false), ("rename_at_ms:80", true)]
    {
        let log = stage.root.join("logs/tampered.log");
        let aside = log.with_extension("moved");
        fs::write(&log, "").unwrap();
        let inode = fs::metadata(&log).unwrap().ino();
        let args = ["remote-control", "--debug-file", log.to_str().unwrap()];
        let knobs = [NOW, ("log_target", target), ("exit_at_ms", "150")];
        stage.run(&project, &args, &knobs);
        assert!(!read(&log).contains("Starting poll loop"), "{target}");
        assert!(read(&log).contains("work/poll"), "{target}: the path comes back");
        let now = fs::metadata(&log).unwrap();
        let kept_inode = target.starts_with("truncate");
        // The file system may hand a freed inode out again, so only sameness is certain.
        assert!(!kept_inode || now.ino() == inode, "{target}");
        assert_eq!(read(&aside).contains("Starting poll loop"), moved, "{target}");
    }
}

#[test]
fn a_flood_has_its_rate_and_its_line_length() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let knobs = [
        NOW,
        ("log_mb_per_s", "20"),
        ("log_for_ms", "250"),
        ("log_line_bytes", "3000000"),
        ("exit_at_ms", "600"),
    ];
    let log = stage.start(&project, &[], &knobs).1;
    let flood: Vec<usize> =
        log.lines().filter(|l| l.contains("[bridge:ws] flood ")).map(str::len).collect();
    let total: usize = flood.iter().sum();
    assert!((4_900_000..5_200_000).contains(&total), "{total}");
    assert!(flood[0] > 3_000_000 && flood.len() == 2, "{flood:?}");
    assert!(log.find("Starting poll loop") < log.find("[bridge:ws] flood "));
    assert!(log.ends_with('\n'));
}

#[test]
fn an_idle_bridge_shows_signs_of_life_if_wanted() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let bridge = stage.bridge(&project, &[], &[NOW, ("chatter_ms", "10")]);
    bridge.until("-> 200 (no work, 1 consecutive empty polls)");
    bridge.until("-> 200 (no work, 200 consecutive empty polls)");
}

#[test]
fn the_pointer_of_a_live_bridge_is_written_again_and_again() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let bridge = stage.bridge(&project, &[], &[NOW, ("pointer_refresh_s", "0")]);
    stage.until("three writes", || {
        (bridge.text().matches("[bridge:pointer] wrote ").count() >= 3).then_some(())
    });
}

#[test]
fn a_slow_shutdown_is_announced_at_once_and_not_over_by_a_second_signal() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut bridge = stage.bridge(&project, &[], &[NOW, ("shutdown_ms", "3600000")]);
    bridge.until_ready();
    bridge.signal(Signal::INT);
    bridge.until("[bridge:shutdown] SIGINT received, shutting down");
    bridge.signal(Signal::TERM);
    bridge.signal(Signal::KILL);
    assert_eq!(bridge.process.wait_signal(), Some(9));
    assert!(!bridge.text().contains("Skipping archive"), "{}", bridge.text());
}

#[test]
fn a_call_that_hangs_ends_by_a_signal_only() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    for (number, (args, knob)) in [
        (["auth", "status"], ("auth", "hang")),
        (["agents", "--json"], ("agents_output", "hang")),
        (["auth", "status"], ("auth_ms", "3600000")),
        (["agents", "--json"], ("agents_ms", "3600000")),
        (["--version", ""], ("version_ms", "3600000")),
    ]
    .into_iter()
    .enumerate()
    {
        let mut command = stage.command(&project, &[knob]);
        command.args(args).stdout(std::process::Stdio::null());
        let mut process = stage::Process::of(command.spawn().unwrap());
        stage.until("the start", || (stage.calls().len() == number + 1).then_some(()));
        process.signal(Signal::TERM);
        assert_eq!(process.wait_signal(), Some(15), "{knob:?}");
    }
}

/// Pids of the processes whose parent is `parent`.
fn children_of(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            (field(pid, 1)? == parent.to_string()).then_some(pid)
        })
        .collect()
}

/// Field of `/proc/<pid>/stat`, counted from the state as 0.
fn field(pid: u32, number: usize) -> Option<String> {
    let stat = read(format!("/proc/{pid}/stat").as_ref());
    stat.rsplit_once(") ")?.1.split(' ').nth(number).map(str::to_owned)
}

/// Waits for the end of a process that is not a child of the test.
fn await_end(pid: u32) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let Ok(fd) = pidfd_open(Pid::from_raw(pid.cast_signed()).unwrap(), PidfdFlags::empty()) else {
        return; // gone already
    };
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1, "process {pid} ends");
}

fn with_child<'a>(stage: &'a Stage, dir: &std::path::Path, mode: &str) -> (Bridge<'a>, u32) {
    let knobs = [NOW, ("children", "1"), ("child_mode", mode)];
    let bridge = stage.bridge(dir, &[], &knobs);
    bridge.until_ready();
    let children = children_of(bridge.process.pid);
    assert_eq!(children.len(), 1);
    (bridge, children[0])
}

#[test]
fn an_ordinary_child_ends_with_the_bridge_even_if_that_is_killed() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let (mut bridge, child) = with_child(&stage, &project, "same_group");
    bridge.signal(Signal::KILL);
    bridge.process.wait();
    await_end(child);
}

#[test]
fn a_child_that_left_the_session_outlives_the_bridge() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let (mut bridge, child) = with_child(&stage, &project, "new_session");
    bridge.stop();
    assert_eq!(field(child, 3), Some(child.to_string()), "its own session");
    assert_ne!(field(child, 0).as_deref(), Some("Z"));
    kill(child, Signal::TERM);
    await_end(child);
}

#[test]
fn a_deaf_child_outlives_everything_but_a_kill() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let (mut bridge, child) = with_child(&stage, &project, "ignore_signals");
    let group = field(child, 2);
    assert_eq!(group, field(bridge.process.pid, 2), "the bridge's group");
    bridge.stop();
    kill(child, Signal::INT);
    kill(child, Signal::TERM);
    assert_eq!(field(child, 2), group, "still there");
    kill(child, Signal::KILL);
    await_end(child);
}

#[test]
fn memory_is_held_and_touched() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let bridge = stage.bridge(&project, &[], &[NOW, ("memory_mb", "64"), ("cpu", "5")]);
    bridge.until_ready();
    let status = read(format!("/proc/{}/status", bridge.process.pid).as_ref());
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib >= 64 * 1024, "{kib}");
}

#[test]
fn equal_seeds_give_equal_identifiers() {
    let ids = |seed| {
        let mut stage = Stage::new(PROGRAM);
        let project = stage.project("demo");
        let log = stage.start(&project, &[], &[BRIEF[0], BRIEF[1], ("seed", seed)]).1;
        let session = log.split("initial session ").nth(1).unwrap().lines().next().unwrap();
        (value_of(&log, "environment_id").unwrap(), session.to_owned())
    };
    assert_eq!(ids("1"), ids("1"));
    assert_ne!(ids("1"), ids("2"));
}

#[test]
fn an_agent_of_the_future_adds_fields_nobody_knows() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let future = [NOW, ("profile", "9.9.9")];
    let mut bridge = stage.bridge(&project, &[], &future);
    bridge.until_ready();
    let pointer = stage.pointer(&project);
    assert_eq!(pointer["source"], "next");
    let list = stage.run(&project, &["agents", "--json"], &future).json();
    assert!(list[0]["presence"].is_object());
    let entry = read(&stage.home.join(format!("sessions/{}.json", bridge.process.pid)));
    assert!(entry.contains(r#""peerProtocol":2"#), "{entry}");
    assert!(stage.run(&project, &["auth", "status"], &future).json()["sessionGeneration"].is_u64());
    bridge.stop();
    assert!(
        stage.start(&project, &[], &[future[0], future[1], BRIEF[1]]).1.contains("Found prior")
    );
}

fn connected<'a>(
    stage: &'a Stage,
    project: &std::path::Path,
    knobs: stage::Knobs,
) -> (Bridge<'a>, String) {
    let mut all = vec![NOW, ("turns", "[]")];
    all.extend(knobs);
    let bridge = stage.bridge(project, &["worktree"], &all);
    bridge.until_ready();
    let session = stage.remote(&["connect", project.to_str().unwrap()]);
    (bridge, session)
}

#[test]
fn a_session_in_worktree_mode_has_a_worktree_until_it_ends_clean() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.repository("demo");
    let (mut bridge, session) = connected(&stage, &project, &[]);
    bridge.until(&format!("sessionId={session} pid="));
    let worktree = project.join(format!(".claude/worktrees/bridge-{session}"));
    assert!(worktree.join("README.md").exists());
    let head = read(&project.join(format!(".git/worktrees/bridge-{session}/HEAD")));
    assert_eq!(head.trim(), format!("ref: refs/heads/worktree-bridge-{session}"));
    // The first session stays in the project itself.
    let initial = stage.pointer(&project)["sessionId"].as_str().unwrap().to_owned();
    stage.remote(&["connect", &initial]);
    bridge.until(&format!("sessionId={initial} pid="));
    assert!(!project.join(format!(".claude/worktrees/bridge-{initial}")).exists());
    bridge.stop();
    assert!(!worktree.exists());
    assert!(read(&bridge.output).contains("removed worktree"));
}

#[test]
fn a_worktree_with_work_in_it_or_a_lock_is_kept() {
    let mut stage = Stage::new(PROGRAM);
    for (knob, value) in [("worktree", "dirty"), ("worktree", "locked"), ("profile", "2.1.232")] {
        let project = stage.repository(value);
        let (mut bridge, session) = connected(&stage, &project, &[(knob, value)]);
        bridge.until(&format!("sessionId={session} pid="));
        let text = bridge.stop();
        assert!(project.join(format!(".claude/worktrees/bridge-{session}")).exists(), "{value}");
        assert_eq!(text.contains("[bridge:worktree] kept "), value == "dirty", "{text}");
        let lock = project.join(format!(".git/worktrees/bridge-{session}/locked"));
        assert_eq!(read(&lock).starts_with("claude session"), value != "dirty", "{value}");
    }
}

#[test]
fn a_session_without_a_worktree_to_be_had_is_not_started() {
    let mut stage = Stage::new(PROGRAM);
    let failing = stage.repository("failing");
    let empty = stage.project("empty");
    let done = std::process::Command::new("git").args(["init", "-q"]).arg(&empty).output();
    assert!(done.unwrap().status.success());
    for (project, knobs, words) in [
        (failing, &[("worktree", "fail")][..], "No space left on device"),
        (empty, &[], "Failed to resolve base branch \"HEAD\""),
    ] {
        let (bridge, session) = connected(&stage, &project, knobs);
        let line = bridge.until(&format!("Worktree creation failed for session {session}: "));
        assert!(line.contains("[ERROR]") && line.contains(words), "{line}");
        assert!(
            read(&bridge.output)
                .contains(&format!("Failed to create worktree for session {session}"))
        );
        assert!(!bridge.text().contains(&format!("sessionId={session} pid=")));
    }
}

#[test]
fn a_full_bridge_turns_further_sessions_away() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let bridge = stage.bridge(&project, &["same-dir", "--capacity", "1"], &[NOW, ("turns", "[]")]);
    bridge.until_ready();
    let target = project.to_str().unwrap();
    let first = stage.remote(&["connect", target]);
    bridge.until(&format!("sessionId={first} pid="));
    stage.remote(&["connect", target]);
    bridge.until("[bridge:work] At capacity (1/1), cannot spawn new session");
}

#[test]
fn work_waits_for_a_bridge_and_unknown_sessions_are_named() {
    let mut stage = Stage::new(PROGRAM);
    let project = stage.project("demo");
    let mut first = stage.bridge(&project, &[], &[NOW]);
    first.until_ready();
    first.stop();
    let said = stage.remote(&["connect", project.to_str().unwrap()]);
    let (session, rest) = said.split_once(' ').unwrap();
    assert_eq!(rest, "(no bridge serves it now)");
    let second = stage.bridge(&project, &[], &[NOW, ("session_ms", "0")]);
    second.until(&format!("sessionId={session} completed exit_code=0"));
    let unknown = stage.run(&project, &["remote", "archive", "session_none"], &[]);
    assert_eq!(unknown.code, Some(70));
    assert!(unknown.stderr.contains("session_none"), "{}", unknown.stderr);
}
