//! Git facts, against what git itself writes.

use crate::support::{Bench, get};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs git with no configuration but the repository's own.
#[track_caller]
pub fn git(dir: &Path, line: &str) -> bool {
    let status = Command::new("git")
        .args(line.split(' '))
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", dir)
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")])
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
        .output()
        .unwrap();
    status.status.success()
}

#[track_caller]
fn commit(dir: &Path) {
    assert!(git(dir, "commit -q --allow-empty -m first"));
}

fn has_commit(bench: &Bench, name: &str) -> bool {
    get(&bench.scan(), name).unwrap().has_commit()
}

#[test]
fn a_repository_has_a_commit_after_the_first_one() {
    let bench = Bench::new(&["app", "plain"]);
    assert!(!has_commit(&bench, "plain"));
    let app = bench.at("app");
    assert!(git(&app, "init -q"));
    assert!(get(&bench.scan(), "app").unwrap().is_git_repo());
    assert!(!has_commit(&bench, "app"));
    commit(&app);
    assert!(has_commit(&bench, "app"));
    assert!(git(&app, "pack-refs --all"));
    assert!(
        !app.join(".git/refs/heads/master").exists() && !app.join(".git/refs/heads/main").exists()
    );
    assert!(has_commit(&bench, "app"));
    assert!(git(&app, "checkout -q --detach"));
    assert!(has_commit(&bench, "app"));
    assert!(git(&app, "checkout -q --orphan nothing-yet"));
    assert!(!has_commit(&bench, "app"));
}

#[test]
fn a_worktree_finds_its_commit_in_the_repository_it_belongs_to() {
    let bench = Bench::new(&["main"]);
    let main = bench.at("main");
    assert!(git(&main, "init -q"));
    commit(&main);
    assert!(git(&main, "worktree add -q ../tree -b topic/one"));
    assert!(bench.at("tree/.git").is_file());
    assert!(has_commit(&bench, "tree"));
    assert!(git(&main, "pack-refs --all"));
    assert!(has_commit(&bench, "tree"));
    assert_eq!(get(&bench.scan(), "tree").unwrap().git_root, Some(bench.at("tree")));
    fs::remove_dir_all(main.join(".git")).unwrap();
    assert!(!has_commit(&bench, "tree"));
}

#[test]
fn another_hash_and_reference_tables_are_understood_where_git_has_them() {
    let bench = Bench::new(&["sha256", "tables"]);
    // Git before 2.29 and 2.45 do not know these; then there is nothing to understand.
    if git(&bench.at("sha256"), "init -q --object-format=sha256") {
        assert!(!has_commit(&bench, "sha256"));
        commit(&bench.at("sha256"));
        assert!(has_commit(&bench, "sha256"));
    }
    if git(&bench.at("tables"), "init -q --ref-format=reftable") {
        commit(&bench.at("tables"));
        assert!(has_commit(&bench, "tables"));
    }
}

/// `agent-cli` §6.3: trust asks for the nearest root.
#[test]
fn a_project_belongs_to_the_nearest_repository_around_it() {
    let bench = Bench::new(&["own/.git", "inner"]);
    bench.link("linked", bench.base.join("home/code"));
    fs::write(bench.base.join(".git"), "gitdir: nowhere").unwrap();
    fs::create_dir(bench.base.join("home/.git")).unwrap();
    let projects = bench.scan();
    let root = |name: &str| get(&projects, name).unwrap().git_root.clone();
    assert_eq!(root("own"), Some(bench.at("own")));
    assert_eq!(root("inner"), Some(bench.base.clone()));
    assert_eq!(root("linked"), Some(bench.base.join("home")));
    assert!(get(&projects, "inner").unwrap().is_git_repo());
    assert!(!get(&projects, "inner").unwrap().has_commit());
}
