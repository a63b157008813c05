//! Use-cases: the keepers that live, and the end of one that belongs to nobody.

use crate::auth::refs::SessionRefs;
use crate::bridges::keepers::{held_by, is_keeper};
use crate::bridges::strays::launch_in;
use crate::ops::doctor::last::LastAnswer;
use crate::registry::Registry;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class, log_files};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_config::Config;
use svc_domain::identity::{LaunchId, Pid, ProcessIdentity};
use svc_keeper::message::Phase;
use svc_keeper::sidecar::{self, SUFFIX, Sidecar};
use svc_ports::ProcessHost;
use svc_ports::process::{ProcessFacts, Signal, Signalled, Target};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::internal::keepers::{Keeper, KilledKeeper};
use svc_store::Content;

/// How long a keeper may take to end after each of the two signals.
const PATIENCE: Duration = Duration::from_secs(2);

/// The keepers of this state directory.
pub struct KeeperList {
    config: Arc<Config>,
    host: Arc<dyn ProcessHost>,
    registry: Arc<Registry>,
    refs: Arc<SessionRefs>,
    doctor: Arc<LastAnswer>,
    tasks: Tasks,
}

/// A keeper that lives, with the file of its record.
struct Found {
    path: PathBuf,
    socket: Option<PathBuf>,
    identity: ProcessIdentity,
    agent: Option<ProcessIdentity>,
    shown: Keeper,
}

/// What the registry says about the keepers of a directory.
#[derive(Default)]
struct Known {
    projects: HashSet<String>,
    /// The keepers that rows name.
    keepers: HashSet<ProcessIdentity>,
    /// Project and instance of each launch that has a row.
    launches: HashMap<LaunchId, (String, InstanceId)>,
}

