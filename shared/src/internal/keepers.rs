//! Processes that hold the terminals of sessions: the body of `/api/keepers`.

use crate::Timestamp;
use crate::ids::{InstanceId, SessionRef};
use serde::{Deserialize, Serialize};

/// One keeper that lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// Its process id.
    pub keeper_pid: i32,
    /// The project of its session.
    pub project: String,
    /// The agent in its terminal; null when that is gone.
    pub bridge_pid: Option<i32>,
    /// Reference of the session; null until one is known.
    pub session_ref: Option<SessionRef>,
    /// How far its session is.
    ///
    /// `launching`, `starting`, `ready`, `failed`, `exited`, or `unknown` without a usable record.
    pub state: String,
    /// The instance it was started for; null when nobody knows.
    ///
    /// Its record may be gone.
    pub instance_id: Option<InstanceId>,
    /// When it began; null without a usable record.
    pub started_at: Option<Timestamp>,
    /// No record of its project is left.
    pub orphan: bool,
    /// The record that it keeps about itself is damaged. Nobody can connect to it.
    pub damaged: bool,
    /// Its release; null without a usable record.
    pub version: Option<String>,
    /// It was started by another release than the one that lists it.
    pub outdated: bool,
}

/// Answer of a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KilledKeeper {
    /// What was killed.
    pub keeper_pid: i32,
    /// Always true: it is gone.
    pub killed: bool,
}
