//! The first run from outside: the page that writes a configuration, the service.

use crate::harness::{Server, Start, World, service_with_fail_points};
use reqwest::Method;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use svc_skip::{NO_FAIL_POINTS, skip};

const PASSWORD: &str = "correct horse";

/// A world that was never configured, and the environment its first run needs.
fn fresh() -> (World, Vec<(&'static str, String)>) {
    let world = World::new();
    fs::remove_file(&world.config).unwrap();
    let own = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let env = vec![
        ("SVC_SETUP_PORT", world.port().to_string()),
        ("SVC_STATE_DIR", own(&world.state)),
        ("SVC_CLAUDE_BINARY", own(&crate::harness::simulator())),
        ("SVC_CLAUDE_NODE_FROM_NVM", "false".to_owned()),
    ];
    (world, env)
}

async fn submit(world: &World, server: &Server<'_>) -> u16 {
    let body = json!({
        "projects_root": world.projects, "host": "127.0.0.1", "port": world.port(),
        "password": PASSWORD, "confirm": PASSWORD,
    });
    server.client.post_json("/setup", &body).await.status
}

#[tokio::test]
async fn h26_from_nothing_to_a_page_that_asks_for_the_password() {
    let (world, env) = fresh();
    world.project("app");
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut server = world.begin(&Start { env: &env, ..Start::default() });
    let line = server.says("no configuration yet").await;
    assert!(line.contains(&format!("open {}/", server.base)), "{line}");
    assert!(server.client.get("/").await.expect(200).text().contains("<form"));
    assert_eq!(server.client.get("/healthz").await.json(), json!({"status": "setup"}));

    assert_eq!(submit(&world, &server).await, 200);
    assert!(world.is_up(&mut server).await, "the same process serves: {}", server.log());
    assert_eq!(fs::metadata(&world.config).unwrap().permissions().mode() & 0o777, 0o600);
    let audit = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    let entry: serde_json::Value = serde_json::from_str(&audit).unwrap();
    assert_eq!((&entry["surface"], &entry["actor"]), (&json!("setup"), &json!("setup")));
    assert_eq!(entry["target"], json!(world.config));
    let keys = [
        "auth.enabled",
        "auth.password_hash",
        "auth.password_required",
        "host",
        "port",
        "projects_root",
    ];
    assert_eq!(entry["keys"], json!(keys));
    assert!(!audit.contains(PASSWORD) && !audit.contains("argon2"), "{audit}");
    assert_eq!(server.client.get("/api/projects").await.refused(401), "auth_required");
    let sign_in = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let sign_in = sign_in.json(&json!({"password": PASSWORD}));
    let cookie = server.client.send(sign_in).await.expect(200);
    let cookie = cookie.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let projects = server.client.request(Method::GET, "/api/projects").header("Cookie", cookie);
    assert_eq!(server.client.send(projects).await.json()[0]["name"], "app");
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains(PASSWORD) && !log.contains("argon2"), "{log}");
}

#[tokio::test]
async fn a_first_run_that_cannot_work_is_refused_by_the_name_of_the_variable() {
    let (world, _) = fresh();
    for (name, value) in
        [("SVC_SETUP_PORT", "0"), ("SVC_SETUP_PORT", "x"), ("SVC_AUTH_PASSWORD_REQUIRED", "true")]
    {
        let ran = world.cli_with(&["run"], &[(name, value)]).await;
        assert_eq!(ran.code, Some(2), "{name}={value}: {}", ran.stderr);
        assert!(ran.stderr.contains(name), "{name}={value}: {}", ran.stderr);
    }
    assert!(!world.config.exists() && !world.state.exists());
}

#[tokio::test]
async fn h26_killed_while_writing_it_starts_over_or_is_complete() {
    let Some(program) = service_with_fail_points() else {
        skip!("{NO_FAIL_POINTS}");
    };
    let (world, env) = fresh();
    for (armed, is_written) in [("setup.before_write=abort", false), ("setup.written=abort", true)]
    {
        let mut env: Vec<(&str, &str)> =
            env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        env.push(("SVC_FAILPOINTS", armed));
        let start = Start { program: Some(program.clone()), env: &env, ..Start::default() };
        let mut server = world.begin(&start);
        server.says("no configuration yet").await;
        let body = json!({
            "projects_root": world.projects, "host": "127.0.0.1", "port": world.port(),
            "password": PASSWORD, "confirm": PASSWORD,
        });
        let request = server.client.request(Method::POST, "/setup").json(&body);
        assert!(server.client.try_send(request).await.is_err(), "{armed}");
        server.ended().await;
        assert_eq!(world.config.exists(), is_written, "{armed}");
    }
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    assert_eq!(server.client.get("/api/projects").await.refused(401), "auth_required");
    server.stop().await;
}
