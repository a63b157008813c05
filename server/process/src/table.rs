//! The process table of the kernel.
//!
//! Linux shows it below `/proc`. Other systems answer questions about single processes. The environment
//! of a process is searched for one variable only and never leaves this module: the environment of an
//! agent's worker contains a valid token.

#[cfg(target_os = "linux")]
mod proc_files;
mod stat;
#[cfg(any(test, not(target_os = "linux")))]
mod system;

use std::io;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub use proc_files::ProcTable;
pub(crate) use stat::{Account, Stat};
#[cfg(not(target_os = "linux"))]
pub use system::ProcTable;

/// The environment variable that every process of a launch inherits.
pub const LAUNCH_ID_VARIABLE: &str = "SVC_LAUNCH_ID";

#[cfg(target_os = "linux")]
pub use proc_files::booted_at;
#[cfg(target_os = "linux")]
pub(crate) use proc_files::{running_file, running_metadata};
#[cfg(not(target_os = "linux"))]
pub use system::booted_at;
#[cfg(not(target_os = "linux"))]
pub(crate) use system::{running_file, running_metadata};

/// Where the kernel shows its processes.
const KERNEL_ROOT: &str = "/proc";

/// Why there is no process table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The boot id could not be read.
    #[error(
        "cannot read the boot id from {path}, without which no process can be told from another: \
         is the process file system mounted?"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The kernel names no boot.
    #[error("this system does not say when it was started; no process can be told from another")]
    NoBootId,
    /// The file contains no boot id.
    #[error("{path} holds no boot id")]
    BadBootId {
        /// The file.
        path: PathBuf,
    },
}
