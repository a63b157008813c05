//! Use-cases, supervisor and read model.
//!
//! [`App`] is what every door holds: it names a subject for each thing that can be asked. A subject
//! is a struct with the parts that it needs; `compose.rs` builds them all.
//! `bridges/transition.rs` is the only writer of a bridge's state.

mod addresses;
mod agent;
mod agent_config;
mod agent_sign_in;
mod app;
mod asked;
pub mod auth;
#[cfg(test)]
mod bench;
mod bridges;
pub mod certificates;
mod compose;
mod debounce;
mod environments;
mod error;
mod failpoint;
mod hosted;
mod jobs;
mod launch_plans;
mod locks;
mod log_files;
mod logs;
mod nudge;
mod ops;
mod outbound;
mod projects;
pub mod read_model;
mod registry;
mod requested;
mod sessions;
mod stranded;
mod supervise;
mod tasks;
mod terminal;
mod transcripts;

pub use agent::Agent;
pub use agent_config::{
    AgentConfigEditor, ConfigTarget, CopiesOf, ServerChange, SkillWrite, recap_for,
};
pub use agent_sign_in::AgentSignIn;
pub use app::App;
pub use asked::ask_service;
pub use auth::refs;
pub use bridges::restore::MOST_AT_ONCE;
pub use environments::Environments;
pub use error::{AppError, Class};
pub use hosted::{Approvals, HostedItem, HostedSessions, HostedViewer};
pub use launch_plans::LaunchPlans;
pub use logs::{LogItem, LogQuery, LogStart, LogSubscription};
pub use ops::reserve::make_room;
pub use ops::{
    Actor, ConfigEditor, ConfigFile, ConfigList, ConfigSurface, FileChange, OLDER_LOG, Reloaded,
    SERVICE_LOG, SupportBundle, Written as ConfigWritten, ask_reload,
};
pub use ops::{
    Figures, HostedFigures, VERSION, acting_as, acting_as_now, backup, deps, doctor, legacy,
    restart, setup, upgrade,
};
pub use outbound::{Notifications, Push, Subscriber, Webhooks};
pub use projects::changes::{Checkout, FilePart};
pub use projects::changes_watch::ChangesWatch;
pub use projects::clones::{Clones, is_over as is_clone_over, suggested_name};
pub use supervise::Supervisor;
pub use svc_config::is_named_in;
pub use svc_domain::usage::Usage;
pub use svc_store::HistoryFilter;
pub use terminal::{Since as TerminalSince, TerminalForm, TerminalItem, TerminalViewer, Terminals};
pub use transcripts::{FileUsage, Followed, Follower, PageQuery, Transcripts, usage_of_file};

use auth::refs::Refs;
use std::sync::Arc;
use svc_config::{Config, Origin};
use svc_ports::{Clock, ProcessHost};
use svc_projects::Projects;
use svc_store::Store;

/// Which process this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The service: it supervises, announces, and gives launches a deadline.
    Server,
    /// A command: it does one thing and ends.
    /// A bridge it starts belongs to whoever serves next.
    Command,
    /// A command that only looks: nothing is written.
    Reader,
}

/// Where the projects come from.
/// Kept up to date by a watch, or read once by a command.
pub trait ProjectSource: Send + Sync {
    /// The projects as they are known now.
    fn snapshot(&self) -> Arc<Projects>;

    /// Counts up at every change; `None` where nothing ever changes.
    fn changes(&self) -> Option<tokio::sync::watch::Receiver<u64>>;
}

/// What an [`App`] is made of.
pub struct Parts {
    /// The configuration.
    pub config: Arc<Config>,
    /// What it was read from.
    pub origin: Origin,
    /// Which process this is.
    pub role: Role,
    /// Running on a private temporary tree.
    pub demo: bool,
    /// The registry.
    pub store: Store,
    /// Processes of this machine.
    pub host: Arc<dyn ProcessHost>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The agent program and its files.
    pub agent: Arc<Agent>,
    /// Tells of changed files.
    pub watcher: svc_watch::Watcher,
    /// The projects.
    pub projects: Arc<dyn ProjectSource>,
    /// Where projects are, for those that are made.
    pub project_rules: svc_projects::Rules,
    /// Makes tokens; `None` when this installation has no secret yet.
    pub refs: Option<Refs>,
    /// Umask the service was started with; agents get it.
    pub umask: u32,
    /// The port that is served, which differs from the configured one when that is 0.
    pub port: u16,
}
