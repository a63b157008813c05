//! What a record says beside its row.
//! Read from files and the process table, handed on as values.

use crate::agent::Agent;
use crate::bridges::circumstances::has_terminal;
use crate::log_files;
use crate::read_model::links::{Links, Shown};
use crate::read_model::signs::{Session, Signs};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_agent::home::AgentHome;
use svc_config::Config;
use svc_domain::activity::Evidence;
use svc_domain::admission::Trust;
use svc_domain::adoption::Unrecorded;
use svc_domain::agent_log::RemoteId;
use svc_domain::agent_log::report::{LoggedSession, Work};
use svc_domain::bridge::Bridge;
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_ports::ProcessHost;
use svc_ports::process::ProcessFacts;
use svc_projects::Projects;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{
    ActivityState, Confidence, EvidenceSource, PermissionMode, Phase, ResumeMode,
};

/// What is read for one row, once per phase.
/// Which program a process runs is only known after it has become the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RowFacts {
    pub has_log: bool,
    pub agent_version: Option<String>,
    pub reuse_expires_at: Option<Timestamp>,
}

/// Everything beside the rows that decides what their records say.
#[derive(Debug)]
pub(crate) struct Facts {
    pub rows: HashMap<InstanceId, RowFacts>,
    pub projects: Arc<Projects>,
    /// Projects that the agent trusts; asked only where a row could be resumed.
    pub trusted: HashSet<ProjectName>,
    /// Projects where the agent's settings bypass permissions.
    /// Asked only where an ended row inherits its permission mode.
    pub inherits_bypass: HashSet<ProjectName>,
    /// Projects with a live Server Mode bridge.
    pub occupied: HashSet<ProjectName>,
    /// Live Server Mode bridges without a row, as they were last seen.
    pub unmanaged: HashMap<ProjectName, Unrecorded>,
    /// Links of live rows, as far as they are known.
    pub links: HashMap<InstanceId, Shown>,
    /// What is known of the sessions of live rows.
    pub sessions: HashMap<InstanceId, Vec<Session>>,
    /// Where the agent keeps its files.
    pub home: Option<AgentHome>,
    /// A terminal can be made; asked only where a session could be resumed.
    pub has_terminal: bool,
}

/// Reads the facts of rows, and remembers what cannot have changed.
pub(crate) struct FactReader {
    config: Arc<Config>,
    agent: Arc<Agent>,
    host: Arc<dyn ProcessHost>,
    pub links: Arc<Links>,
    signs: Arc<Signs>,
    rows: Mutex<HashMap<InstanceId, (u32, Phase, RowFacts)>>,
    unmanaged: Mutex<HashMap<ProjectName, Unrecorded>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FactReader {
    pub fn new(
        config: &Arc<Config>,
        agent: &Arc<Agent>,
        host: &Arc<dyn ProcessHost>,
        links: &Arc<Links>,
        signs: &Arc<Signs>,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            agent: Arc::clone(agent),
            host: Arc::clone(host),
            links: Arc::clone(links),
            signs: Arc::clone(signs),
            rows: Mutex::default(),
            unmanaged: Mutex::default(),
        }
    }

