//! The configuration as types, and the definition of every key.
//!
//! The sections are in the files below. Field names are the key names, but for spans of time, whose keys end in their unit.

mod access;
mod bridges;
mod reporting;

use crate::keys::terms::*;
use crate::keys::{choice, section};
use crate::schema::{Kind, Preset, TextRule};
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use svc_shared::ids::ProjectName;
use svc_shared::status::RestartPolicy;

pub use access::{
    Api, Auth, Clones, ConfigWrite, CookieSecure, Db, LoginShepherd, Mcp, Reaper, ReverseProxy,
    Tls, TlsProvision, Ui,
};
pub use bridges::{
    Agent, CeilingAction, Ceilings, InstanceDefaults, Logs, Metrics, Project, Restart, ScopeUse,
};
pub use reporting::{Hosted, Notifications, Observability, Push, Usage, UsageMode, Webhooks};

section! {
    /// The whole configuration at one moment.
    ///
    /// All paths are absolute, and all values satisfy their constraints.
    ConfigValues "" {
        /// Version of the additive-only schema that the file was written for.
        schema_version: u32 = int(1) => num(1), File Restart;
        /// Its direct child directories are the projects.
        /// It existed when the file was read.
        projects_root: PathBuf = PATH => Preset::Required, File Restart;
        /// Address to bind.
        host: String = text(TextRule::Host) => is("127.0.0.1"), File Restart;
        /// Port to bind.
        port: u16 = int_between(1, 65_535) => num(7621), File Restart;
        /// Directory of the database, the secrets and the logs.
        /// It need not exist.
        state_dir: PathBuf = PATH => Preset::Derived, File Restart;
        /// Sub-path behind a reverse proxy.
        /// Empty, or `/a/b` without a slash at the end.
        root_path: String = text(TextRule::RootPath) => is(""), File Restart;
        /// Shape of the service log.
        log_format: LogFormat = one_of(LogFormat::WORDS) => is("text"), Basic Restart;
        /// Least severe entries of the service log.
        log_level: LogLevel = Kind::Choice { words: LogLevel::WORDS, fold: true }
            => is("info"), File Restart;
        /// Name in the process title.
        instance_name: Option<String> = text(TextRule::InstanceName) => NULL, File Restart;
        /// Refuses to start when the file has an unknown key.
        config_strict: bool = BOOL => OFF, File Restart;

        sections:
        /// The agent program and its bridges.
        claude: Agent,
        /// Defaults of a new bridge.
        instance_defaults: InstanceDefaults,
        /// Settings of single projects; a project without an entry has the defaults.
        projects: BTreeMap<ProjectName, Project>,
        /// Automatic restart.
        restart: Restart,
        /// Authentication.
        auth: Auth,
        /// Transport security; none is plain HTTP.
        tls: Option<Tls>,
        /// The API.
        api: Api,
        /// The browser pages.
        ui: Ui,
        /// The database.
        db: Db,
        /// The ghost-environment reaper.
        reaper: Reaper,
        /// Editing of configuration that executes code.
        config_write: ConfigWrite,
        /// Agent sign-in from the dashboard.
        login_shepherd: LoginShepherd,
        /// The MCP server.
        mcp: Mcp,
        /// Bridge logs.
        logs: Logs,
        /// Creating and cloning projects.
        clone: Clones,
        /// The usage badge.
        usage: Usage,
        /// What a bridge may use.
        ceilings: Ceilings,
        /// Resource use per row.
        metrics: Metrics,
        /// Metrics for Prometheus.
        observability: Observability,
        /// Notifications.
        notifications: Notifications,
        /// Notifications of devices.
        push: Push,
        /// Event posts.
        webhooks: Webhooks,
        /// The hosted-session daemon.
        hosted: Hosted,

        besides:
        /// Cookie-signing key from the environment, at least 32 bytes.
        /// None: the service uses the key in the state directory.
        session_secret: Option<Secret>,
    }
}

impl ConfigValues {
    /// Settings of one project; what is not written has its default.
    #[must_use]
    pub fn project(&self, name: &ProjectName) -> Project {
        self.projects.get(name).cloned().unwrap_or_default()
    }

    /// Restart policy of one project; without its own it inherits the general one.
    #[must_use]
    pub fn restart_policy(&self, name: &ProjectName) -> RestartPolicy {
        self.project(name).restart.unwrap_or(self.restart.policy)
    }

    /// Socket of the hosted-session daemon, by default inside the state directory.
    #[must_use]
    pub fn hosted_socket(&self) -> PathBuf {
        self.hosted
            .socket_path
            .clone()
            .unwrap_or_else(|| self.state_dir.join("hosted").join("daemon.sock"))
    }
}

choice! {
    /// Shape of the service log.
    LogFormat {
        /// One readable line per entry.
        Text = "text",
        /// One JSON object per line.
        Json = "json",
    }
}

choice! {
    /// Severity of log entries.
    LogLevel {
        /// For diagnosis.
        Debug = "debug",
        /// One line per transition.
        Info = "info",
        /// Recovered or degraded.
        Warning = "warning",
        /// Somebody must act.
        Error = "error",
    }
}
