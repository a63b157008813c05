//! Posts that are kept until their target took them (`webhooks.outbox`).
//!
//! An event is recorded before it is posted, and each target gets the events in their order. A
//! post that may have arrived is posted again with the same id: a receiver can tell.

use super::message::Message;
use super::queue::{DRAIN, Queue};
use super::target::Target;
use super::webhooks::invalid;
use crate::AppError;
use crate::failpoint::hit;
use crate::nudge::{SAFETY_TICK, at_most_a_tick};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use svc_config::Secret;
use svc_domain::effect::Lifecycle;
use svc_domain::webhook_retry::{GIVE_UP_AFTER, LONGEST_PAUSE, Next, next};
use svc_ports::Clock;
use svc_shared::Timestamp;
use svc_shared::events::Event;
use svc_shared::internal::webhooks::{PostState, WebhookTarget};
use svc_store::{OutboxEvent, OutboxPost, Owed, Settled, Store, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// Most events that are kept, delivered ones too.
const MOST: u32 = 10_000;
/// How long what is settled is kept, so that it can be posted again.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Posts of a target that are shown.
const SHOWN: u32 = 20;

/// What is recorded next.
struct Record {
    event: Option<OutboxEvent>,
    /// The step of a session that it tells of.
    step: Option<Owed>,
}

/// The outbox of all targets.
pub(super) struct Outbox {
    store: Store,
    clock: Arc<dyn Clock>,
    keys: Vec<String>,
    secret: Option<Secret>,
    records: Queue<Record>,
    /// Something can be posted that could not be before.
    news: watch::Sender<()>,
    /// Whether anything is posted now.
    is_on: watch::Sender<bool>,
}

impl Outbox {
    pub fn new(
        store: &Store,
        clock: &Arc<dyn Clock>,
        targets: &[Arc<Target>],
        secret: Option<Secret>,
    ) -> Self {
        Self {
            store: store.clone(),
            clock: Arc::clone(clock),
            keys: {
                // The same address twice is one target.
                let keys: BTreeSet<&str> = targets.iter().map(|target| target.key()).collect();
                keys.into_iter().map(str::to_owned).collect()
            },
            secret,
            records: Queue::default(),
            news: watch::Sender::new(()),
            is_on: watch::Sender::new(false),
        }
    }

    /// Has steps noted with their record and posted from now on, or not any more.
    ///
    /// What waits stays where it is meanwhile.
    pub fn switch(&self, is_on: bool) {
        self.store.owe_events(is_on);
        self.is_on.send_replace(is_on);
    }

    /// Drops what is over.
    pub async fn begin(&self) {
        let kept = i64::try_from(KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
        let before = self.clock.now().as_millis().saturating_sub(kept);
        let begun = self.store.begin_outbox(&self.keys, Timestamp::from_millis(before)).await;
        if let Err(error) = begun {
            warn!(%error, "old posts of webhooks were not dropped");
        }
    }

    /// Takes an event in that happened at this time. Never waits.
    pub fn offer(&self, event: &Event, message: Option<Message>, at: Timestamp) {
        let row = message.map(|message| OutboxEvent {
            delivery: message.delivery,
            event: message.event,
            at,
            body: String::from_utf8_lossy(&message.body).into_owned(),
        });
        let step = event.instance_id.clone().zip(event.generation).zip(Lifecycle::of(event.name()));
        let step =
            step.map(|((instance, generation), event)| Owed { instance, generation, event, at });
        if row.is_some() || step.is_some() {
            self.take_in(Record { event: row, step });
        }
    }

    /// Takes a step off the record that nothing can be told of any more.
    pub fn forgive(&self, owed: Owed) {
        self.take_in(Record { event: None, step: Some(owed) });
    }

    fn take_in(&self, record: Record) {
        if self.records.offer(record) {
            warn!("the database is too slow for the outbox of webhooks: events are dropped");
        }
    }

    /// Records what was taken in, until the service ends.
    pub async fn record(&self, shutdown: &CancellationToken) {
        let mut is_full = false;
        while let Some((record, _)) = self.records.next(shutdown).await {
            let owed = record.step.as_ref();
            hit("outbox.before_record").await;
            loop {
                let event = record.event.as_ref();
                match self.store.add_to_outbox(event, &self.keys, owed, MOST).await {
                    Ok(lost) => {
                        // Once for each time that it becomes full.
                        if lost > 0 && !is_full {
                            warn!(
                                "the outbox of webhooks holds {MOST} events, and the oldest are \
                                 dropped; see to the targets"
                            );
                        }
                        is_full = lost > 0;
                        break;
                    }
                    Err(error) => {
                        warn!(%error, "an event is not in the outbox yet; it is tried again");
                        tokio::select! {
                            () = shutdown.cancelled() => return,
                            () = tokio::time::sleep(SAFETY_TICK) => {}
                        }
                    }
                }
            }
            self.news.send_replace(());
        }
    }

    /// Posts to one target what waits for it, until the service ends.
    ///
    /// `writes` tells of every write of the database: a command may have asked for a replay.
    pub async fn deliver(
        &self,
        target: &Target,
        mut writes: watch::Receiver<u64>,
        shutdown: &CancellationToken,
    ) {
        let mut news = self.news.subscribe();
        let mut is_on = self.is_on.subscribe();
        let mut failures = 0;
        let over = async {
            shutdown.cancelled().await;
            tokio::time::sleep(DRAIN).await;
        };
        tokio::pin!(over);
        loop {
            if shutdown.is_cancelled() {
                return; // what is left stays in the outbox
            }
            if !*is_on.borrow_and_update() {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    changed = is_on.changed() => if changed.is_err() { return },
                }
                continue;
            }
            writes.mark_unchanged();
            news.mark_unchanged();
            let pause = match self.store.next_post(target.key()).await {
                Ok(None) => None,
                Ok(Some(post)) => match self.wait_of(&post) {
                    Duration::ZERO => {
                        let attempt = self.attempt(target, &post, &mut failures);
                        let recorded = tokio::select! {
                            recorded = attempt => recorded,
                            () = &mut over => return,
                        };
                        match recorded {
                            true => continue,
                            false => Some(SAFETY_TICK),
                        }
                    }
                    wait => Some(wait),
                },
                Err(error) => {
                    warn!(%error, "the outbox of webhooks cannot be read; it is tried again");
                    Some(SAFETY_TICK)
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                changed = writes.changed() => if changed.is_err() { return },
                changed = news.changed() => if changed.is_err() { return },
                changed = is_on.changed() => if changed.is_err() { return },
                () = at_most_a_tick(pause) => {}
            }
        }
    }

    fn wait_of(&self, post: &OutboxPost) -> Duration {
        let left = post.next_at.as_millis().saturating_sub(self.clock.now().as_millis());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        // No pause is longer: the clock was set back.
        if left > LONGEST_PAUSE { Duration::ZERO } else { left }
    }

    /// Posts once; tells whether what came of it is recorded.
    ///
    /// `failures` counts those in a row.
    async fn attempt(&self, target: &Target, post: &OutboxPost, failures: &mut u32) -> bool {
        let message = Message::kept(&post.event, self.clock.now(), self.secret.as_ref());
        let (status, reason) = match target.post(&message).await {
            Ok(status) => (Some(status), None),
            Err(error) => (None, Some(error.to_string())),
        };
        hit("outbox.after_post").await;
        *failures = match status {
            Some(200..300) => 0,
            Some(_) | None => failures.saturating_add(1),
        };
        let settled = self.settled(target, post, (status, reason), *failures);
        match self.store.settle_post(target.key(), post.seq, &settled).await {
            Ok(()) => true,
            Err(error) => {
                warn!(%error, "what came of a post is not recorded; it is posted again");
                false
            }
        }
    }

    /// What an attempt led to.
    fn settled(
        &self,
        target: &Target,
        post: &OutboxPost,
        (status, reason): (Option<u16>, Option<String>),
        failures: u32,
    ) -> Settled {
        let now = self.clock.now();
        let age = now.as_millis().saturating_sub(post.since.as_millis());
        let age = Duration::from_millis(u64::try_from(age).unwrap_or_default());
        let reason = reason.or_else(|| status.map(|status| format!("it answered {status}")));
        let (event, why) = (&post.event.event, reason.clone().unwrap_or_default());
        let attempts = post.attempts.saturating_add(1);
        let (state, pause, reason) = match next(status, attempts, failures, age) {
            Next::Delivered => (PostState::Delivered, Duration::ZERO, None),
            Next::Again(pause) => {
                let text = format!("{target} did not take `{event}`: {why}; it is tried again");
                if attempts == 1 {
                    warn!("{text}")
                } else {
                    debug!("{text}")
                }
                (PostState::Waiting, pause, reason)
            }
            Next::GiveUp => {
                warn!(
                    "{target} did not take `{event}`: {why}; it is given up, and \
                     `svc webhooks replay` posts it again"
                );
                (PostState::Failed, Duration::ZERO, reason)
            }
        };
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        let next_at = Timestamp::from_millis(now.as_millis().saturating_add(pause));
        Settled { state, next_at, status, reason }
    }

    /// Adds what is recorded of a target.
    pub async fn fill(&self, target: &Target, report: &mut WebhookTarget) -> Result<(), AppError> {
        let key = target.key();
        report.waiting =
            self.store.count_posts(key, PostState::Waiting).await.map_err(unreadable)?;
        report.failed = self.store.count_posts(key, PostState::Failed).await.map_err(unreadable)?;
        report.posts = self.store.last_posts(key, SHOWN).await.map_err(unreadable)?;
        Ok(())
    }

    /// Has posts tried again; tells how many.
    pub async fn replay(
        &self,
        targets: &[&Arc<Target>],
        since: Option<&str>,
    ) -> Result<u64, AppError> {
        let keys: Vec<String> = targets.iter().map(|target| target.key().to_owned()).collect();
        let replayed = self.store.replay_posts(&keys, since, self.clock.now()).await;
        let replayed = replayed.map_err(|error| {
            AppError::busy(
                "nothing is posted again, because the database cannot be written right now; try \
                 again",
            )
            .because(error)
        })?;
        self.news.send_replace(());
        replayed.ok_or_else(|| {
            invalid(
                "`since` names no delivery that is kept; `svc webhooks list` lists the last of \
                 each target",
            )
        })
    }
}

fn unreadable(error: StoreError) -> AppError {
    AppError::busy("the outbox of webhooks cannot be read right now; try again").because(error)
}

/// Posts are tried for less long than they are kept.
const _: () = assert!(GIVE_UP_AFTER.as_secs() < KEPT_FOR.as_secs());
