//! One run of git as agents are run: identity first, its own session, killed whole.

use crate::agent::Agent;
use crate::bridges::launch_id::new_launch_id;
use crate::tasks::blocking;
use crate::{AppError, Class};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_agent::environment::with_launch_id;
use svc_domain::clones::progress;
use svc_domain::identity::{LaunchId, ProcessIdentity};
use svc_domain::log_escape::strip_controls;
use svc_domain::redact::redact_text;
use svc_ports::ProcessHost;
use svc_ports::process::{ExitReport, Exited, LaunchError, LaunchSpec, Signal, Target};
use svc_projects::git_call::GitCall;
use svc_shared::error::ErrorCode;

/// How long killed processes may take to be gone (H51).
const DEATH: Duration = Duration::from_secs(5);
/// Rounds of looking for what a killed process left.
///
/// It may start something while it is killed.
const ROUNDS: u32 = 20;
/// Bytes at the end of the output that an error is taken from.
const TAIL: u64 = 16 * 1024;
/// Characters of git's words in an error (`command-line.md` §11).
const ERROR_CHARS: usize = 400;
/// Bytes of the trace that are looked at.
const TRACE: u64 = 256 * 1024;

/// Starts and ends git.
pub(super) struct Git {
    pub agent: Arc<Agent>,
    pub host: Arc<dyn ProcessHost>,
    pub umask: u32,
}

/// A run of git.
pub(super) struct Running {
    /// How it ended, once that is known.
    pub report: Option<ExitReport>,
    identity: ProcessIdentity,
    launch: LaunchId,
    output: PathBuf,
}

impl Git {
    /// The program and the variables it is chosen from. Blocks for a few looks.
    ///
    /// # Errors
    /// There is no git.
    pub fn program(&self) -> Result<(PathBuf, BTreeMap<OsString, OsString>), AppError> {
        let env = self.agent.environment();
        let path = env.get(std::ffi::OsStr::new("PATH")).cloned().unwrap_or_default();
        let found = svc_agent::binary::resolve("git", None, &path);
        let missing = "there is no git on the search path of agents; install git, or add its \
                       directory with `claude.path_append`";
        found.map(|program| (program, env)).map_err(|error| AppError::busy(missing).because(error))
    }

    /// Starts git in `cwd`.
    ///
    /// Files of the run are in `dir`, under names that begin with `name`.
    ///
    /// # Errors
    /// Nothing was started.
    pub async fn start(
        &self,
        program: PathBuf,
        call: GitCall,
        launch: &LaunchId,
        (dir, name, cwd): (&Path, &str, &Path),
    ) -> Result<(Running, Exited), AppError> {
        let output = dir.join(format!("{name}.output"));
        let made = output.clone();
        blocking(move || svc_process::files::create_new_private(&made)).await?.map_err(
            |error| AppError::busy("the output file of git cannot be created").because(error),
        )?;
        let spec = LaunchSpec {
            launch_id: launch.clone(),
            program,
            args: call.args,
            cwd: cwd.to_owned(),
            env: with_launch_id(call.env, launch).into_iter().collect(),
            umask: self.umask,
            output: output.clone(),
            identity_file: dir.join(format!("{name}.identity")),
            terminal: None,
        };
        let held = self.host.launch(spec).await.map_err(|error| not_run(&error))?;
        let identity = held.identity().clone();
        let exited = self.host.exited(&identity);
        held.go().await.map_err(|error| not_run(&error))?;
        Ok((Running { report: None, identity, launch: launch.clone(), output }, exited))
    }

    /// Runs git to its end, at most `most`.
    ///
    /// # Errors
    /// It failed, or took longer and was killed.
    pub async fn finish(
        &self,
        (running, exited): (Running, Exited),
        most: Duration,
    ) -> Result<(), AppError> {
        let ended = tokio::time::timeout(most, exited).await;
        let Ok(report) = ended else {
            self.kill(&running).await;
            return Err(failed(format!("git took longer than {} s and was ended", most.as_secs())));
        };
        match is_success(&report) {
            true => Ok(()),
            false => Err(failed(format!("git failed: {}", running.complaint(&[]).await))),
        }
    }

