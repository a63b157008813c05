//! Launching an agent so that the store knows its process before the agent runs.
//!
//! The service starts its own program as `__launch__` ([`run`]) and gives it an order. The launcher
//! prepares everything, writes its identity into the identity file and reports that it is ready. It
//! becomes the agent, with the same pid, only when the service says `go`. If the service dies before,
//! nothing is left running. If it dies after, the process is in its records.
//!
//! Protocol, one line each. To standard input: the order (JSON), then `go`. From standard output:
//! `ready` or `refused <reason>`, then end-of-file once the agent runs, or `errno <number>`.

mod become_agent;
mod held;
mod identity_file;
mod order;

pub use become_agent::run;
pub use identity_file::{IdentityFileError, read_identity};

pub(crate) use held::hold;

use std::ffi::OsString;
use std::path::PathBuf;

/// The program that is started as launcher.
///
/// It must call [`run`] before anything else.
#[derive(Debug, Clone)]
pub struct LauncherProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl Default for LauncherProgram {
    /// This very program, even if its file was replaced since, with a hidden command.
    fn default() -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), args: vec![OsString::from("__launch__")] }
    }
}
