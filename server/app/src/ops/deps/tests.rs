//! Plans, and what happens between the bytes and the program in its place.

use super::*;
use crate::Role;
use crate::bench::Still;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::os::unix::fs::{PermissionsExt, symlink};
use svc_agent::cli::{AgentCli, AgentSetup};

const URL: &str = "https://downloads.example.org/svc-hosted.tar.gz";

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// An archive with a program that says its version.
fn archive() -> Vec<u8> {
    let content = b"#!/bin/sh\necho svc-hosted 9.9.9\n";
    let mut header = tar::Header::new_ustar();
    header.set_path("svc-hosted").unwrap();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    builder.append(&header, &content[..]).unwrap();
    builder.into_inner().unwrap().finish().unwrap()
}

/// Optional parts of an installation that pins this digest.
fn deps(tree: &Path, pinned: Option<&str>) -> Deps {
    let state = tree.join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::create_dir(state.join("locks")).unwrap();
    let text = format!("projects_root: {}\nstate_dir: {}\n", tree.display(), state.display());
    let config = svc_config::load_text(&text, tree).unwrap().config;
    let cli = AgentCli::new(AgentSetup {
        binary: config.claude.binary.clone(),
        env: Default::default(),
        cwd: state.clone(),
        locks: state.join("locks"),
    });
    let clock: Arc<dyn svc_ports::Clock> = Arc::new(Still);
    let audit = Arc::new(Audit::new(&config.state_dir, Role::Command, &clock));
    let mut deps = Deps::new(&config, &Arc::new(Agent::new(cli, None)), &audit);
    deps.pins = pinned
        .map(|digest| Pin {
            extra: "hosted",
            os: OS,
            arch: ARCH,
            source: format!("{URL}#sha256={digest}").leak(),
        })
        .into_iter()
        .collect();
    deps
}

