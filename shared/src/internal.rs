//! Bodies of the internal routes: they may change with any version.

pub mod access;
pub mod agent_config;
pub mod agent_sign_in;
pub mod changes;
pub mod clones;
pub mod conversations;
pub mod environments;
pub mod instructions;
pub mod keepers;
pub mod metrics;
pub mod notifications;
pub mod probe;
pub mod push;
pub mod report;
pub mod restore;
pub mod settings;
pub mod strays;
pub mod support;
pub mod usage;
pub mod webhooks;

use crate::api::approvals::Approval;
use crate::api::health::Health;
use crate::api::instances::Instance;
use crate::api::jobs::BackgroundJob;
use crate::api::limits::PlanLimit;
use crate::api::planned_launches::PlannedLaunch;
use crate::api::projects::Project;
use crate::api::sessions::WorkingSession;
use crate::status::{
    CheckStatus, ConnectKind, ExitReason, History, LaunchMode, PermissionMode, RestartPolicy,
    ResumeMode, SpawnMode,
};
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the caller of `bootstrap` is authenticated and what the browser may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthInfo {
    /// Authentication is on.
    pub enabled: bool,
    /// A password is configured.
    pub password_set: bool,
    /// `off`, `cookie`, `token` or `proxy`.
    pub method: String,
    /// Origins from which this server takes requests.
    pub allowed_origins: Vec<String>,
}

/// Features of this server; an absent one has no control on the page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Features {
    /// Leftover environments can be listed.
    pub reaper: bool,
    /// Agent configuration can be edited.
    pub config_write: bool,
    /// … in the user scope too.
    pub config_write_user_scope: bool,
    /// The page can sign the agent in.
    pub login_shepherd: bool,
    /// … with a long-lived token.
    pub setup_token: bool,
    /// Direct Sessions.
    pub hosted: bool,
    /// Interactive Sessions.
    pub pty_supported: bool,
    /// Live terminal view.
    pub pty_screen: bool,
    /// Typing into the live terminal, for credentials without scopes.
    pub terminal_input: bool,
    /// Why the live terminal is not usable.
    pub pty_screen_hint: Option<String>,
    /// Projects can be created and cloned.
    pub clone: bool,
    /// Samples of CPU and memory are taken.
    pub metrics: bool,
    /// … and of disk rates.
    pub metrics_show_disk: bool,
    /// The document is served.
    pub openapi: bool,
    /// The service can restart itself.
    pub restart: bool,
}

/// The answer to `POST /api/restart`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarting {
    /// Always true: what does not restart is answered with an error.
    pub restarting: bool,
}

/// Values a launch takes when the request is silent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    /// Default working directory strategy.
    pub spawn_mode: Word<SpawnMode>,
    /// Default permission mode.
    pub permission_mode: Word<PermissionMode>,
    /// Default kind of bridge.
    pub resume_mode: Word<ResumeMode>,
}

/// Words for one permission mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionLabel {
    /// For chips.
    pub short: String,
    /// For lists.
    pub long: String,
    /// One sentence on what it lets the agent do.
    pub effect: String,
}

/// Bounds the page should know before it sends something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds a bridge may take to register.
    pub startup_grace_seconds: f64,
    /// Most live bridges; null without a cap.
    pub max_bridges: Option<u32>,
    /// Longest session name, characters.
    pub name_chars: u32,
    /// Longest prompt, bytes.
    pub prompt_bytes: u32,
    /// Longest message, bytes.
    pub message_bytes: u32,
    /// Largest `CLAUDE.md`, bytes.
    pub claude_md_bytes: u32,
    /// Seconds a password proof lasts.
    pub elevation_seconds: u32,
    /// Seconds a login lasts.
    pub session_max_age_seconds: u64,
}

/// What somebody chose for the page, on every device they use it from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UiPrefs {
    /// The choices; what is absent or null has its default.
    pub prefs: serde_json::Map<String, serde_json::Value>,
    /// Counts changes; a change names the one it was made on. 0 before the first.
    pub rev: u64,
}

