//! Worktrees of the agent: listed as they are, and removed without anything else.

use crate::git_facts::git;
use crate::support::Bench;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use svc_projects::worktrees::{self, WorktreeError};

/// A repository with one commit and one worktree, as the agent makes it.
fn repository(bench: &Bench, name: &str) -> (PathBuf, PathBuf) {
    let root = bench.at("app");
    assert!(git(&root, "init -q -b main"));
    fs::write(root.join("text"), "a\n").unwrap();
    assert!(git(&root, "add .") && git(&root, "commit -q -m first"));
    let tree = add(&root, name);
    (root, tree)
}

fn add(root: &Path, name: &str) -> PathBuf {
    let place = format!(".claude/worktrees/{name}");
    assert!(git(root, &format!("worktree add -q -b worktree-{name} {place}")));
    root.join(place)
}

#[tokio::test]
async fn a_worktree_is_listed_with_what_is_in_it() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    add(&root, "svc-00000002");
    fs::write(tree.join("text"), "b\n").unwrap();
    assert!(git(&tree, "commit -q -a -m second"));
    fs::write(tree.join("text"), "c\n").unwrap();
    fs::write(tree.join("new"), "c\n").unwrap();
    assert!(git(&root, "worktree lock .claude/worktrees/svc-00000001"));
    fs::create_dir(root.join(".claude/worktrees/left")).unwrap();
    let listed = worktrees::list(&root).await.unwrap();
    let [left, one, two] = listed.found.as_slice() else { panic!("{listed:?}") };
    assert!(left.trouble.is_some() && left.changed.is_none());
    assert_eq!(one.branch.as_deref(), Some("worktree-svc-00000001"));
    assert_eq!((one.ahead, one.changed, one.loose), (Some(1), Some(2), Some(0)));
    assert!(one.is_locked && one.size_bytes.is_some_and(|size| size > 3));
    assert_eq!((two.ahead, two.changed, two.is_locked), (Some(0), Some(0), false));
    assert_eq!(two.base.as_deref(), Some("main"));
    let plain = Bench::new(&["plain"]);
    assert!(worktrees::list(&plain.at("plain")).await.unwrap().found.is_empty());
}

#[tokio::test]
async fn a_clean_worktree_goes_with_its_merged_branch_and_leaves_another_ones() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    let ahead = add(&root, "svc-00000002");
    fs::write(ahead.join("text"), "b\n").unwrap();
    assert!(git(&ahead, "commit -q -a -m second"));
    let found = worktrees::named(&root, "svc-00000001").await.unwrap();
    let removed = worktrees::remove(&root, &root, &found, false).await.unwrap();
    assert_eq!(removed.kept_branch, None);
    assert!(!tree.exists() && ahead.exists());
    assert!(!git(&root, "rev-parse --verify --quiet worktree-svc-00000001"));
    let found = worktrees::named(&root, "svc-00000002").await.unwrap();
    let removed = worktrees::remove(&root, &root, &found, false).await.unwrap();
    assert_eq!(removed.kept_branch.as_deref(), Some("worktree-svc-00000002"));
    assert!(!ahead.exists() && git(&root, "rev-parse --verify --quiet worktree-svc-00000002"));
}

#[tokio::test]
async fn changed_files_stay_without_force() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    fs::write(tree.join("new"), "work\n").unwrap();
    let found = worktrees::named(&root, "svc-00000001").await.unwrap();
    // The caller asks first; git refuses all the same.
    let refused = worktrees::remove(&root, &root, &found, false).await;
    assert!(matches!(refused, Err(WorktreeError::Git(_))), "{refused:?}");
    assert!(tree.join("new").exists());
    worktrees::remove(&root, &root, &found, true).await.unwrap();
    assert!(!tree.exists());
}

#[tokio::test]
async fn commits_that_no_branch_has_are_counted() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    assert!(git(&tree, "checkout -q --detach"));
    fs::write(tree.join("text"), "b\n").unwrap();
    assert!(git(&tree, "commit -q -a -m second"));
    let found = worktrees::named(&root, "svc-00000001").await.unwrap();
    assert_eq!((found.branch, found.loose, found.changed), (None, Some(1), Some(0)));
}

