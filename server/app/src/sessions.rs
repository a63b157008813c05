//! Working sessions of the agent: whose they are.

use crate::{App, AppError, Class};
use std::collections::{BTreeMap, HashMap};
use svc_agent::registry::Entry;
use svc_agent::session_list::CliSession;
use svc_domain::redact::redact_text;
use svc_ports::process::ProcessFacts;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, ProjectName};

impl App {
    /// Whether the lists of sessions may be out of date, because the registry of the agent could
    /// not be read.
    #[must_use]
    pub fn sessions_stale(&self) -> bool {
        self.agent().sessions_dir().is_none()
    }

    /// Brings the lists of working sessions up to date.
    pub(crate) async fn publish_sessions(&self) {
        let app = self.clone();
        let lists = tokio::task::spawn_blocking(move || app.session_lists()).await;
        if let Ok(lists) = lists {
            self.read_model().replace_tracked(lists.tracked);
            self.read_model().replace_external(lists.external);
            self.read_model().replace_adoptable(lists.adoptable);
            if self.extras().set_unmanaged(lists.unmanaged) {
                self.publish();
            }
        }
    }

    /// External and tracked sessions now. Blocks: reads the registry and the process table.
    #[must_use]
    pub fn session_lists(&self) -> SessionLists {
        let Some(dir) = self.agent().sessions_dir() else { return SessionLists::default() };
        let entries = svc_agent::registry::read(&dir);
        let mut lists = SessionLists::default();
        let owners = self.owners();
        let projects = self.projects();
        for entry in entries {
            // The kernel decides about liveness: a file can outlive its process.
            let Some(facts) = self.host().inspect(entry.pid) else { continue };
            if facts.identity.start_ticks != entry.start_ticks {
                continue;
            }
            if entry.is_background() {
                continue;
            }
            let owner = self.owner(&facts, &owners);
            let session = self.working_session(&entry, owner.clone());
            if let Some(owner) = owner {
                lists.tracked.entry(owner.to_string()).or_default().push(session);
                continue;
            }
            let place = projects.iter().find(|project| entry.cwd.starts_with(&project.path));
            if let Some(project) = place {
                lists.external.entry(project.name.to_string()).or_default().push(session);
            }
        }
        for project in projects.iter() {
            if !lists.external.contains_key(project.name.as_str()) {
                continue;
            }
            let Some(found) = self.look_for_unmanaged(project) else { continue };
            if self.is_adoptable(&found) {
                lists.adoptable.push(project.name.to_string());
            }
            lists.unmanaged.insert(project.name.clone(), found.pid.get());
        }
        lists.adoptable.sort();
        lists
    }

    /// The agent's own list of working sessions, for a command.
    ///
    /// # Errors
    /// The agent gave no list; the message says why.
    pub async fn agent_sessions(&self) -> Result<Vec<WorkingSession>, AppError> {
        let rows = self.store().bridges().await?;
        self.registry().replace(rows);
        let listed = self.agent().cli().sessions_now().await.map_err(|error| {
            AppError::new(ErrorCode::AgentFailed, Class::Upstream, error.to_string())
        })?;
        let app = self.clone();
        tokio::task::spawn_blocking(move || {
            let owners = app.owners();
            listed.list.iter().filter_map(|item| app.listed_session(item, &owners)).collect()
        })
        .await
        .map_err(AppError::internal)
    }

    fn listed_session(
        &self,
        item: &CliSession,
        owners: &HashMap<i32, InstanceId>,
    ) -> Option<WorkingSession> {
        let pid = item.pid?;
        let owner = self.host().inspect(pid).and_then(|facts| self.owner(&facts, owners));
        let attribution = match (&owner, item.kind.as_str()) {
            (Some(_), _) => "tracked",
            (None, "interactive" | "") => "external",
            (None, _) => "untracked",
        };
        Some(WorkingSession {
            pid: pid.get(),
            cwd: item.cwd.to_string_lossy().into_owned(),
            kind: item.kind.clone(),
            state: item.state.clone().unwrap_or_default(),
            name: item.name.as_deref().map(redact_text),
            waiting_for: item.waiting_for.as_deref().map(redact_text),
            started_at: item.started_at.as_millis(),
            session_ref: self.refs().and_then(|refs| refs.session(&item.session_id)),
            attribution: attribution.to_owned(),
            parent_instance: owner,
        })
    }

    /// Live managed bridges by pid.
    fn owners(&self) -> HashMap<i32, InstanceId> {
        self.registry()
            .bridges()
            .into_iter()
            .filter(svc_domain::bridge::Bridge::is_live)
            .filter_map(|bridge| Some((bridge.process?.pid.get(), bridge.id)))
            .collect()
    }

    /// The managed bridge that a process descends from.
    fn owner(&self, facts: &ProcessFacts, owners: &HashMap<i32, InstanceId>) -> Option<InstanceId> {
        let mut pid = facts.identity.pid;
        let mut parent = facts.parent;
        // Deeper trees do not exist; a cycle cannot be walked for ever.
        for _ in 0..32 {
            if let Some(owner) = owners.get(&pid.get()) {
                return Some(owner.clone());
            }
            pid = svc_domain::identity::Pid::new(i64::from(parent))?;
            parent = self.host().inspect(pid)?.parent;
        }
        None
    }

    fn working_session(&self, entry: &Entry, owner: Option<InstanceId>) -> WorkingSession {
        WorkingSession {
            pid: entry.pid.get(),
            cwd: entry.cwd.to_string_lossy().into_owned(),
            kind: entry.kind.clone(),
            state: entry.state().to_owned(),
            name: entry.name.as_deref().map(redact_text),
            waiting_for: entry.waiting_for.as_deref().map(redact_text),
            started_at: entry.started_at.as_millis(),
            session_ref: self.refs().and_then(|refs| refs.session(&entry.session_id)),
            attribution: if owner.is_some() { "tracked" } else { "external" }.to_owned(),
            parent_instance: owner,
        }
    }
}

/// Working sessions by owner and by project.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct SessionLists {
    /// By instance id.
    pub tracked: BTreeMap<String, Vec<WorkingSession>>,
    /// By project.
    pub external: BTreeMap<String, Vec<WorkingSession>>,
    /// Projects with a Server Mode bridge that was started by hand.
    pub adoptable: Vec<String>,
    /// Every live Server Mode bridge without a record, with its process id.
    pub unmanaged: HashMap<ProjectName, i32>,
}
