//! Pure decisions: no I/O, no clock, no async.
pub mod identity;
pub mod posture;
