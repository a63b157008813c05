//! Tests of the native watches.

use super::*;
use std::ffi::OsString;
use std::fs;
use std::future::Future;

/// Far beyond any machine's latency; only reached when the test fails.
const DEADLINE: Duration = Duration::from_secs(60);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("nothing was reported")
}

async fn native(subscription: &mut Subscription) {
    while !subscription.is_native() {
        within(subscription.changed()).await;
    }
    let _ = subscription.watch.mailbox.take();
}

async fn names(subscription: &mut Subscription) -> Vec<OsString> {
    match within(subscription.changed()).await {
        Changes::Names(names) => names.into_iter().collect(),
        Changes::Everything => vec!["(everything)".into()],
    }
}

#[tokio::test]
async fn what_is_forgotten_is_not_reported_and_what_follows_is() {
    let dir = tempfile::tempdir().unwrap();
    // An empty file: more than one event for it could be told twice.
    let make = |name: &str| drop(fs::File::create(dir.path().join(name)).unwrap());
    let watcher = Watcher::new();
    let mut one = watcher.dir(dir.path(), Pace::DIRECTORY);
    let mut other = watcher.files_of(dir.path(), "jsonl", Pace::DIRECTORY);
    native(&mut one).await;
    native(&mut other).await;
    make("a.jsonl");
    // The one is told with the other.
    assert_eq!(names(&mut other).await, ["a.jsonl"]);
    one.forget();
    make("b");
    assert_eq!(names(&mut one).await, ["b"]);
    make("c.jsonl");
    assert_eq!(names(&mut other).await, ["c.jsonl"], "of `b` nothing is told");
}

#[tokio::test]
async fn writing_is_reported_by_name_and_reading_is_not() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("old"), "x").unwrap();
    let watcher = Watcher::new();
    let mut subscription = watcher.dir(dir.path(), Pace::DIRECTORY);
    native(&mut subscription).await;
    fs::read(dir.path().join("old")).unwrap();
    fs::read_dir(dir.path()).unwrap().count();
    fs::write(dir.path().join("new"), "x").unwrap();
    assert_eq!(names(&mut subscription).await, ["new"]);
}

#[tokio::test]
async fn a_subscriber_of_one_file_is_not_woken_by_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let watcher = Watcher::new();
    let mut one = watcher.file(&dir.path().join("one"), Pace::VIEW);
    let mut two = watcher.file(&dir.path().join("two"), Pace::VIEW);
    native(&mut one).await;
    native(&mut two).await;
    fs::write(dir.path().join("one"), "x").unwrap();
    fs::write(dir.path().join("two"), "x").unwrap();
    assert_eq!(names(&mut two).await, ["two"]);
    assert_eq!(names(&mut one).await, ["one"]);
    drop(one);
    fs::remove_file(dir.path().join("two")).unwrap();
    assert_eq!(names(&mut two).await, ["two"]);
}

#[tokio::test]
async fn a_directory_that_appears_or_is_replaced_is_watched_again() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("sessions");
    let watcher = Watcher::new();
    let mut subscription = watcher.dir(&dir, Pace::every(Duration::from_millis(20)));
    within(subscription.changed()).await;
    assert!(!subscription.is_native());
    fs::create_dir(&dir).unwrap();
    native(&mut subscription).await;

    fs::rename(&dir, root.path().join("aside")).unwrap();
    fs::create_dir(&dir).unwrap();
    while subscription.is_native() {
        within(subscription.changed()).await;
    }
    native(&mut subscription).await;
    fs::write(root.path().join("aside/wrong"), "x").unwrap();
    fs::write(dir.join("right"), "x").unwrap();
    assert_eq!(names(&mut subscription).await, ["right"]);
}

#[tokio::test]
async fn what_lies_below_a_directory_that_was_moved_away_is_watched_again() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    let dir = home.join("projects/app");
    fs::create_dir_all(&dir).unwrap();
    // Its name begins with the same letters, and it lies elsewhere.
    let other = root.path().join("home-of-another");
    fs::create_dir(&other).unwrap();
    let watcher = Watcher::new();
    // A timer alone would report the file after the end of this test.
    let mut above = watcher.dir(&home, Pace::every(DEADLINE * 10));
    let mut below = watcher.dir(&dir, Pace::every(DEADLINE * 10));
    let mut beside = watcher.dir(&other, Pace::every(DEADLINE * 10));
    native(&mut above).await;
    native(&mut below).await;
    native(&mut beside).await;

    fs::rename(&home, root.path().join("aside")).unwrap();
    fs::create_dir_all(&dir).unwrap();
    while below.is_native() {
        within(below.changed()).await;
    }
    native(&mut below).await;
    assert!(beside.is_native());
    fs::write(root.path().join("aside/projects/app/wrong"), "x").unwrap();
    fs::write(dir.join("right"), "x").unwrap();
    assert_eq!(names(&mut below).await, ["right"]);
}

