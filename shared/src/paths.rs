//! Every route path, app-local (without the configured prefix).

/// The health report.
pub const HEALTHZ: &str = "/healthz";
/// Figures for a monitoring system.
pub const METRICS: &str = "/metrics";
/// Prefix of the stable public API.
pub const API_V1: &str = "/api/v1";
/// Prefix of the unversioned API: the public routes again, and the internal ones.
pub const API: &str = "/api";
/// The generated document.
pub const OPENAPI: &str = "/openapi.json";
/// What the page needs before it can show anything.
pub const BOOTSTRAP: &str = "/api/bootstrap";
/// What somebody chose for the page.
pub const UI_PREFS: &str = "/api/ui-prefs";
/// What a support bundle would hold.
pub const SUPPORT_BUNDLE: &str = "/api/support-bundle";
/// The support bundle itself.
pub const SUPPORT_ARCHIVE: &str = "/api/support-bundle/archive";
/// The whole state as one document.
pub const STATE: &str = "/api/state";
/// What a restart of the machine ended, and its restore.
pub const RESTORE: &str = "/api/restore";
/// The state stream.
pub const WS_EVENTS: &str = "/ws/events";
/// Prefix of the live log of one instance.
pub const WS_BRIDGE_LOG: &str = "/ws/bridge-log";
/// Prefix of the live view of one Direct Session.
pub const WS_HOSTED: &str = "/ws/hosted";
/// What agents ask.
pub const APPROVALS: &str = "/api/approvals";
/// Prefix of the live terminal of one instance.
pub const WS_PTY_SCREEN: &str = "/ws/pty-screen";
/// Prefix of the progress of one clone.
pub const WS_CLONE_PROGRESS: &str = "/ws/clone-progress";
/// Prefix of the live tail of one conversation.
pub const WS_CONVERSATION: &str = "/ws/conversation";
/// Tokens and cost of all projects.
pub const USAGE: &str = "/api/usage";
/// Where a person signs in.
pub const LOGIN: &str = "/login";
/// Where a person signs out.
pub const LOGOUT: &str = "/logout";
/// Restarts the service in place.
pub const SERVICE_RESTART: &str = "/api/restart";
/// A fresh proof of the password.
pub const REAUTH: &str = "/api/reauth";
/// The configuration.
pub const CONFIG: &str = "/api/config";
/// The part of the configuration that needs a fresh proof of the password.
pub const CONFIG_ADVANCED: &str = "/api/config/advanced";
/// Prefix of the agent's own configuration.
pub const CONFIG_WRITE: &str = "/api/config-write";
/// Prefix of the sign-in of the agent.
pub const AGENT_SIGN_IN: &str = "/api/login-shepherd";
/// Remote environments that are left over.
pub const GHOSTS: &str = "/api/environments/ghosts";
/// Removes some of them.
pub const REAP: &str = "/api/environments/reap";
/// The named tokens.
pub const TOKENS: &str = "/api/tokens";
/// A new secret for a named token.
pub const ROTATE_TOKEN: &str = "/api/tokens/rotate";
/// The browsers that are signed in.
pub const DEVICES: &str = "/api/devices";
/// What became of posts to webhooks.
pub const WEBHOOKS: &str = "/api/webhooks";
/// Posts a test event.
pub const TEST_WEBHOOK: &str = "/api/webhooks/send-test";
/// Has events posted again.
pub const REPLAY_WEBHOOKS: &str = "/api/webhooks/replay";
/// What became of notifications.
pub const NOTIFICATIONS: &str = "/api/notifications";
/// A test of their targets.
pub const TEST_NOTIFICATION: &str = "/api/notifications/send-test";
/// The key that a browser subscribes with.
pub const PUSH_KEY: &str = "/api/push/key";
/// Devices that are notified while the page is closed.
pub const PUSH_SUBSCRIPTIONS: &str = "/api/push/subscriptions";
/// The worker of the page.
pub const WORKER: &str = "/sw.js";
/// What a system needs to install the page as an application.
pub const MANIFEST: &str = "/manifest.webmanifest";
/// Signs out every browser but the one that asks.
pub const SIGN_OUT_OTHERS: &str = "/api/devices/sign-out-others";
/// Who can reach the service.
pub const ACCESS: &str = "/api/access";
/// What arrived of a request, for `svc doctor --probe`.
pub const PROBE: &str = "/api/probe";
/// The same where sockets are.
pub const WS_PROBE: &str = "/ws/probe";
/// Prefix of the page's own routes.
pub const UI: &str = "/ui";
/// Prefix of the page's files.
pub const STATIC: &str = "/static";

