//! Another version in the place of the running one: staged, tried, and kept or taken back.
//!
//! The command stages the new program beside the old one and asks the service. The service checks
//! it, ends as for a restart, keeps a copy of the registry, exchanges the files and starts the new
//! program as its child (`server/src/trial.rs`). Only a program that served there takes its place;
//! otherwise files and registry are as before, and so is the service.

mod error;
mod of_command;
mod start_check;
mod swap;

pub use error::NotUpgraded;
pub use of_command::{Upgraded, Wanted, upgrade};
pub use start_check::{StartCheck, start_check};
pub use swap::{Exchanged, Swap};

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where the outcome of the last upgrade is told, in the state directory.
const OUTCOME: &str = "upgrade.json";

/// What a command asks the service for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Tells one upgrade from another.
    pub id: String,
    /// The new program, beside the old one.
    pub staged: PathBuf,
    /// Its SHA-256.
    pub sha256: String,
    /// The old program, without links.
    pub target: PathBuf,
}

/// How an upgrade stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The upgrade.
    pub id: String,
    /// What came of it, so far.
    pub stage: Stage,
    /// Why the new program was not kept.
    pub reason: Option<String>,
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

impl Order {
    /// Where the old program is kept.
    #[must_use]
    pub fn previous(&self) -> PathBuf {
        previous(&self.target)
    }
}

/// Where the program before an upgrade is kept: beside it.
fn previous(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".previous");
    target.with_file_name(name)
}
