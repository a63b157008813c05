//! Opening: what a start accepts as a database, migrations, snapshots.

use crate::StoreError;
use rustix::fs::{FlockOperation, Mode, OFlags};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Row, SqlitePool};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing::{info, warn};

/// Version, description, statements. Released files are never edited, only followed by new ones.
const MIGRATIONS: &[(i64, &str, &str)] =
    &[(1, "initial", include_str!("../../../migrations/0001_initial.sql"))];

/// `svcr`: tells this registry from other SQLite files.
const APPLICATION_ID: i64 = 1_937_072_434;

/// Snapshots before migrations that are kept.
const SNAPSHOTS: usize = 5;

/// First 16 bytes of every SQLite file (file format, "the database header").
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// What the caller is going to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Create, migrate, read and write.
    ReadWrite {
        /// Keep a snapshot before a pending migration.
        snapshot: bool,
    },
    /// Read only: nothing is created or migrated.
    ReadOnly,
}

/// Why a registry was not opened. The file is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Read-only access, and there is nothing yet.
    #[error("no database at {0}: nothing was started here yet")]
    Missing(PathBuf),
    /// Something that is not our database is in its place.
    #[error(
        "{path} is not usable as the database: {problem}; move it away, or put a snapshot from `backups/` beside it in its place (stop the service first, delete the files ending in -wal and -shm)"
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Written by a newer version.
    #[error(
        "{path} has schema {found}, this version knows {known}: start the newer version again, or restore the newest snapshot in `backups/`"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Our schema.
        known: i64,
    },
    /// A read command met an older schema.
    #[error("{path} has schema {found} and needs {known}: run `svc run` once, which migrates it")]
    Pending {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Our schema.
        known: i64,
    },
    /// The snapshot before a migration failed, so nothing was migrated.
    #[error(
        "cannot write the snapshot {path} before the migration, so nothing was changed; check space and permissions of that directory"
    )]
    Snapshot {
        /// The snapshot.
        path: PathBuf,
        /// Why.
        #[source]
        cause: sqlx::Error,
    },
    /// A migration failed and was rolled back.
    #[error("the migration of {path} failed and was rolled back; the state before it is in {}", snapshot.as_ref().map_or_else(|| "the file itself".to_owned(), |path| path.display().to_string()))]
    Migration {
        /// The file.
        path: PathBuf,
        /// Snapshot that was taken, if any.
        snapshot: Option<PathBuf>,
        /// Why.
        #[source]
        cause: sqlx::Error,
    },
    /// Files around the database cannot be used.
    #[error("cannot open {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot open {path}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: sqlx::Error,
    },
}

/// The open registry. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: SqlitePool,
    path: PathBuf,
}

/// Tells whether another connection has committed since the last question.
#[derive(Debug)]
pub struct Watch {
    connection: SqliteConnection,
    last: i64,
}

impl Watch {
    /// Whether anybody committed since the last call. Costs no disk access when nobody did.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn changed(&mut self) -> Result<bool, StoreError> {
        let now: i64 =
            sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut self.connection).await?;
        Ok(std::mem::replace(&mut self.last, now) != now)
    }
}

impl Store {
    /// Opens `svc.db` in the state directory.
    ///
    /// # Errors
    /// Anything but a missing file, a current registry or an older one of ours is refused and left
    /// byte for byte as it is.
    pub async fn open(state_dir: &Path, access: Access) -> Result<Self, OpenError> {
        let path = state_dir.join("svc.db");
        let io = |cause| OpenError::Io { path: path.clone(), cause };
        match access {
            Access::ReadOnly => {
                if !inspect_file(&path)? {
                    return Err(OpenError::Missing(path));
                }
                let found = check_schema(&path, true).await?;
                if found < head() {
                    return Err(OpenError::Pending { path, found, known: head() });
                }
            }
            Access::ReadWrite { snapshot } => {
                // Creation and migration happen in one process at a time.
                let _guard = lock(state_dir.join("locks/store.lock")).await.map_err(io)?;
                if inspect_file(&path)? {
                    let found = check_schema(&path, false).await?;
                    if found < head() {
                        migrate(state_dir, &path, found, snapshot).await?;
                    }
                } else {
                    create(state_dir, &path).await?;
                }
            }
        }
        let pool = SqlitePoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(8))
            .connect_with(options(&path, access == Access::ReadOnly))
            .await
            .map_err(|cause| OpenError::Sqlite { path: path.clone(), cause })?;
        let store = Self { pool, path };
        store.warn_without_wal().await;
        Ok(store)
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
        Ok(Watch { connection, last })
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A transaction that takes the write lock at once: a later upgrade from reading to writing
    /// would fail under WAL whatever the busy timeout is.
    pub(crate) async fn begin(
        &self,
    ) -> Result<sqlx::Transaction<'static, sqlx::Sqlite>, StoreError> {
        Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?)
    }

    async fn warn_without_wal(&self) {
        let mode: Result<String, _> =
            sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&self.pool).await;
        if mode.is_ok_and(|mode| !mode.eq_ignore_ascii_case("wal")) {
            warn!(
                "the file system of {} does not support the write-ahead log; \
                 readers will wait for writers",
                self.path.display()
            );
        }
    }
}

