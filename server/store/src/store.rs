//! The open registry: its connections, and how a write gets one.

use crate::connection::{BUSY, options};
use crate::error::StoreError;
use crate::migrate;
use crate::open_error::OpenError;
use crate::opened::{self, Opened};
use sqlx::pool::PoolConnectionMetadata;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePoolOptions};
use sqlx::{ConnectOptions, Connection, Sqlite, SqlitePool};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::warn;

/// How often the write connection is asked for, and the pause between two tries.
/// It may be in use for a moment, by a write or by the rollback of an abandoned one.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(1);
/// How long a write waits behind other writes of this process.
/// It gives up together with the first of them.
const WRITER_WAIT: Duration = Duration::from_secs(6);
const READERS: u32 = 4;
/// How often a pool is closed again, a [`PAUSE`] after the last time.
const CLOSES: u32 = 1000;

/// The open registry. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// Connections for reading. Writers share another one: SQLite has one writer.
    /// A writer that waits for another process must not block readers (H87).
    pub(crate) readers: SqlitePool,
    writer: SqlitePool,
    /// How often a write connection was opened; `None` where nothing is ever written.
    writers_opened: Option<Arc<AtomicU64>>,
    distrust: Distrust,
    /// Whether announced steps are noted for the outbox.
    pub(crate) owes: Arc<AtomicBool>,
    path: PathBuf,
    opened: Arc<Opened>,
}

/// Tells whether another connection has committed since the last question.
#[derive(Debug)]
pub struct Watch {
    connection: SqliteConnection,
    last: i64,
    _opened: Arc<Opened>,
}

impl Watch {
    /// Whether any process committed since the last call. Reads the disk only then.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn changed(&mut self) -> Result<bool, StoreError> {
        let now: i64 =
            sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut self.connection).await?;
        Ok(std::mem::replace(&mut self.last, now) != now)
    }
}

/// A position in what other processes have committed.
/// Two equal values mean that in between only this store committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignWrites {
    connection: u64,
    version: i64,
}

/// When a write was last refused as read-only.
///
/// SQLite opens a file that may not be written for reading only, without saying so, and stays so
/// when the file may be written again. Connections from before the refusal are not used again, so
/// that the service recovers without a restart (H88).
#[derive(Debug, Clone, Default)]
struct Distrust(Arc<Mutex<Option<Instant>>>);

impl Distrust {
    fn since_now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn is_awake(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn allows(&self, connection: &PoolConnectionMetadata) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_none_or(|since| connection.age < since.elapsed())
    }
}

