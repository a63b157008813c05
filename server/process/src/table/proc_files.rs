//! The process table below `/proc`. All reads are bounded in memory.

use super::{Account, KERNEL_ROOT, LAUNCH_ID_VARIABLE, Stat, TableError};
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, open};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use svc_domain::enclosure;
use svc_domain::identity::{BootId, LaunchId, Observed, Pid, ProcessIdentity};
use svc_domain::usage::Moved;
use svc_ports::process::ProcessFacts;

/// Most bytes that are read of a file.
///
/// Arguments and environment together are below 6 MiB on Linux: three quarters of the default stack
/// limit of 8 MiB.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Most files of a process are smaller than this.
const USUAL_BYTES: usize = 8 << 10;

/// The longest line of `stat`: 52 numbers of 20 digits and a name of 64 bytes.
const LINE_BYTES: usize = 2048;

/// The process table of this machine, or a directory with the same layout.
#[derive(Debug, Clone)]
pub struct ProcTable {
    root: PathBuf,
    boot_id: BootId,
}

impl ProcTable {
    /// The table of this machine.
    ///
    /// # Errors
    /// There is no process file system.
    pub fn open() -> Result<Self, TableError> {
        Self::at(Path::new(KERNEL_ROOT))
    }

    /// A table below another directory with the layout of `/proc`.
    ///
    /// # Errors
    /// `sys/kernel/random/boot_id` is missing or contains no boot id.
    pub fn at(root: &Path) -> Result<Self, TableError> {
        let path = root.join("sys/kernel/random/boot_id");
        let text = std::fs::read_to_string(&path)
            .map_err(|cause| TableError::Unreadable { path: path.clone(), cause })?;
        let boot_id = text.parse().map_err(|_| TableError::BadBootId { path })?;
        Ok(Self { root: root.to_owned(), boot_id })
    }

    /// The boot this machine runs in.
    #[must_use]
    pub fn boot_id(&self) -> &BootId {
        &self.boot_id
    }

    /// Whether a process has this pid now, and which.
    #[must_use]
    pub fn observe(&self, pid: Pid) -> Observed {
        match self.stat(pid.get()) {
            Ok(Some(stat)) if stat.is_dead() => Observed::Absent,
            Ok(Some(stat)) => Observed::Alive { start_ticks: stat.start_ticks },
            Ok(None) if self.is_hidden(pid) => Observed::Unreadable,
            Ok(None) => Observed::Absent,
            Err(_) => Observed::Unreadable,
        }
    }

    /// Whether a process has ended and its parent did not collect its status yet.
    pub(crate) fn is_uncollected(&self, identity: &ProcessIdentity) -> bool {
        let stat = self.stat(identity.pid.get()).ok().flatten();
        stat.is_some_and(|stat| stat.start_ticks == identity.start_ticks && stat.is_dead())
    }

    /// The status of a process that has ended and was not collected yet.
    ///
    /// Format: `proc_pid_stat(5)`.
    ///
    /// `None` for 0 too: the kernel also shows 0 to readers that may not know the status.
    pub(crate) fn uncollected_status(&self, identity: &ProcessIdentity) -> Option<ExitStatus> {
        let stat = self.stat(identity.pid.get()).ok().flatten()?;
        let is_same = stat.start_ticks == identity.start_ticks;
        (is_same && stat.is_dead() && stat.exit_code != 0)
            .then(|| ExitStatus::from_raw(stat.exit_code))
    }

    /// When a process was started, also if it has ended and is not collected yet.
    #[must_use]
    pub fn start_ticks(&self, pid: Pid) -> Option<u64> {
        self.stat(pid.get()).ok().flatten().map(|stat| stat.start_ticks)
    }

    /// Facts about a live process. `None` without one, or if it cannot be identified.
    #[must_use]
    pub fn facts(&self, pid: Pid) -> Option<ProcessFacts> {
        let before = self.stat(pid.get()).ok().flatten()?;
        if before.is_dead() {
            return None;
        }
        let facts = ProcessFacts {
            identity: ProcessIdentity {
                pid,
                start_ticks: before.start_ticks,
                boot_id: self.boot_id.clone(),
            },
            parent: before.parent,
            group: before.group,
            uid: self.effective_uid(pid.get())?,
            argv: self.argv(pid.get()),
            cwd: self.link(pid.get(), "cwd"),
            exe: self.link(pid.get(), "exe").map(without_deleted_mark),
        };
        // The files were read one after the other: the pid may have been reused meanwhile.
        let after = self.stat(pid.get()).ok().flatten()?;
        (after.start_ticks == before.start_ticks && !after.is_dead()).then_some(facts)
    }

