//! Statements on the outbox: events that are posted until each target took them.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite, Transaction};
use std::sync::atomic::Ordering;
use svc_domain::effect::Lifecycle;
use svc_shared::Timestamp;
use svc_shared::events::EventName;
use svc_shared::ids::InstanceId;
use svc_shared::internal::webhooks::{PostState, WebhookPost};

const OWE: &str = "INSERT INTO outbox_owed (instance_id, generation, event, at) \
     VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
const OWED: &str = "SELECT instance_id, generation, event, at FROM outbox_owed \
     ORDER BY at, generation, event = 'ready'";
const PAID: &str =
    "DELETE FROM outbox_owed WHERE instance_id = ?1 AND generation = ?2 AND event = ?3";
const FORGIVE: &str = "DELETE FROM outbox_owed";
const ANY: &str = "SELECT EXISTS (SELECT 1 FROM outbox_events)";
const EMPTY: &str = "DELETE FROM outbox_events";
const ADD: &str = "INSERT INTO outbox_events (delivery, event, at, body) VALUES (?1, ?2, ?3, ?4)";
const POST: &str = "INSERT INTO outbox_posts (target, seq, state, since) \
     SELECT value, ?2, 'waiting', ?3 FROM json_each(?1)";
const NEXT: &str = "SELECT e.seq, e.delivery, e.event, e.at, e.body, p.attempts, p.since, \
     p.next_at FROM outbox_posts p JOIN outbox_events e ON e.seq = p.seq \
     WHERE p.target = ?1 AND p.state = 'waiting' ORDER BY p.seq LIMIT 1";
const SETTLE: &str = "UPDATE outbox_posts SET state = ?3, attempts = attempts + 1, next_at = ?4, \
     status = ?5, reason = ?6 WHERE target = ?1 AND seq = ?2 AND state = 'waiting'";
const LAST: &str = "SELECT e.delivery, e.event, e.at, p.state, p.attempts, p.next_at, p.status, \
     p.reason FROM outbox_posts p JOIN outbox_events e ON e.seq = p.seq \
     WHERE p.target = ?1 ORDER BY p.seq DESC LIMIT ?2";
const COUNT: &str = "SELECT count(*) FROM outbox_posts WHERE target = ?1 AND state = ?2";
const REPLAY_FAILED: &str = "UPDATE outbox_posts SET state = 'waiting', attempts = 0, since = ?2, \
     next_at = 0, status = NULL, reason = NULL WHERE state = 'failed' AND target IN (SELECT value FROM json_each(?1))";
const REPLAY_SINCE: &str = "UPDATE outbox_posts SET state = 'waiting', attempts = 0, since = ?2, \
     next_at = 0, status = NULL, reason = NULL WHERE state <> 'waiting' AND seq > ?3 \
     AND target IN (SELECT value FROM json_each(?1))";
const SEQ: &str = "SELECT seq FROM outbox_events WHERE delivery = ?1";
const FORGET_TARGETS: &str =
    "DELETE FROM outbox_posts WHERE target NOT IN (SELECT value FROM json_each(?1))";
const FORGET_POSTLESS: &str = "DELETE FROM outbox_events \
     WHERE NOT EXISTS (SELECT 1 FROM outbox_posts p WHERE p.seq = outbox_events.seq)";
const FORGET_OLD: &str = "DELETE FROM outbox_events WHERE at < ?1 AND NOT EXISTS \
     (SELECT 1 FROM outbox_posts p WHERE p.seq = outbox_events.seq AND p.state = 'waiting')";
const LOSE: &str = "SELECT count(DISTINCT seq) FROM outbox_posts WHERE state = 'waiting' \
     AND seq <= (SELECT max(seq) FROM outbox_events) - ?1";
const TRIM: &str =
    "DELETE FROM outbox_events WHERE seq <= (SELECT max(seq) FROM outbox_events) - ?1";

pub(crate) const STATEMENTS: &[&str] = &[
    OWE,
    OWED,
    PAID,
    FORGIVE,
    ANY,
    EMPTY,
    ADD,
    POST,
    NEXT,
    SETTLE,
    LAST,
    COUNT,
    REPLAY_FAILED,
    REPLAY_SINCE,
    SEQ,
    FORGET_TARGETS,
    FORGET_POSTLESS,
    FORGET_OLD,
    LOSE,
    TRIM,
];

/// A step of a session that was recorded, and is not yet in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    /// The session.
    pub instance: InstanceId,
    /// Its generation then.
    pub generation: u32,
    /// The step.
    pub event: Lifecycle,
    /// When it was recorded.
    pub at: Timestamp,
}

