//! Why another version was not installed.

use crate::AppError;
use crate::ops::restart::NotRestarted;
use std::io;
use std::path::PathBuf;
use svc_archive::ProgramError;

/// Why the service runs the version that it ran before, or nobody knows which.
#[derive(Debug, thiserror::Error)]
pub enum NotUpgraded {
    /// Nothing serves this state directory.
    #[error(
        "no service runs on this state directory; replace the file of the program and start it \
         with `svc run`"
    )]
    NotRunning,
    /// The program of the service is not known.
    #[error("the program of the service (process {pid}) cannot be found: {cause}")]
    NoProgram {
        /// The service.
        pid: i64,
        /// Why.
        cause: io::Error,
    },
    /// The new program is not there.
    #[error("there is no file {0}")]
    NoFile(PathBuf),
    /// The digest on the command line is none.
    #[error("--sha256 needs 64 hexadecimal digits")]
    NoDigest,
    /// It is not what was wanted.
    #[error("its SHA-256 is {found}, and {wanted} was expected; nothing was changed")]
    Mismatch {
        /// What was expected.
        wanted: String,
        /// What was found.
        found: String,
    },
    /// The archive is not one that holds the program.
    #[error("the archive is refused, and nothing was changed")]
    Archive(#[from] ProgramError),
    /// It does not run here, or is not svc.
    #[error("{0}; nothing was changed")]
    Unfit(String),
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
    /// The audit log cannot be written, or a defect.
    #[error(transparent)]
    App(#[from] AppError),
    /// The service goes on as it is, or was not asked.
    #[error(transparent)]
    Asked(NotRestarted),
    /// The new program was tried and did not serve.
    #[error("the new program was tried and taken back: {reason}; the service runs as before")]
    Returned {
        /// What it did.
        reason: String,
    },
    /// Nobody told what came of it.
    #[error(
        "nothing was heard of the service (process {pid}) after its upgrade had begun; see its log, \
         and `{previous}` for the program before"
    )]
    Away {
        /// The process of the service.
        pid: i64,
        /// Where the old program is kept.
        previous: PathBuf,
    },
}
