//! Use-cases: create a project, and clone one.
//!
//! A clone is a job of this process: at most four run, others wait. Each is watched through a
//! channel that keeps its newest record, so that a slow reader misses steps but never the end.

mod forwarder;
mod git;
mod route;
mod transfer;

use crate::agent::Agent;
use crate::bridges::readiness::Readiness;
use crate::failpoint::hit;
use crate::projects::catalog::Catalog;
use crate::read_model::ReadModel;
use crate::registry::Registry;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use git::Git;
use route::Route;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_config::Config;
use svc_domain::clones::source::{Source, schemes};
use svc_domain::log_escape::quoted;
use svc_ports::{Clock, ProcessHost};
use svc_projects::provision::{self, NewProject, ProvisionError};
use svc_projects::{Project, Rules};
use svc_shared::Word;
use svc_shared::api::projects;
use svc_shared::error::ErrorCode;
use svc_shared::events::Event;
use svc_shared::ids::ProjectName;
use svc_shared::internal::clones::{
    ActiveClone, ActiveClones, CancellingClone, CloneAccepted, CloneJob, CloneRequest, CloneState,
    CreateProject,
};
use svc_shared::stream::Record;
use svc_watch::Watcher;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use transfer::{Failed, Transfer};

/// Clones that run at the same time (H52).
const AT_ONCE: usize = 4;
/// Most clones that run or wait; one more is refused.
const MOST: usize = 32;
/// Most clones that are remembered, those that are over included.
const MOST_KEPT: usize = 256;
/// How long a clone that is over can be asked for (`http-api` §3.2).
const KEPT: Duration = Duration::from_secs(60);
/// How long a new project may take to be noticed.
const NOTICED: Duration = Duration::from_secs(5);
/// `git init` writes a dozen small files.
const INIT: Duration = Duration::from_secs(20);

/// Makes projects.
pub struct Clones {
    pub(crate) config: Arc<Config>,
    pub(crate) rules: Rules,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) read_model: Arc<ReadModel>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tasks: Tasks,
    pub(crate) watcher: Watcher,
    git: Git,
    turns: Semaphore,
    /// In the order in which they were asked for.
    jobs: Mutex<Vec<Arc<Job>>>,
}

/// What [`Clones`] is made of.
pub(crate) struct ClonesParts {
    pub config: Arc<Config>,
    pub rules: Rules,
    pub catalog: Arc<Catalog>,
    pub readiness: Arc<Readiness>,
    pub registry: Arc<Registry>,
    pub read_model: Arc<ReadModel>,
    pub clock: Arc<dyn Clock>,
    pub tasks: Tasks,
    pub watcher: Watcher,
    pub agent: Arc<Agent>,
    pub host: Arc<dyn ProcessHost>,
    pub umask: u32,
}

/// One clone.
#[derive(Debug)]
pub(crate) struct Job {
    id: svc_domain::identity::LaunchId,
    name: ProjectName,
    cancel: CancellationToken,
    record: watch::Sender<CloneJob>,
}

impl Job {
    fn is_over(&self) -> bool {
        is_over(&self.record.borrow())
    }
}

/// Whether a clone is over.
#[must_use]
pub fn is_over(job: &CloneJob) -> bool {
    job.state.is(&CloneState::Done) || job.state.is(&CloneState::Error)
}

impl Clones {
    pub(crate) fn new(parts: ClonesParts) -> Self {
        let ClonesParts { agent, host, umask, .. } = parts;
        Self {
            config: parts.config,
            rules: parts.rules,
            catalog: parts.catalog,
            readiness: parts.readiness,
            registry: parts.registry,
            read_model: parts.read_model,
            clock: parts.clock,
            tasks: parts.tasks,
            watcher: parts.watcher,
            git: Git { agent, host, umask },
            turns: Semaphore::new(AT_ONCE),
            jobs: Mutex::default(),
        }
    }

