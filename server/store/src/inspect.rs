//! What a start accepts as the database.
//!
//! A refused file is left byte for byte as it is, and nothing is left beside it. So the database is
//! first read with an immutable connection, which sees nothing but that one file; what is beside it
//! is compared by hand, because SQLite would replace it; and then a connection that cannot write
//! checks the whole.

use crate::connection::{options, side_file};
use crate::migrate::{self, Script};
use crate::open_error::OpenError;
use crate::statements::STATEMENTS;
use crate::{schema, snapshot};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Flock, FlockType, fcntl_getlk};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Executor};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tracing::warn;

/// `svcr`: marks this registry among SQLite files. The first migration sets it.
const APPLICATION_ID: i64 = 1_937_072_434;

/// First 16 bytes of every SQLite file (<https://www.sqlite.org/fileformat2.html>).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// First four bytes of a write-ahead log, but for the lowest bit.
/// That bit tells the byte order of its checksums (same page, "WAL header"). SQLite takes a log
/// with another beginning for an empty one and overwrites it, so only a look at the bytes protects
/// a foreign file.
const LOG_MAGIC: u32 = 0x377f_0682;
const LOG_HEADER_BYTES: u64 = 32;
const LOG_PAGE_SIZE_AT: usize = 8;

/// Offsets in the index of a log (<https://www.sqlite.org/walformat.html>).
/// Frames committed, frames copied into the database, and the byte that every open connection has
/// locked. Numbers are in the byte order of the machine. Without its log SQLite builds an empty
/// index again, so only a look at the old one shows lost changes.
const INDEX_FRAMES_AT: usize = 16;
const INDEX_COPIED_AT: usize = 96;
const INDEX_BYTES: u64 = 100;
const INDEX_LOCK_AT: u64 = 128;

// Result codes of SQLite about what is in the file (<https://www.sqlite.org/rescode.html>).
const ERROR: u32 = 1;
const CORRUPT: u32 = 11;
const NOTADB: u32 = 26;

/// Most problems that a check of the whole file lists.
/// Values of a row are counted too, so one is not enough to see whether the file itself is sound.
const LISTED: u32 = 100;

/// Begin of the name of a directory that a restore stages in.
pub const RESTORING: &str = ".svc-restore-";

/// What is in the place of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A file of ours as far as its first bytes tell.
    Database(Side),
}

/// What is beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Nothing that belongs to its content.
    Nothing,
    /// A write-ahead log with content.
    Log {
        /// Another process has the database open.
        in_use: bool,
    },
    /// A rollback journal: an interrupted write where write-ahead logs do not work.
    Journal,
}

/// How thoroughly a database is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Is it ours, and which schema has it?
    Schema,
    /// Is it sound as well?
    Whole,
}

/// The database file and what it is measured against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub state_dir: &'a Path,
    pub path: &'a Path,
    pub scripts: &'a [Script],
}

