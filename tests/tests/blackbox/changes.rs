//! What changed where a session works, and the worktrees that sessions leave.

use crate::harness::{Server, Socket, World, socket, within};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use svc_shared::api::instances::Instance;
use svc_shared::internal::changes::{Changes, FileChange, Worktrees};

const SECRET: &str = "sk-ant-api03-a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

fn git(dir: &Path, args: &[&str]) {
    let ran = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(args)
        .output()
        .unwrap();
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A running session in a worktree of its own, and the directory of the worktree.
async fn in_worktree(world: &World, server: &Server<'_>) -> (Instance, PathBuf) {
    let body = json!({ "project": "app", "mode": "pty", "spawn_mode": "worktree" });
    let session = server.client.launch_with(body).await.expect(201).instance();
    let name = session.worktree_name.clone().unwrap();
    (session, world.projects.join("app/.claude/worktrees").join(name))
}

async fn changes(server: &Server<'_>, of: &str) -> Changes {
    let reply = server.client.get(&format!("/api/{of}/changes")).await.expect(200);
    serde_json::from_value(reply.json()).unwrap()
}

async fn worktrees(server: &Server<'_>) -> Worktrees {
    let reply = server.client.get("/api/projects/app/worktrees").await.expect(200);
    serde_json::from_value(reply.json()).unwrap()
}

fn files(found: &Changes) -> Vec<(String, String, Option<u64>, Option<u64>)> {
    let file = |file: &svc_shared::internal::changes::ChangedFile| {
        (file.path.clone(), file.status.to_string(), file.additions, file.deletions)
    };
    found.files.iter().map(file).collect()
}

#[tokio::test]
async fn the_changes_of_a_session_are_those_of_its_own_directory() {
    let world = World::new();
    let root = world.repository("app");
    let server = world.serve().await;
    let bridge = server.client.run("app").await;
    let (session, tree) = in_worktree(&world, &server).await;
    fs::write(root.join("README.md"), "sample\nmore\n").unwrap();
    fs::write(tree.join("new file"), format!("one\nkey = {SECRET}\n")).unwrap();
    let of_bridge = changes(&server, &format!("instances/{}", bridge.instance_id)).await;
    assert_eq!(of_bridge.worktree, None);
    assert_eq!(of_bridge.base.kind.to_string(), "head");
    let readme = ("README.md".to_owned(), "modified".to_owned(), Some(1), Some(0));
    assert!(files(&of_bridge).contains(&readme), "{of_bridge:?}");
    let id = session.instance_id.as_str();
    let of_session = changes(&server, &format!("instances/{id}")).await;
    assert_eq!(of_session.worktree, session.worktree_name);
    assert_eq!(
        (of_session.base.kind.to_string().as_str(), of_session.base.reference.as_str()),
        ("merge-base", "main")
    );
    let new = ("new file".to_owned(), "untracked".to_owned(), Some(2), Some(0));
    assert_eq!(files(&of_session), [new]);

    let path = format!("/api/instances/{id}/changes/file?path=new%20file&from=1");
    let reply = server.client.get(&path).await.expect(200);
    assert!(!reply.text().contains(SECRET));
    let file: FileChange = serde_json::from_value(reply.json()).unwrap();
    assert_eq!((file.masked, file.next_from, file.too_large), (1, None, false));
    assert_eq!((file.hunks[0].new_start, file.hunks[0].lines[0].t.to_string().as_str()), (2, "+"));
    for (query, status, code) in [
        ("path=../app/README.md", 400, "path_escape"),
        ("path=%2Fetc%2Fpasswd", 400, "path_escape"),
        ("path=.git/config", 404, "not_found"),
        ("path=no%0Asuch", 404, "not_found"),
        ("path=%FF", 404, "not_found"),
        ("path=", 400, "path_escape"),
        ("context=3", 422, "invalid_value"),
        ("path=x&context=51", 422, "schema"),
    ] {
        let reply = server.client.get(&format!("/api/instances/{id}/changes/file?{query}")).await;
        assert_eq!(reply.refused(status), code, "{query}");
    }

    let text = world.cli(&["changes", id]).await.ok();
    assert!(
        text.stdout.contains("untracked") && text.stdout.contains("new file"),
        "{}",
        text.stdout
    );
    let shown = world.cli(&["changes", id, "new file"]).await.ok();
    assert!(shown.stdout.contains("@@ -0,0 +1,2 @@\n+one\n"), "{}", shown.stdout);
    assert!(!shown.stdout.contains(SECRET) && shown.stderr.contains("masked"), "{shown:?}");
    let listed = world.cli(&["changes", id, "--json"]).await.ok().json();
    assert_eq!(listed["files"][0]["path"], "new file");
    assert_eq!(world.cli(&["changes", id, "../x"]).await.code, Some(2));
}

#[tokio::test]
async fn a_project_without_git_says_so() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let bridge = server.client.run("app").await;
    let path = format!("/api/instances/{}/changes", bridge.instance_id);
    assert_eq!(server.client.get(&path).await.refused(404), "not_found");
    assert_eq!(worktrees(&server).await, Worktrees::default());
    let ran = world.cli(&["changes", "app"]).await;
    assert!(ran.code != Some(0) && ran.stderr.contains("git checkout"), "{ran:?}");
}

