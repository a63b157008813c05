//! Statements on `session_events`: what happened to bridges, kept after they are forgotten.

use crate::{Store, StoreError};
use sqlx::Sqlite;
use svc_domain::effect::History;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, ProjectName, SessionRef};
use svc_shared::status::{ExitReason, ResumeMode};

const INSERT: &str = "INSERT INTO session_events \
     (project, instance_id, mode, kind, at, session_ref, exit_reason) VALUES (?, ?, ?, ?, ?, ?, ?)";

/// Newest rows that are kept.
const KEEP_ROWS: i64 = 10_000;
/// Age of the oldest row that is kept: 365 days.
const KEEP_MILLIS: i64 = 365 * 24 * 3600 * 1000;

const PRUNE: &str = "DELETE FROM session_events WHERE at < ?1 \
     OR id <= (SELECT id FROM session_events ORDER BY id DESC LIMIT 1 OFFSET ?2)";

/// An announcement may be claimed just after its bridge was forgotten.
const PRUNE_ANNOUNCEMENTS: &str = "DELETE FROM announcements \
     WHERE instance_id NOT IN (SELECT instance_id FROM bridges)";

pub(crate) const STATEMENTS: &[&str] = &[INSERT, PRUNE, PRUNE_ANNOUNCEMENTS];

/// One event of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// Project of the bridge.
    pub project: ProjectName,
    /// The bridge.
    pub instance_id: InstanceId,
    /// Its kind.
    pub mode: ResumeMode,
    /// What happened.
    pub kind: History,
    /// When.
    pub at: Timestamp,
    /// Token of its session, if one was attached.
    pub session_ref: Option<SessionRef>,
    /// On ends: why.
    pub exit_reason: Option<ExitReason>,
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
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

impl Store {
    /// Drops history beyond the newest 10,000 rows or older than a year, and tells how many rows
    /// that were.
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
