//! Remote environments without a live bridge: the bodies of `/api/environments`.

use crate::ids::SessionRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is left over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ghosts {
    /// Always true: the list is not there otherwise.
    pub enabled: bool,
    /// Environments of the account, of any kind.
    pub total: usize,
    /// Directories here in which an agent runs.
    pub live_dirs: usize,
    /// Those that can be removed, by directory.
    pub ghosts: Vec<Ghost>,
}

/// A remote environment without a live bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ghost {
    /// Token of its id.
    #[serde(rename = "ref")]
    pub environment_ref: SessionRef,
    /// Directory of its bridge.
    pub directory: String,
    /// Its name.
    pub name: String,
}

/// Body that removes environments.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReapRequest {
    /// `archive` or `delete`.
    pub action: String,
    /// Tokens of their ids.
    pub ids: Vec<String>,
    /// `archive`, or `DELETE` to delete.
    pub confirm: String,
}

/// What became of each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reaped {
    /// As it was asked for.
    pub action: String,
    /// Done.
    pub reaped: Vec<String>,
    /// Not left over, or not any more.
    pub skipped: Vec<String>,
    /// Failed, and why.
    pub errors: BTreeMap<String, String>,
}
