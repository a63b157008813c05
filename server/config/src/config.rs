//! The configuration as types: what the rest of the service reads.
//!
//! Field names are the key names. The structs are filled from the values of the key table and
//! refuse missing or surplus fields, so that table and types cannot drift apart.

use crate::secret::Secret;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use svc_shared::ids::ProjectName;
use svc_shared::status::{PermissionMode, RestartPolicy, ResumeMode, SpawnMode};

/// The whole configuration. All paths are absolute, all values satisfy their constraints.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Version of the additive-only schema the file was written for.
    pub schema_version: u32,
    /// Its direct child directories are the projects. It existed when the file was read.
    pub projects_root: PathBuf,
    /// Address to bind, as written.
    pub host: String,
    /// Port to bind.
    pub port: u16,
    /// Database, secrets and logs. It need not exist.
    pub state_dir: PathBuf,
    /// Sub-path behind a reverse proxy: empty, or `/a/b` without a slash at the end.
    pub root_path: String,
    /// Shape of the service log.
    pub log_format: LogFormat,
    /// Least severe entries of the service log.
    pub log_level: LogLevel,
    /// Name in the process title.
    pub instance_name: Option<String>,
    /// Unknown keys refuse to start.
    pub config_strict: bool,
    /// The agent program and its bridges.
    pub claude: Agent,
    /// What a new bridge gets when nobody says otherwise.
    pub instance_defaults: InstanceDefaults,
    /// Settings of single projects; a project without an entry has the defaults.
    pub projects: BTreeMap<ProjectName, Project>,
    /// Automatic restart.
    pub restart: Restart,
    /// Who may come in.
    pub auth: Auth,
    /// The API.
    pub api: Api,
    /// The browser pages.
    pub ui: Ui,
    /// The database.
    pub db: Db,
    /// The ghost-environment reaper.
    pub reaper: Reaper,
    /// Editing of configuration that executes code.
    pub config_write: ConfigWrite,
    /// Agent sign-in from the dashboard.
    pub login_shepherd: LoginShepherd,
    /// The MCP server.
    pub mcp: Mcp,
    /// Bridge logs.
    pub logs: Logs,
    /// Creating and cloning projects.
    pub clone: Clones,
    /// The usage badge.
    pub usage: Usage,
    /// What a bridge may use.
    pub ceilings: Ceilings,
    /// Resource use per row.
    pub metrics: Metrics,
    /// Metrics for Prometheus.
    pub observability: Observability,
    /// Notifications.
    pub notifications: Notifications,
    /// Event posts.
    pub webhooks: Webhooks,
    /// The hosted-session daemon.
    pub hosted: Hosted,
    /// Transport security; none is plain HTTP.
    pub tls: Option<Tls>,
    /// Cookie-signing key from the environment, at least 32 bytes. None: the state directory's.
    #[serde(skip)]
    pub session_secret: Option<Secret>,
}

impl Config {
    /// Settings of one project, defaults where nothing is written.
    #[must_use]
    pub fn project(&self, name: &ProjectName) -> Project {
        self.projects.get(name).cloned().unwrap_or_default()
    }

    /// Restart policy of one project, inherited where it has none of its own.
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

/// Shape of the service log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One readable line per entry.
    Text,
    /// One JSON object per line.
    Json,
}

/// Severity of log entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For diagnosis.
    Debug,
    /// Lifecycle.
    Info,
    /// Recovered or degraded.
    Warning,
    /// Somebody must act.
    Error,
}

