//! The record that leaves the service, made of a row and what surrounds it.

use crate::App;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use svc_domain::admission::bypass_obstacle;
use svc_domain::adoption::Unrecorded;
use svc_domain::bridge::{Bridge, Outcome};
use svc_ports::process::ProcessFacts;
use svc_projects::{Project, Projects};
use svc_shared::api::instances::{ConnectInfo, Instance, Quarantine, Restart};
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{
    BridgeStatus, Channel, ConnectKind, Origin, PermissionMode, Phase, QuarantineCode,
    QuarantineKind, RestartPolicy, RestartState, ResumeBlocked, ResumeMode, SandboxMode, SpawnMode,
};
use svc_shared::{Timestamp, Word};
use svc_store::{Content, Stored};

/// Facts about rows that come from outside the registry and are looked up once per phase: what a
/// process runs is only known after it has become the agent.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    rows: Mutex<HashMap<InstanceId, Extra>>,
    /// Live Server Mode bridges without a record, as they were last seen.
    unmanaged: Mutex<HashMap<ProjectName, Unrecorded>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Extra {
    generation: u32,
    phase: Option<Phase>,
    has_log: bool,
    agent_version: Option<String>,
    reuse_expires_at: Option<Timestamp>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Extras {
    fn of(&self, app: &App, bridge: &Bridge) -> Extra {
        let mut all = lock(&self.rows);
        match all.get(&bridge.id) {
            Some(extra)
                if extra.generation == bridge.generation && extra.phase == Some(bridge.phase()) =>
            {
                extra.clone()
            }
            Some(_) | None => {
                let extra = look_up(app, bridge);
                all.insert(bridge.id.clone(), extra.clone());
                extra
            }
        }
    }

    /// Looks everything up anew at the next view: logs were pruned, pointers changed,
    /// the version of the agent became known.
    pub fn clear(&self) {
        lock(&self.rows).clear();
    }

    /// Drops what is known of a row that is gone.
    pub fn forget(&self, id: &InstanceId) {
        lock(&self.rows).remove(id);
    }

    #[cfg(test)]
    pub fn knows_no_row(&self) -> bool {
        lock(&self.rows).is_empty()
    }

    /// Takes over the live bridges without a record; the projects where that differs.
    pub fn set_unmanaged(&self, found: HashMap<ProjectName, Unrecorded>) -> Vec<ProjectName> {
        let mut known = lock(&self.unmanaged);
        let both = known.keys().chain(found.keys()).collect::<HashSet<_>>();
        let differing =
            both.into_iter().filter(|project| known.get(*project) != found.get(*project));
        let differing = differing.cloned().collect();
        *known = found;
        differing
    }

    /// The live bridge without a record in each project that has one, as last seen.
    pub fn unmanaged(&self) -> HashMap<ProjectName, Unrecorded> {
        lock(&self.unmanaged).clone()
    }
}

fn look_up(app: &App, bridge: &Bridge) -> Extra {
    let stem = bridge.launch.as_ref().map(|launch| launch.log_stem.as_str());
    let ended_standard = !bridge.is_live() && bridge.resume_mode == ResumeMode::Standard;
    Extra {
        generation: bridge.generation,
        phase: Some(bridge.phase()),
        has_log: stem.and_then(|stem| app.log_set(stem)).is_some_and(|set| set.has_log()),
        agent_version: app.process_of(bridge).and_then(|facts| app.agent().running_version(&facts)),
        reuse_expires_at: ended_standard
            .then(|| app.agent().pointer(&bridge.cwd))
            .flatten()
            .map(|pointer| pointer.reuse_expires_at()),
    }
}

/// What decides whether a row can be resumed.
pub(crate) struct Surroundings<'a> {
    app: &'a App,
    projects: &'a Projects,
    occupied: HashSet<ProjectName>,
    unmanaged: HashMap<ProjectName, Unrecorded>,
    /// Whether the agent's settings bypass permissions, read once for all rows of a project.
    inherits_bypass: RefCell<HashMap<ProjectName, bool>>,
}

impl<'a> Surroundings<'a> {
    /// `occupied` are the projects with a live Server Mode bridge.
    pub fn new(app: &'a App, projects: &'a Projects, occupied: HashSet<ProjectName>) -> Self {
        let unmanaged = app.extras().unmanaged();
        Self { app, projects, occupied, unmanaged, inherits_bypass: RefCell::default() }
    }