fn audit_of(tree: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(tree.join("state/config_audit.log")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn h124_a_pinned_archive_is_installed_and_listed_and_removed() {
    let tree = tempfile::tempdir().unwrap();
    let bytes = archive();
    let deps = deps(tree.path(), Some(&digest(&bytes)));
    let before = deps.list().await;
    let hosted = before.iter().find(|extra| extra.extra == "hosted").unwrap();
    assert_eq!(hosted.status, ExtraStatus::Missing);
    assert!(hosted.detail.contains("svc deps install hosted"), "{}", hosted.detail);
    let plan = deps.plan("hosted", &Offer::default()).unwrap();
    assert_eq!((plan.source.as_str(), plan.own_digest), (URL, false));
    let done = deps.install_bytes(plan, bytes).await.unwrap();
    let program = tree.path().join("state/deps/bin/svc-hosted");
    assert_eq!((&done.path, done.restart_needed), (&program, false));
    let mode = std::fs::metadata(&program).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o755);
    let listed = deps.list().await;
    let hosted = listed.iter().find(|extra| extra.extra == "hosted").unwrap();
    assert_eq!(hosted.status, ExtraStatus::Loaded);
    assert!(hosted.detail.contains("svc-hosted 9.9.9"), "{}", hosted.detail);
    assert!(deps.uninstall("hosted").await.unwrap());
    assert!(!program.exists() && !deps.uninstall("hosted").await.unwrap());
    let told: Vec<_> = audit_of(tree.path())
        .iter()
        .map(|entry| (entry["surface"].clone(), entry["action"].clone(), entry["target"].clone()))
        .collect();
    let entry = |action: &str| ("deps".into(), action.into(), "hosted".into());
    assert_eq!(told, [entry("install"), entry("uninstall")]);
}

#[tokio::test]
async fn h124_another_digest_installs_nothing_and_shows_both() {
    let tree = tempfile::tempdir().unwrap();
    let bytes = archive();
    let deps = deps(tree.path(), Some(&digest(&bytes)));
    let plan = || deps.plan("hosted", &Offer::default()).unwrap();
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    let error = deps.install_bytes(plan(), changed.clone()).await.unwrap_err().to_string();
    assert!(error.contains(&digest(&bytes)) && error.contains(&digest(&changed)), "{error}");
    let cut = bytes[..bytes.len() - 1].to_vec();
    assert!(matches!(deps.install_bytes(plan(), cut).await, Err(DepsError::Mismatch { .. })));
    assert!(!tree.path().join("state/deps").exists());
    assert!(audit_of(tree.path()).is_empty(), "nothing was begun");
}

#[tokio::test]
async fn an_own_build_is_taken_by_its_digest_and_the_audit_log_says_so() {
    let tree = tempfile::tempdir().unwrap();
    let deps = deps(tree.path(), None);
    let file = tree.path().join("own.tar.gz");
    std::fs::write(&file, archive()).unwrap();
    let offer = |sha256: Option<&str>| Offer {
        from: Some(file.clone()),
        sha256: sha256.map(ToOwned::to_owned),
    };
    assert!(matches!(deps.plan("hosted", &offer(None)), Err(DepsError::NoBuild { .. })));
    assert!(matches!(deps.plan("hosted", &offer(Some("12"))), Err(DepsError::NoDigest)));
    let own = digest(&archive());
    let plan = deps.plan("hosted", &offer(Some(&own.to_uppercase()))).unwrap();
    assert!(plan.own_digest);
    deps.install(plan).await.unwrap();
    let keys = audit_of(tree.path())[0]["keys"].to_string();
    assert!(keys.contains(&own) && keys.contains("--sha256"), "{keys}");
    // A program as it is needs no archive.
    let raw = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let raw = &raw[..raw.len().min(1 << 20)];
    std::fs::write(&file, raw).unwrap();
    let plan = deps.plan("hosted", &offer(Some(&digest(raw)))).unwrap();
    deps.install(plan).await.unwrap();
    for bad in [&b"not a program"[..], b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xff\xff"] {
        std::fs::write(&file, bad).unwrap();
        let plan = deps.plan("hosted", &offer(Some(&digest(bad)))).unwrap();
        assert!(matches!(deps.install(plan).await, Err(DepsError::NoProgram(_))));
    }
    let installed = std::fs::read(tree.path().join("state/deps/bin/svc-hosted")).unwrap();
    assert_eq!(installed, raw, "what was there stays");
}

#[tokio::test]
async fn what_is_not_installable_is_named() {
    let tree = tempfile::tempdir().unwrap();
    let deps = deps(tree.path(), None);
    for (name, words) in [
        ("pty", "part of svc"),
        ("service-wrapper", "only for Windows"),
        ("../x", "no optional part"),
        ("hosted", "pins no download"),
    ] {
        let error = deps.plan(name, &Offer::default()).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    let statuses: Vec<_> = deps.list().await.iter().map(|extra| extra.status.as_str()).collect();
    assert_eq!(statuses, ["built-in", "built-in", "missing", "n/a"]);
}

#[tokio::test]
async fn h124_nothing_outside_the_state_directory_is_written_or_removed() {
    let tree = tempfile::tempdir().unwrap();
    let deps = deps(tree.path(), None);
    let outside = tree.path().join("outside");
    std::fs::create_dir_all(outside.join("bin")).unwrap();
    std::fs::set_permissions(&outside, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(outside.join("bin/svc-hosted"), "precious").unwrap();
    symlink(&outside, tree.path().join("state/deps")).unwrap();
    let file = tree.path().join("own.tar.gz");
    std::fs::write(&file, archive()).unwrap();
    let offer = Offer { from: Some(file), sha256: Some(digest(&archive())) };
    let plan = deps.plan("hosted", &offer).unwrap();
    assert!(matches!(deps.install(plan).await, Err(DepsError::Outside(_))));
    assert!(matches!(deps.uninstall("hosted").await, Err(DepsError::Outside(_))));
    assert_eq!(std::fs::read(outside.join("bin/svc-hosted")).unwrap(), b"precious");
    let mode = std::fs::metadata(&outside).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o755, "its permissions are its own");
    let actions: Vec<_> =
        audit_of(tree.path()).iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions, ["install", "install-failed", "uninstall", "uninstall-failed"]);
}
