//! The registry while another version of the program is tried.
//!
//! A copy is taken when nobody writes any more, and put back if the other version has left a
//! registry that this one does not understand.

use crate::connection::side_file;
use crate::inspect::{Depth, Found, Subject};
use crate::migrate;
use crate::open::{lock, open_any};
use crate::open_error::OpenError;
use crate::snapshot::{self, private_dir, private_file};
use std::io;
use std::path::{Path, PathBuf};

/// The schemas of a registry and of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schemas {
    /// Of the registry; none where there is no registry yet.
    pub found: Option<i64>,
    /// The newest that this program knows.
    pub known: i64,
}

/// Whether this program would open the registry, and with which schema.
///
/// Nothing is changed, and a service may run.
///
/// # Errors
/// It would be refused, for this reason.
pub async fn schemas(state_dir: &Path) -> Result<Schemas, OpenError> {
    let known = migrate::head(migrate::ALL);
    let Some(store) = open_any(state_dir).await? else { return Ok(Schemas { found: None, known }) };
    let read = sqlx::query_scalar("PRAGMA user_version").fetch_one(&store.readers).await;
    store.close().await;
    let path = state_dir.join("svc.db");
    let found: i64 = read.map_err(|cause| OpenError::Sqlite { path: path.clone(), cause })?;
    if found > known {
        let snapshot = snapshot::newest(state_dir, known);
        return Err(OpenError::Newer { path, found, known, snapshot });
    }
    Ok(Schemas { found: Some(found), known })
}

/// Keeps a copy of the registry beside the snapshots of migrations.
///
/// None where there is no registry.
///
/// # Errors
/// The registry is not ours or cannot be read, or the copy cannot be written.
pub async fn keep_copy(state_dir: &Path) -> Result<Option<PathBuf>, OpenError> {
    let Some(store) = open_any(state_dir).await? else { return Ok(None) };
    let copied = async {
        let sqlite = |cause| OpenError::Sqlite { path: state_dir.join("svc.db"), cause };
        let mut connection = store.readers.acquire().await.map_err(sqlite)?;
        let version: i64 = sqlx::query_scalar("PRAGMA user_version")
            .fetch_one(&mut *connection)
            .await
            .map_err(sqlite)?;
        snapshot::take(&mut connection, state_dir, version, version).await
    }
    .await;
    store.close().await;
    copied.map(Some)
}

/// Puts a copy back, if this program does not understand what is there now.
///
/// Returns where the refused registry was moved to, or none if nothing had to be done. Nobody may
/// have the registry open.
///
/// # Errors
/// The copy could not be put back. What is there was not changed.
pub async fn put_back(state_dir: &Path, copy: Option<&Path>) -> Result<Option<PathBuf>, OpenError> {
    let _guard = lock(state_dir).await?;
    let path = state_dir.join("svc.db");
    let subject = Subject { state_dir, path: &path, scripts: migrate::ALL };
    let sound = match subject.look().await {
        // Where there was none, none is missed.
        Ok(Found::Nothing) => copy.is_none(),
        Ok(Found::Database(side)) => subject.check(side, Depth::Whole).await.is_ok(),
        Err(_) => false,
    };
    let Some(copy) = copy.filter(|_| !sound) else { return Ok(None) };
    let (state_dir, copy, at) = (state_dir.to_owned(), copy.to_owned(), path.clone());
    let work = tokio::task::spawn_blocking(move || exchange(&state_dir, &path, &copy)).await;
    let done = work.map_err(io::Error::other).and_then(|done| done);
    done.map(Some).map_err(|cause| OpenError::Io { path: at, cause })
}

fn exchange(state_dir: &Path, path: &Path, copy: &Path) -> io::Result<PathBuf> {
    let fresh = state_dir.join("svc.db.new.tmp");
    remove(&fresh)?;
    private_file(&fresh)?;
    std::fs::copy(copy, &fresh)?;
    std::fs::File::open(&fresh)?.sync_all()?;
    let backups = state_dir.join("backups");
    private_dir(&backups)?;
    let name = copy.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let kept = backups.join(format!("refused-after-{name}.db"));
    for suffix in ["", "-wal"] {
        remove(&side_file(&kept, suffix))?;
    }
    if path.exists() {
        std::fs::hard_link(path, &kept)?;
    }
    // What the log holds belongs to the refused one, and must not reach the copy.
    let log = side_file(path, "-wal");
    if log.exists() {
        std::fs::rename(&log, side_file(&kept, "-wal"))?;
    }
    for suffix in ["-shm", "-journal"] {
        remove(&side_file(path, suffix))?;
    }
    std::fs::rename(&fresh, path)?;
    std::fs::File::open(state_dir)?.sync_all()?;
    Ok(kept)
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
