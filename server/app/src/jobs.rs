//! Background jobs.
//! What the agent's files say, joined with the processes that exist.
//!
//! The jobs are the agent's, not ours: nothing here is recorded in the registry. Every reader sees
//! the same look at files, roster, session registry and process table.

pub(crate) mod ask;
pub(crate) mod continue_conversation;
mod dispatch;
mod resume;
mod stop;

pub(crate) use ask::sweep;

use crate::agent::Agent;
use crate::auth::refs::SessionRefs;
use crate::locks::Locks;
use crate::projects::catalog::Catalog;
use crate::projects::trusting::Trust;
use crate::read_model::ReadModel;
use crate::read_model::signs::{Session, Signs, Told};
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use ask::AgentRuns;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_agent::home::AgentHome;
use svc_agent::jobs::JobFile;
use svc_agent::jobs::roster::{Roster, Unreadable};
use svc_agent::registry::Entry;
use svc_agent::session_list::CliSession;
use svc_config::Config;
use svc_domain::activity::{Evidence, of_job, together};
use svc_domain::agent_log::RemoteId;
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_domain::jobs::{LOST_AFTER, Worker, has_ended, is_session_id, shown_state};
use svc_domain::log_escape::quoted;
use svc_domain::plan_limit::NOT_BY_JOB;
use svc_domain::redact::redact_text;
use svc_ports::{Clock, ProcessHost};
use svc_projects::{Project, Projects};
use svc_shared::Timestamp;
use svc_shared::api::jobs::{BackgroundJob, RESULT_CHARS, StopAgentResult};
use svc_shared::error::ErrorCode;
use svc_shared::ids::JobId;
use svc_store::Store;
use svc_watch::Watcher;
use tokio::time::Instant;

/// Results of stops that are remembered for whoever asked for the same.
const STOPS: usize = 64;

/// Words of the agent are a few letters; more is not passed on.
const WORD_CHARS: usize = 64;

/// Background jobs: listed, started, resumed and stopped.
pub struct Jobs {
    pub(crate) scan: Arc<JobScan>,
    pub(crate) runs: Arc<AgentRuns>,
    pub(crate) locks: Arc<Locks>,
    pub(crate) trust: Arc<Trust>,
    /// `None` in a command, which has no readers.
    pub(crate) readers: Option<Arc<ReadModel>>,
    pub(crate) watcher: Watcher,
    pub(crate) store: Store,
    pub(crate) tasks: Tasks,
    pub(crate) memory: StopMemory,
}

/// What one stop leaves for the next one.
#[derive(Debug, Default)]
pub(crate) struct StopMemory {
    stops: Mutex<VecDeque<StopAgentResult>>,
    /// Held from a scan to its publication.
    /// An older scan must not overwrite a newer one.
    publishing: tokio::sync::Mutex<()>,
}

/// Reads the agent's job files, its roster and sessions, and the process table.
pub(crate) struct JobScan {
    pub config: Arc<Config>,
    pub agent: Arc<Agent>,
    pub host: Arc<dyn ProcessHost>,
    pub catalog: Arc<Catalog>,
    pub refs: Arc<SessionRefs>,
    pub clock: Arc<dyn Clock>,
    pub memory: ScanMemory,
    pub signs: Arc<Signs>,
}

/// What is remembered between two scans.
#[derive(Debug, Default)]
pub(crate) struct ScanMemory {
    files: Mutex<svc_agent::jobs::Jobs>,
    /// Since when a job is seen without a process; `None` while it has one.
    seen: Mutex<HashMap<JobId, Option<Instant>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One job at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub record: BackgroundJob,
    pub worker: Worker,
    /// Its live process.
    pub process: Option<ProcessIdentity>,
    /// What the agent wrote; `None` where only its list knows the job.
    pub file: Option<Arc<JobFile>>,
}

impl Job {
    /// Whether something may still come from it without anybody doing anything.
    pub fn is_open(&self) -> bool {
        !has_ended(&self.record.state) && self.record.state != "lost"
    }

    /// When it will count as lost, if nothing happens.
    pub fn lost_in(&self) -> Option<Duration> {
        match self.worker {
            Worker::Missing(since) if self.is_open() => LOST_AFTER.checked_sub(since),
            Worker::Missing(_) | Worker::Alive | Worker::Unclear => None,
        }
    }
}