impl Subject<'_> {
    fn head(&self) -> i64 {
        migrate::head(self.scripts)
    }

    fn unusable(&self, problem: impl Into<String>) -> OpenError {
        OpenError::Unusable {
            path: self.path.to_owned(),
            problem: problem.into(),
            snapshot: snapshot::newest(self.state_dir, self.head()),
        }
    }

    fn newer(&self, found: i64) -> OpenError {
        OpenError::Newer {
            path: self.path.to_owned(),
            found,
            known: self.head(),
            snapshot: snapshot::newest(self.state_dir, self.head()),
        }
    }

    /// Examines the database file without changing it.
    ///
    /// Closing a file drops all locks of this process on it (`fcntl` locks are per process), so
    /// this must not be done while this process has the database open.
    pub async fn look(&self) -> Result<Found, OpenError> {
        let Some(meta) = self.meta(self.path)? else {
            for suffix in ["-wal", "-journal"] {
                let left = self.meta(&side_file(self.path, suffix))?;
                if left.is_some_and(|meta| meta.len() > 0) {
                    return Err(self.unusable(format!(
                        "it is missing, but svc.db{suffix} is there with changes to it"
                    )));
                }
            }
            self.refuse_half_restored()?;
            return Ok(Found::Nothing);
        };
        if meta.is_symlink() {
            return Err(self.unusable("it is a symbolic link"));
        }
        if !meta.is_file() {
            return Err(self.unusable("it is not a regular file"));
        }
        let user = rustix::process::geteuid().as_raw();
        if meta.uid() != user {
            return Err(OpenError::Foreign { path: self.path.to_owned(), owner: meta.uid(), user });
        }
        let page_size = self.page_size().await?;
        self.look_beside(page_size).map(Found::Database)
    }

    /// Refuses where a restore stopped between the old database and the new one.
    fn refuse_half_restored(&self) -> Result<(), OpenError> {
        let beside = self.path.parent().and_then(|directory| directory.read_dir().ok());
        let mut names = beside.into_iter().flatten().flatten().map(|entry| entry.file_name());
        match names.any(|name| name.to_string_lossy().starts_with(RESTORING)) {
            false => Ok(()),
            true => Err(self.unusable(
                "it is missing, and a restore into this directory was interrupted: run \
                 `svc restore` again with --force",
            )),
        }
    }

    /// The page size of the database, if it is ours and not newer than this program.
    async fn page_size(&self) -> Result<u32, OpenError> {
        let start = self.head_of(self.path, MAGIC.len() as u64)?;
        if start.is_empty() {
            return Err(self.unusable("it is empty"));
        }
        if start != MAGIC {
            return Err(self.unusable("it is not an SQLite database"));
        }
        let immutable = options(self.path, true).immutable(true);
        let mut connection = immutable.connect().await.map_err(|cause| self.unreadable(cause))?;
        let read = async {
            // The log may hold a newer version, never an older one.
            self.version(&mut connection, "it belongs to another program").await?;
            self.number(&mut connection, "PRAGMA page_size").await
        }
        .await;
        let closed = connection.close().await;
        let page_size = read?;
        closed.map_err(|cause| self.unreadable(cause))?;
        u32::try_from(page_size).map_err(|_| self.unusable("it is not an SQLite database"))
    }

    /// The schema, if the database is ours and not newer.
    async fn version(
        &self,
        connection: &mut SqliteConnection,
        of_another: &str,
    ) -> Result<i64, OpenError> {
        let application = self.number(connection, "PRAGMA application_id").await?;
        let version = self.number(connection, "PRAGMA user_version").await?;
        if application != APPLICATION_ID {
            return Err(self.unusable(of_another));
        }
        if version > self.head() {
            return Err(self.newer(version));
        }
        Ok(version)
    }

    async fn number(
        &self,
        connection: &mut SqliteConnection,
        pragma: &'static str,
    ) -> Result<i64, OpenError> {
        let asked = sqlx::query_scalar(pragma).fetch_one(connection).await;
        asked.map_err(|cause| self.unreadable(cause))
    }

    fn look_beside(&self, page_size: u32) -> Result<Side, OpenError> {
        let journal = self.meta(&side_file(self.path, "-journal"))?;
        if journal.is_some_and(|meta| meta.len() > 0) {
            return Ok(Side::Journal);
        }
        let log_path = side_file(self.path, "-wal");
        let log = self.meta(&log_path)?;
        if log.as_ref().is_some_and(|meta| !meta.is_file()) {
            return Err(self.unusable("svc.db-wal beside it is not a regular file"));
        }
        if log.is_none_or(|meta| meta.len() == 0) {
            return match self.changes_lost_with_log()? {
                true => Err(self.unusable(
                    "its write-ahead log svc.db-wal is missing, and with it changes that were \
                     recorded",
                )),
                false => Ok(Side::Nothing),
            };
        }
        // Another process may be writing the header right now: a second look tells.
        for _ in 0..2 {
            if is_log(&self.head_of(&log_path, LOG_HEADER_BYTES)?, page_size) {
                return Ok(Side::Log { in_use: self.in_use() });
            }
        }
        Err(self.unusable("svc.db-wal beside it is not its write-ahead log"))
    }

    /// Whether committed changes were in a log that is gone.
    /// A clean end copies them and removes log and index; a crash leaves both.
    fn changes_lost_with_log(&self) -> Result<bool, OpenError> {
        // Between two looks another process may open the database and create the log.
        for _ in 0..2 {
            let log = self.meta(&side_file(self.path, "-wal"))?;
            if log.is_some_and(|meta| meta.len() > 0) || !self.index_waits_for_log()? {
                return Ok(false);
            }
        }
        let log = self.meta(&side_file(self.path, "-wal"))?;
        Ok(log.is_none_or(|meta| meta.len() == 0))
    }

    fn index_waits_for_log(&self) -> Result<bool, OpenError> {
        let index = side_file(self.path, "-shm");
        if self.meta(&index)?.is_none_or(|meta| !meta.is_file()) {
            return Ok(false);
        }
        let head = self.head_of(&index, INDEX_BYTES)?;
        let at = |offset| number(&head, offset).map(u32::to_be_bytes).map(u32::from_ne_bytes);
        Ok(match (at(INDEX_FRAMES_AT), at(INDEX_COPIED_AT)) {
            (Some(frames), Some(copied)) => frames > copied,
            _ => false,
        })
    }

    fn in_use(&self) -> bool {
        // A pipe in its place would be waited for.
        let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(index) = open(side_file(self.path, "-shm"), flags, Mode::empty()) else {
            return false;
        };
        let mut wanted = Flock::from(FlockType::WriteLock);
        wanted.start = INDEX_LOCK_AT;
        wanted.length = 1;
        matches!(fcntl_getlk(&index, &wanted), Ok(Some(_)))
    }

    fn meta(&self, path: &Path) -> Result<Option<Metadata>, OpenError> {
        match std::fs::symlink_metadata(path) {
            Ok(meta) => Ok(Some(meta)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(OpenError::Io { path: path.to_owned(), cause }),
        }
    }

    fn head_of(&self, path: &Path, bytes: u64) -> Result<Vec<u8>, OpenError> {
        let mut head = Vec::new();
        match File::open(path).and_then(|file| file.take(bytes).read_to_end(&mut head)) {
            Ok(_) => Ok(head),
            // The last user of a log removes it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(head),
            Err(cause) => Err(OpenError::Io { path: path.to_owned(), cause }),
        }
    }

    /// The schema of a database that passed [`Self::look`], read with SQLite.
    ///
    /// The caller sees to it that no process opens the database for writing meanwhile.
    pub async fn check(&self, side: Side, depth: Depth) -> Result<i64, OpenError> {
        let index = side_file(self.path, "-shm");
        let had_index = self.meta(&index)?.is_some();
        let answer = match self.probe(side).connect().await {
            Ok(mut connection) => {
                let answer = self.ask(&mut connection, side, depth).await;
                let closed = connection.close().await;
                answer.and_then(|version| {
                    closed.map_err(|cause| self.unreadable(cause))?;
                    Ok(version)
                })
            }
            Err(cause) => Err(self.unreadable(cause)),
        };
        if answer.is_err() && !had_index && matches!(side, Side::Log { in_use: false }) {
            // The probe made it; nobody else had the database open.
            let _ = std::fs::remove_file(index);
        }
        answer
    }

    fn probe(&self, side: Side) -> SqliteConnectOptions {
        match side {
            // Not even an index beside it.
            Side::Nothing => options(self.path, true).immutable(true),
            Side::Log { .. } => options(self.path, true),
            // An interrupted write has to be taken back before anything can be read.
            Side::Journal => {
                SqliteConnectOptions::new().filename(self.path).pragma("trusted_schema", "OFF")
            }
        }
    }

    async fn ask(
        &self,
        connection: &mut SqliteConnection,
        side: Side,
        depth: Depth,
    ) -> Result<i64, OpenError> {
        // The log may have replaced the header that was looked at.
        let of_another = "with its write-ahead log it belongs to another program";
        let version = self.version(connection, of_another).await?;
        // Before anything runs on it: a trigger or a view of somebody else must not.
        let difference = schema::difference(connection, self.scripts, version).await;
        if let Some(difference) = difference.map_err(|cause| self.unreadable(cause))? {
            return Err(self.unusable(format!("its tables are not ours ({difference})")));
        }
        match (depth, side) {
            // Whoever has it open has checked it.
            (Depth::Schema, _) | (Depth::Whole, Side::Log { in_use: true }) => {}
            (Depth::Whole, Side::Nothing | Side::Journal) => {
                self.check_pages(connection, "quick_check").await?;
            }
            // A log that does not belong to this file, of an older copy for example, has valid
            // pages that do not fit the others: only comparing tables with indexes shows it.
            (Depth::Whole, Side::Log { in_use: false }) => {
                self.check_pages(connection, "integrity_check").await?;
            }
        }
        if version == migrate::head(migrate::ALL) {
            for statement in STATEMENTS.iter().flat_map(|table| table.iter()) {
                connection.prepare(statement).await.map_err(|cause| {
                    self.unusable(format!("its tables are not ours ({})", plain(&cause)))
                })?;
            }
        }
        Ok(version)
    }

    async fn check_pages(
        &self,
        connection: &mut SqliteConnection,
        check: &str,
    ) -> Result<(), OpenError> {
        // Odd values make their row unreadable, not the database.
        sqlx::query("PRAGMA ignore_check_constraints = ON")
            .execute(&mut *connection)
            .await
            .map_err(|cause| self.unreadable(cause))?;
        let lines: Vec<String> = sqlx::query_scalar(&format!("PRAGMA {check}({LISTED})"))
            .fetch_all(&mut *connection)
            .await
            .map_err(|cause| self.unreadable(cause))?;
        let (values, damage): (Vec<_>, Vec<_>) =
            lines.iter().filter(|line| *line != "ok").partition(|line| is_about_a_value(line));
        if let Some(first) = damage.first() {
            return Err(self.unusable(format!("it is damaged ({})", first.replace('\n', " "))));
        }
        if let Some(first) = values.first() {
            warn!("{} holds a value of a wrong type: {first}", self.path.display());
        }
        Ok(())
    }

    /// Separates content that SQLite refuses from a locked, full or forbidden file.
    fn unreadable(&self, cause: sqlx::Error) -> OpenError {
        let code = cause.as_database_error().and_then(sqlx::error::DatabaseError::code);
        let code = code.and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff);
        match code {
            Some(NOTADB) => self.unusable("it is not an SQLite database"),
            Some(ERROR | CORRUPT) => {
                self.unusable(format!("SQLite cannot read it ({})", plain(&cause)))
            }
            Some(_) | None => OpenError::Sqlite { path: self.path.to_owned(), cause },
        }
    }
}

