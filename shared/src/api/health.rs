//! The health report.

use serde::{Deserialize, Serialize};

/// How the hosted-session daemon stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct HostedHealth {
    /// The channel is switched on.
    pub enabled: bool,
    /// The service is connected to the daemon.
    pub running: bool,
    /// Release of the daemon; null until it was reached once.
    pub version: Option<String>,
    /// Why it is not connected; null while it is.
    pub error: Option<String>,
}

/// Health of the service, from caches only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct Health {
    /// Always `ok` while serving.
    pub status: String,
    /// Service version.
    pub version: String,
    /// The last version probe of the agent succeeded.
    pub claude_ok: bool,
    /// Null if the probe failed.
    pub claude_version: Option<String>,
    /// The account is logged in; true before the first probe.
    pub claude_login_ok: bool,
    /// Null until probed.
    pub claude_login_method: Option<String>,
    /// Milliseconds since the Unix epoch; null when unknown.
    pub claude_login_expires_at: Option<i64>,
    /// Bridges running now.
    pub instances_running: u32,
    /// The hosted-session daemon; present only while the channel is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", oai(skip_serializing_if_is_none))]
    pub hosted: Option<HostedHealth>,
    /// Present, and true, only under `svc demo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", oai(skip_serializing_if_is_none))]
    pub demo: Option<bool>,
}