/// The agent program and its bridges.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// A name to look up in `PATH`, or an absolute path.
    pub binary: String,
    /// Oldest supported agent version, as written.
    pub min_version: String,
    /// Period of the liveness cross-check.
    #[serde(rename = "agents_json_poll_interval_seconds", deserialize_with = "seconds")]
    pub agents_json_poll_interval: Duration,
    /// How long a bridge may take to register.
    #[serde(rename = "startup_grace_seconds", deserialize_with = "seconds")]
    pub startup_grace: Duration,
    /// Answers the agent's one-time remote-control question before the first spawn.
    pub auto_enable_remote_control: bool,
    /// Gives a restarted bridge a recap of its prior transcript.
    pub resume_recap: bool,
    /// Length of the recap in characters.
    pub resume_recap_max_chars: u32,
    /// Mode of new bridges.
    pub launch_mode: ResumeMode,
    /// Live terminal view of interactive sessions.
    pub pty_screen_enabled: bool,
    /// Directories after the inherited `PATH` of every bridge, in order.
    pub path_append: Vec<PathBuf>,
    /// Puts nvm's default node before the `PATH` of every bridge.
    pub node_from_nvm: bool,
    /// Variables laid over the environment of every bridge. Not scrubbed yet: see
    /// [`crate::is_scrubbed`].
    pub env: BTreeMap<String, Secret>,
    /// Time between the orderly signal and the kill.
    #[serde(rename = "stop_grace_seconds", deserialize_with = "seconds")]
    pub stop_grace: Duration,
    /// Whether bridges get a systemd scope of their own.
    pub scope: ScopeUse,
}

/// Whether bridges get a systemd scope of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeUse {
    /// Where a manager is reachable.
    Auto,
    /// Never.
    Off,
    /// Always: nothing is started without one.
    Require,
}

/// What a new bridge gets when nobody says otherwise.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceDefaults {
    /// Where sessions work.
    pub spawn_mode: SpawnMode,
    /// Permission mode handed to the agent.
    pub permission_mode: PermissionMode,
    /// Verbose agent output.
    pub verbose: bool,
    /// Prefix of session names; none is the host name.
    pub session_name_prefix: Option<String>,
    /// Sessions per bridge.
    pub capacity: u32,
    /// Most live bridges of the deployment.
    pub max_bridges: Option<u32>,
}

/// Settings of one project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Whether it may run without permission checks.
    pub allow_bypass_permissions: bool,
    /// Its own restart policy.
    pub restart: Option<RestartPolicy>,
}

/// Automatic restart.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Default policy.
    pub policy: RestartPolicy,
    /// First delay.
    #[serde(rename = "initial_delay_seconds", deserialize_with = "seconds")]
    pub initial_delay: Duration,
    /// Longest delay; never below the first.
    #[serde(rename = "max_delay_seconds", deserialize_with = "seconds")]
    pub max_delay: Duration,
    /// Growth of the delay, 1 to 10.
    pub multiplier: f64,
    /// Relative random spread of the delay, 0 to 1.
    pub jitter: f64,
    /// Crashes inside the window before giving up.
    pub max_crashes: u32,
    /// Window in which crashes count.
    #[serde(rename = "window_seconds", deserialize_with = "seconds")]
    pub window: Duration,
    /// Running time that resets delay and count.
    #[serde(rename = "stable_after_seconds", deserialize_with = "seconds")]
    pub stable_after: Duration,
}

/// Who may come in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Master switch; while it is off the other keys enforce nothing, origins and hosts excepted.
    pub enabled: bool,
    /// Password sign-in.
    pub password_required: bool,
    /// Argon2id hash of the password.
    pub password_hash: Option<Secret>,
    /// SHA-256 of the unnamed bearer token.
    pub api_token_hash: Option<Secret>,
    /// Permits a network bind without sign-in.
    pub allow_unauthenticated_network: bool,
    /// When the session cookie is marked `Secure`.
    pub cookie_secure: CookieSecure,
    /// Life of a sign-in.
    #[serde(rename = "session_max_age_seconds", deserialize_with = "seconds")]
    pub session_max_age: Duration,
    /// Extra browser origins in the form browsers send, enforced with auth off as well. An entry
    /// that is no origin is kept as written and never matches.
    pub allowed_origins: Vec<String>,
    /// Extra `Host` names, lower-case: exact, or `*.suffix`.
    pub allowed_hosts: Vec<String>,
    /// Trust in a reverse proxy.
    pub reverse_proxy: ReverseProxy,
}

