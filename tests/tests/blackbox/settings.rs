//! The configuration is changed by commands, by the API and by hand (H122, H123).
//!
//! Nobody's comments are lost, nobody's change is overwritten unseen, and the audit log has all.

use crate::crash_consistency::armed;
use crate::harness::{Server, World, service, service_with_fail_points, within};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use svc_skip::{NO_FAIL_POINTS, skip};
use tokio::io::AsyncWriteExt as _;

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

/// Writes the configuration of a world as a person would, with comments.
pub fn by_hand(world: &World, more: &str) {
    let text = format!(
        "# Ours.\nprojects_root: {}   # all of them\nstate_dir: {}\nport: {}\n\
         claude:\n  # the simulator\n  binary: {}\n  node_from_nvm: false\n{more}",
        world.projects.display(),
        world.state.display(),
        world.port(),
        crate::harness::simulator().display(),
    );
    write(world, &text);
}

pub fn write(world: &World, text: &str) {
    fs::write(&world.config, text).unwrap();
    fs::set_permissions(&world.config, fs::Permissions::from_mode(0o600)).unwrap();
}

pub fn text(world: &World) -> String {
    fs::read_to_string(&world.config).unwrap()
}

pub fn entries(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.state.join("config_audit.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub async fn put(server: &Server<'_>, path: &str, body: &Value) -> crate::harness::Reply {
    let request = server.client.request(Method::PUT, path).header("Origin", &server.base);
    server.client.send(request.json(body)).await
}

#[tokio::test]
async fn h123_edits_by_everybody_keep_comments_and_lose_nothing() {
    let world = World::new();
    by_hand(&world, "config_write:\n  enabled: true\n# the end\n");
    let server = world.serve().await;
    let mut told = 0;
    for round in 0..7 {
        let number = round + 3;
        world.cli(&["config", "set", "logs.keep_rotated", &number.to_string()]).await.ok();
        let read = server.client.get("/api/config").await.expect(200).json();
        assert_eq!(read["fields"]["logs.keep_rotated"], number);
        // Somebody else saves between reading and saving.
        if round % 2 == 0 {
            write(&world, &text(&world).replacen('#', "# (seen)", 1));
        }
        let edits = json!({ "restart.max_crashes": number, "claude.launch_mode": "pty" });
        let saved =
            put(&server, "/api/config", &json!({ "edits": edits, "hash": read["hash"] })).await;
        if round % 2 == 0 {
            assert_eq!(saved.refused(409), "stale");
            told += 1;
            let hash = &server.client.get("/api/config").await.json()["hash"];
            put(&server, "/api/config", &json!({ "edits": edits, "hash": hash })).await.expect(200);
        } else {
            let saved = saved.expect(200).json();
            assert_eq!(saved["restart_required"], false);
            assert_eq!(saved["changed"], json!(["restart.max_crashes"]));
        }
        write(&world, &text(&world).replace("# the end\n", "# the end\n# a line\n"));
    }
    assert_eq!(told, 4);
    let after = text(&world);
    for kept in ["Ours.", "   # all of them", "  # the simulator", "# the end", "(seen) (seen)"] {
        assert!(after.contains(kept), "{kept}: {after}");
    }
    assert_eq!(after.matches("# a line").count(), 7, "{after}");
    assert!(after.contains("launch_mode: pty") && after.contains("max_crashes: 9"), "{after}");
    world.cli(&["config", "check"]).await.ok();
    // One entry per change, with names of keys only.
    let log = entries(&world);
    assert_eq!(log.len(), 14, "{log:?}");
    assert_eq!(log[0]["surface"], "config");
    assert_eq!(log[0]["keys"], json!(["logs.keep_rotated"]));
    assert!(log[0]["actor"].as_str().unwrap().starts_with("cli:"));
    assert_eq!(log[1]["keys"], json!(["claude.launch_mode", "restart.max_crashes"]));
    assert_eq!((&log[1]["actor"], &log[1]["action"]), (&json!("admin"), &json!("update")));
    // The newest five copies are kept.
    let copies = fs::read_dir(world.config.parent().unwrap()).unwrap();
    let copies = copies.filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("svc.yml.bak-")
    });
    assert_eq!(copies.count(), 5);
    server.stop().await;
}

