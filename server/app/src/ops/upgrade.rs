//! Another version in the place of the running one: tried, kept or taken back.
//!
//! The command stages the new program beside the old one and asks the service. The service checks
//! it, ends as for a restart, keeps a copy of the registry, exchanges the files and starts the new
//! program as its child (`server/src/trial.rs`). Only a program that served there takes its place;
//! otherwise files and registry are as before, and so is the service.

mod error;
mod of_command;
mod start_check;
mod swap;

pub use crate::ops::restart::Order;
pub use error::NotUpgraded;
pub use of_command::{Upgraded, Wanted, upgrade};
pub use start_check::{StartCheck, start_check};
pub use swap::{Exchanged, Swap, settle};

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The hidden command by which a program is asked whether it would start.
pub const CAN_START: &str = "__can-start__";
/// Where the outcome of the last upgrade is told, in the state directory.
const OUTCOME: &str = "upgrade.json";

/// How an upgrade stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The upgrade.
    pub id: String,
    /// What came of it, so far.
    pub stage: Stage,
    /// Why the new program was not kept.
    pub reason: Option<String>,
    /// The SHA-256 of the new program.
    pub sha256: Option<String>,
    /// Where the old program is kept.
    pub previous: Option<PathBuf>,
}

impl Outcome {
    /// What is told of the last upgrade.
    fn read(state_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(state_dir.join(OUTCOME)).ok()?).ok()
    }
}

/// How far an upgrade came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The new program is tried.
    Trying,
    /// It served and was kept.
    Kept,
    /// The old program and its registry are back.
    Returned,
}
