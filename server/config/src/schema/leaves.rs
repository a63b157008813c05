//! The table of all keys: one row per key, in the order of the documentation.
//!
//! A row reads: key, type and constraint `=>` default; editor class, apply class and marks; what
//! the key means. Editor classes: `B` basic, `A` advanced, `F` file only. Apply classes: `R`
//! restart, `L` live, `S` next spawn, `M` next start of the MCP server.

use super::{Apply, Edit, ItemRule, Kind, Leaf, Preset, Range, TextRule, WEBHOOK_EVENTS};

const B: Edit = Edit::Basic;
const A: Edit = Edit::Advanced;
const F: Edit = Edit::File;
const R: Apply = Apply::Restart;
const L: Apply = Apply::Live;
const S: Apply = Apply::NextSpawn;
const M: Apply = Apply::NextMcpStart;

const BOOL: Kind = Kind::Bool;
const ON: Preset = Preset::Bool(true);
const OFF: Preset = Preset::Bool(false);
const NULL: Preset = Preset::Null;
const EMPTY: Preset = Preset::List(&[]);
const PATH: Kind = Kind::Path;
const PROGRAM: Kind = Kind::Program;
const LINE: Kind = Kind::Text(TextRule::Any);

/// A century: long enough for every purpose, short enough that no clock overflows.
const LONGEST_SECONDS: f64 = 3_155_760_000.0;

const fn int(min: i64) -> Kind {
    Kind::Int { min, max: u32::MAX as i64 }
}

const fn int_between(min: i64, max: i64) -> Kind {
    Kind::Int { min, max }
}

const fn seconds(range: Range) -> Kind {
    let max = if range.max < LONGEST_SECONDS { range.max } else { LONGEST_SECONDS };
    Kind::Seconds { whole: false, range: range.up_to(max) }
}

const fn whole_seconds(min: f64) -> Kind {
    Kind::Seconds { whole: true, range: Range::at_least(min).up_to(LONGEST_SECONDS) }
}

const fn float(range: Range) -> Kind {
    Kind::Float(range)
}

const fn text(rule: TextRule) -> Kind {
    Kind::Text(rule)
}

const fn list(rule: ItemRule) -> Kind {
    Kind::List(rule)
}

const fn one_of(words: &'static [&'static str]) -> Kind {
    Kind::Choice { words, fold: false }
}

const fn is(word: &'static str) -> Preset {
    Preset::Text(word)
}

const fn num(value: i64) -> Preset {
    Preset::Int(value)
}

const fn real(value: f64) -> Preset {
    Preset::Float(value)
}

const RESTART: &[&str] = &["never", "on-crash", "always"];
const LOG_LEVEL: Kind = Kind::Choice { words: &["debug", "info", "warning", "error"], fold: true };
const PERMISSION: &[&str] =
    &["default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions", "inherit"];
const EVENT_STATES: &[(&str, bool)] = &[
    ("spawn", true),
    ("ready", true),
    ("stop", true),
    ("crash", true),
    ("bg-settled", false),
    ("permission-needed", false),
    ("clone-done", false),
];

macro_rules! rows {
    ($($key:literal $kind:expr => $preset:expr; $edit:ident $apply:ident $($mark:ident)*; $about:literal)*) => {
        &[$(Leaf::new($key, $kind, $preset, $edit, $apply, $about)$(.$mark())*),*]
    };
}

/// All rows, by area.
pub(super) static GROUPS: [&[Leaf]; 6] = [TOP, AGENT, AUTH, SWITCHES, DATA, OUTBOUND];

const TOP: &[Leaf] = rows! {
    "schema_version" int(1) => num(1); F R; "Version of the additive-only schema."
    "projects_root" PATH => Preset::Required; F R; "Its direct child directories are the projects."
    "host" text(TextRule::Host) => is("127.0.0.1"); F R; "Address to bind."
    "port" int_between(1, 65_535) => num(7621); F R; "Port to bind."
    "state_dir" PATH => Preset::Derived; F R; "Database, secrets and logs."
    "root_path" text(TextRule::RootPath) => is(""); F R; "Sub-path behind a reverse proxy."
    "log_format" one_of(&["text", "json"]) => is("text"); B R; "Shape of the service log."
    "log_level" LOG_LEVEL => is("info"); F R; "Least severe entries of the service log."
    "instance_name" text(TextRule::InstanceName) => NULL; F R later; "Name in the process title."
    "config_strict" BOOL => OFF; F R; "Unknown keys refuse to start."
};

