//! The use-cases, as their callers find them.

use crate::Role;
use crate::agent_config::AgentConfigEditor;
use crate::agent_sign_in::AgentSignIn;
use crate::auth::{Auth, Devices, Tokens};
use crate::bridges::Bridges;
use crate::bridges::keeper_list::KeeperList;
use crate::bridges::readiness::Readiness;
use crate::bridges::restore::Restore;
use crate::bridges::strays::Strays;
use crate::environments::Environments;
use crate::hosted::{Approvals, HostedSessions};
use crate::jobs::Jobs;
use crate::launch_plans::LaunchPlans;
use crate::logs::Logs;
use crate::ops::deps::Deps;
use crate::ops::doctor::Examiner;
use crate::ops::legacy::LegacyImport;
use crate::ops::restart::Restart as ServiceRestart;
use crate::ops::{AccessReport, ConfigEditor};
use crate::ops::{History, Metrics, Preferences, Reports, Status, Support};
use crate::outbound::{Notifications, Push, Webhooks};
use crate::projects::changes::ChangesReader;
use crate::projects::clones::Clones;
use crate::projects::trusting::ProjectService;
use crate::projects::worktrees::Worktrees;
use crate::read_model::ReadModel;
use crate::read_model::look::Instances;
use crate::read_model::project_row::ProjectRows;
use crate::registry::Registry;
use crate::sessions::Sessions;
use crate::stranded::StrandedSessions;
use crate::supervise::Supervision;
use crate::tasks::Tasks;
use crate::terminal::Terminals;
use crate::transcripts::Transcripts;
use std::sync::Arc;
use svc_config::Config;

/// One of each use-case, sharing their parts.
pub(crate) struct UseCases {
    pub config: Arc<Config>,
    pub role: Role,
    pub registry: Arc<Registry>,
    pub tasks: Tasks,
    pub auth: Arc<Auth>,
    pub tokens: Arc<Tokens>,
    pub devices: Arc<Devices>,
    pub access: AccessReport,
    pub config_editor: Arc<ConfigEditor>,
    pub deps: Deps,
    pub agent_config: Arc<AgentConfigEditor>,
    pub agent_sign_in: Arc<AgentSignIn>,
    pub environments: Arc<Environments>,
    pub service_restart: Arc<ServiceRestart>,
    pub read_model: Arc<ReadModel>,
    pub instances: Arc<Instances>,
    pub bridges: Bridges,
    pub readiness: Arc<Readiness>,
    pub status: Arc<Status>,
    pub projects: Arc<ProjectService>,
    pub project_rows: ProjectRows,
    pub changes: Arc<ChangesReader>,
    pub worktrees: Arc<Worktrees>,
    pub clones: Arc<Clones>,
    pub jobs: Arc<Jobs>,
    pub sessions: Arc<Sessions>,
    pub logs: Arc<Logs>,
    pub terminals: Terminals,
    pub transcripts: Arc<Transcripts>,
    pub restore: Arc<Restore>,
    pub strays: Arc<Strays>,
    pub stranded: Arc<StrandedSessions>,
    pub keeper_list: Arc<KeeperList>,
    pub doctor: Arc<Examiner>,
    pub reports: Arc<Reports>,
    pub support: Support,
    pub history: Arc<History>,
    pub preferences: Preferences,
    pub metrics: Arc<Metrics>,
    pub launch_plans: Arc<LaunchPlans>,
    pub legacy: LegacyImport,
    pub hosted: Arc<HostedSessions>,
    pub approvals: Approvals,
    pub webhooks: Arc<Webhooks>,
    pub notifications: Arc<Notifications>,
    pub push: Arc<Push>,
    pub supervision: Arc<Supervision>,
}
