//! The agent's own configuration, read and changed in its scopes.

use crate::harness::{Client, Reply, World};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

pub(crate) const MASK: &str = "********";

pub(crate) fn open() -> World {
    World::with(json!({ "config_write": { "enabled": true, "allow_user_scope": true } }))
}

pub(crate) async fn send(client: &Client, method: Method, surface: &str, body: &Value) -> Reply {
    let path = format!("/api/config-write/{surface}");
    client.send(client.request(method, &path).json(body)).await
}

/// Writes a surface with the confirmation of its scope.
pub(crate) async fn put(client: &Client, surface: &str, scope: &str, more: Value) -> Reply {
    let mut body = target(scope);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send(client, Method::PUT, surface, &body).await
}

pub(crate) fn target(scope: &str) -> Value {
    match scope {
        "user" => json!({ "scope": "user", "confirm": "USER SCOPE" }),
        "local" => json!({ "scope": "local", "project": "app", "confirm": "app (local)" }),
        _ => json!({ "project": "app", "confirm": "app" }),
    }
}

pub(crate) async fn get(client: &Client, surface: &str, scope: &str) -> Value {
    let path = format!("/api/config-write/{surface}?scope={scope}&project=app");
    client.get(&path).await.expect(200).json()
}

fn file(world: &World, surface: &str, scope: &str) -> PathBuf {
    let app = world.projects.join("app");
    match (surface, scope) {
        ("claude-md", "user") => world.agent_home.join("CLAUDE.md"),
        ("claude-md", "local") => app.join("CLAUDE.local.md"),
        ("claude-md", _) => app.join("CLAUDE.md"),
        ("mcp", "project") => app.join(".mcp.json"),
        (_, "user") => world.agent_home.join("settings.json"),
        (_, "local") => app.join(".claude/settings.local.json"),
        (_, _) => app.join(".claude/settings.json"),
    }
}

/// What each surface is written with.
fn sample(surface: &str) -> Value {
    let hook = json!([{ "hooks": [{ "type": "command", "command": "true" }] }]);
    match surface {
        "claude-md" => json!({ "content": "Be brief." }),
        "settings" => json!({ "settings": { "model": "opus" } }),
        "permissions" => json!({ "permissions": { "allow": ["Read"] } }),
        "hooks" => json!({ "hooks": { "Stop": hook } }),
        "mcp" => json!({ "servers": { "one": { "command": "npx" } } }),
        _ => json!({ "overrides": { "x": "off" } }),
    }
}

/// Each surface that is one file, with its scopes.
fn surfaces() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = ["claude-md", "settings", "permissions", "hooks", "skills/overrides"];
    let scopes = ["project", "local", "user"];
    let each = all.into_iter().flat_map(move |one| scopes.map(|scope| (one, scope)));
    each.chain([("mcp", "project")])
}

