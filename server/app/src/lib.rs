//! Use-cases, supervisor and read model.
//!
//! [`App`] is what every door holds: HTTP handlers and commands call its methods, the supervisor
//! runs inside it. One file per use-case; `transition.rs` is the only writer of a bridge's state.

mod agent;
pub mod auth;
#[cfg(test)]
mod bench;
mod bridges;
mod error;
mod failpoint;
mod jobs;
mod logs;
mod ops;
mod projects;
pub mod read_model;
mod registry;
mod sessions;
mod soon;
mod supervise;

pub use agent::Agent;
pub use auth::refs;
pub use error::{AppError, Class};
pub use logs::{LogItem, LogQuery, LogStart, LogSubscription};
pub use ops::{Actor, Figures, VERSION, acting_as, doctor, legacy, setup};
pub use supervise::Supervisor;
pub use svc_domain::usage::Usage;
pub use svc_store::HistoryFilter;

use auth::Auth;
use read_model::ReadModel;
use refs::Refs;
use registry::Registry;
use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_agent::log_set::{LogSet, LogSetKey};
use svc_agent::log_tail::LogTails;
use svc_config::{Config, Origin};
use svc_domain::bridge::Bridge;
use svc_domain::redact::Colour;
use svc_ports::{Clock, ProcessHost};
use svc_process::locks::{FileLock, FileLocks, LockError};
use svc_projects::Projects;
use svc_shared::ids::{InstanceId, SessionRef};
use svc_store::Store;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a caller waits for the lock of a project before it is told to try again.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Which process this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The service: it supervises, announces, and gives launches a deadline.
    Server,
    /// A command: it does one thing and ends; a bridge it starts belongs to whoever serves next.
    Command,
    /// A command that only looks: nothing is written.
    Reader,
}

/// Where the projects come from: kept up to date by a watch, or read once by a command.
pub trait ProjectSource: Send + Sync {
    /// The projects as they are known now.
    fn snapshot(&self) -> Arc<Projects>;

    /// Counts up at every change; `None` where nothing ever changes.
    fn changes(&self) -> Option<tokio::sync::watch::Receiver<u64>>;
}

/// What an [`App`] is made of.
pub struct Parts {
    /// The configuration.
    pub config: Arc<Config>,
    /// What it was read from.
    pub origin: Origin,
    /// Which process this is.
    pub role: Role,
    /// Running on a private temporary tree.
    pub demo: bool,
    /// The registry.
    pub store: Store,
    /// Processes of this machine.
    pub host: Arc<dyn ProcessHost>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The agent program and its files.
    pub agent: Arc<Agent>,
    /// Tells of changed files.
    pub watcher: svc_watch::Watcher,
    /// The projects.
    pub projects: Arc<dyn ProjectSource>,
    /// Makes tokens; `None` when this installation has no secret yet.
    pub refs: Option<Refs>,
    /// Umask the service was started with; agents get it.
    pub umask: u32,
    /// The port that is served, which differs from the configured one when that is 0.
    pub port: u16,
}

/// The service as its doors see it. Cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    parts: Parts,
    auth: Arc<Auth>,
    read_model: Arc<ReadModel>,
    registry: Registry,
    extras: read_model::view::Extras,
    desk: jobs::Desk,
    samples: ops::metrics::Samples,
    families: bridges::family::Families,
    /// Logs that are read, each once however many read it.
    log_tails: LogTails,
    log_care: logs::retention::LogCare,
    sessions: sessions::SessionMemory,
    /// Held while rows are looked at and shown.
    publishing: std::sync::Mutex<()>,
    /// The same for projects and their readiness, which take longer.
    publishing_projects: std::sync::Mutex<()>,
    /// Live bridges when readiness was last published.
    published_live: std::sync::atomic::AtomicUsize,
    /// The look at long histories.
    neighbours: soon::Soon,
    /// The question who has written.
    who_wrote: soon::Soon,
    locks: FileLocks,
    /// Stops under way in this process: their ends are theirs to record.
    stopping: Mutex<HashMap<InstanceId, u32>>,
    doctor: doctor::LastAnswer,
    /// Wakes the reconciler.
    wake: Notify,
    watchers: supervise::Watchers,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("role", &self.inner.parts.role).finish_non_exhaustive()
    }
}

