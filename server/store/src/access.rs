//! Statements on `api_tokens`, `withdrawn_tokens` and `sign_ins`: who may come in.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use std::sync::atomic::{AtomicUsize, Ordering};
use svc_shared::Timestamp;
use tracing::warn;

/// The columns of a token without its number.
macro_rules! token_columns {
    () => {
        "label, hash, created_at, last_used_at, expires_at, scopes"
    };
}

/// The columns of a sign-in without the time of its end.
macro_rules! sign_in_columns {
    () => {
        "hash, created_at, last_seen_at, expires_at, peer, forwarded_for, user_agent"
    };
}

const TOKENS: &str = concat!(
    "SELECT ",
    token_columns!(),
    " FROM api_tokens WHERE hash NOT IN (SELECT hash FROM withdrawn_tokens) ORDER BY number"
);
const INSERT_TOKEN: &str = concat!(
    "INSERT INTO api_tokens (",
    token_columns!(),
    ") VALUES (?1, ?2, ?3, NULL, ?4, ?5) ON CONFLICT (label) DO NOTHING"
);
const TOKEN_HASH: &str = "SELECT hash FROM api_tokens WHERE label = ?";
const ROTATE_TOKEN: &str = "UPDATE api_tokens SET hash = ?2, last_used_at = NULL WHERE label = ?1";
const DELETE_TOKEN: &str = "DELETE FROM api_tokens WHERE label = ?";
pub(crate) const WITHDRAWN: &str = "SELECT hash, withdrawn_at FROM withdrawn_tokens";
pub(crate) const WITHDRAW: &str = "INSERT INTO withdrawn_tokens (hash, withdrawn_at) VALUES (?, ?) \
     ON CONFLICT DO NOTHING";
const USED_TOKEN: &str = "UPDATE api_tokens SET last_used_at = ?2 WHERE hash = ?1";

const SIGN_INS: &str = concat!(
    "SELECT ",
    sign_in_columns!(),
    " FROM sign_ins WHERE revoked_at IS NULL ORDER BY created_at, hash"
);
const INSERT_SIGN_IN: &str =
    concat!("INSERT INTO sign_ins (", sign_in_columns!(), ") VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6)");
const REVOKE_SIGN_IN: &str =
    "UPDATE sign_ins SET revoked_at = ?2 WHERE hash = ?1 AND revoked_at IS NULL";
const REVOKE_SIGN_INS: &str = "UPDATE sign_ins SET revoked_at = ? WHERE revoked_at IS NULL";
const REVOKE_OTHER_SIGN_INS: &str =
    "UPDATE sign_ins SET revoked_at = ?2 WHERE hash <> ?1 AND revoked_at IS NULL";
const SEEN_SIGN_IN: &str = "UPDATE sign_ins SET last_seen_at = ?2 WHERE hash = ?1";
/// Keeps the newest by the order of writing.
/// A clock that was set back must not make the newest the oldest.
const PRUNE_SIGN_INS: &str = "DELETE FROM sign_ins WHERE expires_at < ?1 OR revoked_at < ?1 \
     OR hash NOT IN (SELECT hash FROM sign_ins ORDER BY rowid DESC LIMIT ?2)";

pub(crate) const STATEMENTS: &[&str] = &[
    TOKENS,
    INSERT_TOKEN,
    TOKEN_HASH,
    ROTATE_TOKEN,
    DELETE_TOKEN,
    WITHDRAWN,
    WITHDRAW,
    USED_TOKEN,
    SIGN_INS,
    INSERT_SIGN_IN,
    REVOKE_SIGN_IN,
    REVOKE_SIGN_INS,
    REVOKE_OTHER_SIGN_INS,
    SEEN_SIGN_IN,
    PRUNE_SIGN_INS,
];

/// Expired and revoked sign-ins are kept this long: 30 days.
const KEEP_SIGN_INS_MILLIS: i64 = 30 * 24 * 3600 * 1000;
/// Newest sign-ins that are kept.
const KEEP_SIGN_INS: i64 = 200;

/// A named token. Only the hash of its secret exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Unique, chosen by the operator.
    pub label: String,
    /// SHA-256 of the whole token, lower-case hex.
    pub hash: String,
    /// When it was issued; a rotation does not change it.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// Words separated by blanks; none allows everything.
    pub scopes: Option<String>,
}

/// A signed-in browser that was not signed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInRow {
    /// SHA-256 of the session id, lower-case hex.
    pub hash: String,
    /// When it signed in.
    pub created_at: Timestamp,
    /// When it was last seen, to the minute.
    pub last_seen_at: Timestamp,
    /// When it ends by its age.
    pub expires_at: Timestamp,
    /// Address it came from.
    pub peer: String,
    /// What a trusted proxy said about where it came from; for display only.
    pub forwarded_for: Option<String>,
    /// The browser, as it calls itself.
    pub user_agent: String,
}

fn token(row: &SqliteRow) -> Result<TokenRow, sqlx::Error> {
    Ok(TokenRow {
        label: row.try_get(0)?,
        hash: row.try_get(1)?,
        created_at: Timestamp::from_millis(row.try_get(2)?),
        last_used_at: row.try_get::<Option<i64>, _>(3)?.map(Timestamp::from_millis),
        expires_at: row.try_get::<Option<i64>, _>(4)?.map(Timestamp::from_millis),
        scopes: row.try_get(5)?,
    })
}

fn sign_in(row: &SqliteRow) -> Result<SignInRow, sqlx::Error> {
    Ok(SignInRow {
        hash: row.try_get(0)?,
        created_at: Timestamp::from_millis(row.try_get(1)?),
        last_seen_at: Timestamp::from_millis(row.try_get(2)?),
        expires_at: Timestamp::from_millis(row.try_get(3)?),
        peer: row.try_get(4)?,
        forwarded_for: row.try_get(5)?,
        user_agent: row.try_get(6)?,
    })
}

