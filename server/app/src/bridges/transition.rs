//! The only writer of a bridge's state.
//! Load, decide, compare and swap, then the effects.

use crate::AppError;
use crate::auth::refs::SessionRefs;
use crate::bridges::restart_rules::rules;
use crate::ops::audit;
use crate::ops::metrics::Samples;
use crate::read_model::ReadModel;
use crate::registry::Registry;
use crate::registry::copies::Known;
use std::sync::Arc;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::decide::{Command, Refusal, decide};
use svc_domain::effect::{Effect, History, Lifecycle, Step};
use svc_domain::log_escape::quoted;
use svc_domain::observe::{Fact, observe};
use svc_domain::restart::{Chance, follow};
use svc_ports::Clock;
use svc_shared::events::{BridgeEvent, Event, EventName, Payload};
use svc_shared::ids::InstanceId;
use svc_shared::status::ExitReason;
use svc_store::{
    Along, Cap, Content, EndFacts, HistoryMode, HistoryRow, NewStranded, Saved, StoreError, Stored,
};
use tracing::{error, info, warn};

/// Tries against a row that others write at the same time.
const TRIES: u32 = 20;

/// What a change of a row led to.
#[derive(Debug)]
pub(crate) enum Changed {
    /// The row after the change, or as it was when nothing had to change.
    Now(Box<Known>),
    /// The row is gone, or the fact is about an earlier generation.
    Late,
    /// The row is corrupt: it is not touched.
    Corrupt,
    /// The command is refused.
    Refused(Refusal),
    /// The project has another live Server Mode bridge.
    Occupied,
    /// The cap on live bridges is reached.
    CapReached,
}

/// Decides and writes changes of rows.
pub(crate) struct Transitions {
    pub config: Arc<Config>,
    pub registry: Arc<Registry>,
    pub clock: Arc<dyn Clock>,
    pub refs: Arc<SessionRefs>,
    pub read_model: Arc<ReadModel>,
    pub samples: Arc<Samples>,
}

impl Transitions {
    /// Applies a fact about one generation.
    pub async fn observe(
        &self,
        id: &InstanceId,
        generation: u32,
        fact: Fact,
    ) -> Result<Changed, AppError> {
        self.observe_end(id, generation, fact, Vec::new()).await
    }

    /// Applies a fact that can be the end of a generation.
    /// The conversations that hung on it are recorded in the same transaction, unless the
    /// generation was stopped on purpose or ended with its session.
    pub async fn observe_end(
        &self,
        id: &InstanceId,
        generation: u32,
        fact: Fact,
        attached: Vec<NewStranded>,
    ) -> Result<Changed, AppError> {
        self.change(id, Cap::default(), &attached, |bridge, now| {
            if bridge.generation == generation {
                Ok(Some(observe(bridge, fact.clone(), now)))
            } else {
                Ok(None)
            }
        })
        .await
    }

    /// Applies a command. `cap` is counted in the same transaction.
    pub async fn command(
        &self,
        id: &InstanceId,
        command: Command,
        cap: Cap,
    ) -> Result<Changed, AppError> {
        self.change(id, cap, &[], |bridge, now| decide(bridge, command.clone(), now).map(Some))
            .await
    }

