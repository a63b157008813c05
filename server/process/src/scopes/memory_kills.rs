//! Whether the kernel killed a process of a scope because memory ran out.
//!
//! The scope's control group counts such kills, and the count rises before the process gets its
//! signal. systemd removes the group as soon as its last process has ended: of 30 kills in scopes
//! with one process, the group was gone 24 times before it could be read. Therefore the count is
//! read when the kernel announces a change (version 2 only) and again at the exit of the first
//! process. If the group was removed before it was read, the kernel's log still names it.
//!
//! systemd's own result of a scope does not help: with `OOMPolicy=continue` it stays `success`.

use crate::control_group::{ControlGroup, Version};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};

/// Where the kernel shows its log (`Documentation/ABI/testing/dev-kmsg`).
const KERNEL_LOG: &str = "/dev/kmsg";
/// A record of the log is never longer.
const RECORD_BYTES: usize = 8 << 10;
/// More records than a usual log holds: reading ends even if somebody floods it.
const MAX_RECORDS: usize = 200_000;

/// The kernel's count of processes of one scope that it killed for memory.
#[derive(Debug)]
pub(crate) struct MemoryKills {
    unit: String,
    version: Version,
    file: PathBuf,
    kernel_log: PathBuf,
    /// The count when the launch was put into its scope.
    at_start: u64,
    /// The highest count that was read.
    latest: AtomicU64,
}

impl MemoryKills {
    /// The count of a scope that a process was put into.
    ///
    /// `None` if the kernel does not count for this scope alone: it has no memory controller, or
    /// systemd does not use that controller for the scope.
    pub(crate) fn of_scope(unit: &str, mounts: &str, groups: &str) -> Option<Self> {
        let group = ControlGroup::find(mounts, groups, "memory")?;
        if group.name() != Some(unit) {
            return None;
        }
        let name = match group.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        Self::new(unit, group.version, group.dir.join(name), Path::new(KERNEL_LOG))
    }

    fn new(unit: &str, version: Version, file: PathBuf, kernel_log: &Path) -> Option<Self> {
        let at_start = kills(&std::fs::read_to_string(&file).ok()?)?;
        Some(Self {
            unit: unit.to_owned(),
            version,
            file,
            kernel_log: kernel_log.to_owned(),
            at_start,
            latest: AtomicU64::new(at_start),
        })
    }

    /// Reads the count each time the kernel announces a change.
    ///
    /// Ends if the kernel cannot announce changes of this file, and when the group is gone.
    pub(crate) async fn follow(&self) {
        match self.version {
            Version::One => {}
            Version::Two => self.follow_events().await,
        }
    }

    #[cfg(target_os = "linux")]
    async fn follow_events(&self) {
        let Ok(file) = File::open(&self.file) else { return };
        #[expect(
            deprecated,
            reason = "its successor is unsafe because a type may lie about its descriptor; the \
                      standard library's file does not, and unsafe is forbidden here"
        )]
        let Ok(mut file) = AsyncFd::with_interest(file, Interest::PRIORITY) else { return };
        while self.read_from(file.get_mut()).is_ok() {
            let Ok(mut changed) = file.ready(Interest::PRIORITY).await else { return };
            changed.clear_ready();
        }
    }

    /// There are no control groups here.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_async, reason = "other systems wait")]
    async fn follow_events(&self) {}

    fn read_from(&self, file: &mut File) -> io::Result<()> {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        self.latest.fetch_max(kills(&text).unwrap_or_default(), Ordering::Relaxed);
        Ok(())
    }

    /// Whether the kernel killed a process of the scope since the launch.
    ///
    /// Call it as soon as the first process has ended: systemd is about to remove the group. It may
    /// read the kernel's log and belongs into `spawn_blocking`.
    pub(crate) fn has_risen(&self) -> bool {
        let is_read = File::open(&self.file).and_then(|mut file| self.read_from(&mut file)).is_ok();
        if self.latest.load(Ordering::Relaxed) > self.at_start {
            return true;
        }
        // Where this user may not read the log, the answer is no.
        !is_read && is_in_kernel_log(&self.kernel_log, &self.unit).unwrap_or(false)
    }
}

/// The kills in `memory.events` (version 2) or `memory.oom_control` (version 1).
///
/// A kill of the whole group has a line of its own in version 2.
fn kills(text: &str) -> Option<u64> {
    let count = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(of, _)| *of == name)?.1.trim().parse::<u64>().ok()
    };
    let whole = count("oom_group_kill").unwrap_or_default();
    Some(count("oom_kill")?.saturating_add(whole))
}

