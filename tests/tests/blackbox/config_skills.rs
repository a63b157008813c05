//! Skills of a project and of the user, with their files.

use crate::config_write::{entries, open, send, target};
use crate::harness::{Client, Reply, World};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const MAIN: &str = "---\nname: deploy\ndescription: Deploys.\n---\nCall scripts/run.sh.\n";
const PHRASE: &str = "I HAVE REVIEWED THESE SCRIPTS";

fn directory(world: &World, scope: &str) -> PathBuf {
    match scope {
        "user" => world.agent_home.join("skills"),
        _ => world.projects.join("app/.claude/skills"),
    }
}

async fn put(client: &Client, scope: &str, more: Value) -> Reply {
    let mut body = target(scope);
    body["name"] = json!("deploy");
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send(client, Method::PUT, "skills", &body).await
}

async fn delete(client: &Client, scope: &str, more: Value) -> Reply {
    let mut body = target(scope);
    body["name"] = json!("deploy");
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send(client, Method::POST, "skills/delete", &body).await
}

async fn read(client: &Client, scope: &str, relative: &str) -> Reply {
    let at = "/api/config-write/skills/file?project=app&name=deploy";
    client.get(&format!("{at}&scope={scope}&relative={relative}")).await
}

async fn listed(client: &Client, scope: &str) -> Value {
    let path = format!("/api/config-write/skills?project=app&scope={scope}");
    client.get(&path).await.expect(200).json()["skills"].clone()
}

#[tokio::test]
async fn a_skill_is_made_read_changed_removed_and_put_back() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    for scope in ["project", "user"] {
        assert_eq!(read(client, scope, "SKILL.md").await.expect(200).json()["exists"], false);
        let files = json!({ "files": { "SKILL.md": MAIN, "scripts/run.sh": "echo one\n" } });
        let refused = put(client, scope, files.clone()).await;
        assert_eq!(refused.refused(400), "confirm_required", "{scope}");
        assert!(!directory(&world, scope).join("deploy").exists());
        let mut reviewed = files.clone();
        reviewed["confirm_scripts"] = json!(PHRASE);
        let saved = put(client, scope, reviewed).await.expect(200).json();
        let skill = directory(&world, scope).join("deploy");
        assert_eq!(fs::read_to_string(skill.join("scripts/run.sh")).unwrap(), "echo one\n");
        let entry = entries(&world).pop().unwrap();
        assert_eq!((&entry["surface"], &entry["action"]), (&json!("skills"), &json!("create")));
        assert_eq!(entry["keys"], json!(["SKILL.md", "scripts/run.sh"]));
        let one = listed(client, scope).await[0].clone();
        assert_eq!(one["files"], json!(["SKILL.md", "scripts/run.sh"]));
        assert_eq!((&one["has_skill_md"], &one["description"]), (&json!(true), &json!("Deploys.")));

        // SKILL.md alone needs no phrase, but the hash of what was read.
        let next = MAIN.replace("Call", "Run");
        let change = json!({ "files": { "SKILL.md": next } });
        assert_eq!(put(client, scope, change.clone()).await.refused(409), "stale");
        let mut based = change;
        based["hash"] = saved["hashes"]["SKILL.md"].clone();
        put(client, scope, based).await.expect(200);
        let now = read(client, scope, "SKILL.md").await.expect(200).json();
        assert_eq!(now["content"], next);

        let stale = delete(client, scope, json!({ "hash": saved["hashes"]["SKILL.md"] })).await;
        assert_eq!(stale.refused(409), "stale");
        let gone = delete(client, scope, json!({ "hash": now["hash"] })).await.expect(200).json();
        assert_eq!((&gone["name"], &gone["existed"]), (&json!("deploy"), &json!(true)));
        assert!(!skill.exists(), "{scope}");
        let again = delete(client, scope, json!({})).await.expect(200).json();
        assert_eq!(again["existed"], false);
        for (relative, text) in [("SKILL.md", next.as_str()), ("scripts/run.sh", "echo one\n")] {
            let copies = format!(
                "/api/config-write/copies?surface=skills&name=deploy&relative={relative}\
                 &scope={scope}&project=app"
            );
            let copies = client.get(&copies).await.expect(200).json();
            let mut undo = target(scope);
            undo["surface"] = json!("skills");
            undo["name"] = json!("deploy");
            undo["relative"] = json!(relative);
            undo["copy"] = copies["copies"][0]["id"].clone();
            send(client, Method::POST, "copies/restore", &undo).await.expect(200);
            assert_eq!(fs::read_to_string(skill.join(relative)).unwrap(), text, "{scope}");
        }
    }
    let local = client.get("/api/config-write/skills?scope=local&project=app").await;
    assert_eq!(local.refused(422), "invalid_value");
}

