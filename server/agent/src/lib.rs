//! The agent CLI: probes, its files, its logs.

pub mod binary;
pub mod cli;
mod config_file;
pub mod conversation;
pub mod debug_watch;
pub mod environment;
mod files;
mod growing_file;
pub mod home;
pub mod jobs;
mod json_edit;
mod json_part;
pub mod log_set;
pub mod log_tail;
pub mod login;
mod mirror;
pub mod node;
mod plain_path;
pub mod pointer;
mod project_file;
pub mod registry;
mod regular_file;
pub mod retention;
pub mod role;
pub mod rotation;
pub mod run;
pub mod scope_file;
pub mod session_list;
pub mod settings;
mod stamp;
pub mod transcript;
mod transcript_dirs;
pub mod transcripts;
pub mod trust;
pub mod version;

pub use cli::{AgentCli, AgentSetup};
