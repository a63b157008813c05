//! The real program from outside: what it prints, where, and how it exits.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is how they fail"
)]

#[path = "binary/commands.rs"]
mod commands;
#[path = "binary/lifecycle.rs"]
mod lifecycle;
#[path = "binary/server.rs"]
mod server;
#[path = "binary/workspace.rs"]
mod workspace;
