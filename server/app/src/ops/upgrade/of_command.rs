//! What the command does: it stages the program, asks the service, and waits.

use super::{NotUpgraded, OUTCOME, Order, Outcome, Stage, swap};
use crate::ops::restart::{NotRestarted, Request, RestartAnswer, ask, running};
use crate::tasks::blocking;
use sha2::{Digest as _, Sha256};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use svc_archive::{is_archive, read_program};
use svc_process::files;
use svc_process::run_lock::{RUN_LOCK_FILE, RunLock};
use svc_shared::Timestamp;
use svc_watch::{Pace, Watcher};

/// The name of the program in an archive.
const PROGRAM: &str = "svc";
/// A program that does not answer within this time does not start.
const PATIENCE: Duration = Duration::from_secs(10);
/// Ends of requests and use-cases, the trial, its end, and a start.
const OUTCOME_WAIT: Duration = Duration::from_secs(120);
/// Where changes of a file are not reported, it is read this often.
const LOOK: Duration = Duration::from_millis(200);

/// What somebody wants to be installed.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The state directory of the service.
    pub state_dir: PathBuf,
    /// The new program, or an archive with it.
    pub from: PathBuf,
    /// The SHA-256 that the file must have.
    pub sha256: Option<String>,
    /// The time of day.
    pub now: Timestamp,
}

/// A service that runs another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgraded {
    /// What the program before said of itself.
    pub from: String,
    /// What the new one says of itself.
    pub to: String,
    /// Nothing was done: it is the same program.
    pub was_so: bool,
    /// The process, the same as before.
    pub pid: i64,
    /// Address of its page.
    pub url: String,
    /// The program.
    pub target: PathBuf,
    /// Where the one before is kept.
    pub previous: PathBuf,
}

/// Installs another version for the running service; comes back when it serves.
///
/// # Errors
/// The service runs the version that it ran before, or nobody knows which.
pub async fn upgrade(wanted: Wanted) -> Result<Upgraded, NotUpgraded> {
    let Wanted { state_dir, from, sha256, now } = wanted;
    let dir = state_dir.clone();
    let staged = blocking(move || stage(&dir, &from, sha256.as_deref())).await??;
    let Staged { file, order, pid, address, is_same } = staged;
    let before = version_of(&order.target).await.unwrap_or_else(|why| why);
    let after = version_of(&order.staged).await.map_err(NotUpgraded::Unfit)?;
    if !after.starts_with("svc ") {
        return Err(NotUpgraded::Unfit(format!("it is not svc: it says {after:?}")));
    }
    let (target, previous) = (order.target.clone(), order.previous());
    let done = |url, was_so| Upgraded {
        from: before.clone(),
        to: after.clone(),
        was_so,
        pid,
        url,
        target: target.clone(),
        previous: previous.clone(),
    };
    if is_same {
        return Ok(done(address.unwrap_or_default(), true));
    }
    swap::announce(&state_dir, &order, now).await?;
    let mut changes = Watcher::new().file(&state_dir.join(OUTCOME), Pace::every(LOOK));
    let mut starts = Watcher::new().file(&state_dir.join(RUN_LOCK_FILE), Pace::every(LOOK));
    let (dir, request) = (state_dir.clone(), Request::Upgrade(order.clone()));
    let asked = blocking(move || ask(&dir, &request)).await?;
    match asked.map_err(|error| NotUpgraded::Asked(NotRestarted::Silent(error)))? {
        RestartAnswer::Restarting => {}
        RestartAnswer::Refused(reason) => {
            swap::note_failure(&state_dir, &order, now).await;
            return Err(NotUpgraded::Asked(NotRestarted::Refused(reason)));
        }
    }
    // The service has it now.
    let _ = file.keep();
    let away = || NotUpgraded::Away { pid, previous: previous.clone() };
    let outcome = async {
        loop {
            let told = outcome(&state_dir, &order.id);
            match told.filter(|told| told.stage != Stage::Trying) {
                Some(known) => return known,
                None => drop(changes.changed().await),
            }
        }
    };
    let outcome = tokio::time::timeout(OUTCOME_WAIT, outcome).await.map_err(|_| away())?;
    // The child of the trial has a record too; the service has its old process.
    let url = async {
        loop {
            if let Ok(Some(now)) = RunLock::read(&state_dir)
                && now.pid == pid
                && let Some(url) = now.address
            {
                return url;
            }
            starts.changed().await;
        }
    };
    let url = tokio::time::timeout(OUTCOME_WAIT, url).await.map_err(|_| away())?;
    match outcome {
        Outcome { stage: Stage::Kept, .. } => Ok(done(url, false)),
        Outcome { reason, .. } => {
            Err(NotUpgraded::Returned { reason: reason.unwrap_or_else(|| "no reason".to_owned()) })
        }
    }
}