    /// Identity of the calling process, in a table of this machine.
    ///
    /// # Errors
    /// Its entry cannot be read, or it is process 1, whose identity is never used for signals.
    pub fn own_identity(&self) -> io::Result<ProcessIdentity> {
        let pid = Pid::new(i64::from(std::process::id()))
            .ok_or_else(|| io::Error::other("this is the init process"))?;
        let stat = self.stat(pid.get())?.ok_or(io::ErrorKind::NotFound)?;
        let boot_id = self.boot_id.clone();
        Ok(ProcessIdentity { pid, start_ticks: stat.start_ticks, boot_id })
    }

    /// The launch that a process belongs to.
    ///
    /// Its id is in the environment. A process may drop it there, but cannot leave its control group.
    pub(crate) fn launch_id(&self, pid: i32) -> Option<LaunchId> {
        self.carried_launch(pid).or_else(|| self.enclosing_launch(pid))
    }

    /// The launch in whose control group a process is.
    pub(crate) fn enclosing_launch(&self, pid: i32) -> Option<LaunchId> {
        enclosure::launch_of(&self.control_groups(pid)?)
    }

    /// The control groups of a process, as its file `cgroup` lists them.
    pub(crate) fn control_groups(&self, pid: i32) -> Option<String> {
        String::from_utf8(self.read(pid, "cgroup").ok()?).ok()
    }

    /// The launch whose id is in the environment of a process.
    pub(crate) fn carried_launch(&self, pid: i32) -> Option<LaunchId> {
        let environment = self.read(pid, "environ").ok()?;
        let prefix = [LAUNCH_ID_VARIABLE.as_bytes(), b"="].concat();
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(prefix.as_slice()))?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// Time since the start of a process, including time in suspension.
    pub(crate) fn age(&self, start_ticks: u64) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now = Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or_default());
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        now.saturating_sub(Duration::from_secs(start_ticks / ticks_per_second))
    }

    /// All processes without zombies and kernel threads, unsorted.
    pub(crate) fn snapshot(&self) -> Vec<Stat> {
        self.pids()
            .into_iter()
            .filter_map(|pid| self.stat(pid).ok().flatten())
            .filter(|stat| !stat.is_dead() && !stat.is_kernel_thread())
            .collect()
    }

    /// All pids in use, unsorted.
    pub(crate) fn pids(&self) -> Vec<i32> {
        let Ok(entries) = std::fs::read_dir(&self.root) else {
            return Vec::new();
        };
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok()).collect()
    }

    /// The process with a pid, and its use of processor and memory. Includes zombies.
    pub(crate) fn account(&self, pid: i32) -> Option<(Stat, Account)> {
        let mut buffer = [0; LINE_BYTES];
        let line = self.line(pid, "stat", &mut buffer).ok()?;
        Some((Stat::parse(pid, line)?, Account::parse(pid, line)?))
    }

    /// Resident memory of a process; 0 if it cannot be read.
    pub(crate) fn resident_bytes(&self, pid: i32) -> u64 {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        self.account(pid).map_or(0, |(_, account)| account.resident_pages.saturating_mul(page))
    }

    /// Open descriptors of a process; `None` if this user may not read that.
    pub(crate) fn open_files(&self, pid: i32) -> Option<u64> {
        let path = self.path(pid, "fd");
        // Since Linux 6.2 the size of the directory is the number. Before, the size is 0.
        let size = std::fs::metadata(&path).ok()?.len();
        if size > 0 && self.root == Path::new(KERNEL_ROOT) {
            return Some(size);
        }
        let entries = std::fs::read_dir(&path).ok()?;
        u64::try_from(entries.count()).ok()
    }

    /// Bytes that a process and its ended children read from and wrote to disks.
    ///
    /// `None` if this user may not read that. The format is that of `proc_pid_io(5)`.
    pub(crate) fn moved(&self, pid: i32) -> Option<Moved> {
        let mut buffer = [0; LINE_BYTES];
        let text = std::str::from_utf8(self.line(pid, "io", &mut buffer).ok()?).ok()?;
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(':')?.trim().parse().ok()
        };
        Some(Moved { read: number("read_bytes")?, written: number("write_bytes")? })
    }

    /// Reads a short file of one process, in one call and without an allocation.
    fn line<'a>(
        &self,
        pid: i32,
        name: &str,
        buffer: &'a mut [u8; LINE_BYTES],
    ) -> io::Result<&'a [u8]> {
        let file = self.open_file(pid, name)?;
        let length = rustix::io::retry_on_intr(|| rustix::io::read(&file, buffer.as_mut_slice()))?;
        Ok(buffer.get(..length).unwrap_or_default())
    }

    /// Effective user id of a process.
    pub(crate) fn effective_uid(&self, pid: i32) -> Option<u32> {
        let status = self.read(pid, "status").ok()?;
        // `Uid:` real, effective, saved, file system (proc_pid_status(5)). The name comes first
        // but cannot forge a line: the kernel escapes line ends in it.
        let line =
            status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
        let text = std::str::from_utf8(line).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// The status line of a process; `None` if no process has the pid.
    pub(crate) fn stat(&self, pid: i32) -> io::Result<Option<Stat>> {
        let mut buffer = [0; LINE_BYTES];
        match self.line(pid, "stat", &mut buffer) {
            Ok(line) => match Stat::parse(pid, line) {
                Some(stat) => Ok(Some(stat)),
                None => Err(io::Error::from(io::ErrorKind::InvalidData)),
            },
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a pid is in use although `/proc` hides it (mount option `hidepid`).
    fn is_hidden(&self, pid: Pid) -> bool {
        if self.root != Path::new(KERNEL_ROOT) {
            return false;
        }
        let Some(raw) = rustix::process::Pid::from_raw(pid.get()) else {
            return false;
        };
        rustix::process::test_kill_process(raw) == Err(rustix::io::Errno::PERM)
    }

    fn argv(&self, pid: i32) -> Vec<String> {
        let Ok(bytes) = self.read(pid, "cmdline") else {
            return Vec::new();
        };
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        if bytes.is_empty() {
            return Vec::new();
        }
        bytes
            .split(|byte| *byte == 0)
            .map(|element| String::from_utf8_lossy(element).into_owned())
            .collect()
    }

    fn link(&self, pid: i32, name: &str) -> Option<PathBuf> {
        std::fs::read_link(self.path(pid, name)).ok()
    }

    fn read(&self, pid: i32, name: &str) -> io::Result<Vec<u8>> {
        let file = self.open_file(pid, name)?;
        // The kernel reports no size. A buffer of the usual size takes the file in one read.
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        File::from(file).take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open_file(&self, pid: i32, name: &str) -> io::Result<OwnedFd> {
        // Without blocking: in a test's directory the name may be a pipe.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(open(self.path(pid, name), flags, rustix::fs::Mode::empty())?)
    }

    fn path(&self, pid: i32, name: &str) -> PathBuf {
        let mut path = OsString::with_capacity(self.root.as_os_str().len() + 24);
        path.push(&self.root);
        // Cannot fail: the buffer grows.
        let _ = write!(path, "/{pid}/{name}");
        PathBuf::from(path)
    }
}

/// Whether an error means that no process has the pid.
///
/// The directory is missing, or the process ended between opening and reading.
fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// When this boot began, since the epoch (`btime` of `/proc/stat`).
#[must_use]
pub fn booted_at() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok().map(Duration::from_secs)
}

/// The name of the file that a process runs from.
pub(crate) fn running_file(pid: i32) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).map(without_deleted_mark)
}

