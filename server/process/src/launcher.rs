//! Launching an agent so that the store knows its process before the agent runs.
//!
//! The service starts its own program as `__launch__` ([`run`]) and gives it an order. The launcher
//! prepares everything, writes its identity into the identity file and reports that it is ready. It
//! becomes the agent, with the same pid, only when the service says `go`. If the service dies before,
//! nothing is left running. If it dies after, the process is in its records.
//!
//! An agent with a terminal has a keeper between the service and the launcher. The service starts its
//! own program as `__keeper__` and gives it a [`KeeperOrder`]. The keeper starts the launcher on the
//! terminal and passes on what either says, so the two steps are the same.
//!
//! Protocol, one line each. To standard input: the order (JSON), then `go`. From standard output:
//! `ready` or `refused <reason>`, then end-of-file once the agent runs, or `errno <number>`. A keeper
//! says `ready <pid> <start ticks>` of the launcher.

mod become_agent;
mod held;
mod identity_file;
mod keeper_order;
mod order;

pub use become_agent::{close_inherited, run};
pub use identity_file::{IdentityFileError, read_identity};
pub use keeper_order::{KeeperOrder, KeeperTerminal};

pub use crate::table::LAUNCH_ID_VARIABLE;
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

impl LauncherProgram {
    /// This very program as keeper.
    #[must_use]
    pub fn keeper() -> Self {
        Self { args: vec![OsString::from("__keeper__")], ..Self::default() }
    }
}

impl Default for LauncherProgram {
    /// This very program, even if its file was replaced since, with a hidden command.
    fn default() -> Self {
        Self { program: own_file(), args: vec![OsString::from("__launch__")] }
    }
}

#[cfg(target_os = "linux")]
fn own_file() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Elsewhere a program can only be started by its name.
#[cfg(not(target_os = "linux"))]
fn own_file() -> PathBuf {
    crate::own_program::path().unwrap_or_default()
}
