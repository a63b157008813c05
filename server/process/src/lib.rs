//! Processes of this machine: launches, signals, exits, locks, private files.
//!
//! Linux is the full implementation, with `/proc` and process descriptors. If the kernel has no
//! process descriptors or refuses them, exits are polled. The code for macOS is compiled and was never
//! run; it has no control groups and polls exits. Other crates decide which process to start, stop or
//! keep.

pub mod exit;
pub mod files;
pub mod host;
pub mod launcher;
pub mod locks;
pub mod meter;
pub mod own_program;
pub mod process_umask;
pub mod programs;
pub mod run_lock;
pub mod sockets;
pub mod table;

mod control_group;
mod scopes;
pub mod signal_state;
mod signals;
mod tree;

pub use host::{Host, HostOptions};
