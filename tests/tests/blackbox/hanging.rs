//! Every reader of the service while its files hang (H85).

use crate::harness::{Client, Gate, Start, World, try_socket};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;

/// More requests at once than the service has worker threads.
const AT_ONCE: usize = 6;

/// Routes that may read files. `{id}` is a running bridge.
const READERS: [&str; 51] = [
    "GET /api/v1/projects",
    "GET /api/v1/sessions",
    "GET /api/v1/sessions/tracked",
    "GET /api/v1/sessions/adoptable",
    "GET /api/v1/instances",
    "GET /api/v1/instances/{id}",
    "GET /api/v1/agents",
    "GET /api/bootstrap",
    "GET /api/state",
    "GET /api/widget",
    "GET /api/doctor",
    "GET /api/login-status",
    "GET /api/ui-prefs",
    "GET /api/stranded",
    "GET /api/strays",
    "GET /api/metrics",
    "GET /api/history",
    "GET /metrics",
    "GET /api/instances/{id}/log",
    "GET /api/projects/preflight",
    "GET /api/projects/sortmeta",
    "GET /api/projects/app/preflight",
    "GET /api/projects/app/row",
    "GET /api/instances/{id}/changes",
    "GET /api/projects/app/changes",
    "GET /api/projects/app/worktrees",
    "GET /api/usage",
    "GET /api/projects/app/usage",
    "GET /api/projects/app/transcripts",
    "GET /api/projects/app/metrics",
    "GET /ui/p/app",
    "GET /api/approvals",
    "GET /api/config",
    "GET /api/config-write/claude-md?project=app&scope=project",
    "GET /api/config-write/copies?project=app&scope=project",
    "GET /api/config-write/hooks?project=app&scope=project",
    "GET /api/config-write/marketplaces",
    "GET /api/config-write/mcp?project=app&scope=project",
    "GET /api/config-write/mcp/approvals?project=app",
    "GET /api/config-write/plugins?project=app&scope=project",
    "GET /api/config-write/settings/effective?project=app&scope=project",
    "GET /api/config-write/skills/overrides?project=app&scope=project",
    "GET /api/config-write/status",
    "GET /api/config-write/subagents?project=app&scope=project",
    "GET /api/devices",
    "GET /api/hosted",
    "GET /api/keepers",
    "GET /api/projects/app/claude-md",
    "GET /api/restore",
    "GET /api/access",
    "GET /api/tokens",
];

/// Routes that read files before they write. `{ended}` is an ended bridge.
const WRITERS: [(&str, &str); 9] = [
    ("POST /api/v1/instances?wait=0", r#"{"project":"other"}"#),
    ("POST /api/v1/instances/{ended}/resume?wait=0", "{}"),
    ("POST /api/v1/agents", r#"{"project":"other","prompt":"look"}"#),
    ("POST /api/projects/other/trust", ""),
    ("POST /api/projects/trust-all", r#"{"names":["other"]}"#),
    ("POST /api/projects/other/adopt", ""),
    (
        "PUT /api/config-write/claude-md",
        r#"{"project":"other","scope":"project","content":"x","confirm":"other"}"#,
    ),
    ("PUT /api/projects/other/claude-md", r#"{"content":"x"}"#),
    ("POST /api/projects", r#"{"name":"third"}"#),
];

fn request(client: &Client, base: &str, line: &str, body: &str) -> reqwest::RequestBuilder {
    let (method, path) = line.split_once(' ').unwrap();
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = client.request(method, path).header("Origin", base);
    match body {
        "" => request,
        body => request.header("Content-Type", "application/json").body(body.to_owned()),
    }
}

/// H85: while files hang, requests that need no file are answered.
#[tokio::test]
async fn h85_files_that_hang_under_every_reader_hold_up_no_other_answer() {
    let world = World::with(json!({
        "observability": { "prometheus_enabled": true }, "config_write": { "enabled": true },
    }));
    world.repository("app");
    world.project("other");
    world.project("ended");
    let state = ["logs", "locks", "agent_config_backups", "run"].map(|dir| world.state.join(dir));
    let own = [world.projects.clone(), world.agent_home.clone(), world.config.clone()];
    let gated = [&own[..], &state].concat();
    let gate = Gate::before(&world, &gated);
    let server = world.serve_as(Start { env: &gate.env(), ..Start::default() }).await;
    let id = server.client.run("app").await.instance_id.to_string();
    let ended = server.client.run("ended").await.instance_id.to_string();
    server.client.stop(&ended).await.expect(200);
    let name = |line: &str| line.replace("{id}", &id).replace("{ended}", &ended);

    gate.close();
    // Changes in every directory that is watched, so that the background reads, too.
    std::fs::create_dir(world.projects.join("made")).unwrap();
    std::fs::write(world.agent_home.join("sessions/1.json"), "{").unwrap();
    let all = READERS.iter().map(|line| (*line, "")).chain(WRITERS);
    let asked: Vec<_> = all
        .flat_map(|one| std::iter::repeat_n(one, AT_ONCE))
        .map(|(line, body)| {
            let request = request(&server.client, &server.base, &name(line), body);
            let (client, line) = (server.client.clone(), name(line));
            tokio::spawn(async move { (line, client.send(request).await.status) })
        })
        .collect();
    let logs = format!("/ws/bridge-log/{id}?format=json");
    let sockets: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (base, logs) = (server.base.clone(), logs.clone());
            tokio::spawn(async move { try_socket(&base, &logs).await.map(drop) })
        })
        .collect();
    let busy = AT_ONCE as u64;
    world.until("readers at the gate", || (gate.waiting() >= busy).then_some(())).await;
    // Each with a connection of its own, as a browser that comes now.
    for _ in 0..20 {
        let client = Client::new(&server.base);
        client.get("/healthz").await.expect(200);
        client.get("/api/v1/instances").await.expect(200);
    }
    let stuck = gate.waiting();

    gate.open();
    for done in join_all(asked).await {
        let (line, status) = done.unwrap();
        assert!(status < 500 || status == 503 || status == 504, "{line}: {status}");
    }
    for done in join_all(sockets).await {
        done.unwrap().unwrap();
    }
    assert!(stuck >= busy, "{stuck} calls hung");
    let mut page = server.events().await;
    page.until("the new project", |state| state.projects.contains_key("made").then_some(())).await;
    drop(page);
    world.agree().await;
    eprintln!("{stuck} calls hung at once");
}
