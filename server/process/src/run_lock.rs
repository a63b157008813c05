//! The lock of a server on its state directory, and the record of the server in it.
//!
//! The server holds the lock as long as it lives; the kernel frees it when the server dies. The file
//! stays, and its content alone proves nothing. Commands beside the server read it and never lock it.

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

/// The name of the lock file in the state directory.
pub const RUN_LOCK_FILE: &str = "run.lock";

const MAX_BYTES: u64 = 4096;

/// How long to retry while the lock is held.
///
/// When a server dies, a child of it between fork and exec holds the lock for an instant longer.
const RETRY_FOR: Duration = Duration::from_millis(300);
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// What a server writes about itself into its lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its process id.
    pub pid: i64,
    /// Clock ticks since boot at its start.
    pub start_ticks: u64,
    /// The boot from which the ticks count.
    pub boot_id: String,
    /// The address it listens on; `None` until it listens.
    pub address: Option<String>,
    /// Its start in milliseconds since the Unix epoch, for display.
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

    /// Whether the server of the record runs.
    ///
    /// `None` if the process table cannot be read. Also works for a server that is process 1 of a container, which has no
    /// [`RunRecord::identity`].
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

    /// The identity in the record. `None` if it is not one that may be signalled.
    #[must_use]
    pub fn identity(&self) -> Option<ProcessIdentity> {
        Some(ProcessIdentity {
            pid: Pid::new(self.pid)?,
            start_ticks: self.start_ticks,
            boot_id: self.boot_id.parse().ok()?,
        })
    }
}

/// The held lock. Dropping it empties the record and frees the lock.
#[derive(Debug)]
#[must_use = "dropping the value frees the state directory"]
pub struct RunLock {
    file: File,
    path: PathBuf,
    record: RunRecord,
}

/// Why this process did not get the state directory.
#[derive(Debug, thiserror::Error)]
pub enum RunLockError {
    /// Another server uses it.
    #[error("{}", held_by(path, record.as_ref()))]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The record of that server, if it has written one.
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
    /// Takes the state directory for this process and writes the record.
    ///
    /// Blocks for at most 300 ms.
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

    /// Writes the address of the server into the record.
    ///
    /// # Errors
    /// The record could not be written.
    pub fn set_address(&mut self, address: String) -> Result<(), RunLockError> {
        self.record.address = Some(address);
        self.write().map_err(|cause| RunLockError::File { path: self.path.clone(), cause })
    }

    /// The record of this server.
    #[must_use]
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The record of the last server on a state directory. `None` after an orderly end.
    ///
    /// The server may have died since: ask [`RunRecord::is_alive`].
    ///
    /// # Errors
    /// The file is there but cannot be read.
    pub fn read(state_directory: &Path) -> Result<Option<RunRecord>, RunLockError> {
        let path = state_directory.join(RUN_LOCK_FILE);
        match read_bounded(&path) {
            // A damaged or half written record counts as none.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(RunLockError::File { path, cause }),
        }
    }

    /// Writes the record in place, because the lock is on this very file.
    ///
    /// One write, shortened afterwards: a reader sees the old or the new record, perhaps with blanks.
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
