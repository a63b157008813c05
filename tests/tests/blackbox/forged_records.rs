//! Records that name strangers truly: only our own processes are signalled (H102).
//!
//! Whoever can write the state directory could otherwise let the service end any process of its user.
//! `identity.rs` has the records of bridges; here are those of keepers, of Direct Sessions, and of
//! what a bridge leaves behind.

use crate::direct_sessions::{enabled, launch};
use crate::harness::{Events, Process, Server, World, gone, stat_of, within};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use svc_shared::api::instances::Instance;
use svc_shared::stream::EventFrame;
use tokio::io::{AsyncBufReadExt as _, BufReader};

async fn session(server: &Server<'_>, project: &str) -> Instance {
    let body = json!({ "project": project, "mode": "pty" });
    let launched = server.client.launch_with(body).await.expect(201).instance();
    assert_eq!(launched.status.to_string(), "running", "{launched:?}");
    launched
}

/// Lets the row of a project name this process as its keeper.
async fn name_keeper(world: &World, project: &str, pid: i32) {
    let ticks = stat_of(pid).expect("it runs").start_ticks;
    let forged = format!(
        "UPDATE bridges SET keeper_pid = {pid}, keeper_start_ticks = {ticks} \
         WHERE project = '{project}'"
    );
    assert_eq!(world.sql(&forged).await.unwrap(), 1);
}

/// What a row names as its keeper is no keeper, or that of somebody else.
#[tokio::test]
async fn h102_h105_only_the_own_keeper_ends_with_a_session() {
    let world = World::new();
    for name in ["app", "other", "third"] {
        world.project(name);
    }
    let mut witness = world.witness("stranger").await;
    let server = world.serve().await;
    let first = session(&server, "app").await;
    let second = session(&server, "other").await;
    let third = session(&server, "third").await;
    server.kill().await;
    name_keeper(&world, "app", witness.process.pid).await;
    name_keeper(&world, "other", third.keeper_pid.unwrap()).await;
    let server = world.serve().await;
    for stopped in [&first, &second] {
        server.client.stop(stopped.instance_id.as_str()).await.expect(200);
    }
    let row = server.client.instance(third.instance_id.as_str()).await.expect(200).instance();
    assert_eq!((row.keeper_pid, row.bridge_pid), (third.keeper_pid, third.bridge_pid));
    assert!(stat_of(third.keeper_pid.unwrap()).is_some(), "the keeper of another session");
    server.client.stop(third.instance_id.as_str()).await.expect(200);
    server.kill().await;
    witness.assert_untouched(&world).await;
}

fn edit_keeper_record(world: &World, project: &str, edit: impl FnOnce(&mut Value)) {
    let [path] = world.keeper_records(project).try_into().unwrap();
    let mut record = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    edit(&mut record);
    std::fs::write(path, record.to_string()).unwrap();
}

/// The record of a keeper names a stranger, or hides whose keeper it is.
#[tokio::test]
async fn h102_h105_a_forged_record_of_a_keeper_ends_nobody_else() {
    let world = World::new();
    for name in ["lost", "kept"] {
        world.project(name);
    }
    let mut witness = world.witness("stranger").await;
    let server = world.serve().await;
    let lost = session(&server, "lost").await;
    let kept = session(&server, "kept").await;
    world.until_recorded().await;
    server.kill().await;
    assert_eq!(world.sql("DELETE FROM bridges WHERE project = 'lost'").await.unwrap(), 1);
    let own = world.root.join("own");
    std::fs::write(&own, "mine").unwrap();
    edit_keeper_record(&world, "lost", |record| {
        record["socket"] = own.to_str().unwrap().into();
        record["agent"]["pid"] = witness.process.pid.into();
        record["agent"]["start_ticks"] = witness.process.start_ticks.into();
    });
    edit_keeper_record(&world, "kept", |record| record["project"] = "nobody".into());
    let pid = lost.keeper_pid.unwrap().to_string();
    world.cli(&["keepers", "--kill", &pid]).await.ok();
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "mine", "a record costs no file");
    let pid = kept.keeper_pid.unwrap().to_string();
    let refused = world.cli(&["keepers", "--kill", &pid]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let server = world.serve().await;
    server.client.stop(kept.instance_id.as_str()).await.expect(200);
    server.kill().await;
    witness.assert_untouched(&world).await;
}

/// The row of a Direct Session names a stranger as its agent.
#[tokio::test]
async fn h102_a_stranger_is_not_ended_as_the_agent_of_a_direct_session() {
    let world = enabled();
    // It looks like one: that is no proof.
    let mut witness = world.witness("stream-json").await;
    let server = world.serve().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    server.client.stop(id).await.expect(200);
    server.stop().await;
    let (pid, ticks) = (witness.process.pid, witness.process.start_ticks);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let forged = format!(
        "UPDATE hosted_sessions SET status = 'crashed', intentional_stop = 0, is_orphan = 1, \
         agent_pid = {pid}, agent_start_ticks = {ticks}, agent_boot_id = '{}'",
        boot.trim()
    );
    assert_eq!(world.sql(&forged).await.unwrap(), 1);
    let told = world.cli(&["stop", id]).await;
    assert_ne!(told.code, Some(0), "{told:?}");
    let server = world.serve().await;
    let reply = server.client.stop(id).await;
    assert_eq!(reply.refused(409), "still_live", "{}", reply.text());
    server.kill().await;
    witness.assert_untouched(&world).await;
}

