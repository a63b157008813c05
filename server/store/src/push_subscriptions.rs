//! Statements on `push_subscriptions`.
//!
//! These are devices that are notified while the page is closed.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row};
use svc_shared::Timestamp;

const ALL: &str = "SELECT id, endpoint, p256dh, auth, label, events, contact, channel, credential, \
     mark, created_at, last_delivery_at, last_error FROM push_subscriptions \
     ORDER BY created_at, id";
const COUNT: &str = "SELECT count(*) FROM push_subscriptions";
const KNOWN: &str = "SELECT id FROM push_subscriptions WHERE endpoint = ?";
/// The same endpoint stays the same device.
const KEEP: &str = "INSERT INTO push_subscriptions (id, endpoint, p256dh, auth, label, events, \
     contact, channel, credential, mark, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
     ON CONFLICT (endpoint) DO UPDATE SET p256dh = excluded.p256dh, auth = excluded.auth, \
     label = CASE WHEN ?12 THEN excluded.label ELSE label END, \
     events = CASE WHEN ?13 THEN excluded.events ELSE events END, contact = excluded.contact, \
     channel = excluded.channel, credential = excluded.credential, mark = excluded.mark";
const REMOVE: &str = "DELETE FROM push_subscriptions WHERE id = ?";
/// Only this one: the device may have subscribed again meanwhile.
const REMOVE_DEAD: &str = "DELETE FROM push_subscriptions WHERE id = ? AND p256dh = ? \
     AND channel = ? AND credential IS ? AND mark = ?";
const DELIVERED: &str =
    "UPDATE push_subscriptions SET last_delivery_at = ?1, last_error = NULL WHERE id = ?2";
const FAILED: &str = "UPDATE push_subscriptions SET last_error = ?1 WHERE id = ?2";

pub(crate) const STATEMENTS: &[&str] =
    &[ALL, COUNT, KNOWN, KEEP, REMOVE, REMOVE_DEAD, DELIVERED, FAILED];

/// A device. Has no debug form: nearly all of it is secret.
#[derive(Clone, PartialEq, Eq)]
pub struct PushRow {
    /// Ours.
    pub id: String,
    /// Where notifications for it are taken.
    pub endpoint: String,
    /// Its public key, base64url.
    pub p256dh: String,
    /// Its secret, base64url.
    pub auth: String,
    /// What people call it.
    pub label: String,
    /// Words separated by blanks.
    pub events: String,
    /// Address of the page that it was switched on at.
    pub contact: Option<String>,
    /// The way its person came in by.
    pub channel: String,
    /// Hash of the credential, where there is one.
    pub credential: Option<String>,
    /// Changes with the password.
    pub mark: String,
    /// When it was switched on first.
    pub created_at: Timestamp,
    /// When a notification was accepted last.
    pub last_delivery_at: Option<Timestamp>,
    /// Why the last one failed.
    pub last_error: Option<String>,
}

impl FromRow<'_, SqliteRow> for PushRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let last: Option<i64> = row.try_get("last_delivery_at")?;
        Ok(Self {
            id: row.try_get("id")?,
            endpoint: row.try_get("endpoint")?,
            p256dh: row.try_get("p256dh")?,
            auth: row.try_get("auth")?,
            label: row.try_get("label")?,
            events: row.try_get("events")?,
            contact: row.try_get("contact")?,
            channel: row.try_get("channel")?,
            credential: row.try_get("credential")?,
            mark: row.try_get("mark")?,
            created_at: Timestamp::from_millis(row.try_get("created_at")?),
            last_delivery_at: last.map(Timestamp::from_millis),
            last_error: row.try_get("last_error")?,
        })
    }
}

/// What somebody chose, and what is only usual.
///
/// A device that is known keeps what was chosen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The name.
    pub label: bool,
    /// The events.
    pub events: bool,
}

/// What became of a device that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It is new.
    New,
    /// The same endpoint was there, under this id.
    Replaced(String),
    /// There are as many as there may be.
    Full,
}

impl Store {
    /// Every device, the oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn push_subscriptions(&self) -> Result<Vec<PushRow>, StoreError> {
        Ok(sqlx::query_as(ALL).fetch_all(&self.readers).await?)
    }

    /// Keeps a device, or what is new of one that is known.
    /// A new one only while there are fewer than `most`.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn keep_push_subscription(
        &self,
        new: &PushRow,
        chosen: Chosen,
        most: i64,
    ) -> Result<Kept, StoreError> {
        let kept = async {
            let mut transaction = self.begin().await?;
            let known: Option<String> = sqlx::query_scalar(KNOWN)
                .bind(&new.endpoint)
                .fetch_optional(&mut *transaction)
                .await?;
            let count: i64 = sqlx::query_scalar(COUNT).fetch_one(&mut *transaction).await?;
            if known.is_none() && count >= most {
                return Ok(Kept::Full);
            }
            sqlx::query(KEEP)
                .bind(&new.id)
                .bind(&new.endpoint)
                .bind(&new.p256dh)
                .bind(&new.auth)
                .bind(&new.label)
                .bind(&new.events)
                .bind(&new.contact)
                .bind(&new.channel)
                .bind(&new.credential)
                .bind(&new.mark)
                .bind(new.created_at.as_millis())
                .bind(chosen.label)
                .bind(chosen.events)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(known.map_or(Kept::New, Kept::Replaced))
        };
        self.noted(kept.await)
    }

    /// Forgets a device. `false` when it is not there.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn remove_push_subscription(&self, id: &str) -> Result<bool, StoreError> {
        let removed = async {
            let mut transaction = self.begin().await?;
            let done = sqlx::query(REMOVE).bind(id).execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(done.rows_affected() == 1)
        };
        self.noted(removed.await)
    }

    /// Forgets a device whose subscription or credential ended.
    /// One that was switched on again meanwhile stays.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn remove_dead_push_subscription(&self, row: &PushRow) -> Result<bool, StoreError> {
        let removed = async {
            let mut transaction = self.begin().await?;
            let query = sqlx::query(REMOVE_DEAD)
                .bind(&row.id)
                .bind(&row.p256dh)
                .bind(&row.channel)
                .bind(&row.credential)
                .bind(&row.mark);
            let done = query.execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(done.rows_affected() == 1)
        };
        self.noted(removed.await)
    }

    /// Notes what became of a notification: accepted, or why not.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn push_delivered(
        &self,
        id: &str,
        failure: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let noted = async {
            let mut transaction = self.begin().await?;
            let query = match failure {
                None => sqlx::query(DELIVERED).bind(now.as_millis()).bind(id),
                Some(why) => sqlx::query(FAILED).bind(why).bind(id),
            };
            query.execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(())
        };
        self.noted(noted.await)
    }
}
