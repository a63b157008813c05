//! Why a registry is not opened, in words that tell what to do next.

use crate::error::Trouble;
use std::path::{Path, PathBuf};

/// Why a registry was not opened. The file is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Read-only access, and there is nothing yet.
    #[error("no database at {0}: nothing was started here yet")]
    Missing(PathBuf),
    /// Something that is not our database is in its place.
    #[error("{path} is not usable as the database: {problem}; {}", remedy(snapshot.as_deref()))]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// The newest snapshot that this version can use.
        snapshot: Option<PathBuf>,
    },
    /// It belongs to another user, who alone may open it.
    ///
    /// Who else did would leave files behind that its owner cannot use.
    #[error(
        "{path} belongs to another user ({owner}, and this runs as {user}): run this as its owner \
         (`sudo -u '#{owner}' svc ...`)"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        user: u32,
    },
    /// Written by a newer version.
    #[error(
        "{path} has schema {found}, this version knows {known}: start the newer version again; or, to go back, {}",
        remedy(snapshot.as_deref())
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Our schema.
        known: i64,
        /// The newest snapshot that this version can use.
        snapshot: Option<PathBuf>,
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
    /// Somebody else creates or migrates it, for longer than a start waits.
    #[error(
        "another process holds {lock} since {waited_seconds} s, to create or migrate the database: wait for it or end it, then try again"
    )]
    Locked {
        /// The lock file.
        lock: PathBuf,
        /// How long was waited.
        waited_seconds: u64,
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
    #[error("the migration of {path} failed and was rolled back; {}", before(snapshot.as_deref()))]
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
    #[error("cannot use {path}; check that it belongs to you and may be read and written")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot open the database {path}; {}", advice(cause))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: sqlx::Error,
    },
}

fn remedy(snapshot: Option<&Path>) -> String {
    match snapshot {
        Some(snapshot) => format!(
            "to restore, stop the service, delete svc.db-wal and svc.db-shm beside it, and copy {} in its place",
            snapshot.display()
        ),
        None => "there is no snapshot in `backups/` beside it: put a backup in its place, or move \
                 it and its -wal and -shm files away to start with nothing"
            .to_owned(),
    }
}

fn before(snapshot: Option<&Path>) -> String {
    match snapshot {
        Some(snapshot) => format!("the state before it is also in {}", snapshot.display()),
        None => "the file is as it was before".to_owned(),
    }
}

fn advice(cause: &sqlx::Error) -> &'static str {
    match Trouble::of(cause) {
        Trouble::Busy => "another process holds it: try again, or end that process",
        Trouble::Full => "its file system is full, over quota or failing: free some space",
        Trouble::ReadOnly | Trouble::Other => {
            "check that it and its directory belong to you and may be read and written"
        }
    }
}
