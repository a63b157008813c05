//! The process table as the kernel shows it, read without the program under test.

use super::DEADLINE;
use super::world::MARK;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A process that was alive when it was looked at. Zombies do not count.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// Clock ticks since boot at its start.
    pub start_ticks: u64,
    pub argv: Vec<String>,
    pub cwd: Option<PathBuf>,
    /// Launch id in its environment.
    pub launch_id: Option<String>,
}

impl Process {
    fn descriptor(&self) -> Option<OwnedFd> {
        let descriptor = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::NONBLOCK).ok()?;
        let same = stat_of(self.pid).is_some_and(|stat| stat.start_ticks == self.start_ticks);
        same.then_some(descriptor)
    }

    /// Sends a signal to exactly this process; nothing when it is gone.
    pub fn signal(&self, signal: Signal) {
        if let Some(descriptor) = self.descriptor() {
            let _ = pidfd_send_signal(&descriptor, signal); // gone meanwhile: fine
        }
    }

    pub(super) fn kill_and_wait(&self) {
        let Some(descriptor) = self.descriptor() else { return };
        let _ = pidfd_send_signal(&descriptor, Signal::KILL); // gone meanwhile: fine
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&second));
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        alive(self.pid, self.start_ticks)
    }
}

/// Fields of `/proc/PID/stat`, behind the name, which may hold anything.
#[derive(Debug, Clone, Copy)]
pub struct Stat {
    pub state: char,
    pub parent: i32,
    pub start_ticks: u64,
}

pub fn stat_of(pid: i32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

/// Whether the process of this identity runs.
pub fn alive(pid: i32, start_ticks: u64) -> bool {
    stat_of(pid)
        .is_some_and(|stat| stat.start_ticks == start_ticks && !matches!(stat.state, 'Z' | 'X'))
}

/// All live processes that carry the mark of the tree at `root` or work below it.
/// A process with a clean environment carries no mark.
pub fn of_tree(root: &Path) -> Vec<Process> {
    let mark = [MARK.as_bytes(), b"=", root.as_os_str().as_bytes()].concat();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| belonging(pid, &mark, root)).collect()
}

/// The first launcher of the tree at `root` that is seen before `end`.
/// It lives for milliseconds, so this scans without a pause, and only new processes.
pub fn hunt_launcher(root: &Path, end: Instant) -> Option<Process> {
    let mark = [MARK.as_bytes(), b"=", root.as_os_str().as_bytes()].concat();
    let mut known = BTreeSet::new();
    while Instant::now() < end {
        let entries = fs::read_dir("/proc").ok()?;
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        for pid in pids.filter(|pid: &i32| !known.contains(pid)).collect::<Vec<_>>() {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if words.split(|byte| *byte == 0).any(|word| word == b"__launch__") {
                let launcher = belonging(pid, &mark, root);
                if launcher.is_some() {
                    return launcher;
                }
            }
            // What is still the image of its parent is looked at again.
            if !words.starts_with(b"/proc/self/exe") && is_settled(pid) {
                known.insert(pid);
            }
        }
    }
    None
}

/// Whether a process is old enough to have become what it was started as.
fn is_settled(pid: i32) -> bool {
    let since_boot = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let now = since_boot.split_once('.').and_then(|(whole, _)| whole.parse::<u64>().ok());
    let started = stat_of(pid).map(|stat| stat.start_ticks / 100);
    now.zip(started).is_some_and(|(now, started)| now > started + 1)
}

fn belonging(pid: i32, mark: &[u8], root: &Path) -> Option<Process> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).ok();
    let works_there = cwd.as_deref().is_some_and(|cwd| cwd.starts_with(root));
    if !works_there && !variables.clone().any(|variable| variable == mark) {
        return None;
    }
    let stat = stat_of(pid).filter(|stat| !matches!(stat.state, 'Z' | 'X'))?;
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command_line = String::from_utf8_lossy(&command_line).into_owned();
    let launch_id = variables.find_map(|variable| variable.strip_prefix(b"SVC_LAUNCH_ID="));
    Some(Process {
        pid,
        parent: stat.parent,
        start_ticks: stat.start_ticks,
        argv: command_line.split_terminator('\0').map(str::to_owned).collect(),
        cwd,
        launch_id: launch_id.map(|id| String::from_utf8_lossy(id).into_owned()),
    })
}

/// Waits until the process has ended.
pub async fn gone(process: &Process) {
    let Some(descriptor) = process.descriptor() else { return };
    let limit = Timespec { tv_sec: DEADLINE.as_secs().cast_signed(), tv_nsec: 0 };
    let ended = tokio::task::spawn_blocking(move || {
        poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit))
    });
    let ended = ended.await.expect("the wait goes on").expect("a descriptor can be awaited");
    assert_eq!(ended, 1, "process {} did not end", process.pid);
}