#[tokio::test]
async fn h123_what_would_not_be_valid_is_not_written() {
    let world = World::new();
    by_hand(&world, "config_write:\n  enabled: true\n");
    let server = world.serve().await;
    let before = text(&world);
    let hash = server.client.get("/api/config").await.expect(200).json()["hash"].clone();
    let ask = async |edits: Value| {
        put(&server, "/api/config", &json!({ "edits": edits, "hash": hash })).await
    };
    for (edits, status, word) in [
        (json!({ "restart.jitter": 7 }), 422, "restart.jitter"),
        (json!({ "restart.jitter": "half" }), 422, "restart.jitter"),
        (json!({ "restart.initial_delay_seconds": 900 }), 422, "restart"),
        (json!({ "claude.launch_mode": "x\ny: z" }), 422, "claude.launch_mode"),
        (json!({ "instance_defaults.permission_mode": "bypassPermissions" }), 422, "by hand"),
        (json!({ "host": "0.0.0.0" }), 400, "host"),
        (json!({ "clone.enabled": false }), 400, "clone.enabled"),
        (json!({ "auth.password_hash": "x", "log_format": "json" }), 400, "auth.password_hash"),
        (json!({ "nobody": 1 }), 400, "nobody"),
        (json!({ "a\nb": 1 }), 400, "a"),
    ] {
        let refused = ask(edits).await;
        refused.refused(status);
        assert!(refused.text().contains(word), "{}", refused.text());
    }
    assert_eq!(put(&server, "/api/config", &json!({ "edits": {} })).await.refused(422), "schema");
    assert_eq!(put(&server, "/api/config", &json!({ "hash": "x" })).await.refused(422), "schema");
    assert_eq!(ask(json!({})).await.expect(200).json()["restart_required"], false);
    let set = world.cli(&["config", "set", "port", "70000"]).await;
    assert_eq!(set.code, Some(2), "{}", set.stderr);
    assert!(set.stderr.contains("port"), "{}", set.stderr);
    let set = world.cli(&["config", "set", "claude.launch_mod", "pty"]).await;
    assert_eq!(set.code, Some(2));
    assert!(set.stderr.contains("did you mean claude.launch_mode"), "{}", set.stderr);
    let odd = world.cli(&["config", "set", "port", "1", "host"]).await;
    assert_eq!(odd.code, Some(2));
    assert_eq!(text(&world), before);
    assert!(entries(&world).is_empty(), "{:?}", entries(&world));
    // H92: what cannot be told of is not done.
    fs::create_dir(world.state.join("config_audit.log")).unwrap();
    assert_eq!(ask(json!({ "log_format": "json" })).await.refused(503), "busy");
    assert_eq!(text(&world), before);
    server.stop().await;
}

#[tokio::test]
async fn settings_are_shown_and_not_changed_while_the_capability_is_off() {
    let world = World::new();
    let server = world.serve().await;
    let read = server.client.get("/api/config").await.expect(200).json();
    assert_eq!(read["can_save"], false);
    let body = json!({ "edits": { "log_format": "json" }, "hash": read["hash"] });
    assert_eq!(put(&server, "/api/config", &body).await.refused(403), "capability_disabled");
    assert_eq!(server.client.get("/api/config/advanced").await.refused(404), "not_found");
    assert_eq!(put(&server, "/api/config/advanced", &body).await.refused(404), "not_found");
    assert_eq!(server.client.get("/api/bootstrap").await.json()["features"]["config_write"], false);
    server.stop().await;
}

