//! Plugins and marketplaces, through the agent's own commands.

use crate::config_write::{entries, get, open, send, target};
use crate::harness::{Client, Reply, World};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// A marketplace in a directory, with one plugin.
fn marketplace(world: &World) -> PathBuf {
    let directory = world.root.join("market");
    fs::create_dir_all(directory.join(".claude-plugin")).unwrap();
    let index = json!({ "name": "market", "plugins": [{ "name": "one", "version": "1.0" }] });
    fs::write(directory.join(".claude-plugin/marketplace.json"), index.to_string()).unwrap();
    directory
}

async fn action(client: &Client, surface: &str, scope: &str, more: Value) -> Reply {
    let mut body = target(scope);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send(client, Method::POST, &format!("{surface}/action"), &body).await
}

/// The arguments of every command for plugins that changed something.
fn changes(world: &World) -> Vec<Vec<String>> {
    let words = |call: &Value| -> Vec<String> {
        call["argv"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| arg.as_str().unwrap().to_owned())
            .collect()
    };
    let calls = world.calls().iter().map(words).collect::<Vec<_>>();
    let is_change = |call: &Vec<String>| {
        call[0] == "plugin" && !call.iter().any(|word| word == "list" || word == "details")
    };
    calls.into_iter().filter(is_change).collect()
}

#[tokio::test]
async fn a_plugin_is_installed_switched_and_removed_by_the_agent() {
    let world = open();
    world.repository("app");
    let source = marketplace(&world);
    let server = world.serve().await;
    let client = &server.client;
    for scope in ["project", "local", "user"] {
        let add = json!({ "op": "add", "source": source });
        let added = action(client, "marketplaces", scope, add).await.expect(200).json();
        assert!(added["output"].as_str().unwrap().contains("market"), "{added}");
        let listed = get(client, "marketplaces", scope).await;
        assert_eq!(listed["marketplaces"][0]["name"], "market", "{scope}");
        let declared = get(client, "marketplaces/declared", scope).await;
        assert!(declared["marketplaces"]["market"].is_object(), "{scope}: {declared}");
        let install = json!({ "op": "install", "plugin": "one@market" });
        let refused = action(client, "plugins", scope, install.clone()).await;
        assert_eq!(refused.refused(400), "confirm_required", "{scope}");
        let mut confirmed = install.clone();
        confirmed["confirm_plugin"] = json!("one@market");
        let done = action(client, "plugins", scope, confirmed).await.expect(200).json();
        assert_eq!((&done["op"], &done["subject"]), (&json!("install"), &json!("one@market")));
        let enabled = get(client, "plugins/enabled", scope).await;
        assert_eq!(enabled["enabled"], json!({ "one@market": true }), "{scope}");
        let off = json!({ "op": "disable", "plugin": "one@market" });
        action(client, "plugins", scope, off.clone()).await.expect(200);
        let again = action(client, "plugins", scope, off).await;
        assert_eq!(again.refused(400), "agent_failed", "{scope}");
        let listed = get(client, "plugins", scope).await;
        let is_it = |one: &&Value| one["id"] == "one@market" && one["scope"] == scope;
        let one = listed["plugins"].as_array().unwrap().iter().find(is_it).unwrap();
        assert_eq!(one["enabled"], false, "{scope}");
        let details = get(client, "plugins/one@market", scope).await;
        assert!(details["details"].as_str().unwrap().contains("Component inventory"));
        let gone = json!({
            "op": "uninstall", "plugin": "one@market", "prune": true, "keep_data": true
        });
        action(client, "plugins", scope, gone.clone()).await.expect(200);
        let again = action(client, "plugins", scope, gone).await;
        assert_eq!(again.refused(404), "not_found", "{scope}");
        let remove = json!({ "op": "remove", "name": "market" });
        action(client, "marketplaces", scope, remove).await.expect(200);
        let told: Vec<String> = entries(&world)
            .iter()
            .filter(|entry| entry["scope"] == scope)
            .map(|entry| format!("{} {}", entry["surface"], entry["action"]).replace('"', ""))
            .collect();
        assert_eq!(
            told,
            [
                "marketplaces add",
                "plugins install",
                "plugins disable",
                "plugins disable",
                "plugins disable-failed",
                "plugins uninstall",
                "plugins uninstall",
                "plugins uninstall-failed",
                "marketplaces remove",
            ]
        );
    }
    let argv = changes(&world);
    let install = ["plugin", "install", "one@market", "--scope", "project"];
    assert_eq!(argv[1], install);
    let uninstall =
        ["plugin", "uninstall", "one@market", "--scope", "project", "--keep-data", "--prune", "-y"];
    assert_eq!(argv[4], uninstall);
    // The file of one user is kept out of git before the agent makes it.
    let ignored = fs::read_to_string(world.projects.join("app/.gitignore")).unwrap();
    assert_eq!(ignored, ".claude/settings.local.json\n");
}

#[tokio::test]
async fn h29_h35_no_value_of_a_plugin_is_an_option_or_a_secret() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    for plugin in ["-y", "--scope=user", "a b", "a@b@c", "", "$(touch x)"] {
        let body = json!({ "op": "enable", "plugin": plugin });
        let refused = action(client, "plugins", "project", body).await;
        assert_eq!(refused.refused(422), "invalid_value", "{plugin}");
        let body = json!({ "op": "remove", "name": plugin });
        let refused = action(client, "marketplaces", "project", body).await;
        assert_eq!(refused.refused(422), "invalid_value", "{plugin}");
    }
    for source in ["-o/r", "", "o/r\n", "https://user:swordfish@host.example/x"] {
        let body = json!({ "op": "add", "source": source });
        let refused = action(client, "marketplaces", "project", body).await;
        assert_eq!(refused.refused(422), "invalid_value", "{source}");
    }
    for odd in [
        json!({ "op": "odd", "plugin": "a" }),
        json!({ "op": "enable", "plugin": "a", "prune": "yes" }),
        json!({ "op": "enable", "plugin": "a", "prune": true }),
        json!({ "op": "enable" }),
    ] {
        let refused = action(client, "plugins", "project", odd.clone()).await;
        assert_eq!(refused.status, 422, "{odd}");
    }
    assert_eq!(changes(&world), Vec::<Vec<String>>::new());
    assert!(entries(&world).iter().all(|entry| entry["surface"] != "plugins"));
}

#[tokio::test]
async fn h92_the_agent_is_run_only_in_a_trusted_project_and_after_its_entry() {
    let world = open();
    world.untrusted("app");
    let server = world.serve().await;
    let client = &server.client;
    let off = json!({ "op": "disable", "plugin": "one@market" });
    let refused = action(client, "plugins", "project", off.clone()).await;
    assert_eq!(refused.refused(403), "not_trusted");
    let list = client.get("/api/config-write/plugins?project=app").await;
    assert_eq!(list.refused(403), "not_trusted");
    // What only reads a file is shown.
    assert_eq!(get(client, "plugins/enabled", "project").await["enabled"], json!({}));
    let log = world.state.join("config_audit.log");
    let _ = fs::remove_file(&log);
    fs::create_dir(&log).unwrap();
    let refused = action(client, "plugins", "user", off).await;
    assert_eq!(refused.refused(503), "busy");
    assert_eq!(changes(&world), Vec::<Vec<String>>::new());
}
