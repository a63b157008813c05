//! Settings take effect while the service runs.
//!
//! By the API, by commands, and by a signal.

use crate::harness::{Dice, Reply, Server, World, within};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const MARKS: usize = 12;

/// A file as a person keeps it, with comments and text of its own.
fn by_hand(world: &World) {
    let mut text = format!(
        "# Ours.\nprojects_root: {}   # all of them\nstate_dir: {}\nport: {}\n\
         claude:\n  # the simulator\n  binary: {}\n  node_from_nvm: false\n\
         config_write: {{enabled: true}}   # for the page\nx-notes: [kept, 'as it is']\n",
        world.projects.display(),
        world.state.display(),
        world.port(),
        crate::harness::simulator().display(),
    );
    for mark in 0..MARKS {
        text.push_str(&format!("# mark {mark}\n"));
    }
    write(world, &text);
}

fn write(world: &World, text: &str) {
    fs::write(&world.config, text).unwrap();
    fs::set_permissions(&world.config, fs::Permissions::from_mode(0o600)).unwrap();
}

fn text(world: &World) -> String {
    fs::read_to_string(&world.config).unwrap()
}

fn audited(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.state.join("config_audit.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn put(server: &Server<'_>, edits: &Value, hash: &Value) -> Reply {
    let request = server.client.request(Method::PUT, "/api/config").header("Origin", &server.base);
    server.client.send(request.json(&json!({ "edits": edits, "hash": hash }))).await
}

async fn settings(server: &Server<'_>) -> Value {
    server.client.get("/api/config").await.expect(200).json()
}

fn hang_up(server: &Server<'_>) {
    kill_process(Pid::from_raw(server.pid).unwrap(), Signal::HUP).unwrap();
}

async fn bootstrap(server: &Server<'_>) -> Value {
    server.client.get("/api/bootstrap").await.expect(200).json()
}

#[tokio::test]
async fn a_saved_setting_applies_at_once_and_the_answer_says_what_waits() {
    let world = World::new();
    by_hand(&world);
    world.project("one");
    world.project("two");
    let server = world.serve().await;
    let read = settings(&server).await;
    assert_eq!(read["specs"]["instance_defaults.max_bridges"]["applies"], "live");
    assert_eq!(read["specs"]["hosted.enabled"]["applies"], "restart");

    // The next launch knows the cap.
    server.client.run("one").await;
    let edits = json!({ "instance_defaults.max_bridges": 1, "claude.launch_mode": "pty" });
    let saved = put(&server, &edits, &read["hash"]).await.expect(200).json();
    assert_eq!(saved["restart_required"], false, "{saved}");
    assert_eq!(server.client.launch("two").await.refused(409), "capacity");
    assert_eq!(bootstrap(&server).await["defaults"]["resume_mode"], "pty");
    let read = settings(&server).await;
    assert_eq!(read["specs"]["claude.launch_mode"]["pending"], false);
    assert_eq!(read["specs"]["claude.launch_mode"]["source"], "file");

    // One key of a save waits: the answer says so, and the others apply all the same.
    let edits = json!({ "hosted.enabled": true, "instance_defaults.max_bridges": 2 });
    let saved = put(&server, &edits, &read["hash"]).await.expect(200).json();
    assert_eq!(saved["restart_required"], true, "{saved}");
    assert_eq!(bootstrap(&server).await["features"]["hosted"], false);
    server.client.launch_with(json!({ "project": "two", "mode": "standard" })).await.expect(201);
    let read = settings(&server).await;
    assert_eq!(read["specs"]["hosted.enabled"]["pending"], true);
    assert_eq!(read["specs"]["instance_defaults.max_bridges"]["pending"], false);

    // A command reaches the running service.
    let set = world.cli(&["config", "set", "claude.launch_mode", "standard"]).await.ok();
    assert!(set.stderr.contains("the running service uses this now"), "{}", set.stderr);
    assert_eq!(bootstrap(&server).await["defaults"]["resume_mode"], "standard");
    let set = ["config", "set", "log_level", "debug", "usage.mode", "off", "--json"];
    let set = world.cli(&set).await.ok().json();
    assert_eq!(set["restart_required"], true);
    assert_eq!(bootstrap(&server).await["usage"]["mode"], "off");
    server.stop().await;
    let set = world.cli(&["config", "set", "usage.mode", "cost", "--json"]).await.ok().json();
    assert_eq!(set["restart_required"], false, "nothing runs that could be restarted");
}

#[tokio::test]
async fn a_signal_applies_an_edit_by_hand_and_a_bad_file_changes_nothing() {
    let world = World::new();
    by_hand(&world);
    let server = world.serve().await;
    let good = text(&world);
    write(&world, &format!("{good}restart: {{max_crashes: 9}}\nusage:\n  mode: tokens\n"));
    hang_up(&server);
    let said = server.says("the configuration applies now: ").await;
    assert!(said.contains("restart.max_crashes") && said.contains("usage.mode"), "{said}");
    assert_eq!(bootstrap(&server).await["usage"]["mode"], "tokens");
    let entries = audited(&world);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!((&entries[0]["actor"], &entries[0]["action"]), (&json!("file"), &json!("apply")));
    assert_eq!(entries[0]["keys"], json!(["restart.max_crashes", "usage.mode"]));

    for (bad, reason) in [
        ("usage: {mode: sometimes}\n", "usage.mode: must be one of"),
        ("usage: {mode: off}\nrestart: {jitter: 7}\n", "restart.jitter: must be between"),
        ("usage: [\n", "is not YAML"),
    ] {
        write(&world, &format!("{good}{bad}"));
        hang_up(&server);
        let said = server.says(reason).await;
        assert!(said.contains("cannot be used; all values stay as they are"), "{said}");
        assert_eq!(bootstrap(&server).await["usage"]["mode"], "tokens", "{bad}");
    }
    assert_eq!(audited(&world).len(), 1, "nothing took effect");

    // What protects never changes under a running service.
    write(
        &world,
        &format!("{good}auth: {{enabled: false}}\nport: 1\n").replacen("port: ", "#: ", 1),
    );
    hang_up(&server);
    let said = server.says("the configuration applies after a restart: ").await;
    assert!(said.contains("port"), "{said}");
    server.client.get("/healthz").await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn two_hundred_edits_by_everybody_lose_nothing() {
    let world = World::new();
    by_hand(&world);
    let server = world.serve().await;
    let (mut dice, seed) = Dice::seeded("SVC_SETTINGS_SEED");
    let keys = [
        ("restart.max_crashes", 1, 50),
        ("logs.keep_rotated", 0, 20),
        ("logs.retention_max_files", 0, 900),
        ("instance_defaults.capacity", 1, 64),
        ("ceilings.processes", 0, 4000),
        ("claude.resume_recap_max_chars", 500, 9000),
    ];
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut lines, mut conflicts) = (0, 0);
    for round in 0..200 {
        let (key, least, most) = *dice.pick(&keys);
        let value = least + dice.roll(most - least + 1);
        match dice.roll(3) {
            0 => {
                let read = settings(&server).await;
                // Sometimes somebody else writes between reading and saving.
                let is_late = dice.roll(4) == 0;
                if is_late {
                    write(&world, &format!("{}# line {lines}\n", text(&world)));
                    lines += 1;
                }
                let saved = put(&server, &json!({ key: value }), &read["hash"]).await;
                if is_late {
                    assert_eq!(saved.refused(409), "stale", "round {round}, seed {seed}");
                    conflicts += 1;
                    continue;
                }
                assert_eq!(saved.expect(200).json()["restart_required"], false);
            }
            1 => {
                world.cli(&["config", "set", key, &value.to_string()]).await.ok();
            }
            _ => {
                // By hand, in the way that an editor would.
                let set = ["config", "get", key];
                let old = world.cli(&set).await.ok().stdout.trim().to_owned();
                let name = key.rsplit('.').next().unwrap();
                let (before, after) = (format!(" {name}: {old}\n"), format!(" {name}: {value}\n"));
                let now = text(&world);
                if now.matches(&before).count() != 1 {
                    continue; // not written in the file yet
                }
                write(&world, &now.replace(&before, &format!("{after}# line {lines}\n")));
                lines += 1;
                hang_up(&server);
            }
        }
        wanted.insert(key, value);
    }
    assert!(conflicts > 0 && lines > conflicts, "seed {seed}");
    let last = text(&world);
    for kept in ["# Ours.", "   # all of them", "  # the simulator", "   # for the page"] {
        assert!(last.contains(kept), "{kept} is lost, seed {seed}:\n{last}");
    }
    assert!(last.contains("x-notes: [kept, 'as it is']"), "seed {seed}:\n{last}");
    for mark in 0..MARKS {
        assert_eq!(last.matches(&format!("# mark {mark}\n")).count(), 1, "seed {seed}:\n{last}");
    }
    for line in 0..lines {
        assert_eq!(last.matches(&format!("# line {line}\n")).count(), 1, "seed {seed}:\n{last}");
    }
    // The file has what was asked for last, and so has the service.
    let read = settings(&server).await;
    for (key, value) in &wanted {
        assert_eq!(read["fields"][*key], *value, "{key}, seed {seed}:\n{last}");
    }
    hang_up(&server);
    within("the last edit in the service", async {
        let waits = |read: &Value| wanted.keys().any(|key| read["specs"][*key]["pending"] == true);
        while waits(&settings(&server).await) {}
    })
    .await;
    // Every key that took effect is in the audit log.
    let entries = audited(&world);
    for key in wanted.keys() {
        let has = |entry: &&Value| entry["keys"].as_array().unwrap().contains(&json!(key));
        assert!(entries.iter().any(|entry| has(&entry)), "{key}, seed {seed}: {entries:?}");
    }
    server.stop().await;
}
