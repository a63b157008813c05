//! Measured use of processor, memory and disk.
//!
//! The bodies of `/api/metrics` and `/api/projects/{name}/metrics`, and the sample frames.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// What a bridge with everything it started uses now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Always true: what does not run has no use.
    pub running: bool,
    /// Live processes.
    pub procs: u32,
    /// Processor time in percent of one core, or of all if `cpu_normalized`.
    pub cpu_percent: f64,
    /// `cpu_percent` is a share of all cores.
    pub cpu_normalized: bool,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
    /// Bytes per second read from disks; null where the system does not tell.
    pub disk_read_bps: Option<u64>,
    /// Bytes per second written to disks; null where the system does not tell.
    pub disk_write_bps: Option<u64>,
}

/// One bridge in `/api/metrics`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceMetrics {
    /// Now.
    #[serde(flatten)]
    pub now: Metrics,
    /// The last samples, oldest first, at most 60; only with `?history=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Sample>>,
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When the window ended.
    pub time: Timestamp,
    /// As in [`Metrics`].
    pub cpu_percent: f64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
}

/// All bridges of a project together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProjectMetrics {
    /// Something runs and was measured.
    Running {
        /// The sum.
        #[serde(flatten)]
        total: Metrics,
        /// How many bridges are in it.
        bridges: u32,
    },
    /// Nothing was measured: nothing runs, or sampling is off.
    Idle {
        /// Always false.
        running: bool,
    },
}