/// What the page needs before it can show anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// Service version.
    pub version: String,
    /// Hash of the served page files; empty without a page.
    pub build: String,
    /// Configured prefix, empty or `/a/b`.
    pub root_path: String,
    /// Where the projects are.
    pub projects_root: String,
    /// Authentication.
    pub auth: AuthInfo,
    /// What this server can do.
    pub features: Features,
    /// What a launch takes when silent.
    pub defaults: Defaults,
    /// Words per permission mode.
    pub permission_labels: BTreeMap<String, PermissionLabel>,
    /// Bounds.
    pub limits: Limits,
    /// Running under `svc demo`.
    #[serde(default)]
    pub demo: bool,
    /// Name of this machine.
    #[serde(default)]
    pub hostname: String,
    /// Name of its time zone, as IANA lists it; empty where it is not known.
    #[serde(default)]
    pub timezone: String,
    /// What somebody chose for the page; null for a caller who may not read it.
    #[serde(default)]
    pub ui_prefs: Option<UiPrefs>,
    /// How tokens and costs are shown.
    #[serde(default)]
    pub usage: usage::UsageDisplay,
    /// Of what a page in the background may notify.
    #[serde(default)]
    pub notifications: PageNotifications,
}

/// Of what a page in the background may notify.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageNotifications {
    /// Of anything at all.
    pub browser_enabled: bool,
    /// When a session crashes.
    pub on_crash: bool,
    /// When a session becomes ready.
    pub on_ready: bool,
    /// When a session is stopped.
    pub on_stop: bool,
    /// Devices can be notified while the page is closed.
    #[serde(default)]
    pub push_enabled: bool,
}

/// Preflight in the stream: the verdict and the words of what blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightSummary {
    /// A default launch would be attempted.
    pub ok: bool,
    /// Ids of the checks that fail.
    pub codes: Vec<String>,
}

/// One check of a preflight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name.
    pub name: String,
    /// Verdict.
    pub status: Word<CheckStatus>,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Readiness of the service and of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    /// False exactly when a check fails.
    pub ok: bool,
    /// When the checks ran.
    pub at: Timestamp,
    /// Version of the service.
    pub version: String,
    /// The configuration file; null without one.
    pub config_path: Option<String>,
    /// Every check with its verdict.
    pub checks: Vec<Check>,
}

/// Whether one kind of launch is possible now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchVerdict {
    /// It would be attempted.
    pub ok: bool,
    /// Why not: an error code, `not_git` or `pty_unavailable`.
    pub code: Option<String>,
}

/// Readiness of one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preflight {
    /// Project name.
    pub project: String,
    /// False exactly when a default launch would be refused.
    pub ok: bool,
    /// Every check with its verdict.
    pub checks: Vec<Check>,
    /// Verdict per kind: `standard`, `pty`, `worktree`, `hosted`, `background`.
    pub launch: BTreeMap<String, LaunchVerdict>,
    /// Facts for a launch dialog; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
}

/// What a launch dialog shows before the launch. Names only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// What `inherit` would mean.
    pub inherit: InheritFact,
    /// Events with hooks.
    pub hooks: Vec<String>,
    /// MCP servers of the project.
    pub mcp_servers: Vec<McpServerFact>,
    /// Live bridges against the cap.
    pub capacity: CapacityFact,
    /// Restart policy of a launch that names none.
    #[serde(default)]
    pub restart: Option<Word<RestartPolicy>>,
}

/// Effective default permission mode and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritFact {
    /// Mode the agent's settings give.
    pub mode: String,
    /// `managed`, `user`, `project`, `local` or null.
    pub source: Option<String>,
}

/// One MCP server a project brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerFact {
    /// Its name.
    pub name: String,
    /// Null while undecided.
    pub approved: Option<bool>,
}

/// Live bridges against the cap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityFact {
    /// Live now.
    pub live: u32,
    /// Cap, if one is configured.
    pub max: Option<u32>,
}

/// Preflight of all projects, by name.
pub type PreflightAll = BTreeMap<String, PreflightBrief>;

/// Readiness of one project in the bulk answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightBrief {
    /// False exactly when a default launch would be refused.
    pub ok: bool,
    /// Every check with its verdict.
    pub checks: Vec<Check>,
}

/// Body of a bulk trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustAllRequest {
    /// The projects meant, by name.
    pub names: Vec<String>,
}

/// The link for the remote client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connect {
    /// A credential: show it, never store it.
    pub url: String,
    /// Which link it is.
    pub kind: Word<ConnectKind>,
}

/// Answer of a forget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// The row that is gone.
    pub id: String,
    /// Always true.
    pub forgotten: bool,
}

