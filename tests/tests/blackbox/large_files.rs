//! Large files of the agent are read, and cost no memory afterwards (H81).

use crate::harness::{Server, World, within};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const MEBI: usize = 1 << 20;
/// Size of each file.
const LARGE: usize = 12 * MEBI;
/// Growth that is allowed, KiB: less than one of the files.
const GROWTH: u64 = 8 * 1024;

/// Resident memory of a process and its highest, in KiB.
fn memory(pid: i32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let figure = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap()
    };
    (figure("VmRSS:"), figure("VmHWM:"))
}

/// Waits until nothing of a file is held any more.
async fn settled(what: &str, pid: i32, before: u64) {
    within(&format!("the memory of {what}"), async {
        while memory(pid).0 >= before + GROWTH {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let (after, peak) = memory(pid);
    eprintln!("{what}: {before} KiB before, {after} KiB after, {peak} KiB at most");
}

/// Small values, as years of use leave them.
fn history() -> String {
    let one = r#"{"display":"look around","pastedContents":{},"at":1700000000000},"#;
    let all = one.repeat(LARGE / one.len());
    format!("[{}]", all.trim_end_matches(','))
}

/// A document with its own members behind the history.
fn behind_history(members: &str) -> String {
    format!(r#"{{"history":{},{}"#, history(), members.trim_start().trim_start_matches('{'))
}

/// Asks for everything that is read of the agent's files.
async fn read_all(server: &Server<'_>) {
    for path in [
        "/api/projects/app/preflight",
        "/api/v1/agents",
        "/api/doctor",
        "/api/state",
        "/api/projects",
    ] {
        let _ = server.client.get(path).await;
    }
    // Settings that cannot be understood may be a reason to refuse it.
    server.client.launch("app").await;
    server.client.stop("app").await;
}

#[tokio::test]
async fn h81_large_files_of_the_agent_leave_memory_where_it_was() {
    let world = World::new();
    let app = world.project("app");
    let untrusted = world.untrusted("new");
    let server = world.serve().await;
    for _ in 0..3 {
        read_all(&server).await;
    }
    let (before, _) = memory(server.pid);
    let agent = &world.agent_home;
    let job = json!({ "state": "done", "intent": "x", "cwd": app, "sessionId": "s" }).to_string();
    let entry = json!({
        "pid": 4242, "procStart": "7", "sessionId": "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0",
        "cwd": app, "startedAt": 1, "kind": "interactive",
    });
    let turn = json!({ "type": "user", "message": { "role": "user", "content": history() } });
    let conversation = "projects/-app/0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0.jsonl";
    let files: [(PathBuf, String); 9] = [
        (agent.join(".claude.json"), fs::read_to_string(world.agent_config()).unwrap()),
        (agent.join("settings.json"), "{\"model\":\"opus\"}".into()),
        (agent.join(".credentials.json"), "{\"claudeAiOauth\":{}}".into()),
        (agent.join("sessions/4242.json"), entry.to_string()),
        (agent.join("jobs/0a1b2c3d/state.json"), job),
        (agent.join("daemon/roster.json"), "{\"workers\":{}}".into()),
        (app.join(".mcp.json"), "{\"mcpServers\":{}}".into()),
        (app.join(".claude/settings.json"), "{\"model\":\"opus\"}".into()),
        (agent.join(conversation), turn.to_string()),
    ];
    for (path, members) in files {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, behind_history(&members)).unwrap();
        let name = path.strip_prefix(&world.root).unwrap().display().to_string();
        read_all(&server).await;
        settled(&name, server.pid, before).await;
        if path != world.agent_config() {
            // What is left of a session that is gone may be removed already.
            let _ = fs::remove_file(path);
        }
    }
    // A grant changes the large file and leaves everything else of it.
    let text = fs::read_to_string(world.agent_config()).unwrap();
    server.client.launch_with(json!({ "project": "new", "trust": true })).await.expect(201);
    let changed = fs::read_to_string(world.agent_config()).unwrap();
    assert!(changed.contains(untrusted.to_str().unwrap()));
    assert!(changed.len() > text.len() && changed.starts_with(&text[..LARGE]));
    settled("a grant", server.pid, before).await;
    server.client.stop("new").await.expect(200);
}