/// H41: neither a list nor a removal runs a filter of a repository.
#[tokio::test]
async fn h41_no_filter_of_a_submodule_or_of_a_worktree_is_run() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    let (ran, driver) = (bench.base.join("ran"), |ran: &Path| {
        format!("[filter \"x\"]\n\tclean = \"touch '{}'; cat\"\n", ran.display())
    });
    let append = |path: PathBuf, text: &str| {
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, before + text).unwrap();
    };
    let sub = tree.join("sub");
    fs::create_dir(&sub).unwrap();
    assert!(git(&sub, "init -q -b main"));
    fs::write(sub.join("text"), "a\n").unwrap();
    assert!(git(&sub, "add .") && git(&sub, "commit -q -m first"));
    assert!(git(&tree, "add sub") && git(&tree, "commit -q -m sub"));
    append(sub.join(".git/config"), &driver(&ran));
    append(sub.join(".git/info/attributes"), "* filter=x\n");
    // The same content, written again: git must read it to know.
    fs::write(sub.join("text"), "a\n").unwrap();
    let listed = worktrees::list(&root).await.unwrap();
    assert_eq!(listed.found[0].trouble, None);
    assert!(!ran.exists(), "a list ran a command of the submodule");

    let other = add(&root, "svc-00000002");
    assert!(git(&root, "config extensions.worktreeConfig true"));
    append(root.join(".git/worktrees/svc-00000002/config.worktree"), &driver(&ran));
    append(root.join(".git/info/attributes"), "* filter=x\n");
    fs::write(other.join("text"), "a\n").unwrap();
    let found = worktrees::named(&root, "svc-00000002").await.unwrap();
    worktrees::remove(&root, &root, &found, false).await.unwrap();
    assert!(!other.exists() && !ran.exists(), "a removal ran a command of the worktree");
}

/// H41: a name that cannot be repeated in an option would leave its driver on.
#[tokio::test]
async fn h41_a_filter_whose_name_is_no_text_is_not_run() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    let ran = bench.base.join("ran");
    let mut config = fs::read(root.join(".git/config")).unwrap();
    config.extend(b"[filter \"\xff\"]\n\tclean = \"touch '");
    config.extend(format!("{}'; cat\"\n", ran.display()).as_bytes());
    fs::write(root.join(".git/config"), config).unwrap();
    fs::create_dir_all(root.join(".git/info")).unwrap();
    fs::write(root.join(".git/info/attributes"), b"* filter=\xff\n").unwrap();
    fs::write(tree.join("text"), "b\n").unwrap();
    let listed = worktrees::list(&root).await.unwrap();
    assert!(!ran.exists(), "a list ran a command of the repository");
    assert!(listed.found[0].trouble.as_ref().unwrap().contains("odd name"), "{listed:?}");
}

#[tokio::test]
async fn what_submodules_hold_is_named_before_it_is_lost() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    let sub = tree.join("sub");
    fs::create_dir(&sub).unwrap();
    assert!(git(&sub, "init -q -b main") && git(&sub, "commit -q --allow-empty -m first"));
    assert!(git(&tree, "add sub") && git(&tree, "commit -q -m sub"));
    fs::write(sub.join("unsaved"), "work\n").unwrap();
    let found = worktrees::named(&root, "svc-00000001").await.unwrap();
    assert_eq!((found.changed, found.has_submodules), (Some(0), true));
    add(&root, "svc-00000002");
    let plain = worktrees::named(&root, "svc-00000002").await.unwrap();
    assert!(!plain.has_submodules);
}

#[tokio::test]
async fn a_repository_may_name_files_below_the_home_directory() {
    let bench = Bench::new(&["app"]);
    let (root, _) = repository(&bench, "svc-00000001");
    assert!(git(&root, "config core.excludesFile ~/.ignored-by-nobody"));
    assert_eq!(worktrees::named(&root, "svc-00000001").await.unwrap().trouble, None);
}

