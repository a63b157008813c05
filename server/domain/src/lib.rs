//! Pure decisions: no I/O, no clock, no async.
pub mod admission;
pub mod bridge;
pub mod decide;
pub mod effect;
pub mod identity;
pub mod observe;
pub mod posture;
pub mod redact;
