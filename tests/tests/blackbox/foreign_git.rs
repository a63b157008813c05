//! No launch writes into another repository that git files lead to.

use crate::harness::World;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Every file of a tree with its content, and every link with its target.
fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let (path, kind) = entry.map(|e| (e.path(), e.file_type().unwrap())).unwrap();
            if kind.is_dir() {
                found.insert(path.clone(), Vec::new());
                pending.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.insert(path, target.into_os_string().into_encoded_bytes());
            } else {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Makes the git files of `project` lead into `victim`.
type Lead = fn(project: &Path, victim: &Path);

const LEADS: [(&str, Lead); 27] = [
    ("a file that names a worktree of it", |project, victim| {
        gone(project, ".git");
        let line = format!("gitdir: {}\n", victim.join(".git/worktrees/tree").display());
        fs::write(project.join(".git"), line).unwrap();
    }),
    ("a file that names it", |project, victim| {
        gone(project, ".git");
        let line = format!("gitdir: {}\n", victim.join(".git").display());
        fs::write(project.join(".git"), line).unwrap();
    }),
    ("a link to it", |project, victim| {
        gone(project, ".git");
        symlink(victim.join(".git"), project.join(".git")).unwrap();
    }),
    ("a link to a worktree's file", |project, victim| {
        gone(project, ".git");
        symlink(victim.with_file_name("tree").join(".git"), project.join(".git")).unwrap();
    }),
    ("core.worktree", |project, victim| {
        git(project, &["config", "core.worktree", victim.to_str().unwrap()]);
    }),
    ("core.worktree in odd spelling", |project, victim| {
        let line = format!("[CORE]\n\tWorkTree = \"{}\" ; x\n", victim.display());
        let config = project.join(".git/config");
        fs::write(&config, fs::read_to_string(&config).unwrap() + &line).unwrap();
    }),
    ("core.worktree in an included file", |project, victim| {
        fs::write(project.join("more"), format!("[core]\nworktree={}\n", victim.display()))
            .unwrap();
        git(project, &["config", "include.path", "../more"]);
    }),
    ("core.worktree in a file included under a condition", |project, victim| {
        fs::write(project.join("more"), format!("[core]\nworktree={}\n", victim.display()))
            .unwrap();
        git(project, &["config", "includeIf.gitdir:**.path", "../more"]);
    }),
    ("core.worktree of the worktree", |project, victim| {
        git(project, &["config", "extensions.worktreeConfig", "true"]);
        let text = format!("[core]\n\tworktree = {}\n", victim.display());
        fs::write(project.join(".git/config.worktree"), text).unwrap();
    }),
    ("core.worktree before a comment with a bracket", |project, victim| {
        configured(project, "", &format!("[core] worktree = {} ;]\n", victim.display()));
    }),
    ("core.worktree behind a byte order mark", |project, victim| {
        let text = format!("\u{feff}[core]\nworktree = {}\n", victim.display());
        configured(project, &text, "");
    }),
    ("core.worktree on two lines of Windows", |project, _| {
        let text = format!("[core]\r\nworktree = {}\\\r\n/../victim\r\n", project.display());
        configured(project, "", &text);
    }),
    ("core.worktree behind two sections on a line", |project, victim| {
        configured(project, "", &format!("[a] [core] worktree = {}\n", victim.display()));
    }),
    ("core.worktree behind a comment that seems to go on", |project, victim| {
        let text = format!("[core] # so \\\nworktree = {}\n", victim.display());
        configured(project, "", &text);
    }),
    ("core.worktree as a subsection that ends early", |project, victim| {
        let text = format!("[core \"worktree\0\"] x = {}\n", victim.display());
        configured(project, "", &text);
    }),
    ("core.worktree in a file included before a comment with a bracket", |project, victim| {
        fs::write(project.join("more"), format!("[core]\nworktree={}\n", victim.display()))
            .unwrap();
        configured(project, "", "[include] path = ../more ;]\n");
    }),
    ("a common directory", |project, victim| {
        fs::write(project.join(".git/commondir"), victim.join(".git").to_str().unwrap()).unwrap();
    }),
    ("linked worktrees", |project, victim| {
        symlink(victim.join(".git/worktrees"), project.join(".git/worktrees")).unwrap();
    }),
    ("linked branches", |project, victim| {
        gone(project, ".git/refs/heads");
        symlink(victim.join(".git/refs/heads"), project.join(".git/refs/heads")).unwrap();
    }),
    ("linked objects", |project, victim| {
        gone(project, ".git/objects");
        symlink(victim.join(".git/objects"), project.join(".git/objects")).unwrap();
    }),
    ("a linked directory of objects", |project, victim| linked(project, victim, "objects/4b")),
    ("a linked log", |project, victim| linked(project, victim, "logs/HEAD")),
    ("a linked directory of logs", |project, victim| linked(project, victim, "logs/refs/x")),
    ("a linked log of a branch", |project, victim| linked(project, victim, "logs/refs/heads/x")),
    ("one linked worktree", |project, victim| linked(project, victim, "worktrees/tree")),
    ("a link among the agent's worktrees", |project, victim| {
        fs::create_dir_all(project.join(".claude/worktrees")).unwrap();
        symlink(victim, project.join(".claude/worktrees/x")).unwrap();
    }),
    ("a linked place for worktrees", |project, victim| {
        fs::create_dir(project.join(".claude")).unwrap();
        symlink(victim, project.join(".claude/worktrees")).unwrap();
    }),
];

fn gone(project: &Path, path: &str) {
    fs::remove_dir_all(project.join(path)).unwrap();
}

/// Puts text before and behind what a configuration says.
fn configured(project: &Path, before: &str, behind: &str) {
    let config = project.join(".git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{before}{text}{behind}")).unwrap();
}

