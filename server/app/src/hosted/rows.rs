//! The rows of Direct Sessions.
//!
//! The copies of them, and the only writer of their state.

use crate::AppError;
use crate::auth::refs::SessionRefs;
use crate::hosted::link::Link;
use crate::hosted::ring::Rings;
use crate::hosted::view::View;
use crate::nudge;
use crate::ops::audit;
use crate::read_model::ReadModel;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_domain::effect::Lifecycle;
use svc_domain::hosted::history::remembered;
use svc_domain::hosted::{Command, Fact, HostedSession, Refusal, State, Step, decide, observe};
use svc_ports::Clock;
use svc_shared::api::instances::Instance;
use svc_shared::events::{BridgeEvent, Event, EventName, Payload};
use svc_shared::ids::InstanceId;
use svc_shared::status::{BridgeStatus, ExitReason, OnLimit, ResumeMode, SpawnMode};
use svc_shared::stream::Record;
use svc_store::{EndFacts, HistoryMode, HistoryRow, PromptRow, Store, StoredHosted};
use tokio::sync::{Mutex as AsyncMutex, watch};

/// Tries against a row that others write at the same time.
const TRIES: u32 = 20;
/// Between two tries to record that an event is announced.
const PAUSE: Duration = Duration::from_millis(200);

/// What a change of a row led to.
#[derive(Debug)]
pub(crate) enum Changed {
    /// The session after the change, or as it was.
    Now(Box<HostedSession>),
    /// The row is gone, or the fact is about another process.
    Late,
    /// The command is refused.
    Refused(Refusal),
}

/// What of a session a person changes.
pub(crate) struct OwnChange {
    /// The new name; none means the project's.
    pub label: Option<Option<String>>,
    /// What it does after a plan limit; none follows the configuration.
    pub on_limit: Option<Option<OnLimit>>,
}

#[derive(Debug, Default)]
struct Known {
    sessions: BTreeMap<String, StoredHosted>,
    /// In the order they were made.
    order: Vec<String>,
    /// Questions that wait, and answers on their way.
    prompts: Vec<PromptRow>,
    shown: BTreeSet<String>,
}

/// The rows of Direct Sessions.
pub(crate) struct HostedRows {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub refs: Arc<SessionRefs>,
    pub rings: Arc<Rings>,
    pub link: Arc<Link>,
    pub view: View,
    /// Readers of the service; `None` in a command.
    readers: Option<Arc<ReadModel>>,
    served: Option<PathBuf>,
    known: Mutex<Known>,
    /// One reading at a time: an older one must not take the place of a newer one.
    reading: AsyncMutex<()>,
    /// Whoever read the rows before has shown them before.
    showing: Mutex<()>,
    /// Counts up whenever the rows were read again.
    changes: watch::Sender<u64>,
}

impl HostedRows {
    pub fn new(
        store: &Store,
        clock: &Arc<dyn Clock>,
        link: &Arc<Link>,
        view: View,
        readers: Option<Arc<ReadModel>>,
        served: Option<PathBuf>,
    ) -> Self {
        Self {
            store: store.clone(),
            clock: Arc::clone(clock),
            refs: Arc::clone(&view.refs),
            rings: Arc::default(),
            link: Arc::clone(link),
            view,
            readers,
            served,
            known: Mutex::default(),
            reading: AsyncMutex::default(),
            showing: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process is the service.
    pub fn has_readers(&self) -> bool {
        self.readers.is_some()
    }

    /// The read model of the service.
    pub fn readers(&self) -> Option<&Arc<ReadModel>> {
        self.readers.as_ref()
    }

    /// Counts up whenever the rows were read again.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Reads the rows again and shows what changed.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn refresh(&self) -> Result<(), AppError> {
        let reading = self.reading.lock().await;
        let sessions = self.store.hosted_sessions().await?;
        let prompts = self.store.open_prompts().await?;
        let ended = {
            let mut known = self.known();
            known.order = sessions.iter().map(|one| one.session.id.to_string()).collect();
            let sessions =
                sessions.into_iter().map(|one| (one.session.id.to_string(), one)).collect();
            let before = std::mem::replace(&mut known.sessions, sessions);
            known.prompts = prompts;
            ended_between(&before, &known.sessions)
        };
        drop(reading);
        self.show();
        self.changes.send_modify(|count| *count += 1);
        // Commands record ends too, and have nobody to tell.
        for (session, event) in ended {
            self.announce(&session, event).await;
        }
        Ok(())
    }

    /// Shows readers the sessions as they are known.
    pub fn show(&self) {
        let Some(readers) = &self.readers else { return };
        let _showing = self.showing.lock().unwrap_or_else(PoisonError::into_inner);
        let (records, gone) = {
            let mut known = self.known();
            let records: Vec<(String, Record)> = known
                .order
                .iter()
                .filter_map(|id| known.sessions.get(id))
                .map(|stored| {
                    let instance = self.record_with(&stored.session, &known.prompts);
                    (instance.instance_id.to_string(), Record::Instance(instance.into()))
                })
                .collect();
            let now: BTreeSet<String> = records.iter().map(|(id, _)| id.clone()).collect();
            let before = std::mem::replace(&mut known.shown, now);
            let gone: Vec<String> = before.difference(&known.shown).cloned().collect();
            (records, gone)
        };
        readers.put(records);
        gone.iter().for_each(|id| readers.remove("instance", id));
    }

    /// Every session, in the order they were made.
    pub fn all(&self) -> Vec<HostedSession> {
        let known = self.known();
        let sessions = known.order.iter().filter_map(|id| known.sessions.get(id));
        sessions.map(|stored| stored.session.clone()).collect()
    }

    /// The session of this id, as it is known.
    pub fn get(&self, id: &InstanceId) -> Option<HostedSession> {
        self.known().sessions.get(id.as_str()).map(|stored| stored.session.clone())
    }

    /// Questions that wait, and answers on their way.
    pub fn prompts(&self) -> Vec<PromptRow> {
        self.known().prompts.clone()
    }

    /// The record of a session.
    pub fn record(&self, session: &HostedSession) -> Instance {
        self.record_with(session, &self.known().prompts)
    }

    fn record_with(&self, session: &HostedSession, prompts: &[PromptRow]) -> Instance {
        let own = prompts.iter().filter(|prompt| {
            prompt.instance_id == session.id.as_str()
                && prompt.process_id == session.process_id
                && prompt.decision.is_none()
        });
        let last = self.rings.last(&session.id, &session.process_id);
        let is_connected = self.link.connected().is_some();
        self.view.of(session, own, last, is_connected)
    }

    /// Records a new session.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn insert(&self, session: &HostedSession) -> Result<(), AppError> {
        let past = self.past(None, session, self.clock.now());
        if !self.store.insert_hosted(session, &past).await? {
            return Err(AppError::busy("this id is taken; try again"));
        }
        self.refresh().await?;
        self.tell_others();
        Ok(())
    }

