//! Starts the daemon when none listens.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The shorter limit of the systems that have such sockets.
/// One more byte ends the path.
pub const LONGEST_SOCKET_PATH: usize = 103;
/// Markers of a daemon that is detached already.
/// Passed on they would mislead the launcher.
const MARKERS: [&str; 1] = ["SVC_HOSTED_DETACHED"];
/// Exit code when another daemon serves the directory already.
const TAKEN: i32 = 3;
/// Most of what the launcher said.
const SAID: usize = 300;

/// Why no daemon was started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program is not there.
    #[error(
        "hosted binary not found: {0} is neither beside svc nor in PATH; install svc-hosted or set \
         hosted.binary"
    )]
    NotFound(String),
    /// The launcher did not come to an end in time.
    #[error("the hosted-session daemon did not start within {} seconds", .0.as_secs())]
    TooLate(Duration),
    /// The launcher failed.
    #[error("the hosted-session daemon could not be started: {0}")]
    Failed(String),
}

/// What is started.
#[derive(Debug, Clone)]
pub struct Start<'a> {
    /// Absolute path of the program.
    pub program: &'a Path,
    /// Where it listens.
    pub socket: &'a Path,
    /// The shared secret; handed over on standard input.
    pub token: &'a str,
    /// Agents outlive the daemon.
    pub keep_children: bool,
    /// The complete environment.
    pub env: &'a BTreeMap<OsString, OsString>,
    /// For the launcher.
    pub limit: Duration,
}

/// Finds the daemon's program.
/// An explicit path, beside this program, `PATH`, then `managed`.
///
/// # Errors
/// It is nowhere.
pub fn find(
    name: &str,
    default: &str,
    path: &std::ffi::OsStr,
    managed: &Path,
) -> Result<PathBuf, StartError> {
    let not_found = || StartError::NotFound(name.to_owned());
    if name.contains('/') {
        let path = PathBuf::from(name);
        return (path.is_absolute() && is_program(&path)).then_some(path).ok_or_else(not_found);
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    let managed = (name == default).then(|| managed.join(name));
    let mut elsewhere = beside.into_iter().chain(managed);
    find_in_path(name, path)
        .or_else(|| elsewhere.find(|path| is_program(path)))
        .ok_or_else(not_found)
}

/// The first program of this name in the directories of `PATH`.
#[must_use]
pub fn find_in_path(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let directories = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    directories.map(|dir| dir.join(name)).find(|path| is_program(path))
}

/// Whether a file is there that may be run.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Starts the daemon and waits until it listens.
///
/// # Errors
/// It does not listen; the launcher is gone all the same.
pub async fn start(start: &Start<'_>) -> Result<(), StartError> {
    let failed = |error: std::io::Error| StartError::Failed(error.to_string());
    let mut command = Command::new(start.program);
    command.arg("-serve").arg("-socket").arg(start.socket).args(["-token-fd", "0"]);
    if start.keep_children {
        command.arg("-keep-children");
    }
    command.env_clear().envs(start.env);
    for marker in MARKERS {
        command.env_remove(marker);
    }
    command.current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let handed_over = async {
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(format!("{}\n", start.token).as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(start.limit, handed_over)
        .await
        .map_err(|_| StartError::TooLate(start.limit))?
        .map_err(failed)?;
    match output.status.code() {
        // Somebody else was faster: whoever connects finds that one.
        Some(0 | TAKEN) => Ok(()),
        _ => {
            let said = String::from_utf8_lossy(&output.stdout);
            let said: String = said.trim().chars().take(SAID).collect();
            Err(StartError::Failed(format!("{} ({said})", output.status)))
        }
    }
}
