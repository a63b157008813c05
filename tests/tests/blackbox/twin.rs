//! Another program at the other loopback address of our port.

use crate::harness::World;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A listener of somebody else at the port of the service.
fn stranger(address: &str, world: &World) -> TcpListener {
    TcpListener::bind((address, world.port())).expect("a loopback address of both families")
}

fn printed(world: &World) -> String {
    let lock = std::fs::read(world.state_dir().join("run.lock")).unwrap();
    let lock: Value = serde_json::from_slice(&lock).unwrap();
    lock["address"].as_str().unwrap().to_owned()
}

async fn told(world: &World) -> String {
    let report = world.cli(&["doctor", "--json"]).await.json();
    let checks = report["checks"].as_array().unwrap().iter();
    let warnings = checks.filter(|check| check["status"] == "warn");
    warnings.map(|check| check["detail"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn h146_a_listener_at_the_other_loopback_address_is_told_of() {
    let cases = [
        ("127.0.0.1", "::1", "[::1]"),
        ("::1", "127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "::1", "[::1]"),
        ("localhost", "::1", "[::1]"),
    ];
    let mut left = cases.iter();
    let mut case = left.next();
    while let Some((host, other, shown)) = case {
        let world = World::with(json!({
            "host": host, "auth": { "allow_unauthenticated_network": true }
        }));
        let port = world.port();
        let listener = stranger(other, &world);
        let words = format!("another program listens at {shown}:{port}");
        assert!(told(&world).await.contains(&words), "{host}: doctor before the start");
        let server = world.serve().await;
        if world.port() != port {
            continue; // another test took the port meanwhile, and the service another one
        }
        server.says(&words).await;
        assert!(told(&world).await.contains(&words), "{host}: doctor");
        // What is printed leads to us, whatever `localhost` means to a browser.
        let held = match *host {
            "localhost" => "127.0.0.1",
            "::1" => "[::1]",
            other => other,
        };
        assert_eq!(printed(&world), format!("http://{held}:{}/", world.port()), "{host} {other}");
        drop((server, listener));
        case = left.next();
    }
}

#[tokio::test]
async fn h146_the_other_loopback_address_cannot_be_taken_later() {
    for (host, other) in [("127.0.0.1", "::1"), ("::1", "127.0.0.1"), ("localhost", "::1")] {
        let world = World::with(json!({ "host": host }));
        let server = world.serve().await;
        assert!(!printed(&world).contains("localhost"), "{host}");
        let held = printed(&world);
        for address in ["127.0.0.1", other] {
            let taken = TcpListener::bind((address, world.port()));
            assert!(taken.is_err(), "{host}: somebody else has {address} beside {held}");
        }
        let words = told(&world).await;
        assert!(!words.contains("another program listens"), "{host}: {words}");
        server.kill().await;
    }
}

/// Moves the service to a free port.
///
/// To another one when somebody took that meanwhile.
async fn move_and_restart(world: &World) {
    loop {
        world.move_port();
        let ran = world.cli(&["restart"]).await;
        if !ran.stderr.contains("another program listens there") {
            ran.ok();
            return;
        }
    }
}

/// Whoever waits for the moment of a restart does not get the address either.
#[tokio::test]
async fn h114_h146_the_other_loopback_address_is_kept_during_a_restart() {
    for (host, other) in [("127.0.0.1", "::1"), ("::1", "127.0.0.1"), ("0.0.0.0", "::1")] {
        let world = World::with(json!({
            "host": host, "auth": { "allow_unauthenticated_network": true }
        }));
        let server = world.serve().await;
        let (port, is_over) = (world.port(), Arc::new(AtomicBool::new(false)));
        let trying = std::thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                let (mut tries, mut taken) = (0_u64, 0_u64);
                while !is_over.load(Ordering::Relaxed) {
                    tries += 1;
                    taken += u64::from(TcpListener::bind((other, port)).is_ok());
                }
                (tries, taken)
            }
        });
        for _ in 0..3 {
            let ran = world.cli(&["restart"]).await.ok();
            assert!(!ran.stdout.is_empty() || !ran.stderr.is_empty());
        }
        is_over.store(true, Ordering::Relaxed);
        let (tries, taken) = trying.join().expect("it does not panic");
        assert!(tries > 0);
        assert_eq!(taken, 0, "{host}: of {tries} tries");
        // The service that came after a change of the port keeps the one beside it.
        move_and_restart(&world).await;
        assert!(TcpListener::bind((other, world.port())).is_err(), "{host}: after a move");
        server.kill().await;
    }
}
