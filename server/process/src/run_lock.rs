//! The lock a server holds on its state directory for life, and what it says about itself there.
//!
//! The kernel frees it with the death of the process; the file stays and its content alone proves
//! nothing. Commands beside the server read it and never lock it.

use crate::locks;
use crate::table::ProcTable;
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use svc_domain::identity::{Pid, ProcessIdentity};

/// Its name in the state directory.
pub const RUN_LOCK_FILE: &str = "run.lock";

const MAX_BYTES: u64 = 4096;

/// A lock that seems held may be on its way out: a server that just died had a child between fork
/// and exec. A server that runs is there for longer.
const RETRY_FOR: Duration = Duration::from_millis(300);
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its process id.
    pub pid: i64,
    /// Clock ticks since boot at its start.
    pub start_ticks: u64,
    /// The boot the ticks count from.
    pub boot_id: String,
    /// Where it listens; `None` until it does.
    pub address: Option<String>,
    /// When it started, in milliseconds since the Unix epoch; for display.
    pub started_at: i64,
}

impl RunRecord {
    /// The record of this process, which does not listen yet.
    ///
    /// # Errors
    /// Its own entry in the process table cannot be read.
    pub fn of_this_process(table: &ProcTable, started_at: i64) -> io::Result<Self> {
        let pid = rustix::process::getpid().as_raw_pid();
        let stat = table.stat(pid)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            pid: i64::from(pid),
            start_ticks: stat.start_ticks,
            boot_id: table.boot_id().as_str().to_owned(),
            address: None,
            started_at,
        })
    }

    /// Whether the server of the record runs; `None` when the process table does not tell.
    ///
    /// A question only: in a container the server may be the init process, which this answers and
    /// which has no [`RunRecord::identity`].
    #[must_use]
    pub fn is_alive(&self, table: &ProcTable) -> Option<bool> {
        let Ok(pid) = i32::try_from(self.pid) else {
            return Some(false);
        };
        if pid < 1 || self.boot_id != table.boot_id().as_str() {
            return Some(false);
        }
        let stat = table.stat(pid).ok()?;
        Some(stat.is_some_and(|stat| !stat.is_dead() && stat.start_ticks == self.start_ticks))
    }

    /// Who it says it is; `None` when that is no process that may be signalled.
    #[must_use]
    pub fn identity(&self) -> Option<ProcessIdentity> {
        Some(ProcessIdentity {
            pid: Pid::new(self.pid)?,
            start_ticks: self.start_ticks,
            boot_id: self.boot_id.parse().ok()?,
        })
    }
}

/// The held lock. Dropped, the record is emptied and the lock is free.
#[derive(Debug)]
#[must_use = "dropping the value frees the state directory"]
pub struct RunLock {
    file: File,
    path: PathBuf,
    record: RunRecord,
}

/// Why the state directory is not ours.
#[derive(Debug, thiserror::Error)]
pub enum RunLockError {
    /// Another server runs on it.
    #[error("{}", held_by(path, record.as_ref()))]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What that server says about itself, if it has said something.
        record: Option<RunRecord>,
    },
    /// The lock file cannot be used.
    #[error("cannot use the lock file {path}")]
    File {
        /// The lock file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
}

fn held_by(path: &Path, record: Option<&RunRecord>) -> String {
    let holder = match record {
        Some(record) => {
            let address = record.address.as_deref().unwrap_or("no address yet");
            let (pid, ticks) = (record.pid, record.start_ticks);
            format!("process {pid} (started at tick {ticks}, {address})")
        }
        None => "a process that has not said who it is".to_owned(),
    };
    format!(
        "another server runs on this state directory: {holder} holds {}; stop it, or use another \
         state directory",
        path.display()
    )
}

impl RunLock {
    /// Takes the state directory for this process and writes the record. Blocks, at most 300 ms.
    ///
    /// # Errors
    /// [`RunLockError::Held`] while another process has it.
    pub fn take(state_directory: &Path, record: RunRecord) -> Result<Self, RunLockError> {
        let path = state_directory.join(RUN_LOCK_FILE);
        let failed = |cause| RunLockError::File { path: path.clone(), cause };
        let deadline = Instant::now() + RETRY_FOR;
        let file = loop {
            if let Some(file) = locks::try_file(&path).map_err(failed)? {
                break File::from(file);
            }
            if Instant::now() >= deadline {
                let record = Self::read(state_directory).ok().flatten();
                return Err(RunLockError::Held { path, record });
            }
            std::thread::sleep(RETRY_EVERY);
        };
        let mut taken = Self { file, path: path.clone(), record };
        taken.write().map_err(failed)?;
        Ok(taken)
    }

    /// Says where the server listens.
    ///
    /// # Errors
    /// The record could not be written.
    pub fn set_address(&mut self, address: String) -> Result<(), RunLockError> {
        self.record.address = Some(address);
        self.write().map_err(|cause| RunLockError::File { path: self.path.clone(), cause })
    }

    /// What this server says about itself.
    #[must_use]
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// What the last server on a state directory said about itself; `None` after an orderly end.
    /// Whether it lives is another question: [`RunRecord::is_alive`].
    ///
    /// # Errors
    /// The file is there but cannot be read.
    pub fn read(state_directory: &Path) -> Result<Option<RunRecord>, RunLockError> {
        let path = state_directory.join(RUN_LOCK_FILE);
        match read_bounded(&path) {
            // Damaged or half written: nobody has said anything.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(RunLockError::File { path, cause }),
        }
    }

    /// In place, since the lock is on this very file; one write, cut to length afterwards, so that
    /// a reader sees the old or the new record and blanks at worst.
    fn write(&mut self) -> io::Result<()> {
        let mut line = serde_json::to_vec(&self.record)?;
        line.push(b'\n');
        let old = usize::try_from(self.file.metadata()?.len()).unwrap_or(usize::MAX);
        let new = line.len();
        line.resize(new.max(old.min(4096)), b' ');
        self.file.write_all_at(&line, 0)?;
        self.file.set_len(u64::try_from(new).unwrap_or(u64::MAX))
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        if let Err(error) = self.file.set_len(0) {
            tracing::debug!(%error, "the record of this server stays in its lock file");
        }
        locks::release(&self.file);
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file: OwnedFd = open(path, flags, Mode::empty())?;
    let mut bytes = Vec::new();
    File::from(file).take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
