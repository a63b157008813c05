//! Changes that discovery reports by itself.

use crate::support::{Bench, alias_of, get, names, why};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;
use svc_projects::{Discovery, Projects, Rules, SkipReason};
use svc_watch::Watcher;

/// Far beyond any machine's latency; only reached when the test fails.
const DEADLINE: Duration = Duration::from_secs(60);

async fn start(bench: &Bench) -> Discovery {
    Discovery::start(bench.rules(), &Watcher::new()).await
}

#[track_caller]
fn until(
    discovery: &Discovery,
    mut is_so: impl FnMut(&Projects) -> bool,
) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    let mut changes = discovery.changes();
    async move {
        let seen = changes.wait_for(|_| is_so(&discovery.snapshot()));
        let seen = tokio::time::timeout(DEADLINE, seen).await;
        assert!(seen.is_ok(), "{caller}: never seen, last was {:#?}", discovery.snapshot());
    }
}

#[tokio::test]
async fn projects_that_come_go_and_are_renamed_are_seen() {
    let bench = Bench::new(&["a"]);
    let discovery = start(&bench).await;
    assert_eq!(names(&discovery.snapshot()), ["a"]);
    bench.make("b");
    bench.make(".hidden");
    bench.make("NUL");
    until(&discovery, |now| names(now) == ["a", "b"] && why(now, "NUL").is_some()).await;
    fs::rename(bench.at("a"), bench.at("c")).unwrap();
    until(&discovery, |now| names(now) == ["b", "c"]).await;
    assert_eq!(get(&discovery.snapshot(), "c").unwrap().path, bench.at("c"));
    fs::remove_dir(bench.at("b")).unwrap();
    fs::write(bench.at("b"), "now a file").unwrap();
    until(&discovery, |now| names(now) == ["c"]).await;
}

#[tokio::test]
async fn facts_inside_a_project_are_seen_come_and_go() {
    let bench = Bench::new(&["a", "b"]);
    let discovery = start(&bench).await;
    bench.make("a/.git");
    bench.make("a/.claude");
    fs::write(bench.at("a/CLAUDE.md"), "").unwrap();
    until(&discovery, |now| {
        let a = get(now, "a").unwrap();
        a.is_git_repo() && a.has_claude_dir && a.has_claude_md
    })
    .await;
    fs::remove_dir(bench.at("a/.git")).unwrap();
    until(&discovery, |now| !get(now, "a").unwrap().is_git_repo()).await;
    assert!(!get(&discovery.snapshot(), "b").unwrap().has_claude_dir);
}

#[tokio::test]
async fn a_project_that_was_replaced_is_watched_in_its_new_place() {
    let bench = Bench::new(&["a"]);
    let discovery = start(&bench).await;
    bench.make("a/.claude");
    until(&discovery, |now| get(now, "a").unwrap().has_claude_dir).await;
    fs::rename(bench.at("a"), bench.base.join("aside")).unwrap();
    bench.make("a");
    until(&discovery, |now| get(now, "a").is_some_and(|a| !a.has_claude_dir)).await;
    bench.make("a/.git");
    until(&discovery, |now| get(now, "a").unwrap().is_git_repo()).await;
}

#[tokio::test]
async fn what_links_lead_to_is_followed_although_nothing_reports_it() {
    let bench = Bench::new(&["real"]);
    let place = bench.base.join("elsewhere");
    bench.link("through", place.join("current/app"));
    bench.link("alias", "real");
    let discovery = start(&bench).await;
    assert_eq!(why(&discovery.snapshot(), "through"), Some(&SkipReason::Dangling));
    assert_eq!(alias_of(&discovery.snapshot(), "real"), Some("alias"));

    for version in ["one/app/.git", "two/app"] {
        fs::create_dir_all(place.join(version)).unwrap();
    }
    symlink("one", place.join("current")).unwrap();
    until(&discovery, |now| get(now, "through").is_some_and(|one| one.is_git_repo())).await;
    fs::remove_file(place.join("current")).unwrap();
    symlink("two", place.join("current")).unwrap();
    let two = place.join("two/app");
    until(&discovery, |now| get(now, "through").is_some_and(|one| one.path == two)).await;
    fs::create_dir(two.join(".claude")).unwrap();
    until(&discovery, |now| get(now, "through").unwrap().has_claude_dir).await;

    fs::remove_file(bench.at("alias")).unwrap();
    until(&discovery, |now| names(now) == ["real", "through"]).await;
    assert_eq!(alias_of(&discovery.snapshot(), "real"), None);
}

#[tokio::test]
async fn without_notification_everything_is_seen_by_timer() {
    let bench = Bench::new(&["a"]);
    let discovery = Discovery::start(bench.rules(), &Watcher::by_timer()).await;
    bench.make("b");
    until(&discovery, |now| names(now) == ["a", "b"]).await;
    bench.make("b/.git");
    until(&discovery, |now| get(now, "b").unwrap().is_git_repo()).await;
    fs::remove_dir(bench.at("a")).unwrap();
    until(&discovery, |now| names(now) == ["b"]).await;
}