    /// The facts of these rows.
    /// `occupied` are the projects with a live Server Mode bridge. Blocks: reads files and the
    /// process table.
    pub fn read<'a>(
        &self,
        bridges: impl Iterator<Item = &'a Bridge>,
        projects: Arc<Projects>,
        occupied: HashSet<ProjectName>,
    ) -> Facts {
        let mut facts = Facts {
            rows: HashMap::new(),
            trusted: HashSet::new(),
            inherits_bypass: HashSet::new(),
            unmanaged: self.unmanaged(),
            links: HashMap::new(),
            sessions: HashMap::new(),
            home: self.agent.home().ok(),
            has_terminal: false,
            projects,
            occupied,
        };
        let (mut asked, mut asked_to_inherit) = (HashSet::new(), HashSet::new());
        for bridge in bridges {
            facts.rows.insert(bridge.id.clone(), self.of_row(bridge));
            if bridge.is_live() {
                let shown = self.links.of(bridge);
                let sessions = self.sessions_of(bridge, shown.as_ref(), facts.home.as_ref());
                facts.sessions.insert(bridge.id.clone(), sessions);
                facts.links.extend(shown.map(|shown| (bridge.id.clone(), shown)));
            }
            let Some(project) = facts.projects.get(&bridge.project).filter(|_| !bridge.is_live())
            else {
                continue;
            };
            if bridge.permission_mode == PermissionMode::Inherit
                && asked_to_inherit.insert(&bridge.project)
                && self.agent.may_bypass(&project.path)
            {
                facts.inherits_bypass.insert(bridge.project.clone());
            }
            if bridge.is_interactive() && !facts.has_terminal {
                facts.has_terminal = has_terminal();
            }
            // A session runs beside a Server Mode bridge.
            let may_resume = bridge.is_interactive() || !facts.occupied.contains(&bridge.project);
            if may_resume
                && asked.insert(&bridge.project)
                && self.agent.trust(&project.path, project.git_root.as_deref()) == Trust::Granted
            {
                facts.trusted.insert(bridge.project.clone());
            }
        }
        facts
    }

    fn of_row(&self, bridge: &Bridge) -> RowFacts {
        let (generation, phase) = (bridge.generation, bridge.phase());
        if let Some((of_generation, of_phase, facts)) = lock(&self.rows).get(&bridge.id)
            && (*of_generation, *of_phase) == (generation, phase)
        {
            return facts.clone();
        }
        let ended_standard = !bridge.is_live() && bridge.resume_mode == ResumeMode::Standard;
        let version = |facts| self.agent.running_version(&facts);
        let facts = RowFacts {
            has_log: log_files::set_of(&self.config, bridge).is_some_and(|set| set.has_log()),
            agent_version: self.process_of(bridge).and_then(version),
            reuse_expires_at: ended_standard
                .then(|| self.agent.pointer(&bridge.cwd))
                .flatten()
                .map(|pointer| pointer.reuse_expires_at()),
        };
        lock(&self.rows).insert(bridge.id.clone(), (generation, phase, facts.clone()));
        facts
    }

    /// What is known of the sessions of a live row. Blocks in a command.
    fn sessions_of(
        &self,
        bridge: &Bridge,
        shown: Option<&Shown>,
        home: Option<&AgentHome>,
    ) -> Vec<Session> {
        let logged = shown.map(|shown| shown.sessions.as_slice()).unwrap_or_default();
        let is_silent =
            shown.is_some_and(|shown| shown.link.source == Some(EvidenceSource::Silence));
        let of_process = |process: &ProcessIdentity| {
            self.signs.of_process(home, process.pid, process.start_ticks)
        };
        if bridge.is_interactive() {
            let sign = bridge.process.as_ref().and_then(of_process);
            let conversation = bridge.conversation.as_ref().map(|raw| RemoteId::new(raw.expose()));
            let said = sign.as_ref().and_then(|sign| sign.evidence.clone());
            let heard = logged.iter().map(|one| of_log(one, is_silent));
            return vec![Session {
                conversation: conversation.or_else(|| Some(sign.as_ref()?.conversation.clone())),
                evidence: said.into_iter().chain(heard).collect(),
                cwd: Some(sign.map_or_else(|| bridge.cwd.clone(), |sign| sign.cwd)),
            }];
        }
        let mut others = self.signs.of_bridge(&bridge.id);
        // Its own entry is about no session.
        others.retain(|pid, _| bridge.process.as_ref().is_none_or(|own| own.pid != *pid));
        let mut sessions: Vec<Session> = Vec::new();
        for one in logged {
            let pid = one.pid.and_then(|pid| Pid::new(i64::from(pid)));
            let sign = pid.and_then(|pid| {
                // A command knows no descent: the process itself tells when it began.
                others.remove(&pid).or_else(|| of_process(&self.host.inspect(pid)?.identity))
            });
            let said = sign.as_ref().and_then(|sign| sign.evidence.clone());
            let heard = of_log(one, is_silent);
            let named = one.conversation.clone();
            sessions.push(Session {
                conversation: named.or_else(|| Some(sign.as_ref()?.conversation.clone())),
                evidence: said.into_iter().chain([heard]).collect(),
                cwd: Some(sign.map_or_else(|| bridge.cwd.clone(), |sign| sign.cwd)),
            });
        }
        sessions.extend(others.into_values().map(|sign| Session {
            conversation: Some(sign.conversation),
            evidence: sign.evidence.into_iter().collect(),
            cwd: Some(sign.cwd),
        }));
        sessions
    }

    /// The process of a live bridge, if it is there. Blocks.
    pub fn process_of(&self, bridge: &Bridge) -> Option<ProcessFacts> {
        let identity = bridge.process.as_ref().filter(|_| bridge.is_live())?;
        self.host.inspect(identity.pid).filter(|facts| facts.identity == *identity)
    }

    /// Reads everything anew the next time.
    /// Logs were pruned, pointers changed, the version of the agent became known.
    pub fn clear(&self) {
        lock(&self.rows).clear();
    }

    /// Drops what is remembered of a row that is gone.
    pub fn forget(&self, id: &InstanceId) {
        lock(&self.rows).remove(id);
    }

    #[cfg(test)]
    pub fn knows_no_row(&self) -> bool {
        lock(&self.rows).is_empty()
    }

    /// The live bridge without a row in each project that has one, as last seen.
    pub fn unmanaged(&self) -> HashMap<ProjectName, Unrecorded> {
        lock(&self.unmanaged).clone()
    }

    /// Takes over the live bridges without a row; the projects where that differs.
    pub fn set_unmanaged(&self, found: HashMap<ProjectName, Unrecorded>) -> Vec<ProjectName> {
        let mut known = lock(&self.unmanaged);
        let both = known.keys().chain(found.keys()).collect::<HashSet<_>>();
        let differing =
            both.into_iter().filter(|project| known.get(*project) != found.get(*project));
        let differing = differing.cloned().collect();
        *known = found;
        differing
    }
}

/// What a line of the log says about a session.
fn of_log(session: &LoggedSession, is_silent: bool) -> Evidence {
    let Work { state, since, tool } = session.work.clone();
    // A line names a permission; work and rest follow from what the session writes.
    let confidence = match state {
        ActivityState::Blocked => Confidence::Certain,
        _ => Confidence::Likely,
    };
    let source = EvidenceSource::DebugFile;
    Evidence { state, since, tool, source, confidence, is_stale: is_silent }
}
