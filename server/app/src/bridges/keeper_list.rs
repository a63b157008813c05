//! Use-cases: the keepers that live, and the end of one that belongs to nobody.

use crate::auth::refs::SessionRefs;
use crate::bridges::keepers::is_keeper;
use crate::ops::doctor::last::LastAnswer;
use crate::registry::Registry;
use crate::tasks::blocking;
use crate::{AppError, Class, log_files};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use svc_config::Config;
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_keeper::message::Phase;
use svc_keeper::sidecar::{self, Sidecar};
use svc_ports::ProcessHost;
use svc_ports::process::{Signal, Signalled, Target};
use svc_shared::error::ErrorCode;
use svc_shared::internal::keepers::{Keeper, KilledKeeper};
use svc_store::Content;

/// How long a keeper may take to end after each of the two signals.
const PATIENCE: Duration = Duration::from_secs(2);

/// The keepers of this state directory.
pub struct KeeperList {
    pub(crate) config: Arc<Config>,
    pub(crate) host: Arc<dyn ProcessHost>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) refs: Arc<SessionRefs>,
    pub(crate) doctor: Arc<LastAnswer>,
}

/// A keeper that lives, with its record.
struct Found {
    path: PathBuf,
    sidecar: Sidecar,
    identity: ProcessIdentity,
    shown: Keeper,
}

impl KeeperList {
    /// All live keepers, by pid.
    ///
    /// # Errors
    /// The registry cannot be read: without it every keeper would look like an orphan.
    pub async fn list(self: &Arc<Self>) -> Result<Vec<Keeper>, AppError> {
        Ok(self.found().await?.into_iter().map(|found| found.shown).collect())
    }

    /// Ends a keeper that is an orphan at this moment; with `force` any live one.
    ///
    /// # Errors
    /// It is none, or lives on.
    pub async fn kill(self: &Arc<Self>, pid: i32, force: bool) -> Result<KilledKeeper, AppError> {
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
        if let Some(agent) = found.sidecar.agent().filter(|_| found.shown.orphan) {
            // Its terminal has hung up; nobody would ever find it again.
            let _ = self.end(&agent, Signal::Interrupt, Target::Group).await
                || self.end(&agent, Signal::Kill, Target::Group).await;
        }
        let (path, socket) = (found.path, found.sidecar.socket);
        let removed = blocking(move || {
            let _ = std::fs::remove_file(socket); // it removes that itself at an orderly end
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
        let projects: HashSet<String> = rows
            .iter()
            .map(|row| match &row.content {
                Content::Bridge(bridge) => bridge.project.to_string(),
                Content::Corrupt { project, .. } => project.clone(),
            })
            .collect();
        let this = Arc::clone(self);
        blocking(move || this.look(&projects)).await
    }

    /// Blocks: reads the records of keepers and the process table.
    fn look(&self, projects: &HashSet<String>) -> Vec<Found> {
        let listed = sidecar::list(&log_files::directory(&self.config)).unwrap_or_default();
        let mut found: Vec<Found> = listed
            .into_iter()
            .filter_map(|(path, sidecar)| self.judged(path, sidecar.ok()?, projects))
            .collect();
        found.sort_by_key(|one| one.shown.keeper_pid);
        found
    }

    fn judged(&self, path: PathBuf, sidecar: Sidecar, projects: &HashSet<String>) -> Option<Found> {
        let identity = sidecar.keeper()?;
        let facts = self.host.inspect(identity.pid)?;
        // The record proves nothing: the process must be it, and be a keeper.
        if facts.identity != identity || !is_keeper(&facts) {
            return None;
        }
        let agent = sidecar.agent().filter(|agent| self.host.probe(agent) == Verdict::Same);
        let session = sidecar.session_id.as_ref();
        let shown = Keeper {
            keeper_pid: identity.pid.get(),
            project: sidecar.project.to_string(),
            bridge_pid: agent.map(|agent| agent.pid.get()),
            session_ref: session.and_then(|secret| self.refs.session(&secret.0)),
            state: phase(sidecar.phase).to_owned(),
            instance_id: sidecar.instance_id.clone(),
            started_at: sidecar.started_at,
            orphan: !projects.contains(sidecar.project.as_str()),
            outdated: sidecar.keeper.version != env!("CARGO_PKG_VERSION"),
            version: sidecar.keeper.version.clone(),
        };
        Some(Found { path, sidecar, identity, shown })
    }
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