#[tokio::test]
async fn secrets_of_a_skill_are_masked_both_ways() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let secret = format!("sk-ant-api03-{}", "a1B2c3D4".repeat(6));
    let text = format!("{MAIN}Key {secret}.\n");
    put(&server.client, "project", json!({ "files": { "SKILL.md": text } })).await.expect(200);
    let shown = read(&server.client, "project", "SKILL.md").await.expect(200).json();
    let content = shown["content"].as_str().unwrap();
    assert!(!content.contains(&secret), "{content}");
    let next =
        json!({ "files": { "SKILL.md": format!("{content}More.\n") }, "hash": shown["hash"] });
    put(&server.client, "project", next).await.expect(200);
    let path = directory(&world, "project").join("deploy/SKILL.md");
    assert_eq!(fs::read_to_string(path).unwrap(), format!("{text}More.\n"));
}

#[tokio::test]
async fn h39_a_skill_that_leads_elsewhere_or_is_no_plain_file_stays() {
    let world = open();
    world.project("app");
    let away = world.root.join("away");
    fs::create_dir(&away).unwrap();
    fs::write(away.join("SKILL.md"), MAIN).unwrap();
    let server = world.serve().await;
    let client = &server.client;
    for scope in ["project", "user"] {
        let skills = directory(&world, scope);
        let skill = skills.join("deploy");
        let path = skill.join("SKILL.md");
        let all = async |status: u16, code: &str, what: &str| {
            assert_eq!(read(client, scope, "SKILL.md").await.refused(status), code, "{what}");
            let files = json!({ "files": { "SKILL.md": "mine" } });
            assert_eq!(put(client, scope, files).await.refused(status), code, "{what}");
            assert_eq!(delete(client, scope, json!({})).await.refused(status), code, "{what}");
            assert_eq!(fs::read_to_string(away.join("SKILL.md")).unwrap(), MAIN, "{what}");
        };
        // The skill itself is a link: it belongs to somebody else.
        fs::create_dir_all(&skills).unwrap();
        for to in [away.clone(), away.join("dangling")] {
            symlink(to, &skill).unwrap();
            all(403, "read_only", "a linked skill").await;
            let one = listed(client, scope).await[0].clone();
            assert_eq!((&one["editable"], &one["files"]), (&json!(false), &json!([])));
            fs::remove_file(&skill).unwrap();
        }
        fs::create_dir(&skill).unwrap();
        symlink(away.join("SKILL.md"), &path).unwrap();
        all(400, "path_escape", "a linked file").await;
        assert!(listed(client, scope).await[0]["files_error"].is_string());
        fs::remove_file(&path).unwrap();
        symlink(away.join("dangling"), &path).unwrap();
        all(400, "path_escape", "a dangling link").await;
        assert!(!away.join("dangling").exists());
        fs::remove_file(&path).unwrap();
        fs::hard_link(away.join("SKILL.md"), &path).unwrap();
        all(400, "path_escape", "a second name").await;
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        all(400, "path_escape", "a pipe").await;
        fs::remove_file(&path).unwrap();
        fs::write(&path, vec![b'x'; 64 * 1024 + 1]).unwrap();
        all(413, "too_large", "a large file").await;
        fs::remove_file(&path).unwrap();
        // A directory on the way leads out.
        symlink(&away, skill.join("scripts")).unwrap();
        let odd = json!({ "files": { "scripts/x": "1" }, "confirm_scripts": PHRASE });
        assert_eq!(put(client, scope, odd).await.refused(400), "path_escape");
        fs::remove_file(skill.join("scripts")).unwrap();
        fs::remove_dir(&skill).unwrap();
        fs::remove_dir(&skills).unwrap();
        symlink(&away, &skills).unwrap();
        let files = json!({ "files": { "SKILL.md": "mine" } });
        assert_eq!(put(client, scope, files).await.refused(400), "path_escape");
        fs::remove_file(&skills).unwrap();
    }
    let left: Vec<_> = fs::read_dir(&away).unwrap().flatten().map(|it| it.file_name()).collect();
    assert_eq!(left, ["SKILL.md"]);
}

#[tokio::test]
async fn h37_h39_files_of_a_skill_have_plain_names() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    for odd in ["../x", "/etc/x", "a//b", ".git/hooks/x", "a\\b", "a/../../b", "x\n", ""] {
        let files = json!({ "files": { odd: "1" }, "confirm_scripts": PHRASE });
        assert_eq!(put(client, "project", files).await.refused(422), "invalid_value", "{odd:?}");
    }
    for odd in ["../x", "-x", ".x", "a/b", ""] {
        let files = json!({ "name": odd, "files": { "SKILL.md": MAIN } });
        assert_eq!(put(client, "project", files).await.refused(422), "invalid_value", "{odd:?}");
        let removed = delete(client, "project", json!({ "name": odd })).await;
        assert_eq!(removed.refused(422), "invalid_value", "{odd:?}");
    }
    let broken = json!({ "files": { "SKILL.md": "---\nname: [x\n---\n" } });
    assert_eq!(put(client, "project", broken).await.refused(422), "invalid_value");
    assert!(!directory(&world, "project").exists());
}

