//! One bounded run of the agent program, started as agents are.
//! With the umask and the session that they get, because the background service which it may start
//! inherits both.

use super::agent_failed;
use crate::agent::Agent;
use crate::bridges::launch_id::new_launch_id;
use crate::tasks::blocking;
use crate::{AppError, Class};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_config::Config;
use svc_domain::redact::redact_text;
use svc_ports::ProcessHost;
use svc_ports::process::{LaunchError, LaunchSpec, Signal, Target};
use svc_shared::error::ErrorCode;
use tokio::sync::Semaphore;

/// Programs of the agent that run at the same time, for jobs and for plugins.
/// Each takes 300 MB for a second (agent 2.1.197).
const PROGRAMS: usize = 4;

/// Output beyond this is not looked at.
const OUTPUT_CAP: u64 = 1024 * 1024;

/// How long a run waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// How long a killed run may take to be gone: one in an uninterruptible call stays.
const DEATH: Duration = Duration::from_secs(2);

/// How the directories of runs begin, below `run` in the state directory.
pub(crate) const DIRECTORY: &str = "ask-";

/// What the agent is asked.
pub(crate) struct Question {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Real path.
    pub cwd: PathBuf,
    /// After this its process group is killed.
    pub timeout: Duration,
}

/// What it said.
pub(crate) struct Answer {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Both outputs, in the order of writing.
    pub output: String,
}

/// A private directory that is removed with this value.
struct ScratchDir(PathBuf);

impl ScratchDir {
    fn create(run_dir: &Path, name: &str) -> Result<Self, AppError> {
        let dir = run_dir.join(format!("{DIRECTORY}{name}"));
        let made = svc_process::files::private_directory(&dir)
            .and_then(|()| svc_process::files::create_new_private(&dir.join("output")));
        made.map(|_| Self(dir)).map_err(|error| {
            AppError::busy(
                "the agent cannot be asked because its output file cannot be created; check space \
                 and permissions of the directory `run` in the state directory",
            )
            .because(error)
        })
    }

    fn output(&self) -> PathBuf {
        self.0.join("output")
    }

    fn text(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(self.output())?.take(OUTPUT_CAP).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!(error = %error, "the files of a run were not removed");
        }
    }
}

/// Runs the agent program, a few at a time.
pub(crate) struct AgentRuns {
    config: Arc<Config>,
    agent: Arc<Agent>,
    host: Arc<dyn ProcessHost>,
    umask: u32,
    programs: Semaphore,
}

impl AgentRuns {
    pub fn new(
        config: &Arc<Config>,
        agent: &Arc<Agent>,
        host: &Arc<dyn ProcessHost>,
        umask: u32,
    ) -> Self {
        let (config, agent, host) = (Arc::clone(config), Arc::clone(agent), Arc::clone(host));
        Self { config, agent, host, umask, programs: Semaphore::new(PROGRAMS) }
    }

    /// Runs the agent program to its end.
    ///
    /// # Errors
    /// It could not be run, or not within its time.
    pub(crate) async fn ask(&self, question: Question) -> Result<Answer, AppError> {
        let turn = tokio::time::timeout(TURN, self.programs.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(AppError::busy(
                "the agent runs several commands already; try again in a moment",
            ));
        };
        let launch_id = new_launch_id()?;
        let (run_dir, name) = (self.config.state_dir.join("run"), launch_id.as_str().to_owned());
        let scratch = blocking(move || ScratchDir::create(&run_dir, &name)).await??;
        let spec = LaunchSpec {
            identity_file: scratch.0.join("identity.json"),
            terminal: None,
            output: scratch.output(),
            launch_id,
            program: question.program,
            args: question.args.iter().map(Into::into).collect(),
            cwd: question.cwd,
            env: self.agent.environment().into_iter().collect(),
            umask: self.umask,
        };
        let held = self.host.launch(spec).await.map_err(|error| not_run(&error))?;
        let identity = held.identity().clone();
        let exited = self.host.exited(&identity);
        held.go().await.map_err(|error| not_run(&error))?;
        let Ok(report) = tokio::time::timeout(question.timeout, exited).await else {
            let exited = self.host.exited(&identity);
            self.host.signal(&identity, Signal::Kill, Target::Group);
            let _ = tokio::time::timeout(DEATH, exited).await; // one that cannot die is left
            return Err(agent_failed(format!(
                "the agent gave no answer within {} s and was ended; what it began may be done all \
                 the same, so look at the list again",
                question.timeout.as_secs()
            )));
        };
        let output = blocking(move || scratch.text())
            .await?
            .map_err(|error| AppError::busy("the agent's answer cannot be read").because(error))?;
        Ok(Answer { code: report.code, output })
    }
}

fn not_run(error: &LaunchError) -> AppError {
    let is_missing = matches!(
        error,
        LaunchError::Exec { cause, .. } if cause.kind() == io::ErrorKind::NotFound
    );
    let words = redact_text(&error.to_string());
    if is_missing {
        let message = format!("{words}, because it is gone; check claude.binary");
        return AppError::new(ErrorCode::AgentMissing, Class::Unavailable, message);
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let cause = cause.map(|cause| format!(": {}", redact_text(&cause))).unwrap_or_default();
    agent_failed(format!("the agent could not be run: {words}{cause}"))
}

/// Removes what a service that died left of its runs. Blocks.
pub(crate) fn sweep(state_dir: &Path) {
    let Ok(entries) = std::fs::read_dir(state_dir.join("run")) else { return };
    for entry in entries.flatten() {
        let is_run = entry.file_name().to_string_lossy().starts_with(DIRECTORY);
        // A command may be at work beside the service; none of its runs takes this long.
        let is_old = || {
            let modified = entry.metadata().and_then(|facts| facts.modified()).ok();
            let age = modified.and_then(|at| at.elapsed().ok());
            age.is_some_and(|age| age > Duration::from_secs(600))
        };
        if is_run && is_old() {
            let _ = std::fs::remove_dir_all(entry.path()); // tried again at the next start
        }
    }
}
