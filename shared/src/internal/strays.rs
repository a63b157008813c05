//! Processes of bridges that no live bridge answers for: the body of `/api/strays`.

use crate::Timestamp;
use crate::ids::InstanceId;
use serde::{Deserialize, Serialize};

/// One such process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stray {
    /// Its process id.
    pub pid: i32,
    /// `leftover`: its bridge has ended. `duplicate`: a second agent of a live bridge.
    pub kind: String,
    /// The project of the bridge; null when neither a record nor its directory tells.
    pub project: Option<String>,
    /// The record; null when it was forgotten or has gone on to another generation.
    pub instance_id: Option<InstanceId>,
    /// File name of the program.
    pub program: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
}

/// Answer of a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KilledStray {
    /// What was killed.
    pub pid: i32,
    /// Always true: it is gone.
    pub killed: bool,
}
