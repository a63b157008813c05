//! Use-case: end a background job so that its session is deregistered; remove it.

use super::ask::Question;
use super::{STOPS, conflict, job_id, lock, unknown_job};
use crate::AppError;
use crate::jobs::Jobs;
use crate::ops::reserve;
use crate::tasks::blocking;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use svc_agent::jobs::answer::{is_out_of_reach, last_words};
use svc_agent::jobs::ending::Since;
use svc_domain::identity::ProcessIdentity;
use svc_domain::jobs::{INTERRUPT_AGAIN, SETTLE, Settling, Worker, has_ended};
use svc_ports::process::{Signal, Signalled, Target};
use svc_process::locks::FileLock;
use svc_shared::api::jobs::StopAgentResult;
use svc_shared::error::ErrorCode;
use svc_shared::events::Event;
use svc_shared::ids::JobId;
use svc_watch::Pace;
use tokio::time::{Instant, timeout_at};

/// How long removal by the agent may take.
const REMOVAL: Duration = Duration::from_secs(30);

/// How long the agent's background service may take to say how a worker ended.
const WORD: Duration = Duration::from_secs(3);

/// A stop under way takes this long at worst; another one waits for its result.
const LOCK_WAIT: Duration = Duration::from_secs(60);

const UNCONFIRMED: &str = "the agent did not confirm an orderly end, so its remote session may \
                           still be listed; end it in the remote client";
const NO_WORKER: &str = "no process worked on it, so the end of its remote session is unconfirmed; \
                         if it had one, end it in the remote client";

/// How the process of a job ended.
struct End {
    settled: bool,
    detail: Option<&'static str>,
    /// There was no process to begin with.
    was_idle: bool,
}

impl Jobs {
    /// Interrupts the process of a job, waits for its orderly end and removes the job.
    /// A process that does not end is never killed. A stop that has begun goes on when the caller
    /// goes away.
    ///
    /// # Errors
    /// No such job, or it is still live.
    pub async fn stop(self: &Arc<Self>, id: &str) -> Result<StopAgentResult, AppError> {
        let (this, id) = (Arc::clone(self), id.to_owned());
        self.tasks.complete(async move { this.stop_now(&id).await }).await
    }

    async fn stop_now(&self, raw: &str) -> Result<StopAgentResult, AppError> {
        let id = job_id(raw)?;
        if !self.has_job(&id).await? {
            return Err(unknown_job(&id));
        }
        reserve::make_room(&self.scan.config.state_dir).await;
        let program = self.scan.agent.program_now().await?;
        let _lock = self.lock_job(&id).await?;
        if !self.has_job(&id).await? {
            // Somebody else asked for the same at the same time.
            return Ok(self.stopped_before(&id));
        }
        // Also of a job whose state cannot be read.
        let worker = self.scan.worker_now(&id).await?;
        let end = self.end_worker(&id, worker).await?;
        let removal = self.remove_job(&id, program, end.was_idle || end.settled).await?;
        let detail = match (end.detail, removal) {
            (None, removal) => removal,
            (Some(detail), None) => Some(detail.to_owned()),
            (Some(detail), Some(removal)) => Some(format!("{detail}; {removal}")),
        };
        let result = StopAgentResult {
            removed: !self.has_job(&id).await?,
            settled: end.settled,
            id,
            detail,
        };
        self.remember(&result);
        self.publish().await;
        self.announce_settled(&result);
        tracing::info!(
            job.id = %result.id,
            "stopped background job {} (settled: {}, removed: {})",
            result.id, result.settled, result.removed
        );
        Ok(result)
    }

    async fn end_worker(
        &self,
        id: &JobId,
        (worker, process): (Worker, Option<ProcessIdentity>),
    ) -> Result<End, AppError> {
        let Some(identity) = &process else {
            let still_live = |why: &str| {
                conflict(ErrorCode::StillLive, format!("job {id} was not stopped: {why}"))
            };
            return match worker {
                Worker::Unclear => Err(still_live(
                    "the agent's list of processes (daemon/roster.json) or the process table \
                     cannot be read, so nobody can tell which process is its own; try again, or \
                     end it with the agent itself",
                )),
                // A session process alone is not the one that the agent's service watches.
                Worker::Alive => Err(still_live(
                    "its session runs, but the agent does not say in which process it can be \
                     interrupted; try again, or end it with the agent itself",
                )),
                Worker::Missing(_) => {
                    Ok(End { settled: false, detail: Some(NO_WORKER), was_idle: true })
                }
            };
        };
        let home = self.scan.agent.home()?;
        let log = home.daemon_log();
        let since = blocking(move || Since::now(&log)).await?;
        self.interrupt(id, identity).await?;
        let settled = self.settling(id, &since).await?;
        let detail = (!settled).then_some(UNCONFIRMED);
        Ok(End { settled, detail, was_idle: false })
    }

    /// Interrupts at most twice and waits for the exit.
    async fn interrupt(&self, id: &JobId, identity: &ProcessIdentity) -> Result<(), AppError> {
        let until = Instant::now() + SETTLE;
        for patience in [INTERRUPT_AGAIN, SETTLE] {
            let still_live = |why: &str| {
                conflict(ErrorCode::StillLive, format!("job {id} was not stopped: {why}"))
            };
            let mut exited = self.scan.host.exited(identity);
            match self.scan.host.signal(identity, Signal::Interrupt, Target::Process) {
                Signalled::Sent => {}
                Signalled::Gone => return Ok(()),
                Signalled::NotPermitted => {
                    return Err(still_live("its process belongs to another user; stop it there"));
                }
                Signalled::Unproven => {
                    return Err(still_live(
                        "its process could not be proven to be its own; try again",
                    ));
                }
            }
            let deadline = until.min(Instant::now() + patience);
            if timeout_at(deadline, &mut exited).await.is_ok() {
                return Ok(());
            }
        }
        Err(conflict(
            ErrorCode::StillLive,
            format!(
                "job {id} is still live: its process (pid {}) did not end within {} s after two \
                 interrupts, and killing it would leave its remote session behind; end it in the \
                 remote client, or kill it by hand",
                identity.pid,
                SETTLE.as_secs()
            ),
        ))
    }