/// Makes one path below `.git` a link to that of the other repository.
fn linked(project: &Path, victim: &Path, path: &str) {
    let link = project.join(".git").join(path);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    if link.is_dir() {
        fs::remove_dir_all(&link).unwrap();
    } else if link.exists() {
        fs::remove_file(&link).unwrap();
    }
    symlink(victim.join(".git").join(path), link).unwrap();
}

#[tokio::test]
async fn h41_a_worktree_is_never_made_in_another_repository() {
    let world = World::new();
    let victim = world.repository("victim");
    git(&victim, &["worktree", "add", "-q", "../tree", "-b", "topic"]);
    let before = content(&victim);
    for (number, (_, lead)) in LEADS.into_iter().enumerate() {
        let project = world.repository(&format!("hostile-{number}"));
        lead(&project, &victim);
    }
    let server = world.serve().await;
    for (number, (what, _)) in LEADS.into_iter().enumerate() {
        let name = format!("hostile-{number}");
        let body = json!({ "project": name, "spawn_mode": "worktree" });
        let reply = server.client.launch_with(body).await;
        assert_eq!(reply.refused(422), "invalid_value", "{what}");
        assert!(reply.text().contains("another repository"), "{what}: {}", reply.text());
        let shown = server.client.get(&format!("/api/projects/{name}/preflight")).await.json();
        assert_eq!(shown["launch"]["worktree"]["ok"], false, "{what}");
        assert!(content(&victim) == before, "{what}: the other repository changed");
        assert!(world.starts(&name).is_empty(), "{what}");
    }
}

/// What git itself makes leads where it should.
#[tokio::test]
async fn h41_a_worktree_of_a_repository_of_ones_own_is_made() {
    let world = World::new();
    let plain = world.repository("plain");
    git(&plain, &["worktree", "add", "-q", "../linked", "-b", "topic"]);
    world.trust(&world.projects.join("linked"));
    let named = world.repository("named");
    git(&named, &["config", "core.worktree", "../"]);
    let inner = world.repository("inner");
    fs::rename(inner.join(".git"), inner.join(".hidden")).unwrap();
    fs::write(inner.join(".git"), "gitdir: .hidden\n").unwrap();
    let including = world.repository("including");
    git(&including, &["config", "include.path", "../no-such-file"]);
    let server = world.serve().await;
    for name in ["plain", "linked", "named", "inner", "including"] {
        let body = json!({ "project": name, "spawn_mode": "worktree" });
        let reply = server.client.launch_with(body).await;
        assert_eq!(reply.status, 201, "{name}: {}", reply.text());
    }
}