pub(crate) fn entries(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.state.join("config_audit.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn every_surface_is_made_changed_and_in_the_audit_log() {
    let world = open();
    world.repository("app");
    let server = world.serve().await;
    for (surface, scope) in surfaces() {
        let path = file(&world, surface, scope);
        let _ = fs::remove_file(&path);
        let none = get(&server.client, surface, scope).await;
        assert_eq!((&none["exists"], &none["scope"]), (&json!(false), &json!(scope)), "{surface}");
        let saved = put(&server.client, surface, scope, sample(surface)).await.expect(200).json();
        assert_eq!(saved["ok"], true);
        let now = get(&server.client, surface, scope).await;
        assert_eq!((&now["exists"], &now["hash"]), (&json!(true), &saved["hash"]), "{surface}");
        for (member, value) in sample(surface).as_object().unwrap() {
            assert_eq!(&now[member], value, "{surface} {scope}");
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077 == 0, scope != "project", "{surface} {scope}: {mode:o}");
        let entry = entries(&world).pop().unwrap();
        assert_eq!(
            (&entry["scope"], &entry["action"]),
            (&json!(scope), &json!("create")),
            "{surface}"
        );
        // Based on nothing, or on something else, nothing is overwritten.
        for hash in [Value::Null, json!("00")] {
            let mut late = sample(surface);
            late["hash"] = hash;
            let refused = put(&server.client, surface, scope, late).await;
            assert_eq!(refused.refused(409), "stale", "{surface} {scope}");
        }
        // What is written already is not written again.
        let count = entries(&world).len();
        let mut same = sample(surface);
        same["hash"] = saved["hash"].clone();
        put(&server.client, surface, scope, same).await.expect(200);
        assert_eq!(entries(&world).len(), count, "{surface} {scope}");
    }
    let ignored = fs::read_to_string(world.projects.join("app/.gitignore")).unwrap();
    assert_eq!(ignored, "CLAUDE.local.md\n.claude/settings.local.json\n");
}

#[tokio::test]
async fn settings_keep_their_order_what_is_unknown_and_their_secrets() {
    let world = open();
    let path = world.project("app").join(".claude/settings.json");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let text = "{\n    \"zeta\": 1.50,\n    \"env\": { \"KEY\": \"swordfish\", \"B\": \"2\" },\n    \
                \"hooks\": { \"Later\": [ { \"new\": true } ] },\n    \"permissions\": { \
                \"allow\": [\"Read\"], \"additionalDirectories\": [\"/x\"] }\n}\n";
    fs::write(&path, text).unwrap();
    let server = world.serve().await;
    let shown = get(&server.client, "settings", "project").await;
    assert_eq!(shown["settings"]["env"], json!({ "KEY": MASK, "B": MASK }));
    assert!(!shown.to_string().contains("swordfish"));
    let mut next = shown["settings"].clone();
    next["env"]["B"] = json!("3");
    next["model"] = json!("opus");
    let change = json!({ "settings": next, "hash": shown["hash"] });
    let saved = put(&server.client, "settings", "project", change).await.expect(200).json();
    let expected = text
        .replace("\"B\": \"2\"", "\"B\": \"3\"")
        .replace("[\"/x\"] }\n}", "[\"/x\"] },\n    \"model\": \"opus\"\n}");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    let rules = json!({ "permissions": { "deny": ["Bash(rm:*)"] }, "hash": saved["hash"] });
    let saved = put(&server.client, "permissions", "project", rules).await.expect(200).json();
    let now: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(
        now["permissions"],
        json!({ "deny": ["Bash(rm:*)"], "additionalDirectories": ["/x"] })
    );
    let hooks = json!({ "hooks": {
        "Later": [{ "new": true }],
        "Stop": [{ "hooks": [{ "type": "command", "command": "notify", "timeout": 5 }] }],
    }, "hash": saved["hash"] });
    put(&server.client, "hooks", "project", hooks).await.expect(200);
    let now: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(now["hooks"]["Later"], json!([{ "new": true }]));
    assert_eq!((&now["env"]["KEY"], &now["zeta"]), (&json!("swordfish"), &json!(1.5)));
    let log = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    assert!(!log.contains("swordfish") && !log.contains("notify"), "{log}");
    let keys: Vec<Value> = entries(&world).iter().map(|entry| entry["keys"].clone()).collect();
    assert_eq!(keys, [json!(["env", "model"]), json!(["allow", "deny"]), json!(["Stop"])]);
    // What was there before each change is kept on the machine.
    let copies = fs::read_dir(world.state.join("agent_config_backups")).unwrap();
    let first = copies.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    assert!(first.into_iter().any(|copy| copy == text));
    let path = "/api/config-write/settings/effective?project=app";
    let effective = server.client.get(path).await.expect(200).json();
    let model = json!({ "value": "opus", "source": "project" });
    assert_eq!(effective["effective"]["model"], model);
    assert_eq!(effective["effective"]["env"]["value"]["KEY"], MASK);
}

#[tokio::test]
async fn servers_are_changed_where_the_agent_reads_them() {
    let world = open();
    let project = world.project("app");
    let server = world.serve().await;
    let entry = json!({ "command": "npx", "args": ["-y"], "env": { "KEY": "swordfish" } });
    let state =
        || -> Value { serde_json::from_slice(&fs::read(world.agent_config()).unwrap()).unwrap() };
    for scope in ["project", "local", "user"] {
        let mut add = target(scope);
        add["op"] = json!("add");
        add["name"] = json!("one");
        add["entry"] = entry.clone();
        let added = send(&server.client, Method::POST, "mcp/server", &add).await.expect(200);
        assert_eq!((&added.json()["op"], &added.json()["name"]), (&json!("add"), &json!("one")));
        let again = send(&server.client, Method::POST, "mcp/server", &add).await;
        assert_eq!(again.refused(409), "exists");
        let shown = get(&server.client, "mcp", scope).await;
        assert_eq!(shown["servers"]["one"]["env"]["KEY"], MASK, "{scope}");
        assert!(shown["hash"].is_string(), "{scope}");
        let mut edit = add.clone();
        edit["op"] = json!("edit");
        edit["entry"] = shown["servers"]["one"].clone();
        edit["entry"]["args"] = json!(["-y", "more"]);
        send(&server.client, Method::POST, "mcp/server", &edit).await.expect(200);
        let mut odd = edit.clone();
        odd["entry"] = json!({ "url": "https://x.example" });
        let refused = send(&server.client, Method::POST, "mcp/server", &odd).await;
        assert_eq!(refused.refused(422), "invalid_value");
    }
    let wanted = json!({ "command": "npx", "args": ["-y", "more"], "env": { "KEY": "swordfish" } });
    let own: Value = serde_json::from_slice(&fs::read(project.join(".mcp.json")).unwrap()).unwrap();
    assert_eq!(own["mcpServers"]["one"], wanted);
    let known = &state()["projects"][project.to_str().unwrap()];
    assert_eq!(
        (&known["mcpServers"]["one"], &known["hasTrustDialogAccepted"]),
        (&wanted, &json!(true))
    );
    assert_eq!(
        (&state()["mcpServers"]["one"], &state()["remoteDialogSeen"]),
        (&wanted, &json!(true))
    );
    for scope in ["project", "local", "user"] {
        let mut all =
            json!({ "servers": { "two": { "url": "https://x.example", "type": "http" } } });
        let shown = get(&server.client, "mcp", scope).await;
        all["servers"]["one"] = shown["servers"]["one"].clone();
        all["hash"] = shown["hash"].clone();
        put(&server.client, "mcp", scope, all).await.expect(200);
        let mut remove = target(scope);
        remove["op"] = json!("remove");
        remove["name"] = json!("one");
        send(&server.client, Method::POST, "mcp/server", &remove).await.expect(200);
        let gone = send(&server.client, Method::POST, "mcp/server", &remove).await;
        assert_eq!(gone.refused(404), "not_found");
        let left = get(&server.client, "mcp", scope).await["servers"].clone();
        assert_eq!(left, json!({ "two": { "url": "https://x.example", "type": "http" } }));
    }
    let log = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    assert!(!log.contains("swordfish"), "{log}");
}

#[tokio::test]
async fn a_server_that_the_agent_added_after_the_reading_is_not_deleted() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    for scope in ["user", "local"] {
        let one = json!({ "servers": { "one": { "command": "npx" } } });
        put(client, "mcp", scope, one.clone()).await.expect(200);
        let read = get(client, "mcp", scope).await;
        // The agent, or another page, adds one.
        let mut add = target(scope);
        add["op"] = json!("add");
        add["name"] = json!("late");
        add["entry"] = json!({ "command": "uvx" });
        send(client, Method::POST, "mcp/server", &add).await.expect(200);
        let mut next = one.clone();
        next["servers"]["one"]["command"] = json!("npm");
        for hash in [read["hash"].clone(), Value::Null] {
            next["hash"] = hash;
            let refused = put(client, "mcp", scope, next.clone()).await;
            assert_eq!(refused.refused(409), "stale", "{scope}");
        }
        let now = get(client, "mcp", scope).await;
        assert_eq!(now["servers"].as_object().unwrap().len(), 2, "{scope}");
        next["hash"] = now["hash"].clone();
        let saved = put(client, "mcp", scope, next.clone()).await.expect(200).json();
        let now = get(client, "mcp", scope).await;
        assert_eq!((&now["servers"], &now["hash"]), (&next["servers"], &saved["hash"]), "{scope}");
    }
}