/// An event for the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxEvent {
    /// The id that every target is told.
    pub delivery: String,
    /// Its name.
    pub event: String,
    /// When it happened.
    pub at: Timestamp,
    /// JSON, redacted.
    pub body: String,
}

/// A post that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxPost {
    /// Its place in the order.
    pub seq: i64,
    /// What is posted.
    pub event: OutboxEvent,
    /// How often it was tried.
    pub attempts: u32,
    /// Since when it waits.
    pub since: Timestamp,
    /// Before this it is not tried again.
    pub next_at: Timestamp,
}

/// How a post stands after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Whether it waits for another attempt.
    pub state: PostState,
    /// When it is tried again.
    pub next_at: Timestamp,
    /// What the target answered.
    pub status: Option<u16>,
    /// Why it was not taken.
    pub reason: Option<String>,
}

fn list(targets: &[String]) -> String {
    serde_json::Value::from(targets.to_vec()).to_string()
}

fn time(row: &SqliteRow, column: &str) -> Result<Timestamp, sqlx::Error> {
    row.try_get(column).map(Timestamp::from_millis)
}

fn count(row: &SqliteRow, column: &str) -> Result<u32, sqlx::Error> {
    Ok(u32::try_from(row.try_get::<i64, _>(column)?).unwrap_or(u32::MAX))
}

/// Notes a step in the transaction that records it.
pub(crate) async fn owe(
    transaction: &mut Transaction<'_, Sqlite>,
    id: &InstanceId,
    generation: u32,
    event: Lifecycle,
    now: Timestamp,
) -> Result<(), StoreError> {
    let query = sqlx::query(OWE).bind(id.as_str()).bind(generation).bind(event.as_str());
    query.bind(now.as_millis()).execute(&mut **transaction).await?;
    Ok(())
}

impl Store {
    /// Has every announced step noted for the outbox from now on, or not any more.
    pub fn owe_events(&self, are_owed: bool) {
        self.owes.store(are_owed, Ordering::Release);
    }

