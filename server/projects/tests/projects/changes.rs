//! What changed in a checkout, against what git itself wrote.

use crate::git_facts::git;
use crate::support::Bench;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use svc_projects::changes::{self, Against, ChangesError, Kind, Part, Sign, Status};

/// A repository on `main` with a few files in one commit.
fn repository(bench: &Bench) -> PathBuf {
    let root = bench.at("app");
    assert!(git(&root, "init -q -b main"));
    let numbered: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    for (name, content) in
        [("kept", "same\n"), ("gone", "bye\n"), ("old", &numbered), ("text", "a\nb\n")]
    {
        fs::write(root.join(name), content).unwrap();
    }
    symlink("kept", root.join("link")).unwrap();
    assert!(git(&root, "add .") && git(&root, "commit -q -m first"));
    root
}

fn part(path: &str) -> Part<'_> {
    Part { path, context: 3, from: 0 }
}

#[tokio::test]
async fn every_kind_of_change_is_named_with_its_counts() {
    let bench = Bench::new(&["app"]);
    let root = repository(&bench);
    assert!(git(&root, "mv old new"));
    fs::write(root.join("text"), "a\nB\nc\n").unwrap();
    fs::remove_file(root.join("gone")).unwrap();
    fs::write(root.join("binary"), b"a\0b").unwrap();
    fs::write(root.join("added"), "one\n").unwrap();
    assert!(git(&root, "add binary added"));
    fs::remove_file(root.join("link")).unwrap();
    symlink("text", root.join("link")).unwrap();
    fs::write(root.join("un tracked"), "x\ny\n").unwrap();
    let listed = changes::list(&root, Against::Head).await.unwrap();
    assert_eq!((listed.base.merge_base, listed.base.reference.as_str()), (false, "HEAD"));
    let found: Vec<_> = listed
        .files
        .iter()
        .map(|f| (f.path.as_str(), f.status, f.kind, f.additions, f.deletions))
        .collect();
    assert_eq!(
        found,
        [
            ("added", Status::Added, Kind::Text, Some(1), Some(0)),
            ("binary", Status::Added, Kind::Binary, None, None),
            ("gone", Status::Deleted, Kind::Text, Some(0), Some(1)),
            ("link", Status::Modified, Kind::Symlink, Some(1), Some(1)),
            ("new", Status::Renamed, Kind::Text, Some(0), Some(0)),
            ("text", Status::Modified, Kind::Text, Some(2), Some(1)),
            ("un tracked", Status::Untracked, Kind::Text, Some(2), Some(0)),
        ]
    );
    assert_eq!(listed.files[4].old_path.as_deref(), Some("old"));

    let text = changes::file(&root, Against::Head, part("text")).await.unwrap();
    let lines: Vec<_> = text.hunks[0].lines.iter().map(|l| (l.sign, l.text.as_str())).collect();
    let expected =
        [(Sign::Same, "a"), (Sign::Deleted, "b"), (Sign::Added, "B"), (Sign::Added, "c")];
    assert_eq!(lines, expected);
    let fresh = changes::file(&root, Against::Head, part("un tracked")).await.unwrap();
    assert_eq!(fresh.hunks[0].lines.len(), 2);
    let binary = changes::file(&root, Against::Head, part("binary")).await.unwrap();
    assert!(binary.hunks.is_empty());
}

#[tokio::test]
async fn a_worktree_is_compared_with_where_it_left_the_default_branch() {
    let bench = Bench::new(&["app"]);
    let root = repository(&bench);
    assert!(git(&root, "worktree add -q -b side .claude/worktrees/side"));
    let tree = root.join(".claude/worktrees/side");
    fs::write(tree.join("text"), "a\nb\nc\n").unwrap();
    assert!(git(&tree, "commit -q -a -m second"));
    fs::write(root.join("text"), "elsewhere\n").unwrap();
    assert!(git(&root, "commit -q -a -m third"));
    let listed = changes::list(&tree, Against::DefaultBranch).await.unwrap();
    assert_eq!((listed.base.merge_base, listed.base.reference.as_str()), (true, "main"));
    let paths: Vec<&str> = listed.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["text"]);
    let head = changes::list(&tree, Against::Head).await.unwrap();
    assert!(head.files.is_empty());
}

#[tokio::test]
async fn a_repository_without_a_commit_is_all_new() {
    let bench = Bench::new(&["app", "plain"]);
    let root = bench.at("app");
    assert!(git(&root, "init -q"));
    fs::write(root.join("one"), "1\n").unwrap();
    assert!(git(&root, "add one"));
    let listed = changes::list(&root, Against::DefaultBranch).await.unwrap();
    assert_eq!((listed.base.commit.as_str(), listed.files[0].status), ("", Status::Added));
    let plain = changes::list(&bench.at("plain"), Against::Head).await;
    assert!(matches!(plain, Err(ChangesError::NotGit)));
}

#[tokio::test]
async fn a_path_that_is_not_in_the_list_is_not_read() {
    let bench = Bench::new(&["app"]);
    let root = repository(&bench);
    fs::write(bench.base.join("config/secret"), "s\n").unwrap();
    symlink(bench.base.join("config"), root.join("out")).unwrap();
    for path in ["../config/secret", "/etc/passwd", "", "a/../../b", "./text"] {
        let found = changes::file(&root, Against::Head, part(path)).await;
        assert!(matches!(found, Err(ChangesError::PathEscape)), "{path:?}: {found:?}");
    }
    for path in ["kept", ".git/config", "out/secret", "-h", ":(top)text", "--output=x"] {
        let found = changes::file(&root, Against::Head, part(path)).await;
        assert!(matches!(found, Err(ChangesError::NoSuchFile)), "{path:?}: {found:?}");
    }
    // The link itself is listed, and shows where it leads instead of what is there.
    let link = changes::file(&root, Against::Head, part("out")).await.unwrap();
    assert_eq!(link.hunks[0].lines.len(), 1);
    assert!(link.hunks[0].lines[0].text.ends_with("/config"));
}