#[tokio::test]
async fn the_second_list_needs_the_password_again_and_secrets_never_leave() {
    let world = World::new();
    let auth = format!(
        "config_write:\n  enabled: true\nauth:\n  enabled: true\n  password_required: true\n  \
         password_hash: {HASH}\nclaude_env_note: kept\nnotifications:\n  urls: [\"tgram://c4n4ry\"]\n"
    );
    by_hand(&world, &auth);
    let server = world.serve().await;
    let sign_in = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let sign_in =
        server.client.send(sign_in.json(&json!({ "password": PASSWORD }))).await.expect(200);
    let first = |reply: &crate::harness::Reply| {
        reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    };
    let session = first(&sign_in);
    let ask = async |method: Method, path: &str, cookie: &str, body: Value| {
        let request = server.client.request(method, path).header("Origin", &server.base);
        let request = request.header("Cookie", cookie);
        let request = if body.is_null() { request } else { request.json(&body) };
        server.client.send(request).await
    };
    let path = "/api/config/advanced";
    let read = ask(Method::GET, path, &session, Value::Null).await;
    assert_eq!(read.refused(403), "reauth_required");
    let proof = ask(Method::POST, "/api/reauth", &session, json!({ "password": PASSWORD })).await;
    let both = format!("{session}; {}", first(&proof.expect(200)));
    let read = ask(Method::GET, path, &both, Value::Null).await.expect(200).json();
    assert_eq!(read["fields"]["clone.allowed_schemes"], json!(["https", "ssh"]));
    assert_eq!(read["fields"].get("claude.launch_mode"), None);
    let basic = ask(Method::GET, "/api/config", &both, Value::Null).await.expect(200).json();
    for document in [&read, &basic] {
        let text = document.to_string();
        assert!(!text.contains("c4n4ry") && !text.contains(HASH), "{text}");
        let is_secret = |one: &Value| one["key"] == "auth.password_hash";
        assert!(document["file_only"].as_array().unwrap().iter().any(is_secret));
    }
    let edits = json!({ "clone.allowed_schemes": ["https"], "clone.timeout_seconds": 60 });
    let body = json!({ "edits": edits, "hash": read["hash"] });
    assert_eq!(
        ask(Method::PUT, path, &session, body.clone()).await.refused(403),
        "reauth_required"
    );
    ask(Method::PUT, path, &both, body).await.expect(200);
    let after = text(&world);
    assert!(
        after.contains("clone:\n  allowed_schemes: [https]\n  timeout_seconds: 60\n"),
        "{after}"
    );
    let log = entries(&world);
    assert_eq!(log.len(), 1);
    assert_eq!(log[0]["surface"], "config-advanced");
    assert_eq!(log[0]["keys"], json!(["clone.allowed_schemes", "clone.timeout_seconds"]));
    assert!(!fs::read_to_string(world.state.join("config_audit.log")).unwrap().contains("c4n4ry"));
    server.stop().await;
}

/// Sets a key to what stands on standard input.
async fn piped(world: &World, key: &str, value: &str) -> std::process::Output {
    let mut command = world.command(&service(), &["config", "set", key, "-"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).await.unwrap();
    within("the end", child.wait_with_output()).await.unwrap()
}

#[tokio::test]
async fn all_of_standard_input_is_the_value() {
    let world = World::new();
    by_hand(&world, "");
    let urls = "https://one.example/a\nhttps://two.example/b\n";
    let done = piped(&world, "webhooks.urls", urls).await;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let file = text(&world);
    assert!(file.contains("one.example/a") && file.contains("two.example/b"), "{file}");
    let refused = piped(
        &world,
        "auth.api_token_hash",
        &format!("{}\nand another\n", "0123456789abcdef".repeat(4)),
    )
    .await;
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    let long = format!("https://one.example/{}", "a".repeat(70_000));
    let refused = piped(&world, "webhooks.urls", &long).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("longer than") && said.contains("webhooks.urls"), "{said}");
    assert_eq!(text(&world), file, "nothing was written");
}

