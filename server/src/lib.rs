//! The program: command line and composition.
//!
//! `cli` reads arguments and prints results, `compose` puts the service together, `serve` runs it.
//! What the service does is in the crates below this one.

pub mod cli;
pub mod permission_hook;
pub mod recap_hook;
pub mod safety;

mod ask;
mod compose;
mod error_chain;
mod logging;
mod serve;
mod signals;
mod successor;
mod tls;
mod trial;
mod twin;
