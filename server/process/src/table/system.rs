//! The process table of a system without `/proc`.
//!
//! It answers questions about single processes.
//!
//! Tests run it on Linux beside the other one. On macOS none of it was run yet.

use super::{Account, KERNEL_ROOT, LAUNCH_ID_VARIABLE, Stat, TableError};
use rustix::io::Errno;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
#[cfg(not(target_os = "linux"))]
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use svc_domain::identity::{BootId, LaunchId, Observed, Pid, ProcessIdentity};
use svc_domain::usage::Moved;
use svc_ports::process::ProcessFacts;
use sysinfo::{Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

/// The process table of this machine.
///
/// What identifies a process here is the second in which it started. A pid comes back only after
/// all others were used, which takes longer.
#[derive(Debug, Clone)]
pub struct ProcTable {
    boot_id: BootId,
}

impl ProcTable {
    /// The table of this machine.
    ///
    /// # Errors
    /// The system does not say when it was started.
    pub fn open() -> Result<Self, TableError> {
        let boot_id = boot_id().and_then(|text| text.parse().ok());
        Ok(Self { boot_id: boot_id.ok_or(TableError::NoBootId)? })
    }

    /// The table of this machine, which is the only one here.
    ///
    /// # Errors
    /// Another directory than the default is asked for, or as for [`open`](Self::open).
    pub fn at(root: &Path) -> Result<Self, TableError> {
        match root == Path::new(KERNEL_ROOT) {
            true => Self::open(),
            false => Err(TableError::Unreadable {
                path: root.to_owned(),
                cause: io::ErrorKind::Unsupported.into(),
            }),
        }
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
            Ok(None) => Observed::Absent,
            Err(_) => Observed::Unreadable,
        }
    }

    /// Only the parent of a process learns its status here.
    #[expect(clippy::unused_self, reason = "other systems read it from the table")]
    pub(crate) fn uncollected_status(&self, _: &ProcessIdentity) -> Option<ExitStatus> {
        None
    }

    /// When a process was started, also if it has ended and is not collected yet.
    #[must_use]
    pub fn start_ticks(&self, pid: Pid) -> Option<u64> {
        self.stat(pid.get()).ok().flatten().map(|stat| stat.start_ticks)
    }

    /// Facts about a live process. `None` without one, or if it cannot be identified.
    #[must_use]
    pub fn facts(&self, pid: Pid) -> Option<ProcessFacts> {
        let kind = ProcessRefreshKind::nothing()
            .with_cmd(UpdateKind::Always)
            .with_cwd(UpdateKind::Always)
            .with_exe(UpdateKind::Always)
            .with_user(UpdateKind::Always);
        let system = look_at(&[pid.get()], kind);
        let process = process_of(&system, pid.get())?;
        let before = stat_of(process)?;
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
            uid: uid_of(process)?,
            argv: process.cmd().iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            cwd: process.cwd().map(Path::to_owned),
            exe: process.exe().map(Path::to_owned),
        };
        // The facts were read one after the other: the pid may have been reused meanwhile.
        let after = self.stat(pid.get()).ok().flatten()?;
        (after.start_ticks == before.start_ticks && !after.is_dead()).then_some(facts)
    }

    /// Identity of the calling process.
    ///
    /// # Errors
    /// Nothing is known about it, or it is process 1, whose identity is never used for signals.
    pub fn own_identity(&self) -> io::Result<ProcessIdentity> {
        let pid = Pid::new(i64::from(std::process::id()))
            .ok_or_else(|| io::Error::other("this is the init process"))?;
        let stat = self.stat(pid.get())?.ok_or(io::ErrorKind::NotFound)?;
        let boot_id = self.boot_id.clone();
        Ok(ProcessIdentity { pid, start_ticks: stat.start_ticks, boot_id })
    }

    /// The launch that a process belongs to.
    pub(crate) fn launch_id(&self, pid: i32) -> Option<LaunchId> {
        self.carried_launch(pid)
    }

    /// There are no control groups here.
    #[expect(clippy::unused_self, reason = "other systems read it from the table")]
    pub(crate) fn enclosing_launch(&self, _: i32) -> Option<LaunchId> {
        None
    }

    /// There are no control groups here.
    #[expect(clippy::unused_self, reason = "other systems read it from the table")]
    pub(crate) fn control_groups(&self, _: i32) -> Option<String> {
        None
    }

    /// The launch whose id is in the environment of a process.
    #[expect(clippy::unused_self, reason = "other systems have several tables")]
    pub(crate) fn carried_launch(&self, pid: i32) -> Option<LaunchId> {
        let kind = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
        let system = look_at(&[pid], kind);
        let prefix = [LAUNCH_ID_VARIABLE.as_bytes(), b"="].concat();
        let environment = process_of(&system, pid)?.environ();
        let value =
            environment.iter().find_map(|entry| entry.as_bytes().strip_prefix(&prefix[..]))?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// Time since the start of a process, by the clock on the wall.
    #[expect(clippy::unused_self, reason = "other systems have several tables")]
    pub(crate) fn age(&self, started: u64) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(Duration::from_secs(started))
    }

    /// All processes without zombies, unsorted.
    #[expect(clippy::unused_self, reason = "other systems have several tables")]
    pub(crate) fn snapshot(&self) -> Vec<Stat> {
        let system = all();
        let stats = system.processes().values().filter_map(stat_of);
        stats.filter(|stat| !stat.is_dead()).collect()
    }

    /// All pids in use, unsorted.
    #[expect(clippy::unused_self, reason = "other systems have several tables")]
    pub(crate) fn pids(&self) -> Vec<i32> {
        let pid = |pid: &sysinfo::Pid| i32::try_from(pid.as_u32()).ok();
        all().processes().keys().filter_map(pid).collect()
    }

    /// The process with a pid, and its use of processor and memory.
    ///
    /// The time of ended children is not known here.
    #[expect(clippy::unused_self, reason = "other systems have several tables")]
    pub(crate) fn account(&self, pid: i32) -> Option<(Stat, Account)> {
        let system = look_at(&[pid], ProcessRefreshKind::nothing().with_cpu().with_memory());
        let process = process_of(&system, pid)?;
        let milliseconds = process.accumulated_cpu_time();
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096).max(1);
        let account = Account {
            own_ticks: milliseconds.saturating_mul(ticks_per_second) / 1000,
            collected_ticks: 0,
            resident_pages: process.memory() / page,
        };
        Some((stat_of(process)?, account))
    }

    /// Resident memory of a process; 0 if it cannot be read.
    pub(crate) fn resident_bytes(&self, pid: i32) -> u64 {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        self.account(pid).map_or(0, |(_, account)| account.resident_pages.saturating_mul(page))
    }

    /// Open descriptors of a process; `None` if this user may not read that.
    #[expect(clippy::unused_self, reason = "other systems have several tables")]
    pub(crate) fn open_files(&self, pid: i32) -> Option<u64> {
        let system = look_at(&[pid], ProcessRefreshKind::nothing());
        process_of(&system, pid)?.open_files().and_then(|count| u64::try_from(count).ok())
    }

    /// Bytes to and from disks are not reported here.
    ///
    /// The API has null for them (`GET /api/projects/{name}/metrics`).
    #[expect(clippy::unused_self, reason = "other systems read it from the table")]
    pub(crate) fn moved(&self, _: i32) -> Option<Moved> {
        None
    }

    /// Effective user id of a process.
    #[expect(clippy::unused_self, reason = "other systems have several tables")]
    pub(crate) fn effective_uid(&self, pid: i32) -> Option<u32> {
        let system = look_at(&[pid], ProcessRefreshKind::nothing().with_user(UpdateKind::Always));
        uid_of(process_of(&system, pid)?)
    }

    /// The state of a process; `None` if no process has the pid.
    #[expect(clippy::unused_self, reason = "other systems have several tables")]
    pub(crate) fn stat(&self, pid: i32) -> io::Result<Option<Stat>> {
        let system = look_at(&[pid], ProcessRefreshKind::nothing());
        match process_of(&system, pid).map(stat_of) {
            Some(Some(stat)) => Ok(Some(stat)),
            None if is_free(pid) => Ok(None),
            Some(None) | None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

/// When this boot began, since the epoch.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn booted_at() -> Option<Duration> {
    Some(System::boot_time()).filter(|began| *began > 0).map(Duration::from_secs)
}

/// The file that a process runs from.
#[cfg(not(target_os = "linux"))]
pub(crate) fn running_file(pid: i32) -> io::Result<PathBuf> {
    let system = look_at(&[pid], ProcessRefreshKind::nothing().with_exe(UpdateKind::Always));
    let file = process_of(&system, pid).and_then(Process::exe).map(Path::to_owned);
    file.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// What has the name of that file now.
#[cfg(not(target_os = "linux"))]
pub(crate) fn running_metadata(pid: i32) -> io::Result<std::fs::Metadata> {
    std::fs::metadata(running_file(pid)?)
}

/// Asks about some processes. No threads are listed.
fn look_at(pids: &[i32], kind: ProcessRefreshKind) -> System {
    let pids: Vec<sysinfo::Pid> = pids.iter().filter_map(|pid| listed(*pid)).collect();
    let mut system = System::new();
    let which = ProcessesToUpdate::Some(&pids);
    system.refresh_processes_specifics(which, true, kind.without_tasks());
    system
}

fn all() -> System {
    let mut system = System::new();
    let kind = ProcessRefreshKind::nothing().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    system
}

fn listed(pid: i32) -> Option<sysinfo::Pid> {
    u32::try_from(pid).ok().map(sysinfo::Pid::from_u32)
}

fn process_of(system: &System, pid: i32) -> Option<&Process> {
    system.process(listed(pid)?)
}

/// `None` if the system does not say when it started: nothing identifies it then.
fn stat_of(process: &Process) -> Option<Stat> {
    let number = |pid: sysinfo::Pid| i32::try_from(pid.as_u32()).ok();
    let pid = number(process.pid())?;
    let is_dead = matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead);
    let group = nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(pid)));
    let started = Some(process.start_time()).filter(|started| *started > 0)?;
    Some(Stat::of_system(
        pid,
        is_dead,
        process.parent().and_then(number).unwrap_or_default(),
        group.map_or(0, nix::unistd::Pid::as_raw),
        process.session_id().and_then(number).unwrap_or_default(),
        started,
    ))
}

