//! Optional parts: installed by their digest, used, removed when nothing runs.

use crate::harness::{Ran, Start, World, service, within};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

fn digest(file: &Path) -> String {
    hex::encode(Sha256::digest(fs::read(file).unwrap()))
}

/// A copy of the program with nothing beside it.
fn alone(world: &World) -> PathBuf {
    let program = world.root.join("alone/svc");
    fs::create_dir(program.parent().unwrap()).unwrap();
    svc_programs::copy(service(), &program).unwrap();
    program
}

async fn run(world: &World, program: &Path, args: &[&str]) -> Ran {
    let done = within("a command", world.command(program, args).output()).await.unwrap();
    Ran {
        code: done.status.code(),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

/// How the daemon stands in the list.
async fn listed(world: &World, program: &Path) -> (String, String) {
    let all = run(world, program, &["deps", "list", "--json"]).await.ok().json();
    let all = all.as_array().unwrap().clone();
    let hosted = all.into_iter().find(|extra| extra["extra"] == "hosted").unwrap();
    let text = |name: &str| hosted[name].as_str().unwrap().to_owned();
    (text("status"), text("detail"))
}

/// An archive with one member.
fn archive(world: &World, name: &str, kind: EntryType, content: &[u8]) -> PathBuf {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_path(name).unwrap();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    if kind == EntryType::Symlink {
        header.set_link_name("/bin/sh").unwrap();
    }
    header.set_cksum();
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    builder.append(&header, content).unwrap();
    let file = world.root.join("offered.tar.gz");
    fs::write(&file, builder.into_inner().unwrap().finish().unwrap()).unwrap();
    file
}

fn audit(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.state.join("config_audit.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn h124_the_daemon_is_installed_by_its_digest_and_serves_direct_sessions() {
    let world = World::with(json!({ "hosted": { "enabled": true } }));
    world.project_with("app", json!({ "hosted": { "replies": [{ "chunks": ["Hello"] }] } }));
    let program = alone(&world);
    assert_eq!(listed(&world, &program).await.0, "missing");
    let daemon = service().with_file_name("svc-hosted");
    let content = fs::read(&daemon).unwrap();
    let file = archive(&world, "svc-hosted", EntryType::Regular, &content);
    let (from, own) = (file.to_str().unwrap(), digest(&file));
    let target = world.state.join("deps/bin/svc-hosted");
    let install = ["deps", "install", "hosted", "--from", from, "--sha256"];

    // Nobody answers: that is a no.
    let declined = run(&world, &program, &[&install[..], &[&own]].concat()).await;
    assert_eq!(declined.code, Some(1), "{declined:?}");
    for words in [from, &own, target.to_str().unwrap(), "not covered by the signature", "aborted"] {
        assert!(declined.stderr.contains(words), "{words}: {}", declined.stderr);
    }
    let other = "ab".repeat(32);
    let refused =
        run(&world, &program, &[&install[..], &[&other, "--yes", "--json"]].concat()).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "digest_mismatch");
    assert!(refused.stderr.contains(&own) && refused.stderr.contains(&other), "{refused:?}");
    assert!(!target.exists() && audit(&world).is_empty());

    run(&world, &program, &[&install[..], &[&own, "--yes"]].concat()).await.ok();
    assert_eq!(fs::read(&target).unwrap(), content);
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o7777, 0o755);
    assert!(audit(&world)[0]["keys"].to_string().contains(&own), "{:?}", audit(&world));
    let (status, detail) = listed(&world, &program).await;
    assert!(status == "loaded" && detail.contains(target.to_str().unwrap()), "{status} {detail}");
    let doctor = run(&world, &program, &["doctor", "--only", "binary:hosted"]).await.ok();
    assert!(doctor.stdout.contains("PASS"), "{}", doctor.stdout);

    let start = Start { program: Some(program.clone()), ..Start::default() };
    let server = world.serve_as(start).await;
    let request = json!({ "project": "app", "channel": "hosted" });
    let one = server.client.launch_with(request).await.expect(201).instance();
    assert_eq!(one.status.to_string(), "running", "{one:?}");
    let uninstall = ["deps", "uninstall", "hosted"];
    let held = run(&world, &program, &uninstall).await;
    assert_eq!(held.code, Some(3), "{held:?}");
    assert!(held.stderr.contains("runs from") && target.exists(), "{held:?}");
    // Installed again it waits for the next start of the daemon.
    let again = run(&world, &program, &[&install[..], &[&own, "--yes"]].concat()).await.ok();
    assert!(again.stderr.contains("next start"), "{again:?}");
    assert_eq!(listed(&world, &program).await.0, "installed");
    // Nothing runs from the new file: the daemon has the old one.
    run(&world, &program, &uninstall).await.ok();
    assert!(!target.exists());
    let row = server.client.instance("app").await.expect(200).instance();
    assert_eq!(row.status.to_string(), "running", "the session goes on");
    let nothing = run(&world, &program, &uninstall).await.ok();
    assert!(nothing.stderr.contains("not installed"), "{nothing:?}");
}

#[tokio::test]
async fn h120_h124_what_is_no_release_archive_installs_nothing() {
    let world = World::new();
    let program = alone(&world);
    let target = world.state.join("deps/bin/svc-hosted");
    let zeros = vec![0_u8; 80 << 20];
    for (name, kind, content, words) in [
        ("svc-hosted", EntryType::Symlink, &b""[..], "is not a regular file"),
        ("bin/svc-hosted", EntryType::Regular, b"x", "no file svc-hosted"),
        ("svc-hosted", EntryType::Regular, b"text", "nor a program"),
        ("svc-hosted", EntryType::Regular, &zeros, "more than is allowed"),
    ] {
        let file = archive(&world, name, kind, content);
        let own = digest(&file);
        let from = file.to_str().unwrap();
        let args = ["deps", "install", "hosted", "--from", from, "--sha256", &own, "--yes"];
        let refused = run(&world, &program, &args).await;
        assert_eq!(refused.code, Some(1), "{words}: {refused:?}");
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
        assert!(!target.exists(), "{words}");
    }
    for (args, code, words) in [
        (&["deps", "install", "nothing", "--yes"][..], 2, "no optional part"),
        (&["deps", "install", "pty", "--yes"], 2, "part of svc"),
        (&["deps", "install", "hosted", "--yes"], 2, "pins no download"),
        (&["deps", "install", "hosted", "--from", "absent", "--sha256", "12", "--yes"], 2, "64"),
        (&["deps", "uninstall", "hosted"], 0, "not installed"),
    ] {
        let ran = run(&world, &program, args).await;
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
}
