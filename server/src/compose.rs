//! The composition root: the only file that names adapters and builds the service.

use crate::error_chain::error_chain;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use svc_agent::cli::{AgentCli, AgentSetup};
use svc_agent::environment::{ChildEnvironment, Variables};
use svc_agent::node::default_node_bin;
use svc_app::doctor::Records;
use svc_app::refs::{Refs, session_secret};
use svc_app::{Agent, App, Parts, ProjectSource, Role};
use svc_config::{Config, Origin};
use svc_ports::{Clock, ProcessHost};
use svc_process::run_lock::RunLock;
use svc_process::table::ProcTable;
use svc_process::{Host, HostOptions};
use svc_projects::{Discovery, Projects, Rules, scan};
use svc_shared::Timestamp;
use svc_store::{Access, OpenError, Store};
use svc_watch::{Pace, Subscription, Watcher};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// Where this process runs, as far as the parts depend on it.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) config: Arc<Config>,
    /// What the configuration was read from.
    pub(crate) origin: Origin,
    /// The configuration file; what it lies in is no project.
    pub(crate) config_file: Option<PathBuf>,
    /// Environment that agents inherit, before anything is taken out of it.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Umask that agents get.
    pub(crate) umask: u32,
    /// On a private temporary tree.
    pub(crate) demo: bool,
}

/// What could not be put together, with its causes on one line, fit to be shown.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(crate) struct ComposeError {
    /// The word for programs.
    pub(crate) code: &'static str,
    words: String,
}

impl ComposeError {
    fn new(code: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { code, words: error_chain(error) }
    }
}

/// The service itself. The state directory is private and locked by the caller.
pub(crate) async fn server(around: &Surroundings, port: u16) -> Result<Composed, ComposeError> {
    let store = open(around, writing(around)).await?;
    let refs = refs(around, true).await?;
    let watcher = Watcher::new();
    let projects = Discovery::start(rules(around), &watcher).await;
    let source = Arc::new(Watched(projects));
    put_together(around, Ingredients { role: Role::Server, store, refs, watcher, source, port })
        .await
}

/// A command that writes beside a server or without one.
pub(crate) async fn command(around: &Surroundings) -> Result<Composed, ComposeError> {
    let state_dir = around.config.state_dir.clone();
    spawn_blocking(move || svc_process::files::private_directory(&state_dir))
        .await
        .map_err(|error| ComposeError::new("internal", &error))?
        .map_err(|error| ComposeError::new("state_dir", &error))?;
    let store = open(around, writing(around)).await?;
    let refs = refs(around, true).await?;
    scanned(around, Role::Command, store, refs).await
}

/// Whether a server runs on the state directory.
/// Unclear counts as yes: that server then records what it sees, and better than a command could.
pub(crate) async fn is_served(around: &Surroundings) -> bool {
    let state_dir = around.config.state_dir.clone();
    let asked = spawn_blocking(move || {
        let Ok(Some(record)) = RunLock::read(&state_dir) else { return Some(false) };
        record.is_alive(&ProcTable::open().ok()?)
    });
    asked.await.ok().flatten().unwrap_or(true)
}

/// A command that only reads.
/// Where nothing was ever started there is nothing to read, and nothing is created.
pub(crate) async fn reader(around: &Surroundings) -> Result<Composed, ComposeError> {
    let store = match Store::open(&around.config.state_dir, Access::ReadOnly).await {
        Err(OpenError::Missing(_)) => Store::empty().await,
        other => other,
    };
    let store = store.map_err(|error| ComposeError::new("store", &error))?;
    let refs = refs(around, false).await?;
    scanned(around, Role::Reader, store, refs).await
}

/// A command that examines: what others would stop at is one of its findings.
pub(crate) async fn examiner(around: &Surroundings) -> Result<(Composed, Records), ComposeError> {
    let empty = async || Store::empty().await.map_err(|error| ComposeError::new("store", &error));
    let (store, records) = match Store::open(&around.config.state_dir, Access::ReadOnly).await {
        Ok(store) => (store, Records::Open),
        Err(OpenError::Missing(_)) => (empty().await?, Records::Absent),
        Err(error) => (empty().await?, Records::Refused(error)),
    };
    Ok((scanned(around, Role::Reader, store, None).await?, records))
}

/// The service and the parts of it that a start talks about.
pub(crate) struct Composed {
    pub(crate) app: App,
    agent: AgentCli,
}

impl Composed {
    /// Version of the agent that would run now; `None` when there is no usable one.
    pub(crate) async fn agent_version(&self) -> Option<String> {
        let agent = self.agent.clone();
        agent.version_now().await.ok().map(|(_, version)| version.as_str().to_owned())
    }
}

fn writing(around: &Surroundings) -> Access {
    Access::ReadWrite { snapshot: around.config.db.backup_before_migrate }
}

async fn open(around: &Surroundings, access: Access) -> Result<Store, ComposeError> {
    Store::open(&around.config.state_dir, access)
        .await
        .map_err(|error| ComposeError::new("store", &error))
}

async fn refs(around: &Surroundings, create: bool) -> Result<Option<Refs>, ComposeError> {
    let config = Arc::clone(&around.config);
    let secret = spawn_blocking(move || {
        let configured = config
            .session_secret
            .as_ref()
            .map(|secret| ("SVC_SESSION_SECRET", secret.expose().as_bytes().to_vec()));
        session_secret(&config.state_dir, configured, create)
    });
    let secret = secret
        .await
        .map_err(|error| ComposeError::new("internal", &error))?
        .map_err(|error| ComposeError::new("session_secret", &error))?;
    Ok(secret.map(|secret| Refs::from_secret(&secret)))
}