fn uid_of(process: &Process) -> Option<u32> {
    process.effective_user_id().map(|uid| **uid)
}

/// Whether no process has a pid.
fn is_free(pid: i32) -> bool {
    let raw = rustix::process::Pid::from_raw(pid);
    raw.is_none_or(|raw| rustix::process::test_kill_process(raw) == Err(Errno::SRCH))
}

/// `kern.bootsessionuuid` is made anew at each start (`sysctl(3)` of macOS).
#[cfg(target_os = "macos")]
fn boot_id() -> Option<String> {
    use sysctl::Sysctl as _;
    sysctl::Ctl::new("kern.bootsessionuuid").ok()?.value_string().ok()
}

#[cfg(not(target_os = "macos"))]
fn boot_id() -> Option<String> {
    Some(System::boot_time()).filter(|began| *began > 0).map(|began| format!("boot-{began}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn child() -> Child {
        let mut command = Command::new("sleep");
        command
            .arg("60")
            .current_dir("/")
            .env(LAUNCH_ID_VARIABLE, "0123456789abcdef0123456789abcdef");
        command.spawn().unwrap()
    }

    fn pid_of(child: &Child) -> Pid {
        Pid::new(i64::from(child.id())).unwrap()
    }

    #[test]
    fn both_tables_say_the_same_about_a_process() {
        let mut child = child();
        let pid = pid_of(&child);
        let (files, system) =
            (super::super::ProcTable::open().unwrap(), ProcTable::open().unwrap());
        // The new process may still be a copy of this one.
        let expected = loop {
            let facts = files.facts(pid).unwrap();
            if facts.argv == ["sleep", "60"] {
                break facts;
            }
            std::thread::yield_now();
        };
        let found = system.facts(pid).unwrap();
        assert_eq!(
            (found.parent, found.group, found.uid, &found.argv, &found.cwd, &found.exe),
            (
                expected.parent,
                expected.group,
                expected.uid,
                &expected.argv,
                &expected.cwd,
                &expected.exe
            )
        );
        assert_eq!(system.effective_uid(pid.get()), Some(expected.uid));
        assert_eq!(system.launch_id(pid.get()), files.carried_launch(pid.get()));
        assert!(system.launch_id(pid.get()).is_some());
        assert_eq!(system.open_files(pid.get()), files.open_files(pid.get()));
        let unknown = (system.enclosing_launch(pid.get()), system.moved(pid.get()));
        assert_eq!(unknown, (None, None), "these are not told");
        assert_eq!(system.control_groups(pid.get()), None);
        let pick = |stats: Vec<Stat>| stats.into_iter().find(|stat| stat.pid == pid.get()).unwrap();
        let (found, expected) = (pick(system.snapshot()), pick(files.snapshot()));
        assert_eq!((found.parent, found.session), (expected.parent, expected.session));
        assert!(system.pids().contains(&pid.get()));
        assert!(system.resident_bytes(pid.get()) > 0);
        assert!(system.age(found.start_ticks) < Duration::from_secs(60));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_there_until_it_has_ended() {
        let mut child = child();
        let (pid, table) = (pid_of(&child), ProcTable::open().unwrap());
        let identity = table.facts(pid).unwrap().identity;
        let alive = Observed::Alive { start_ticks: identity.start_ticks };
        assert_eq!(table.observe(pid), alive);
        child.kill().unwrap();
        while table.observe(pid) == alive {
            std::thread::yield_now();
        }
        assert_eq!(table.start_ticks(pid), Some(identity.start_ticks), "nobody collected it");
        assert_eq!((table.observe(pid), table.facts(pid)), (Observed::Absent, None));
        assert_eq!(table.uncollected_status(&identity), None, "only its parent knows");
        child.wait().unwrap();
        assert_eq!(table.observe(pid), Observed::Absent);
    }

    #[test]
    fn this_process_knows_itself_and_no_other_directory_is_read() {
        let table = ProcTable::open().unwrap();
        let own = table.own_identity().unwrap();
        assert_eq!(table.observe(own.pid), Observed::Alive { start_ticks: own.start_ticks });
        assert_eq!(ProcTable::open().unwrap().own_identity().unwrap(), own);
        assert_eq!(&own.boot_id, table.boot_id());
        assert!(ProcTable::at(Path::new("/elsewhere")).is_err());
    }
}