/// Schema this version writes.
fn head() -> i64 {
    MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or(0)
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS
        .iter()
        .map(|(version, description, sql)| {
            let kind = MigrationType::Simple;
            Migration::new(*version, (*description).into(), kind, (*sql).into(), false)
        })
        .collect();
    Migrator { migrations, ..Migrator::DEFAULT }
}

fn options(path: &Path, read_only: bool) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(read_only)
        .create_if_missing(false)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(5))
        .synchronous(SqliteSynchronous::Full)
        .log_statements(log::LevelFilter::Trace);
    if read_only { options } else { options.journal_mode(SqliteJournalMode::Wal) }
}

/// Whether a file exists that may be our database. Looks at it without opening it in SQLite, which
/// would already create side files.
fn inspect_file(path: &Path) -> Result<bool, OpenError> {
    let unusable =
        |problem: &str| OpenError::Unusable { path: path.to_owned(), problem: problem.to_owned() };
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let wal = path.with_file_name("svc.db-wal");
            return if wal.exists() {
                Err(unusable("it is missing, but its write-ahead log is there"))
            } else {
                Ok(false)
            };
        }
        Err(cause) => {
            return Err(OpenError::Io { path: path.to_owned(), cause });
        }
    };
    if meta.is_symlink() {
        return Err(unusable("it is a symbolic link"));
    }
    if !meta.is_file() {
        return Err(unusable("it is not a regular file"));
    }
    {
        use std::os::unix::fs::MetadataExt;
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(unusable("it belongs to another user"));
        }
    }
    let mut header = Vec::with_capacity(100);
    std::fs::File::open(path)
        .and_then(|file| file.take(100).read_to_end(&mut header))
        .map_err(|cause| OpenError::Io { path: path.to_owned(), cause })?;
    if header.is_empty() {
        return Err(unusable("it is empty"));
    }
    if header.len() < 100 || !header.starts_with(MAGIC) {
        return Err(unusable("it is not an SQLite database"));
    }
    Ok(true)
}

/// The schema version of a file that passed [`inspect_file`].
async fn check_schema(path: &Path, read_only: bool) -> Result<i64, OpenError> {
    let unusable = |problem: String| OpenError::Unusable { path: path.to_owned(), problem };
    // Reading only: a refused file must not even get its log checkpointed.
    let mut connection = options(path, true)
        .connect()
        .await
        .map_err(|cause| unusable(format!("SQLite cannot open it ({})", plain(&cause))))?;
    let answer = async {
        let application: i64 =
            sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut connection).await?;
        let version: i64 =
            sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await?;
        let health: String = if read_only {
            "ok".to_owned()
        } else {
            sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut connection).await?
        };
        Ok::<_, sqlx::Error>((application, version, health))
    }
    .await;
    let closed = connection.close().await;
    let (application, version, health) =
        answer.map_err(|cause| unusable(format!("SQLite cannot read it ({})", plain(&cause))))?;
    closed.map_err(|cause| OpenError::Sqlite { path: path.to_owned(), cause })?;
    if application != APPLICATION_ID {
        return Err(unusable("it belongs to another program".to_owned()));
    }
    if health != "ok" {
        return Err(unusable("it is damaged".to_owned()));
    }
    if version > head() {
        return Err(OpenError::Newer { path: path.to_owned(), found: version, known: head() });
    }
    Ok(version)
}

fn plain(error: &sqlx::Error) -> String {
    error
        .as_database_error()
        .map_or_else(|| "cannot be opened".to_owned(), |error| error.message().to_owned())
}

