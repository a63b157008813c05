//! The registry: one SQLite file that several processes write.
//!
//! All SQL is here. Every change of a bridge compares the revision it was decided on, so that no
//! process overwrites what another one wrote meanwhile.

mod bridges;
mod history;
mod open;
mod row;

pub use bridges::{Cap, Content, Inserted, Saved, Stored};
pub use history::HistoryRow;
pub use open::{Access, OpenError, Store, Watch};

/// Why the registry did not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the write lock for longer than the busy timeout.
    #[error("the database is busy; try again")]
    Busy(#[source] sqlx::Error),
    /// No space left for the write.
    #[error("the file system of the database is full; free some space")]
    Full(#[source] sqlx::Error),
    /// It may not be written.
    #[error("the database may not be written; check its permissions and its file system")]
    ReadOnly(#[source] sqlx::Error),
    /// Anything else.
    #[error("the database cannot be used")]
    Failed(#[source] sqlx::Error),
    /// A path cannot be recorded.
    #[error("a path is not valid UTF-8 and cannot be recorded")]
    PathNotText,
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        // Extended result codes carry the primary code in their low byte.
        let primary = error
            .as_database_error()
            .and_then(|error| error.code())
            .and_then(|code| code.parse::<u32>().ok())
            .map(|code| code & 0xff);
        match primary {
            Some(5 | 6) => Self::Busy(error),
            Some(13) => Self::Full(error),
            Some(8) => Self::ReadOnly(error),
            _ if matches!(error, sqlx::Error::PoolTimedOut) => Self::Busy(error),
            _ => Self::Failed(error),
        }
    }
}