#[tokio::test]
async fn a_worktree_is_removed_when_its_session_ended_and_its_work_is_given_up() {
    let world = World::new();
    let root = world.repository("app");
    let server = world.serve().await;
    let (session, tree) = in_worktree(&world, &server).await;
    let name = session.worktree_name.clone().unwrap();
    let remove = format!("/api/projects/app/worktrees/{name}/remove");
    let confirmed = json!({ "confirm": name });
    let listed = worktrees(&server).await.worktrees;
    assert_eq!(listed[0].instance_id.as_ref(), Some(&session.instance_id));
    assert!(listed[0].in_use && listed[0].loses.is_empty(), "{listed:?}");
    // No confirmation takes a directory from under a session.
    let reply = server.client.post_json(&remove, &confirmed).await;
    assert_eq!(reply.refused(409), "still_live");

    // A lock that a person put on it outlives the session.
    git(&root, &["worktree", "lock", "--reason", "mine", tree.to_str().unwrap()]);
    server.client.stop(session.instance_id.as_str()).await.expect(200);
    assert!(worktrees(&server).await.worktrees[0].locked);
    git(&root, &["worktree", "unlock", tree.to_str().unwrap()]);
    fs::write(tree.join("work"), "unsaved\n").unwrap();
    git(&tree, &["commit", "-q", "--allow-empty", "-m", "ahead"]);
    let kept = &worktrees(&server).await.worktrees[0];
    assert_eq!((kept.in_use, kept.changed, kept.ahead), (false, Some(1), Some(1)));
    assert_eq!(kept.loses, ["changes in 1 file that are in no commit"]);
    let reply = server.client.post(&remove).await;
    assert_eq!(reply.refused(409), "confirm_required");
    assert!(reply.text().contains("1 file"), "{}", reply.text());
    let wrong = json!({ "confirm": "svc-other" });
    let reply = server.client.post_json(&remove, &wrong).await;
    assert_eq!(reply.refused(409), "confirm_required");
    assert!(tree.join("work").exists());
    let ran = world.cli(&["worktrees", "remove", "app", &name]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");

    // What was confirmed an hour ago is not what would be lost now.
    fs::write(tree.join("more"), "unsaved\n").unwrap();
    let seen = json!({ "confirm": name, "loses": kept.loses });
    let reply = server.client.post_json(&remove, &seen).await;
    assert_eq!(reply.refused(409), "confirm_required");
    assert!(reply.text().contains("2 files") && tree.join("work").exists(), "{}", reply.text());
    fs::remove_file(tree.join("more")).unwrap();
    let done = server.client.post_json(&remove, &confirmed).await.expect(200).json();
    assert_eq!(done["files_left"], Value::Null);
    assert_eq!(done["kept_branch"], Value::from(format!("worktree-{name}")));
    assert_eq!(done["lost"], json!(["changes in 1 file that are in no commit"]));
    assert!(!tree.exists() && root.join("README.md").exists());
    git(&root, &["rev-parse", "--verify", "--quiet", &format!("worktree-{name}")]);
    assert_eq!(server.client.post(&remove).await.refused(404), "not_found");
    assert_eq!(worktrees(&server).await, Worktrees::default());
}

#[tokio::test]
async fn worktrees_are_listed_and_removed_without_a_server() {
    let world = World::new();
    let root = world.repository("app");
    world.project("plain");
    git(
        &root,
        &["worktree", "add", "-q", "-b", "worktree-svc-00000001", ".claude/worktrees/svc-00000001"],
    );
    let listed = world.cli(&["worktrees", "--json"]).await.ok().json();
    assert_eq!(
        (listed[0]["project"].as_str(), listed[0]["name"].as_str()),
        (Some("app"), Some("svc-00000001"))
    );
    let text = world.cli(&["worktrees", "list", "app"]).await.ok();
    assert!(text.stdout.contains("worktree-svc-00000001"), "{}", text.stdout);
    // A process works there: its directory is not taken away.
    let tree = root.join(".claude/worktrees/svc-00000001");
    let mut worker = Command::new("sleep").arg("600").current_dir(&tree).spawn().unwrap();
    let refused = world.cli(&["worktrees", "remove", "app", "svc-00000001", "--force"]).await;
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert!(refused.code != Some(0) && refused.stderr.contains("works in it"), "{refused:?}");
    let done = world.cli(&["worktrees", "remove", "app", "svc-00000001"]).await.ok();
    assert!(done.stdout.contains("removed worktree"), "{}", done.stdout);
    assert!(!tree.exists());
    let none = world.cli(&["worktrees", "--json"]).await.ok().json();
    assert_eq!(none, json!([]));
    // A project that cannot be read hides no other.
    let other = world.repository("other");
    git(&other, &["worktree", "add", "-q", ".claude/worktrees/svc-00000002"]);
    fs::rename(root.join(".claude"), root.join("aside")).unwrap();
    fs::create_dir_all(root.join("aside/worktrees")).unwrap();
    symlink("aside", root.join(".claude")).unwrap();
    let ran = world.cli(&["worktrees", "--json"]).await.ok();
    assert_eq!(ran.json()[0]["name"], "svc-00000002");
    assert!(ran.stderr.contains("project 'app'"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_reader_is_told_when_the_files_of_its_session_change() {
    let world = World::new();
    world.repository("app");
    world.project("plain");
    let server = world.serve().await;
    let (session, tree) = in_worktree(&world, &server).await;
    let path = format!("/ws/changes/{}", session.instance_id);
    let mut told = socket(&server.base, &path).await;
    assert_eq!(notice(&mut told).await, json!({ "changed": false, "complete": true }));
    fs::write(tree.join("README.md"), "other\n").unwrap();
    assert_eq!(notice(&mut told).await["changed"], true);
    // A folder that did not exist when the watch began.
    fs::create_dir(tree.join("deep")).unwrap();
    fs::write(tree.join("deep/one"), "1\n").unwrap();
    assert_eq!(notice(&mut told).await["changed"], true);
    fs::write(tree.join("deep/one"), "one\ntwo\n").unwrap();
    assert_eq!(notice(&mut told).await["changed"], true);
    // Only the index: no file of the checkout is touched.
    git(&tree, &["rm", "-q", "--cached", "README.md"]);
    assert_eq!(notice(&mut told).await["changed"], true);

    let plain = server.client.run("plain").await;
    let mut refused = socket(&server.base, &format!("/ws/changes/{}", plain.instance_id)).await;
    let end = within("a close", refused.next()).await.unwrap().unwrap();
    assert!(end.is_close(), "{end:?}");
}

async fn notice(told: &mut Socket) -> Value {
    loop {
        let message = within("a notice", told.next()).await.unwrap().unwrap();
        if let Ok(text) = message.to_text()
            && message.is_text()
        {
            return serde_json::from_str(text).unwrap();
        }
    }
}
