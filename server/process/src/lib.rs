//! Processes of this machine: identity, launch, signal, exit, locks and private files.
//!
//! Linux is the full implementation, on `/proc` and process descriptors. Elsewhere the crate
//! builds, exits are polled, and since nothing proves an identity there, nothing is signalled.
//! Which process to start, stop or keep is decided by others.

pub mod exit;
pub mod files;
pub mod host;
pub mod launcher;
pub mod locks;
pub mod process_umask;
pub mod run_lock;
pub mod table;

mod signals;
mod tree;

pub use host::{Host, HostError, HostOptions};