    /// Why a Resume would be declined or refused now.
    pub fn blocked(&self, bridge: &Bridge) -> Option<ResumeBlocked> {
        if bridge.quarantine.is_some() {
            return Some(ResumeBlocked::Quarantined);
        }
        if bridge.is_live() {
            return Some(ResumeBlocked::StillLive);
        }
        match bridge.resume_mode {
            ResumeMode::Standard => {}
            ResumeMode::Pty => return Some(ResumeBlocked::HostedUnavailable),
        }
        // In the order of a resume.
        let Some(project) = self.projects.get(&bridge.project) else {
            return Some(ResumeBlocked::UnknownProject);
        };
        if self.is_bypass_forbidden(bridge.permission_mode, project) {
            return Some(ResumeBlocked::BypassForbidden);
        }
        if self.occupied.contains(&bridge.project) || self.unmanaged.contains_key(&bridge.project) {
            return Some(ResumeBlocked::StandardAlreadyLive);
        }
        (!self.app.is_trusted(project)).then_some(ResumeBlocked::NotTrusted)
    }

    fn is_bypass_forbidden(&self, mode: PermissionMode, project: &Project) -> bool {
        let is_allowed = self.app.settings().project(&project.name).allow_bypass_permissions;
        let inherits = || {
            let mut known = self.inherits_bypass.borrow_mut();
            *known
                .entry(project.name.clone())
                .or_insert_with(|| self.app.agent().may_bypass(&project.path))
        };
        let inherits = !is_allowed && mode == PermissionMode::Inherit && inherits();
        bypass_obstacle(mode, is_allowed, inherits).is_some()
    }

    /// The record of a row.
    pub fn instance(&self, stored: &Stored) -> Option<Instance> {
        match &stored.content {
            Content::Bridge(bridge) => Some(self.of_bridge(bridge)),
            Content::Corrupt { id, project, .. } => corrupt(id, project),
        }
    }

    fn of_bridge(&self, bridge: &Bridge) -> Instance {
        let extra = self.app.extras().of(self.app, bridge);
        let blocked = self.blocked(bridge);
        let ended = bridge.ended();
        let live = bridge.is_live();
        let shows_detail =
            ended.is_some_and(|ended| matches!(ended.outcome, Outcome::Crashed | Outcome::Failed));
        let refs = self.app.refs();
        let environment = bridge.anchor.environment_id.as_deref();
        Instance {
            instance_id: bridge.id.clone(),
            project: bridge.project.to_string(),
            label: bridge.label().to_owned(),
            channel: Channel::RemoteControl.into(),
            status: bridge.status().into(),
            resume_mode: bridge.resume_mode.into(),
            spawn_mode: bridge.spawn_mode.into(),
            permission_mode: bridge.permission_mode.into(),
            sandbox_mode: SandboxMode::Default.into(),
            session_ref: self.app.session_ref(bridge),
            environment_ref: environment.and_then(|raw| refs?.environment(raw)),
            connect: connect_info(bridge),
            process_id: None,
            worktree_name: None,
            bridge_pid: bridge.process.as_ref().filter(|_| live).map(|p| p.pid.get()),
            keeper_pid: None,
            agent_pid: None,
            status_since: bridge.status_since,
            started_at: bridge.started_at,
            ended_at: ended.map(|ended| ended.at),
            generation: bridge.generation,
            exit_reason: ended.and_then(|ended| ended.reason).map(Word::from),
            exit_signal: ended.and_then(|ended| ended.exit_signal),
            phase: bridge.phase().into(),
            origin: bridge.origin.into(),
            quarantined: bridge.quarantine.map(quarantine),
            restart: no_restart(),
            intentional_stop: bridge.intentional_stop(),
            adopted: bridge.origin != Origin::Spawned,
            is_orphan: false,
            agent_version: extra.agent_version,
            error_detail: ended.filter(|_| shows_detail).and_then(|ended| ended.detail.clone()),
            exit_code: ended.and_then(|ended| ended.exit_code),
            notice: self.notice(bridge),
            resumable: !live && blocked.is_none(),
            resume_blocked: blocked.map(Word::from),
            reuse_expires_at: extra.reuse_expires_at,
            has_log: extra.has_log,
            pending_permissions: Vec::new(),
            last_event_seq: 0,
        }
    }

