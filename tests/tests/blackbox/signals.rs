//! What signals do to the service.

use crate::direct_sessions::{asked, enabled, launch, say};
use crate::harness::{Process, Server, World, gone, limit};
use rustix::process::Signal;
use serde_json::json;
use std::process::Command;

/// Signals that end a process by default and tell of no defect (signal(7)).
///
/// Between `SIGRTMIN` and `SIGRTMAX` the first, one in the middle and the last.
const SURVIVED: [&str; 15] = [
    "HUP", "USR1", "USR2", "PIPE", "ALRM", "STKFLT", "XCPU", "XFSZ", "VTALRM", "PROF", "POLL",
    "PWR", "34", "50", "64",
];

fn send(server: &Server<'_>, signal: &str) {
    send_to(server.pid, signal);
}

fn send_to(pid: i32, signal: &str) {
    let sent = Command::new("kill").arg("-s").arg(signal).arg(pid.to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()), "SIG{signal}");
}

/// Nothing but a request ends whoever holds agents: they would end with it.
const SURVIVED_BY_HOLDERS: [&str; 2] = ["HUP", "QUIT"];

#[tokio::test]
async fn h36_h113_no_signal_ends_a_keeper_by_accident() {
    let world = World::new();
    world.project("app");
    // What its starter blocked or ignored is not the keeper's.
    world.enter(&["env", "--block-signal", "--ignore-signal=USR1"]);
    let server = world.serve().await;
    let body = json!({ "project": "app", "mode": "pty" });
    let one = server.client.launch_with(body).await.expect(201).instance();
    let keeper = one.keeper_pid.unwrap();
    for signal in SURVIVED.iter().chain(&SURVIVED_BY_HOLDERS) {
        send_to(keeper, signal);
    }
    let id = one.instance_id.as_str();
    let same = server.client.instance(id).await.expect(200).instance();
    assert_eq!((same.keeper_pid, same.status.to_string()), (Some(keeper), "running".to_owned()));
    // It still does what it is for: it sees the end and says how it was.
    let stopped = server.client.stop(id).await.expect(200).instance();
    assert_eq!(stopped.exit_reason.unwrap().to_string(), "operator_stop");
    assert!(limit_of_core_is_zero(server.pid));
}

#[tokio::test]
async fn h36_h113_no_signal_ends_the_daemon_of_direct_sessions_by_accident() {
    let world = enabled();
    world.enter(&["env", "--block-signal", "--ignore-signal=USR1"]);
    let server = world.serve().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    let is_daemon = |process: &Process| {
        process.argv.first().is_some_and(|program| program.ends_with("svc-hosted"))
    };
    let daemon = world.processes().into_iter().find(is_daemon).expect("the daemon");
    for signal in SURVIVED.iter().chain(&SURVIVED_BY_HOLDERS) {
        send_to(daemon.pid, signal);
    }
    // It answers, and its agent is the same.
    let mut events = server.events().await;
    say(&server, id, "use a tool").await;
    asked(&mut events, id).await;
    assert!(daemon.is_alive());
    assert!(limit_of_core_is_zero(daemon.pid), "H73");
    server.client.stop(id).await.expect(200);
    // A request to end is one, whatever its starter blocked.
    send_to(daemon.pid, "TERM");
    gone(&daemon).await;
}

/// An agent can freeze the daemon that holds it, and ends all the same.
#[tokio::test]
async fn h104_an_agent_whose_daemon_is_frozen_is_stopped() {
    for (by_command, is_frozen_too) in [(false, false), (true, false), (false, true)] {
        let world = enabled();
        let server = world.serve().await;
        let one = launch(&server).await;
        let id = one.instance_id.as_str();
        let processes = world.processes();
        let is_daemon = |process: &&Process| {
            process.argv.first().is_some_and(|program| program.ends_with("svc-hosted"))
        };
        let daemon = processes.iter().find(is_daemon).expect("the daemon");
        let agent = processes.iter().find(|process| Some(process.pid) == one.agent_pid);
        let agent = agent.expect("the agent");
        daemon.signal(Signal::STOP);
        if is_frozen_too {
            agent.signal(Signal::STOP);
        }
        if by_command {
            world.cli(&["stop", id]).await.ok();
        } else {
            server.client.stop(id).await.expect(200);
        }
        assert!(!agent.is_alive());
        let stopped = server.client.instance(id).await.expect(200).instance();
        assert_eq!(stopped.status.to_string(), "stopped");
        assert_eq!(stopped.exit_reason.unwrap().to_string(), "operator_stop");
        // Once it goes on, it holds other sessions.
        daemon.signal(Signal::CONT);
        let next = launch(&server).await;
        server.client.stop(next.instance_id.as_str()).await.expect(200);
        server.kill().await;
    }
}

fn limit_of_core_is_zero(pid: i32) -> bool {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    line.split_whitespace().nth(4) == Some("0")
}

#[tokio::test]
async fn h113_no_signal_but_a_request_to_end_ends_the_service() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    for signal in SURVIVED {
        send(&server, signal);
        server.client.get("/healthz").await.expect(200);
    }
    let stopped = server.client.stop("app").await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
    assert_eq!(server.stop().await.0, Some(0));
}

/// The same when its starter ignored or blocked them, and others it needs.
#[tokio::test]
async fn h36_h113_a_service_is_not_deaf_because_its_starter_was() {
    for how in ["--block-signal", "--ignore-signal"] {
        let world = World::new();
        world.project("app");
        world.enter(&["env", how]);
        let server = world.serve().await;
        // The end of a child is a signal, too.
        server.client.run("app").await;
        server.client.stop("app").await.expect(200);
        for signal in SURVIVED {
            send(&server, signal);
            server.client.get("/healthz").await.expect(200);
        }
        assert_eq!(server.stop().await.0, Some(0), "{how}");
    }
    let world = World::new();
    world.enter(&["env", "--block-signal"]);
    let mut server = world.serve().await;
    send(&server, "INT");
    assert_eq!(server.ended().await.code(), Some(0));
    let mut server = world.serve().await;
    send(&server, "QUIT");
    assert_eq!(server.ended().await.code(), Some(0));
}

/// A limit on the size of files fails writes like a full disk, and ends nothing.
#[tokio::test]
async fn h91_a_limit_on_file_sizes_refuses_writes_and_ends_nothing() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    assert!(limit(server.pid, "fsize", "1:unlimited"));
    let refused = server.client.launch("app").await;
    assert!([503, 507].contains(&refused.status), "{}: {}", refused.status, refused.text());
    server.client.get("/healthz").await.expect(200);
    let told = world.cli(&["status"]).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(limit(server.pid, "fsize", "unlimited:unlimited"));
    server.client.run("app").await;
    assert_eq!(server.stop().await.0, Some(0));
}
