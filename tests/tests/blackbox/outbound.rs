//! Without configuration for it, no connection leaves the machine (H53).

use crate::harness::{Network, Start, World};
use serde_json::json;
use std::process::Command;

/// Uses bridges, jobs, pages and commands with default settings.
#[tokio::test]
async fn h53_a_service_with_default_settings_connects_to_nobody() {
    let world = World::with(json!({ "observability": { "prometheus_enabled": true } }));
    let network = Network::watched(&world);
    world.repository("app");
    world.project_with("job", json!({ "job_script": [[0, { "state": "done" }]] }));
    let env = network.env();
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let id = server.client.run("app").await.instance_id.to_string();
    let mut page = server.events().await;
    let job = json!({ "project": "job", "prompt": "look" });
    server.client.post_json("/api/v1/agents", &job).await.expect(201);
    page.until("the job", |state| (!state.jobs.is_empty()).then_some(())).await;
    page.until("the probes", |state| {
        let health = state.health.as_ref()?;
        (health.claude_version.is_some() && health.claude_login_method.is_some()).then_some(())
    })
    .await;
    // Without a built page the page itself is 503.
    assert!([200, 503].contains(&server.client.get("/").await.status));
    for path in ["/docs", "/openapi.json", "/metrics", "/api/doctor", "/api/history"] {
        assert!(server.client.get(path).await.status < 500, "{path}");
    }
    let _log = server.log_of(&id).await;
    for args in [&["doctor"][..], &["status"], &["sessions"], &["config", "check"]] {
        world.cli_with(args, &env).await;
    }
    server.client.stop(&id).await.expect(200);
    server.client.resume(&id).await.expect(200);
    server.client.stop(&id).await.expect(200);
    drop(page);
    server.stop().await;
    // The check itself sees a connection where there is one.
    let asked = network.asked();
    assert!(asked.is_empty(), "{asked:#?}");
    let mut curious = Command::new("bash");
    curious.args(["-c", "exec 3<>/dev/tcp/192.0.2.1/9"]).envs(env);
    let mut curious = curious.stderr(std::process::Stdio::null()).spawn().unwrap();
    world.until("what bash asks for", || (!network.asked().is_empty()).then_some(())).await;
    let _ = curious.kill();
    let _ = curious.wait();
}
