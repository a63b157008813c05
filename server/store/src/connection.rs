//! How every connection is set up, and the names of the files beside the database.

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// 5 s: how long a write waits for another process (H87).
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// 1 s: from where a statement counts as slow in a trace.
const SLOW: Duration = Duration::from_secs(1);

pub(crate) fn options(path: &Path, read_only: bool) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(read_only)
        .create_if_missing(false)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .synchronous(SqliteSynchronous::Full)
        // What a schema of somebody else contains may call no function that has effects.
        .pragma("trusted_schema", "OFF")
        // A page that lies about its content is an error, not a read beside it.
        .pragma("cell_size_check", "ON")
        .log_statements(log::LevelFilter::Trace)
        // What was asked of SQLite says nothing to whoever reads a command's errors or the log.
        .log_slow_statements(log::LevelFilter::Trace, SLOW);
    if read_only { options } else { options.journal_mode(SqliteJournalMode::Wal) }
}

/// `svc.db-wal` and its like.
pub(crate) fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