    fn notice(&self, bridge: &Bridge) -> Option<String> {
        if bridge.is_live() && self.projects.get(&bridge.project).is_none() {
            return Some("the project directory is gone; the bridge still runs".to_owned());
        }
        // Said before the click: a Resume would be declined because of it.
        let unmanaged = self.unmanaged.get(&bridge.project).filter(|_| !bridge.is_live());
        unmanaged.and_then(Unrecorded::pid).map_or_else(
            || bridge.notice.clone(),
            |pid| {
                Some(format!(
                    "a bridge that was not started here already runs in this project (pid {pid})"
                ))
            },
        )
    }
}

fn connect_info(bridge: &Bridge) -> ConnectInfo {
    let kind = match (&bridge.anchor.session_id, &bridge.anchor.environment_id) {
        _ if bridge.status() != BridgeStatus::Running => None,
        (Some(_), _) => Some(ConnectKind::Session),
        (None, Some(_)) => Some(ConnectKind::Environment),
        (None, None) => None,
    };
    ConnectInfo { available: kind.is_some(), kind: kind.map(Word::from) }
}

fn quarantine(code: QuarantineCode) -> Quarantine {
    Quarantine { kind: QuarantineKind::Identity.into(), code: code.to_string() }
}

/// No bridge is ever restarted by itself, whatever the configuration asks for: a row shows only
/// what is carried out.
fn no_restart() -> Restart {
    Restart {
        policy: RestartPolicy::Never.into(),
        state: RestartState::Idle.into(),
        attempt: 0,
        next_at: None,
        crashes_in_window: 0,
    }
}

/// A row that cannot be understood is shown as held; nothing of it is guessed.
fn corrupt(id: &str, project: &str) -> Option<Instance> {
    let epoch = Timestamp::from_millis(0);
    Some(Instance {
        instance_id: id.parse().ok()?,
        project: project.to_owned(),
        label: project.to_owned(),
        channel: Channel::RemoteControl.into(),
        status: BridgeStatus::Error.into(),
        resume_mode: ResumeMode::Standard.into(),
        spawn_mode: SpawnMode::SameDir.into(),
        permission_mode: PermissionMode::Default.into(),
        sandbox_mode: SandboxMode::Default.into(),
        session_ref: None,
        environment_ref: None,
        connect: ConnectInfo { available: false, kind: None },
        process_id: None,
        worktree_name: None,
        bridge_pid: None,
        keeper_pid: None,
        agent_pid: None,
        status_since: epoch,
        started_at: None,
        ended_at: None,
        generation: 1,
        exit_reason: None,
        exit_signal: None,
        phase: Phase::Exited.into(),
        origin: Origin::Spawned.into(),
        quarantined: Some(quarantine(QuarantineCode::RowCorrupt)),
        restart: no_restart(),
        intentional_stop: false,
        adopted: false,
        is_orphan: false,
        agent_version: None,
        error_detail: None,
        exit_code: None,
        notice: Some("the record of this bridge cannot be read; nothing is done to it".to_owned()),
        resumable: false,
        resume_blocked: Some(ResumeBlocked::Quarantined.into()),
        reuse_expires_at: None,
        has_log: false,
        pending_permissions: Vec::new(),
        last_event_seq: 0,
    })
}

impl App {
    /// The process of a live bridge, if it is there.
    pub(crate) fn process_of(&self, bridge: &Bridge) -> Option<ProcessFacts> {
        let identity = bridge.process.as_ref().filter(|_| bridge.is_live())?;
        self.host().inspect(identity.pid).filter(|facts| facts.identity == *identity)
    }

    /// Records of all rows, in the order of registration.
    pub(crate) fn instances_of<R: Borrow<Stored>>(&self, rows: &[R]) -> Vec<Instance> {
        let projects = self.projects();
        let live =
            rows.iter().filter_map(|row| row.borrow().bridge()).filter(|b| b.occupies_project());
        let occupied = live.map(|bridge| bridge.project.clone()).collect();
        let surroundings = Surroundings::new(self, &projects, occupied);
        rows.iter().filter_map(|stored| surroundings.instance(stored.borrow())).collect()
    }

    /// Record of one row of the registry, with its surroundings as this process last saw them.
    pub(crate) fn shown(&self, stored: &Stored) -> Option<Instance> {
        let projects = self.projects();
        Surroundings::new(self, &projects, self.registry().occupied()).instance(stored)
    }

    /// Record of one bridge, with its surroundings as this process last saw them.
    pub(crate) fn instance_of(&self, bridge: &Bridge) -> Instance {
        let projects = self.projects();
        Surroundings::new(self, &projects, self.registry().occupied()).of_bridge(bridge)
    }
}