/// The rows that can be read. The others are logged when their number changes.
fn readable<T>(
    rows: &[SqliteRow],
    read: impl Fn(&SqliteRow) -> Result<T, sqlx::Error>,
    table: &str,
    last_bad: &AtomicUsize,
) -> Vec<T> {
    let mut first_cause = None;
    let good: Vec<T> = rows
        .iter()
        .filter_map(|row| read(row).map_err(|cause| first_cause.get_or_insert(cause)).ok())
        .collect();
    let bad = rows.len() - good.len();
    if last_bad.swap(bad, Ordering::Relaxed) != bad
        && let Some(cause) = first_cause
    {
        warn!(cause = %cause, "{bad} rows of `{table}` cannot be understood; they let nobody in");
    }
    good
}

impl Store {
    /// The named tokens that were not withdrawn, oldest first.
    /// A row that cannot be read gives no access and is left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn tokens(&self) -> Result<Vec<TokenRow>, StoreError> {
        static LAST_BAD: AtomicUsize = AtomicUsize::new(0);
        let rows = sqlx::query(TOKENS).fetch_all(&self.readers).await?;
        Ok(readable(&rows, token, "api_tokens", &LAST_BAD))
    }

    /// Adds a token; `false` when its label is taken.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn add_token(&self, new: &TokenRow) -> Result<bool, StoreError> {
        self.noted(self.add_token_now(new).await)
    }

    async fn add_token_now(&self, new: &TokenRow) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let done = sqlx::query(INSERT_TOKEN)
            .bind(&new.label)
            .bind(&new.hash)
            .bind(new.created_at.as_millis())
            .bind(new.expires_at.map(Timestamp::as_millis))
            .bind(&new.scopes)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(done.rows_affected() == 1)
    }

    /// Gives a token another secret, or none, which deletes the token.
    /// The old hash is withdrawn for good. `false` when there is no such label.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn withdraw_token(
        &self,
        label: &str,
        new_hash: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.noted(self.withdraw_token_now(label, new_hash, now).await)
    }

    async fn withdraw_token_now(
        &self,
        label: &str,
        new_hash: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let old: Option<String> =
            sqlx::query_scalar(TOKEN_HASH).bind(label).fetch_optional(&mut *transaction).await?;
        let Some(old) = old else { return Ok(false) };
        sqlx::query(WITHDRAW).bind(old).bind(now.as_millis()).execute(&mut *transaction).await?;
        let change = match new_hash {
            Some(hash) => sqlx::query(ROTATE_TOKEN).bind(label).bind(hash),
            None => sqlx::query(DELETE_TOKEN).bind(label),
        };
        change.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Notes that a token was used.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn token_used(&self, hash: &str, at: Timestamp) -> Result<(), StoreError> {
        self.noted(self.touch(USED_TOKEN, hash, at).await).map(drop)
    }

    /// The sign-ins that were not revoked, oldest first.
    /// A row that cannot be read gives no access and is left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn sign_ins(&self) -> Result<Vec<SignInRow>, StoreError> {
        static LAST_BAD: AtomicUsize = AtomicUsize::new(0);
        let rows = sqlx::query(SIGN_INS).fetch_all(&self.readers).await?;
        Ok(readable(&rows, sign_in, "sign_ins", &LAST_BAD))
    }

    /// Adds a sign-in, and drops those that are long over.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn add_sign_in(&self, new: &SignInRow) -> Result<(), StoreError> {
        self.noted(self.add_sign_in_now(new).await)
    }

    async fn add_sign_in_now(&self, new: &SignInRow) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(INSERT_SIGN_IN)
            .bind(&new.hash)
            .bind(new.created_at.as_millis())
            .bind(new.expires_at.as_millis())
            .bind(&new.peer)
            .bind(&new.forwarded_for)
            .bind(&new.user_agent)
            .execute(&mut *transaction)
            .await?;
        sqlx::query(PRUNE_SIGN_INS)
            .bind(new.created_at.as_millis().saturating_sub(KEEP_SIGN_INS_MILLIS))
            .bind(KEEP_SIGN_INS)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Revokes one sign-in; `false` when it is not there.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn revoke_sign_in(&self, hash: &str, at: Timestamp) -> Result<bool, StoreError> {
        self.noted(self.touch(REVOKE_SIGN_IN, hash, at).await)
    }

    /// Revokes every sign-in.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn revoke_all_sign_ins(&self, at: Timestamp) -> Result<(), StoreError> {
        self.noted(self.revoke_all_now(at).await)
    }

    async fn revoke_all_now(&self, at: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(REVOKE_SIGN_INS).bind(at.as_millis()).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Revokes every sign-in but one, and returns how many.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn revoke_other_sign_ins(&self, but: &str, at: Timestamp) -> Result<u64, StoreError> {
        self.noted(self.change(REVOKE_OTHER_SIGN_INS, but, at).await)
    }

    /// Notes that a signed-in browser was seen.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn sign_in_seen(&self, hash: &str, at: Timestamp) -> Result<(), StoreError> {
        self.noted(self.touch(SEEN_SIGN_IN, hash, at).await).map(drop)
    }

    async fn touch(&self, sql: &str, hash: &str, at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.change(sql, hash, at).await? > 0)
    }

    async fn change(&self, sql: &str, hash: &str, at: Timestamp) -> Result<u64, StoreError> {
        let mut transaction = self.begin().await?;
        let done =
            sqlx::query(sql).bind(hash).bind(at.as_millis()).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done.rows_affected())
    }
}