    /// Whether the agent confirms an orderly end, by its log or by the job's file.
    async fn settling(&self, id: &JobId, since: &Since) -> Result<bool, AppError> {
        let home = self.scan.agent.home()?;
        let state_file = svc_agent::jobs::state_file(&home.jobs_dir(), id);
        let mut log = self.watcher.file(&home.daemon_log(), Pace::VIEW);
        let mut state = self.watcher.file(&state_file, Pace::VIEW);
        let until = Instant::now() + WORD;
        loop {
            let (since, of) = (since.clone(), id.clone());
            let logged = blocking(move || since.word(&of)).await?;
            let word = self
                .scan
                .job(id)
                .await
                .ok()
                .and_then(|job| job.file)
                .map(|file| file.state.clone())
                .unwrap_or_default();
            let settling = Settling { state: &word, logged: logged.as_deref() };
            if logged.is_some() || has_ended(&word) && settling.is_confirmed() {
                return Ok(settling.is_confirmed());
            }
            let changed = async {
                tokio::select! {
                    _ = log.changed() => {}
                    _ = state.changed() => {}
                }
            };
            if timeout_at(until, changed).await.is_err() {
                return Ok(settling.is_confirmed());
            }
        }
    }

    /// Removes a job whose process has ended; tells what went wrong, if anything did.
    async fn remove_job(
        &self,
        id: &JobId,
        program: PathBuf,
        is_ours_to_finish: bool,
    ) -> Result<Option<String>, AppError> {
        let question = Question {
            program,
            args: vec!["rm".to_owned(), id.to_string()],
            cwd: real_directory(self.scan.config.state_dir.clone()).await?,
            timeout: REMOVAL,
        };
        let (complaint, is_out_of_reach) = match self.runs.ask(question).await {
            Ok(answer) if answer.code == Some(0) => (None, false),
            Ok(answer) => {
                let words = Some(last_words(&answer.output)).filter(|words| !words.is_empty());
                let words = words.unwrap_or_else(|| "it did not say why".to_owned());
                let complaint = format!("the agent did not remove it: {words}");
                (Some(complaint), answer.code.is_some() && is_out_of_reach(&answer.output))
            }
            Err(error) => (Some(error.message), false),
        };
        if !self.has_job(id).await? {
            return Ok(None);
        }
        // Nobody but the agent's service refuses a removal, and it may have started the job again.
        if is_ours_to_finish
            && is_out_of_reach
            && matches!(self.scan.worker_now(id).await?, (Worker::Missing(_), None))
        {
            let (dir, of) = (self.scan.agent.home()?.jobs_dir(), id.clone());
            let removed = blocking(move || svc_agent::jobs::remove(&dir, &of)).await?;
            match removed {
                Ok(()) => return Ok(None),
                Err(error) => {
                    tracing::warn!(job.id = %id, error = %error, "a job was not removed");
                }
            }
        }
        Ok(complaint.or_else(|| {
            Some("the agent said that it removed it, but its files are still there".to_owned())
        }))
    }

    /// Whether the job has a directory.
    /// The registry of the agent may be on a slow disk.
    pub(super) async fn has_job(&self, id: &JobId) -> Result<bool, AppError> {
        let (dir, id) = (self.scan.agent.home()?.jobs_dir(), id.clone());
        blocking(move || svc_agent::jobs::exists(&dir, &id)).await
    }

    /// Nobody else stops or resumes this job meanwhile, in this process or another.
    /// Sixteen locks serve all jobs: lock files are never removed.
    pub(super) async fn lock_job(&self, id: &JobId) -> Result<FileLock, AppError> {
        let shard: String = id.as_str().chars().take(1).collect();
        let place = self.scan.agent.home()?.jobs_dir().join(shard);
        self.locks.lock(&place, LOCK_WAIT, "job").await
    }

    fn remember(&self, result: &StopAgentResult) {
        let mut stops = lock(&self.memory.stops);
        if stops.len() >= STOPS {
            stops.pop_front();
        }
        stops.push_back(result.clone());
    }

    /// The result of a stop that was asked for twice at once.
    fn stopped_before(&self, id: &JobId) -> StopAgentResult {
        let before = lock(&self.memory.stops).iter().rev().find(|stop| &stop.id == id).cloned();
        before.unwrap_or_else(|| StopAgentResult {
            id: id.clone(),
            settled: false,
            removed: true,
            detail: Some("somebody else removed it meanwhile".to_owned()),
        })
    }

    /// Announces the end of a job's stop.
    /// A command has no readers: it hands the result over to the service, if one runs.
    pub(crate) fn announce_settled(&self, result: &StopAgentResult) {
        let Some(readers) = &self.readers else {
            crate::nudge::hand_over_settled(&self.scan.config.state_dir, result);
            return;
        };
        let id = result.id.to_string();
        let detail = result.detail.clone();
        readers.happened(&Event::bg_settled(id, result.settled, result.removed, detail));
    }
}

/// Without links: whoever enters it checks that it is the one of that name.
async fn real_directory(dir: PathBuf) -> Result<PathBuf, AppError> {
    blocking(move || dir.canonicalize())
        .await?
        .map_err(|error| AppError::busy("the state directory cannot be entered").because(error))
}