const AGENT: &[Leaf] = rows! {
    "claude.binary" PROGRAM => is("claude"); F R; "The agent program."
    "claude.min_version" LINE => is("2.1.145"); B L; "Oldest supported agent version."
    "claude.agents_json_poll_interval_seconds" whole_seconds(1.0) => num(30); B L; "Period of the liveness cross-check."
    "claude.startup_grace_seconds" seconds(Range::above(0.0)) => real(60.0); B L; "How long a bridge may take to register."
    "claude.auto_enable_remote_control" BOOL => ON; B L; "Answers the agent's one-time remote-control question before the first spawn."
    "claude.resume_recap" BOOL => OFF; B L later; "Gives a restarted bridge a recap of its prior transcript."
    "claude.resume_recap_max_chars" int(500) => num(8000); B L later; "Length of the recap."
    "claude.launch_mode" one_of(&["standard", "pty"]) => is("standard"); B L; "Mode of new bridges."
    "claude.pty_screen_enabled" BOOL => OFF; B L later; "Live terminal view of interactive sessions."
    "claude.path_append" list(ItemRule::Path) => EMPTY; F L; "Directories after the inherited PATH of every bridge."
    "claude.node_from_nvm" BOOL => ON; F L; "Puts nvm's default node before the PATH of every bridge."
    "claude.env" Kind::TextMap => Preset::EmptyMap; F L secret; "Variables laid over the environment of every bridge."
    "claude.stop_grace_seconds" seconds(Range::at_least(0.5).up_to(120.0)) => real(5.0); B L; "Time between the orderly signal and the kill."
    "claude.scope" one_of(&["auto", "off", "require"]) => is("auto"); F R; "A transient systemd scope per bridge: where a manager can be asked, never, or no start without one."

    "instance_defaults.spawn_mode" one_of(&["same-dir", "worktree", "session"]) => is("same-dir"); B L; "Where the sessions of a bridge work."
    "instance_defaults.permission_mode" one_of(PERMISSION) => is("default"); B L; "Permission mode handed to the agent."
    "instance_defaults.verbose" BOOL => OFF; B L; "Verbose agent output."
    "instance_defaults.session_name_prefix" text(TextRule::SessionName) => NULL; B L; "Prefix of session names; null is the host name."
    "instance_defaults.capacity" int(1) => num(32); B L; "Sessions per bridge."
    "instance_defaults.max_bridges" int(1) => NULL; B L; "Most live bridges of the deployment."

    "projects.<name>.allow_bypass_permissions" BOOL => OFF; F L; "Whether this project may run without permission checks."
    "projects.<name>.restart" one_of(RESTART) => NULL; F L later; "Restart policy of this project; null inherits restart.policy."

    "restart.policy" one_of(RESTART) => is("never"); B L later; "Default restart policy."
    "restart.initial_delay_seconds" seconds(Range::above(0.0)) => real(2.0); B L later; "First delay."
    "restart.max_delay_seconds" seconds(Range::above(0.0)) => real(300.0); B L later; "Longest delay."
    "restart.multiplier" float(Range::at_least(1.0).up_to(10.0)) => real(2.0); B L later; "Growth of the delay."
    "restart.jitter" float(Range::at_least(0.0).up_to(1.0)) => real(0.2); B L later; "Relative random spread of the delay."
    "restart.max_crashes" int(1) => num(5); B L later; "Crashes inside the window before giving up."
    "restart.window_seconds" seconds(Range::above(0.0)) => real(600.0); B L later; "Window in which crashes count."
    "restart.stable_after_seconds" seconds(Range::above(0.0)) => real(120.0); B L later; "Running time that resets delay and count."
};