#[tokio::test]
async fn new_files_are_counted_one_by_one() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    fs::create_dir(tree.join("new")).unwrap();
    for name in ["one", "two", "three"] {
        fs::write(tree.join("new").join(name), "work\n").unwrap();
    }
    assert_eq!(worktrees::named(&root, "svc-00000001").await.unwrap().changed, Some(3));
}

#[tokio::test]
async fn a_lock_is_told_with_its_reason() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    assert_eq!(worktrees::lock_reason(&tree), None);
    assert!(git(&root, "worktree lock --reason mine .claude/worktrees/svc-00000001"));
    assert_eq!(worktrees::lock_reason(&tree).as_deref(), Some("mine"));
}

#[tokio::test]
async fn a_worktree_behind_a_long_list_is_found_by_its_name() {
    let bench = Bench::new(&["app"]);
    let (root, tree) = repository(&bench, "svc-zzzzzzzz");
    for number in 0..120 {
        fs::create_dir(root.join(format!(".claude/worktrees/a{number}"))).unwrap();
    }
    assert!(worktrees::list(&root).await.unwrap().truncated);
    assert_eq!(worktrees::named(&root, "svc-zzzzzzzz").await.unwrap().path, tree);
}

#[tokio::test]
async fn nothing_outside_the_place_of_worktrees_is_touched() {
    let bench = Bench::new(&["app", "other"]);
    let (root, tree) = repository(&bench, "svc-00000001");
    for name in ["..", ".", "", "svc-0000000", "../../..", "svc-00000001/..", "/etc", "-f"] {
        let found = worktrees::named(&root, name).await;
        assert!(matches!(found, Err(WorktreeError::Unknown)), "{name:?}: {found:?}");
    }
    // A worktree of another repository, and a link to a directory elsewhere.
    let other = bench.at("other");
    assert!(git(&other, "init -q -b main"));
    assert!(git(&other, "commit -q --allow-empty -m first"));
    let place = root.join(".claude/worktrees/svc-00000002");
    assert!(git(&other, &format!("worktree add -q {}", place.display())));
    let found = worktrees::named(&root, "svc-00000002").await.unwrap();
    let refused = worktrees::remove(&root, &root, &found, true).await;
    assert!(matches!(refused, Err(WorktreeError::Elsewhere(_))), "{refused:?}");
    assert!(place.exists());
    let elsewhere = bench.base.join("elsewhere");
    fs::write(elsewhere.join("precious"), "s\n").unwrap();
    symlink(&elsewhere, root.join(".claude/worktrees/svc-00000003")).unwrap();
    let linked = worktrees::named(&root, "svc-00000003").await;
    assert!(matches!(linked, Err(WorktreeError::Unknown)), "{linked:?}");
    // The place itself moved, with a link in its place.
    let found = worktrees::named(&root, "svc-00000001").await.unwrap();
    fs::rename(root.join(".claude/worktrees"), elsewhere.join("moved")).unwrap();
    symlink(elsewhere.join("moved"), root.join(".claude/worktrees")).unwrap();
    let refused = worktrees::remove(&root, &root, &found, true).await;
    assert!(matches!(refused, Err(WorktreeError::Elsewhere(_))), "{refused:?}");
    assert!(elsewhere.join("precious").exists() && elsewhere.join("moved/svc-00000001").exists());
    drop(tree);
}

#[tokio::test]
async fn h41_a_removal_runs_no_hook_of_the_repository() {
    let bench = Bench::new(&["app"]);
    let (root, _) = repository(&bench, "svc-00000001");
    let trace = bench.base.join("elsewhere/trace");
    for hook in ["reference-transaction", "post-checkout", "post-index-change"] {
        let hook = root.join(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        svc_programs::write(&hook, format!("#!/bin/sh\necho run >> {}\n", trace.display()))
            .unwrap();
    }
    let config =
        format!("config core.fsmonitor {}", root.join(".git/hooks/post-checkout").display());
    assert!(git(&root, &config));
    let _ = fs::remove_file(&trace);
    let found = worktrees::named(&root, "svc-00000001").await.unwrap();
    worktrees::remove(&root, &root, &found, false).await.unwrap();
    assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap());
}
