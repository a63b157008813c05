//! Clients generated from the served description, compiled and used.

use crate::harness::{Server, World};
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use svc_skip::skip;
use tokio::process::Command;

const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

/// What each of the examples says.
const SAID: &str = "api is untrusted\nweb is trusted\nweb is running\n\
    refused: unknown_project\nweb is stopped\n";

const MISSING: &str = "the generators are not installed: .ci/clients DIR, then SVC_CLIENTS=DIR";

/// A compiler beside all the other tests.
const PATIENCE: Duration = Duration::from_secs(420);

/// Where `.ci/clients` put the generators.
fn tools() -> Option<PathBuf> {
    let named = std::env::var_os("SVC_CLIENTS").map(PathBuf::from);
    named.filter(|folder| folder.join("installed").is_file())
}

fn example(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/clients").join(kind)
}

fn staged() -> World {
    let world = World::with(json!({
        "auth": { "enabled": true, "password_required": true, "password_hash": HASH }
    }));
    world.project("web");
    world.untrusted("api");
    world
}

/// Writes `openapi.json` as the service gives it; the environment of an example.
async fn described(world: &World, server: &Server<'_>) -> Vec<(OsString, OsString)> {
    let issued = world.cli(&["api-token", "issue", "example", "--scope", "operate"]).await.ok();
    let token = issued.stdout.split_whitespace().find(|word| word.starts_with("svc_pat_")).unwrap();
    let ask = server.client.request(reqwest::Method::GET, "/openapi.json");
    let text = server.client.send(ask.bearer_auth(token)).await.expect(200).json().to_string();
    fs::write(world.root.join("openapi.json"), text).unwrap();
    let mut env = world.environment();
    env.push(("SVC_URL".into(), server.base.clone().into()));
    env.push(("SVC_TOKEN".into(), token.into()));
    env
}

/// Runs a program to its good end. What it said.
async fn done(command: &mut Command) -> String {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, command.output()).await;
    let ended = ended.expect("it keeps to its time").expect("the program runs");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?}\n{said}\n{complaints}");
    said
}

#[tokio::test]
async fn a_generated_client_in_typescript_compiles_and_works() {
    let Some(tools) = tools() else { skip!("{MISSING}") };
    let world = staged();
    let server = world.serve().await;
    let env = described(&world, &server).await;
    let folder = world.root.join("typescript");
    fs::create_dir(&folder).unwrap();
    for name in ["example.ts", "tsconfig.json", "package.json"] {
        fs::copy(example("typescript").join(name), folder.join(name)).unwrap();
    }
    symlink(tools.join("typescript/node_modules"), folder.join("node_modules")).unwrap();
    let node = |args: &[&str]| {
        let mut node = Command::new("node");
        node.args(args).current_dir(&folder).env_clear().envs(env.clone());
        node
    };
    let generator = "node_modules/openapi-typescript/bin/cli.js";
    done(&mut node(&[generator, "../openapi.json", "-o", "svc.d.ts"])).await;
    done(&mut node(&["node_modules/typescript/bin/tsc"])).await;
    assert_eq!(done(&mut node(&["out/example.js"])).await, SAID);
    server.stop().await;
}

#[tokio::test]
async fn a_generated_client_in_python_compiles_and_works() {
    let Some(tools) = tools() else { skip!("{MISSING}") };
    let world = staged();
    let server = world.serve().await;
    let env = described(&world, &server).await;
    let programs = tools.join("python/bin");
    // It finds the formatter beside itself.
    let mut path = OsString::from(&programs);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let run = |name: &str, args: &[&str]| {
        let mut program = Command::new(programs.join(name));
        program.args(args).current_dir(&world.root).env_clear().envs(env.clone());
        program.env("PATH", &path).env("PYTHONPATH", "client");
        program
    };
    let generate = ["generate", "--path", "openapi.json", "--output-path", "client"];
    let mut generate = run("openapi-python-client", &generate);
    done(generate.arg("--fail-on-warning")).await;
    done(&mut run("python", &["-W", "error", "-m", "compileall", "-q", "client"])).await;
    let example = example("python").join("example.py");
    let said = done(&mut run("python", &[example.to_str().unwrap()])).await;
    assert_eq!(said, SAID);
    server.stop().await;
}

#[tokio::test]
async fn a_generated_client_in_rust_compiles_and_works() {
    let Some(tools) = tools() else { skip!("{MISSING}") };
    let world = staged();
    let server = world.serve().await;
    let env = described(&world, &server).await;
    let target = tools.join("rust");
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--locked", "--offline"]).current_dir(example("rust"));
    build.env_clear();
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"] {
        build.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    // As .ci/clients built the dependencies.
    build.env("CARGO_TARGET_DIR", &target);
    build.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    build.env("SVC_OPENAPI", world.root.join("openapi.json"));
    done(&mut build).await;
    let mut example = Command::new(target.join("debug/svc-example"));
    assert_eq!(done(example.env_clear().envs(env)).await, SAID);
    server.stop().await;
}
