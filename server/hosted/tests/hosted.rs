//! The daemon with real processes, and its client.
//!
//! The client runs against the daemon and against faults.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is how they fail"
)]

#[path = "hosted/daemon.rs"]
mod daemon;
#[path = "hosted/double.rs"]
mod double;
#[path = "hosted/faults.rs"]
mod faults;
