//! Locks between processes.

use crate::support::{HELPER, Stranger, Workspace, within};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use svc_process::locks::{FileLocks, LockError, PROJECT_WAIT};
use svc_process::run_lock::{RUN_LOCK_FILE, RunLock, RunLockError, RunRecord};

fn own_record(workspace: &Workspace) -> RunRecord {
    RunRecord::of_this_process(workspace.host.table(), 1).unwrap()
}

#[tokio::test]
async fn h99_a_lock_of_another_process_excludes_until_that_process_is_killed() {
    let workspace = Workspace::new();
    let directory = workspace.root.to_str().unwrap();
    let (mut holder, said) = Stranger::helper(&["lock", directory, "/projects/api"]);
    assert_eq!(said, "held");
    let locks = FileLocks::new(workspace.root.clone());
    let path = Path::new("/projects/api");
    assert!(locks.try_lock(path).await.unwrap().is_none());
    let busy = locks.lock(path, Duration::from_millis(30)).await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    assert!(busy.unwrap_err().to_string().contains("/projects/api"));
    let waiter = {
        let locks = locks.clone();
        tokio::spawn(async move { locks.lock(Path::new("/projects/api"), PROJECT_WAIT).await })
    };
    holder.kill();
    let held = within(waiter).await.unwrap().unwrap();
    assert!(locks.file_of(path).exists());
    drop(held);
    assert!(locks.file_of(path).exists());
}

#[tokio::test]
async fn h99_many_waiters_hold_a_lock_one_after_the_other() {
    let workspace = Workspace::new();
    // Each value has its own mutexes, like a process: only the file lock excludes the other.
    let inside = std::sync::Arc::new(tokio::sync::Semaphore::new(1));
    let mut waiters = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let locks = FileLocks::new(workspace.root.clone());
        let inside = inside.clone();
        waiters.spawn(async move {
            for _ in 0..5 {
                let _held =
                    locks.lock(Path::new("/projects/api"), Duration::from_secs(60)).await.unwrap();
                let alone = inside.try_acquire();
                assert!(alone.is_ok(), "two are inside");
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(done) = within(waiters.join_next()).await {
        done.unwrap();
    }
}

#[tokio::test]
async fn f83_h109_a_second_server_is_refused_and_told_who_runs_until_the_first_is_killed() {
    let workspace = Workspace::new();
    let (mut first, said) = Stranger::helper(&["run-lock", workspace.root.to_str().unwrap()]);
    assert_eq!(said, "held");
    let pid = first.pid();
    let record = own_record(&workspace);
    let refused = RunLock::take(&workspace.root, record.clone()).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains(&pid.to_string()), "{text}");
    assert!(text.contains("127.0.0.1:8787"), "{text}");
    let RunLockError::Held { record: Some(seen), .. } = refused else {
        panic!("{text}");
    };
    assert_eq!(seen.is_alive(workspace.host.table()), Some(true));
    assert_eq!(seen.identity().unwrap(), first.identity(&workspace.host));
    assert_eq!(RunLock::read(&workspace.root).unwrap(), Some(seen.clone()));

    // F84: the lock file of a killed server locks nobody out.
    first.kill();
    first.collect();
    let stale = RunLock::read(&workspace.root).unwrap().unwrap();
    assert_eq!(stale.is_alive(workspace.host.table()), Some(false));
    let mut taken = RunLock::take(&workspace.root, record).unwrap();
    assert_eq!(RunLock::read(&workspace.root).unwrap().as_ref(), Some(taken.record()));
    taken.set_address("[::1]:1".to_owned()).unwrap();
    let read = RunLock::read(&workspace.root).unwrap().unwrap();
    assert_eq!(read.address.as_deref(), Some("[::1]:1"));
    drop(taken);
    assert_eq!(RunLock::read(&workspace.root).unwrap(), None);
    assert!(workspace.path(RUN_LOCK_FILE).exists());
}

#[test]
fn h109_of_many_servers_started_at_once_exactly_one_runs() {
    let workspace = Workspace::new();
    let mut started: Vec<Child> = (0..12)
        .map(|_| {
            Command::new(HELPER)
                .args(["run-lock", workspace.root.to_str().unwrap()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut said: Vec<String> = started
        .iter_mut()
        .map(|child| {
            let mut line = String::new();
            let out = child.stdout.as_mut().unwrap();
            BufReader::new(out).read_line(&mut line).unwrap();
            line.trim().to_owned()
        })
        .collect();
    for child in &mut started {
        drop(child.stdin.take());
        let mut errors = String::new();
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_to_string(&mut errors).unwrap();
        assert_eq!(child.wait().unwrap().success(), errors.is_empty(), "{errors}");
    }
    said.sort();
    assert_eq!(said.iter().filter(|line| *line == "held").count(), 1);
    assert_eq!(said.iter().filter(|line| *line == "refused").count(), 11);
}

#[tokio::test]
async fn h109_a_live_bridge_never_holds_the_lock_of_a_server_that_ended() {
    let workspace = Workspace::new();
    let record = own_record(&workspace);
    let locks = FileLocks::new(workspace.root.clone());
    for _ in 0..10 {
        let run = RunLock::take(&workspace.root, record.clone()).unwrap();
        let project = locks.try_lock(Path::new("/p")).await.unwrap().unwrap();
        workspace.launch(workspace.shell("exec sleep 1000")).await;
        drop((run, project));
        // Another process finds both free while the bridges live.
        let (mut next, said) = Stranger::helper(&["run-lock", workspace.root.to_str().unwrap()]);
        assert_eq!(said, "held");
        next.kill();
        next.collect();
        assert!(locks.try_lock(Path::new("/p")).await.unwrap().is_some());
    }
}

#[test]
fn a_damaged_record_names_nobody_and_a_dangerous_pid_is_no_process() {
    let workspace = Workspace::new();
    for text in ["", "{", "[]", "{\"pid\":true}"] {
        std::fs::write(workspace.path(RUN_LOCK_FILE), text).unwrap();
        assert_eq!(RunLock::read(&workspace.root).unwrap(), None, "{text}");
    }
    let mut record = own_record(&workspace);
    assert!(record.identity().is_some());
    // F7.
    for pid in [-1, 0, 1, 1 << 31] {
        record.pid = pid;
        assert_eq!(record.identity(), None, "{pid}");
        assert_eq!(record.is_alive(workspace.host.table()), Some(false), "{pid}");
    }
    assert!(RunLock::take(&workspace.path("missing"), record).is_err());
}