/// Whether a line of the check is about one value of one row.
/// Such lines are "NULL value in t.c", "non-INTEGER value in t.c", "TEXT value in t.c" (SQLite
/// 3.46).
pub(crate) fn is_about_a_value(line: &str) -> bool {
    let Some((what, _)) = line.split_once(" value in ") else {
        return false;
    };
    matches!(what, "NULL" | "NUMERIC" | "TEXT") || what.starts_with("non-")
}

/// Four bytes, the highest first.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*four))
}

/// Whether these are the first bytes of a log of a database with this page size.
/// A log that a crash cut short, or left as zeros, holds nothing and is one.
fn is_log(head: &[u8], page_size: u32) -> bool {
    if (head.len() as u64) < LOG_HEADER_BYTES || head.iter().all(|byte| *byte == 0) {
        return true;
    }
    number(head, 0).is_some_and(|magic| magic & !1 == LOG_MAGIC)
        && number(head, LOG_PAGE_SIZE_AT) == Some(page_size)
}

fn plain(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_another_page_size_or_kind_is_foreign() {
        let mut head = vec![0_u8; 32];
        assert!(is_log(&head, 4096), "zeros: power was lost before the first commit");
        head[..4].copy_from_slice(&0x377f_0683_u32.to_be_bytes());
        head[8..12].copy_from_slice(&4096_u32.to_be_bytes());
        assert!(is_log(&head, 4096));
        assert!(is_log(&head[..20], 4096), "cut short");
        assert!(!is_log(&head, 8192));
        head[0] = b'S';
        assert!(!is_log(&head, 4096));
    }

    #[test]
    fn problems_of_values_are_told_from_damage() {
        assert!(is_about_a_value("non-INTEGER value in bridges.bridge_pid"));
        assert!(is_about_a_value("NULL value in bridges.status"));
        assert!(!is_about_a_value("row 3 missing from index bridges_by_revision"));
        assert!(!is_about_a_value("Tree 4 page 9: btreeInitPage() returns error code 11"));
    }
}