#[tokio::test]
async fn commands_read_and_write_single_keys() {
    let world = World::new();
    by_hand(&world, "");
    let set = ["config", "set", "restart.policy", "on-crash", "claude.env.TOKEN", "x"];
    let refused = world.cli(&set).await;
    assert_eq!(refused.code, Some(2), "a secret is no argument");
    assert!(refused.stderr.contains("pipe it in"), "{}", refused.stderr);
    let hash = "0123456789abcdef".repeat(4);
    let done = piped(&world, "auth.api_token_hash", &format!("{hash}\n")).await;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(!String::from_utf8_lossy(&done.stdout).contains(&hash));
    assert!(text(&world).contains(&hash));
    let got = world.cli(&["config", "get", "auth.api_token_hash"]).await.ok();
    assert_eq!(got.stdout.trim(), "********");

    let done =
        world.cli(&["config", "set", "restart.policy", "on-crash", "--json"]).await.ok().json();
    assert_eq!(done["changed"], json!(["restart.policy"]));
    assert_eq!(done["restart_required"], false, "no service runs");
    let again = world.cli(&["config", "set", "restart.policy", "on-crash"]).await.ok();
    assert_eq!(again.stdout, "restart.policy: unchanged\n");
    let got = world.cli(&["config", "get", "restart.policy", "--json"]).await.ok().json();
    assert_eq!(got["value"], "on-crash");
    assert!(got["source"].as_str().unwrap().starts_with("file:"));
    let over = [("SVC_RESTART_POLICY", "never")];
    let told = world.cli_with(&["config", "set", "restart.policy", "always"], &over).await.ok();
    assert!(told.stderr.contains("SVC_RESTART_POLICY decides it"), "{}", told.stderr);
    world.cli(&["config", "set", "projects.api.restart", "always"]).await.ok();
    assert!(text(&world).contains("projects:\n  api:\n    restart: always\n"), "{}", text(&world));
    let unknown = world.cli(&["config", "get", "restart.polcy"]).await;
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("did you mean restart.policy"), "{}", unknown.stderr);
    // A link stays a link, and the mode stays.
    let target = world.config.with_file_name("real.yml");
    fs::rename(&world.config, &target).unwrap();
    symlink(&target, &world.config).unwrap();
    world.cli(&["config", "set", "restart.max_crashes", "4"]).await.ok();
    assert!(fs::symlink_metadata(&world.config).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("max_crashes: 4"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    world.cli(&["config", "check"]).await.ok();
}

#[tokio::test]
async fn old_names_are_reconciled_only_after_a_yes() {
    let world = World::new();
    by_hand(&world, "  resume_mode: pty  # old\nusage:\n  show_cost: false\n");
    let before = text(&world);
    let aborted = world.cli(&["config", "reconcile"]).await;
    assert_eq!(aborted.code, Some(1), "the end of the input is a no");
    assert!(aborted.stderr.contains("aborted"), "{}", aborted.stderr);
    world.cli(&["config", "reconcile", "--dry-run"]).await.ok();
    assert_eq!(text(&world), before);
    world.cli(&["config", "reconcile", "--yes"]).await.ok();
    let after = text(&world);
    assert!(after.contains("  launch_mode: pty  # old\n"), "{after}");
    assert!(after.contains("usage:\n  mode: \"off\"\n"), "{after}");
    assert_eq!(entries(&world)[0]["surface"], "config-reconcile");
    let none = world.cli(&["config", "reconcile"]).await.ok();
    assert!(none.stderr.contains("no old names"), "{}", none.stderr);
    assert_eq!(entries(&world).len(), 1);
}

#[tokio::test]
async fn h98_a_change_that_was_announced_and_not_made_can_be_made_again() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    let world = World::new();
    by_hand(&world, "config_write:\n  enabled: true\n");
    let before = text(&world);
    let mut server = armed(&world, &program, "config.before_write").await;
    let read = server.client.get("/api/config").await.expect(200).json();
    let body = json!({ "edits": { "restart.max_crashes": 9 }, "hash": read["hash"] });
    let request = server.client.request(Method::PUT, "/api/config").header("Origin", &server.base);
    assert!(server.client.try_send(request.json(&body)).await.is_err());
    server.ended().await;
    assert_eq!(text(&world), before, "nothing is half written");
    assert_eq!(entries(&world).len(), 1, "the log has what was about to happen");

    let server = world.serve().await;
    put(&server, "/api/config", &body).await.expect(200);
    assert!(text(&world).contains("max_crashes: 9"));
    assert_eq!(entries(&world).len(), 2);
}

#[tokio::test]
async fn the_name_of_an_installation_is_in_the_list_of_processes() {
    let world = World::with(json!({ "instance_name": "home" }));
    let server = world.serve().await;
    let shown = std::fs::read_to_string(format!("/proc/{}/comm", server.pid)).unwrap();
    assert_eq!(shown.trim_end(), "svc[home]");
}