/// Percent-encodes one path segment.
#[must_use]
pub fn segment(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for byte in raw.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// `/api/instances`
#[must_use]
pub fn instances() -> String {
    format!("{API}/instances")
}

/// `/api/instances/{reference}`
#[must_use]
pub fn instance(reference: &str) -> String {
    format!("{API}/instances/{}", segment(reference))
}

/// `/api/instances/{reference}/{verb}`, with a verb such as `resume` or `heal`.
#[must_use]
pub fn instance_action(reference: &str, verb: &str) -> String {
    format!("{API}/instances/{}/{verb}", segment(reference))
}

/// `/api/launches`: launches that wait for the reset of a plan limit.
pub const LAUNCHES: &str = "/api/launches";

/// `/api/launches/{id}`
#[must_use]
pub fn launch_plan(id: &str) -> String {
    format!("{API}/launches/{}", segment(id))
}

/// `/api/stranded`
#[must_use]
pub fn stranded() -> String {
    format!("{API}/stranded")
}

/// `/api/stranded/{reference}/{verb}`: `continue`, `dismiss`.
#[must_use]
pub fn stranded_action(reference: &str, verb: &str) -> String {
    format!("{API}/stranded/{}/{verb}", segment(reference))
}

/// `/api/projects`
#[must_use]
pub fn projects() -> String {
    format!("{API}/projects")
}

/// `/api/projects/{name}/{verb}`.
///
/// `trust`, `adopt`, `preflight`, `row`, `changes`, `worktrees`, `claude-md`.
#[must_use]
pub fn project_action(name: &str, verb: &str) -> String {
    format!("{API}/projects/{}/{verb}", segment(name))
}

/// `/api/instances/{reference}/changes`
#[must_use]
pub fn changes_of_instance(reference: &str) -> String {
    instance_action(reference, "changes")
}

/// `/api/instances/{reference}/report`.
///
/// The reference may be the id of a background job.
#[must_use]
pub fn report(reference: &str) -> String {
    instance_action(reference, "report")
}

/// `/api/projects/{name}/changes`, of one of its worktrees if one is named.
#[must_use]
pub fn changes_of_project(name: &str, worktree: Option<&str>) -> String {
    let query = worktree.map(|name| format!("?worktree={}", segment(name))).unwrap_or_default();
    format!("{}{query}", project_action(name, "changes"))
}

/// `/api/projects/{name}/worktrees/{worktree}/remove`
#[must_use]
pub fn remove_worktree(project: &str, worktree: &str) -> String {
    format!("{}/{}/remove", project_action(project, "worktrees"), segment(worktree))
}

/// `/api/tokens?label={label}`
#[must_use]
pub fn token(label: &str) -> String {
    format!("{TOKENS}?label={}", segment(label))
}

/// `/api/devices/{id}`
#[must_use]
pub fn device(id: &str) -> String {
    format!("{DEVICES}/{}", segment(id))
}

/// `/api/projects/clone`
#[must_use]
pub fn clones() -> String {
    format!("{API}/projects/clone")
}

/// `/api/projects/clone/{job_id}/cancel`
#[must_use]
pub fn cancel_clone(job_id: &str) -> String {
    format!("{API}/projects/clone/{}/cancel", segment(job_id))
}

/// `/ws/clone-progress/{job_id}`
#[must_use]
pub fn clone_progress(job_id: &str) -> String {
    format!("{WS_CLONE_PROGRESS}/{}", segment(job_id))
}

/// `/ws/bridge-log/{reference}`
#[must_use]
pub fn bridge_log(reference: &str) -> String {
    format!("{WS_BRIDGE_LOG}/{}", segment(reference))
}

/// `/ws/changes/{reference}`
#[must_use]
pub fn changes_notices(reference: &str) -> String {
    format!("/ws/changes/{}", segment(reference))
}

/// `/ws/pty-screen/{reference}`
#[must_use]
pub fn pty_screen(reference: &str) -> String {
    format!("{WS_PTY_SCREEN}/{}", segment(reference))
}

/// `/ws/hosted/{reference}`
#[must_use]
pub fn hosted(reference: &str) -> String {
    format!("{WS_HOSTED}/{}", segment(reference))
}

/// `/api/approvals/{request}`
#[must_use]
pub fn approval(request: &str) -> String {
    format!("{API}/approvals/{}", segment(request))
}

/// `/api/instances/{reference}/permissions/{request}`
#[must_use]
pub fn permission(reference: &str, request: &str) -> String {
    format!("{API}/instances/{}/permissions/{}", segment(reference), segment(request))
}

/// `/api/projects/{name}/transcripts`
#[must_use]
pub fn conversations(project: &str) -> String {
    project_action(project, "transcripts")
}

/// `/api/projects/{name}/transcripts/{conversation}`
#[must_use]
pub fn conversation(project: &str, conversation: &str) -> String {
    format!("{}/{}", conversations(project), segment(conversation))
}

/// `/ws/conversation/{name}/{conversation}`
#[must_use]
pub fn conversation_tail(project: &str, conversation: &str) -> String {
    format!("{WS_CONVERSATION}/{}/{}", segment(project), segment(conversation))
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_travel_percent_encoded() {
        assert_eq!(
            super::project_action("has space/ü", "trust"),
            "/api/projects/has%20space%2F%C3%BC/trust"
        );
    }
}
