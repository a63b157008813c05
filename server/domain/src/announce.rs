//! Which end of a bridge is announced, seen from two of its records.

use crate::bridge::Bridge;
use crate::effect::Lifecycle;
use svc_shared::status::BridgeStatus;

/// The event of a generation that ended between two readings of a record.
///
/// For ends that another process recorded. `None` while it lives, when it had ended before, and for
/// ends that are no event: a session that ended by itself and a start that never became ready.
#[must_use]
pub fn end_between(before: &Bridge, after: &Bridge) -> Option<Lifecycle> {
    let ended = after.ended()?;
    let is_new = before.is_live() || before.generation != after.generation;
    let gave_up =
        before.restarts.quarantined_at.is_none() && after.restarts.quarantined_at.is_some();
    match after.status() {
        _ if !is_new => None,
        BridgeStatus::Crashed => Some(Lifecycle::Crash),
        BridgeStatus::Stopped if ended.intentional => Some(Lifecycle::Stop),
        // It stays down after it was restarted in vain.
        BridgeStatus::Error if gave_up => Some(Lifecycle::Crash),
        BridgeStatus::Starting
        | BridgeStatus::Running
        | BridgeStatus::Stopping
        | BridgeStatus::Stopped
        | BridgeStatus::Error => None,
    }
}