    async fn change(
        &self,
        id: &InstanceId,
        cap: Cap,
        attached: &[NewStranded],
        rule: impl Fn(&Bridge, svc_shared::Timestamp) -> Result<Option<Step>, Refusal>,
    ) -> Result<Changed, AppError> {
        // The copy is mostly current, and the save compares: only what the copy says against a
        // change has to be looked up.
        let mut copy = self.registry.copies.stored(id);
        for _ in 0..TRIES {
            let copied = copy.take();
            let is_copy = copied.is_some();
            let read = match copied {
                Some(copied) => Some(copied),
                None => {
                    let read = self.registry.store.bridge(id).await?;
                    // An end that another process recorded is noticed before it is written over.
                    read.clone().and_then(|stored| self.registry.copies.learn(stored));
                    read
                }
            };
            let Some(stored) = read else {
                self.registry.copies.forget(id);
                self.registry.publish().await;
                return Ok(Changed::Late);
            };
            let bridge = match &stored.content {
                Content::Bridge(bridge) => bridge,
                Content::Corrupt { .. } if is_copy => continue,
                Content::Corrupt { .. } => return Ok(Changed::Corrupt),
            };
            let now = self.clock.now();
            let (next, effects) = match rule(bridge, now) {
                Err(_) | Ok(None | Some(Step::Unchanged)) if is_copy => continue,
                Err(refusal) => return Ok(Changed::Refused(refusal)),
                Ok(None) => return Ok(Changed::Late),
                Ok(Some(Step::Unchanged)) => {
                    // Another process may have written it: readers see it all the same.
                    let known = self.registry.learn(stored).await;
                    return Ok(known.map_or(Changed::Late, |known| Changed::Now(Box::new(known))));
                }
                Ok(Some(Step::Becomes { next, effects })) => (next, effects),
            };
            // In the same write as the end: a restart is neither forgotten nor made twice.
            let (next, effects) = self.judged(bridge, *next, effects, now)?;
            let history = self.history_of(&next, &effects, now);
            let announcements = self.announcements(&effects);
            let is_death = next.ended().is_some_and(|ended| {
                !ended.intentional && ended.reason != Some(ExitReason::SessionEnded)
            });
            let stranded = if is_death { attached } else { &[] };
            let end = self.end_facts(bridge, &next, now);
            let (history, announcements) = (&history[..], &announcements[..]);
            let along = Along { history, announcements, stranded, end: end.as_ref() };
            let saved =
                self.registry.store.save_with(stored.revision, &next, along, cap, now).await?;
            let (saved, announcements) = saved;
            let revision = match saved {
                Saved::Yes(revision) => revision,
                Saved::Stale => continue,
                Saved::Occupied => return Ok(Changed::Occupied),
                Saved::CapReached => return Ok(Changed::CapReached),
            };
            log_transition(bridge, &next);
            let content = Content::Bridge(next.clone());
            let count = stored.stranded;
            let stored = match stranded {
                [] => Stored { revision, content, ..stored },
                // The database knows how many of them were recorded before.
                _ => match self.registry.store.bridge(id).await? {
                    Some(stored) => stored,
                    None => Stored { revision, content, ..stored },
                },
            };
            // Before readers see the end: whoever sees it may scrape at once.
            if effects.contains(&Effect::CountCrash) {
                self.registry.copies.count_crash(&next.project);
            }
            let count = stored.stranded.saturating_sub(count);
            let known = self.registry.wrote(stored).await;
            self.tell_of_stranded(&next, count);
            for event in announcements {
                self.announce(&next, event);
            }
            let has_ended = |bridge: &Bridge| {
                bridge.ended().is_some_and(|end| end.reason == Some(ExitReason::SessionEnded))
            };
            if has_ended(&next) && !has_ended(bridge) {
                self.tell(&next, EventName::SessionEnd);
            }
            self.registry.tell_others();
            return Ok(known.map_or(Changed::Late, |known| Changed::Now(Box::new(known))));
        }
        Err(AppError::busy("the row is written by too many at once; try again"))
    }

    /// Judges whether an end makes a restart due, or was the last one.
    fn judged(
        &self,
        before: &Bridge,
        next: Bridge,
        mut effects: Vec<Effect>,
        now: svc_shared::Timestamp,
    ) -> Result<(Box<Bridge>, Vec<Effect>), AppError> {
        let rules = rules(&self.config, &next.project);
        let next = follow(before, next, &rules, chance()?, now);
        let crash = Effect::Announce(Lifecycle::Crash);
        // Whoever waits for the bridge is told once that it stays down, also if the last restart
        // failed before the bridge was ready.
        if gave_up(before, &next) && !effects.contains(&crash) {
            effects.push(crash);
        }
        Ok((Box::new(next), effects))
    }

