//! Opening: one process at a time creates or migrates, the others wait.

use crate::connection::side_file;
use crate::inspect::{Depth, Found, Side, Subject};
use crate::migrate::{self, Script};
use crate::open_error::OpenError;
use crate::opened::{Opened, tighten};
use crate::snapshot::{private_dir, private_file};
use crate::store::Store;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;
use tracing::info;

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

/// How long a start waits for another one that creates or migrates the database.
/// A migration copies the whole database first; a slow disk takes some seconds for 100 MB.
const LOCK_WAIT: Duration = Duration::from_secs(60);
/// Pause between two tries. A blocking `flock` would need a thread without an end.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Looks at a database that another process changes under them.
const LOOKS: u32 = 3;

impl Store {
    /// Opens `svc.db` in the state directory, which has to exist.
    ///
    /// # Errors
    /// Anything but a missing file, a current registry or an older one of ours is refused and left
    /// byte for byte as it is.
    pub async fn open(state_dir: &Path, access: Access) -> Result<Self, OpenError> {
        open_with(state_dir, access, migrate::ALL).await
    }
}

/// Held while a database is opened.
///
/// See `OPEN`: a look at the files must not fall between another opening and its entry.
static OPENING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn open_with(
    state_dir: &Path,
    access: Access,
    scripts: &'static [Script],
) -> Result<Store, OpenError> {
    let _alone = OPENING.lock().await;
    match access {
        Access::ReadWrite { snapshot } => read_write(state_dir, snapshot, scripts).await,
        Access::ReadOnly => read_only(state_dir, scripts).await,
    }
}

async fn read_write(
    state_dir: &Path,
    snapshot: bool,
    scripts: &'static [Script],
) -> Result<Store, OpenError> {
    let path = state_dir.join("svc.db");
    // Held until connections stand: from then on every start sees that the database is in use.
    let _guard = lock(state_dir).await?;
    if let Some(opened) = Opened::again(&path) {
        return connect(path, opened, false, false).await;
    }
    let subject = Subject { state_dir, path: &path, scripts };
    match subject.look().await? {
        Found::Nothing => create(state_dir, &path, scripts).await?,
        Found::Database(side) => {
            let found = subject.check(side, Depth::Whole).await?;
            tighten(&path)?;
            if found < migrate::head(scripts) {
                migrate::migrate(state_dir, &path, found, snapshot, scripts).await?;
            }
        }
    }
    let opened = Opened::first(&path)?;
    connect(path, opened, false, false).await
}

async fn read_only(state_dir: &Path, scripts: &'static [Script]) -> Result<Store, OpenError> {
    let (store, found) = read_any(state_dir, scripts).await?;
    let known = migrate::head(scripts);
    match found {
        Some(found) if found < known => {
            store.close().await;
            Err(OpenError::Pending { path: state_dir.join("svc.db"), found, known })
        }
        Some(_) | None => Ok(store),
    }
}

/// Opens a registry of any schema up to ours for reading.
///
/// The schema is none where this process has the registry open already.
async fn read_any(
    state_dir: &Path,
    scripts: &'static [Script],
) -> Result<(Store, Option<i64>), OpenError> {
    let path = state_dir.join("svc.db");
    if let Some(opened) = Opened::again(&path) {
        return Ok((connect(path, opened, true, false).await?, None));
    }
    let subject = Subject { state_dir, path: &path, scripts };
    let mut looks = 0;
    let (side, found) = loop {
        looks += 1;
        let side = match subject.look().await? {
            Found::Nothing => return Err(OpenError::Missing(path)),
            Found::Database(side) => side,
        };
        match subject.check(side, Depth::Schema).await {
            Ok(found) => break (side, found),
            // Without the lock, somebody may have opened it for writing under the check.
            Err(_) if looks < LOOKS && subject.look().await? != Found::Database(side) => {}
            Err(error) => return Err(error),
        }
    };
    // Where nothing can be created beside it, only a file that nobody changes can be read.
    let may_create = rustix::fs::access(state_dir, rustix::fs::Access::WRITE_OK).is_ok();
    let immutable = side == Side::Nothing && !may_create;
    let opened = Opened::first(&path)?;
    Ok((connect(path, opened, true, immutable).await?, Some(found)))
}

/// Opens a registry of any schema up to ours for reading, none where there is none.
pub(crate) async fn open_any(state_dir: &Path) -> Result<Option<Store>, OpenError> {
    let _alone = OPENING.lock().await;
    match read_any(state_dir, migrate::ALL).await {
        Ok((store, _)) => Ok(Some(store)),
        Err(OpenError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn connect(
    path: PathBuf,
    opened: Opened,
    read_only: bool,
    immutable: bool,
) -> Result<Store, OpenError> {
    Store::connect(path.clone(), opened, read_only, immutable)
        .await
        .map_err(|cause| OpenError::Sqlite { path, cause })
}

/// Creates the database under another name, then moves it into place.
/// A half-made file after a crash would otherwise stop every later start.
async fn create(state_dir: &Path, path: &Path, scripts: &[Script]) -> Result<(), OpenError> {
    let io = |cause| OpenError::Io { path: path.to_owned(), cause };
    let sqlite = |cause| OpenError::Sqlite { path: path.to_owned(), cause };
    let temp = state_dir.join("svc.db.new.tmp");
    remove_with_sides(&temp).map_err(io)?;
    let written = async {
        private_file(&temp)?;
        // The switch to the write-ahead log needs the database alone and does not wait for it, so
        // it is made here, where nobody else is.
        let mut connection = SqliteConnectOptions::new()
            .filename(&temp)
            .synchronous(SqliteSynchronous::Full)
            .journal_mode(SqliteJournalMode::Wal)
            .connect()
            .await?;
        migrate::apply(&mut connection, scripts).await?;
        connection.close().await
    }
    .await;
    let placed = written.map_err(sqlite).and_then(|()| {
        if side_file(&temp, "-wal").exists() {
            let full = io::Error::new(
                io::ErrorKind::StorageFull,
                "its write-ahead log could not be copied into it: is the file system full?",
            );
            return Err(io(full));
        }
        std::fs::File::open(&temp).and_then(|file| file.sync_all()).map_err(io)?;
        std::fs::rename(&temp, path).map_err(io)?;
        std::fs::File::open(state_dir).and_then(|dir| dir.sync_all()).map_err(io)
    });
    if placed.is_err() {
        let _ = remove_with_sides(&temp); // the next start tries again
    }
    placed?;
    info!("created {} with schema {}", path.display(), migrate::head(scripts));
    Ok(())
}

fn remove_with_sides(path: &Path) -> io::Result<()> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        match std::fs::remove_file(side_file(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Waits for the lock of creation and migration. Closing the descriptor frees it.
pub(crate) async fn lock(state_dir: &Path) -> Result<OwnedFd, OpenError> {
    let path = state_dir.join("locks/store.lock");
    let io = |cause: io::Error| OpenError::Io { path: path.clone(), cause };
    private_dir(&state_dir.join("locks")).map_err(io)?;
    let flags = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDWR;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| io(errno.into()))?;
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if Instant::now() >= deadline => {
                return Err(OpenError::Locked { lock: path, waited_seconds: LOCK_WAIT.as_secs() });
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => tokio::time::sleep(LOCK_RETRY).await,
            Err(errno) => return Err(io(errno.into())),
        }
    }
}

#[cfg(test)]
mod tests;
