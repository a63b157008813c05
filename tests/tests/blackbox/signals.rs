//! What signals do to the service.

use crate::harness::{Server, World, limit};
use std::process::Command;

/// Signals that end a process by default and tell of no defect (signal(7)).
///
/// Between `SIGRTMIN` and `SIGRTMAX` the first, one in the middle and the last.
const SURVIVED: [&str; 15] = [
    "HUP", "USR1", "USR2", "PIPE", "ALRM", "STKFLT", "XCPU", "XFSZ", "VTALRM", "PROF", "POLL",
    "PWR", "34", "50", "64",
];

fn send(server: &Server<'_>, signal: &str) {
    let sent = Command::new("kill").arg("-s").arg(signal).arg(server.pid.to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()), "SIG{signal}");
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
