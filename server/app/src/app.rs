//! The service as its doors see it.

use crate::agent_config::AgentConfigEditor;
use crate::agent_sign_in::AgentSignIn;
use crate::auth::{Auth, Devices, Tokens};
use crate::bridges::Bridges;
use crate::bridges::keeper_list::KeeperList;
use crate::bridges::readiness::Readiness;
use crate::bridges::restore::Restore;
use crate::bridges::strays::Strays;
use crate::compose::UseCases;
use crate::environments::Environments;
use crate::hosted::{Approvals, HostedSessions};
use crate::jobs::Jobs;
use crate::launch_plans::LaunchPlans;
use crate::logs::Logs;
use crate::ops::deps::Deps;
use crate::ops::doctor::Examiner;
use crate::ops::legacy::LegacyImport;
use crate::ops::restart::Restart as ServiceRestart;
use crate::ops::{
    AccessReport, ConfigEditor, History, Metrics, Preferences, Reports, Status, Support,
};
use crate::outbound::{Notifications, Push, Webhooks};
use crate::projects::changes::ChangesReader;
use crate::projects::clones::Clones;
use crate::projects::trusting::ProjectService;
use crate::projects::worktrees::Worktrees;
use crate::read_model::ReadModel;
use crate::read_model::look::Instances;
use crate::read_model::project_row::ProjectRows;
use crate::sessions::Sessions;
use crate::stranded::StrandedSessions;
use crate::supervise::Supervisor;
use crate::terminal::Terminals;
use crate::transcripts::Transcripts;
use crate::{AppError, Parts};
use std::sync::Arc;
use svc_config::Config;
use tokio_util::sync::CancellationToken;

/// The service as its doors see it: a use-case for each thing that can be asked.
/// Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<UseCases>);

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("role", &self.0.role).finish_non_exhaustive()
    }
}