    /// What is kept for the report of why a bridge stopped.
    fn end_facts(
        &self,
        before: &Bridge,
        after: &Bridge,
        now: svc_shared::Timestamp,
    ) -> Option<EndFacts> {
        let is_asked = after.live().is_some_and(|live| live.stop_requested);
        let asked = (is_asked && !before.intentional_stop())
            .then(|| (audit::asker(self.registry.has_readers()), now));
        let is_end = before.is_live() && !after.is_live();
        let last = is_end.then(|| self.samples.last_use(&after.id, after.generation)).flatten();
        (asked.is_some() || last.is_some()).then_some(EndFacts { asked, last })
    }

    /// What of the effects is kept in the history.
    pub fn history_of(
        &self,
        next: &Bridge,
        effects: &[Effect],
        now: svc_shared::Timestamp,
    ) -> Vec<HistoryRow> {
        effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Remember(kind) => Some(HistoryRow {
                    project: next.project.clone(),
                    instance_id: next.id.clone(),
                    mode: HistoryMode::Bridge(next.resume_mode),
                    kind: *kind,
                    at: now,
                    session_ref: self.refs.of(next),
                    exit_reason: next.ended().and_then(|ended| ended.reason),
                    detail: None,
                }),
                Effect::Announce(_) | Effect::CountCrash => None,
            })
            .collect()
    }

    /// Adds what happened to a live bridge without a change of its record.
    /// A failure is only logged: the history is no reason to stop watching.
    pub async fn remember(&self, bridge: &Bridge, kind: History, detail: Option<String>) {
        let event = HistoryRow {
            project: bridge.project.clone(),
            instance_id: bridge.id.clone(),
            mode: HistoryMode::Bridge(bridge.resume_mode),
            kind,
            at: self.clock.now(),
            session_ref: self.refs.of(bridge),
            exit_reason: None,
            detail,
        };
        if let Err(error) = self.registry.store.remember(&event).await {
            tracing::warn!(bridge.id = %bridge.id, error = %error, "the history lacks an event");
        }
    }

    /// The events that this process would announce.
    /// Only a running server announces: a command has no listeners.
    fn announcements(&self, effects: &[Effect]) -> Vec<Lifecycle> {
        let events = effects.iter().filter_map(|effect| match effect {
            Effect::Announce(event) => Some(*event),
            Effect::Remember(_) | Effect::CountCrash => None,
        });
        if self.registry.has_readers() { events.collect() } else { Vec::new() }
    }

    /// One notice for all conversations of a death.
    fn tell_of_stranded(&self, bridge: &Bridge, count: u32) {
        if count == 0 || !self.registry.has_readers() {
            return;
        }
        let (are, them) = match count {
            1 => ("1 conversation is".to_owned(), "it"),
            _ => (format!("{count} conversations are"), "them"),
        };
        let text = format!(
            "{are} stranded, because the bridge {} died: what is typed into {them} reaches \
             nobody. Continue {them} on the page of the session or with `svc stranded`.",
            quoted(bridge.label())
        );
        warn!(bridge.id = %bridge.id, "{text}");
        self.read_model.notice("warn", "stranded", &text);
    }

    /// Events leave from the process that won the swap, after the record is durable.
    fn announce(&self, bridge: &Bridge, event: Lifecycle) {
        self.read_model.happened(&self.event(bridge, event.name()));
    }

    /// Tells of something that is no step in the life of a bridge.
    ///
    /// It is not announced.
    pub fn tell(&self, bridge: &Bridge, event: EventName) {
        // A command has no listeners.
        if self.registry.has_readers() {
            self.read_model.happened(&self.event(bridge, event));
        }
    }

    /// What is told of a bridge.
    fn event(&self, bridge: &Bridge, event: EventName) -> Event {
        let gave_up = event == EventName::Crash && bridge.restarts.quarantined_at.is_some();
        Event {
            instance_id: Some(bridge.id.clone()),
            generation: Some(bridge.generation),
            payload: Payload::Bridge(BridgeEvent {
                event,
                project: bridge.project.clone(),
                label: bridge.label().to_owned(),
                status: bridge.status(),
                resume_mode: bridge.resume_mode,
                spawn_mode: bridge.spawn_mode,
                session_ref: self.refs.of(bridge),
                restart_quarantined: gave_up,
            }),
        }
    }

    /// What is told of a step that was recorded before the service was killed.
    ///
    /// `None` for a bridge that is gone.
    pub fn event_of(&self, id: &InstanceId, event: Lifecycle) -> Option<Event> {
        let bridge = self.registry.copies.bridge(id)?;
        let mut found = self.event(&bridge, event.name());
        if let Payload::Bridge(told) = &mut found.payload {
            told.status = event.status();
        }
        Some(found)
    }

    /// Announces the end of a generation that another process recorded.
    ///
    /// Only if nobody has yet.
    ///
    /// # Errors
    /// The registry cannot be read or written.
    pub async fn announce_end(&self, bridge: &Bridge, event: Lifecycle) -> Result<(), AppError> {
        let (store, now) = (&self.registry.store, self.clock.now());
        // The process that recorded the end has no samples.
        if let Some(last) = self.samples.last_use(&bridge.id, bridge.generation) {
            let facts = EndFacts { asked: None, last: Some(last) };
            store.note_end(&bridge.id, bridge.generation, &facts).await?;
        }
        if store.claim_announcement(&bridge.id, bridge.generation, event, now).await? {
            self.announce(bridge, event);
        }
        Ok(())
    }
}

