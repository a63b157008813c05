//! Goes on with conversations after their plan limit was reset.
//!
//! The store says who waits and until when. "Begun" is written before the agent is told anything:
//! a service that is killed in between leaves a conversation for its person, and never tells an
//! agent twice.

use crate::bridges::controller::NotTyped;
use crate::bridges::keepers::Keepers;
use crate::bridges::transition::chance;
use crate::hosted::HostedSessions;
use crate::jobs::{Job, Jobs};
use crate::nudge::{SAFETY_TICK, at_most_a_tick};
use crate::ops::ConfigEditor;
use crate::ops::audit::{self, Actor, Audit, Change, Scope, Surface};
use crate::read_model::limits::Stopped;
use crate::read_model::signs::Signs;
use crate::read_model::view::on_limit;
use crate::registry::Registry;
use crate::supervise::Supervision;
use crate::tasks::Tasks;
use crate::transcripts::Transcripts;
use crate::{AppError, failpoint};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::hosted::HostedSession;
use svc_domain::plan_limit::{due, is_too_late};
use svc_ports::Clock;
use svc_shared::Timestamp;
use svc_shared::ids::{JobId, SessionRef};
use svc_shared::status::OnLimit;
use svc_store::LimitWait;
use tracing::{info, warn};

/// What the agent is told.
const GO_ON: &str = "The usage limit was reset. Continue where you stopped.";

/// What was decided about a limit is forgotten after this time.
const KEPT: i64 = 30 * 24 * 3600 * 1000;

/// Goes on with conversations after their plan limit was reset.
pub(crate) struct LimitWaits {
    config: Arc<Config>,
    signs: Arc<Signs>,
    transcripts: Arc<Transcripts>,
    registry: Arc<Registry>,
    hosted: HostedSessions,
    keepers: Arc<Keepers>,
    audit: Arc<Audit>,
    jobs: Arc<Jobs>,
    settings: Arc<ConfigEditor>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
}

/// A session that can be told to go on.
enum Session {
    Direct(Box<HostedSession>),
    Interactive(Box<Bridge>),
    /// An ended background job: a new job goes on with its transcript.
    Job(JobId),
}

impl Session {
    /// Whether it goes on by itself.
    fn goes_on(&self, config: &Config) -> bool {
        let on_limit = match self {
            Self::Direct(session) => session.on_limit.unwrap_or(config.instance_defaults.on_limit),
            Self::Interactive(_) if !config.claude.terminal_input => OnLimit::Wait,
            Self::Interactive(bridge) => on_limit(bridge, config),
            Self::Job(_) => config.instance_defaults.on_limit,
        };
        on_limit == OnLimit::Continue
    }
}

impl LimitWaits {
    /// Shares the parts of the supervisor.
    pub fn new(of: &Supervision) -> Self {
        let Transcripts { config, signs, clock, tasks, .. } = &*of.transcripts;
        Self {
            config: Arc::clone(config),
            signs: Arc::clone(signs),
            transcripts: Arc::clone(&of.transcripts),
            registry: Arc::clone(&of.writes.registry),
            hosted: HostedSessions { parts: Arc::clone(&of.hosted) },
            keepers: Arc::clone(&of.writes.watchers.keepers),
            audit: Arc::clone(&of.jobs.trust.audit),
            jobs: Arc::clone(&of.jobs),
            settings: Arc::clone(&of.writes.config),
            clock: Arc::clone(clock),
            tasks: tasks.clone(),
        }
    }