/// When the session cookie is marked `Secure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CookieSecure {
    /// When the connection is encrypted.
    Auto,
    /// In every case.
    Always,
    /// In no case.
    Never,
}

/// Trust in a reverse proxy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseProxy {
    /// Whether a proxy may name the user.
    pub enabled: bool,
    /// Header that names the user.
    pub user_header: String,
    /// Header that carries the HMAC; never the user header.
    pub shared_secret_header: String,
    /// Addresses and ranges a proxy may have, each an IP or a CIDR.
    pub trusted_ips: Vec<String>,
    /// Key of the HMAC.
    pub shared_secret: Option<Secret>,
    /// Replay window.
    #[serde(rename = "hmac_window_seconds", deserialize_with = "seconds")]
    pub hmac_window: Duration,
    /// Off trusts the user header alone.
    pub require_hmac: bool,
}

/// The API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// Serves the API description.
    pub openapi_enabled: bool,
}

/// The browser pages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ui {
    /// Serves them.
    pub enabled: bool,
}

/// The database.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Db {
    /// Snapshot before a migration.
    pub backup_before_migrate: bool,
}

/// The ghost-environment reaper.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reaper {
    /// Shows it in the dashboard.
    pub ui_enabled: bool,
}

/// Editing of configuration that executes code.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigWrite {
    /// Allows it.
    pub enabled: bool,
    /// Allows it for the user's own configuration too.
    pub allow_user_scope: bool,
}

/// Agent sign-in from the dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginShepherd {
    /// Allows it.
    pub enabled: bool,
    /// Allows long-lived tokens too.
    pub allow_setup_token: bool,
}

/// The MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// Offers tools that write.
    pub allow_writes: bool,
}

/// Bridge logs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logs {
    /// Size in MiB at which a live bridge log rotates.
    pub bridge_log_max_size_mb: u32,
    /// Rotated generations per log; 0 truncates only.
    pub keep_rotated: u32,
    /// Writes a private raw copy and a redacted public log.
    pub redact_session_url: bool,
    /// Strips colour from streamed lines.
    pub strip_ansi_in_stream: bool,
    /// Oldest log sets kept, in days; 0 is forever.
    pub retention_max_age_days: u32,
    /// Newest log sets kept; 0 is all.
    pub retention_max_files: u32,
    /// Size in MiB of all log sets; 0 is no limit.
    pub retention_max_total_mb: u32,
}

/// Creating and cloning projects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clones {
    /// Allows it.
    pub enabled: bool,
    /// Schemes a clone may use; only `https` and `ssh` can ever work.
    pub allowed_schemes: Vec<String>,
    /// Clones from private networks.
    pub allow_private_hosts: bool,
    /// Private ranges clones may use, each a CIDR.
    pub allowed_private_cidrs: Vec<String>,
    /// Longest clone.
    #[serde(rename = "timeout_seconds", deserialize_with = "seconds")]
    pub timeout: Duration,
    /// Largest clone in MiB; 0 is no limit.
    pub max_mb: u32,
}

/// The usage badge.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// What it shows.
    pub mode: UsageMode,
    /// Currency code, upper-case.
    pub currency: String,
    /// Currency symbol; see [`Usage::symbol`].
    pub currency_symbol: Option<String>,
    /// Factor on USD.
    pub fx_rate: f64,
    /// Counts cache tokens.
    pub token_total_includes_cache: bool,
    /// Deprecated; already applied to `mode`.
    pub show_cost: bool,
}

impl Usage {
    /// The symbol to print: the configured one, `$` for USD, else the code and a blank.
    #[must_use]
    pub fn symbol(&self) -> String {
        match (&self.currency_symbol, self.currency.as_str()) {
            (Some(symbol), _) => symbol.clone(),
            (None, "USD") => "$".to_owned(),
            (None, code) => format!("{code} "),
        }
    }
}

