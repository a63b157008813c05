//! Resources of a service at one moment, as the kernel and its own files show them.

use crate::harness::{World, open_descriptors};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, Clone, Copy, Default)]
pub struct Vitals {
    pub resident_kib: u64,
    pub descriptors: usize,
    pub threads: u64,
    /// Files in the state directory.
    pub files: usize,
    pub database_kib: u64,
    pub rows: usize,
}

impl Vitals {
    pub async fn of(world: &World, pid: i32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|rest| rest.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap_or_default()
        };
        let database = fs::metadata(world.state.join("svc.db"));
        Self {
            resident_kib: number("VmRSS:"),
            descriptors: open_descriptors(pid),
            threads: number("Threads:"),
            files: files_below(&world.state).len(),
            database_kib: database.map_or(0, |data| data.len() / 1024),
            rows: world.rows().await.len(),
        }
    }
}

impl fmt::Display for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resident_kib, descriptors, threads, files, database_kib, rows } = self;
        write!(
            f,
            "{resident_kib} KiB resident, {descriptors} descriptors, {threads} threads, {files} \
             files, {rows} records, database {database_kib} KiB"
        )
    }
}

/// Every file below a directory, as a path from there.
fn files_below(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                dirs.push(entry.path());
            } else if let Ok(path) = entry.path().strip_prefix(dir) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Counts the launches with log files that nobody wrote for a while.
/// The files of one set are named `PROJECT-MILLISECONDS-NUMBER.…`.
pub fn log_sets(world: &World, unwritten: Duration) -> usize {
    let logs = world.state.join("logs");
    let files = files_below(&logs);
    let stem = |name: &String| name.split('.').next().map(str::to_owned);
    let is_young = |name: &&String| {
        let written = fs::metadata(logs.join(name)).and_then(|file| file.modified());
        written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < unwritten))
    };
    let young: BTreeSet<String> = files.iter().filter(is_young).filter_map(stem).collect();
    let all: BTreeSet<String> = files.iter().filter_map(stem).collect();
    all.difference(&young).count()
}
