//! What the service says about itself.

use crate::agent::Agent;
use crate::bridges::circumstances::has_terminal;
use crate::hosted::Link;
use crate::registry::copies::Copies;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_agent::cli::Version;
use svc_config::Config;
use svc_domain::origin::AllowedOrigins;
use svc_shared::Word;
use svc_shared::api::health::Health;
use svc_shared::internal::usage::{UsageDisplay, UsageMode};
use svc_shared::internal::{
    AuthInfo, Bootstrap, Defaults, Features, Limits, LoginStatus, PageNotifications,
    PermissionLabel,
};
use svc_shared::status::{BridgeStatus, PermissionMode};
use svc_shared::text::SESSION_NAME_CHARS;

use super::restart::Restart;

/// Version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the service says about itself, from caches only.
pub struct Status {
    pub(crate) config: Arc<Config>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) hosted: Arc<Link>,
    pub(crate) restart: Arc<Restart>,
    pub(crate) port: u16,
    pub(crate) demo: bool,
}

impl Status {
    /// The health report, from caches only.
    #[must_use]
    pub fn health(&self) -> Health {
        let login = self.login();
        let version = match self.agent.cli().version() {
            Version::Known { version, .. } => Some(version.as_str().to_owned()),
            Version::Unasked | Version::Failed { .. } => None,
        };
        let running = self.copies.count_live(|bridge| bridge.status() == BridgeStatus::Running);
        Health {
            status: "ok".to_owned(),
            version: VERSION.to_owned(),
            claude_ok: version.is_some(),
            claude_version: version,
            claude_login_ok: login.claude_login_ok,
            claude_login_method: login.claude_login_method,
            claude_login_expires_at: login.claude_login_expires_at,
            instances_running: u32::try_from(running).unwrap_or(u32::MAX),
            hosted: self.hosted.health(),
            demo: self.demo.then_some(true),
        }
    }

    /// Login facts, from the cache only.
    #[must_use]
    pub fn login(&self) -> LoginStatus {
        let login = self.agent.cli().login();
        LoginStatus {
            claude_login_ok: login.is_ok(),
            claude_login_method: login.method().map(str::to_owned),
            claude_login_expires_at: login.expires_at().map(svc_shared::Timestamp::as_millis),
        }
    }

    /// What the page needs before it can show anything.
    /// `build` names the served page files.
    #[must_use]
    pub fn bootstrap(&self, build: &str) -> Bootstrap {
        let config = &self.config;
        let origins = AllowedOrigins::new(&config.host, self.port, &config.auth.allowed_origins);
        Bootstrap {
            version: VERSION.to_owned(),
            build: build.to_owned(),
            root_path: config.root_path.clone(),
            projects_root: config.projects_root.to_string_lossy().into_owned(),
            auth: AuthInfo {
                enabled: config.auth.enabled,
                password_set: config.auth.password_hash.is_some(),
                method: "off".to_owned(),
                allowed_origins: origins.iter().map(ToString::to_string).collect(),
            },
            features: Features {
                openapi: config.api.openapi_enabled,
                metrics: config.metrics.enabled,
                metrics_show_disk: config.metrics.enabled && config.metrics.show_disk,
                pty_supported: has_terminal(),
                hosted: config.hosted.enabled,
                pty_screen: config.claude.pty_screen_enabled,
                clone: config.clone.enabled,
                config_write: config.config_write.enabled,
                config_write_user_scope: config.config_write.enabled
                    && config.config_write.allow_user_scope,
                reaper: config.reaper.ui_enabled,
                login_shepherd: config.login_shepherd.enabled,
                setup_token: config.login_shepherd.enabled
                    && config.login_shepherd.allow_setup_token,
                restart: self.restart.is_possible(),
                terminal_input: config.claude.terminal_input && config.claude.pty_screen_enabled,
                ..Features::default()
            },
            defaults: Defaults {
                spawn_mode: config.instance_defaults.spawn_mode.into(),
                permission_mode: config.instance_defaults.permission_mode.into(),
                resume_mode: config.claude.launch_mode.into(),
            },
            permission_labels: permission_labels(),
            limits: Limits {
                startup_grace_seconds: config.claude.startup_grace.as_secs_f64(),
                max_bridges: config.instance_defaults.max_bridges,
                name_chars: u32::try_from(SESSION_NAME_CHARS).unwrap_or(u32::MAX),
                prompt_bytes: 100_000,
                message_bytes: 256 * 1024,
                claude_md_bytes: 64 * 1024,
                elevation_seconds: 600,
                session_max_age_seconds: config.auth.session_max_age.as_secs(),
            },
            demo: self.demo,
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            timezone: timezone(),
            ui_prefs: None,
            usage: UsageDisplay {
                mode: Word::from(match config.usage.mode {
                    svc_config::UsageMode::Cost => UsageMode::Cost,
                    svc_config::UsageMode::Tokens => UsageMode::Tokens,
                    svc_config::UsageMode::Off => UsageMode::Off,
                }),
                currency: config.usage.currency.clone(),
                currency_symbol: config.usage.symbol(),
                fx_rate: config.usage.fx_rate,
                token_total_includes_cache: config.usage.token_total_includes_cache,
            },
            notifications: PageNotifications {
                browser_enabled: config.notifications.browser_enabled,
                on_crash: config.notifications.notify_on_crash,
                on_ready: config.notifications.notify_on_ready,
                on_stop: config.notifications.notify_on_stop,
                push_enabled: config.push.enabled,
            },
        }
    }
}

