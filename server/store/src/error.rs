//! Why the registry did not answer.

/// Why the registry did not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It did not get to this within the busy timeout.
    /// Another process holds the write lock, or the disk is too slow for what is to be written.
    #[error("another process or a slow disk keeps the database busy; try again")]
    Busy(#[source] sqlx::Error),
    /// No space left for the write, or a quota is used up.
    #[error("the file system of the database is full, over quota or failing; free some space")]
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

// Result codes of SQLite (https://www.sqlite.org/rescode.html).
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READONLY: u32 = 8;
const FULL: u32 = 13;
/// A write failed with an errno other than ENOSPC: EDQUOT, or a failing device.
/// SQLite reports ENOSPC as FULL.
const IOERR_WRITE: u32 = 778;
/// The index of the write-ahead log could not be extended.
/// It is allocated in advance, so a full file system shows here first.
const IOERR_SHMSIZE: u32 = 4874;

/// What an error of SQLite means for whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Busy,
    Full,
    ReadOnly,
    Other,
}

impl Trouble {
    pub(crate) fn of(error: &sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::PoolTimedOut) {
            return Self::Busy;
        }
        let code = error.as_database_error().and_then(|error| error.code());
        let Some(code) = code.and_then(|code| code.parse::<u32>().ok()) else {
            return Self::Other;
        };
        if let IOERR_WRITE | IOERR_SHMSIZE = code {
            return Self::Full;
        }
        // Extended result codes carry the primary code in their low byte.
        match code & 0xff {
            BUSY | LOCKED => Self::Busy,
            FULL => Self::Full,
            READONLY => Self::ReadOnly,
            _ => Self::Other,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match Trouble::of(&error) {
            Trouble::Busy => Self::Busy(error),
            Trouble::Full => Self::Full(error),
            Trouble::ReadOnly => Self::ReadOnly(error),
            Trouble::Other => Self::Failed(error),
        }
    }
}
