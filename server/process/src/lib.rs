//! Processes of this machine: identity, launch, signal, exit, locks and private files.
//!
//! Linux is the full implementation, on `/proc` and process descriptors. Where the kernel has no
//! such descriptors, or refuses them, exits are polled through the same port. A system without
//! `/proc` has no host: nothing would prove there which process is meant.
//! Which process to start, stop or keep is decided by others.

pub mod exit;
pub mod files;
pub mod host;
pub mod launcher;
pub mod locks;
pub mod meter;
pub mod process_umask;
pub mod run_lock;
pub mod table;

mod control_group;
mod scopes;
mod signals;
mod tree;

pub use host::{Host, HostOptions};
