//! Other accounts of the machine, which reach a loopback address too (H146).

use crate::harness::World;
use serde_json::{Value, json};
use std::fs;

const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

/// The machine has the account of the test, one that nobody logs in to, and these.
fn people(world: &World, others: &[&str]) {
    let own = rustix::process::getuid().as_raw();
    let mut list = format!(
        "root:x:0:0::/root:/bin/bash\nme:x:{own}:{own}::/home/me:/bin/bash\n\
         mail:x:1500:1500::/var/mail:/usr/sbin/nologin\n"
    );
    for (at, name) in others.iter().enumerate() {
        let id = 2000 + at;
        list.push_str(&format!("{name}:x:{id}:{id}::/home/{name}:/bin/zsh\n"));
    }
    fs::write(world.root.join("home/accounts"), list).unwrap();
}

/// The check `auth` of the command.
async fn auth(world: &World) -> Value {
    let report = world.cli(&["doctor", "--only", "auth", "--json"]).await.json();
    report["checks"][0].clone()
}

/// What `svc access` says about accounts.
async fn finding(world: &World) -> Option<Value> {
    let access = world.cli(&["access", "--json"]).await.ok().json();
    let findings = access["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["code"] == "accounts").cloned()
}

#[tokio::test]
async fn h146_accounts_that_control_the_service_too_are_named() {
    let world = World::new();
    people(&world, &["alice", "bob"]);
    let words = "2 other accounts of this machine can log in (alice, bob)";
    let server = world.serve().await;
    let line = server.says(words).await;
    assert!(line.contains("auth.enabled"), "{line}");
    let check = auth(&world).await;
    assert_eq!(check["status"], "warn", "{check}");
    assert!(check["detail"].as_str().unwrap().contains(words), "{check}");
    assert!(check["hint"].as_str().unwrap().contains("svc hash-password"), "{check}");
    let of_service = server.client.get("/api/doctor").await.expect(200).json();
    let checks = of_service["checks"].as_array().unwrap();
    assert!(checks.contains(&check), "{of_service}");
    let found = finding(&world).await.expect("it is said who can reach the service");
    assert_eq!(found["level"], "warn");
    assert_eq!(found["key"], "auth.enabled");
    assert!(found["detail"].as_str().unwrap().contains(words), "{found}");
    server.stop().await;
}

#[tokio::test]
async fn h146_one_account_or_a_password_warns_of_nobody() {
    let alone = World::new();
    people(&alone, &[]);
    let closed = World::with(json!({
        "auth": { "enabled": true, "password_required": true, "password_hash": HASH }
    }));
    people(&closed, &["alice"]);
    for world in [alone, closed] {
        let server = world.serve().await;
        let check = auth(&world).await;
        assert_eq!(check["status"], "ok", "{check}");
        assert_eq!(finding(&world).await, None);
        let (_, said) = server.stop().await;
        assert!(!said.contains("can log in"), "{said}");
    }
}
