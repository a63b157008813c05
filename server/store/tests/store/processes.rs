//! Several processes on one database, and processes that die.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use svc_domain::bridge::Stage;
use svc_store::{Access, Inserted, Saved, Store, StoreError};
use tokio::task::JoinSet;

#[test]
fn h94_of_many_processes_that_also_create_the_database_one_gets_the_project() {
    for _ in 0..3 {
        let dir = state_dir();
        let numbers: Vec<String> = (1..=8).map(|number| number.to_string()).collect();
        let mut racers: Vec<Helper> =
            numbers.iter().map(|number| Helper::start("race", dir.path(), &[number])).collect();
        racers.iter_mut().for_each(|racer| assert_eq!(racer.line(), "ready"));
        racers.iter_mut().for_each(|racer| racer.tell("go"));
        let outcomes: Vec<String> = racers.iter_mut().map(Helper::line).collect();
        racers.into_iter().for_each(Helper::finish);
        let won = outcomes.iter().filter(|outcome| *outcome == "Yes").count();
        let lost = outcomes.iter().filter(|outcome| *outcome == "Occupied").count();
        assert_eq!((won, lost), (1, 7), "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_start_that_was_killed_at_any_step_of_the_creation_can_be_repeated() {
    let steps = [
        "locks",
        "locks/store.lock",
        "svc.db.new.tmp",
        "svc.db.new.tmp-journal",
        "svc.db.new.tmp-wal",
        "svc.db",
        "svc.db-wal",
        "svc.db-shm",
    ];
    for step in steps.iter().cycle().take(4 * steps.len()) {
        let dir = state_dir();
        let helper = Helper::start("open", dir.path(), &[]);
        let (seen, opened) = (dir.path().join(step), dir.path().join("svc.db-shm"));
        // A step may pass unseen; then the kill comes at the end.
        while !seen.exists() && !opened.exists() {
            std::hint::spin_loop();
        }
        helper.kill();
        let store = open(dir.path()).await;
        add(&store, &bridge(1, "api", starting())).await;
        assert_eq!(store.bridges().await.unwrap().len(), 1, "killed at {step}");
        store.close().await;
        let names: Vec<_> = files(dir.path()).into_keys().collect();
        assert_eq!(names, [dir.path().join("svc.db")], "killed at {step}");
    }
}

#[tokio::test]
async fn a_killed_writer_loses_nothing_that_it_was_told_is_durable() {
    let dir = state_dir();
    let mut known = 0;
    for round in 0..5_u32 {
        let first = (round * 1000).to_string();
        let mut helper = Helper::start("insert", dir.path(), &[&first, "1000"]);
        for _ in 0..=round * 7 {
            assert_eq!(helper.line(), "inserted");
            known += 1;
        }
        helper.kill();
        let store = open(dir.path()).await;
        let rows = store.bridges().await.unwrap();
        assert!(rows.len() >= known, "{} of {known}", rows.len());
        assert!(rows.iter().all(|row| row.bridge().is_some()));
        known = rows.len();
        store.close().await;
    }
}

#[test]
fn nothing_is_readable_by_others_whatever_the_umask_is() {
    let dir = state_dir();
    let mut helper = Helper::start("bare", dir.path(), &[]);
    assert_eq!(helper.line(), "written");
    let names: Vec<_> = files(dir.path()).into_keys().collect();
    assert_eq!(names.len(), 3, "database, log and index: {names:?}");
    for path in names.iter().chain([&dir.path().join("locks/store.lock")]) {
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert_eq!(fs::metadata(dir.path().join("locks")).unwrap().mode() & 0o777, 0o700);
    helper.finish();
}

#[tokio::test]
async fn h87_a_foreign_lock_makes_writes_fail_as_busy_while_readers_are_answered() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    let mut helper = Helper::start("exclusive", dir.path(), &[]);
    assert_eq!(helper.line(), "locked");

    let mut writes = JoinSet::new();
    for number in 2..=9 {
        let store = store.clone();
        writes.spawn(async move {
            let bridge = bridge(number, &format!("p{number}"), starting());
            store.insert(&bridge, NO_CAP, now()).await.map(|_| ())
        });
    }
    let saver = store.clone();
    writes.spawn(async move {
        let next = bridge(1, "api", live(Stage::Ready));
        saver.save(1, &next, &[], NO_CAP, now()).await.map(|_| ())
    });
    tokio::task::yield_now().await;
    for _ in 0..50 {
        assert_eq!(store.bridges().await.unwrap().len(), 1);
        assert_eq!(stored(&store, 1).await.revision, 1);
    }
    assert!(writes.try_join_next().is_none(), "the readers were faster than the busy timeout");

    for result in writes.join_all().await {
        assert!(matches!(result, Err(StoreError::Busy(_))), "{result:?}");
    }
    assert_eq!(store.bridges().await.unwrap().len(), 1, "nothing of it was written");
    helper.finish();
    assert_eq!(save(&store, 1, &bridge(1, "api", live(Stage::Ready))).await, Saved::Yes(2));
}

/// SQLite ends the transaction on a full disk; here a foreign trigger does.
#[tokio::test]
async fn h91_a_transaction_that_the_database_ended_itself_does_not_spoil_the_next_one() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", starting())).await;
    let rule = "CREATE TRIGGER ends BEFORE UPDATE ON bridges \
                BEGIN SELECT RAISE(ROLLBACK, 'as if the disk were full'); END";
    tamper(dir.path(), rule).await;
    let next = bridge(1, "api", live(Stage::Ready));
    for _ in 0..3 {
        store.save(1, &next, &[], NO_CAP, now()).await.unwrap_err();
    }
    tamper(dir.path(), "DROP TRIGGER ends").await;
    assert_eq!(save(&store, 1, &next).await, Saved::Yes(2));
}

#[tokio::test]
async fn a_start_beside_a_running_process_sees_its_rows_and_shares_the_work() {
    let dir = state_dir();
    let mut helper = Helper::start("insert", dir.path(), &["100", "2"]);
    assert_eq!((helper.line(), helper.line()), ("inserted".into(), "inserted".into()));
    let store = open(dir.path()).await;
    assert_eq!(store.bridges().await.unwrap().len(), 2);
    assert_eq!(save(&store, 1, &bridge(100, "contested", starting())).await, Saved::Yes(2));
    helper.finish();
    assert_eq!(stored(&store, 100).await.revision, 2);
}

#[tokio::test]
async fn a_second_opening_in_one_process_does_not_give_the_locks_of_the_first_away() {
    let dir = state_dir();
    let first = open(dir.path()).await;
    drop(open(dir.path()).await);
    drop(Store::open(dir.path(), Access::ReadOnly).await.unwrap());
    // Were the locks gone, this process would believe to be the last one and remove the log.
    let helper = Helper::start("open", dir.path(), &[]);
    helper.finish();
    assert!(dir.path().join("svc.db-wal").exists());
    add(&first, &bridge(1, "api", stopped())).await;
    let mut helper = Helper::start("insert", dir.path(), &["100", "1"]);
    assert_eq!(helper.line(), "inserted");
    helper.finish();
    assert_eq!(first.bridges().await.unwrap().len(), 2);
}

#[tokio::test]
async fn h116_a_replaced_database_takes_no_writes_that_nobody_would_find_again() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    add(&store, &bridge(1, "api", stopped())).await;
    let other = state_dir();
    open(other.path()).await.close().await;
    fs::rename(dir.path().join("svc.db"), dir.path().join("moved.db")).unwrap();
    let insert = async || store.insert(&bridge(2, "web", stopped()), NO_CAP, now()).await;
    assert!(matches!(insert().await, Err(StoreError::Failed(_))), "moved away");
    fs::copy(other.path().join("svc.db"), dir.path().join("svc.db")).unwrap();
    assert!(matches!(insert().await, Err(StoreError::Failed(_))), "replaced");
    assert_eq!(store.bridges().await.unwrap().len(), 1, "reading goes on");
    fs::rename(dir.path().join("moved.db"), dir.path().join("svc.db")).unwrap();
    assert_eq!(insert().await.unwrap(), Inserted::Yes);
}

/// A user who is bound by the modes of files, which the superuser is not.
fn as_ordinary_user(dir: &Path) -> Command {
    const NOBODY: u32 = 65_534;
    let program = dir.join("helper");
    svc_programs::copy(helper(), &program).unwrap();
    let mut command = Command::new(&program);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(dir, Some(NOBODY), None).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        command.uid(NOBODY);
    }
    command
}

#[test]
fn h88_writes_are_refused_while_the_file_may_not_be_written_and_work_again_after() {
    let dir = state_dir();
    let mut helper = Helper::run(as_ordinary_user(dir.path()).arg("refused").arg(dir.path()));
    assert_eq!(helper.line(), "refused");
    assert_eq!(helper.line(), "recovered");
    helper.finish();
}

#[test]
fn a_database_in_a_directory_that_may_not_be_written_can_be_read() {
    let dir = state_dir();
    let mut command = as_ordinary_user(dir.path());
    let mut helper = Helper::run(command.arg("read-only").arg(dir.path()));
    assert_eq!(helper.line(), "read 1");
    helper.finish();
    let names: Vec<_> = files(dir.path()).into_keys().collect();
    assert_eq!(names.len(), 2, "helper and database: {names:?}");
}
