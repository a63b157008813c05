//! What a token with scopes may do (`http-api` §5.1).
//!
//! A route that nobody has classified needs a full credential.

use std::fmt;
use std::str::FromStr;

/// One permission of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Look.
    Read,
    /// Look, and start and stop.
    Operate,
    /// Look, and answer permission requests.
    Approve,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Read, Self::Operate, Self::Approve];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Approve => "approve",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a scope; use read, operate or approve")]
pub struct UnknownScope;

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(raw: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == raw).ok_or(UnknownScope)
    }
}

/// What a credential may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reach {
    /// Everything.
    #[default]
    Full,
    /// What one of these scopes allows.
    Only(Vec<Scope>),
}

impl Reach {
    /// Whether nothing limits it: only then may its holder type into a session.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full)
    }

    /// Whether it covers a route: its method, and its path with `{name}` for segments.
    #[must_use]
    pub fn covers(&self, method: &str, pattern: &str) -> bool {
        let Self::Only(scopes) = self else { return true };
        match need(method, pattern) {
            Need::Read => !scopes.is_empty(),
            Need::Operate => scopes.contains(&Scope::Operate),
            Need::Approve => scopes.contains(&Scope::Approve),
            Need::Full => false,
        }
    }
}

/// What a route asks of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Read,
    Operate,
    Approve,
    Full,
}

/// First segments below `/api` that every scope may read.
const READABLE: [&str; 18] = [
    "access",
    "approvals",
    "hosted",
    "projects",
    "restore",
    "sessions",
    "instances",
    "agents",
    "history",
    "state",
    "bootstrap",
    "widget",
    "doctor",
    "login-status",
    "metrics",
    "usage",
    "keepers",
    "launches",
];
/// First segments below `/api` whose changes are operation.
const OPERABLE: [&str; 5] = ["projects", "instances", "agents", "restore", "launches"];
/// First segments elsewhere that every scope may read.
const PAGES: [&str; 11] = [
    "",
    "ui",
    "static",
    "sw.js",
    "manifest.webmanifest",
    "login",
    "logout",
    "healthz",
    "metrics",
    "docs",
    "openapi.json",
];

fn need(method: &str, pattern: &str) -> Need {
    let mut segments = pattern.trim_start_matches('/').split('/');
    let mut first = segments.next().unwrap_or_default();
    let is_api = first == "api";
    if is_api {
        first = segments.next().unwrap_or_default();
        if first == "v1" {
            first = segments.next().unwrap_or_default();
        }
    }
    let is_read = matches!(method, "GET" | "HEAD" | "OPTIONS");
    match (is_api, is_read) {
        // What agents are told decides what they do.
        (true, false) if pattern.ends_with("/claude-md") => Need::Full,
        (true, true) if pattern.ends_with("/qr") && OPERABLE.contains(&first) => Need::Operate,
        (true, true) if READABLE.contains(&first) => Need::Read,
        (false, true) if first == "ws" || PAGES.contains(&first) => Need::Read,
        (true, false) if first == "approvals" => Need::Approve,
        (true, false) if OPERABLE.contains(&first) => {
            if pattern.contains("/permissions/") {
                Need::Approve
            } else {
                Need::Operate
            }
        }
        _ => Need::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(scope: Scope) -> Reach {
        Reach::Only(vec![scope])
    }

    #[test]
    fn h23_every_scope_has_exactly_its_routes() {
        // Route, then what read, operate and approve may.
        for (method, pattern, read, operate, approve) in [
            ("GET", "/api/v1/projects", true, true, true),
            ("HEAD", "/api/state", true, true, true),
            ("GET", "/api/usage", true, true, true),
            ("GET", "/api/projects/{name}/transcripts/{conversation}", true, true, true),
            ("GET", "/ws/events", true, true, true),
            ("GET", "/", true, true, true),
            ("GET", "/api/instances/{id}/qr", false, true, false),
            ("POST", "/api/v1/instances", false, true, false),
            ("PATCH", "/api/instances/{id}", false, true, false),
            ("DELETE", "/api/agents/{job_id}", false, true, false),
            ("POST", "/api/instances/{id}/permissions/{request_id}", false, false, true),
            ("POST", "/api/approvals/{request_id}", false, false, true),
            ("GET", "/api/instances/{id}/changes/file", true, true, true),
            ("GET", "/api/projects/{name}/worktrees", true, true, true),
            ("POST", "/api/projects/{name}/worktrees/{worktree}/remove", false, true, false),
            ("GET", "/api/projects/{name}/claude-md", true, true, true),
            ("PUT", "/api/projects/{name}/claude-md", false, false, false),
            ("GET", "/api/approvals", true, true, true),
            ("GET", "/api/approvals/{request_id}", true, true, true),
            ("GET", "/ws/hosted/{id}", true, true, true),
            ("POST", "/api/instances/{id}/message", false, true, false),
            ("POST", "/logout", false, false, false),
            ("POST", "/api/reauth", false, false, false),
            ("GET", "/api/support-bundle/archive", false, false, false),
            ("GET", "/api/instances/{id}/report", true, true, true),
            ("GET", "/api/tokens", false, false, false),
            ("POST", "/api/tokens", false, false, false),
            ("POST", "/api/restart", false, false, false),
            ("GET", "/api/devices", false, false, false),
            ("DELETE", "/api/devices/{id}", false, false, false),
            ("POST", "/api/devices/sign-out-others", false, false, false),
            ("GET", "/api/access", true, true, true),
            ("GET", "/api/keepers", true, true, true),
            ("GET", "/api/launches", true, true, true),
            ("POST", "/api/launches", false, true, false),
            ("DELETE", "/api/launches/{id}", false, true, false),
            ("POST", "/api/keepers/{pid}/kill", false, false, false),
            ("GET", "/api/ui-prefs", false, false, false),
            ("GET", "/api/environments/ghosts", false, false, false),
            ("POST", "/api/environments/reap", false, false, false),
            ("GET", "/api/login-shepherd/state", false, false, false),
            ("GET", "/api/login-shepherd/qr", false, false, false),
            ("POST", "/api/login-shepherd/start", false, false, false),
            ("GET", "/api/config", false, false, false),
            ("PUT", "/api/config/advanced", false, false, false),
            ("PUT", "/api/ui-prefs", false, false, false),
            ("GET", "/api/config-write/settings", false, false, false),
            ("PUT", "/api/config-write/hooks", false, false, false),
            ("PUT", "/api/config", false, false, false),
            ("GET", "/api/config", false, false, false),
            ("GET", "/api/notifications", false, false, false),
            ("POST", "/api/notifications/send-test", false, false, false),
            ("GET", "/api/webhooks", false, false, false),
            ("POST", "/api/webhooks/send-test", false, false, false),
            ("POST", "/api/webhooks/replay", false, false, false),
            ("GET", "/api/push/key", false, false, false),
            ("GET", "/api/push/subscriptions", false, false, false),
            ("POST", "/api/push/subscriptions", false, false, false),
            ("DELETE", "/api/push/subscriptions/{id}", false, false, false),
            ("POST", "/api/push/subscriptions/{id}/test", false, false, false),
            ("GET", "/api/somewhere/new", false, false, false),
        ] {
            let got = Scope::ALL.map(|scope| only(scope).covers(method, pattern));
            assert_eq!(got, [read, operate, approve], "{method} {pattern}");
            assert!(Reach::Full.covers(method, pattern));
            assert!(!Reach::Only(Vec::new()).covers(method, pattern));
        }
    }

    #[test]
    fn words_read_back() {
        for scope in Scope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        assert_eq!("Read".parse::<Scope>(), Err(UnknownScope));
    }
}