impl Store {
    /// Connects to a database that was found good.
    pub(crate) async fn connect(
        path: PathBuf,
        opened: Opened,
        read_only: bool,
        immutable: bool,
    ) -> Result<Self, sqlx::Error> {
        let distrust = Distrust::default();
        let readers = pool(READERS);
        let (readers, writer, writers_opened) = if read_only {
            let readers = readers.connect_with(options(&path, true).immutable(immutable)).await?;
            (readers.clone(), readers, None)
        } else {
            let trust = distrust.clone();
            let opened = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&opened);
            let writer = pool(1)
                .acquire_timeout(WRITER_WAIT)
                .after_connect(move |_, _| {
                    count.fetch_add(1, Ordering::AcqRel);
                    Box::pin(async { Ok(()) })
                })
                .before_acquire(move |_, meta| {
                    let trusted = trust.allows(&meta);
                    Box::pin(async move { Ok(trusted) })
                })
                .after_release(|connection, _| Box::pin(is_at_rest(connection)))
                .connect_with(options(&path, false))
                .await?;
            // Readers come second: they could not create the log.
            (readers.connect_with(options(&path, true)).await?, writer, Some(opened))
        };
        let opened = Arc::new(opened);
        let owes = Arc::default();
        let store = Self { readers, writer, writers_opened, distrust, owes, path, opened };
        if !immutable {
            store.warn_without_wal().await;
        }
        Ok(store)
    }

    /// A registry without rows and without a file, where nothing was ever started.
    /// Nothing written to it is kept.
    ///
    /// # Errors
    /// SQLite has no memory for it.
    pub async fn empty() -> Result<Self, OpenError> {
        let path = PathBuf::from(":memory:");
        let sqlite = |cause| OpenError::Sqlite { path: PathBuf::from(":memory:"), cause };
        // One connection: every other one would have a database of its own.
        let pool = pool(1)
            .connect_with(SqliteConnectOptions::new().in_memory(true))
            .await
            .map_err(sqlite)?;
        let mut connection = pool.acquire().await.map_err(sqlite)?;
        migrate::apply(&mut connection, migrate::ALL).await.map_err(sqlite)?;
        drop(connection);
        let opened = Arc::new(Opened::nowhere());
        Ok(Self {
            readers: pool.clone(),
            writer: pool,
            writers_opened: None,
            distrust: Distrust::default(),
            owes: Arc::default(),
            path,
            opened,
        })
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A connection of its own that notices commits of others.
    ///
    /// # Errors
    /// No further connection can be opened.
    pub async fn watch(&self) -> Result<Watch, StoreError> {
        let mut connection = options(&self.path, true).connect().await?;
        let last = sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut connection).await?;
        Ok(Watch { connection, last, _opened: Arc::clone(&self.opened) })
    }

    /// What others have committed so far, at the same cost for any number of rows.
    /// `None` where that cannot be told within some milliseconds: nothing is written here, no write
    /// connection is open, or the writer waits for another process, for which a reader must not
    /// wait (H87).
    pub async fn foreign_writes(&self) -> Option<ForeignWrites> {
        let opened = self.writers_opened.as_ref()?;
        for _ in 0..TRIES {
            // Only one that is there: what has to be looked at before one is opened is known by
            // [`Store::begin`] alone.
            if let Some(mut writer) = self.writer.try_acquire() {
                // https://www.sqlite.org/pragma.html#pragma_data_version: what a connection commits
                // itself does not change it. It says nothing about another connection, so both are
                // compared; while this one is held no other is opened.
                let asked = sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut *writer);
                let version = tokio::time::timeout(PAUSE * TRIES, asked).await.ok()?.ok()?;
                return Some(ForeignWrites { connection: opened.load(Ordering::Acquire), version });
            }
            tokio::time::sleep(PAUSE).await;
        }
        None
    }

    /// Closes all connections.
    /// The last one to close copies the log into the database, which only the writer can.
    pub async fn close(&self) {
        for pool in [&self.readers, &self.writer] {
            // A connection that is just coming back can slip past the first call (sqlx 0.8.6).
            for _ in 0..CLOSES {
                pool.close().await;
                if pool.size() == 0 {
                    break;
                }
                // It is still asked whether it is sound.
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Begins a transaction that takes the write lock at once.
    /// Under WAL a later upgrade from reading to writing would fail, whatever the busy timeout is.
    pub(crate) async fn begin(&self) -> Result<sqlx::Transaction<'static, Sqlite>, StoreError> {
        self.opened.is_in_place(&self.path).map_err(sqlx::Error::Io)?;
        if self.distrust.is_awake() {
            // When it cannot be done, the write itself tells why.
            let _ = opened::tighten(&self.path);
        }
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Sees the result of every write, to notice a read-only database.
    /// Such a database is not noticed earlier: it even begins a transaction.
    pub(crate) fn noted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::ReadOnly(_)) = &result {
            self.distrust.since_now();
        }
        result
    }

    async fn warn_without_wal(&self) {
        let mode: Result<String, _> =
            sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&self.readers).await;
        if mode.is_ok_and(|mode| !mode.eq_ignore_ascii_case("wal")) {
            warn!(
                "the file system of {} does not support the write-ahead log; \
                 readers will wait for writers",
                self.path.display()
            );
        }
    }
}

impl Opened {
    /// Checks that the file was not moved or replaced. Its writes would be lost.
    fn is_in_place(&self, path: &Path) -> io::Result<()> {
        if self.has_no_file() {
            return Ok(());
        }
        let meta = std::fs::symlink_metadata(path)?;
        if self.is(meta.dev(), meta.ino()) {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} was replaced while it was open; restart the service to use the new file",
            path.display()
        )))
    }
}

/// Whether a returned connection is outside of every transaction.
/// After some errors, such as a full disk, SQLite rolls the transaction back by itself. sqlx
/// (0.8.6) still counts it, and such a connection could never begin another one.
async fn is_at_rest(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    // Behind the rollback of the transaction that was dropped, if there was one.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

/// A pool that keeps its connections.
/// When the last one of a machine closes, SQLite copies and removes the log; an idle server would
/// do that again and again.
fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .acquire_slow_level(log::LevelFilter::Trace)
        .acquire_timeout(BUSY)
}