const AUTH: &[Leaf] = rows! {
    "auth.enabled" BOOL => OFF; F R protects; "Master switch of authentication."
    "auth.password_required" BOOL => OFF; F R protects; "Password sign-in."
    "auth.password_hash" LINE => NULL; F R secret blank_is_null; "Hash of the password."
    "auth.api_token_hash" text(TextRule::Sha256Hex) => NULL; F R secret blank_is_null; "SHA-256 of the unnamed bearer token."
    "auth.allow_unauthenticated_network" BOOL => OFF; F R; "Permits a network bind without sign-in."
    "auth.cookie_secure" one_of(&["auto", "always", "never"]) => is("auto"); F R; "When the session cookie is marked Secure."
    "auth.session_max_age_seconds" whole_seconds(1.0) => num(604_800); F R; "Life of a sign-in."
    "auth.allowed_origins" list(ItemRule::Origin) => EMPTY; F R; "Extra browser origins, enforced with auth off as well."
    "auth.allowed_hosts" list(ItemRule::HostPattern) => EMPTY; F R; "Extra Host names."
    "auth.reverse_proxy.enabled" BOOL => OFF; F R protects; "Trusts a reverse proxy to name the user."
    "auth.reverse_proxy.user_header" text(TextRule::HeaderName) => is("Remote-User"); F R; "Header that names the user."
    "auth.reverse_proxy.shared_secret_header" text(TextRule::HeaderName) => is("X-Proxy-Auth"); F R; "Header that carries the HMAC."
    "auth.reverse_proxy.trusted_ips" list(ItemRule::Network) => EMPTY; F R; "Addresses a proxy may have."
    "auth.reverse_proxy.shared_secret" LINE => NULL; F R secret; "Key of the HMAC."
    "auth.reverse_proxy.hmac_window_seconds" whole_seconds(0.0) => num(60); F R; "Replay window."
    "auth.reverse_proxy.require_hmac" BOOL => ON; F R; "Off trusts the user header alone."

    "tls.provision" one_of(&["off", "self-signed"]) => is("off"); F R later protects; "Whether the service makes its own certificate."
    "tls.hostnames" list(ItemRule::HostName) => EMPTY; F R later protects; "Names in the self-signed certificate."
    "tls.cert_file" PATH => NULL; F R later protects; "Certificate chain (PEM)."
    "tls.key_file" PATH => NULL; F R later protects; "Private key (PEM)."
};

const SWITCHES: &[Leaf] = rows! {
    "api.openapi_enabled" BOOL => OFF; B R; "Serves the API description."
    "ui.enabled" BOOL => ON; F R; "Serves the browser pages."
    "db.backup_before_migrate" BOOL => ON; F R; "Snapshot before a migration."
    "reaper.ui_enabled" BOOL => OFF; B L later; "Ghost-environment reaper in the dashboard."
    "config_write.enabled" BOOL => OFF; F R later; "Editing of configuration that executes code."
    "config_write.allow_user_scope" BOOL => OFF; F R later; "The same for the user's own configuration."
    "login_shepherd.enabled" BOOL => OFF; F R later; "Agent sign-in from the dashboard."
    "login_shepherd.allow_setup_token" BOOL => OFF; F R later; "Long-lived tokens from there."
    "mcp.allow_writes" BOOL => OFF; F M later; "Write tools of the MCP server."
};

