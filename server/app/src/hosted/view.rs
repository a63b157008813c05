//! The record of a Direct Session, made of its row.

use crate::agent::Agent;
use crate::asked::rows::pending;
use crate::auth::refs::SessionRefs;
use crate::projects::catalog::Catalog;
use crate::read_model::signs::{Session, Signs, Told};
use std::sync::Arc;
use svc_config::Config;
use svc_domain::activity::{of_request, together};
use svc_domain::admission::{Trust, bypass_obstacle};
use svc_domain::agent_log::RemoteId;
use svc_domain::hosted::{HostedSession, Outcome, State};
use svc_shared::Word;
use svc_shared::api::instances::Instance;
use svc_shared::status::{Channel, EvidenceSource, PermissionMode, Phase, ResumeBlocked};
use svc_store::PromptRow;

/// How Direct Sessions are shown.
pub(crate) struct View {
    pub config: Arc<Config>,
    pub refs: Arc<SessionRefs>,
    pub catalog: Arc<Catalog>,
    pub agent: Arc<Agent>,
    pub signs: Arc<Signs>,
}

impl View {
    /// Shares these parts.
    pub fn new(
        config: &Arc<Config>,
        refs: &Arc<SessionRefs>,
        catalog: &Arc<Catalog>,
        agent: &Arc<Agent>,
        signs: &Arc<Signs>,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            refs: Arc::clone(refs),
            catalog: Arc::clone(catalog),
            agent: Arc::clone(agent),
            signs: Arc::clone(signs),
        }
    }

    /// Why a Resume would be refused now.
    fn blocked(&self, session: &HostedSession, is_connected: bool) -> Option<ResumeBlocked> {
        if session.is_live() {
            return Some(ResumeBlocked::StillLive);
        }
        if session.is_orphan() {
            return Some(ResumeBlocked::Orphan);
        }
        match &session.session_uuid {
            None => return Some(ResumeBlocked::NoSession),
            Some(_) if session.usable_uuid().is_none() => {
                return Some(ResumeBlocked::BadSessionRef);
            }
            Some(_) => {}
        }
        let projects = self.catalog.all();
        let Some(project) = projects.get(&session.project) else {
            return Some(ResumeBlocked::UnknownProject);
        };
        let is_allowed = self.config.project(&project.name).allow_bypass_permissions;
        let inherits = session.permission_mode == PermissionMode::Inherit
            && self.agent.may_bypass(&project.path);
        if bypass_obstacle(session.permission_mode, is_allowed, inherits).is_some() {
            return Some(ResumeBlocked::BypassForbidden);
        }
        if self.agent.trust(&project.path, project.git_root.as_deref()) != Trust::Granted {
            return Some(ResumeBlocked::NotTrusted);
        }
        (!is_connected).then_some(ResumeBlocked::HostedUnavailable)
    }

    /// The record of a session with the questions it waits for.
    pub fn of<'a>(
        &self,
        session: &HostedSession,
        prompts: impl Iterator<Item = &'a PromptRow>,
        last_event_seq: u64,
        is_connected: bool,
    ) -> Instance {
        let blocked = self.blocked(session, is_connected);
        let (ended, live) = (session.ended(), session.is_live());
        let shows_detail =
            ended.is_some_and(|ended| matches!(ended.outcome, Outcome::Crashed | Outcome::Failed));
        let session_ref = session.session_uuid.as_deref().and_then(|raw| self.refs.session(raw));
        let prompts: Vec<&PromptRow> = prompts.collect();
        let told = self.told(session, &prompts, is_connected);
        Instance {
            label: session.label().to_owned(),
            channel: Channel::Hosted.into(),
            status: session.status().into(),
            permission_mode: session.permission_mode.into(),
            session_ref,
            process_id: Some(session.process_id.clone()),
            agent_pid: session
                .agent
                .as_ref()
                .filter(|_| live || session.is_orphan())
                .map(|agent| agent.pid.get()),
            status_since: session.status_since,
            started_at: session.started_at,
            ended_at: ended.map(|ended| ended.at),
            generation: session.generation,
            exit_reason: ended.and_then(|ended| ended.reason).map(Word::from),
            exit_signal: ended.and_then(|ended| ended.signal),
            phase: phase(session).into(),
            intentional_stop: ended
                .map_or(session.state == State::Stopping, |ended| ended.intentional),
            is_orphan: session.is_orphan(),
            error_detail: ended.filter(|_| shows_detail).and_then(|ended| ended.detail.clone()),
            exit_code: ended.and_then(|ended| ended.code),
            notice: notice(session, is_connected),
            resumable: !live && blocked.is_none(),
            resume_blocked: blocked.map(Word::from),
            activity: together(told.does.as_slice()),
            limit: told.limit,
            on_limit: session.on_limit.unwrap_or(self.config.instance_defaults.on_limit).into(),
            pending_permissions: prompts.into_iter().map(pending).collect(),
            last_event_seq,
            ..Instance::blank(session.id.clone(), session.project.to_string())
        }
    }
}

impl View {
    /// What a session does, and the limit that it stopped at. Blocks in a command.
    fn told(&self, session: &HostedSession, prompts: &[&PromptRow], is_connected: bool) -> Told {
        let home = self.agent.home().ok();
        let process = session.agent.as_ref().filter(|_| session.is_live());
        let sign = process
            .and_then(|agent| self.signs.of_process(home.as_ref(), agent.pid, agent.start_ticks));
        let mut evidence = Vec::new();
        if session.is_live() {
            evidence.extend(self.signs.stream(&session.id, &session.process_id));
            evidence.extend(prompts.iter().map(|prompt| {
                let (subtype, tool) = (&prompt.subtype, prompt.tool.as_deref());
                of_request(subtype, tool, prompt.since, EvidenceSource::Stream)
            }));
            // Without the daemon nobody hears how it goes on.
            evidence.iter_mut().for_each(|one| one.is_stale = !is_connected);
            evidence.extend(sign.and_then(|sign| sign.evidence));
        }
        let conversation = session.session_uuid.as_deref().map(RemoteId::new);
        let cwd = Some(session.cwd.clone());
        let told =
            self.signs.told(&self.refs, home.as_ref(), &Session { conversation, cwd, evidence });
        Told { does: told.does.filter(|_| session.is_live()), ..told }
    }
}

fn phase(session: &HostedSession) -> Phase {
    match session.state {
        State::Starting => Phase::Launching,
        State::Running => Phase::Ready,
        State::Stopping => Phase::Stopping,
        State::Ended(_) => Phase::Exited,
    }
}

fn notice(session: &HostedSession, is_connected: bool) -> Option<String> {
    if session.is_orphan() {
        return Some(
            "the agent still runs, and nobody can talk to it since its daemon died; Stop kills it"
                .to_owned(),
        );
    }
    (session.is_live() && !is_connected).then(|| {
        "the hosted-session daemon is not connected; the session goes on, and the service \
         reconnects by itself"
            .to_owned()
    })
}
