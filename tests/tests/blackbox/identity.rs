//! A process that reuses a recorded pid is never signalled (H102, H103, H115).

use crate::harness::{Process, Witness, World, gone, stat_of};
use serde_json::json;
use svc_shared::api::instances::Instance;

/// A world whose one record names the witness as its bridge, with some changes.
async fn stolen(changes: &str) -> (World, Witness) {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let bridge = world.bridges_of("app").remove(0);
    server.kill().await;
    bridge.signal(rustix::process::Signal::KILL);
    gone(&bridge).await;
    let witness = world.witness("stranger").await;
    let changes = changes.replace("$PID", &witness.process.pid.to_string());
    let changes = changes.replace("$TICKS", &witness.process.start_ticks.to_string());
    let update = format!("UPDATE bridges SET {changes}");
    assert_eq!(world.sql(&update).await.unwrap(), 1);
    (world, witness)
}

/// Serves, tries to stop and to resume, and shows what became of the row.
async fn served(world: &World) -> (Instance, Vec<String>) {
    let server = world.serve().await;
    let mut page = server.events().await;
    let row = page
        .until("a verdict", |state| state.instances.values().find(|row| !row.is_live()).cloned())
        .await;
    server.client.stop("app").await.expect(200);
    server.client.resume("app").await.expect(200);
    server.client.stop("app").await.expect(200);
    let told = page.happened.iter().map(|(name, _)| name.clone()).collect();
    server.stop().await;
    (row.as_ref().clone(), told)
}

fn reason(row: &Instance) -> Option<String> {
    row.exit_reason.as_ref().map(ToString::to_string)
}

/// F1, H102: right pid, other start.
#[tokio::test]
async fn f1_h102_another_start_time_is_another_process() {
    let (world, mut witness) = stolen("bridge_pid = $PID").await;
    let (row, _) = served(&world).await;
    assert_eq!(
        (row.status.to_string(), reason(&row)),
        ("crashed".into(), Some("died_unsupervised".into()))
    );
    witness.assert_untouched(&world).await;
}

/// F3, H102, H115: right pid and start, other boot.
#[tokio::test]
async fn f3_h102_h115_another_boot_is_another_process_and_no_crash() {
    let forged = "bridge_pid = $PID, bridge_start_ticks = $TICKS, \
         bridge_boot_id = '11111111-2222-3333-4444-555555555555'";
    let (world, mut witness) = stolen(forged).await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let row = page.until_status("app", "stopped").await;
    assert_eq!(reason(&row), Some("host_restarted".into()));
    assert!(row.resumable, "{row:?}");
    assert!(page.happened.is_empty(), "{:?}", page.happened);
    server.client.stop("app").await.expect(200);
    server.kill().await;
    witness.assert_untouched(&world).await;
}

/// F78, H115: every record of another boot, at once.
#[tokio::test]
async fn f78_h115_a_reboot_is_no_storm_of_crashes() {
    let world = World::new();
    let names = ["a", "b", "c", "d"];
    for name in names {
        world.project(name);
    }
    let server = world.serve().await;
    for name in names {
        server.client.run(name).await;
    }
    server.kill().await;
    // A reboot ends every process.
    for bridge in world.bridges() {
        bridge.signal(rustix::process::Signal::KILL);
        gone(&bridge).await;
    }
    let other = "UPDATE bridges SET bridge_boot_id = '11111111-2222-3333-4444-555555555555'";
    assert_eq!(world.sql(other).await.unwrap(), 4);
    let server = world.serve().await;
    let mut page = server.events().await;
    for name in names {
        let row = page.until_status(name, "stopped").await;
        assert_eq!(reason(&row), Some("host_restarted".into()));
    }
    assert!(page.happened.is_empty(), "{:?}", page.happened);
    let resumed = server.client.resume("a").await.expect(200).instance();
    assert_eq!((resumed.status.to_string(), resumed.generation), ("running".into(), 2));
}