/// A program that leaves a trace beside the projects when it is run.
fn trap(bench: &Bench, root: &Path) -> (String, PathBuf) {
    let trace = bench.base.join("elsewhere/trace");
    let program = root.join(".git/trap");
    svc_programs::write(&program, format!("#!/bin/sh\necho run >> {}\ncat\n", trace.display()))
        .unwrap();
    (program.display().to_string(), trace)
}

#[tokio::test]
async fn h41_nothing_that_a_repository_configures_is_run() {
    let bench = Bench::new(&["app"]);
    let root = repository(&bench);
    let (program, trace) = trap(&bench, &root);
    fs::write(root.join(".gitattributes"), "* filter=trap diff=trap merge=trap\n").unwrap();
    let settings = format!(
        "[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\thooksPath = {program}\n\
         \teditor = {program}\n\tsshCommand = {program}\n\
         [filter \"trap\"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n\
         \trequired = true\n\
         [filter \"Other.Trap\"]\n\tclean = {program}\n\
         [diff]\n\texternal = {program}\n\torderFile = {program}\n\
         [diff \"trap\"]\n\tcommand = {program}\n\ttextconv = {program}\n\
         [pager]\n\tdiff = {program}\n[alias]\n\tdiff = !{program}\n"
    );
    let config = root.join(".git/config");
    fs::write(&config, fs::read_to_string(&config).unwrap() + &settings).unwrap();
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    for hook in ["post-index-change", "fsmonitor-watchman", "pre-commit"] {
        svc_programs::copy(root.join(".git/trap"), root.join(".git/hooks").join(hook)).unwrap();
    }
    fs::write(root.join("text"), "a\nchanged\n").unwrap();
    let listed = changes::list(&root, Against::DefaultBranch).await.unwrap();
    assert!(listed.files.iter().any(|file| file.path == "text"));
    let text = changes::file(&root, Against::DefaultBranch, part("text")).await.unwrap();
    assert_eq!(text.hunks.len(), 1);
    assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap());
    // The same question asked without care does run it, so the trap works.
    assert!(git(&root, "add text") || trace.exists());
    assert!(trace.exists());
}

#[tokio::test]
async fn h41_a_work_tree_elsewhere_is_not_read() {
    let bench = Bench::new(&["app"]);
    let root = repository(&bench);
    let elsewhere = bench.base.join("elsewhere");
    fs::write(elsewhere.join("text"), "not yours\n").unwrap();
    assert!(git(&root, &format!("config core.worktree {}", elsewhere.display())));
    match changes::list(&root, Against::Head).await {
        Ok(listed) => assert!(listed.files.is_empty(), "{listed:?}"),
        Err(error) => assert!(matches!(error, ChangesError::Git(_)), "{error:?}"),
    }
}

#[tokio::test]
async fn odd_names_are_listed_and_their_lines_are_found_by_the_name_of_the_list() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let bench = Bench::new(&["app"]);
    let root = repository(&bench);
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let names: [&[u8]; 4] = [b"not \xff text", b"two\nlines", b"-h", token.as_bytes()];
    for name in names {
        fs::write(root.join(OsStr::from_bytes(name)), "one\n").unwrap();
    }
    assert!(git(&root, "add -A"));
    fs::write(root.join("plain\u{1b}[31m"), "one\n").unwrap();
    let listed = changes::list(&root, Against::Head).await.unwrap();
    assert_eq!(listed.files.len(), 5);
    for file in &listed.files {
        assert!(!file.path.contains(&token) && !file.path.contains('\u{1b}'), "{}", file.path);
        let found = changes::file(&root, Against::Head, part(&file.path)).await.unwrap();
        let lines: Vec<&str> = found.hunks[0].lines.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(lines, ["one"], "{}", file.path);
    }
}

#[tokio::test]
async fn secrets_in_lines_are_masked_and_counted_over_the_whole_file() {
    let bench = Bench::new(&["app"]);
    let root = repository(&bench);
    let secret = format!("sk-ant-api03-{}", "x1Y2".repeat(20));
    fs::write(root.join("text"), format!("a\nkey = {secret}\n")).unwrap();
    let key =
        format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n", "c2\n".repeat(20));
    fs::write(root.join("key"), key).unwrap();
    let text = changes::file(&root, Against::Head, part("text")).await.unwrap();
    assert_eq!(text.masked, 1);
    assert!(!format!("{text:?}").contains(&secret));
    let asked = Part { from: 10, ..part("key") };
    let rest = changes::file(&root, Against::Head, asked).await.unwrap();
    assert_eq!(rest.masked, 22, "the lines before the asked ones count too");
    assert!(!format!("{:?}", rest.hunks).contains("\"c2\""), "{:?}", rest.hunks);
}

#[tokio::test]
async fn a_new_file_that_is_too_large_says_so_instead_of_its_lines() {
    let bench = Bench::new(&["app"]);
    let root = repository(&bench);
    let file = fs::File::create(root.join("huge")).unwrap();
    file.set_len(64 * 1024 * 1024).unwrap();
    let listed = changes::list(&root, Against::Head).await.unwrap();
    assert_eq!((listed.files[0].additions, listed.files[0].kind), (None, Kind::Text));
    let huge = changes::file(&root, Against::Head, part("huge")).await.unwrap();
    assert!(huge.too_large && huge.hunks.is_empty());
}