    /// Makes an empty project, as a git repository if that is wanted.
    ///
    /// # Errors
    /// The name is taken or breaks a rule, or the directory or the repository cannot be made.
    pub async fn create(
        self: &Arc<Self>,
        request: CreateProject,
    ) -> Result<projects::Project, AppError> {
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.create_now(request).await }).await
    }

    async fn create_now(&self, request: CreateProject) -> Result<projects::Project, AppError> {
        self.check_enabled()?;
        let name = checked_name(&request.name)?;
        self.check_room().await?;
        let id = git::new_id()?;
        let new = self.begin(&name, id.as_str()).await?;
        let umask = self.git.umask;
        let new = blocking(move || new.make_tree(umask).map(|()| new)).await?;
        let new = new.map_err(|error| not_made(&name, error))?;
        if request.git_init {
            let (program, env) = self.git.program()?;
            let call = svc_projects::git_call::init(&env);
            let tree = new.tree();
            let files = (new.dir(), "init", tree.as_path());
            let running = self.git.start(program, call, &id, files).await?;
            self.git.finish(running, INIT).await?;
        }
        let project = self.publish(&name, new).await?;
        tracing::info!(project.name = %name, "created project {}", quoted(name.as_str()));
        let readiness = Arc::clone(&self.readiness);
        blocking(move || readiness.record(&project)).await
    }

    /// Begins a clone. Whoever asks can follow it with [`Clones::follow`].
    ///
    /// # Errors
    /// The address or the name breaks a rule, the host may not be dialled, or there are too many.
    pub async fn begin_clone(
        self: &Arc<Self>,
        request: CloneRequest,
    ) -> Result<CloneAccepted, AppError> {
        self.check_enabled()?;
        let name = checked_name(&request.name)?;
        let allowed = schemes(&self.config.clone.allowed_schemes);
        let source = Source::parse(&request.url, &allowed)
            .map_err(|error| AppError::invalid(error.to_string()))?;
        self.git.program()?;
        self.check_free(&name).await?;
        self.check_room().await?;
        let route = Route::find(&self.config, &source).await?;
        let job = self.reserve(name, request.shallow)?;
        self.show(&job);
        let accepted =
            CloneAccepted { job_id: job.id.as_str().to_owned(), name: job.name.to_string() };
        let this = Arc::clone(self);
        self.tasks.spawn(async move { this.run(job, source, route, request.shallow).await });
        Ok(accepted)
    }

    /// The record of a clone, and every later state of it.
    ///
    /// # Errors
    /// There is none, or it has been over for a minute.
    pub fn follow(&self, id: &str) -> Result<watch::Receiver<CloneJob>, AppError> {
        Ok(self.named(id)?.record.subscribe())
    }

    /// The clones that are not over.
    #[must_use]
    pub fn active(&self) -> ActiveClones {
        let jobs = self.jobs();
        let records = jobs.iter().map(|job| job.record.borrow().clone());
        let jobs = records.filter(|record| !is_over(record)).map(|record| ActiveClone {
            job_id: record.job_id,
            name: record.name,
            phase: record.phase,
            percent: record.percent,
        });
        ActiveClones { jobs: jobs.collect() }
    }

    /// Ends a clone. Nothing of it stays.
    ///
    /// # Errors
    /// It is unknown, or over.
    pub fn cancel(&self, id: &str) -> Result<CancellingClone, AppError> {
        let job = self.named(id)?;
        if job.is_over() {
            let message = "this clone is over; there is nothing to cancel";
            return Err(AppError::new(ErrorCode::InvalidValue, Class::Conflict, message));
        }
        job.cancel.cancel();
        Ok(CancellingClone { job_id: id.to_owned(), cancelling: true })
    }

    /// Removes what clones of a dead process have left, after their processes.
    pub(crate) async fn sweep(&self) {
        let rules = self.rules.clone();
        let Ok(left) = blocking(move || provision::abandoned(&rules)).await else { return };
        for one in left {
            if let Ok(launch) = one.job.parse() {
                self.git.kill_members(&launch).await;
            }
            match blocking(move || one.remove()).await {
                Ok(Ok(())) => tracing::info!("removed what an interrupted clone had left"),
                Ok(Err(error)) => {
                    tracing::warn!(error = %error, "what an interrupted clone left was not removed");
                }
                Err(_) => {}
            }
        }
    }

    async fn run(self: Arc<Self>, job: Arc<Job>, source: Source, route: Route, shallow: bool) {
        let shutdown = self.tasks.shutdown().clone();
        let waiting = async {
            tokio::select! {
                turn = self.turns.acquire() => turn.map_err(|_| Failed::ShuttingDown),
                () = job.cancel.cancelled() => Err(Failed::Cancelled),
                () = shutdown.cancelled() => Err(Failed::ShuttingDown),
            }
        };
        let ended = match waiting.await {
            Err(failed) => Err(failed),
            Ok(_turn) => {
                let now = self.clock.now();
                self.change(&job, |record| {
                    record.state = CloneState::Running.into();
                    record.started_at = Some(now);
                });
                let transfer = Transfer { clones: &self, job: &job, shallow };
                transfer.run(source, route).await
            }
        };
        self.end(&job, ended);
        tokio::select! {
            () = tokio::time::sleep(KEPT) => {}
            () = shutdown.cancelled() => {}
        }
        let mut jobs = self.jobs();
        jobs.retain(|other| other.id != job.id);
        self.read_model.remove("clone", job.id.as_str());
    }

    fn end(&self, job: &Job, ended: Result<(), Failed>) {
        let now = self.clock.now();
        let (name, shown) = (&job.name, quoted(job.name.as_str()));
        let failed = ended.err();
        match &failed {
            None => tracing::info!(project.name = %name, "cloned project {shown}"),
            Some(Failed::Cancelled) => {
                tracing::info!(project.name = %name, "the clone of {shown} was cancelled");
            }
            Some(failed) => {
                tracing::warn!(project.name = %name, error = %failed, "the clone of {shown} failed");
            }
        }
        self.change(job, |record| {
            record.state = match failed {
                None => CloneState::Done.into(),
                Some(_) => CloneState::Error.into(),
            };
            record.cancelled = matches!(failed, Some(Failed::Cancelled));
            record.error = failed.as_ref().map(ToString::to_string);
            record.ended_at = Some(now);
        });
        let record = job.record.borrow().clone();
        let (name, status) = (record.name.to_string(), record.state.to_string());
        self.read_model.happened(&Event::clone_done(name, status, record.error));
    }

    /// Changes the record of a job, and shows it.
    fn change(&self, job: &Job, change: impl FnOnce(&mut CloneJob)) {
        job.record.send_modify(change);
        self.show(job);
    }

    fn show(&self, job: &Job) {
        // Whoever read the record before has shown it before.
        let _jobs = self.jobs();
        let record = job.record.borrow().clone();
        self.read_model.put(vec![(record.job_id.clone(), Record::Clone(record))]);
    }

    /// Takes the name, unless another clone has it.
    fn reserve(&self, name: ProjectName, shallow: bool) -> Result<Arc<Job>, AppError> {
        let id = git::new_id()?;
        let mut jobs = self.jobs();
        let mut under_way = jobs.iter().filter(|job| !job.is_over());
        if under_way.clone().any(|job| job.name == name) {
            return Err(AppError::new(
                ErrorCode::Exists,
                Class::Conflict,
                format!(
                    "a clone to {} is running; wait for it or cancel it",
                    quoted(name.as_str())
                ),
            ));
        }
        if under_way.nth(MOST - 1).is_some() || jobs.len() >= MOST_KEPT {
            return Err(AppError::busy(format!(
                "{MOST} clones are running or waiting; wait for one of them"
            )));
        }
        let record = CloneJob {
            job_id: id.as_str().to_owned(),
            name: name.to_string(),
            state: Word::from(CloneState::Waiting),
            shallow,
            phase: String::new(),
            percent: None,
            bytes: None,
            started_at: None,
            ended_at: None,
            error: None,
            cancelled: false,
        };
        let job = Arc::new(Job {
            id,
            name,
            cancel: CancellationToken::new(),
            record: watch::Sender::new(record),
        });
        jobs.push(Arc::clone(&job));
        Ok(job)
    }

    async fn begin(&self, name: &ProjectName, id: &str) -> Result<NewProject, AppError> {
        let (rules, at, job) = (self.rules.clone(), name.clone(), id.to_owned());
        let begun = blocking(move || NewProject::begin(&rules, &at, &job)).await?;
        begun.map_err(|error| not_made(name, error))
    }

    /// Puts a finished tree to its place, and waits until lists show it.
    async fn publish(&self, name: &ProjectName, new: NewProject) -> Result<Project, AppError> {
        hit("clone.before_rename").await;
        let published = blocking(move || new.publish()).await?;
        published.map_err(|error| not_made(name, error))?;
        hit("clone.after_rename").await;
        self.noticed(name).await;
        self.registry.publish_all().await;
        let (rules, at) = (self.rules.clone(), name.clone());
        let found = blocking(move || provision::look_up(&rules, &at)).await?;
        found.ok_or_else(|| {
            AppError::busy(format!(
                "the directory {} was made, and is not there any more",
                quoted(name.as_str())
            ))
        })
    }

    async fn noticed(&self, name: &ProjectName) {
        let Some(mut changes) = self.catalog.changes() else { return };
        let seen = async {
            while self.catalog.named(name.as_str()).is_err() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        if tokio::time::timeout(NOTICED, seen).await.is_err() {
            tracing::warn!(project.name = %name, "a new project is not in the list yet");
        }
    }

    async fn check_free(&self, name: &ProjectName) -> Result<(), AppError> {
        let (rules, at) = (self.rules.clone(), name.clone());
        match blocking(move || provision::is_name_taken(&rules, &at)).await? {
            Ok(false) => Ok(()),
            Ok(true) => Err(not_made(name, ProvisionError::Taken)),
            Err(error) => Err(not_made(name, error)),
        }
    }

    /// Refuses while the disk is nearly full (H95).
    async fn check_room(&self) -> Result<(), AppError> {
        let root = self.rules.root.clone();
        match blocking(move || has_room(&root)).await? {
            true => Ok(()),
            false => Err(no_room()),
        }
    }

    fn check_enabled(&self) -> Result<(), AppError> {
        if self.config.clone.enabled {
            return Ok(());
        }
        Err(AppError::new(
            ErrorCode::CapabilityDisabled,
            Class::Forbidden,
            "projects are not created or cloned here: `clone.enabled` is off",
        ))
    }

    fn named(&self, id: &str) -> Result<Arc<Job>, AppError> {
        let jobs = self.jobs();
        jobs.iter().find(|job| job.id.as_str() == id).cloned().ok_or_else(|| {
            AppError::new(
                ErrorCode::UnknownJob,
                Class::NotFound,
                "no clone has this id; one that is over is forgotten after a minute",
            )
        })
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name that an address suggests for a project; `None` without a good one.
#[must_use]
pub fn suggested_name(url: &str) -> Option<String> {
    let source = Source::parse(url, &svc_domain::clones::source::Scheme::ALL).ok()?;
    let name = source.suggested_name();
    checked_name(name).ok().map(|name| name.to_string())
}

fn checked_name(raw: &str) -> Result<ProjectName, AppError> {
    if raw.starts_with('-') {
        return Err(AppError::invalid("`name` begins with `-`; choose another name"));
    }
    raw.parse().map_err(|error| AppError::invalid(format!("`name`: {error}")))
}

fn has_room(root: &Path) -> bool {
    // Where the file system says nothing, the writes will tell.
    svc_process::files::is_above_floor(root).unwrap_or(true)
}

fn no_room() -> AppError {
    AppError::new(
        ErrorCode::DiskFull,
        Class::Storage,
        "the file system of `projects_root` is nearly full; free some space",
    )
}

fn not_made(name: &ProjectName, error: ProvisionError) -> AppError {
    let message = match &error {
        ProvisionError::Taken => {
            format!("{} is there already; choose another name", quoted(name.as_str()))
        }
        other => other.to_string(),
    };
    match error {
        ProvisionError::Taken => AppError::new(ErrorCode::Exists, Class::Conflict, message),
        ProvisionError::Full(cause) => {
            AppError::new(ErrorCode::DiskFull, Class::Storage, message).because(cause)
        }
        ProvisionError::Root(cause) | ProvisionError::Failed(cause) => {
            AppError::busy(message).because(cause)
        }
    }
}
