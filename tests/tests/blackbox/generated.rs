//! The public API under generated requests, judged by its own description.

use crate::harness::{Client, World, installed};
use reqwest::Method;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use svc_skip::skip;

const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";
/// Seconds that requests are made up for; the same ones each time.
const SECONDS: &str = "40";

/// What an answer may not be.
///
/// Whether a body that fits the description is accepted is not asked: rules between members, and
/// keys that were used before, stand in words only.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,negative_data_rejection,\
    unsupported_method,ignored_auth,missing_required_header";

/// Puts names that are there into requests that may succeed.
const KNOWN_NAMES: &str = r#"
import os
import schemathesis

@schemathesis.hook
def map_case(context, case):
    may_succeed = case.meta is not None and case.meta.generation.mode == "positive"
    if may_succeed and isinstance(case.body, dict) and "project" in case.body:
        case.body["project"] = ("web", "api")[len(str(case.body)) % 2]
    if may_succeed and "instance_id" in (case.path_parameters or {}):
        case.path_parameters["instance_id"] = os.environ["KNOWN_ID"]
    return case
"#;

/// The program of <https://schemathesis.readthedocs.io>.
fn schemathesis() -> Option<PathBuf> {
    let named = std::env::var_os("SVC_SCHEMATHESIS").map(PathBuf::from);
    named.filter(|path| path.is_file()).or_else(|| installed("schemathesis"))
}

#[tokio::test]
async fn generated_requests_get_documented_answers_and_no_failure() {
    let Some(program) = schemathesis() else { skip!("schemathesis is not installed") };
    let world = World::with(json!({
        "auth": { "enabled": true, "password_required": true, "password_hash": HASH },
        "observability": { "prometheus_enabled": true },
        "instance_defaults": { "max_bridges": 4 },
    }));
    for name in ["web", "api"] {
        world.project(name);
    }
    let server = world.serve().await;
    let issued = world.cli(&["api-token", "issue", "generated"]).await.ok();
    let token = issued.stdout.split_whitespace().find(|word| word.starts_with("svc_pat_")).unwrap();
    let client = Client::new(&server.base);
    let bearer = format!("Bearer {token}");
    let launch = client.request(Method::POST, "/api/v1/instances").header("Authorization", &bearer);
    let launched = client.send(launch.json(&json!({ "project": "web" }))).await.expect(201);
    let id = launched.instance().instance_id;
    fs::write(world.root.join("known_names.py"), KNOWN_NAMES).unwrap();

    let mut command = tokio::process::Command::new(program);
    command.env_clear().envs(world.environment()).current_dir(&world.root);
    command.env("SCHEMATHESIS_HOOKS", "known_names").env("PYTHONPATH", &world.root);
    command.env("KNOWN_ID", id.to_string());
    command.arg("run").arg(format!("{}/openapi.json", server.base));
    command.arg("--header").arg(format!("Authorization: {bearer}"));
    command.args(["--seed", "1", "--generation-deterministic"]);
    command.args(["--max-time", SECONDS, "--request-timeout", "40", "--checks", CHECKS]);
    command.args(["--continue-on-failure", "--no-color", "--warnings", "off"]);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let running = tokio::time::timeout(Duration::from_secs(300), command.output());
    let done = running.await.expect("it keeps to its time").expect("the program runs");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("Tested: 15"), "{said}");
    // More was met than refusals: sessions were started.
    let list = client.request(Method::GET, "/api/v1/instances").header("Authorization", &bearer);
    let list = client.send(list).await.expect(200).json();
    assert!(list.as_array().unwrap().len() > 1, "{said}");
    server.stop().await;
}