/// The file itself, even if it has no name any more.
pub(crate) fn running_metadata(pid: i32) -> io::Result<std::fs::Metadata> {
    std::fs::metadata(format!("/proc/{pid}/exe"))
}

/// Removes the mark that the kernel appends to the link of a deleted file.
fn without_deleted_mark(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(name) => PathBuf::from(OsString::from_vec(name.to_vec())),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A process directory made by a test.
    struct Fabricated {
        dir: tempfile::TempDir,
    }

    impl Fabricated {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let random = dir.path().join("sys/kernel/random");
            std::fs::create_dir_all(&random).unwrap();
            std::fs::write(random.join("boot_id"), "boot-a\n").unwrap();
            Self { dir }
        }

        fn process(&self, pid: i32, name: &str, state: char, ticks: u64) -> PathBuf {
            let path = self.dir.path().join(pid.to_string());
            std::fs::create_dir_all(&path).unwrap();
            let stat = format!(
                "{pid} ({name}) {state} 7 {pid} {pid} 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 \
                 {ticks} 99 98"
            );
            std::fs::write(path.join("stat"), stat).unwrap();
            std::fs::write(path.join("status"), "Name:\tx\nUid:\t1\t1000\t3\t4\n").unwrap();
            path
        }

        fn table(&self) -> ProcTable {
            ProcTable::at(self.dir.path()).unwrap()
        }
    }

    fn pid(raw: i64) -> Pid {
        Pid::new(raw).unwrap()
    }

    #[test]
    fn f4_a_name_with_parentheses_and_state_letters_does_not_shift_the_fields() {
        let tree = Fabricated::new();
        tree.process(40, "a) R 1 (b", 'S', 777);
        tree.process(41, ") Z 1 1 (\n9", 'R', 778);
        let alive = |start_ticks| Observed::Alive { start_ticks };
        assert_eq!(tree.table().observe(pid(40)), alive(777));
        assert_eq!(tree.table().observe(pid(41)), alive(778));
        let facts = tree.table().facts(pid(40)).unwrap();
        assert_eq!((facts.parent, facts.group, facts.uid), (7, 40, 1000));
    }

    #[test]
    fn f5_zombies_and_dying_processes_are_absent() {
        let tree = Fabricated::new();
        for (number, state) in [(40, 'Z'), (41, 'X'), (42, 'x')] {
            tree.process(number, "agent", state, 777);
            let number = pid(i64::from(number));
            assert_eq!(tree.table().observe(number), Observed::Absent, "{state}");
            assert_eq!(tree.table().facts(number), None, "{state}");
        }
        assert!(tree.table().snapshot().is_empty());
    }

    #[test]
    fn f6_what_cannot_be_read_is_unreadable_and_what_is_missing_is_absent() {
        let tree = Fabricated::new();
        // Reading a directory as a file fails even for the superuser.
        std::fs::create_dir_all(tree.dir.path().join("40/stat")).unwrap();
        std::fs::create_dir_all(tree.dir.path().join("41")).unwrap();
        for (number, text) in [(42, ""), (43, "43 (x"), (44, "44 (x) S 1 1 1")] {
            let path = tree.process(number, "x", 'S', 1);
            std::fs::write(path.join("stat"), text).unwrap();
        }
        // Bad or too large numbers: a line that is not understood is not an absent process.
        let path = tree.process(45, "x", 'S', 1);
        std::fs::write(
            path.join("stat"),
            "45 (x) S 1 45 45 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 99999999999999999999999 1",
        )
        .unwrap();
        for number in [40, 42, 43, 44, 45] {
            let seen = tree.table().observe(pid(number));
            assert_eq!(seen, Observed::Unreadable, "{number}");
        }
        assert_eq!(tree.table().observe(pid(41)), Observed::Absent);
        assert_eq!(tree.table().observe(pid(99)), Observed::Absent);
    }

    #[test]
    fn the_status_line_of_another_pid_is_refused() {
        let tree = Fabricated::new();
        let path = tree.process(40, "x", 'S', 1);
        std::fs::copy(tree.process(41, "y", 'S', 2).join("stat"), path.join("stat")).unwrap();
        assert_eq!(tree.table().observe(pid(40)), Observed::Unreadable);
    }

    #[test]
    fn f85_a_replaced_program_file_keeps_its_name() {
        let tree = Fabricated::new();
        let path = tree.process(40, "claude", 'S', 1);
        symlink("/opt/claude (deleted)", path.join("exe")).unwrap();
        symlink("/projects/api (deleted)", path.join("cwd")).unwrap();
        std::fs::write(path.join("cmdline"), b"claude\0remote-control\0\0--x=\xff\0").unwrap();
        let facts = tree.table().facts(pid(40)).unwrap();
        assert_eq!(facts.exe, Some(PathBuf::from("/opt/claude")));
        assert_eq!(facts.cwd, Some(PathBuf::from("/projects/api (deleted)")));
        assert_eq!(facts.argv, ["claude", "remote-control", "", "--x=\u{fffd}"]);
    }

    #[test]
    fn a_launch_id_is_found_only_as_a_whole_variable() {
        let tree = Fabricated::new();
        let path = tree.process(40, "x", 'S', 1);
        let id = "0123456789abcdef0123456789abcdef";
        let found = |environment: String| {
            std::fs::write(path.join("environ"), environment).unwrap();
            tree.table().launch_id(40).map(|id| id.as_str().to_owned())
        };
        assert_eq!(found(format!("A=1\0SVC_LAUNCH_ID={id}\0B=2\0")), Some(id.to_owned()));
        assert_eq!(found(format!("X=SVC_LAUNCH_ID={id}\0")), None);
        assert_eq!(found(format!("SVC_LAUNCH_ID={id}0\0")), None);
        assert_eq!(found(format!("SVC_LAUNCH_ID2={id}\0")), None);
        assert_eq!(found(String::new()), None);
    }

    #[test]
    fn without_a_boot_id_there_is_no_table() {
        let dir = tempfile::tempdir().unwrap();
        let error = ProcTable::at(dir.path()).unwrap_err();
        assert!(error.to_string().contains("boot_id"), "{error}");
        let random = dir.path().join("sys/kernel/random");
        std::fs::create_dir_all(&random).unwrap();
        std::fs::write(random.join("boot_id"), "\n").unwrap();
        assert!(matches!(ProcTable::at(dir.path()), Err(TableError::BadBootId { .. })));
    }
}