/// A world of two bridges after the service and the bridge of `app` were killed.
/// The bridge of `other` lives.
async fn without_its_bridge() -> (World, Process) {
    let world = World::new();
    world.project("app");
    world.project("other");
    let server = world.serve().await;
    server.client.run("app").await;
    server.client.run("other").await;
    let (own, other) = (world.bridges_of("app").remove(0), world.bridges_of("other").remove(0));
    server.kill().await;
    own.signal(rustix::process::Signal::KILL);
    gone(&own).await;
    (world, other)
}

/// F2: the other process is even a bridge of ours.
#[tokio::test]
async fn f2_another_bridge_of_ours_is_not_mistaken() {
    let (world, other) = without_its_bridge().await;
    let steal = format!("UPDATE bridges SET bridge_pid = {} WHERE project = 'app'", other.pid);
    world.sql(&steal).await.unwrap();
    let server = world.serve().await;
    let mut page = server.events().await;
    page.until_status("app", "crashed").await;
    server.client.stop("app").await.expect(200);
    assert!(other.is_alive());
    assert_eq!(page.state.instances.len(), 2);
    page.until_status("other", "running").await;
    world.agree().await;
}

/// H102: a start that was interrupted, whose launch file names a stranger.
#[tokio::test]
async fn h102_a_forged_launch_file_is_not_believed() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let bridge = world.bridges_of("app").remove(0);
    server.kill().await;
    bridge.signal(rustix::process::Signal::KILL);
    gone(&bridge).await;
    let mut witness = world.witness("stranger").await;
    let forget_identity = "UPDATE bridges SET status = 'starting', phase = 'launching', \
         bridge_pid = NULL, bridge_start_ticks = NULL, bridge_boot_id = NULL";
    world.sql(forget_identity).await.unwrap();
    let row = world.row("app").await;
    let file = std::fs::read_dir(world.state.join("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with(".launch.json"))
        .expect("the launch file");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let forged = json!({
        "v": 1, "launch_id": row.launch_id, "pid": witness.process.pid,
        "start_ticks": witness.process.start_ticks, "boot_id": boot.trim(),
    });
    std::fs::write(&file, forged.to_string()).unwrap();

    let server = world.serve().await;
    let mut page = server.events().await;
    let row = page.until_status("app", "error").await;
    assert_eq!(reason(&row), Some("launch_interrupted".into()));
    server.client.stop("app").await.expect(200);
    server.client.run("app").await;
    server.kill().await;
    witness.assert_untouched(&world).await;
}

/// F7, H103: numbers that would signal everybody, or oneself.
#[tokio::test]
async fn f7_h103_dangerous_numbers_are_never_signalled() {
    for pid in ["0", "-1", "1", "4294967297", "2147483648", "9223372036854775807", "-$PID"] {
        let (world, mut witness) = stolen(&format!("bridge_pid = {pid}")).await;
        let server = world.serve().await;
        let health = server.client.get("/healthz").await.expect(200);
        assert_eq!(health.json()["status"], "ok", "{pid}");
        let stop = server.client.stop("app").await;
        assert!([200, 409].contains(&stop.status), "{pid}: {}", stop.text());
        let row = server.client.instance("app").await.expect(200).instance();
        assert_eq!(row.bridge_pid, None, "{pid}");
        assert_ne!(row.status.to_string(), "running", "{pid}: {row:?}");
        let (code, log) = server.stop().await;
        assert_eq!(code, Some(0), "{pid}: {log}");
        witness.assert_untouched(&world).await;
        assert!(stat_of(1).is_some());
    }
}

/// H103, F88: a value of another type holds the row and nothing else.
#[tokio::test]
async fn h103_f88_a_row_of_wrong_words_is_held_and_the_others_load() {
    let world = World::new();
    world.project("bad");
    world.project("good");
    let server = world.serve().await;
    let bad = server.client.run("bad").await.instance_id.to_string();
    server.client.run("good").await;
    server.client.stop(&bad).await.expect(200);
    server.stop().await;
    let spoil = "UPDATE bridges SET permission_mode = 'whatever' WHERE project = 'bad'";
    world.sql(spoil).await.unwrap();
    let before = world.sql_text("SELECT group_concat(permission_mode) FROM bridges").await;
    let server = world.serve().await;
    let mut page = server.events().await;
    page.until_status("good", "running").await;
    let held = server.client.instance(&bad).await.expect(200).json();
    assert_eq!(held["quarantined"], json!({ "kind": "identity", "code": "row_corrupt" }));
    for reply in [server.client.stop(&bad).await, server.client.resume(&bad).await] {
        assert_eq!(reply.refused(409), "quarantined");
    }
    let forget = server.client.post(&format!("/api/instances/{bad}/forget")).await;
    assert_eq!(forget.refused(409), "quarantined");
    let after = world.sql_text("SELECT group_concat(permission_mode) FROM bridges").await;
    assert_eq!(before, after, "the bytes are kept");
}

/// F4: a name in the process table that imitates its fields.
#[tokio::test]
async fn f4_a_program_name_full_of_brackets_is_read_correctly() {
    let world = World::new();
    world.project("app");
    let program = world.root.join("a) R 1 (b");
    svc_programs::copy(crate::harness::simulator(), &program).unwrap();
    world.configure(json!({ "claude": { "binary": program } }));
    let server = world.serve().await;
    let running = server.client.run("app").await;
    server.kill().await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let again = page.until_status("app", "running").await;
    assert_eq!(again.bridge_pid, running.bridge_pid);
    let stopped = server.client.stop("app").await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
    assert!(stat_of(running.bridge_pid.unwrap()).is_none_or(|stat| stat.state == 'Z'));
}

/// Edited by hand, a stored name must not become an option of the agent (H29).
#[tokio::test]
async fn h29_a_stored_name_that_reads_as_an_option_is_not_resumed() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    server.client.stop("app").await.expect(200);
    server.stop().await;
    let spoil = "UPDATE bridges SET custom_name = '--dangerously-skip-permissions'";
    world.sql(spoil).await.unwrap();
    let server = world.serve().await;
    let refused = server.client.resume("app").await;
    assert!([409, 422].contains(&refused.status), "{}", refused.text());
    assert_eq!(world.starts("app").len(), 1);
}

