//! What the connections of a daemon share.

use super::table::Table;
use std::sync::atomic::{AtomicBool, Ordering};
use svc_domain::identity::ProcessIdentity;
use svc_shared::Timestamp;
use tokio_util::sync::CancellationToken;

/// The daemon as its connections see it.
pub(super) struct Daemon {
    pub token: String,
    pub identity: ProcessIdentity,
    pub started_at: Timestamp,
    pub table: Table,
    pub keep: AtomicBool,
    pub ending: CancellationToken,
}

impl Daemon {
    /// Begins the end; with `keep` the agents go on.
    pub(super) fn end(&self, keep: bool) {
        self.keep.store(keep && self.keep.load(Ordering::Acquire), Ordering::Release);
        self.ending.cancel();
    }
}
