//! The record that leaves the service, made of a row and the facts around it.
//! Reads nothing and changes nothing.

use crate::asked::rows::AskedRows;
use crate::auth::refs::SessionRefs;
use crate::bridges::restart_rules::rules;
use crate::read_model::facts::Facts;
use crate::read_model::links::link_record;
use crate::read_model::signs::{Session, Signs, Told};
use std::sync::Arc;
use svc_config::Config;
use svc_domain::activity::{Evidence, of_request, together};
use svc_domain::admission::bypass_obstacle;
use svc_domain::adoption::Unrecorded;
use svc_domain::bridge::{Bridge, Outcome};
use svc_domain::plan_limit::{NOT_BY_BRIDGE, NOT_BY_TERMINAL};
use svc_domain::restart::{Restarts, policy};
use svc_shared::Word;
use svc_shared::api::instances::{ConnectInfo, Instance, PendingPermission, Quarantine, Restart};
use svc_shared::status::{
    ActivityState, BridgeStatus, ConnectKind, EvidenceSource, OnLimit, Origin, QuarantineCode,
    QuarantineKind, RestartState, ResumeBlocked,
};
use svc_store::{Content, Stored};

/// How rows are shown.
pub(crate) struct View {
    pub config: Arc<Config>,
    pub refs: Arc<SessionRefs>,
    pub signs: Arc<Signs>,
    pub asked: Arc<AskedRows>,
}

impl View {
    /// Shares these parts.
    pub fn new(
        config: &Arc<Config>,
        refs: &Arc<SessionRefs>,
        signs: &Arc<Signs>,
        asked: &Arc<AskedRows>,
    ) -> Self {
        let (config, refs) = (Arc::clone(config), Arc::clone(refs));
        Self { config, refs, signs: Arc::clone(signs), asked: Arc::clone(asked) }
    }

    /// Why a Resume would be declined or refused now.
    fn blocked(&self, bridge: &Bridge, facts: &Facts) -> Option<ResumeBlocked> {
        if bridge.quarantine.is_some() {
            return Some(ResumeBlocked::Quarantined);
        }
        if bridge.is_live() {
            return Some(ResumeBlocked::StillLive);
        }
        // In the order of a resume.
        let Some(project) = facts.projects.get(&bridge.project) else {
            return Some(ResumeBlocked::UnknownProject);
        };
        if bridge.worktree.is_some() && !project.is_git_repo() {
            return Some(ResumeBlocked::NotGit);
        }
        let is_allowed = self.config.project(&project.name).allow_bypass_permissions;
        let inherits = facts.inherits_bypass.contains(&project.name);
        if bypass_obstacle(bridge.permission_mode, is_allowed, inherits).is_some() {
            return Some(ResumeBlocked::BypassForbidden);
        }
        let is_occupied = facts.occupied.contains(&bridge.project)
            || facts.unmanaged.contains_key(&bridge.project);
        // A session runs beside whatever is there.
        if is_occupied && !bridge.is_interactive() {
            return Some(ResumeBlocked::StandardAlreadyLive);
        }
        if !facts.trusted.contains(&bridge.project) {
            return Some(ResumeBlocked::NotTrusted);
        }
        (bridge.is_interactive() && !facts.has_terminal).then_some(ResumeBlocked::PtyUnavailable)
    }

    /// The record of a row.
    pub fn instance(&self, stored: &Stored, facts: &Facts) -> Option<Instance> {
        match &stored.content {
            Content::Bridge(bridge) => Some(self.of_bridge(bridge, stored.stranded, facts)),
            Content::Corrupt { id, project, .. } => corrupt(id, project),
        }
    }

    pub fn of_bridge(&self, bridge: &Bridge, stranded: u32, facts: &Facts) -> Instance {
        let mut record = self.without_activity(bridge, stranded, facts);
        let asked = record.pending_permissions.iter().map(of_hook).collect();
        let sessions = facts.sessions.get(&bridge.id).cloned().unwrap_or_default();
        let told = sessions_of(bridge, sessions, asked).into_iter();
        let told: Vec<Told> =
            told.map(|one| self.signs.told(&self.refs, facts.home.as_ref(), &one)).collect();
        let does: Vec<Evidence> = told.iter().filter_map(|one| one.does.clone()).collect();
        record.activity = together(&does);
        let limits = told.into_iter().filter_map(|one| one.limit);
        // Of several conversations the one that waits longest.
        record.limit = limits.max_by_key(|limit| (limit.resets_at, limit.since));
        let hint = match bridge.is_interactive() {
            false => Some(NOT_BY_BRIDGE),
            true if !self.config.claude.terminal_input => Some(NOT_BY_TERMINAL),
            true => None,
        };
        if let Some(limit) = record.limit.as_mut() {
            limit.hint = hint.map(str::to_owned);
        }
        record
    }