const DATA: &[Leaf] = rows! {
    "logs.bridge_log_max_size_mb" int(1) => num(10); B L; "Size in MiB at which a live bridge log rotates."
    "logs.keep_rotated" int(0) => num(5); B L; "Rotated generations per log."
    "logs.redact_session_url" BOOL => OFF; B S; "Writes a private raw copy and a redacted public log."
    "logs.strip_ansi_in_stream" BOOL => ON; B L; "Strips colour from streamed lines."
    "logs.retention_max_age_days" int(0) => num(30); B L; "Oldest logs kept; 0 is forever."
    "logs.retention_max_files" int(0) => num(0); B L; "Newest log sets kept; 0 is all."
    "logs.retention_max_total_mb" int(0) => num(0); B L; "Size in MiB of all logs; 0 is no limit."

    "clone.enabled" BOOL => ON; A L later; "Creating and cloning projects."
    "clone.allowed_schemes" list(ItemRule::Any) => Preset::List(&["https", "ssh"]); A L later; "Schemes a clone may use."
    "clone.allow_private_hosts" BOOL => OFF; A L later; "Clones from private networks."
    "clone.allowed_private_cidrs" list(ItemRule::Network) => EMPTY; A L later; "Private ranges clones may use."
    "clone.timeout_seconds" whole_seconds(1.0) => num(300); A L later; "Longest clone."
    "clone.max_mb" int(0) => num(2048); A L later; "Largest clone in MiB; 0 is no limit."

    "usage.mode" one_of(&["cost", "tokens", "off"]) => is("cost"); B L later; "What the usage badge shows."
    "usage.currency" text(TextRule::Currency) => is("USD"); B L later; "Currency code."
    "usage.currency_symbol" LINE => NULL; B L blank_is_null later; "Currency symbol."
    "usage.fx_rate" float(Range::above(0.0)) => real(1.0); B L later; "Factor on USD."
    "usage.token_total_includes_cache" BOOL => ON; B L later; "Counts cache tokens."
    "usage.show_cost" BOOL => ON; B L later; "Deprecated: use usage.mode."

    "ceilings.processes" int(0) => num(512); B L; "Most processes of a bridge with everything it started; 0 is no limit."
    "ceilings.memory_mb" int(0) => num(16_384); B L; "Most memory in MiB of a bridge with everything it started; 0 is no limit."
    "ceilings.open_files" int(0) => num(16_384); B L; "Most open files of a bridge with everything it started; 0 is no limit."
    "ceilings.action" one_of(&["warn", "stop", "recycle"]) => is("warn"); B L; "What happens above a ceiling."

    "metrics.enabled" BOOL => ON; B L; "Resource use per row."
    "metrics.normalize_cpu" BOOL => OFF; B L; "Divides by the number of cores."
    "metrics.show_disk" BOOL => ON; B L; "Shows disk use."
    "metrics.sample_interval_seconds" seconds(Range::above(0.0).up_to(2.0)) => real(0.15); B L; "Window of a sample."
    "metrics.poll_seconds" seconds(Range::at_least(1.0)) => real(4.0); B L; "Refresh of the dashboard."
    "observability.prometheus_enabled" BOOL => OFF; B R; "Serves metrics for Prometheus."
    "observability.metrics_token_hash" text(TextRule::Sha256Hex) => NULL; F R secret blank_is_null; "SHA-256 of the token that reads the metrics."
};

const OUTBOUND: &[Leaf] = rows! {
    "notifications.enabled" BOOL => OFF; B L later; "Outbound notifications."
    "notifications.urls" list(ItemRule::Any) => EMPTY; F R secret later; "Where notifications go."
    "notifications.browser_enabled" BOOL => OFF; B L later; "Browser notifications."
    "notifications.notify_on_crash" BOOL => ON; B L later; "Tells of crashes."
    "notifications.notify_on_ready" BOOL => OFF; B L later; "Tells of bridges that became ready."
    "notifications.notify_on_stop" BOOL => OFF; B L later; "Tells of stops."
    "notifications.notify_on_permission" BOOL => OFF; B L later; "Tells of permission requests."
    "notifications.notify_on_session_end" BOOL => OFF; B L later; "Tells of ended sessions."
    "notifications.notify_on_reconnect_failed" BOOL => OFF; B L later; "Tells of failed reconnects."

    "webhooks.enabled" BOOL => OFF; A L later; "Outbound event posts."
    "webhooks.urls" list(ItemRule::Any) => EMPTY; F R secret later; "Where events are posted."
    "webhooks.secret" LINE => NULL; F R secret blank_is_null later; "Key of the signature."
    "webhooks.timeout_seconds" seconds(Range::above(0.0)) => real(10.0); A L later; "Longest post."
    "webhooks.block_private_targets" BOOL => OFF; A L later; "Drops targets in private networks."
    "webhooks.events" Kind::Switches(&WEBHOOK_EVENTS) => Preset::Switches(EVENT_STATES); A L later; "Which events are posted."

    "hosted.enabled" BOOL => OFF; B R later; "Uses the hosted-session daemon."
    "hosted.binary" PROGRAM => is("svc-hosted"); F R later; "The daemon program."
    "hosted.socket_path" Kind::SocketPath => NULL; B R later; "Socket of the daemon; null is inside state_dir."
    "hosted.spawn_timeout_seconds" seconds(Range::above(0.0)) => real(10.0); B R later; "Until the daemon accepts connections."
    "hosted.keep_children" BOOL => ON; B R later; "Sessions outlive the daemon."
    "hosted.request_timeout_seconds" seconds(Range::above(0.0)) => real(30.0); B L later; "Longest request to the daemon."
};
