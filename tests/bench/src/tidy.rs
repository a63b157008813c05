//! Ends everything that was started here with the program.
//!
//! This also holds after an interruption, or when the program takes too long.

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Marks every process of one tree; children inherit it.
pub const MARK: &str = "SVC_BENCH_TREE";

static TREES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

pub fn remember(root: &Path) {
    TREES.lock().unwrap_or_else(PoisonError::into_inner).push(root.to_owned());
}

/// Ends everything of a tree. Tells what would not end.
pub fn end(root: &Path) -> Vec<i32> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = alive(root);
        if left.is_empty() || Instant::now() > deadline {
            TREES.lock().unwrap_or_else(PoisonError::into_inner).retain(|tree| tree != root);
            return left;
        }
        for pid in left {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL); // gone meanwhile: fine
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes that carry the mark of a tree or work below it.
/// An agent starts from a clean environment and carries no mark.
pub fn alive(root: &Path) -> Vec<i32> {
    let mark = [MARK.as_bytes(), b"=", root.as_os_str().as_bytes()].concat();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| number(&entry.ok()?.file_name()));
    let carries = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        cwd.starts_with(root) || environment.split(|byte| *byte == 0).any(|known| known == mark)
    };
    pids.filter(carries).collect()
}

fn number(name: &OsStr) -> Option<i32> {
    name.to_str()?.parse().ok()
}

/// From now on an interruption, or the end of `most`, ends the whole program.
pub fn watch(most: Duration) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            give_up("interrupted", 130);
        }
    });
    std::thread::spawn(move || {
        std::thread::sleep(most);
        give_up(&format!("not done after {} s", most.as_secs()), 1);
    });
    Ok(())
}

fn give_up(why: &str, code: i32) -> ! {
    let trees = TREES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for tree in trees {
        end(&tree);
        let _ = fs::remove_dir_all(&tree);
    }
    let _ = writeln!(std::io::stderr(), "{why}: everything that was started has been ended");
    std::process::exit(code)
}
