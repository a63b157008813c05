//! Keepers are listed, and only an orphan is ended.

use crate::harness::{Server, World, within};
use serde_json::{Value, json};
use std::path::PathBuf;
use svc_shared::api::instances::Instance;
use svc_shared::internal::keepers::Keeper;

async fn session(server: &Server<'_>, project: &str) -> Instance {
    let body = json!({ "project": project, "mode": "pty" });
    let launched = server.client.launch_with(body).await.expect(201).instance();
    assert_eq!(launched.status.to_string(), "running", "{launched:?}");
    launched
}

/// What the command lists.
async fn listed(world: &World) -> Vec<Keeper> {
    let shown = world.cli(&["keepers", "--json"]).await.ok().json();
    serde_json::from_value(shown).unwrap()
}

/// Takes the record of a project's sessions away behind the service's back.
async fn forget(world: &World, project: &str) {
    let gone = format!("DELETE FROM bridges WHERE project = '{project}'");
    assert_eq!(world.sql(&gone).await.unwrap(), 1);
}

async fn until_gone(pid: i32) {
    within("the end of a process", async {
        while std::path::Path::new(&format!("/proc/{pid}")).exists()
            && !std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| stat.contains(") Z "))
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_keeper_is_killed_only_while_it_is_an_orphan() {
    let world = World::new();
    for name in ["known", "lost"] {
        world.project(name);
    }
    let server = world.serve().await;
    let known = session(&server, "known").await;
    let lost = session(&server, "lost").await;
    let (known_pid, lost_pid) = (known.keeper_pid.unwrap(), lost.keeper_pid.unwrap());
    server.kill().await;
    forget(&world, "lost").await;

    let found = listed(&world).await;
    let marks: Vec<(&str, i32, bool)> =
        found.iter().map(|one| (&*one.project, one.keeper_pid, one.orphan)).collect();
    let mut wanted = vec![("known", known_pid, false), ("lost", lost_pid, true)];
    wanted.sort_by_key(|(_, pid, _)| *pid);
    assert_eq!(marks, wanted);
    let table = world.cli(&["keepers"]).await.ok().stdout;
    assert!(table.contains("ORPHAN") && !table.contains("no orphaned keepers"), "{table}");
    let report = world.cli(&["doctor", "--json", "--only", "keepers"]).await.json();
    let check = &report["checks"][0];
    assert_eq!((&check["name"], &check["status"]), (&json!("keepers"), &json!("warn")));
    assert!(check["detail"].as_str().unwrap().contains(&lost_pid.to_string()), "{check}");

    // Neither a session's keeper nor any other process.
    let own = std::process::id().to_string();
    for pid in [known_pid.to_string(), own] {
        let refused = world.cli(&["keepers", "--kill", &pid]).await;
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    }
    let alone = world.cli(&["keepers", "--force"]).await;
    assert_eq!(alone.code, Some(2), "--force without --kill: {}", alone.stderr);
    let ran = world.cli(&["keepers", "--kill", &lost_pid.to_string()]).await.ok();
    assert!(ran.stdout.contains("has ended"), "{}", ran.stdout);
    until_gone(lost_pid).await;
    until_gone(lost.bridge_pid.unwrap()).await;
    assert_eq!(world.keeper_records("lost"), Vec::<PathBuf>::new());
    let again = world.cli(&["keepers", "--kill", &lost_pid.to_string()]).await;
    assert_eq!(again.code, Some(2), "{}", again.stderr);

    // The other one was never touched.
    let server = world.serve().await;
    let row = server.client.instance(known.instance_id.as_str()).await.expect(200).instance();
    assert_eq!((row.keeper_pid, row.bridge_pid), (Some(known_pid), known.bridge_pid));
    let over: Value = server.client.get("/api/keepers").await.expect(200).json();
    assert_eq!(over.as_array().unwrap().len(), 1);
    let path = format!("/api/keepers/{known_pid}/kill");
    server.client.post(&path).await.expect(409);
    server.client.stop(known.instance_id.as_str()).await.expect(200);
}

#[tokio::test]
async fn a_keeper_with_a_damaged_record_is_listed_and_says_so() {
    let world = World::new();
    for name in ["known", "lost"] {
        world.project(name);
    }
    let server = world.serve().await;
    let known = session(&server, "known").await;
    let lost = session(&server, "lost").await;
    world.until_recorded().await;
    server.kill().await;
    for name in ["known", "lost"] {
        let [path] = world.keeper_records(name).try_into().unwrap();
        std::fs::write(path, "{\"v\": 1, \"keep").unwrap();
    }
    forget(&world, "lost").await;
    let found = listed(&world).await;
    let of = |project: &str| found.iter().find(|one| one.project == project).unwrap();
    let (kept, orphan) = (of("known"), of("lost"));
    assert_eq!((Some(kept.keeper_pid), kept.bridge_pid), (known.keeper_pid, known.bridge_pid));
    assert_eq!(kept.instance_id.as_ref(), Some(&known.instance_id));
    assert!(kept.damaged && !kept.orphan, "{kept:?}");
    assert!(orphan.damaged && orphan.orphan && orphan.instance_id.is_none(), "{orphan:?}");
    let table = world.cli(&["keepers"]).await.ok().stdout;
    assert_eq!(table.matches("record damaged").count(), 2, "{table}");

    let pid = lost.keeper_pid.unwrap();
    world.cli(&["keepers", "--kill", &pid.to_string()]).await.ok();
    until_gone(pid).await;
    let pid = known.keeper_pid.unwrap().to_string();
    let refused = world.cli(&["keepers", "--kill", &pid]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    world.cli(&["keepers", "--kill", &pid, "--force"]).await.ok();
    until_gone(known.keeper_pid.unwrap()).await;
    world.serve().await;
    world.agree().await;
}