/// Whether the kernel's log reports a kill for memory in a unit's control group.
fn is_in_kernel_log(path: &Path, unit: &str) -> io::Result<bool> {
    // Each read gives one record. Without `NONBLOCK` the read after the last record would wait.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let log = open(path, flags, Mode::empty())?;
    let mut record = vec![0; RECORD_BYTES];
    for _ in 0..MAX_RECORDS {
        match rustix::io::read(&log, record.as_mut_slice()) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(length) => {
                let text = String::from_utf8_lossy(record.get(..length).unwrap_or_default());
                if text.lines().any(|line| names_kill(line, unit)) {
                    return Ok(true);
                }
            }
            // Overwritten before it was read, or interrupted: the next read goes on.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Whether a line of the log reports a kill in a unit's control group.
///
/// The format is that of Linux 6, `mm/oom_kill.c`.
fn names_kill(line: &str, unit: &str) -> bool {
    let group = line
        .split_once("oom-kill:")
        .and_then(|(_, facts)| facts.split_once(",task_memcg="))
        .and_then(|(_, group)| group.split_once(",task="));
    group.is_some_and(|(group, _)| group.split('/').any(|part| part == unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: &str = "svc-bridge-0123456789abcdef0123456789abcdef.scope";

    fn line_of(group: &str) -> String {
        format!(
            "6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,\
             oom_memcg=/svc.slice,task_memcg={group},task=claude,pid=13901,uid=0\n"
        )
    }

    /// A scope in a directory that is laid out like the kernel's.
    fn scope(version: Version, text: &str) -> (tempfile::TempDir, MemoryKills) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("count");
        std::fs::write(&file, text).unwrap();
        std::fs::write(dir.path().join("log"), "6,1,2,-;nothing\n").unwrap();
        let kills = MemoryKills::new(UNIT, version, file, &dir.path().join("log")).unwrap();
        (dir, kills)
    }

    #[test]
    fn f80_the_count_of_either_version_is_compared_with_the_start() {
        let two =
            |kill| format!("low 0\nhigh 0\nmax 3\noom 3\noom_kill {kill}\noom_group_kill 0\n");
        let one = |kill| format!("oom_kill_disable 0\nunder_oom 0\noom_kill {kill}\n");
        for (version, before, after) in
            [(Version::Two, two(2), two(3)), (Version::One, one(0), one(1))]
        {
            let (dir, kills) = scope(version, &before);
            assert!(!kills.has_risen(), "as at the start");
            std::fs::write(dir.path().join("count"), after).unwrap();
            assert!(kills.has_risen());
            std::fs::remove_file(dir.path().join("count")).unwrap();
            assert!(kills.has_risen(), "it was seen");
        }
        assert_eq!(kills("oom_kill 2\noom_group_kill 1\n"), Some(3));
        assert_eq!(kills("oom_group_kill 1\n"), None, "a kernel before 4.13");
    }

    #[test]
    fn f80_a_group_that_was_removed_unread_is_found_in_the_log_of_the_kernel() {
        let (dir, kills) = scope(Version::One, "oom_kill 0\n");
        std::fs::remove_file(dir.path().join("count")).unwrap();
        assert!(!kills.has_risen());
        std::fs::write(dir.path().join("log"), line_of("/svc.slice/other.scope")).unwrap();
        assert!(!kills.has_risen(), "another scope");
        std::fs::write(dir.path().join("log"), line_of(&format!("/svc.slice/{UNIT}"))).unwrap();
        assert!(kills.has_risen());
        std::fs::remove_file(dir.path().join("log")).unwrap();
        assert!(!kills.has_risen(), "no evidence can be read");
    }

    #[test]
    fn a_line_of_the_log_names_the_group_of_the_killed_process() {
        assert!(names_kill(&line_of(&format!("/svc.slice/svc-bridges.slice/{UNIT}")), UNIT));
        assert!(names_kill(&line_of(&format!("/svc.slice/{UNIT}/below")), UNIT));
        assert!(!names_kill(&line_of(&format!("/svc.slice/x{UNIT}")), UNIT));
        assert!(!names_kill(&format!("task={UNIT},oom_memcg=/{UNIT}"), UNIT));
        assert!(!names_kill("", UNIT));
    }
}
