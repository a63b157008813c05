//! Statements on `notification_deliveries`: what became of the last notifications.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use svc_shared::Timestamp;
use svc_shared::internal::notifications::NotificationDelivery;

const KEEP: &str = "INSERT INTO notification_deliveries \
     (target, delivery, event, title, at, state, status, reason) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (target, delivery) DO UPDATE \
     SET state = excluded.state, status = excluded.status, reason = excluded.reason";
const TRIM: &str = "DELETE FROM notification_deliveries WHERE target = ?1 AND rowid NOT IN \
     (SELECT rowid FROM notification_deliveries WHERE target = ?1 ORDER BY rowid DESC LIMIT ?2)";
const LIST: &str = "SELECT delivery, event, title, at, state, status, reason \
     FROM notification_deliveries WHERE target = ?1 ORDER BY rowid DESC LIMIT ?2";
const INTERRUPT: &str = "UPDATE notification_deliveries SET state = 'failed', reason = ?1 \
     WHERE state IN ('waiting', 'sent')";
const FORGET: &str = "DELETE FROM notification_deliveries \
     WHERE target NOT IN (SELECT value FROM json_each(?1))";

pub(crate) const STATEMENTS: &[&str] = &[KEEP, TRIM, LIST, INTERRUPT, FORGET];

fn read(row: &SqliteRow) -> Result<Option<NotificationDelivery>, sqlx::Error> {
    let Ok(state) = row.try_get::<String, _>("state")?.parse() else { return Ok(None) };
    Ok(Some(NotificationDelivery {
        delivery: row.try_get("delivery")?,
        event: row.try_get("event")?,
        title: row.try_get("title")?,
        at: Timestamp::from_millis(row.try_get("at")?),
        state,
        status: row.try_get::<Option<i64>, _>("status")?.and_then(|code| code.try_into().ok()),
        reason: row.try_get("reason")?,
    }))
}

impl Store {
    /// The last notifications of a target, the newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn deliveries(
        &self,
        target: &str,
        most: u32,
    ) -> Result<Vec<NotificationDelivery>, StoreError> {
        let query = sqlx::query(LIST).bind(target.to_owned()).bind(i64::from(most));
        let rows = query.fetch_all(&self.readers).await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            all.extend(read(row)?);
        }
        Ok(all)
    }

    /// Records how a notification stands; of its target the last `most` are kept.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn keep_delivery(
        &self,
        target: &str,
        one: &NotificationDelivery,
        most: u32,
    ) -> Result<(), StoreError> {
        let written = async {
            let mut transaction = self.begin().await?;
            sqlx::query(KEEP)
                .bind(target.to_owned())
                .bind(one.delivery.clone())
                .bind(one.event.clone())
                .bind(one.title.clone())
                .bind(one.at.as_millis())
                .bind(one.state.as_str())
                .bind(one.status.map(i64::from))
                .bind(one.reason.clone())
                .execute(&mut *transaction)
                .await?;
            sqlx::query(TRIM)
                .bind(target.to_owned())
                .bind(i64::from(most))
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(())
        };
        self.noted(written.await)
    }

    /// Gives up what an earlier service left; forgets targets that are not these.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn begin_deliveries(
        &self,
        targets: &[String],
        reason: &str,
    ) -> Result<(), StoreError> {
        let targets = serde_json::Value::from(targets.to_vec()).to_string();
        let written = async {
            let mut transaction = self.begin().await?;
            sqlx::query(INTERRUPT).bind(reason.to_owned()).execute(&mut *transaction).await?;
            sqlx::query(FORGET).bind(targets).execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(())
        };
        self.noted(written.await)
    }
}
