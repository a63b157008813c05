//! What must hold after every fault, read from the database and the kernel.

use super::{Process, Row, World};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

/// The documented time from the next start until everything agrees again.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
const LOOKS_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// What was found when everything agreed.
#[derive(Debug)]
pub struct Invariants {
    pub rows: Vec<Row>,
    pub bridges: Vec<Process>,
}

impl World {
    /// Waits until records and processes agree; panics with what does not.
    pub async fn agree(&self) -> Invariants {
        self.agree_within(SETTLES_WITHIN).await
    }

    /// The same with more than the documented time, for a machine full of faults.
    pub async fn agree_within(&self, limit: Duration) -> Invariants {
        let deadline = tokio::time::Instant::now() + limit;
        let mut changed = self.changes();
        loop {
            changed.mark_unchanged();
            let wrong = match self.disagreements().await {
                Ok(found) => return found,
                Err(wrong) => wrong,
            };
            let now = tokio::time::Instant::now();
            assert!(
                now < deadline,
                "records and processes do not agree after {limit:?}: {wrong:#?}"
            );
            // The end of a process and of a lock change no file.
            let next = deadline.min(now + LOOKS_AGAIN_AFTER);
            let _ = tokio::time::timeout_at(next, changed.changed()).await;
        }
    }

    async fn disagreements(&self) -> Result<Invariants, Vec<String>> {
        let (rows, mut bridges) = (self.rows().await, self.bridges());
        let mut wrong = Vec::new();
        one_bridge_each(&bridges, &mut wrong);
        bridges.extend(self.sessions());
        one_tree_each(&bridges, &mut wrong);
        records_have_processes(&rows, &bridges, &mut wrong);
        processes_have_records(&rows, &bridges, &mut wrong);
        for row in &rows {
            if row.intentional_stop && row.status == "crashed" {
                wrong.push(format!("a deliberate stop ended as a crash: {row:?}"));
            }
        }
        self.locks_are_free(&mut wrong);
        let sound = self.integrity().await;
        if sound != "ok" {
            wrong.push(format!("the database is damaged: {sound}"));
        }
        for left in [&self.state, &self.projects, &self.agent_home] {
            no_temporary_file(left, &mut wrong);
        }
        if wrong.is_empty() { Ok(Invariants { rows, bridges }) } else { Err(wrong) }
    }

    fn locks_are_free(&self, wrong: &mut Vec<String>) {
        let Ok(locks) = fs::read_dir(self.state.join("locks")) else { return };
        for lock in locks.filter_map(Result::ok) {
            let Ok(file) = File::open(lock.path()) else { continue };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                wrong.push(format!("the lock {} is held", lock.path().display()));
            }
        }
    }
}

fn one_bridge_each(bridges: &[Process], wrong: &mut Vec<String>) {
    let mut by_project: BTreeMap<_, Vec<i32>> = BTreeMap::new();
    for bridge in bridges {
        by_project.entry(bridge.cwd.clone()).or_default().push(bridge.pid);
    }
    for (project, pids) in by_project.iter().filter(|(_, pids)| pids.len() > 1) {
        wrong.push(format!("{project:?} has several bridges: {pids:?}"));
    }
}

fn one_tree_each(bridges: &[Process], wrong: &mut Vec<String>) {
    let mut by_launch: BTreeMap<_, Vec<i32>> = BTreeMap::new();
    for bridge in bridges {
        by_launch.entry(bridge.launch_id.clone()).or_default().push(bridge.pid);
    }
    for (launch, pids) in by_launch.iter().filter(|(id, pids)| id.is_some() && pids.len() > 1) {
        wrong.push(format!("launch {launch:?} has several bridges: {pids:?}"));
    }
}

fn records_have_processes(rows: &[Row], bridges: &[Process], wrong: &mut Vec<String>) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    for row in rows.iter().filter(|row| row.is_live()) {
        let own = bridges.iter().find(|bridge| Some(i64::from(bridge.pid)) == row.pid);
        let same = own.is_some_and(|bridge| {
            i64::try_from(bridge.start_ticks).ok() == row.start_ticks
                && row.boot_id.as_deref() == Some(boot.trim())
                && bridge.launch_id == row.launch_id
        });
        if !same {
            wrong.push(format!("a record is live without its process: {row:?}, found {own:?}"));
        }
    }
}

fn processes_have_records(rows: &[Row], bridges: &[Process], wrong: &mut Vec<String>) {
    for bridge in bridges {
        let of = |row: &&Row| row.is_live() && row.pid == Some(i64::from(bridge.pid));
        match rows.iter().filter(of).count() {
            1 => {}
            count => wrong.push(format!("a bridge has {count} live records: {bridge:?}")),
        }
    }
}

fn no_temporary_file(dir: &Path, wrong: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            no_temporary_file(&path, wrong);
        } else if path.extension().is_some_and(|extension| extension == "tmp") {
            wrong.push(format!("a temporary file was left: {}", path.display()));
        }
    }
}