fn gave_up(before: &Bridge, after: &Bridge) -> bool {
    before.restarts.quarantined_at.is_none() && after.restarts.quarantined_at.is_some()
}

/// A random number for the spread of delays.
pub(crate) fn chance() -> Result<Chance, AppError> {
    let random = getrandom::u32().map_err(|error| AppError::internal(error.to_string()))?;
    Ok(Chance::of(random))
}

fn log_transition(before: &Bridge, after: &Bridge) {
    if before.status() == after.status() && before.generation == after.generation {
        return;
    }
    info!(
        bridge.id = %after.id,
        project.name = %after.project,
        bridge.generation = after.generation,
        "bridge {} of `{}` is {}{}",
        after.id.short(),
        svc_domain::log_escape::escape(after.project.as_str()),
        after.status(),
        after
            .ended()
            .and_then(|ended| ended.reason)
            .map(|reason| format!(" ({reason})"))
            .unwrap_or_default()
    );
    if gave_up(before, after) {
        warn!(
            bridge.id = %after.id,
            project.name = %after.project,
            "bridge {} of `{}` crashed {} times in a short time and is not restarted any more; \
             `svc resume {}` tries again",
            after.id.short(),
            svc_domain::log_escape::escape(after.project.as_str()),
            after.restarts.crashes.len(),
            after.id.short(),
        );
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        use crate::Class;
        use svc_shared::error::ErrorCode;
        match error {
            StoreError::Busy(_) => {
                Self::busy("another process or a slow disk keeps the database busy; try again")
                    .because(error)
            }
            StoreError::Full(_) => Self::new(
                ErrorCode::DiskFull,
                Class::Storage,
                "the file system of the state directory is full; free some space",
            )
            .because(error),
            StoreError::ReadOnly(_) => Self::busy(
                "the database may not be written; check the permissions of the state directory",
            )
            .because(error),
            StoreError::Failed(_) => {
                error!(error = %error, "the database failed");
                Self::busy("the database cannot be read or written now; see the service log")
                    .because(error)
            }
            StoreError::PathNotText => Self::invalid(
                "the path of this project is not valid UTF-8; rename the directory above it",
            ),
        }
    }
}
