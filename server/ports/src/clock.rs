//! The time of day.

use svc_shared::Timestamp;

/// The wall clock. Durations use the monotonic clock of the runtime instead.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}
