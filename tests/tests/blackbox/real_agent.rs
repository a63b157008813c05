//! The real agent, logged out, when `SVC_CONTRACT_AGENT` names it: told truthfully, never hanging.

use crate::harness::World;
use serde_json::json;
use std::process::Command;

#[tokio::test]
async fn the_real_agent_is_reported_truthfully_and_fails_with_its_own_words() {
    let Ok(agent) = std::env::var("SVC_CONTRACT_AGENT") else {
        eprintln!("skipped: real agent: SVC_CONTRACT_AGENT names none");
        return;
    };
    let world = World::new();
    world.project("app");
    // A real home: nothing of the double in it.
    std::fs::remove_dir_all(world.agent_home.join(".agent-sim")).unwrap();
    world.configure(json!({ "claude": { "binary": agent } }));
    let asked = Command::new(&agent)
        .arg("--version")
        .env_clear()
        .envs(world.environment())
        .output()
        .unwrap();
    let version = String::from_utf8_lossy(&asked.stdout).into_owned();
    let version = version.split_whitespace().next().unwrap().to_owned();

    let server = world.serve().await;
    let mut page = server.events().await;
    let health = page
        .until("the probes", |state| {
            let health = state.health.clone()?;
            (health.claude_version.is_some() && !health.claude_login_ok).then_some(health)
        })
        .await;
    assert_eq!(health.claude_version.as_deref(), Some(&*version));
    assert!(health.claude_ok);
    let served = server.client.get("/healthz").await.expect(200).json();
    assert_eq!(
        (&served["claude_login_ok"], &served["claude_version"]),
        (&json!(false), &json!(version))
    );

    let reply = server.client.launch("app").await.expect(201);
    let failed = page.until_status("app", "error").await;
    assert_eq!(failed.exit_reason.map(|reason| reason.to_string()), Some("login_required".into()));
    let detail = failed.error_detail.unwrap();
    assert!(detail.contains("You must be logged in to use Remote Control"), "{detail}");
    assert!(world.agree().await.bridges.is_empty(), "{}", reply.text());
    let (code, _) = server.stop().await;
    assert_eq!(code, Some(0));
    eprintln!("real agent {version}: {}", detail.lines().next().unwrap_or_default());
}