/// H116.
#[tokio::test]
async fn h116_a_root_that_is_deleted_and_made_again_is_survived() {
    let bench = Bench::new(&["a", "b"]);
    let discovery = start(&bench).await;
    fs::remove_dir_all(&bench.root).unwrap();
    until(&discovery, |now| now.is_empty() && now.trouble.is_some()).await;
    bench.make("c");
    until(&discovery, |now| names(now) == ["c"] && now.trouble.is_none()).await;
    bench.make("d");
    until(&discovery, |now| names(now) == ["c", "d"]).await;
    bench.make("d/.git");
    until(&discovery, |now| get(now, "d").unwrap().is_git_repo()).await;
}

#[tokio::test]
async fn another_root_in_its_place_is_told_from_the_first_even_by_equal_names() {
    let bench = Bench::new(&["a/.git"]);
    let discovery = start(&bench).await;
    assert!(get(&discovery.snapshot(), "a").unwrap().is_git_repo());
    let other = bench.base.join("other");
    fs::create_dir_all(other.join("a")).unwrap();
    let aside = bench.base.join("aside");
    fs::rename(&bench.root, aside).unwrap();
    fs::rename(other, &bench.root).unwrap();
    until(&discovery, |now| get(now, "a").is_some_and(|a| !a.is_git_repo())).await;
    bench.make("a/.claude");
    until(&discovery, |now| get(now, "a").unwrap().has_claude_dir).await;
}

#[tokio::test]
async fn a_root_link_that_is_turned_leads_to_the_other_projects() {
    let bench = Bench::new(&["a"]);
    let root = bench.base.join("link");
    let other = bench.base.join("other");
    fs::create_dir_all(other.join("b")).unwrap();
    symlink(&bench.root, &root).unwrap();
    let rules = Rules { root: root.clone(), refused: vec![], private: vec![] };
    let discovery = Discovery::start(rules, &Watcher::new()).await;
    assert_eq!(names(&discovery.snapshot()), ["a"]);
    let next = bench.base.join("next");
    symlink(&other, &next).unwrap();
    fs::rename(next, root).unwrap();
    until(&discovery, |now| names(now) == ["b"]).await;
    fs::create_dir(other.join("c")).unwrap();
    until(&discovery, |now| names(now) == ["b", "c"]).await;
}

#[tokio::test]
async fn a_repository_made_of_the_root_itself_concerns_every_project() {
    let bench = Bench::new(&["a", "own/.git"]);
    let discovery = start(&bench).await;
    bench.make(".git");
    until(&discovery, |now| get(now, "a").unwrap().git_root.as_ref() == Some(&bench.root)).await;
    assert_eq!(get(&discovery.snapshot(), "own").unwrap().git_root, Some(bench.at("own")));
}

#[tokio::test]
async fn nothing_is_announced_that_did_not_change() {
    let bench = Bench::new(&["a"]);
    let discovery = start(&bench).await;
    let before = *discovery.changes().borrow();
    for _ in 0..20 {
        fs::write(bench.at("a/main.rs"), "fn main() {}").unwrap();
        fs::write(bench.at("notes.txt"), "x").unwrap();
        fs::remove_file(bench.at("notes.txt")).unwrap();
    }
    bench.make("b");
    until(&discovery, |now| names(now) == ["a", "b"]).await;
    assert_eq!(*discovery.changes().borrow(), before + 1);
}

#[tokio::test]
async fn the_end_of_discovery_ends_its_announcements() {
    let bench = Bench::new(&["a"]);
    let discovery = start(&bench).await;
    let mut changes = discovery.changes();
    drop(discovery);
    let ended = tokio::time::timeout(DEADLINE, async { while changes.changed().await.is_ok() {} });
    assert!(ended.await.is_ok());
}

/// H125.
#[tokio::test]
async fn h125_among_ten_thousand_projects_each_change_is_seen() {
    let bench = Bench::large();
    for n in 0..10_000 {
        fs::create_dir(bench.at(&format!("p{n:05}"))).unwrap();
    }
    let discovery = start(&bench).await;
    assert_eq!(discovery.snapshot().len(), 10_000);
    bench.make("p04999-new");
    until(&discovery, |now| now.len() == 10_001).await;
    fs::remove_dir(bench.at("p00007")).unwrap();
    until(&discovery, |now| get(now, "p00007").is_none()).await;
    // Beyond the number of watches.
    for name in ["p00000", "p04999", "p09999"] {
        bench.make(&format!("{name}/.git"));
    }
    until(&discovery, |now| now.iter().filter(|one| one.is_git_repo()).count() == 3).await;
}
