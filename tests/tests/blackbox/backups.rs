//! `svc backup` and `svc restore`: what was saved comes back, and nothing else.

use crate::harness::{Server, World};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

/// Modes and contents below a directory; links and sockets by name only.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let name = path.strip_prefix(root).unwrap().to_owned();
        found.insert(name, (meta.permissions().mode() & 0o7777, content));
    }
    found
}

/// The rows of a table as text, in order.
pub(crate) async fn table(database: &Path, query: &str) -> Vec<String> {
    let options = SqliteConnectOptions::new().filename(database).read_only(true);
    let mut connection = options.connect().await.unwrap();
    let rows = sqlx::query_scalar(query).fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    rows
}

const TOKENS: &str = "SELECT label || ' ' || hash FROM api_tokens ORDER BY label";
const BRIDGES: &str = "SELECT instance_id || ' ' || project || ' ' || status || ' ' || \
     generation || ' ' || bridge_pid FROM bridges ORDER BY instance_id";

/// Makes a backup in `out/` of the world and returns its path.
pub(crate) async fn backed_up(world: &World) -> PathBuf {
    let done = world.cli(&["backup", "-o", "out/", "--json"]).await.ok().json();
    world.root.join(done["path"].as_str().unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn h119_a_backup_beside_a_running_service_comes_back_whole() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    world.cli(&["api-token", "issue", "phone"]).await.ok();
    fs::create_dir_all(world.state.join("hosted")).unwrap();
    let note = world.state.join("hosted/note");
    fs::write(&note, "kept").unwrap();
    fs::set_permissions(&note, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", world.state.join("link")).unwrap();

    let ran = world.cli(&["backup", "-o", "out/", "--json"]).await.ok();
    assert!(ran.stderr.contains("password hashes"), "{}", ran.stderr);
    assert!(ran.stderr.contains("link is not in the archive"), "{}", ran.stderr);
    let document = ran.json();
    let archive = world.root.join(document["path"].as_str().unwrap());
    let name = archive.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("svc-backup-") && name.ends_with("Z.tar.gz"), "{name}");
    let meta = fs::metadata(&archive).unwrap();
    assert_eq!(meta.permissions().mode() & 0o7777, 0o600);
    assert_eq!(document["bytes"], meta.len());
    assert!(document["files"].as_u64().unwrap() > 3 && document["created"].is_string());
    assert_eq!(fs::read_dir(world.root.join("out")).unwrap().count(), 1, "no leftovers");

    // The session lives on while its service is away.
    let before = tree(&world.state);
    let database = world.state.join("svc.db");
    let (tokens, bridges) = (table(&database, TOKENS).await, table(&database, BRIDGES).await);
    server.stop().await;
    fs::rename(&world.state, world.root.join("old")).unwrap();
    let config = world.root.join("restored/svc.yml");
    let plain = ["restore", text(&archive), "--state-dir", text(&world.state)];
    let all = [&plain[..], &["--config-out", text(&config), "--json"]].concat();
    let done = world.cli(&all).await.ok().json();
    assert_eq!(done["config"], text(&config));
    assert_eq!(done["state_files"].as_u64().unwrap() + 1, document["files"].as_u64().unwrap());

    assert_eq!(table(&database, TOKENS).await, tokens);
    assert_eq!(table(&database, BRIDGES).await, bridges);
    assert_eq!(fs::read(&config).unwrap(), fs::read(&world.config).unwrap());
    assert_eq!(fs::metadata(&config).unwrap().permissions().mode() & 0o7777, 0o600);
    let after = tree(&world.state);
    for (path, (mode, _)) in &after {
        let is_directory = world.state.join(path).is_dir();
        assert_eq!(*mode, if is_directory { 0o700 } else { 0o600 }, "{}", path.display());
    }
    for name in ["session.secret", "hosted/note"] {
        let name = Path::new(name);
        assert_eq!(after.get(name), before.get(name), "{}", name.display());
    }
    assert!(!after.contains_key(Path::new("link")));
    let audit = fs::read_to_string(world.state.join("config_audit.log")).unwrap();
    let last: Value = serde_json::from_str(audit.lines().last().unwrap()).unwrap();
    assert_eq!((&last["surface"], &last["action"]), (&json!("restore"), &json!("restore")));
    assert!(fs::read_dir(&world.root).unwrap().all(|entry| {
        !entry.unwrap().file_name().to_string_lossy().starts_with(".svc-restore-")
    }));

    let server = world.serve().await;
    let mut page = server.events().await;
    page.until_status("app", "running").await;
    assert_eq!(world.bridges().len(), 1, "the same one");
    assert_eq!(world.row("app").await.generation, 1);
}

#[tokio::test]
async fn h40_a_restore_deletes_no_archive_of_the_state_directory() {
    let world = World::new();
    world.cli(&["api-token", "issue", "phone"]).await.ok();
    let outside = backed_up(&world).await;
    let inside = world.state.join("saved/mine.tar.gz");
    world.cli(&["backup", "-o", text(&inside)]).await.ok();
    let before = tree(&world.state);
    for archive in [&inside, &outside] {
        let plain = ["restore", text(archive), "--state-dir", text(&world.state)];
        for more in [&["--force"][..], &["--force", "--dry-run"]] {
            let ran = world.cli(&[&plain[..], more].concat()).await;
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
            assert!(ran.stderr.contains("mine.tar.gz"), "{}", ran.stderr);
            assert!(ran.stderr.contains("out of there first"), "{}", ran.stderr);
            assert_eq!(tree(&world.state), before);
        }
    }
    let moved = world.root.join("moved.tar.gz");
    fs::rename(&inside, &moved).unwrap();
    let plain = ["restore", text(&moved), "--state-dir", text(&world.state), "--force"];
    world.cli(&plain).await.ok();
    assert!(moved.exists());
}

/// What is written in one statement is in a copy as a whole or not at all.
#[tokio::test]
async fn h119_backups_below_the_state_directory_do_not_hold_those_before() {
    let world = World::new();
    world.cli(&["api-token", "issue", "phone"]).await.ok();
    let own = world.state.join("saved");
    let names = |archive: &Path| {
        let listed = std::process::Command::new("tar").arg("-tzf").arg(archive).output().unwrap();
        String::from_utf8(listed.stdout).unwrap()
    };
    for output in [world.state.clone(), own.clone(), own.join("mine.tar.gz")] {
        for _ in 0..2 {
            fs::create_dir_all(&own).unwrap();
            world.cli(&["backup", "--force", "-o", text(&output)]).await.ok();
        }
    }
    fs::write(own.join("note"), "kept").unwrap();
    let last = own.join("last.tar.gz");
    world.cli(&["backup", "-o", text(&last)]).await.ok();
    let held = names(&last);
    assert!(held.contains("state/svc.db") && held.contains("state/saved/note"), "{held}");
    assert!(!held.contains(".tar.gz"), "an archive holds those before it: {held}");
}

#[tokio::test]
async fn h119_a_backup_under_writes_is_consistent() {
    let world = World::new();
    let server = world.serve().await;
    let (mut rounds, mut archives) = (0_u32, Vec::new());
    let mut backups = Box::pin(async {
        for _ in 0..4 {
            archives.push(backed_up(&world).await);
        }
    });
    loop {
        let pair =
            format!("INSERT INTO withdrawn_tokens VALUES ('a{rounds}', 1), ('b{rounds}', 1)");
        let writes = async {
            world.sql(&pair).await.unwrap();
        };
        tokio::select! {
            biased;
            () = &mut backups => break,
            () = writes => rounds += 1,
        }
    }
    drop(backups);
    server.kill().await;
    assert!(rounds > 10, "{rounds}");
    for (number, archive) in archives.iter().enumerate() {
        let target = world.root.join(format!("r{number}"));
        world.cli(&["restore", text(archive), "--state-dir", text(&target)]).await.ok();
        let query = "SELECT substr(hash, 2) FROM withdrawn_tokens GROUP BY 1 HAVING count(*) <> 2";
        assert_eq!(table(&target.join("svc.db"), query).await, Vec::<String>::new());
        assert!(!target.join("svc.db-wal").exists());
    }
}

/// What never changes once it is written, by its name.
const WRITTEN_ONCE: [&str; 2] = [
    "SELECT CAST(id AS TEXT) || ' ' || kind || ' ' || at FROM session_events ORDER BY id",
    "SELECT label || ' ' || hash FROM api_tokens ORDER BY label",
];

#[tokio::test]
async fn h119_a_backup_under_load_starts_again_with_everything_that_was() {
    let world = World::new();
    let (steady, busy) = (["s0", "s1"], ["p0", "p1", "p2"]);
    for name in steady.iter().chain(&busy) {
        world.project(name);
    }
    let server = world.serve().await;
    let mut pids = Vec::new();
    for name in steady {
        pids.push(server.client.run(name).await.bridge_pid);
    }
    world.cli(&["api-token", "issue", "first"]).await.ok();
    let is_over = Cell::new(false);
    let work = busy.map(|name| {
        let (server, is_over) = (&server, &is_over);
        async move {
            let mut rounds = 0;
            while !is_over.get() {
                let row = server.client.run(name).await;
                server.client.stop(row.instance_id.as_str()).await.expect(200);
                rounds += 1;
            }
            rounds
        }
    });
    let issue = async {
        let mut number = 0;
        while !is_over.get() {
            world.cli(&["api-token", "issue", &format!("t{number}")]).await.ok();
            number += 1;
        }
        number
    };
    let backups = async {
        let mut last = PathBuf::new();
        for _ in 0..4 {
            last = backed_up(&world).await;
        }
        is_over.set(true);
        last
    };
    let (archive, tokens, rounds) = tokio::join!(backups, issue, join_all(work));
    assert!(tokens > 0 && rounds.iter().all(|rounds| *rounds > 0), "{tokens} {rounds:?}");
    server.kill().await;
    let old = world.root.join("old");
    fs::rename(&world.state, &old).unwrap();
    world.cli(&["restore", text(&archive), "--state-dir", text(&world.state)]).await.ok();

    // Nothing in the archive that was not so, and nothing of before it is missing.
    for query in WRITTEN_ONCE {
        let (all, kept) = (
            table(&old.join("svc.db"), query).await,
            table(&world.state.join("svc.db"), query).await,
        );
        assert!(!kept.is_empty(), "{query}");
        if query.contains("session_events") {
            assert_eq!(kept, all[..kept.len()], "the beginning of what happened");
        } else {
            assert!(kept.iter().all(|row| all.contains(row)), "{kept:?}");
        }
    }
    let audit = |dir: &Path| fs::read_to_string(dir.join("config_audit.log")).unwrap();
    let (now, before) = (audit(&world.state), audit(&old));
    let (kept, last) = now.trim_end().rsplit_once('\n').unwrap();
    assert!(before.starts_with(kept) && last.contains("restore"), "{now}");

    let server = world.serve().await;
    let mut page = server.events().await;
    for name in steady {
        page.until_status(name, "running").await;
    }
    let found = world.agree().await;
    assert_eq!(found.bridges.len(), steady.len(), "what had ended since is not called running");
    for (name, pid) in steady.iter().zip(pids) {
        assert_eq!(world.row(name).await.pid, pid.map(i64::from), "{name}");
    }
}

async fn sign_in(server: &Server<'_>) -> String {
    let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let reply = server.client.send(request.json(&json!({ "password": PASSWORD }))).await;
    reply.expect(200).header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

async fn opens(server: &Server<'_>, header: &str, value: &str) -> u16 {
    let request = server.client.request(Method::GET, "/api/v1/instances").header(header, value);
    server.client.send(request).await.status
}

#[tokio::test]
async fn h17_a_restore_brings_no_withdrawn_token_and_no_cookie_back() {
    let world = World::with(json!({
        "auth": { "enabled": true, "password_required": true, "password_hash": HASH }
    }));
    let issue = async |label: &str| {
        let issued = world.cli(&["api-token", "issue", label, "--json"]).await.ok().json();
        format!("Bearer {}", issued["token"].as_str().unwrap())
    };
    let server = world.serve().await;
    let (kept, revoked, rotated) =
        (issue("kept").await, issue("revoked").await, issue("rotated").await);
    let cookie = sign_in(&server).await;
    assert_eq!(opens(&server, "Cookie", &cookie).await, 200);
    let archive = backed_up(&world).await;
    world.cli(&["api-token", "revoke", "revoked"]).await.ok();
    world.cli(&["api-token", "rotate", "rotated"]).await.ok();
    let later = sign_in(&server).await;
    server.stop().await;
    let plain = ["restore", text(&archive), "--state-dir", text(&world.state)];
    world.cli(&[&plain[..], &["--force"]].concat()).await.ok();

    let server = world.serve().await;
    assert_eq!(opens(&server, "Authorization", &kept).await, 200);
    for token in [revoked, rotated] {
        assert_eq!(opens(&server, "Authorization", &token).await, 401);
    }
    for cookie in [cookie, later] {
        assert_eq!(opens(&server, "Cookie", &cookie).await, 401);
    }
    let again = sign_in(&server).await;
    assert_eq!(opens(&server, "Cookie", &again).await, 200);
    server.stop().await;
    let epoch = |dir: &Path| -> u64 {
        fs::read_to_string(dir.join("session.epoch")).unwrap().trim().parse().unwrap()
    };
    let first = epoch(&world.state);
    world.cli(&[&plain[..], &["--force"]].concat()).await.ok();
    assert!(epoch(&world.state) > first, "an older archive lowers nothing");
}

#[tokio::test]
async fn h40_a_running_service_is_never_replaced() {
    let world = World::new();
    let server = world.serve().await;
    let archive = backed_up(&world).await;
    let config = fs::read(&world.config).unwrap();
    let to_state = ["restore", text(&archive), "--state-dir", text(&world.state)];
    for more in [&["--force", "--json"][..], &["--force", "--dry-run", "--json"]] {
        let ran = world.cli(&[&to_state[..], more].concat()).await;
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert_eq!(ran.json()["error"]["code"], "running");
    }
    let exclusive = world.cli(&["backup", "-o", "out/", "--exclusive"]).await;
    assert_eq!(exclusive.code, Some(3), "{}", exclusive.stderr);
    server.client.get("/api/v1/instances").await.expect(200);
    server.stop().await;
    world.cli(&["backup", "-o", "out/", "--exclusive"]).await.ok();
    assert_eq!(fs::read(&world.config).unwrap(), config);
}

#[tokio::test]
async fn what_is_in_the_way_stays_without_force() {
    let world = World::new();
    world.cli(&["api-token", "issue", "phone"]).await.ok();
    let archive = backed_up(&world).await;
    let before = tree(&world.state);
    let config = world.root.join("other.yml");
    fs::write(&config, "mine").unwrap();
    let fresh = world.root.join("fresh");
    let (archive, out) = (text(&archive), text(&config));
    let attempts: &[(&[&str], i32, &str)] = &[
        (&["restore", archive, "--state-dir", text(&world.state)], 1, "--force"),
        (&["restore", archive, "--state-dir", text(&fresh), "--config-out", out], 1, "--force"),
        (&["restore", "nowhere.tar.gz", "--state-dir", text(&fresh)], 2, "no archive"),
        (&["restore", out, "--state-dir", text(&fresh)], 1, "refused as a whole"),
        (&["restore", archive, "--state-dir", out], 2, "no directory"),
        (&["backup", "-o", archive], 1, "--force"),
    ];
    for (args, code, words) in attempts {
        let ran = world.cli(args).await;
        assert_eq!(ran.code, Some(*code), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{args:?}: {}", ran.stderr);
    }
    let plan = ["restore", archive, "--state-dir", text(&fresh), "--dry-run", "--json"];
    let plan = world.cli(&plan).await.ok().json();
    assert_eq!((&plan["dry_run"], &plan["replaces"]), (&json!(true), &json!(false)));
    assert!(plan["db_user_version"].as_i64().unwrap() > 0);
    assert!(!fresh.exists());
    assert_eq!(fs::read(&config).unwrap(), b"mine");
    assert_eq!(tree(&world.state), before);

    // A configuration that cannot be written takes the whole restore back.
    let below_a_file = config.join("svc.yml");
    let args = ["restore", archive, "--state-dir", text(&world.state), "--force", "--config-out"];
    let ran = world.cli(&[&args[..], &[text(&below_a_file)]].concat()).await;
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let without_lock = |mut tree: BTreeMap<PathBuf, _>| {
        tree.remove(Path::new("run.lock"));
        tree
    };
    assert_eq!(without_lock(tree(&world.state)), without_lock(before));
    let again = ["backup", "-o", archive, "--force"];
    world.cli(&again).await.ok();
}
