//! Keepers with real processes and real terminals.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

mod hostile;
mod sessions;
mod support;
mod viewers;