    /// Forgets what is of other targets than these, or older than `before`.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn begin_outbox(
        &self,
        targets: &[String],
        before: Timestamp,
    ) -> Result<(), StoreError> {
        let begun = async {
            let mut transaction = self.begin().await?;
            let query = sqlx::query(FORGET_TARGETS).bind(list(targets));
            query.execute(&mut *transaction).await?;
            sqlx::query(FORGET_POSTLESS).execute(&mut *transaction).await?;
            let query = sqlx::query(FORGET_OLD).bind(before.as_millis());
            query.execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(())
        };
        self.noted(begun.await)
    }

    /// The steps that are not yet in the outbox, the oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn owed_events(&self) -> Result<Vec<Owed>, StoreError> {
        let rows = sqlx::query(OWED).fetch_all(&self.readers).await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            let name: Option<EventName> = row.try_get::<String, _>("event")?.parse().ok();
            let id = row.try_get::<String, _>("instance_id")?.parse().ok();
            if let (Some(instance), Some(event)) = (id, name.and_then(Lifecycle::of)) {
                let generation = count(row, "generation")?;
                all.push(Owed { instance, generation, event, at: time(row, "at")? });
            }
        }
        Ok(all)
    }

    /// Forgets everything, where there is no outbox any more.
    ///
    /// Writes only if there is anything; `is_owed` says that steps are.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn end_outbox(&self, is_owed: bool) -> Result<(), StoreError> {
        let has_posts: bool = sqlx::query_scalar(ANY).fetch_one(&self.readers).await?;
        if !has_posts && !is_owed {
            return Ok(());
        }
        let ended = async {
            let mut transaction = self.begin().await?;
            sqlx::query(FORGIVE).execute(&mut *transaction).await?;
            sqlx::query(EMPTY).execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(())
        };
        self.noted(ended.await)
    }

    /// Puts an event into the outbox of each target.
    ///
    /// The step that it tells of is owed no more. Only the step goes where there is no event. Of all events the last `most` are kept; tells
    /// how many were lost that a target still waited for.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn add_to_outbox(
        &self,
        event: Option<&OutboxEvent>,
        targets: &[String],
        owed: Option<&Owed>,
        most: u32,
    ) -> Result<u64, StoreError> {
        let added = async {
            let mut transaction = self.begin().await?;
            let mut lost = 0;
            if let Some(event) = event {
                let query = sqlx::query(ADD).bind(&event.delivery).bind(&event.event);
                let query = query.bind(event.at.as_millis()).bind(&event.body);
                let seq = query.execute(&mut *transaction).await?.last_insert_rowid();
                let query = sqlx::query(POST).bind(list(targets)).bind(seq);
                query.bind(event.at.as_millis()).execute(&mut *transaction).await?;
                let query = sqlx::query_scalar(LOSE).bind(i64::from(most));
                let waited: i64 = query.fetch_one(&mut *transaction).await?;
                sqlx::query(TRIM).bind(i64::from(most)).execute(&mut *transaction).await?;
                lost = u64::try_from(waited).unwrap_or_default();
            }
            if let Some(Owed { instance, generation, event, .. }) = owed {
                let query = sqlx::query(PAID).bind(instance.as_str()).bind(*generation);
                query.bind(event.as_str()).execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(lost)
        };
        self.noted(added.await)
    }

    /// The oldest post of a target that waits.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn next_post(&self, target: &str) -> Result<Option<OutboxPost>, StoreError> {
        let query = sqlx::query(NEXT).bind(target.to_owned());
        let Some(row) = query.fetch_optional(&self.readers).await? else { return Ok(None) };
        let event = OutboxEvent {
            delivery: row.try_get("delivery")?,
            event: row.try_get("event")?,
            at: time(&row, "at")?,
            body: row.try_get("body")?,
        };
        Ok(Some(OutboxPost {
            seq: row.try_get("seq")?,
            event,
            attempts: count(&row, "attempts")?,
            since: time(&row, "since")?,
            next_at: time(&row, "next_at")?,
        }))
    }

    /// Records what an attempt led to.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn settle_post(
        &self,
        target: &str,
        seq: i64,
        settled: &Settled,
    ) -> Result<(), StoreError> {
        let written = async {
            let mut transaction = self.begin().await?;
            let query = sqlx::query(SETTLE).bind(target.to_owned()).bind(seq);
            let query = query.bind(settled.state.as_str()).bind(settled.next_at.as_millis());
            let query = query.bind(settled.status.map(i64::from)).bind(settled.reason.clone());
            query.execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(())
        };
        self.noted(written.await)
    }

    /// The last posts of a target, the newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn last_posts(
        &self,
        target: &str,
        most: u32,
    ) -> Result<Vec<WebhookPost>, StoreError> {
        let query = sqlx::query(LAST).bind(target.to_owned()).bind(i64::from(most));
        let rows = query.fetch_all(&self.readers).await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            let Ok(state) = row.try_get::<String, _>("state")?.parse() else { continue };
            let next = time(row, "next_at")?;
            let status: Option<i64> = row.try_get("status")?;
            all.push(WebhookPost {
                delivery: row.try_get("delivery")?,
                event: row.try_get("event")?,
                at: time(row, "at")?,
                state,
                attempts: count(row, "attempts")?,
                next_at: (state == PostState::Waiting && next.as_millis() > 0).then_some(next),
                status: status.and_then(|status| status.try_into().ok()),
                reason: row.try_get("reason")?,
            });
        }
        Ok(all)
    }

    /// How many posts of a target stand like this.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn count_posts(&self, target: &str, state: PostState) -> Result<u64, StoreError> {
        let query = sqlx::query_scalar(COUNT).bind(target.to_owned()).bind(state.as_str());
        let found: i64 = query.fetch_one(&self.readers).await?;
        Ok(u64::try_from(found).unwrap_or_default())
    }

    /// Has posts tried again: those that failed, or all after the one with this id.
    ///
    /// Tells how many; `None` where no event has this id.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn replay_posts(
        &self,
        targets: &[String],
        after: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let replayed = async {
            let mut transaction = self.begin().await?;
            let done = match after {
                None => {
                    let query = sqlx::query(REPLAY_FAILED).bind(list(targets));
                    query.bind(now.as_millis()).execute(&mut *transaction).await?
                }
                Some(delivery) => {
                    let query = sqlx::query_scalar(SEQ).bind(delivery.to_owned());
                    let found: Option<i64> = query.fetch_optional(&mut *transaction).await?;
                    let Some(seq) = found else { return Ok(None) };
                    let query = sqlx::query(REPLAY_SINCE).bind(list(targets));
                    query.bind(now.as_millis()).bind(seq).execute(&mut *transaction).await?
                }
            };
            transaction.commit().await?;
            Ok(Some(done.rows_affected()))
        };
        self.noted(replayed.await)
    }
}
