//! `svc mcp` and the client of the protocol's authors.

use crate::harness::{World, service};
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use svc_skip::skip;
use tokio::process::Command;

const MISSING: &str = "the client is not installed: .ci/clients DIR, then SVC_CLIENTS=DIR";

/// A start of Node and a dozen calls, beside all the other tests.
const PATIENCE: Duration = Duration::from_secs(120);

const READS: &str = "connected to svc\nlist_sessions session_status\n0 sessions\n\
    web is not found\n2 templates; read approvals\n";

const WRITES: &str = "connected to svc\n\
    list_sessions session_status spawn_session stop_session resume_session\n0 sessions\n\
    web is not found\n2 templates; read approvals\nweb is running\nsession_status: running\n\
    2 templates; read approvals, logs\nstopped: true\nresumed: true\nstopped: true\n";

/// Where `.ci/clients` put the client.
fn modules() -> Option<PathBuf> {
    let named = PathBuf::from(std::env::var_os("SVC_CLIENTS")?);
    let modules = named.join("mcp/node_modules");
    (named.join("installed").is_file() && modules.is_dir()).then_some(modules)
}

/// Runs a script beside the client, to its good end; what it said.
async fn runs(world: &World, modules: &Path, script: &str, args: &[&str]) -> String {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(script);
    let link = world.root.join("node_modules");
    if !link.exists() {
        symlink(modules, link).unwrap();
    }
    fs::copy(from, world.root.join("script.mjs")).unwrap();
    let mut env = world.environment();
    env.push(("SVC".into(), service().into()));
    env.push(("SVC_CONFIG".into(), OsString::from(&world.config)));
    let mut node = Command::new("node");
    node.arg("script.mjs").args(args).current_dir(&world.root).env_clear().envs(env);
    node.stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, node.output()).await;
    let ended = ended.expect("it keeps to its time").expect("Node runs");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{script}\n{said}\n{complaints}");
    said
}

const EXAMPLE: &str = "docs/clients/mcp/example.mjs";

#[tokio::test]
async fn h137_the_reference_client_calls_every_tool_beside_a_service_and_without_one() {
    let Some(modules) = modules() else { skip!("{MISSING}") };
    let world = World::with(json!({ "mcp": { "allow_writes": true } }));
    world.project("web");
    assert_eq!(runs(&world, &modules, EXAMPLE, &["web"]).await, WRITES);
    let id = world.agree().await.rows[0].instance_id.clone();
    world.cli(&["forget", &id]).await.ok();
    let server = world.serve().await;
    assert_eq!(runs(&world, &modules, EXAMPLE, &["web"]).await, WRITES);
    let row = server.client.instance("web").await.expect(200).instance();
    assert_eq!((row.status.to_string(), row.generation), ("stopped".into(), 2));
    server.stop().await;
}

#[tokio::test]
async fn h137_the_reference_client_reads_where_no_agent_is_installed() {
    let Some(modules) = modules() else { skip!("{MISSING}") };
    let world = World::with(json!({ "claude": { "binary": "/nowhere/claude" } }));
    world.project("web");
    assert_eq!(runs(&world, &modules, EXAMPLE, &["web"]).await, READS);
}

#[tokio::test]
async fn h137_odd_messages_of_the_reference_client_are_answered_and_the_loop_goes_on() {
    let Some(modules) = modules() else { skip!("{MISSING}") };
    let world = World::new();
    assert_eq!(runs(&world, &modules, "tests/mcp/odd.mjs", &[]).await, "still 2 tools\n");
}