fn outcome(state_dir: &Path, id: &str) -> Option<Outcome> {
    Outcome::read(state_dir).filter(|outcome| outcome.id == id)
}

/// A new program beside the old one; removed when dropped.
struct Staged {
    file: tempfile::TempPath,
    order: Order,
    pid: i64,
    address: Option<String>,
    is_same: bool,
}

fn at(operation: &'static str, path: &Path, cause: io::Error) -> NotUpgraded {
    NotUpgraded::Io { operation, path: path.to_owned(), cause }
}

fn stage(state_dir: &Path, from: &Path, sha256: Option<&str>) -> Result<Staged, NotUpgraded> {
    if !from.is_file() {
        return Err(NotUpgraded::NoFile(from.to_owned()));
    }
    let wanted = match sha256 {
        Some(text) => Some(crate::ops::deps::digest_of(text).ok_or(NotUpgraded::NoDigest)?),
        None => None,
    };
    let service = running(state_dir).ok_or(NotUpgraded::NotRunning)?;
    let pid = service.pid;
    let target = program_of(pid).map_err(|cause| NotUpgraded::NoProgram { pid, cause })?;
    let bytes = std::fs::read(from).map_err(|cause| at("read", from, cause))?;
    let found = hex::encode(Sha256::digest(&bytes));
    if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
        return Err(NotUpgraded::Mismatch { wanted, found });
    }
    let content = if is_archive(&bytes) { read_program(&bytes, PROGRAM)? } else { bytes };
    let old = std::fs::read(&target).map_err(|cause| at("read", &target, cause))?;
    let directory = target.parent().unwrap_or(&target).to_owned();
    let failed = |cause| at("write into", &directory, cause);
    let mut file = files::temporary_in(&directory).map_err(failed)?;
    let meta = std::fs::metadata(&target).map_err(|cause| at("read", &target, cause))?;
    file.write_all(&content).map_err(failed)?;
    let bits = std::fs::Permissions::from_mode(meta.mode() & 0o777);
    file.as_file().set_permissions(bits).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    // A program that is open for writing cannot be run.
    let file = file.into_temp_path();
    let order = Order {
        id: uuid::Uuid::new_v4().to_string(),
        staged: file.to_path_buf(),
        sha256: hex::encode(Sha256::digest(&content)),
        target,
    };
    Ok(Staged { file, order, pid, address: service.address, is_same: old == content })
}

/// The file that a process runs from, and so what the next start takes.
fn program_of(pid: i64) -> io::Result<PathBuf> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
    svc_process::programs::program_of(pid)
}

/// What a program says to `--version`, or why it says nothing.
async fn version_of(program: &Path) -> Result<String, String> {
    let mut command = tokio::process::Command::new(program);
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(done)) if done.status.success() => {
            let said = String::from_utf8_lossy(&done.stdout);
            let line = said.lines().next().unwrap_or_default().trim();
            Ok(svc_domain::log_escape::escape(line).chars().take(80).collect())
        }
        Ok(Ok(done)) => Err(format!("it does not tell its version ({})", done.status)),
        Ok(Err(error)) => Err(format!("it does not run on this machine ({error})")),
        Err(_) => Err(format!("it did not tell its version within {} s", PATIENCE.as_secs())),
    }
}
