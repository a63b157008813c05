//! Asking the running service for a restart, and waiting until it is back.

use super::{Request, RestartAnswer};
use crate::tasks::blocking;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_process::run_lock::{RUN_LOCK_FILE, RunLock, RunRecord};
use svc_process::table::ProcTable;
use svc_watch::{Pace, Watcher};

/// The check takes a few hundred milliseconds; a slow disk gets this long.
const ANSWER: Duration = Duration::from_secs(30);
/// Requests under way have ten seconds, use-cases ten more, and then it starts.
const RETURN: Duration = Duration::from_secs(45);
/// Where changes of a file are not reported, the record is read this often.
const LOOK: Duration = Duration::from_millis(200);
/// Longest answer: a reason of a few lines.
const LONGEST_ANSWER: usize = 16 * 1024;

/// The service that is back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restarted {
    /// Its process, the same as before.
    pub pid: i64,
    /// Address of its page.
    pub url: String,
}

/// Why no restarted service can be shown.
#[derive(Debug, thiserror::Error)]
pub enum NotRestarted {
    /// Nothing serves this state directory.
    #[error("no service runs on this state directory; start one with `svc run`")]
    NotRunning,
    /// The service goes on as it is, for this reason.
    #[error("{0}")]
    Refused(String),
    /// It did not answer.
    #[error(
        "the service does not answer ({0}); it may be starting, ending, or of an earlier version: \
         see its log, or restart it by its service manager"
    )]
    Silent(io::Error),
    /// It ended, and nothing is there now.
    #[error(
        "the service (process {pid}) ended for its restart and did not come back within {} s; see \
         its log",
        RETURN.as_secs()
    )]
    Away {
        /// The process that was to replace itself.
        pid: i64,
    },
}

/// Restarts the service of a state directory; comes back when it listens again.
///
/// # Errors
/// None runs, it refuses, or it does not come back.
pub async fn restart(state_dir: PathBuf) -> Result<Restarted, NotRestarted> {
    let mut changes = Watcher::new().file(&state_dir.join(RUN_LOCK_FILE), Pace::every(LOOK));
    let of = state_dir.clone();
    let asked = blocking(move || {
        let before = running(&of).ok_or(NotRestarted::NotRunning)?;
        Ok((before, ask(&of, &Request::Restart).map_err(NotRestarted::Silent)?))
    });
    let asked = asked.await.map_err(|error| NotRestarted::Silent(io::Error::other(error)))?;
    let before = match asked? {
        (before, RestartAnswer::Restarting) => before,
        (_, RestartAnswer::Refused(reason)) => return Err(NotRestarted::Refused(reason)),
    };
    let wait = async {
        loop {
            if let Ok(Some(now)) = RunLock::read(&state_dir)
                && now.started_at != before.started_at
                && let Some(url) = now.address
            {
                return Restarted { pid: now.pid, url };
            }
            changes.changed().await;
        }
    };
    tokio::time::timeout(RETURN, wait).await.map_err(|_| NotRestarted::Away { pid: before.pid })
}

/// The record of the service that runs.
pub(crate) fn running(state_dir: &Path) -> Option<RunRecord> {
    let record = RunLock::read(state_dir).ok().flatten()?;
    let is_alive = ProcTable::open().ok().and_then(|table| record.is_alive(&table));
    (is_alive != Some(false)).then_some(record)
}

/// Asks the service for a restart, and waits for its answer.
pub(crate) fn ask(state_dir: &Path, request: &Request) -> io::Result<RestartAnswer> {
    let service = crate::nudge::socket(state_dir);
    let own = OwnSocket(service.with_file_name(format!("restart-{}.sock", std::process::id())));
    match std::fs::remove_file(&own.0) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let socket = UnixDatagram::bind(&own.0)?;
    socket.set_read_timeout(Some(ANSWER))?;
    socket.send_to(&request.message()?, &service)?;
    let mut buffer = vec![0; LONGEST_ANSWER];
    let length = socket.recv(&mut buffer)?;
    Ok(serde_json::from_slice(buffer.get(..length).unwrap_or_default())?)
}

/// The socket that an answer comes to; removed with the value.
struct OwnSocket(PathBuf);

impl Drop for OwnSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // never bound: fine
    }
}