    fn without_activity(&self, bridge: &Bridge, stranded: u32, facts: &Facts) -> Instance {
        let read = facts.rows.get(&bridge.id).cloned().unwrap_or_default();
        let blocked = self.blocked(bridge, facts);
        let ended = bridge.ended();
        let live = bridge.is_live();
        let shows_detail =
            ended.is_some_and(|ended| matches!(ended.outcome, Outcome::Crashed | Outcome::Failed));
        let shown = facts.links.get(&bridge.id);
        let environment = bridge.anchor.environment_id.as_deref();
        Instance {
            label: bridge.label().to_owned(),
            status: bridge.status().into(),
            resume_mode: bridge.resume_mode.into(),
            spawn_mode: bridge.spawn_mode.into(),
            permission_mode: bridge.permission_mode.into(),
            session_ref: self.refs.of(bridge),
            environment_ref: environment.and_then(|raw| self.refs.environment(raw)),
            connect: connect_info(bridge),
            worktree_name: bridge.worktree.as_ref().map(ToString::to_string),
            bridge_pid: bridge.process.as_ref().filter(|_| live).map(|p| p.pid.get()),
            keeper_pid: bridge.keeper.as_ref().filter(|_| live).map(|p| p.pid.get()),
            status_since: bridge.status_since,
            started_at: bridge.started_at,
            ended_at: ended.map(|ended| ended.at),
            generation: bridge.generation,
            exit_reason: ended.and_then(|ended| ended.reason).map(Word::from),
            exit_signal: ended.and_then(|ended| ended.exit_signal),
            phase: bridge.phase().into(),
            origin: bridge.origin.into(),
            quarantined: bridge.quarantine.map(quarantine).or_else(|| crash_loop(bridge)),
            restart: self.restart(bridge),
            intentional_stop: bridge.intentional_stop(),
            adopted: bridge.origin != Origin::Spawned,
            agent_version: read.agent_version,
            error_detail: ended.filter(|_| shows_detail).and_then(|ended| ended.detail.clone()),
            exit_code: ended.and_then(|ended| ended.exit_code),
            notice: Self::notice(bridge, facts),
            resumable: !live && blocked.is_none(),
            resume_blocked: blocked.map(Word::from),
            reuse_expires_at: read.reuse_expires_at,
            has_log: read.has_log,
            link: link_record(shown),
            on_limit: on_limit(bridge, &self.config).into(),
            stranded,
            pending_permissions: if live { self.asked.of(&bridge.id) } else { Vec::new() },
            ..Instance::blank(bridge.id.clone(), bridge.project.to_string())
        }
    }

    /// The policy that is carried out, and where it stands.
    fn restart(&self, bridge: &Bridge) -> Restart {
        let Restarts { attempt, next_at, quarantined_at, crashes, .. } = &bridge.restarts;
        // In a live row it says that the stop is for a heal.
        let next_at = &next_at.filter(|_| !bridge.is_live());
        let state = match (quarantined_at, next_at) {
            (Some(_), _) => RestartState::Quarantined,
            (None, Some(_)) => RestartState::Waiting,
            (None, None) => RestartState::Idle,
        };
        Restart {
            policy: policy(bridge, &rules(&self.config, &bridge.project)).into(),
            state: state.into(),
            attempt: *attempt,
            next_at: *next_at,
            crashes_in_window: u32::try_from(crashes.len()).unwrap_or(u32::MAX),
        }
    }

    fn notice(bridge: &Bridge, facts: &Facts) -> Option<String> {
        if bridge.is_live() && facts.projects.get(&bridge.project).is_none() {
            return Some("the project directory is gone; the bridge still runs".to_owned());
        }
        // Said before the click: a Resume would be declined because of it.
        let is_in_the_way = !bridge.is_live() && !bridge.is_interactive();
        let unmanaged = facts.unmanaged.get(&bridge.project).filter(|_| is_in_the_way);
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

/// What a row does after a plan limit.
///
/// Only a session in a terminal takes text from here.
pub(crate) fn on_limit(bridge: &Bridge, config: &Config) -> OnLimit {
    let configured = || bridge.on_limit.unwrap_or(config.instance_defaults.on_limit);
    if bridge.is_interactive() { configured() } else { OnLimit::Wait }
}

/// The sessions of a row, with what the agent's hook asked for.
fn sessions_of(bridge: &Bridge, mut sessions: Vec<Session>, asked: Vec<Evidence>) -> Vec<Session> {
    if asked.is_empty() {
        return sessions;
    }
    let waits =
        |session: &Session| session.evidence.iter().any(|one| one.state == ActivityState::Blocked);
    let at = sessions.iter().position(|one| bridge.is_interactive() || waits(one));
    match at.and_then(|at| sessions.get_mut(at)) {
        Some(session) => session.evidence.extend(asked),
        None => sessions.push(Session { evidence: asked, ..Session::default() }),
    }
    sessions
}

fn of_hook(asked: &PendingPermission) -> Evidence {
    of_request(&asked.subtype, asked.tool.as_deref(), asked.since, EvidenceSource::Hook)
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

/// The pause after too many crashes; a person's Resume ends it.
fn crash_loop(bridge: &Bridge) -> Option<Quarantine> {
    bridge.restarts.quarantined_at.map(|_| Quarantine {
        kind: QuarantineKind::CrashLoop.into(),
        code: "restart_quarantined".to_owned(),
    })
}

/// A row that cannot be understood is shown as held; nothing of it is guessed.
fn corrupt(id: &str, project: &str) -> Option<Instance> {
    Some(Instance {
        quarantined: Some(quarantine(QuarantineCode::RowCorrupt)),
        notice: Some("the record of this bridge cannot be read; nothing is done to it".to_owned()),
        resume_blocked: Some(ResumeBlocked::Quarantined.into()),
        ..Instance::blank(id.parse().ok()?, project.to_owned())
    })
}
