//! Statements on `session_events`, the history that outlives the records.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, Sqlite};
use std::collections::BTreeMap;
use svc_domain::effect::History;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, ProjectName, SessionRef};
use svc_shared::status::{ExitReason, ResumeMode};

/// The columns of an event without its number.
macro_rules! columns {
    () => {
        "project, instance_id, mode, kind, at, session_ref, exit_reason, detail"
    };
}

const INSERT: &str =
    concat!("INSERT INTO session_events (", columns!(), ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)");

/// Newest rows that are kept.
const KEEP_ROWS: i64 = 10_000;
/// Age of the oldest row that is kept: 365 days.
const KEEP_MILLIS: i64 = 365 * 24 * 3600 * 1000;

const PRUNE: &str = "DELETE FROM session_events WHERE at < ?1 \
     OR id <= (SELECT id FROM session_events ORDER BY id DESC LIMIT 1 OFFSET ?2)";

/// Deletes announcements of forgotten bridges and Direct Sessions.
/// Earlier versions recorded an announcement after its change, perhaps after the bridge was
/// forgotten.
const PRUNE_ANNOUNCEMENTS: &str = "DELETE FROM announcements \
     WHERE instance_id NOT IN (SELECT instance_id FROM bridges) \
     AND instance_id NOT IN (SELECT instance_id FROM hosted_sessions)";

const PAGE: &str = concat!(
    "SELECT id, ",
    columns!(),
    " FROM session_events WHERE id < ?1 AND (?2 IS NULL OR project = ?2) \
     AND (?3 IS NULL OR instance_id = ?3) ORDER BY id DESC LIMIT ?4"
);

/// A lost link is no use of the project.
const LAST_USED: &str = "SELECT project, MAX(at) FROM session_events \
     WHERE kind NOT IN ('link_lost', 'link_restored') GROUP BY project";

pub(crate) const STATEMENTS: &[&str] = &[INSERT, PRUNE, PRUNE_ANNOUNCEMENTS, PAGE, LAST_USED];

/// Which part of the history is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Only events before this one.
    pub before: Option<i64>,
    /// Only of this project.
    pub project: Option<String>,
    /// Only of this bridge, by its full id.
    pub instance: Option<String>,
    /// Most events.
    pub limit: u32,
}

/// An event as it was written, perhaps by a version that knew more words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastEvent {
    /// Grows with every event.
    pub id: i64,
    /// Project of the bridge.
    pub project: String,
    /// The bridge.
    pub instance_id: String,
    /// Its kind.
    pub mode: String,
    /// What happened.
    pub kind: String,
    /// When, milliseconds since the Unix epoch.
    pub at: i64,
    /// Token of its session.
    pub session_ref: Option<String>,
    /// On ends: why.
    pub exit_reason: Option<String>,
    /// What is known besides, in words.
    pub detail: Option<String>,
}

/// What kind of session an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryMode {
    /// A bridge of this mode.
    Bridge(ResumeMode),
    /// A Direct Session.
    Hosted,
}

impl HistoryMode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Bridge(mode) => mode.as_str(),
            Self::Hosted => "hosted",
        }
    }
}

/// One event of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// Project of the bridge.
    pub project: ProjectName,
    /// The bridge.
    pub instance_id: InstanceId,
    /// Its kind.
    pub mode: HistoryMode,
    /// What happened.
    pub kind: History,
    /// When.
    pub at: Timestamp,
    /// Token of its session, if one was attached.
    pub session_ref: Option<SessionRef>,
    /// On ends: why.
    pub exit_reason: Option<ExitReason>,
    /// What is known besides, in words; redacted.
    pub detail: Option<String>,
}

impl FromRow<'_, SqliteRow> for PastEvent {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            project: row.try_get("project")?,
            instance_id: row.try_get("instance_id")?,
            mode: row.try_get("mode")?,
            kind: row.try_get("kind")?,
            at: row.try_get("at")?,
            session_ref: row.try_get("session_ref")?,
            exit_reason: row.try_get("exit_reason")?,
            detail: row.try_get("detail")?,
        })
    }
}

pub(crate) async fn insert(
    transaction: &mut sqlx::Transaction<'static, Sqlite>,
    event: &HistoryRow,
) -> Result<(), StoreError> {
    sqlx::query(INSERT)
        .bind(event.project.as_str())
        .bind(event.instance_id.as_str())
        .bind(event.mode.as_str())
        .bind(event.kind.as_str())
        .bind(event.at.as_millis())
        .bind(event.session_ref.as_ref().map(SessionRef::as_str))
        .bind(event.exit_reason.map(ExitReason::as_str))
        .bind(event.detail.as_deref())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

impl Store {
    /// A part of the history, newest first.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn history(&self, filter: &HistoryFilter) -> Result<Vec<PastEvent>, StoreError> {
        Ok(sqlx::query_as(PAGE)
            .bind(filter.before.unwrap_or(i64::MAX))
            .bind(filter.project.as_deref())
            .bind(filter.instance.as_deref())
            .bind(filter.limit)
            .fetch_all(&self.readers)
            .await?)
    }

    /// Adds an event that no change of a record entails.
    ///
    /// # Errors
    /// It is not in the history.
    pub async fn remember(&self, event: &HistoryRow) -> Result<(), StoreError> {
        self.noted(self.remember_now(event).await)
    }

    async fn remember_now(&self, event: &HistoryRow) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        insert(&mut transaction, event).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// When something last happened in each project that has a history.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn last_used(&self) -> Result<BTreeMap<String, Timestamp>, StoreError> {
        let rows: Vec<(String, i64)> = sqlx::query_as(LAST_USED).fetch_all(&self.readers).await?;
        Ok(rows.into_iter().map(|(name, at)| (name, Timestamp::from_millis(at))).collect())
    }

    /// Deletes history beyond the newest 10,000 rows or older than a year.
    /// Returns how many rows that were.
    ///
    /// # Errors
    /// Nothing was dropped.
    pub async fn prune_history(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.noted(self.prune_now(now).await)
    }

    async fn prune_now(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut transaction = self.begin().await?;
        let done = sqlx::query(PRUNE)
            .bind(now.as_millis().saturating_sub(KEEP_MILLIS))
            .bind(KEEP_ROWS)
            .execute(&mut *transaction)
            .await?;
        sqlx::query(PRUNE_ANNOUNCEMENTS).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done.rows_affected())
    }
}
