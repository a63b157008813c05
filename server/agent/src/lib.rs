//! The agent CLI: probes, its files, its logs.

pub mod binary;
pub mod cli;
pub mod environment;
pub mod home;
pub mod log_set;
pub mod login;
pub mod node;
pub mod role;
pub mod run;
pub mod session_list;
pub mod version;
