//! Why an archive was not made, or not restored.

use std::io;
use std::path::{Path, PathBuf};
use svc_archive::ReadError;
use svc_process::run_lock::RunLockError;
use svc_store::OpenError;

/// Why there is no new archive, or why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The archive that is to be restored is not there.
    #[error("there is no archive {0}")]
    NoArchive(PathBuf),
    /// Nothing was ever started with this configuration.
    #[error("there is no state directory {0}: nothing was started here yet")]
    NoState(PathBuf),
    /// Something is where the result is to go.
    #[error("{0} is in the way; move it, or add --force to replace it")]
    InTheWay(PathBuf),
    /// A path cannot be what it is named for.
    #[error("{path} {reason}")]
    Target {
        /// The path.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A service runs on the state directory, or its lock cannot be used.
    #[error(transparent)]
    Lock(RunLockError),
    /// Too little free space.
    #[error("the file system of {0} is nearly full; free some space and try again")]
    Full(PathBuf),
    /// The present database cannot be archived.
    #[error("the database cannot be archived")]
    Database(#[source] Box<OpenError>),
    /// The database of an archive cannot be prepared.
    #[error("the database of the archive cannot be prepared, and nothing was changed")]
    Staged(#[source] Box<OpenError>),
    /// The configuration cannot be archived.
    #[error("the configuration cannot be archived: {0}")]
    Config(String),
    /// The new archive is not one that could be restored.
    #[error("the new archive could not be restored, so it was discarded; {}", remedy(.0))]
    Unverified(#[source] Box<ReadError>),
    /// The archive is not one that may be restored.
    #[error("{path} is refused as a whole, and nothing was changed")]
    Refused {
        /// The archive.
        path: PathBuf,
        /// Why.
        #[source]
        cause: Box<ReadError>,
    },
    /// What is in the archive cannot be used.
    #[error("{path} is refused as a whole, and nothing was changed: {reason}")]
    Unusable {
        /// The archive.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The machine refused.
    #[error("cannot {operation} {path}, and nothing was changed")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The state directory is restored and stays, and the configuration is not.
    #[error(
        "the state directory {target} was restored, but its configuration was not ({reason}), and \
         the directory could not be taken away again: remove it by hand and restore once more"
    )]
    WithoutConfig {
        /// The state directory.
        target: PathBuf,
        /// Why there is no configuration.
        reason: String,
        /// Why the directory stays.
        #[source]
        cause: io::Error,
    },
    /// The change could neither be completed nor taken back.
    #[error(
        "the state directory {target} could not be replaced nor put back; what it held is in \
         {kept}: move that back by hand"
    )]
    Stranded {
        /// Where the state directory should be.
        target: PathBuf,
        /// Where its content is.
        kept: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

/// What to do about a new archive that could not be restored.
fn remedy(cause: &ReadError) -> &'static str {
    match cause {
        ReadError::TooMuch(_) => {
            "leave the logs out with --no-logs, or move large files out of the state directory"
        }
        _ => "try again",
    }
}

/// An operation on a path that failed.
pub(super) fn at(operation: &'static str, path: &Path, cause: io::Error) -> BackupError {
    BackupError::Io { operation, path: path.to_owned(), cause }
}

pub(super) fn database_in(error: OpenError) -> BackupError {
    BackupError::Database(Box::new(error))
}

/// What is wrong with the database of an archive.
///
/// Its temporary path tells nobody anything.
pub(super) fn of_archive(archive: &Path, error: OpenError) -> BackupError {
    let reason = match error {
        OpenError::Unusable { problem, .. } => format!("its database is not usable: {problem}"),
        OpenError::Newer { found, known, .. } => format!(
            "its database has schema {found}, this version knows {known}: restore it with the \
             version that made it, or a newer one"
        ),
        other => return BackupError::Staged(Box::new(other)),
    };
    BackupError::Unusable { path: archive.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_is_too_large_names_what_to_leave_out() {
        let words = |cause| BackupError::Unverified(Box::new(cause)).to_string();
        assert!(words(ReadError::TooMuch("bytes of files")).contains("--no-logs"));
        assert!(words(ReadError::Manifest("x".to_owned())).ends_with("; try again"));
    }
}