    /// Applies a fact about one process of a session.
    pub async fn observe(
        &self,
        id: &InstanceId,
        process: &str,
        fact: Fact,
    ) -> Result<Changed, AppError> {
        self.change(id, |session, now| {
            if session.process_id != process {
                return Ok(None);
            }
            Ok(Some(observe(session, fact.clone(), now)))
        })
        .await
    }

    /// Applies a command.
    pub async fn command(&self, id: &InstanceId, command: Command) -> Result<Changed, AppError> {
        self.change(id, |session, now| decide(session, command.clone(), now).map(Some)).await
    }

    /// Changes what a person may change.
    pub async fn change_own(&self, id: &InstanceId, what: &OwnChange) -> Result<Changed, AppError> {
        self.change(id, |session, _| {
            let label = what.label.clone().unwrap_or_else(|| session.label.clone());
            let on_limit = what.on_limit.unwrap_or(session.on_limit);
            let next = HostedSession { label, on_limit, ..session.clone() };
            Ok(Some(Step::Becomes(Box::new(next))))
        })
        .await
    }

    async fn change(
        &self,
        id: &InstanceId,
        rule: impl Fn(&HostedSession, svc_shared::Timestamp) -> Result<Option<Step>, Refusal>,
    ) -> Result<Changed, AppError> {
        for _ in 0..TRIES {
            let rows = self.store.hosted_sessions().await?;
            let Some(stored) = rows.into_iter().find(|stored| stored.session.id == *id) else {
                self.refresh().await?;
                return Ok(Changed::Late);
            };
            let now = self.clock.now();
            let next = match rule(&stored.session, now) {
                Err(refusal) => return Ok(Changed::Refused(refusal)),
                Ok(None) => return Ok(Changed::Late),
                Ok(Some(Step::Unchanged)) => {
                    self.refresh().await?;
                    return Ok(Changed::Now(Box::new(stored.session)));
                }
                Ok(Some(Step::Becomes(next))) => next,
            };
            let asks = |session: &HostedSession| matches!(session.state, State::Stopping);
            let asked = asks(&next) && !asks(&stored.session);
            let asked = asked.then(|| (audit::asker(self.has_readers()), now));
            let end = asked.map(|asked| EndFacts { asked: Some(asked), last: None });
            let past = self.past(Some(&stored.session), &next, now);
            let end = end.as_ref();
            if !self.store.save_hosted(stored.revision, &next, end, &past, now).await? {
                continue;
            }
            // It is told of even where it cannot be shown.
            let shown = self.refresh().await;
            self.tell_of(&stored.session, &next).await;
            self.tell_others();
            shown?;
            return Ok(Changed::Now(next));
        }
        Err(AppError::busy("the row is written by too many at once; try again"))
    }

    /// What the history keeps of a change.
    fn past(
        &self,
        before: Option<&HostedSession>,
        after: &HostedSession,
        now: svc_shared::Timestamp,
    ) -> Vec<HistoryRow> {
        let uuid = after.session_uuid.as_deref();
        let row = |kind| HistoryRow {
            project: after.project.clone(),
            instance_id: after.id.clone(),
            mode: HistoryMode::Hosted,
            kind,
            at: now,
            session_ref: uuid.and_then(|raw| self.refs.session(raw)),
            exit_reason: after.ended().and_then(|ended| ended.reason),
            detail: None,
        };
        remembered(before, after).into_iter().map(row).collect()
    }