    /// Runs until the service ends.
    pub async fn run(&self) {
        let mut changes = self.signs.limits.changes();
        let mut rows = self.registry.copies.changes();
        let mut direct = self.hosted.parts.rows.changes();
        let mut settings = self.settings.changes();
        let before = Timestamp::from_millis(self.clock.now().as_millis() - KEPT);
        if let Err(error) = self.registry.store.drop_limit_waits(before).await {
            tracing::debug!(%error, "old waits for a plan limit stay in the store");
        }
        loop {
            // Changes of limits and settings stay marked: each is shown, whatever comes with it.
            rows.mark_unchanged();
            direct.mark_unchanged();
            let next = match self.look().await {
                Ok(next) => next,
                Err(error) => {
                    warn!(%error, "nobody goes on after a plan limit now; it is tried again");
                    Some(SAFETY_TICK)
                }
            };
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                Ok(()) = changes.changed() => self.show().await,
                // Only while somebody waits or could: rows change all the time.
                _ = rows.changed(), if self.is_anybody_stopped() => {}
                _ = direct.changed(), if self.is_anybody_stopped() => {}
                _ = settings.changed() => self.show().await,
                () = at_most_a_tick(next) => {}
            }
        }
    }

    fn is_anybody_stopped(&self) -> bool {
        self.signs.limits.all().is_some_and(|stopped| !stopped.is_empty())
    }

    /// Does what is due, and tells how long nothing else is.
    async fn look(&self) -> Result<Option<Duration>, AppError> {
        let Some(stopped) = self.signs.limits.all() else { return Ok(None) };
        let now = self.clock.now();
        // Jobs that nobody can read now are looked for again when it matters.
        let jobs = self.jobs_at_limit(&stopped).await.unwrap_or_default();
        for (reference, one) in &stopped {
            let Some(session) = self.session(reference, one, &jobs) else { continue };
            // A job that went on works with a copy of the transcript, and one that stops at once
            // again, at a limit that was reset before, would be started for ever.
            let is_told_late = one.limit.resets_at.is_some_and(|reset| reset <= one.limit.since);
            let store = &self.registry.store;
            let is_again = matches!(session, Session::Job(_))
                && (is_told_late
                    || store.is_limit_settled(&one.conversation, one.limit.since).await?);
            if session.goes_on(&self.config) && !is_again {
                self.add(one, now).await?;
            }
        }
        let mut shown = HashMap::new();
        // The end of a job's process is nothing that wakes this.
        let is_running = |job: &Job| job.is_open() || job.record.worker_alive;
        let mut next = jobs.iter().any(is_running).then_some(SAFETY_TICK);
        for wait in self.registry.store.limit_waits().await? {
            if is_too_late(wait.due_at, now) {
                self.registry.store.call_off_limit_wait(&wait).await?;
                continue;
            }
            let found = stopped.iter().find(|(_, one)| {
                one.conversation == wait.conversation && one.limit.since == wait.since
            });
            let Some((reference, one)) = found else {
                if !self.transcripts.knows(&wait.conversation) {
                    // Its directory may come back: nothing says that somebody went on with it.
                    continue;
                }
                // Somebody went on with it.
                self.registry.store.call_off_limit_wait(&wait).await?;
                continue;
            };
            let session = self.session(reference, one, &jobs);
            if session.is_some_and(|session| !session.goes_on(&self.config)) {
                // Somebody wants that it waits; they may change their mind before the reset.
                self.registry.store.withdraw_limit_wait(&wait).await?;
                continue;
            }
            if wait.due_at > now {
                let later = wait.due_at.since(now);
                next = Some(next.map_or(later, |next| next.min(later)));
                shown.insert(reference.clone(), wait.due_at);
                continue;
            }
            if !self.go_on(reference, &wait).await? {
                next = Some(next.map_or(SAFETY_TICK, |next| next.min(SAFETY_TICK)));
                shown.insert(reference.clone(), wait.due_at);
            }
        }
        failpoint::delay("limits.judged_late").await;
        self.signs.limits.set_due(shown);
        Ok(next)
    }

    /// Records that a session waits.
    async fn add(&self, one: &Stopped, now: Timestamp) -> Result<(), AppError> {
        let Some(due_at) = due(&one.limit, now, chance()?) else { return Ok(()) };
        let (conversation, since) = (one.conversation.clone(), one.limit.since);
        Ok(self.registry.store.add_limit_wait(&LimitWait { conversation, since, due_at }).await?)
    }

    /// The jobs that are at a limit, running or not, and that nobody stopped.
    async fn jobs_at_limit(
        &self,
        stopped: &HashMap<SessionRef, Stopped>,
    ) -> Result<Vec<Job>, AppError> {
        let is_wanted = self.config.instance_defaults.on_limit == OnLimit::Continue;
        if stopped.is_empty() || !is_wanted {
            return Ok(Vec::new());
        }
        let mut jobs = self.jobs.scan.now().await?;
        jobs.retain(|job| {
            let is_at_limit =
                job.record.session_ref.as_ref().is_some_and(|of| stopped.contains_key(of));
            is_at_limit && job.record.state != "stopped"
        });
        Ok(jobs)
    }

    /// The session that holds a conversation and can be told to go on.
    fn session(&self, reference: &SessionRef, one: &Stopped, jobs: &[Job]) -> Option<Session> {
        let is_it = |bridge: &Bridge| {
            bridge.is_live()
                && bridge.is_interactive()
                && bridge.conversation.as_ref() == Some(&one.conversation)
        };
        if let Some(bridge) = self.registry.copies.find(is_it) {
            return Some(Session::Interactive(Box::new(bridge)));
        }
        let conversation = Some(one.conversation.expose());
        // The copies: reading the rows again would count as a change of them.
        let direct =
            self.hosted.parts.rows.all().into_iter().find(|session| {
                session.is_live() && session.session_uuid.as_deref() == conversation
            });
        if let Some(direct) = direct {
            return Some(Session::Direct(Box::new(direct)));
        }
        let has_ended = |job: &&Job| !job.is_open() && !job.record.worker_alive;
        let of_job = |job: &&Job| job.record.session_ref.as_ref() == Some(reference);
        let job = jobs.iter().filter(has_ended).find(of_job)?;
        Some(Session::Job(job.record.id.clone()))
    }

    /// Whether what is said now can arrive.
    ///
    /// After a start everything is connected one by one.
    fn is_reached(&self, session: &Session) -> bool {
        match session {
            Session::Job(_) => true,
            Session::Direct(_) => self.hosted.parts.link.connected().is_some(),
            Session::Interactive(bridge) => self.keepers.controller(bridge).is_some(),
        }
    }

    /// Tells one agent to go on, at most once; `false` while it cannot be reached.
    async fn go_on(&self, reference: &SessionRef, wait: &LimitWait) -> Result<bool, AppError> {
        // What a person said a moment ago counts.
        let limit = match self.transcripts.limit_now(reference).await {
            Ok(limit) => limit,
            Err(error) => return Ok(put_off(&error)),
        };
        let stopped = limit
            .filter(|limit| limit.since == wait.since)
            .map(|limit| Stopped { conversation: wait.conversation.clone(), limit });
        let session = match &stopped {
            Some(stopped) => {
                let alone = HashMap::from([(reference.clone(), stopped.clone())]);
                match self.jobs_at_limit(&alone).await {
                    Ok(jobs) => self.session(reference, stopped, &jobs),
                    Err(error) => return Ok(put_off(&error)),
                }
            }
            None => None,
        };
        let Some(session) = session else {
            self.registry.store.call_off_limit_wait(wait).await?;
            return Ok(true);
        };
        if !self.is_reached(&session) {
            return Ok(false);
        }
        let (name, told) = match &session {
            // It is begun when nothing but the agent can refuse it any more.
            Session::Job(id) => {
                let told = self.jobs.go_on(id, GO_ON, wait.clone()).await.map(drop);
                if let Err(error) = &told {
                    if error.may_pass() && self.still_waits(wait).await? {
                        return Ok(put_off(error));
                    }
                    self.registry.store.call_off_limit_wait(wait).await?;
                }
                (id.to_string(), told)
            }
            Session::Direct(_) | Session::Interactive(_)
                if !self.registry.store.begin_limit_wait(wait).await? =>
            {
                return Ok(true);
            }
            Session::Direct(direct) => {
                (direct.id.short().to_owned(), self.hosted.message(&direct.id, GO_ON).await)
            }
            Session::Interactive(bridge) => {
                (bridge.id.short().to_owned(), self.type_in(bridge).await)
            }
        };
        match told {
            Ok(()) => info!("{name} goes on after its plan limit was reset"),
            Err(error) => warn!(
                %error, "{name} did not go on after its plan limit was reset; tell it yourself"
            ),
        }
        Ok(true)
    }

    async fn still_waits(&self, wait: &LimitWait) -> Result<bool, AppError> {
        Ok(self.registry.store.limit_waits().await?.contains(wait))
    }

    async fn type_in(&self, bridge: &Bridge) -> Result<(), AppError> {
        let silent = || AppError::busy("the terminal of this session does not answer");
        let change = Change {
            surface: Surface::Terminal,
            scope: Scope::Project,
            target: bridge.id.to_string(),
            action: "continue",
            keys: Vec::new(),
        };
        let type_in = async {
            let typed = |error| match error {
                NotTyped::Readonly => AppError::busy(
                    "this session takes no text: `claude.terminal_input` was off when it was \
                     started",
                ),
                NotTyped::Silent | NotTyped::Displaced | NotTyped::Lost(_) => {
                    silent().because(error)
                }
            };
            self.keepers.type_line(bridge, GO_ON).await.map_err(|(error, _)| typed(error))
        };
        audit::acting_as(Actor::Service, self.audit.record(change, type_in)).await
    }

    /// Shows readers what has changed.
    async fn show(&self) {
        if let Some(publisher) = &self.registry.publisher {
            publisher.publish_rows().await;
        }
        self.hosted.show();
        self.jobs.publish().await;
    }
}

/// Says why it is tried again; `false`, as nobody was told anything.
fn put_off(error: &AppError) -> bool {
    tracing::debug!(%error, "a conversation does not go on now; it is tried again");
    false
}
