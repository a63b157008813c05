//! Why an optional part was not installed or removed.

use crate::AppError;
use std::io;
use std::path::PathBuf;
use svc_archive::ProgramError;

/// Why an optional part was not installed or removed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum DepsError {
    /// There is no such part.
    #[error("there is no optional part {0:?}; `svc deps list` shows them")]
    Unknown(String),
    /// It is not one that can be installed here.
    #[error("{name} {reason}")]
    NotInstallable {
        /// The part.
        name: &'static str,
        /// Why, and what to do.
        reason: String,
    },
    /// This version pins no build of it for this machine.
    #[error(
        "this version pins no download of {name} for {platform}, and trusts no other; {otherwise}, \
         or give a file and its digest: --from FILE --sha256 HEX"
    )]
    NoBuild {
        /// The part.
        name: &'static str,
        /// System and processor.
        platform: String,
        /// What else can be done.
        otherwise: &'static str,
    },
    /// The digest on the command line is none.
    #[error("--sha256 needs 64 hexadecimal digits")]
    NoDigest,
    /// The file to install from is not there.
    #[error("there is no file {0}")]
    NoFile(PathBuf),
    /// It is not what was wanted.
    #[error("its SHA-256 is {found}, and {wanted} was expected; nothing was installed")]
    Mismatch {
        /// What was expected.
        wanted: String,
        /// What came.
        found: String,
    },
    /// It could not be fetched.
    #[error("the download failed, and nothing was installed: {0}")]
    Download(String),
    /// The archive is not one that holds the program.
    #[error("the archive is refused, and nothing was installed")]
    Archive(#[from] ProgramError),
    /// What is in it is no program for this machine.
    #[error("it {0}; nothing was installed")]
    NoProgram(&'static str),
    /// A process runs from what is to be removed.
    #[error(
        "process {pid} runs from {path}; stop the Direct Sessions and end the daemon (`kill {pid}`) \
         first"
    )]
    Running {
        /// The process.
        pid: i32,
        /// Its program.
        path: PathBuf,
    },
    /// The directory of installed parts is not our own.
    #[error("{0} leads out of the state directory; nothing there is written or removed")]
    Outside(PathBuf),
    /// The audit log cannot be written, or a defect.
    #[error(transparent)]
    App(#[from] AppError),
    /// The machine refused.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}