    /// Removes a session that has ended.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn delete(&self, session: &HostedSession) -> Result<bool, AppError> {
        let revision = self.known().sessions.get(session.id.as_str()).map(|one| one.revision);
        let Some(revision) = revision else { return Ok(false) };
        let is_deleted = self.store.delete_hosted(&session.id, revision).await?;
        if is_deleted {
            self.rings.drop_of(&session.id);
            self.refresh().await?;
            self.tell_others();
        }
        Ok(is_deleted)
    }

    /// Tells a running service of the same state directory to read the rows.
    pub fn tell_others(&self) {
        if let Some(state_dir) = &self.served {
            nudge::nudge(state_dir);
        }
    }

    /// Tells the log, the viewers and whoever listens for events.
    async fn tell_of(&self, before: &HostedSession, after: &HostedSession) {
        if before.status() == after.status() && before.generation == after.generation {
            return;
        }
        let reason = after.ended().and_then(|ended| ended.reason);
        tracing::info!(
            bridge.id = %after.id,
            project.name = %after.project,
            "Direct Session {} of `{}` is {}{}",
            after.id.short(),
            svc_domain::log_escape::escape(after.project.as_str()),
            after.status(),
            reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
        );
        if let Some(ring) = self.rings.known(&after.id, &after.process_id) {
            ring.push(serde_json::json!({ "type": "status", "status": after.status() }));
        }
        match (after.status(), end_of(after)) {
            // Its process exists, and takes messages at once.
            (BridgeStatus::Running, _) => {
                self.announce(after, Lifecycle::Spawn).await;
                self.announce(after, Lifecycle::Ready).await;
            }
            (_, Some(event)) => self.announce(after, event).await,
            // Nobody asked for it, and the machine did not end it.
            (BridgeStatus::Stopped, None) if reason == Some(ExitReason::CleanExit) => {
                if let Some(readers) = &self.readers {
                    readers.happened(&self.event(after, EventName::SessionEnd));
                }
            }
            (_, None) => {}
        }
    }

    /// Announces an event of a generation, if nobody has yet.
    async fn announce(&self, session: &HostedSession, event: Lifecycle) {
        let Some(readers) = &self.readers else { return };
        let (id, generation) = (&session.id, session.generation);
        for is_last in [false, false, true] {
            let now = self.clock.now();
            match self.store.claim_announcement(id, generation, event, now).await {
                Ok(true) => break,
                Ok(false) => return,
                Err(error) if is_last => {
                    tracing::warn!(bridge.id = %id, error = %error, "an event was not announced");
                    return;
                }
                // Nobody else announces it.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        readers.happened(&self.event(session, event.name()));
    }

    /// What is told of a session.
    fn event(&self, session: &HostedSession, event: EventName) -> Event {
        let uuid = session.session_uuid.as_deref();
        Event {
            instance_id: Some(session.id.clone()),
            generation: Some(session.generation),
            payload: Payload::Bridge(BridgeEvent {
                event,
                project: session.project.clone(),
                label: session.label().to_owned(),
                status: session.status(),
                resume_mode: ResumeMode::Standard,
                spawn_mode: SpawnMode::SameDir,
                session_ref: uuid.and_then(|raw| self.refs.session(raw)),
                restart_quarantined: false,
            }),
        }
    }

    /// What is told of a step that was recorded before the service was killed.
    ///
    /// `None` for a session that is gone.
    pub fn event_of(&self, id: &InstanceId, event: Lifecycle) -> Option<Event> {
        let mut found = self.event(&self.get(id)?, event.name());
        if let Payload::Bridge(told) = &mut found.payload {
            // It is told once the agent runs.
            told.status = match event {
                Lifecycle::Spawn => BridgeStatus::Running,
                Lifecycle::Ready | Lifecycle::Stop | Lifecycle::Crash => event.status(),
            };
        }
        Some(found)
    }
}

/// The event of an end.
fn end_of(session: &HostedSession) -> Option<Lifecycle> {
    let ended = session.ended()?;
    match session.status() {
        BridgeStatus::Crashed => Some(Lifecycle::Crash),
        BridgeStatus::Stopped if ended.intentional => Some(Lifecycle::Stop),
        BridgeStatus::Stopped
        | BridgeStatus::Error
        | BridgeStatus::Starting
        | BridgeStatus::Running
        | BridgeStatus::Stopping => None,
    }
}

/// Sessions that were live, or of an earlier generation, in an earlier reading.
fn ended_between(
    before: &BTreeMap<String, StoredHosted>,
    after: &BTreeMap<String, StoredHosted>,
) -> Vec<(HostedSession, Lifecycle)> {
    let new = after.iter().filter_map(|(id, now)| {
        let (before, now) = (&before.get(id)?.session, &now.session);
        let is_new = before.is_live() || before.generation != now.generation;
        Some((now.clone(), end_of(now).filter(|_| is_new)?))
    });
    new.collect()
}
