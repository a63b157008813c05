//! Bodies of `/api/config` and `/api/config/advanced` (`http-api` §3.5).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The keys of one list with their values and what may be done with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigReport {
    /// Value of every key, from the file.
    pub fields: BTreeMap<String, Value>,
    /// The keys that a save may name.
    pub editable: Vec<String>,
    /// What is known about every key.
    pub specs: BTreeMap<String, ConfigSpec>,
    /// Names what was read, for the save; null where the file cannot be read.
    pub hash: Option<String>,
    /// The file.
    pub file: Option<String>,
    /// Whether the service may be asked to save.
    pub can_save: bool,
    /// Keys that only the file sets, without their values.
    pub file_only: Vec<FileOnlyKey>,
}

/// What is known about a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigSpec {
    /// The dotted key.
    pub key: String,
    /// Its section, for grouping.
    pub section: String,
    /// Name of the section for people.
    pub section_label: String,
    /// Name of the key for people.
    pub label: String,
    /// `bool`, `int`, `float`, `str`, `enum`, `list` or `map`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The words of an `enum`.
    pub choices: Vec<String>,
    /// One sentence.
    pub description: String,
    /// Unit of a number.
    pub unit: Option<String>,
    /// Value of a key that nothing sets.
    pub default: Value,
    /// Whether null is a value.
    pub nullable: bool,
    /// Smallest number.
    pub min: Option<f64>,
    /// Largest number.
    pub max: Option<f64>,
    /// Whether the smallest number itself is outside.
    pub min_exclusive: bool,
    /// Names of a `map` with their defaults.
    pub map_keys: Vec<MapKey>,
    /// Whether another key replaces it.
    pub deprecated: bool,
    /// Whether what it needs is there; null for a key that needs nothing.
    pub dep_status: Option<DepStatus>,
    /// `file`, `env` or `default`.
    pub source: String,
    /// The variable that decides.
    pub env_name: Option<String>,
    /// When a change takes effect: `live`, `next_session` or `restart`.
    pub applies: String,
    /// The file says something else than what the service runs with.
    pub pending: bool,
}

/// A name of a map and its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapKey {
    /// The name.
    pub key: String,
    /// State of a name that is not written.
    pub default: bool,
}

/// Whether what a key needs is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepStatus {
    /// It is there.
    pub available: bool,
    /// What is missing.
    pub hint: String,
}

/// A key that only the file sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOnlyKey {
    /// The dotted key.
    pub key: String,
    /// One sentence about it.
    pub description: String,
    /// Why no editor changes it.
    pub reason: String,
}

/// What a save changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SaveConfig {
    /// Next value of each key.
    pub edits: BTreeMap<String, Value>,
    /// The `hash` that was read.
    pub hash: String,
}

/// What a save did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedConfig {
    /// Names the file as it is now.
    pub hash: String,
    /// At least one key takes effect only after a restart.
    pub restart_required: bool,
    /// The audit log has the save.
    pub audited: bool,
    /// Keys that were changed.
    pub changed: Vec<String>,
    /// Keys that a variable decides all the same, with its name.
    pub overridden: BTreeMap<String, String>,
}