/// The surroundings of one look.
struct Scene {
    home: AgentHome,
    /// `None` when it cannot be read.
    /// Nobody can say then which processes are those of jobs.
    roster: Option<Roster>,
    /// The roster names processes of this boot.
    is_roster_of_boot: bool,
    /// Read when the first job asks: without one whose process is missing nobody does.
    sessions: OnceCell<Vec<Entry>>,
    projects: Arc<Projects>,
    now: Timestamp,
}

impl Scene {
    fn sessions(&self) -> &[Entry] {
        self.sessions.get_or_init(|| svc_agent::registry::read(&self.home.sessions_dir()))
    }
}

impl Jobs {
    /// Background jobs now, latest change first.
    ///
    /// # Errors
    /// The agent's files cannot be found or listed.
    pub async fn list(&self) -> Result<Vec<BackgroundJob>, AppError> {
        let mut records: Vec<BackgroundJob> =
            self.scan.now().await?.into_iter().map(|job| job.record).collect();
        records.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| b.id.cmp(&a.id)));
        Ok(records)
    }

    /// Brings the jobs of the read model up to date. Only the service has readers.
    pub(crate) async fn publish(&self) -> Vec<Job> {
        let _publishing = self.memory.publishing.lock().await;
        match self.scan.now().await {
            Ok(jobs) => {
                if let Some(readers) = &self.readers {
                    let records: BTreeMap<String, BackgroundJob> = jobs
                        .iter()
                        .map(|job| (job.record.id.to_string(), job.record.clone()))
                        .collect();
                    readers.replace_jobs(records);
                }
                jobs
            }
            Err(error) => {
                // What was known stays: an unreadable directory is no proof of an end.
                tracing::debug!(error = %error, "the background jobs cannot be listed");
                Vec::new()
            }
        }
    }
}

impl JobScan {
    pub async fn now(self: &Arc<Self>) -> Result<Vec<Job>, AppError> {
        let this = Arc::clone(self);
        blocking(move || this.read()).await?
    }

    /// One job now.
    ///
    /// # Errors
    /// There is no such job.
    async fn job(self: &Arc<Self>, id: &JobId) -> Result<Job, AppError> {
        let mut jobs = self.now().await?.into_iter();
        jobs.find(|job| &job.record.id == id).ok_or_else(|| unknown_job(id))
    }

    /// Reads files, roster, registry and process table. Blocks.
    fn read(&self) -> Result<Vec<Job>, AppError> {
        let home = self.agent.home()?;
        let reading = lock(&self.memory.files).read(&home.jobs_dir()).map_err(|error| {
            AppError::busy(
                "the agent's directory of background jobs cannot be read; check its permissions",
            )
            .because(error)
        })?;
        let scene = self.surroundings(home);
        let mut jobs: Vec<Job> =
            reading.jobs.iter().map(|file| self.job_of_file(file, &scene)).collect();
        for item in self.agent.cli().sessions().list.iter() {
            let Some(id) = item.job_id.as_deref().and_then(|id| id.parse::<JobId>().ok()) else {
                continue;
            };
            if jobs.iter().any(|job| job.record.id == id) {
                continue;
            }
            // The list may be half a minute old; what has gone since is not shown again.
            let is_there = reading.unreadable.contains(&id)
                || item
                    .pid
                    .and_then(|pid| self.host.inspect(pid))
                    .is_some_and(|facts| facts.cwd.as_deref() == Some(item.cwd.as_path()));
            if is_there {
                jobs.push(self.job_of_list(&id, item, &scene));
            }
        }
        lock(&self.memory.seen).retain(|id, _| jobs.iter().any(|job| &job.record.id == id));
        Ok(jobs)
    }

    /// Reads roster and registry. Blocks.
    fn surroundings(&self, home: AgentHome) -> Scene {
        let boot = self.agent.boot_time();
        let roster = match svc_agent::jobs::roster::read(&home.roster_file()) {
            Ok(roster) => Some(roster),
            Err(Unreadable { written_at }) => {
                let ended_with_boot = boot.zip(written_at).is_some_and(|(boot, at)| at < boot);
                ended_with_boot.then(Roster::default)
            }
        };
        let written_at = roster.as_ref().and_then(|roster| roster.written_at);
        Scene {
            is_roster_of_boot: boot.is_none_or(|boot| written_at.is_some_and(|at| at >= boot)),
            sessions: OnceCell::new(),
            projects: self.catalog.all(),
            now: self.clock.now(),
            roster,
            home,
        }
    }