/// H102: the record tells the truth about a stranger, but for its launch.
#[tokio::test]
async fn h102_a_true_identity_without_the_launch_is_not_signalled() {
    let stages = [
        "status = 'running'",
        "status = 'running', stop_requested = 1, intentional_stop = 1",
        "status = 'starting', phase = 'registering', grace_deadline = 1",
        "status = 'running', generation = 7",
        "status = 'running', origin = 'adopted', launch_id = NULL, argv = NULL, log_stem = NULL",
    ];
    for stage in stages {
        let forged = format!("bridge_pid = $PID, bridge_start_ticks = $TICKS, {stage}");
        let (world, mut witness) = stolen(&forged).await;
        let told = world.cli(&["stop", "app"]).await;
        assert_ne!(told.code, Some(0), "{stage}: {told:?}");
        let server = world.serve().await;
        let reply = server.client.stop("app").await;
        assert_eq!(reply.refused(409), "quarantined", "{stage}");
        assert!(reply.text().contains("launch"), "{stage}: {}", reply.text());
        server.stop().await;
        witness.assert_untouched(&world).await;
    }
}

/// H102: the same with another bridge of ours, of another launch.
#[tokio::test]
async fn h102_a_bridge_of_another_launch_is_not_signalled() {
    let (world, other) = without_its_bridge().await;
    let steal = format!(
        "UPDATE bridges SET bridge_pid = {}, bridge_start_ticks = {} WHERE project = 'app'",
        other.pid, other.start_ticks
    );
    world.sql(&steal).await.unwrap();
    let told = world.cli(&["stop", "app"]).await;
    assert!(other.is_alive(), "{told:?}");
    let server = world.serve().await;
    let _ = server.client.stop("app").await;
    assert!(other.is_alive());
    server.client.stop("other").await;
}