#[tokio::test]
async fn a_missing_directory_is_reported_at_once_however_many_parents_are_missing() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("home/agent/sessions");
    let watcher = Watcher::new();
    // A timer alone would report the directory after the end of this test.
    let mut subscription = watcher.dir(&dir, Pace::every(DEADLINE * 10));
    within(subscription.changed()).await;
    for part in ["home", "home/agent", "home/agent/sessions"] {
        fs::create_dir(root.path().join(part)).unwrap();
        if part != "home/agent/sessions" {
            within(subscription.changed()).await;
        }
    }
    native(&mut subscription).await;
    fs::write(dir.join("new"), "x").unwrap();
    assert_eq!(names(&mut subscription).await, ["new"]);

    // The whole path is removed and created again at once.
    fs::rename(root.path().join("home"), root.path().join("aside")).unwrap();
    fs::remove_dir_all(root.path().join("aside")).unwrap();
    while subscription.is_native() {
        within(subscription.changed()).await;
    }
    fs::create_dir_all(&dir).unwrap();
    native(&mut subscription).await;
}

#[tokio::test]
async fn a_missing_directory_wakes_nobody_while_it_is_missing() {
    let root = tempfile::tempdir().unwrap();
    let watcher = Watcher::new();
    let mut missing = watcher.dir(&root.path().join("none"), Pace::every(DEADLINE * 10));
    let mut beside = watcher.dir(root.path(), Pace::DIRECTORY);
    native(&mut beside).await;
    within(missing.changed()).await;
    let (files, mut reported, mut woken) = (100, 0, 0);
    for number in 0..files {
        fs::write(root.path().join(number.to_string()), "x").unwrap();
    }
    while reported < files {
        let news = async {
            tokio::select! {
                _ = missing.changed() => None,
                names = names(&mut beside) => Some(names),
            }
        };
        match within(news).await {
            Some(names) => reported += names.len(),
            None => woken += 1,
        }
    }
    // Not once per file; the slow check for a mount is allowed.
    assert!(woken < files / 10, "woken {woken} times");
    drop((missing, beside));
    // A running attempt keeps its registration until it is done.
    let empty = async {
        while !lock(&watcher.hub.dirs).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(empty).await;
}

#[tokio::test]
async fn a_dangling_link_is_polled_by_timer() {
    let root = tempfile::tempdir().unwrap();
    let (dir, target) = (root.path().join("link"), root.path().join("other/target"));
    std::os::unix::fs::symlink(&target, &dir).unwrap();
    let watcher = Watcher::new();
    let mut subscription = watcher.dir(&dir, Pace::every(Duration::from_millis(20)));
    for _ in 0..3 {
        assert_eq!(within(subscription.changed()).await, Changes::Everything);
    }
    fs::create_dir_all(&target).unwrap();
    native(&mut subscription).await;
}

#[tokio::test]
async fn without_notification_the_timer_reports_everything() {
    let dir = tempfile::tempdir().unwrap();
    let watcher = Watcher::by_timer();
    let mut subscription = watcher.dir(dir.path(), Pace::every(Duration::from_millis(5)));
    assert_eq!(within(subscription.changed()).await, Changes::Everything);
    assert_eq!(within(subscription.changed()).await, Changes::Everything);
    assert!(!subscription.is_native());
}

#[tokio::test]
async fn a_subscriber_that_keeps_being_interrupted_is_still_polled() {
    let dir = tempfile::tempdir().unwrap();
    let watcher = Watcher::by_timer();
    let mut subscription = watcher.dir(dir.path(), Pace::every(Duration::from_millis(50)));
    let polled = async {
        let interrupted = Duration::from_millis(5);
        while tokio::time::timeout(interrupted, subscription.changed()).await.is_err() {}
    };
    within(polled).await;
}

#[tokio::test]
async fn the_last_subscriber_ends_the_native_watch() {
    let dir = tempfile::tempdir().unwrap();
    let watcher = Watcher::new();
    let mut subscription = watcher.dir(dir.path(), Pace::DIRECTORY);
    native(&mut subscription).await;
    drop(subscription);
    assert!(lock(&watcher.hub.dirs).is_empty());
}