impl KeeperList {
    /// Shares these parts.
    pub(crate) fn new(
        config: &Arc<Config>,
        host: &Arc<dyn ProcessHost>,
        registry: &Arc<Registry>,
        refs: &Arc<SessionRefs>,
        doctor: &Arc<LastAnswer>,
        tasks: &Tasks,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            host: Arc::clone(host),
            registry: Arc::clone(registry),
            refs: Arc::clone(refs),
            doctor: Arc::clone(doctor),
            tasks: tasks.clone(),
        }
    }

    /// All live keepers, by pid.
    ///
    /// # Errors
    /// The registry cannot be read: without it every keeper would look like an orphan.
    pub async fn list(self: &Arc<Self>) -> Result<Vec<Keeper>, AppError> {
        Ok(self.found().await?.into_iter().map(|found| found.shown).collect())
    }

    /// Ends a keeper that is an orphan at this moment; with `force` any live one.
    /// What has begun goes on when the caller goes away: without its keeper nobody finds the agent.
    ///
    /// # Errors
    /// It is none, or lives on.
    pub async fn kill(self: &Arc<Self>, pid: i32, force: bool) -> Result<KilledKeeper, AppError> {
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.kill_now(pid, force).await }).await
    }

    async fn kill_now(self: &Arc<Self>, pid: i32, force: bool) -> Result<KilledKeeper, AppError> {
        self.doctor.forget();
        let found = self.found().await?.into_iter().find(|one| one.identity.pid.get() == pid);
        let Some(found) = found else {
            let words =
                format!("process {pid} is no keeper of this service; list them with `svc keepers`");
            return Err(AppError::new(ErrorCode::InvalidValue, Class::Conflict, words));
        };
        if !found.shown.orphan && !force {
            let words = format!(
                "keeper {pid} holds the terminal of a session of {}; stop that session, or end the \
                 keeper alone with `svc keepers --kill {pid} --force`",
                svc_domain::log_escape::quoted(&found.shown.project)
            );
            return Err(AppError::new(ErrorCode::InvalidValue, Class::Conflict, words));
        }
        let identity = &found.identity;
        let is_gone = self.end(identity, Signal::Terminate, Target::Process).await
            || self.end(identity, Signal::Kill, Target::Group).await;
        if !is_gone {
            let words = format!(
                "keeper {pid} is still alive; look at it with `ps` and end what it waits for"
            );
            return Err(AppError::new(ErrorCode::StillLive, Class::Conflict, words));
        }
        tracing::info!(agent.pid = pid, "keeper {pid} was killed");
        if let Some(agent) = found.agent.filter(|_| found.shown.orphan) {
            // Its terminal has hung up; nobody would ever find it again.
            let _ = self.end(&agent, Signal::Interrupt, Target::Group).await
                || self.end(&agent, Signal::Kill, Target::Group).await;
        }
        let (path, socket) = (found.path, found.socket);
        let removed = blocking(move || {
            // It removes its socket itself at an orderly end.
            let _ = socket.map(|socket| svc_process::files::remove_socket(&socket));
            std::fs::remove_file(path)
        });
        if let Err(error) = removed.await? {
            tracing::debug!(error = %error, "the record of a keeper stays");
        }
        Ok(KilledKeeper { keeper_pid: pid, killed: true })
    }

    /// Signals one proven process and waits for its end. Tells whether it is gone.
    async fn end(&self, identity: &ProcessIdentity, signal: Signal, target: Target) -> bool {
        let exit = self.host.exited(identity);
        match self.host.signal(identity, signal, target) {
            Signalled::Gone => true,
            Signalled::Sent => tokio::time::timeout(PATIENCE, exit).await.is_ok(),
            Signalled::NotPermitted | Signalled::Unproven => false,
        }
    }

    async fn found(self: &Arc<Self>) -> Result<Vec<Found>, AppError> {
        let rows = self.registry.store.bridges().await?;
        let mut known = Known::default();
        for row in rows {
            match row.content {
                Content::Bridge(bridge) => {
                    let project = bridge.project.to_string();
                    if let Some(launch) = &bridge.launch {
                        let owner = (project.clone(), bridge.id.clone());
                        known.launches.insert(launch.id.clone(), owner);
                    }
                    known.projects.insert(project);
                    known.keepers.extend(bridge.keeper);
                }
                Content::Corrupt { project, .. } => _ = known.projects.insert(project),
            }
        }
        let this = Arc::clone(self);
        blocking(move || this.look(&known)).await
    }

    /// Blocks: reads the records of keepers and the process table.
    fn look(&self, known: &Known) -> Vec<Found> {
        let listed = sidecar::list(&log_files::directory(&self.config)).unwrap_or_default();
        let processes = if listed.is_empty() { Vec::new() } else { self.host.processes() };
        let (mut found, mut damaged) = (Vec::new(), Vec::new());
        for (path, sidecar) in listed {
            match sidecar {
                Ok(sidecar) => found.extend(self.judged(path, sidecar, known, &processes)),
                Err(error) => {
                    tracing::debug!(error = %error, "the record of a keeper cannot be used");
                    damaged.push(path);
                }
            }
        }
        if !damaged.is_empty() {
            found.extend(self.behind(damaged, known));
        }
        found.sort_by_key(|one| one.shown.keeper_pid);
        found
    }

    /// The keepers whose records are damaged.
    ///
    /// The launch file beside such a record has the id of the launch. The agent carries that id,
    /// and its parent is the keeper.
    fn behind(&self, damaged: Vec<PathBuf>, known: &Known) -> Vec<Found> {
        let carriers = self.host.carriers();
        let keeper_of = |path: PathBuf| {
            let stem = stem(&path)?;
            let launch = launch_in(&path.with_file_name(format!("{stem}.launch.json")))?;
            let mut ours = carriers.iter().filter(|one| one.launch == launch);
            let (agent, keeper) = ours.find_map(|agent| {
                let parent = Pid::new(i64::from(agent.facts.parent))?;
                let keeper = self.host.inspect(parent).filter(is_keeper)?;
                Some((agent, keeper))
            })?;
            let owner = known.launches.get(&launch);
            let project = owner.map_or_else(|| project_of(&stem), |(project, _)| project.clone());
            let shown = Keeper {
                keeper_pid: keeper.identity.pid.get(),
                orphan: !known.projects.contains(&project),
                project,
                bridge_pid: Some(agent.facts.identity.pid.get()),
                session_ref: None,
                state: "unknown".to_owned(),
                instance_id: owner.map(|(_, id)| id.clone()),
                started_at: None,
                damaged: true,
                outdated: false,
                version: None,
            };
            let agent = Some(agent.facts.identity.clone());
            Some(Found { path, socket: None, identity: keeper.identity, agent, shown })
        };
        damaged.into_iter().filter_map(keeper_of).collect()
    }

    fn judged(
        &self,
        path: PathBuf,
        sidecar: Sidecar,
        known: &Known,
        processes: &[ProcessFacts],
    ) -> Option<Found> {
        let identity = sidecar.keeper()?;
        let facts = self.host.inspect(identity.pid)?;
        // The record proves nothing: the process must be it, and be a keeper.
        if facts.identity != identity || !is_keeper(&facts) {
            return None;
        }
        // Nor does it prove the agent: that is a child of the keeper with the id of a launch (H102).
        let held = held_by(self.host.as_ref(), processes, &identity);
        let agent = sidecar.agent().filter(|agent| held.iter().any(|(one, _)| one == agent));
        let is_known = known.projects.contains(sidecar.project.as_str())
            || known.keepers.contains(&identity)
            || held.iter().any(|(_, launch)| known.launches.contains_key(launch));
        let session = sidecar.session_id.as_ref();
        let shown = Keeper {
            keeper_pid: identity.pid.get(),
            project: sidecar.project.to_string(),
            bridge_pid: agent.as_ref().map(|agent| agent.pid.get()),
            session_ref: session.and_then(|secret| self.refs.session(&secret.0)),
            state: phase(sidecar.phase).to_owned(),
            instance_id: Some(sidecar.instance_id.clone()),
            started_at: Some(sidecar.started_at),
            damaged: false,
            orphan: !is_known,
            outdated: sidecar.keeper.version != env!("CARGO_PKG_VERSION"),
            version: Some(sidecar.keeper.version.clone()),
        };
        Some(Found { path, socket: Some(sidecar.socket), identity, agent, shown })
    }
}

/// What the names of the files of one launch begin with.
fn stem(sidecar: &Path) -> Option<String> {
    Some(sidecar.file_name()?.to_str()?.strip_suffix(SUFFIX)?.to_owned())
}

/// The project in a stem: `<project>-<ms>-<seq>`.
fn project_of(stem: &str) -> String {
    stem.rsplitn(3, '-').nth(2).unwrap_or(stem).to_owned()
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Launching => "launching",
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Failed => "failed",
        Phase::Exited => "exited",
    }
}