    /// Kills everything that belongs to a run, and waits until it is gone.
    pub async fn kill(&self, running: &Running) {
        self.host.signal(&running.identity, Signal::Kill, Target::Group);
        let gone = self.host.exited(&running.identity);
        if tokio::time::timeout(DEATH, gone).await.is_err() {
            tracing::warn!("a killed git is still there; it waits for a disk or a network");
        }
        self.kill_members(&running.launch).await;
    }

    /// Kills all processes that carry the id of a run.
    pub async fn kill_members(&self, launch: &LaunchId) {
        for _ in 0..ROUNDS {
            let (host, id) = (Arc::clone(&self.host), launch.clone());
            let Ok(left) = blocking(move || host.launch_members(&id)).await else { return };
            if left.is_empty() {
                return;
            }
            for process in left {
                let gone = self.host.exited(&process.identity);
                self.host.signal(&process.identity, Signal::Kill, Target::Process);
                let _ = tokio::time::timeout(DEATH, gone).await; // looked for again
            }
        }
        tracing::warn!("processes of a clone are still there after they were killed");
    }
}

impl Running {
    /// New lines of the output since `at`, which is moved on.
    pub async fn more(&self, at: &mut u64) -> Vec<String> {
        let (file, from) = (self.output.clone(), *at);
        let read = blocking(move || read_from(&file, from)).await;
        let Ok(Some((bytes, end))) = read else { return Vec::new() };
        *at = end;
        lines(&bytes)
    }

    /// What git said last, masked, without `hidden` texts.
    pub async fn complaint(&self, hidden: &[(String, String)]) -> String {
        let mut at = u64::MAX;
        let said = self.more(&mut at).await;
        let kept: Vec<&str> = said
            .iter()
            .map(|line| line.trim())
            .filter(|line| {
                !line.is_empty() && !line.starts_with("Cloning into") && !line.starts_with("hint:")
            })
            .filter(|line| progress::read(line).is_none())
            .collect();
        let mut text = kept.join("; ");
        for (from, to) in hidden {
            text = text.replace(from, to);
        }
        let text = redact_text(&strip_controls(&text));
        let skip = text.chars().count().saturating_sub(ERROR_CHARS);
        let text: String = text.chars().skip(skip).collect();
        if text.is_empty() { "it gave no reason".to_owned() } else { text }
    }
}

/// Reads at most [`TAIL`] bytes up to the end; what comes before them is skipped.
fn read_from(file: &Path, from: u64) -> Option<(Vec<u8>, u64)> {
    let mut file = std::fs::File::open(file).ok()?;
    let end = file.metadata().ok()?.len();
    let start = match from {
        u64::MAX => end.saturating_sub(TAIL),
        from => from.max(end.saturating_sub(TAIL)).min(end),
    };
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(end - start).read_to_end(&mut bytes).ok()?;
    // A line that is not whole yet is read again.
    let whole = match from {
        u64::MAX => bytes.len(),
        _ => bytes.iter().rposition(|byte| matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1),
    };
    bytes.truncate(whole);
    Some((bytes, start + u64::try_from(whole).ok()?))
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let parts = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).filter(|line| !line.is_empty());
    parts.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

/// The beginning of the trace. Empty if there is none.
pub(super) fn read_trace(file: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(file) {
        let _ = file.take(TRACE).read_to_end(&mut bytes); // what was read is looked at
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn is_success(report: &ExitReport) -> bool {
    // `None` if somebody else has collected the status: then the files say what there is.
    report.signal.is_none() && report.code == Some(0)
}

pub(super) fn failed(message: String) -> AppError {
    AppError::new(ErrorCode::InvalidValue, Class::Unavailable, message)
}

fn not_run(error: &LaunchError) -> AppError {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    AppError::busy("git could not be started").because(format!("{error}: {cause}"))
}

/// A new id of a job, which is also that of its processes.
pub(super) fn new_id() -> Result<LaunchId, AppError> {
    new_launch_id()
}