#[tokio::test]
async fn approvals_of_a_projects_servers_are_decided_and_forgotten() {
    let world = open();
    let project = world.project("app");
    fs::create_dir(project.join(".claude")).unwrap();
    let locked = json!({ "disabledMcpjsonServers": ["held"] }).to_string();
    fs::write(project.join(".claude/settings.json"), locked).unwrap();
    let server = world.serve().await;
    let lists =
        |enabled: &[&str], disabled: &[&str]| json!({ "enabled": enabled, "disabled": disabled });
    let decided =
        put(&server.client, "mcp/approvals", "project", lists(&["a"], &["b"])).await.expect(200);
    assert_eq!(
        decided.json(),
        json!({ "project": "app", "enabled": ["a"], "disabled": ["b"], "locked": ["held"] })
    );
    for (odd, why) in [
        (lists(&["held"], &[]), "settings file"),
        (lists(&["a"], &["a"]), "`disabled`"),
        (lists(&["-x"], &[]), "name"),
    ] {
        let refused = put(&server.client, "mcp/approvals", "project", odd).await;
        assert_eq!(refused.refused(422), "invalid_value");
        assert!(refused.text().contains(why), "{}", refused.text());
    }
    let reset = "mcp/reset-project-choices";
    let done = send(&server.client, Method::POST, reset, &target("project")).await.expect(200);
    assert_eq!(done.json(), json!({ "project": "app", "ok": true }));
    let now = get(&server.client, "mcp/approvals", "project").await;
    assert_eq!((&now["enabled"], &now["disabled"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn h39_a_target_that_leads_elsewhere_or_is_no_plain_file_stays() {
    let world = open();
    world.project("app");
    let away = world.root.join("away");
    fs::create_dir(&away).unwrap();
    let server = world.serve().await;
    for (surface, scope) in surfaces() {
        let path = file(&world, surface, scope);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let what = format!("{surface} {scope}");
        let refused = async |status: u16, code: &str| {
            let url = format!("/api/config-write/{surface}?scope={scope}&project=app");
            assert_eq!(server.client.get(&url).await.refused(status), code, "{what}");
            let put = put(&server.client, surface, scope, sample(surface)).await;
            assert_eq!(put.refused(status), code, "{what}");
        };
        let kept = away.join("kept");
        fs::write(&kept, "{}").unwrap();
        symlink(&kept, &path).unwrap();
        refused(400, "path_escape").await;
        fs::remove_file(&path).unwrap();
        symlink(away.join("dangling"), &path).unwrap();
        refused(400, "path_escape").await;
        assert!(!away.join("dangling").exists(), "{what}");
        fs::remove_file(&path).unwrap();
        fs::hard_link(&kept, &path).unwrap();
        refused(400, "path_escape").await;
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        refused(400, "path_escape").await;
        fs::remove_dir(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        refused(400, "path_escape").await;
        fs::remove_file(&path).unwrap();
        fs::write(&path, vec![b' '; 1024 * 1024 + 1]).unwrap();
        refused(413, "too_large").await;
        fs::remove_file(&path).unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "{}", "{what}");
    }
    // A directory on the way that leads out.
    let directory = world.projects.join("app/.claude");
    fs::remove_dir(&directory).unwrap();
    symlink(&away, &directory).unwrap();
    let refused = put(&server.client, "settings", "project", sample("settings")).await;
    assert_eq!(refused.refused(400), "path_escape");
    assert_eq!(names(&away), ["kept"]);
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn h92_without_an_entry_in_the_audit_log_nothing_is_written() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let _ = fs::remove_file(world.state.join("config_audit.log"));
    fs::create_dir(world.state.join("config_audit.log")).unwrap();
    let before = fs::read(world.agent_config()).unwrap();
    for (surface, scope) in surfaces().chain([("mcp", "local"), ("mcp", "user")]) {
        let path = file(&world, surface, scope);
        let _ = fs::remove_file(&path);
        let refused = put(&server.client, surface, scope, sample(surface)).await;
        assert_eq!(refused.refused(503), "busy", "{surface} {scope}");
        assert!(!path.exists(), "{surface} {scope}");
    }
    assert_eq!(fs::read(world.agent_config()).unwrap(), before);
}

#[tokio::test]
async fn a_write_is_refused_before_it_is_understood() {
    let world = World::with(json!({ "config_write": { "enabled": true } }));
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    let ask = async |change: Value| {
        let mut body = json!({ "project": "app", "confirm": "app", "settings": {} });
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        send(client, Method::PUT, "settings", &body).await
    };
    assert_eq!(ask(json!({ "scope": "user" })).await.refused(404), "not_found");
    assert_eq!(ask(json!({ "scope": "odd", "confirm": "" })).await.refused(422), "invalid_value");
    for confirm in [Value::Null, json!("App"), json!("app "), json!("USER SCOPE")] {
        let refused = ask(json!({ "confirm": confirm, "settings": 5 })).await;
        assert_eq!(refused.refused(400), "confirm_required");
    }
    assert_eq!(ask(json!({ "settings": 5 })).await.refused(422), "invalid_value");
    assert_eq!(ask(json!({ "settings": { "hooks": {} } })).await.refused(422), "invalid_value");
    assert_eq!(ask(json!({ "project": 5 })).await.refused(422), "schema");
    let other = json!({ "project": "nope", "confirm": "nope" });
    assert_eq!(ask(other).await.refused(404), "unknown_project");
    let path = world.projects.join("app/.claude/settings.json");
    fs::create_dir(path.parent().unwrap()).unwrap();
    for odd in ["{", "[]", "{\"a\":1}}"] {
        fs::write(&path, odd).unwrap();
        assert_eq!(ask(json!({})).await.refused(422), "invalid_value");
        assert_eq!(fs::read_to_string(&path).unwrap(), odd);
    }
    let status = client.get("/api/config-write/status").await.expect(200).json();
    assert_eq!(status, json!({ "enabled": true, "allow_user_scope": false }));
    let features = &client.get("/api/bootstrap").await.json()["features"];
    assert_eq!(features["config_write_user_scope"], false);
}