    /// The process of a job now, whether or not its file can be read.
    async fn worker_now(
        self: &Arc<Self>,
        id: &JobId,
    ) -> Result<(Worker, Option<ProcessIdentity>), AppError> {
        let mut jobs = self.now().await?.into_iter();
        if let Some(job) = jobs.find(|job| &job.record.id == id) {
            return Ok((job.worker, job.process));
        }
        let (this, id, home) = (Arc::clone(self), id.clone(), self.agent.home()?);
        let look = move || {
            let scene = this.surroundings(home);
            this.worker_of(&id, scene.now, &scene)
        };
        blocking(look).await
    }

    /// What a job does, and the limit that it stopped at.
    fn told(
        &self,
        id: &JobId,
        session: Option<&str>,
        cwd: Option<&Path>,
        said: Option<Evidence>,
        scene: &Scene,
    ) -> Told {
        let is_open = said.is_some();
        let process = said.as_ref().and_then(|_| self.signs.of_job(id.as_str()));
        let session = Session {
            conversation: session.map(RemoteId::new),
            cwd: cwd.map(Path::to_owned),
            evidence: said.into_iter().chain(process).collect(),
        };
        let mut told = self.signs.told(&self.refs, Some(&scene.home), &session);
        if let Some(limit) = told.limit.as_mut().filter(|_| is_open) {
            limit.hint = Some(NOT_BY_JOB.to_owned());
        }
        Told { does: told.does.filter(|_| is_open), ..told }
    }

    fn job_of_file(&self, file: &Arc<JobFile>, scene: &Scene) -> Job {
        let (worker, process) = self.worker_of(&file.id, file.written_at, scene);
        let project = file.cwd.as_deref().and_then(|cwd| project_of(&scene.projects, cwd));
        let tempo = word(&file.tempo);
        let has_transcript = match (&file.session_id, file.cwd.as_deref().and_then(Path::to_str)) {
            (Some(session), Some(cwd)) if is_session_id(session) => {
                scene.home.transcript_file(cwd, session).is_file()
            }
            _ => false,
        };
        let state = shown_state(&word(&file.state), &tempo, worker).to_owned();
        let since = file.updated_at.parse().unwrap_or(file.written_at);
        let said = of_job(&state, &tempo, file.needs.is_some(), since, process.is_some());
        let session = file.session_id.as_deref();
        let told = self.told(&file.id, session, file.cwd.as_deref(), said, scene);
        let record = BackgroundJob {
            id: file.id.clone(),
            project: project.map(|project| project.name.to_string()),
            state,
            detail: redact_text(&file.detail),
            tempo,
            needs: file.needs.as_deref().map(redact_text),
            result: file
                .result
                .as_deref()
                .map(|result| redact_text(result).chars().take(RESULT_CHARS).collect()),
            intent: redact_text(&file.intent),
            name: file.name.as_deref().map(redact_text),
            cwd: file.cwd.as_deref().and_then(|cwd| self.shown_directory(cwd, project)),
            session_ref: file.session_id.as_deref().and_then(|raw| self.refs.session(raw)),
            remote_registered: file.is_registered,
            has_transcript,
            cli_version: word(&file.cli_version),
            created_at: word(&file.created_at),
            updated_at: word(&file.updated_at),
            worker_pid: process.as_ref().map(|identity| identity.pid.get()),
            worker_alive: process.is_some(),
            limit: told.limit,
            activity: together(told.does.as_slice()),
        };
        Job { record, worker, process, file: Some(Arc::clone(file)) }
    }

    /// A job that the agent lists and whose file cannot be read.
    fn job_of_list(&self, id: &JobId, item: &CliSession, scene: &Scene) -> Job {
        let (worker, process) = self.worker_of(id, scene.now, scene);
        let project = project_of(&scene.projects, &item.cwd);
        let state = item.state.as_deref().map(word).unwrap_or_default();
        let at = item.started_at.to_string();
        let state = shown_state(&state, "", worker).to_owned();
        let has_needs = item.waiting_for.is_some();
        let said = of_job(&state, "", has_needs, item.started_at, process.is_some());
        let told = self.told(id, Some(&item.session_id), Some(&item.cwd), said, scene);
        let record = BackgroundJob {
            id: id.clone(),
            project: project.map(|project| project.name.to_string()),
            state,
            detail: String::new(),
            tempo: String::new(),
            needs: item.waiting_for.as_deref().map(redact_text),
            result: None,
            intent: String::new(),
            name: item.name.as_deref().map(redact_text),
            cwd: self.shown_directory(&item.cwd, project),
            session_ref: self.refs.session(&item.session_id),
            remote_registered: false,
            has_transcript: false,
            cli_version: String::new(),
            created_at: at.clone(),
            updated_at: at,
            worker_pid: process.as_ref().map(|identity| identity.pid.get()),
            worker_alive: process.is_some(),
            limit: told.limit,
            activity: together(told.does.as_slice()),
        };
        Job { record, worker, process, file: None }
    }