/// What the usage badge shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageMode {
    /// Money.
    Cost,
    /// Tokens.
    Tokens,
    /// Nothing, and nothing is fetched.
    Off,
}

/// What a bridge may use, with everything it started. Measured while `metrics.enabled` is on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    /// Most processes; 0 is no limit.
    pub processes: u32,
    /// Most resident memory, MiB; 0 is no limit.
    pub memory_mb: u32,
    /// Most open files; 0 is no limit.
    pub open_files: u32,
    /// What happens above a ceiling.
    pub action: CeilingAction,
}

/// What happens above a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CeilingAction {
    /// The row says so.
    Warn,
    /// The bridge is stopped as well.
    Stop,
    /// It is stopped and its next generation is started.
    Recycle,
}

/// Resource use per row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Measures and shows it.
    pub enabled: bool,
    /// Divides by the number of cores.
    pub normalize_cpu: bool,
    /// Shows disk use.
    pub show_disk: bool,
    /// Window of a sample.
    #[serde(rename = "sample_interval_seconds", deserialize_with = "seconds")]
    pub sample_interval: Duration,
    /// Refresh of the dashboard.
    #[serde(rename = "poll_seconds", deserialize_with = "seconds")]
    pub poll: Duration,
}

/// Metrics for Prometheus.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observability {
    /// Serves them.
    pub prometheus_enabled: bool,
    /// SHA-256 of the scrape token.
    pub metrics_token_hash: Option<Secret>,
}

/// Notifications.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// Sends them.
    pub enabled: bool,
    /// Where they go.
    pub urls: Vec<Secret>,
    /// Browser notifications.
    pub browser_enabled: bool,
    /// Tells of crashes.
    pub notify_on_crash: bool,
    /// Tells of bridges that became ready.
    pub notify_on_ready: bool,
    /// Tells of stops.
    pub notify_on_stop: bool,
    /// Tells of permission requests.
    pub notify_on_permission: bool,
    /// Tells of ended sessions.
    pub notify_on_session_end: bool,
    /// Tells of failed reconnects.
    pub notify_on_reconnect_failed: bool,
}

/// Event posts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhooks {
    /// Sends them.
    pub enabled: bool,
    /// Where they go; an entry that is no http or https URL is no target.
    pub urls: Vec<Secret>,
    /// Key of the signature.
    pub secret: Option<Secret>,
    /// Longest post.
    #[serde(rename = "timeout_seconds", deserialize_with = "seconds")]
    pub timeout: Duration,
    /// Drops targets in private networks.
    pub block_private_targets: bool,
    /// State of every known event.
    pub events: BTreeMap<String, bool>,
}

/// The hosted-session daemon.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosted {
    /// Uses it.
    pub enabled: bool,
    /// A name to look up in `PATH`, or an absolute path.
    pub binary: String,
    /// Its socket; see [`Config::hosted_socket`].
    pub socket_path: Option<PathBuf>,
    /// Until it accepts connections.
    #[serde(rename = "spawn_timeout_seconds", deserialize_with = "seconds")]
    pub spawn_timeout: Duration,
    /// Sessions outlive it.
    pub keep_children: bool,
    /// Longest request to it.
    #[serde(rename = "request_timeout_seconds", deserialize_with = "seconds")]
    pub request_timeout: Duration,
}

/// Transport security.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Whether the service makes its own certificate.
    pub provision: TlsProvision,
    /// Names in it; the first is its subject.
    pub hostnames: Vec<String>,
    /// Certificate chain (PEM); set exactly when nothing is provisioned.
    pub cert_file: Option<PathBuf>,
    /// Private key (PEM); set exactly when nothing is provisioned.
    pub key_file: Option<PathBuf>,
}

/// Whether the service makes its own certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsProvision {
    /// The files are given.
    Off,
    /// It does.
    SelfSigned,
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let value = f64::deserialize(from)?;
    Duration::try_from_secs_f64(value).map_err(de::Error::custom)
}
