//! The support bundle: what is in it, and that nothing secret ever is.

use crate::harness::PLANTED;
use crate::harness::World;
use crate::harness::canary::{Audience, check};
use flate2::read::GzDecoder;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use svc_shared::internal::support::BundleListing;
use tar::Archive;

#[path = "../../../server/domain/examples/redaction/corpus.rs"]
#[expect(dead_code, reason = "the search for false alarms uses the rest")]
mod corpus;

/// Every file of an archive by its name below the one directory.
fn unpacked(archive: &[u8]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in Archive::new(GzDecoder::new(archive)).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        assert_eq!(entry.header().mode().unwrap(), 0o600, "{path}");
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        let (top, name) = path.split_once('/').unwrap();
        assert!(top.starts_with("svc-support-"), "{path}");
        assert_eq!(files.insert(name.to_owned(), text), None, "{path} is there twice");
    }
    files
}

fn names(files: &BTreeMap<String, String>) -> Vec<&str> {
    files.keys().map(String::as_str).filter(|name| !name.starts_with("reports/")).collect()
}

#[tokio::test]
async fn a_bundle_holds_what_helps_and_no_secret_of_any_form() {
    let password = "plain-words-that-open-everything";
    let world = World::with(json!({
        "claude": { "env": { "DATABASE_URL": format!("postgres://me:{password}@db/x") } },
        "webhooks": { "urls": [format!("https://hooks.example.org/{password}")], "secret": password },
    }));
    let planted = corpus::planted();
    // An agent prints secrets, a log of the service had some, and a person names a session so.
    let said: String = planted.iter().rev().take(30).map(|one| format!("{}\n", one.text)).collect();
    world.project_with("app", json!({ "stderr_text": said }));
    let server = world.serve().await;
    let mut page = server.events().await;
    let launch = json!({ "project": "app", "name": "ghp_0123456789abcdefghijklmnopqrstuvwxyz12" });
    server.client.launch_with(launch).await.expect(201);
    world.bridges_of("app")[0].signal(Signal::KILL);
    let crashed = page.until_status("app", "crashed").await;
    let older: String = planted.iter().map(|one| format!("{}\n", one.text)).collect();
    fs::write(world.state_dir().join("service.log.1"), older).unwrap();

    let listing = server.client.get("/api/support-bundle").await.expect(200).json();
    let listing: BundleListing = serde_json::from_value(listing).unwrap();
    let saved = server.client.get("/api/support-bundle/archive").await.expect(200);
    assert!(saved.header("content-disposition").unwrap().contains(".tar.gz"));
    let of_page = unpacked(&saved.body);
    let told: Vec<&str> = listing.members.iter().map(|member| member.name.as_str()).collect();
    let mut had: Vec<&str> = of_page.keys().map(String::as_str).collect();
    had.sort_by_key(|name| told.iter().position(|told| told == name));
    assert_eq!(told, had, "the list and the archive differ");

    let file = world.root.join("bundle.tar.gz");
    let path = file.to_str().unwrap();
    let ran = world.cli(&["support-bundle", "-o", path]).await.ok();
    assert_eq!(ran.stdout.trim(), path);
    assert!(ran.stderr.contains("configuration.json"), "the list comes first: {}", ran.stderr);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = world.cli(&["support-bundle", "-o", path]).await;
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("name another file"), "{}", again.stderr);
    let of_command = unpacked(&fs::read(&file).unwrap());

    for files in [&of_page, &of_command] {
        assert_eq!(
            names(files),
            [
                "configuration.json",
                "doctor.json",
                "history.json",
                "host.json",
                "service.log",
                "versions.json"
            ]
        );
        let report = format!("reports/{}.md", crashed.instance_id.short());
        assert!(files[&report].contains("killed by signal KILL"), "{}", files[&report]);
        assert!(files["service.log"].contains("crashed (killed)"), "{}", files["service.log"]);
        let config: Value = serde_json::from_str(&files["configuration.json"]).unwrap();
        assert_eq!(config["webhooks.secret"]["value"], "********");
        assert!(config["port"]["source"].as_str().unwrap().starts_with("file"), "{config}");
        let doctor: Value = serde_json::from_str(&files["doctor.json"]).unwrap();
        assert!(doctor["checks"].as_array().unwrap().len() > 10, "{doctor}");
        for (name, text) in files {
            for one in &planted {
                assert!(
                    one.is_hidden_in(text),
                    "{name} shows a secret ({}): {}",
                    one.kind,
                    one.text
                );
            }
            for secret in PLANTED.iter().map(|(_, value)| *value).chain([password]) {
                assert!(!text.contains(secret), "{name} shows {secret}");
            }
            assert!(!text.contains("ghp_0123"), "{name} shows the name of the session");
            check(name, Audience::Operator, text);
        }
    }
}

#[tokio::test]
async fn a_bundle_is_made_also_where_the_configuration_is_broken() {
    let world = World::new();
    fs::write(&world.config, "projects_root: [\nauth: {password_hash: 'canary-in-the-file'\n")
        .unwrap();
    let dir = world.root.join("out");
    fs::create_dir(&dir).unwrap();
    let ran = world.cli(&["support-bundle", "-o", dir.to_str().unwrap()]).await.ok();
    let files = unpacked(&fs::read(ran.stdout.trim()).unwrap());
    assert_eq!(names(&files), ["doctor.json", "host.json", "versions.json"]);
    assert!(files.values().all(|text| !text.contains("canary-in-the-file")));
    let list = world.cli(&["support-bundle", "--list", "--json"]).await.ok().json();
    assert_eq!(list["members"].as_array().unwrap().len(), 3);
}