    /// The process of a job.
    /// The roster names the host process; a session process that registered itself for the job is a
    /// sign of life, too.
    fn worker_of(
        &self,
        id: &JobId,
        written_at: Timestamp,
        scene: &Scene,
    ) -> (Worker, Option<ProcessIdentity>) {
        let listed = scene.roster.as_ref().and_then(|roster| roster.workers.get(id));
        let listed = listed.filter(|_| scene.is_roster_of_boot);
        let identity = listed.map(|worker| ProcessIdentity {
            pid: worker.pid,
            start_ticks: worker.start_ticks,
            boot_id: self.host.boot_id().clone(),
        });
        let verdict = identity.as_ref().map(|identity| self.host.probe(identity));
        let has_session = || {
            scene.sessions().iter().any(|entry| {
                entry.job_id.as_deref() == Some(id.as_str())
                    && self
                        .host
                        .inspect(entry.pid)
                        .is_some_and(|facts| facts.identity.start_ticks == entry.start_ticks)
            })
        };
        let worker = match verdict {
            Some(Verdict::Same) => Worker::Alive,
            Some(Verdict::Unknown) => Worker::Unclear,
            Some(Verdict::Gone(_)) | None if has_session() => Worker::Alive,
            None if scene.roster.is_none() => Worker::Unclear,
            Some(Verdict::Gone(_)) | None => {
                Worker::Missing(self.missing_for(id, written_at, scene))
            }
        };
        let mut seen = lock(&self.memory.seen);
        if !matches!(worker, Worker::Missing(_)) {
            seen.insert(id.clone(), None);
        }
        (worker, identity.filter(|_| verdict == Some(Verdict::Same)))
    }

    /// How long a job has been without a process.
    /// A process that was never seen here is gone for as long as neither job nor roster were
    /// written.
    fn missing_for(&self, id: &JobId, written_at: Timestamp, scene: &Scene) -> Duration {
        let now = Instant::now();
        let mut seen = lock(&self.memory.seen);
        match seen.get_mut(id) {
            Some(Some(since)) => now.saturating_duration_since(*since),
            Some(slot @ None) => {
                *slot = Some(now);
                Duration::ZERO
            }
            None => {
                let roster = scene.roster.as_ref().and_then(|roster| roster.written_at);
                let last = roster.map_or(written_at, |at| at.max(written_at));
                let age = scene.now.as_millis().saturating_sub(last.as_millis());
                let age = Duration::from_millis(u64::try_from(age).unwrap_or(0)).min(LOST_AFTER);
                seen.insert(id.clone(), now.checked_sub(age).or(Some(now)));
                age
            }
        }
    }

    /// A directory outside the projects root is not the page's business.
    fn shown_directory(&self, cwd: &Path, project: Option<&Project>) -> Option<String> {
        let is_inside = project.is_some() || cwd.starts_with(&self.config.projects_root);
        is_inside.then(|| cwd.to_string_lossy().into_owned())
    }
}

/// The project whose directory holds `cwd`; of several the innermost.
fn project_of<'a>(projects: &'a Projects, cwd: &Path) -> Option<&'a Project> {
    projects
        .iter()
        .filter(|project| project.alias_of.is_none() && cwd.starts_with(&project.path))
        .max_by_key(|project| project.path.as_os_str().len())
}

/// A short text of the agent as it may be shown.
fn word(raw: &str) -> String {
    redact_text(raw).chars().take(WORD_CHARS).collect()
}

/// The id that a caller gave.
fn job_id(raw: &str) -> Result<JobId, AppError> {
    raw.parse().map_err(|bad| {
        let shown: String = raw.chars().take(80).collect();
        AppError::invalid(format!("`job_id` cannot be {}: {bad}", quoted(&shown)))
    })
}

/// No job has this id.
fn unknown_job(id: &JobId) -> AppError {
    AppError::new(
        ErrorCode::UnknownJob,
        Class::NotFound,
        format!("there is no background job {id}; the page and `svc jobs list` list them"),
    )
}

/// Something about a job that does not allow what was asked for.
fn conflict(code: ErrorCode, message: impl Into<String>) -> AppError {
    AppError::new(code, Class::Conflict, message)
}

/// The agent's program failed at what it was asked.
fn agent_failed(message: impl Into<String>) -> AppError {
    AppError::new(ErrorCode::AgentFailed, Class::Upstream, message)
}
