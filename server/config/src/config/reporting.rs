//! Keys about figures, notifications, event posts and the hosted-session daemon.

use crate::keys::terms::*;
use crate::keys::{choice, section};
use crate::schema::{ItemRule, Kind, Preset, Range, TextRule};
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The events, and whether each is posted by default.
const EVENTS: &[(&str, bool)] = &[
    ("spawn", true),
    ("ready", true),
    ("stop", true),
    ("crash", true),
    ("bg-settled", false),
    ("permission-needed", false),
    ("clone-done", false),
];

section! {
    /// The usage badge.
    Usage "usage." {
        /// What the usage badge shows.
        mode: UsageMode = one_of(UsageMode::WORDS) => is("cost"), Basic Live;
        /// Currency code.
        /// Upper-case.
        currency: String = text(TextRule::Currency) => is("USD"), Basic Live;
        /// Currency symbol; null follows the currency.
        /// See [`Usage::symbol`].
        currency_symbol: Option<String> = LINE => NULL, Basic Live blank_is_null;
        /// Factor from US dollars to the currency.
        fx_rate: f64 = float(Range::above(0.0)) => real(1.0), Basic Live;
        /// Counts cache tokens as well.
        token_total_includes_cache: bool = BOOL => ON, Basic Live;
        /// Deprecated: use usage.mode.
        /// Already applied to `mode`.
        show_cost: bool = BOOL => ON, Basic Live;
    }
}

choice! {
    /// What the usage badge shows.
    UsageMode {
        /// Money.
        Cost = "cost",
        /// Tokens.
        Tokens = "tokens",
        /// Nothing, and nothing is fetched.
        Off = "off",
    }
}

section! {
    /// Metrics for Prometheus.
    Observability "observability." {
        /// Serves metrics for Prometheus.
        prometheus_enabled: bool = BOOL => OFF, Basic Restart;
        /// SHA-256 of the token that reads the metrics.
        metrics_token_hash: Option<Secret> = text(TextRule::Sha256Hex)
            => NULL, File Restart secret blank_is_null;
    }
}

section! {
    /// Notifications.
    Notifications "notifications." {
        /// Sends notifications.
        enabled: bool = BOOL => OFF, Basic Live;
        /// URLs that notifications are sent to.
        /// An entry of no known service is no target.
        urls: Vec<Secret> = list(ItemRule::Any) => EMPTY, File Restart secret;
        /// Shows notifications in the browser.
        browser_enabled: bool = BOOL => OFF, Basic Live;
        /// Notifies when a bridge crashes.
        notify_on_crash: bool = BOOL => ON, Basic Live;
        /// Notifies when a bridge becomes ready.
        notify_on_ready: bool = BOOL => OFF, Basic Live;
        /// Notifies when a bridge stops.
        notify_on_stop: bool = BOOL => OFF, Basic Live;
        /// Notifies when a session asks for a permission.
        notify_on_permission: bool = BOOL => OFF, Basic Live;
        /// Notifies when a session ends by itself.
        notify_on_session_end: bool = BOOL => OFF, Basic Live;
        /// Notifies when the remote link of a bridge stays down.
        notify_on_reconnect_failed: bool = BOOL => OFF, Basic Live;
        /// Hours in which notifications wait, in the zone of this machine.
        quiet_hours: Option<String> = text(TextRule::QuietHours)
            => NULL, Basic Live blank_is_null;
    }
}

section! {
    /// Notifications of devices, while the page is closed.
    Push "push." {
        /// Lets devices switch on notifications for the time while the page is closed.
        enabled: bool = BOOL => OFF, Advanced Live;
        /// Puts names of sessions, and what they ask, into these notifications.
        include_content: bool = BOOL => OFF, Advanced Live;
        /// Puts buttons that answer into these notifications.
        allow_action: bool = BOOL => OFF, Advanced Live;
    }
}

section! {
    /// Event posts.
    Webhooks "webhooks." {
        /// Posts events to the URLs.
        enabled: bool = BOOL => OFF, Advanced Live;
        /// URLs that events are posted to.
        /// An entry that is no http or https URL is no target.
        urls: Vec<Secret> = list(ItemRule::Any) => EMPTY, File Restart secret;
        /// Key that signs the posts.
        secret: Option<Secret> = LINE => NULL, File Restart secret blank_is_null;
        /// Longest time a post may take.
        timeout as "timeout_seconds": Duration = seconds(Range::above(0.0))
            => real(10.0), Advanced Live;
        /// Keeps each post until its target took it, and tries again.
        outbox: bool = BOOL => OFF, Advanced Restart;
        /// Posts nothing to private networks.
        block_private_targets: bool = BOOL => OFF, Advanced Live;
        /// Events that are posted.
        /// State of every known event.
        events: BTreeMap<String, bool> = Kind::Switches(EVENTS)
            => Preset::Switches(EVENTS), Advanced Live;
    }
}

section! {
    /// The hosted-session daemon.
    Hosted "hosted." {
        /// Uses the hosted-session daemon.
        enabled: bool = BOOL => OFF, Basic Restart;
        /// The daemon program: a name to look up in PATH, or a path.
        binary: String = PROGRAM => is("svc-hosted"), File Restart;
        /// Socket of the daemon; null is one in the state directory.
        /// See [`crate::ConfigValues::hosted_socket`].
        socket_path: Option<PathBuf> = Kind::SocketPath => NULL, Basic Restart;
        /// Longest time until the daemon accepts connections.
        spawn_timeout as "spawn_timeout_seconds": Duration = seconds(Range::above(0.0))
            => real(10.0), Basic Restart;
        /// Sessions outlive the daemon.
        keep_children: bool = BOOL => ON, Basic Restart;
        /// Longest time a request to the daemon may take.
        request_timeout as "request_timeout_seconds": Duration = seconds(Range::above(0.0))
            => real(30.0), Basic Live;
    }
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