/// Creates the database under another name and moves it into place when it is complete: a file
/// that a crash left half-made would otherwise refuse every later start.
async fn create(state_dir: &Path, path: &Path) -> Result<(), OpenError> {
    let io = |cause| OpenError::Io { path: path.to_owned(), cause };
    let temp = state_dir.join("svc.db.new.tmp");
    for leftover in ["svc.db.new.tmp", "svc.db.new.tmp-journal"] {
        match std::fs::remove_file(state_dir.join(leftover)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
            Ok(()) | Err(_) => {}
        }
    }
    private_file(&temp).map_err(io)?;
    let sqlite = |cause| OpenError::Sqlite { path: path.to_owned(), cause };
    let fresh = SqliteConnectOptions::new()
        .filename(&temp)
        .journal_mode(SqliteJournalMode::Delete)
        .synchronous(SqliteSynchronous::Full);
    let mut connection = fresh.connect().await.map_err(sqlite)?;
    apply(&mut connection).await.map_err(sqlite)?;
    connection.close().await.map_err(sqlite)?;
    std::fs::File::open(&temp).and_then(|file| file.sync_all()).map_err(io)?;
    std::fs::rename(&temp, path).map_err(io)?;
    std::fs::File::open(state_dir).and_then(|dir| dir.sync_all()).map_err(io)?;
    info!("created {} with schema {}", path.display(), head());
    Ok(())
}

async fn migrate(
    state_dir: &Path,
    path: &Path,
    from: i64,
    snapshot: bool,
) -> Result<(), OpenError> {
    let sqlite = |cause| OpenError::Sqlite { path: path.to_owned(), cause };
    let mut connection =
        options(path, false).foreign_keys(false).connect().await.map_err(sqlite)?;
    let snapshot =
        if snapshot { Some(take_snapshot(&mut connection, state_dir, from).await?) } else { None };
    apply(&mut connection).await.map_err(|cause| OpenError::Migration {
        path: path.to_owned(),
        snapshot: snapshot.clone(),
        cause,
    })?;
    connection.close().await.map_err(sqlite)?;
    info!("migrated {} from schema {from} to {}", path.display(), head());
    Ok(())
}

/// All pending migrations in one transaction: the migrator's own become savepoints of it.
async fn apply(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    migrator()
        .run_direct(&mut *transaction)
        .await
        .map_err(|error| sqlx::Error::Migrate(Box::new(error)))?;
    let broken = sqlx::query("PRAGMA foreign_key_check").fetch_optional(&mut *transaction).await?;
    if let Some(row) = broken {
        let table: String = row.try_get(0)?;
        return Err(sqlx::Error::Protocol(format!("a reference of table {table} is broken")));
    }
    transaction.commit().await
}

async fn take_snapshot(
    connection: &mut SqliteConnection,
    state_dir: &Path,
    from: i64,
) -> Result<PathBuf, OpenError> {
    let dir = state_dir.join("backups");
    private_dir(&dir).map_err(|cause| OpenError::Io { path: dir.clone(), cause })?;
    let stamp = time::OffsetDateTime::now_utc();
    let name = format!(
        "pre-{from}-{}-{:04}{:02}{:02}T{:02}{:02}{:02}_{:06}Z.db",
        head(),
        stamp.year(),
        u8::from(stamp.month()),
        stamp.day(),
        stamp.hour(),
        stamp.minute(),
        stamp.second(),
        stamp.microsecond()
    );
    let path = dir.join(name);
    let failed = |cause| OpenError::Snapshot { path: path.clone(), cause };
    let text = path.to_str().ok_or_else(|| failed(sqlx::Error::Protocol("path".into())))?;
    sqlx::query("VACUUM INTO ?").bind(text).execute(connection).await.map_err(failed)?;
    std::fs::File::open(&path)
        .and_then(|file| file.sync_all())
        .map_err(|cause| failed(sqlx::Error::Io(cause)))?;
    prune_snapshots(&dir);
    Ok(path)
}

/// Keeps the newest snapshots by age, ours only.
fn prune_snapshots(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    let mut ours: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("pre-") && name.ends_with("Z.db")
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    ours.sort();
    let excess = ours.len().saturating_sub(SNAPSHOTS);
    for (_, path) in ours.into_iter().take(excess) {
        if let Err(error) = std::fs::remove_file(&path) {
            warn!("cannot remove the old snapshot {}: {error}", path.display());
        }
    }
}

fn private_file(path: &Path) -> std::io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::WRONLY;
    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(())
}

fn private_dir(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Waits for the lock of creation and migration; released when the descriptor closes.
async fn lock(path: PathBuf) -> std::io::Result<OwnedFd> {
    if let Some(dir) = path.parent() {
        private_dir(dir)?;
    }
    let flags = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDWR;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    tokio::task::spawn_blocking(move || {
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    })
    .await
    .map_err(std::io::Error::other)?
}
