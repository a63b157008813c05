//! The registry as a file of its own: copied for a backup, judged before a restore.

use crate::access::{WITHDRAW, WITHDRAWN};
use crate::connection::options;
use crate::inspect::{Depth, Found, Side, Subject};
use crate::migrate;
use crate::open::open_any;
use crate::open_error::OpenError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};
use std::path::Path;

/// The first schema that knows withdrawn tokens.
const KNOWS_WITHDRAWN: i64 = 5;

/// A token that was revoked or rotated, and must stay so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawn {
    /// SHA-256 of the token, lower-case hexadecimal digits.
    pub hash: String,
    /// When it was withdrawn, milliseconds since the Unix epoch.
    pub at: i64,
}

/// Copies the registry as it is at one moment, and returns its schema.
///
/// Works beside a service that writes, and with a schema that a start would migrate. `to` is an
/// empty file, whose mode stays. Without a registry nothing is copied and the schema is none.
///
/// # Errors
/// The registry is not ours or cannot be read, or the copy cannot be written.
pub async fn copy_registry(state_dir: &Path, to: &Path) -> Result<Option<i64>, OpenError> {
    let Some(store) = open_any(state_dir).await? else { return Ok(None) };
    let path = to.to_owned();
    let Some(text) = to.to_str() else {
        let cause = std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "the path of the copy is not valid UTF-8",
        );
        return Err(OpenError::Io { path, cause });
    };
    let done = sqlx::query("VACUUM INTO ?").bind(text).execute(&store.readers).await;
    store.close().await;
    done.map_err(|cause| OpenError::Sqlite { path: path.clone(), cause })?;
    match check_copy(to).await? {
        Some(version) => Ok(Some(version)),
        None => Err(OpenError::Missing(path)),
    }
}

/// Judges a database file as a start would, and returns its schema.
///
/// The schema is none without a file.
/// Its objects are compared with ours one by one, and every page is checked.
///
/// # Errors
/// It is not ours, newer, damaged, or something that belongs to its content is beside it.
pub async fn check_copy(path: &Path) -> Result<Option<i64>, OpenError> {
    let state_dir = path.parent().unwrap_or(path);
    let subject = Subject { state_dir, path, scripts: migrate::ALL };
    match subject.look().await? {
        Found::Nothing => Ok(None),
        Found::Database(Side::Nothing) => {
            subject.check(Side::Nothing, Depth::Whole).await.map(Some)
        }
        Found::Database(Side::Log { .. } | Side::Journal) => Err(OpenError::Unusable {
            path: path.to_owned(),
            problem: "a write-ahead log or a journal is beside it".to_owned(),
            snapshot: None,
        }),
    }
}

/// The tokens that were withdrawn in a state directory.
///
/// # Errors
/// The registry is not ours or cannot be read.
pub async fn withdrawn_tokens(state_dir: &Path) -> Result<Vec<Withdrawn>, OpenError> {
    let Some(store) = open_any(state_dir).await? else { return Ok(Vec::new()) };
    let read = async {
        let version: i64 =
            sqlx::query_scalar("PRAGMA user_version").fetch_one(&store.readers).await?;
        if version < KNOWS_WITHDRAWN {
            return Ok(Vec::new());
        }
        sqlx::query_as::<_, (String, i64)>(WITHDRAWN).fetch_all(&store.readers).await
    }
    .await;
    store.close().await;
    let rows = read.map_err(|cause| OpenError::Sqlite { path: state_dir.join("svc.db"), cause })?;
    Ok(rows.into_iter().map(|(hash, at)| Withdrawn { hash, at }).collect())
}

/// Withdraws tokens in a database that nobody has open.
///
/// It passed [`check_copy`].
///
/// # Errors
/// Nothing was written.
pub async fn carry_withdrawn_tokens(path: &Path, tokens: &[Withdrawn]) -> Result<(), OpenError> {
    let failed = |cause| OpenError::Sqlite { path: path.to_owned(), cause };
    // Without a log of its own nothing is left beside the file.
    let options: SqliteConnectOptions = options(path, true)
        .read_only(false)
        .journal_mode(SqliteJournalMode::Delete)
        .synchronous(SqliteSynchronous::Full);
    let mut connection = options.connect().await.map_err(failed)?;
    let written = async {
        let version: i64 =
            sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await?;
        if version < KNOWS_WITHDRAWN {
            return Ok(());
        }
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        for token in tokens {
            sqlx::query(WITHDRAW)
                .bind(&token.hash)
                .bind(token.at)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await
    }
    .await;
    let closed = connection.close().await;
    written.and(closed).map_err(failed)
}
