//! Launches: an agent process that the store knows before it becomes an agent.
//!
//! The service starts its own program as `__launch__` ([`run`]) and gives it an order. That
//! process prepares everything, writes who it is into the identity file and says so; it becomes
//! the agent, pid unchanged, only when told. A service that dies before that leaves nothing
//! running, one that dies after has it in its records.
//!
//! Conversation, one line each. To standard input: the order (JSON), `go`. From standard output:
//! `ready` or `refused <reason>`, then end-of-file once the agent runs or `errno <number>`.

mod become_agent;
mod held;
mod identity_file;
mod order;

pub use become_agent::run;
pub use identity_file::{IdentityFileError, read_identity};

pub(crate) use held::hold;

use std::ffi::OsString;
use std::path::PathBuf;

/// What is started as launcher: it has to call [`run`] before anything else.
#[derive(Debug, Clone)]
pub struct LauncherProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl Default for LauncherProgram {
    /// This very program, even if its file was replaced since: `__launch__` is its hidden command.
    fn default() -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), args: vec![OsString::from("__launch__")] }
    }
}