/// A child of a shell that has ended, in the session that the shell led.
struct LeftAlone {
    child: Process,
    leader: i32,
    leader_ticks: u64,
}

async fn left_alone(world: &World) -> LeftAlone {
    let mut shell = tokio::process::Command::new("setsid")
        .args(["bash", "-c", "sleep 100000 & echo $!; read -r _"])
        .env_clear()
        .envs(world.environment())
        .current_dir(&world.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let leader = i32::try_from(shell.id().unwrap()).unwrap();
    let mut told = String::new();
    let mut out = BufReader::new(shell.stdout.take().unwrap());
    within("the child", out.read_line(&mut told)).await.unwrap();
    let pid: i32 = told.trim().parse().unwrap();
    let child = world.processes().into_iter().find(|one| one.pid == pid).expect("it runs");
    let leader_ticks = stat_of(leader).unwrap().start_ticks;
    drop(shell.stdin.take());
    within("the end of the shell", shell.wait()).await.unwrap();
    LeftAlone { child, leader, leader_ticks }
}

/// A row whose bridge was killed names this process in its place.
async fn in_place_of_a_bridge(world: &World, pid: i32, ticks: u64) {
    let server = world.serve().await;
    server.client.run("app").await;
    let bridge = world.bridges_of("app").remove(0);
    server.kill().await;
    bridge.signal(Signal::KILL);
    gone(&bridge).await;
    let forged = format!("UPDATE bridges SET bridge_pid = {pid}, bridge_start_ticks = {ticks}");
    assert_eq!(world.sql(&forged).await.unwrap(), 1);
}

/// The row names a process that is gone, whose session lives on without it.
#[tokio::test]
async fn h102_h104_a_session_that_no_launch_began_is_not_ended() {
    for is_stopping in [false, true] {
        let world = World::new();
        world.project("app");
        let left = left_alone(&world).await;
        in_place_of_a_bridge(&world, left.leader, left.leader_ticks).await;
        if is_stopping {
            let intent = "UPDATE bridges SET stop_requested = 1, intentional_stop = 1";
            world.sql(intent).await.unwrap();
        }
        let server = world.serve().await;
        let mut page = server.events().await;
        page.until_status("app", if is_stopping { "stopped" } else { "crashed" }).await;
        server.client.stop("app").await.expect(200);
        assert!(left.child.is_alive(), "it belongs to nobody of ours");
        server.kill().await;
        left.child.signal(Signal::KILL);
    }
}

/// The next sample of a bridge.
async fn sample(page: &mut Events, id: &str) {
    within("a sample", async {
        loop {
            if let EventFrame::Sample { metrics, .. } = page.next().await
                && metrics.contains_key(id)
            {
                return;
            }
        }
    })
    .await;
}

/// The row names a stranger truly, who then ends by himself.
#[tokio::test]
async fn h102_h104_the_children_of_a_stranger_do_not_end_with_him() {
    let world = World::with(json!({ "metrics": { "poll_seconds": 1.0 } }));
    world.project("app");
    let witness = world.witness("stranger").await;
    let (pid, ticks) = (witness.process.pid, witness.process.start_ticks);
    in_place_of_a_bridge(&world, pid, ticks).await;
    let child = world.processes().into_iter().find(|one| one.parent == pid).expect("its child");
    let server = world.serve().await;
    let mut page = server.events().await;
    let row = server.client.instance("app").await.expect(200).instance();
    sample(&mut page, row.instance_id.as_str()).await;
    witness.process.signal(Signal::KILL);
    page.until_status("app", "crashed").await;
    assert!(child.is_alive(), "it belongs to nobody of ours");
    server.kill().await;
    child.signal(Signal::KILL);
}

/// The row of a Direct Session names another directory than that of its project.
///
/// What was judged, its trust among it, is the project's.
#[tokio::test]
async fn h38_a_direct_session_starts_only_in_the_directory_that_was_judged() {
    let world = enabled();
    let other = world.untrusted("other");
    let server = world.serve().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    server.client.stop(id).await.expect(200);
    let agents = || {
        let calls = world.calls();
        calls.iter().filter(|call| call["argv"].to_string().contains("stream-json")).count()
    };
    let app = world.projects.join("app");
    for cwd in [
        other.clone(),
        world.projects.clone(),
        world.root.join("home"),
        app.join("../other"),
        app.join("missing"),
        "/".into(),
        ".".into(),
        "".into(),
    ] {
        let forged = format!(
            "UPDATE hosted_sessions SET cwd = '{}', revision = revision + 1, \
             session_uuid = '22222222-2222-4333-8444-555555555555'",
            cwd.display()
        );
        assert_eq!(world.sql(&forged).await.unwrap(), 1);
        let reply = server.client.resume(id).await;
        assert_eq!(reply.refused(409), "not_resumable", "{}: {}", cwd.display(), reply.text());
    }
    assert_eq!(agents(), 1, "no agent was started");
    let repaired = format!("UPDATE hosted_sessions SET cwd = '{}'", app.display());
    assert_eq!(world.sql(&repaired).await.unwrap(), 1);
    server.client.resume(id).await.expect(200);
    server.client.stop(id).await.expect(200);
    server.kill().await;
}