/// A page of log lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    /// Redacted lines, oldest first.
    pub lines: Vec<String>,
    /// Cursor for the step back; null at the start.
    pub first: Option<String>,
    /// Cursor after the last line.
    pub cursor: String,
    /// Generation the lines belong to.
    pub generation: u32,
    /// Nothing more is there now.
    pub eof: bool,
    /// What the ended process printed besides its log.
    /// At the end of the log only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
}

/// Login facts of the agent, from the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginStatus {
    /// Logged in; true before the first probe.
    pub claude_login_ok: bool,
    /// Null until probed.
    pub claude_login_method: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub claude_login_expires_at: Option<i64>,
}

/// Everything the page shows, as one document. Absent features have empty maps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// By name.
    pub projects: BTreeMap<String, Arc<Project>>,
    /// By id.
    pub instances: BTreeMap<String, Arc<Instance>>,
    /// Background jobs by id.
    pub jobs: BTreeMap<String, Arc<BackgroundJob>>,
    /// External sessions by project.
    pub external: BTreeMap<String, Vec<WorkingSession>>,
    /// Tracked sessions by instance id.
    pub tracked: BTreeMap<String, Vec<WorkingSession>>,
    /// Names of projects whose external bridge can be adopted.
    pub adoptable: Vec<String>,
    /// What sessions that nobody manages ask, by the name of the request.
    pub questions: BTreeMap<String, Approval>,
    /// Launches that wait for a plan limit, or could not be started, by id.
    pub launches: BTreeMap<String, PlannedLaunch>,
    /// The plan limit that a launch of now would run into; null where none is known.
    pub plan_limit: Option<PlanLimit>,
    /// Clones by job id.
    pub clones: BTreeMap<String, clones::CloneJob>,
    /// Readiness by project.
    pub preflight: BTreeMap<String, PreflightSummary>,
    /// The full health report.
    pub health: Option<Health>,
    /// Login facts.
    pub login: Option<LoginStatus>,
    /// A running sign-in; null without one.
    pub shepherd: Option<agent_sign_in::SignInRecord>,
    /// The restore that runs or ran last; null before the first.
    pub restore: Option<restore::RestoreJob>,
    /// Bridges per status.
    pub counts: BTreeMap<String, u32>,
}

/// The state at one point of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateAt {
    /// Random per server process.
    pub boot: String,
    /// Position in the stream.
    pub seq: u64,
    /// Everything.
    pub state: State,
}

/// What happened to bridges, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryPage {
    /// The events.
    pub events: Vec<HistoryEvent>,
    /// `before` of the next older page; null at the beginning of what is kept.
    pub next_before: Option<i64>,
}

/// One thing that happened; kept after its bridge is forgotten.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEvent {
    /// Grows with every event.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// In which project.
    pub project: String,
    /// To which bridge.
    pub instance_id: Option<String>,
    /// What.
    pub kind: Word<History>,
    /// Kind of bridge.
    pub mode: Word<LaunchMode>,
    /// Token of its session, if one was attached.
    pub session_ref: Option<String>,
    /// On ends: why, where that is known.
    pub exit_reason: Option<Word<ExitReason>>,
    /// What is known besides, in words: why a link was lost.
    #[serde(default)]
    pub detail: Option<String>,
    /// On ends: what it cost, US dollars; null where no prices are known.
    pub cost_usd: Option<f64>,
}

/// What a list of projects may be sorted by beside its own members.
/// Null means never, or unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SortData {
    /// When a bridge last did something there.
    pub last_used: Option<Timestamp>,
    /// What its bridges cost, US dollars.
    pub cost_usd: Option<f64>,
}

/// One project with everything around it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectRow {
    /// The project.
    pub project: Project,
    /// Whether a launch would happen.
    pub preflight: Preflight,
    /// Sessions that work there without a bridge of this service.
    pub external: Vec<WorkingSession>,
    /// A Server Mode bridge runs there that this service could take over.
    pub adoptable: bool,
    /// Its bridges, in the order of registration.
    pub instances: Vec<Instance>,
    /// Tokens and cost; null in a version that does not count them.
    pub usage: Option<serde_json::Value>,
    /// Processor and memory of its bridges; null while nothing was measured.
    pub metrics: Option<metrics::ProjectMetrics>,
}