/// The zone of this machine: `TZ`, else what `/etc/localtime` links to.
fn timezone() -> String {
    let named = std::env::var("TZ").ok();
    let linked = || Some(std::fs::read_link("/etc/localtime").ok()?.to_str()?.to_owned());
    named.or_else(linked).and_then(|raw| zone_name(&raw).map(str::to_owned)).unwrap_or_default()
}

/// The name of a zone as `TZ` or the path of its file gives it.
fn zone_name(raw: &str) -> Option<&str> {
    let name = raw.rsplit_once("zoneinfo/").map_or(raw.trim_start_matches(':'), |(_, name)| name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_+-".contains(&b));
    is_name.then_some(name)
}

fn permission_labels() -> BTreeMap<String, PermissionLabel> {
    PermissionMode::ALL
        .iter()
        .map(|mode| {
            let (short, long, effect) = words(*mode);
            let label = PermissionLabel {
                short: short.to_owned(),
                long: long.to_owned(),
                effect: effect.to_owned(),
            };
            (mode.to_string(), label)
        })
        .collect()
}

fn words(mode: PermissionMode) -> (&'static str, &'static str, &'static str) {
    match mode {
        PermissionMode::Default => (
            "asks first",
            "Ask before tools",
            "Reads freely; asks before it edits a file or runs a command.",
        ),
        PermissionMode::Plan => (
            "plans only",
            "Plan only",
            "Looks and plans; changes nothing until you accept the plan.",
        ),
        PermissionMode::AcceptEdits => (
            "edits freely",
            "Accept edits",
            "Edits files of the project without asking; asks before it runs a command.",
        ),
        PermissionMode::Auto => (
            "decides itself",
            "Auto",
            "The agent judges each step and asks only for what it finds risky.",
        ),
        PermissionMode::DontAsk => (
            "never asks",
            "Don't ask",
            "Does what the settings allow and refuses everything else without asking.",
        ),
        PermissionMode::BypassPermissions => (
            "bypasses permissions",
            "Bypass permissions",
            "Runs every command and edits every file without asking, with your rights on this \
             machine.",
        ),
        PermissionMode::Inherit => (
            "agent's default permissions",
            "Use the agent's settings",
            "Passes no mode; the settings files of the agent and of the project decide.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::zone_name;

    #[test]
    fn a_zone_is_named_as_iana_lists_it() {
        for (raw, name) in [
            ("/usr/share/zoneinfo/Europe/Berlin", Some("Europe/Berlin")),
            ("../usr/share/zoneinfo/Etc/GMT+5", Some("Etc/GMT+5")),
            (":America/Port-au-Prince", Some("America/Port-au-Prince")),
            ("UTC", Some("UTC")),
            ("/etc/my zone", None),
            ("<+03>-3", None),
            ("", None),
        ] {
            assert_eq!(zone_name(raw), name, "{raw}");
        }
    }
}
