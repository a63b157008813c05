//! What a monitoring system wants to know, from copies in memory.
//! Asking costs no disk and starts no process.

use crate::ops::metrics::Metrics;
use std::collections::BTreeMap;
use svc_domain::usage::Usage;
use svc_shared::status::BridgeStatus;

/// Statuses that bridges are counted by; a status that nothing has counts zero.
const STATUSES: [BridgeStatus; 5] = [
    BridgeStatus::Starting,
    BridgeStatus::Running,
    BridgeStatus::Stopped,
    BridgeStatus::Crashed,
    BridgeStatus::Error,
];

/// Counts about Direct Sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostedFigures {
    /// Sessions that start or run.
    pub sessions: u64,
    /// The daemon is connected.
    pub is_up: bool,
}

/// Counts of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Bridges by status, each of the five present. Hosted sessions are not among them.
    pub bridges: BTreeMap<&'static str, u64>,
    /// Discovered projects.
    pub projects: u64,
    /// Crashes since this process began, by project.
    /// Also of bridges that were forgotten since.
    pub crashes: BTreeMap<String, u64>,
    /// Automatic restarts since this process began, by project.
    pub restarts: BTreeMap<String, u64>,
    /// Direct Sessions; `None` while the channel is off.
    pub hosted: Option<HostedFigures>,
    /// Use of the live bridges by project; empty while nothing was measured lately.
    pub usage: BTreeMap<String, Usage>,
}

impl Metrics {
    /// The counts of now.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let mut bridges: BTreeMap<&'static str, u64> =
            STATUSES.iter().map(|status| (status.as_str(), 0)).collect();
        for status in STATUSES {
            let count = self.copies.count(|bridge| bridge.status() == status);
            bridges.insert(status.as_str(), u64::try_from(count).unwrap_or(u64::MAX));
        }
        Figures {
            bridges,
            projects: u64::try_from(self.catalog.all().len()).unwrap_or(u64::MAX),
            crashes: self.copies.crashes(),
            restarts: self.copies.restarts(),
            hosted: None,
            usage: self.use_by_project(),
        }
    }
}