impl App {
    /// Puts the parts together. Nothing runs yet: see [`App::supervise`].
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let locks = FileLocks::new(parts.config.state_dir.join("locks"));
        let colour = match parts.config.logs.strip_ansi_in_stream {
            true => Colour::Strip,
            false => Colour::Keep,
        };
        let auth = Arc::new(Auth::new(
            &parts.config,
            parts.refs.as_ref().map(|refs| refs.keys().clone()),
            parts.store.clone(),
            Arc::clone(&parts.clock),
        ));
        Self {
            inner: Arc::new(Inner {
                auth,
                read_model: ReadModel::new(),
                registry: Registry::default(),
                extras: read_model::view::Extras::default(),
                desk: jobs::Desk::default(),
                samples: ops::metrics::Samples::default(),
                families: bridges::family::Families::default(),
                log_tails: LogTails::new(colour),
                sessions: sessions::SessionMemory::default(),
                log_care: logs::retention::LogCare::new(parts.clock.now()),
                publishing: std::sync::Mutex::default(),
                publishing_projects: std::sync::Mutex::default(),
                published_live: std::sync::atomic::AtomicUsize::new(0),
                neighbours: soon::Soon::default(),
                who_wrote: soon::Soon::default(),
                locks,
                stopping: Mutex::default(),
                doctor: doctor::LastAnswer::default(),
                wake: Notify::new(),
                watchers: supervise::Watchers::default(),
                tasks: TaskTracker::new(),
                shutdown: CancellationToken::new(),
                parts,
            }),
        }
    }

    /// What the page shows, and its stream.
    #[must_use]
    pub fn read_model(&self) -> &Arc<ReadModel> {
        &self.inner.read_model
    }

    /// Who may come in, and who is in.
    #[must_use]
    pub fn auth(&self) -> &Arc<Auth> {
        &self.inner.auth
    }

    /// The configuration.
    #[must_use]
    pub fn settings(&self) -> &Config {
        &self.inner.parts.config
    }

    /// Cancelled when the service ends.
    #[must_use]
    pub fn shutdown(&self) -> &CancellationToken {
        &self.inner.shutdown
    }

    /// Ends the supervisor and waits for use-cases under way, at most ten seconds.
    pub async fn close(&self) {
        self.inner.shutdown.cancel();
        self.inner.tasks.close();
        if tokio::time::timeout(Duration::from_secs(10), self.inner.tasks.wait()).await.is_err() {
            tracing::warn!("some operations did not end within ten seconds");
        }
        self.inner.parts.store.close().await;
    }

    /// Runs a use-case to its end even when the caller goes away: a dropped connection must not
    /// leave a launch half done.
    async fn run_to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, AppError>> + Send + 'static,
    ) -> Result<T, AppError> {
        let work = acting_as(self.actor(), work);
        self.inner.tasks.spawn(work).await.map_err(AppError::internal)?
    }

    pub(crate) fn is_server(&self) -> bool {
        self.inner.parts.role == Role::Server
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.parts.store
    }

    pub(crate) fn host(&self) -> &dyn ProcessHost {
        &*self.inner.parts.host
    }

    pub(crate) fn host_shared(&self) -> Arc<dyn ProcessHost> {
        Arc::clone(&self.inner.parts.host)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.inner.parts.clock
    }

    pub(crate) fn agent(&self) -> &Arc<Agent> {
        &self.inner.parts.agent
    }

    pub(crate) fn projects(&self) -> Arc<Projects> {
        self.inner.parts.projects.snapshot()
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    pub(crate) fn watchers(&self) -> &supervise::Watchers {
        &self.inner.watchers
    }

    pub(crate) fn wake(&self) -> &Notify {
        &self.inner.wake
    }

    pub(crate) fn who_wrote(&self) -> &soon::Soon {
        &self.inner.who_wrote
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.inner.tasks
    }

    pub(crate) fn umask(&self) -> u32 {
        self.inner.parts.umask
    }

    pub(crate) fn is_demo(&self) -> bool {
        self.inner.parts.demo
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.settings().state_dir.join("logs")
    }

    /// The log files of a stem that a record names; `None` for a stem that was never ours.
    pub(crate) fn log_set(&self, stem: &str) -> Option<LogSet> {
        stem.parse::<LogSetKey>().ok().map(|_| LogSet::at(&self.log_dir(), stem))
    }

    pub(crate) fn session_memory(&self) -> &sessions::SessionMemory {
        &self.inner.sessions
    }

    pub(crate) fn log_care(&self) -> &logs::retention::LogCare {
        &self.inner.log_care
    }

    pub(crate) fn log_tails(&self) -> &LogTails {
        &self.inner.log_tails
    }

    pub(crate) fn watcher(&self) -> &svc_watch::Watcher {
        &self.inner.parts.watcher
    }

    pub(crate) fn extras(&self) -> &read_model::view::Extras {
        &self.inner.extras
    }

    pub(crate) fn samples(&self) -> &ops::metrics::Samples {
        &self.inner.samples
    }

    /// Who was last seen with each live bridge.
    pub(crate) fn families(&self) -> &bridges::family::Families {
        &self.inner.families
    }

    pub(crate) fn desk(&self) -> &jobs::Desk {
        &self.inner.desk
    }

    pub(crate) fn port(&self) -> u16 {
        self.inner.parts.port
    }

    pub(crate) fn project_changes(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        self.inner.parts.projects.changes()
    }

    pub(crate) fn session_ref(&self, bridge: &Bridge) -> Option<SessionRef> {
        let raw = bridge.anchor.session_id.as_deref()?;
        self.inner.parts.refs.as_ref()?.session(raw)
    }

    pub(crate) fn refs(&self) -> Option<&Refs> {
        self.inner.parts.refs.as_ref()
    }

    pub(crate) async fn lock_project(&self, real_path: &Path) -> Result<FileLock, AppError> {
        self.inner.locks.lock(real_path, LOCK_WAIT).await.map_err(|error| match error {
            LockError::Busy { .. } => AppError::busy(
                "another operation on this project is still under way; try again in a moment",
            ),
            other @ LockError::File { .. } => {
                AppError::busy("the lock of this project cannot be taken; try again").because(other)
            }
        })
    }

    /// The lock if nobody has it: nobody is launching or stopping then.
    pub(crate) async fn try_lock_project(&self, real_path: &Path) -> Option<FileLock> {
        self.inner.locks.try_lock(real_path).await.ok().flatten()
    }

    pub(crate) fn stopping(&self) -> std::sync::MutexGuard<'_, HashMap<InstanceId, u32>> {
        self.inner.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a running server of the same state directory to look at the registry.
    pub(crate) fn nudge_others(&self) {
        if !self.is_server() {
            supervise::nudge(&self.settings().state_dir);
        }
    }
}