#[tokio::test]
async fn h120_no_skill_grows_beyond_its_limits() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    let write = async |files: Value, hashes: Value| {
        let body = json!({ "files": files, "hashes": hashes, "confirm_scripts": PHRASE });
        put(client, "project", body).await
    };
    for files in [
        json!({ "SKILL.md": "x".repeat(64 * 1024 + 1) }),
        json!({ "SKILL.md": MAIN, "big": "x".repeat(256 * 1024 + 1) }),
    ] {
        assert_eq!(write(files, json!({})).await.refused(413), "too_large");
    }
    let many: serde_json::Map<String, Value> =
        (0..501).map(|n| (format!("f{n}"), json!(""))).collect();
    assert_eq!(write(many.into(), json!({})).await.refused(422), "invalid_value");
    let deep = ["a"; 9].join("/");
    assert_eq!(write(json!({ deep: "" }), json!({})).await.refused(422), "invalid_value");
    assert!(!directory(&world, "project").exists());
    // One after the other they come together: what is there counts as well.
    let part = "x".repeat(256 * 1024);
    for n in 0..8 {
        write(json!({ format!("f{n}"): part }), json!({})).await.expect(200);
    }
    assert_eq!(write(json!({ "one-more": "x" }), json!({})).await.refused(413), "too_large");
    let skill = directory(&world, "project").join("deploy");
    assert_eq!(fs::read_dir(&skill).unwrap().count(), 8);
    // A directory that somebody filled by other means is listed up to a bound, and left alone.
    for n in 0..600 {
        fs::write(skill.join(format!("g{n}")), "").unwrap();
    }
    let one = listed(client, "project").await[0].clone();
    assert!(one["files"].as_array().unwrap().len() <= 501);
    assert!(one["files_error"].as_str().unwrap().contains("500"), "{one}");
    assert_eq!(delete(client, "project", json!({})).await.refused(400), "path_escape");
    assert_eq!(fs::read_dir(&skill).unwrap().count(), 608);
}

#[tokio::test]
async fn h92_without_an_entry_no_skill_is_written_or_removed() {
    let world = open();
    world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    let files = json!({ "files": { "SKILL.md": MAIN } });
    put(client, "project", files.clone()).await.expect(200);
    let log = world.state.join("config_audit.log");
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    assert_eq!(delete(client, "project", json!({})).await.refused(503), "busy");
    let mut other = files;
    other["name"] = json!("other");
    assert_eq!(put(client, "project", other).await.refused(503), "busy");
    let left: Vec<_> = fs::read_dir(directory(&world, "project"))
        .unwrap()
        .flatten()
        .map(|it| it.file_name())
        .collect();
    assert_eq!(left, ["deploy"]);
    assert_eq!(
        fs::read_to_string(directory(&world, "project").join("deploy/SKILL.md")).unwrap(),
        MAIN
    );
}

#[tokio::test]
async fn the_overview_counts_what_is_there_and_marks_what_cannot_be_read() {
    let world = open();
    let project = world.project("app");
    let server = world.serve().await;
    let client = &server.client;
    put(client, "project", json!({ "files": { "SKILL.md": MAIN } })).await.expect(200);
    fs::write(project.join("CLAUDE.md"), "Be brief.").unwrap();
    let rules = json!({
        "model": "opus", "permissions": { "allow": ["Read", "Grep"], "defaultMode": "plan" },
        "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "true" }] }] },
    });
    fs::write(project.join(".claude/settings.json"), rules.to_string()).unwrap();
    fs::write(project.join(".claude/settings.local.json"), "{ odd").unwrap();
    let path = "/api/config-write/overview?project=app";
    let parts = client.get(path).await.expect(200).json()["parts"].clone();
    for (surface, scope, count) in [
        ("claude-md", "project", json!(1)),
        ("claude-md", "local", json!(0)),
        ("settings", "project", json!(1)),
        ("permissions", "project", json!(3)),
        ("hooks", "project", json!(1)),
        ("hooks", "local", Value::Null),
        ("skills", "project", json!(1)),
        ("skills", "user", json!(0)),
        ("subagents", "project", json!(0)),
        ("approvals", "project", json!(0)),
        ("mcp", "user", json!(0)),
    ] {
        assert_eq!(parts[surface][scope], count, "{surface} {scope}: {parts}");
    }
    assert!(parts["approvals"].get("user").is_none() && parts["subagents"].get("local").is_none());
}