impl App {
    /// Puts the parts together. Nothing runs yet: see [`App::supervise`].
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(UseCases::new(parts)))
    }

    /// Starts the supervisor.
    /// First a complete pass over all rows, then the standing tasks.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn supervise(&self) -> Result<Supervisor, AppError> {
        self.0.supervision.start().await
    }

    /// Records the ends of processes that ended while nobody watched.
    /// For commands that change something while no service runs.
    ///
    /// # Errors
    /// The registry cannot be read or written.
    pub async fn record_ends(&self) -> Result<(), AppError> {
        self.0.supervision.reconciler.record_ends().await
    }

    /// What can be done to bridges.
    #[must_use]
    pub fn bridges(&self) -> &Bridges {
        &self.0.bridges
    }

    /// The records of bridges.
    #[must_use]
    pub fn instances(&self) -> &Arc<Instances> {
        &self.0.instances
    }

    /// Projects with everything around them.
    #[must_use]
    pub fn project_rows(&self) -> &ProjectRows {
        &self.0.project_rows
    }

    /// What the page shows, and its stream.
    #[must_use]
    pub fn read_model(&self) -> &Arc<ReadModel> {
        &self.0.read_model
    }

    /// Who may come in, and who is in.
    #[must_use]
    pub fn auth(&self) -> &Arc<Auth> {
        &self.0.auth
    }

    /// The named tokens.
    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    /// The browsers that are signed in.
    #[must_use]
    pub fn devices(&self) -> &Devices {
        &self.0.devices
    }

    /// Who can reach the service.
    #[must_use]
    pub fn access(&self) -> &AccessReport {
        &self.0.access
    }

    /// What the service says about itself.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.0.status
    }

    /// Whether a launch could happen.
    #[must_use]
    pub fn readiness(&self) -> &Arc<Readiness> {
        &self.0.readiness
    }

    /// The projects, and what a person allows in them.
    #[must_use]
    pub fn projects(&self) -> &Arc<ProjectService> {
        &self.0.projects
    }

    /// What changed in the checkouts of sessions and projects.
    #[must_use]
    pub fn changes(&self) -> &Arc<ChangesReader> {
        &self.0.changes
    }

    /// The git worktrees of projects.
    #[must_use]
    pub fn worktrees(&self) -> &Arc<Worktrees> {
        &self.0.worktrees
    }

    /// Makes projects: empty ones and clones.
    #[must_use]
    pub fn clones(&self) -> &Arc<Clones> {
        &self.0.clones
    }

    /// Background jobs.
    #[must_use]
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.0.jobs
    }

    /// Working sessions of the agent.
    #[must_use]
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.0.sessions
    }

    /// The logs of bridges.
    #[must_use]
    pub fn logs(&self) -> &Arc<Logs> {
        &self.0.logs
    }

    /// Direct Sessions.
    #[must_use]
    pub fn hosted(&self) -> &Arc<HostedSessions> {
        &self.0.hosted
    }

    /// What agents ask, and the answers.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.0.approvals
    }

    /// The conversations of projects, and what they used.
    #[must_use]
    pub fn transcripts(&self) -> &Arc<Transcripts> {
        &self.0.transcripts
    }

    /// The terminals of Interactive Sessions.
    #[must_use]
    pub fn terminals(&self) -> &Terminals {
        &self.0.terminals
    }

    /// Restoring what a reboot of the machine ended.
    #[must_use]
    pub fn restore(&self) -> &Arc<Restore> {
        &self.0.restore
    }

    /// The keepers of Interactive Sessions that live.
    #[must_use]
    pub fn keepers(&self) -> &Arc<KeeperList> {
        &self.0.keeper_list
    }

    /// Processes that no live bridge answers for.
    #[must_use]
    pub fn strays(&self) -> &Arc<Strays> {
        &self.0.strays
    }

    /// Launches that wait for the reset of a plan limit.
    #[must_use]
    pub fn launch_plans(&self) -> &Arc<LaunchPlans> {
        &self.0.launch_plans
    }

    /// Conversations whose bridge died.
    #[must_use]
    pub fn stranded(&self) -> &Arc<StrandedSessions> {
        &self.0.stranded
    }

    /// Examines the installation.
    #[must_use]
    pub fn doctor(&self) -> &Arc<Examiner> {
        &self.0.doctor
    }

    /// The targets that events are posted to.
    #[must_use]
    pub fn webhooks(&self) -> &Arc<Webhooks> {
        &self.0.webhooks
    }

    /// Notifications of the service.
    #[must_use]
    pub fn notifications(&self) -> &Arc<Notifications> {
        &self.0.notifications
    }

    /// Notifications of devices while the page is closed.
    #[must_use]
    pub fn push(&self) -> &Arc<Push> {
        &self.0.push
    }

    /// What bridges use of processor, memory and disk.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Why sessions stopped.
    #[must_use]
    pub fn reports(&self) -> &Arc<Reports> {
        &self.0.reports
    }

    /// What helps somebody else to help.
    #[must_use]
    pub fn support(&self) -> &Support {
        &self.0.support
    }

    /// What happened before.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.0.history
    }

    /// What somebody chose for the page.
    #[must_use]
    pub fn preferences(&self) -> &Preferences {
        &self.0.preferences
    }

    /// Takes over the records of an earlier service.
    #[must_use]
    pub fn legacy(&self) -> &LegacyImport {
        &self.0.legacy
    }

    /// Restarts the service in place.
    #[must_use]
    pub fn service_restart(&self) -> &Arc<ServiceRestart> {
        &self.0.service_restart
    }

    /// The configuration file, for an editor.
    #[must_use]
    pub fn config_editor(&self) -> &Arc<ConfigEditor> {
        &self.0.config_editor
    }

    /// Optional parts.
    #[must_use]
    pub fn deps(&self) -> &Deps {
        &self.0.deps
    }

    /// The agent's own configuration, in its scopes.
    #[must_use]
    pub fn agent_config(&self) -> &Arc<AgentConfigEditor> {
        &self.0.agent_config
    }

    /// Remote environments that are left over.
    #[must_use]
    pub fn environments(&self) -> &Arc<Environments> {
        &self.0.environments
    }

    /// Signs the agent in.
    #[must_use]
    pub fn agent_sign_in(&self) -> &Arc<AgentSignIn> {
        &self.0.agent_sign_in
    }

    /// The configuration.
    #[must_use]
    pub fn settings(&self) -> &Config {
        &self.0.config
    }

    /// Cancelled when the service ends.
    #[must_use]
    pub fn shutdown(&self) -> &CancellationToken {
        self.0.tasks.shutdown()
    }

    /// Ends the supervisor and waits for use-cases under way, at most ten seconds.
    pub async fn close(&self) {
        self.0.tasks.close().await;
        self.0.registry.store.close().await;
    }
}

#[cfg(test)]
impl App {
    pub(crate) fn registry(&self) -> &Arc<crate::registry::Registry> {
        &self.0.registry
    }

    pub(crate) fn copies(&self) -> &crate::registry::copies::Copies {
        &self.0.registry.copies
    }

    pub(crate) fn supervision(&self) -> &Arc<crate::supervise::Supervision> {
        &self.0.supervision
    }
}