async fn scanned(
    around: &Surroundings,
    role: Role,
    store: Store,
    refs: Option<Refs>,
) -> Result<Composed, ComposeError> {
    let rules = rules(around);
    let projects = spawn_blocking(move || scan(&rules))
        .await
        .map_err(|error| ComposeError::new("internal", &error))?;
    if let Some(trouble) = &projects.trouble {
        tracing::warn!("{trouble}");
    }
    let source = Arc::new(Scanned(Arc::new(projects)));
    let port = around.config.port;
    put_together(around, Ingredients { role, store, refs, watcher: Watcher::new(), source, port })
        .await
}

/// What differs between server, command and reader.
struct Ingredients {
    role: Role,
    store: Store,
    refs: Option<Refs>,
    watcher: Watcher,
    source: Arc<dyn ProjectSource>,
    port: u16,
}

async fn put_together(around: &Surroundings, own: Ingredients) -> Result<Composed, ComposeError> {
    let host = Host::new(HostOptions::default())
        .map_err(|error| ComposeError::new("process_table", &error))?;
    if own.role == Role::Server {
        host.take_over_children();
    }
    let agent = AgentCli::new(AgentSetup {
        binary: around.config.claude.binary.clone(),
        env: child_environment(around).await,
        // Where nothing was started yet there is no directory of ours to run the agent in.
        cwd: match around.config.state_dir.is_dir() {
            true => around.config.state_dir.clone(),
            false => PathBuf::from("/"),
        },
        locks: around.config.state_dir.join("locks"),
    });
    let app = App::new(Parts {
        config: Arc::clone(&around.config),
        origin: around.origin.clone(),
        role: own.role,
        demo: around.demo,
        store: own.store,
        host: Arc::new(host) as Arc<dyn ProcessHost>,
        clock: Arc::new(WallClock),
        agent: Arc::new(Agent::new(agent.clone(), boot_time())),
        watcher: own.watcher,
        projects: own.source,
        project_rules: rules(around),
        refs: own.refs,
        umask: around.umask,
        port: own.port,
    });
    Ok(Composed { app, agent })
}

async fn child_environment(around: &Surroundings) -> Variables {
    let claude = &around.config.claude;
    let inherited: Variables = around.variables.iter().cloned().collect();
    let overlay: BTreeMap<String, String> =
        claude.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    let node_bin = if claude.node_from_nvm { default_node_bin(&inherited).await } else { None };
    ChildEnvironment {
        inherited: &inherited,
        overlay: &overlay,
        path_append: &claude.path_append,
        node_bin: node_bin.as_deref(),
    }
    .variables()
}

/// Directories of a home that hold credentials, the agent's own among them.
const PRIVATE: [&str; 9] = [
    ".claude",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
];

/// Directories of the service and the home of its user are no projects (H38).
fn rules(around: &Surroundings) -> Rules {
    let config_directory = around.config_file.as_deref().and_then(Path::parent).map(Path::to_owned);
    let home = around
        .variables
        .iter()
        .find(|(name, value)| name == "HOME" && !value.is_empty())
        .map(|(_, value)| PathBuf::from(value));
    let agent = around
        .variables
        .iter()
        .find(|(name, value)| name == "CLAUDE_CONFIG_DIR" && !value.is_empty())
        .map(|(_, value)| PathBuf::from(value));
    let of_home = home.iter().flat_map(|home| {
        let home = home.canonicalize().unwrap_or_else(|_| home.clone());
        PRIVATE.map(|name| home.join(name))
    });
    let private = [Some(around.config.state_dir.clone()), agent]
        .into_iter()
        .flatten()
        .chain(of_home)
        // Those that are made later count as well.
        .map(|directory| directory.canonicalize().unwrap_or(directory))
        .collect();
    let refused = [Some(around.config.state_dir.clone()), config_directory, home]
        .into_iter()
        .flatten()
        .map(|directory| directory.canonicalize().unwrap_or(directory))
        .collect();
    Rules { root: around.config.projects_root.clone(), refused, private }
}

/// When this boot began.
fn boot_time() -> Option<Timestamp> {
    let began = svc_process::table::booted_at()?;
    i64::try_from(began.as_millis()).ok().map(Timestamp::from_millis)
}

/// Reports changes of two files, at the latest after this time.
pub(crate) fn watched(files: [&Path; 2], at_latest: Duration) -> [Subscription; 2] {
    let watcher = Watcher::new();
    files.map(|file| watcher.file(file, Pace::every(at_latest)))
}

/// Reports changes of one file, at the latest after this time.
pub(crate) fn watched_file(file: &Path, at_latest: Duration) -> Subscription {
    Watcher::new().file(file, Pace::every(at_latest))
}

struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

struct Watched(Discovery);

impl ProjectSource for Watched {
    fn snapshot(&self) -> Arc<Projects> {
        self.0.snapshot()
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.0.changes())
    }
}

struct Scanned(Arc<Projects>);

impl ProjectSource for Scanned {
    fn snapshot(&self) -> Arc<Projects> {
        Arc::clone(&self.0)
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}
