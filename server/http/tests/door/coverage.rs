//! Every route with the statuses that it can reach. A route without a row fails.

use crate::client::Sent;
use crate::harness::Server;
use serde_json::{Value, json};
use svc_http::{BodyKind, Route, ServeOptions};

/// One request of the coverage table and the statuses it may end with.
struct Row {
    route: &'static str,
    /// Query or body that makes the difference.
    asks: &'static [(Ask, u16)],
}

#[derive(Debug, Clone, Copy)]
enum Ask {
    /// With placeholders that name something there.
    Known,
    /// With placeholders that name nothing.
    Unknown,
    /// With this in the place of the placeholder.
    Named(&'static str),
    /// With a body, about this.
    NamedBody(&'static str, &'static str),
    /// With a reference that matches two instances.
    Ambiguous,
    /// With a query that does not fit.
    BadQuery(&'static str),
    /// With a body, about something there.
    KnownBody(&'static str),
    /// With a body.
    Body(&'static str),
    /// With a body that is not JSON.
    PlainBody,
    /// With a body that is too large.
    LargeBody,
}

use Ask::{
    Ambiguous, BadQuery, Body, Known, KnownBody, LargeBody, Named, NamedBody, PlainBody, Unknown,
};

const TABLE: &[Row] = &[
    Row { route: "GET /projects", asks: &[(Known, 200), (BadQuery("trust=x"), 422)] },
    Row { route: "GET /sessions", asks: &[(Known, 200)] },
    Row { route: "GET /sessions/tracked", asks: &[(Known, 200)] },
    Row { route: "GET /sessions/adoptable", asks: &[(Known, 200)] },
    Row { route: "GET /instances", asks: &[(Known, 200), (BadQuery("status=x"), 422)] },
    Row {
        route: "POST /instances",
        asks: &[
            (Body(r#"{"project":"nope"}"#), 404),
            (Body(r#"{"project":"api"}"#), 409),
            (Body(r#"{"project":"api","permission_mode":"bypassPermissions"}"#), 403),
            (Body(r#"{"project":"api","channel":"hosted","trust":true}"#), 503),
            (Body(r#"{"project":"api","trust":true}"#), 503),
            (Body(r#"{"project":"api","spawn_mode":"x"}"#), 422),
            (Body("{}"), 422),
            (BadQuery("wait=99"), 415),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row {
        route: "GET /instances/{instance_id}",
        asks: &[(Known, 200), (Unknown, 404), (Ambiguous, 409)],
    },
    Row {
        route: "DELETE /instances/{instance_id}",
        asks: &[(Known, 200), (Unknown, 404), (Ambiguous, 409)],
    },
    Row {
        route: "POST /instances/{instance_id}/resume",
        asks: &[
            // The directory is not trusted.
            (Known, 409),
            (Unknown, 404),
            (Ambiguous, 409),
            (BadQuery("wait=99"), 422),
            (Body(r#"{"trust":5}"#), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /agents", asks: &[(Known, 200)] },
    Row {
        route: "POST /agents",
        asks: &[
            (Body(r#"{"project":"nope","prompt":"x"}"#), 404),
            (Body(r#"{"project":"api"}"#), 422),
            (Body(r#"{"project":"api","prompt":"x"}"#), 409),
            (Body(r#"{"project":"api","permission_mode":"bypassPermissions"}"#), 403),
            (Body(r#"{"project":"api","prompt":"x","trust":true}"#), 503),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row {
        route: "DELETE /agents/{job_id}",
        // What is stopped and what stays live needs an agent: see the black-box tests.
        asks: &[(Unknown, 422), (Named("0123abcd"), 404), (Known, 503)],
    },
    Row {
        route: "POST /agents/{job_id}/resume",
        asks: &[
            (Unknown, 422),
            (Named("0123abcd"), 404),
            (Named("b0000001"), 403),
            (Named("b0000002"), 409),
            (Known, 409),
            (NamedBody("b0000000", r#"{"trust":5}"#), 422),
            (NamedBody("b0000000", r#"{"trust":true}"#), 503),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /healthz", asks: &[(Known, 200)] },
    Row { route: "GET /login", asks: &[(Known, 303)] },
    Row {
        route: "POST /login",
        asks: &[(Body(r#"{"password":"x"}"#), 200), (PlainBody, 415), (LargeBody, 413)],
    },
    Row { route: "GET /logout", asks: &[(Known, 200)] },
    Row { route: "POST /logout", asks: &[(Known, 200)] },
    Row {
        route: "POST /api/reauth",
        asks: &[(Body(r#"{"password":"x"}"#), 401), (PlainBody, 415), (LargeBody, 413)],
    },
    Row { route: "DELETE /api/reauth", asks: &[(Known, 200)] },
    Row { route: "GET /", asks: &[(Known, PAGE)] },
    Row { route: "GET /ui/{*page}", asks: &[(Known, PAGE)] },
    Row { route: "GET /ui/about/components", asks: &[(Known, PAGE)] },
    Row { route: "GET /static/{*file}", asks: &[(Unknown, 404)] },
    Row { route: "GET /sw.js", asks: &[(Known, WORKER)] },
    Row { route: "GET /manifest.webmanifest", asks: &[(Known, WORKER)] },
    Row { route: "GET /openapi.json", asks: &[(Known, 200)] },
    Row { route: "GET /api/bootstrap", asks: &[(Known, 200)] },
    Row { route: "GET /api/ui-prefs", asks: &[(Known, 200)] },
    Row {
        route: "PUT /api/ui-prefs",
        asks: &[
            (Body(r#"{"prefs":{"theme":"dark"},"rev":0}"#), 200),
            (Body(r#"{"prefs":{},"rev":0}"#), 409),
            (Body(r#"{"prefs":{"theme":"pink"},"rev":1}"#), 422),
            (Body(r#"{"prefs":{}}"#), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /api/tokens", asks: &[(Known, 200)] },
    // 201 and 200 need a fresh proof of the password: in the black-box tests.
    Row {
        route: "POST /api/tokens",
        asks: &[(Body(r#"{"label":"ci"}"#), 403), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "POST /api/tokens/rotate",
        asks: &[(Body(r#"{"label":"ci"}"#), 403), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "DELETE /api/tokens",
        asks: &[(Known, 422), (BadQuery("label=nobody"), 404), (BadQuery("label=a&label=b"), 422)],
    },
    Row { route: "GET /api/config", asks: &[(Known, 200)] },
    // 200 needs a file on the disk: in the black-box tests.
    Row {
        route: "PUT /api/config",
        asks: &[
            (Body(r#"{"edits":{"log_format":"json"},"hash":"x"}"#), 403),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /api/config/advanced", asks: &[(Known, 404)] },
    Row {
        route: "PUT /api/config/advanced",
        asks: &[(Body(r#"{"edits":{},"hash":"x"}"#), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    // Off by default: what is answered while it is on is in the black-box tests.
    Row {
        route: "GET /api/config-write/status",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "GET /api/config-write/overview",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "GET /api/config-write/claude-md",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "PUT /api/config-write/claude-md",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "GET /api/config-write/settings",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "PUT /api/config-write/settings",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "GET /api/config-write/settings/effective",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "GET /api/config-write/permissions",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "PUT /api/config-write/permissions",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row { route: "GET /api/config-write/hooks", asks: &[(Known, 404), (BadQuery("scope=x"), 404)] },
    Row {
        route: "PUT /api/config-write/hooks",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row { route: "GET /api/config-write/mcp", asks: &[(Known, 404), (BadQuery("scope=x"), 404)] },
    Row {
        route: "PUT /api/config-write/mcp",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "POST /api/config-write/mcp/server",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "GET /api/config-write/mcp/approvals",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "PUT /api/config-write/mcp/approvals",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "POST /api/config-write/mcp/reset-project-choices",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "GET /api/config-write/skills/overrides",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "PUT /api/config-write/skills/overrides",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "GET /api/config-write/skills",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "GET /api/config-write/skills/file",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "PUT /api/config-write/skills",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "POST /api/config-write/skills/delete",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    // 202 needs a program that can be replaced: in the black-box tests.
    Row { route: "POST /api/restart", asks: &[(Known, 503)] },
    Row {
        route: "GET /api/config-write/subagents",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row { route: "GET /api/config-write/subagents/{name}", asks: &[(Named("review"), 404)] },
    Row {
        route: "PUT /api/config-write/subagents/{name}",
        asks: &[(NamedBody("review", "{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row { route: "DELETE /api/config-write/subagents/{name}", asks: &[(Named("review"), 404)] },
    Row {
        route: "GET /api/config-write/plugins",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "GET /api/config-write/plugins/enabled",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row { route: "GET /api/config-write/plugins/{plugin}", asks: &[(Named("a@b"), 404)] },
    Row {
        route: "POST /api/config-write/plugins/action",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "GET /api/config-write/marketplaces",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "GET /api/config-write/marketplaces/declared",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "POST /api/config-write/marketplaces/action",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "GET /api/config-write/copies",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "GET /api/config-write/copies/content",
        asks: &[(Known, 404), (BadQuery("scope=x"), 404)],
    },
    Row {
        route: "POST /api/config-write/copies/restore",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row { route: "GET /api/devices", asks: &[(Known, 200)] },
    Row { route: "DELETE /api/devices/{id}", asks: &[(Named("0123456789abcdef"), 404)] },
    Row { route: "POST /api/devices/sign-out-others", asks: &[(Known, 200)] },
    Row { route: "GET /api/access", asks: &[(Known, 200)] },
    // 200 needs the pass of `svc doctor --probe`: in the black-box tests.
    Row { route: "GET /api/probe", asks: &[(Unknown, 404)] },
    Row { route: "GET /ws/probe", asks: &[(Unknown, 404)] },
    Row { route: "GET /api/state", asks: &[(Known, 200)] },
    Row { route: "GET /api/widget", asks: &[(Known, 200)] },
    Row { route: "GET /api/restore", asks: &[(Known, 200)] },
    Row {
        route: "POST /api/restore",
        asks: &[
            (Body(r#"{"ids":[]}"#), 422),
            (Body(r#"{"ids":["x"],"parallel":5}"#), 422),
            (Body(r#"{"ids":["x"],"parallel":"two"}"#), 422),
            (Body(r#"{"ids":["b0000000-0000-4000-8000-000000000099"]}"#), 404),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "POST /api/restore/cancel", asks: &[(Known, 409)] },
    Row {
        route: "POST /api/restore/dismiss",
        asks: &[
            (Body("{}"), 422),
            (Body(r#"{"ids":["x"]}"#), 404),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row {
        route: "GET /api/approvals",
        asks: &[(Known, 200), (BadQuery("state=answered"), 200), (BadQuery("state=x"), 422)],
    },
    // 200 needs an agent that asks: in the black-box tests.
    Row {
        route: "GET /api/approvals/{request_id}",
        asks: &[(Known, 404), (BadQuery("instance=none"), 404)],
    },
    // 202 needs an agent that asks: in the black-box tests.
    Row {
        route: "POST /api/approvals/{request_id}",
        asks: &[
            (Body(r#"{"decision":"allow"}"#), 409),
            (Body(r#"{"decision":5}"#), 422),
            (Body("{}"), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /api/hosted", asks: &[(Known, 200)] },
    // 202 needs an agent that asks: in the black-box tests.
    Row {
        route: "POST /api/instances/{id}/permissions/{request_id}",
        asks: &[
            (Body(r#"{"decision":"allow"}"#), 404),
            (KnownBody(r#"{"decision":"allow"}"#), 404),
            (KnownBody(r#"{"decision":5}"#), 422),
            (KnownBody("{}"), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row {
        route: "POST /api/instances/{id}/message",
        asks: &[
            (Body(r#"{"text":"go on"}"#), 404),
            (KnownBody(r#"{"text":"go on"}"#), 404),
            (KnownBody(r#"{"text":5}"#), 422),
            (KnownBody("{}"), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /api/strays", asks: &[(Known, 200)] },
    // 200 needs a process: in the black-box tests.
    Row {
        route: "POST /api/strays/{pid}/kill",
        asks: &[(Named("4242"), 409), (Named("1"), 409), (Named("x"), 422)],
    },
    Row { route: "GET /api/launches", asks: &[(Known, 200)] },
    // 202 needs an agent at its limit: in the black-box tests.
    Row {
        route: "POST /api/launches",
        asks: &[
            (Body(r#"{"session":{"project":"x y"}}"#), 404),
            (Body("{}"), 422),
            (Body(r#"{"job":5}"#), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    // 200 needs a launch that waits: in the black-box tests.
    Row { route: "DELETE /api/launches/{id}", asks: &[(Named("x"), 404)] },
    Row { route: "GET /api/stranded", asks: &[(Known, 200)] },
    // 200 needs a bridge that died: in the black-box tests.
    Row {
        route: "POST /api/stranded/{ref}/continue",
        asks: &[(Named("0123456789abcdef"), 404), (Named("x"), 422)],
    },
    Row {
        route: "POST /api/stranded/{ref}/dismiss",
        asks: &[(Named("0123456789abcdef"), 404), (Named("x"), 422)],
    },
    Row { route: "GET /api/keepers", asks: &[(Known, 200)] },
    // 200 needs a process: in the black-box tests.
    Row {
        route: "POST /api/keepers/{pid}/kill",
        asks: &[(Named("4242"), 409), (Named("1"), 409), (Named("x"), 422)],
    },
    Row { route: "GET /api/notifications", asks: &[(Known, 200)] },
    // 200 needs a target: in the black-box tests.
    Row {
        route: "POST /api/notifications/send-test",
        asks: &[
            (Body("{}"), 422),
            (Body(r#"{"entry":1}"#), 422),
            (Body(r#"{"entry":"x"}"#), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /api/webhooks", asks: &[(Known, 200)] },
    // 200 needs a target: in the black-box tests.
    Row {
        route: "POST /api/webhooks/send-test",
        asks: &[
            (Body("{}"), 422),
            (Body(r#"{"entry":1}"#), 422),
            (Body(r#"{"entry":"x"}"#), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    // 200 needs `webhooks.outbox`: in the black-box tests.
    Row {
        route: "POST /api/webhooks/replay",
        asks: &[
            (Body("{}"), 422),
            (Body(r#"{"since":7}"#), 422),
            (Body(r#"{"entry":"x"}"#), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    // The others need `push.enabled`: in the black-box tests.
    Row { route: "GET /api/push/key", asks: &[(Known, 404)] },
    Row { route: "GET /api/push/subscriptions", asks: &[(Known, 404)] },
    Row {
        route: "POST /api/push/subscriptions",
        asks: &[(Body("{}"), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row { route: "DELETE /api/push/subscriptions/{id}", asks: &[(Named("0123456789abcdef"), 404)] },
    Row {
        route: "POST /api/push/subscriptions/{id}/test",
        asks: &[(Named("0123456789abcdef"), 404)],
    },
    Row { route: "GET /api/metrics", asks: &[(Known, 200), (BadQuery("history=x"), 422)] },
    Row { route: "GET /api/projects/{name}/metrics", asks: &[(Known, 200), (Unknown, 404)] },
    Row { route: "GET /metrics", asks: &[(Known, 200)] },
    Row { route: "GET /docs", asks: &[(Known, 200)] },
    Row { route: "GET /docs/{*file}", asks: &[(Unknown, 404)] },
    Row { route: "GET /api/doctor", asks: &[(Known, 200)] },
    Row { route: "GET /api/support-bundle", asks: &[(Known, 200)] },
    Row { route: "GET /api/support-bundle/archive", asks: &[(Known, 200)] },
    Row { route: "GET /api/login-status", asks: &[(Known, 200)] },
    Row {
        route: "PATCH /api/instances/{id}",
        asks: &[
            (KnownBody(r#"{"label":"nightly"}"#), 200),
            (KnownBody(r#"{"label":"--help"}"#), 422),
            (KnownBody(r#"{"label":5}"#), 422),
            (KnownBody(r#"{"restart":"on-crash","after_reboot":null}"#), 200),
            (KnownBody(r#"{"restart":"sometimes"}"#), 422),
            (KnownBody(r#"{"after_reboot":true}"#), 422),
            (KnownBody("{}"), 422),
            (Body(r#"{"label":"nightly"}"#), 404),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row {
        route: "GET /api/instances/{id}/log",
        asks: &[
            (Unknown, 404),
            (Ambiguous, 409),
            (BadQuery("tail=x"), 422),
            (BadQuery("cursor=1:0&before=1:0"), 422),
        ],
    },
    Row {
        route: "GET /api/instances/{id}/report",
        asks: &[(Known, 200), (Unknown, 404), (Ambiguous, 409)],
    },
    Row {
        route: "POST /api/instances/{id}/connect",
        asks: &[(Known, 409), (Unknown, 404), (Ambiguous, 409)],
    },
    Row {
        route: "GET /api/instances/{id}/qr",
        asks: &[(Known, 409), (Unknown, 404), (Ambiguous, 409)],
    },
    Row {
        route: "POST /api/instances/{id}/heal",
        asks: &[(Known, 409), (Unknown, 404), (Ambiguous, 409)],
    },
    Row {
        route: "POST /api/instances/{id}/forget",
        asks: &[(Known, 200), (Known, 404), (Unknown, 404), (Ambiguous, 409)],
    },
    Row {
        route: "POST /api/instances/{id}/release",
        asks: &[
            (Unknown, 404),
            (Ambiguous, 409),
            (Body(r#"{"start":false}"#), 404),
            (Body(r#"{"start":"now"}"#), 422),
            (PlainBody, 415),
        ],
    },
    Row { route: "GET /api/projects/preflight", asks: &[(Known, 200)] },
    Row {
        route: "GET /api/history",
        asks: &[
            (Known, 200),
            (BadQuery("instance=b0000000-0000-4000-8000-000000000001&project=api"), 200),
            (BadQuery("limit=0"), 422),
            (BadQuery("limit=501"), 422),
            (BadQuery("before=-1"), 422),
            (BadQuery("instance=b0"), 422),
        ],
    },
    Row { route: "GET /api/projects/sortmeta", asks: &[(Known, 200)] },
    // 200 needs a repository: in the black-box tests.
    Row {
        route: "GET /api/instances/{id}/changes",
        asks: &[(Known, 404), (Unknown, 404), (Ambiguous, 409)],
    },
    Row {
        route: "GET /api/instances/{id}/changes/file",
        asks: &[
            (Known, 422),
            (BadQuery("path=../x"), 400),
            (BadQuery("path=x&context=51"), 422),
            (BadQuery("path=x&from=x"), 422),
            (Unknown, 422),
            (Ambiguous, 422),
        ],
    },
    Row { route: "GET /api/projects/{name}/changes", asks: &[(Known, 404), (Unknown, 404)] },
    Row {
        route: "GET /api/projects/{name}/changes/file",
        asks: &[(Known, 422), (BadQuery("path=%2Fetc%2Fpasswd"), 400), (Unknown, 422)],
    },
    Row { route: "GET /api/projects/{name}/worktrees", asks: &[(Known, 200), (Unknown, 404)] },
    Row {
        route: "POST /api/projects/{name}/worktrees/{worktree}/remove",
        asks: &[
            (Known, 404),
            (Unknown, 404),
            (KnownBody("{\"confirm\":1}"), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /api/projects/{name}/claude-md", asks: &[(Known, 200), (Unknown, 404)] },
    Row {
        route: "PUT /api/projects/{name}/claude-md",
        asks: &[
            (KnownBody("{\"content\":\"x\",\"base_sha256\":\"00\"}"), 409),
            (KnownBody("{\"content\":1}"), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /api/projects/{name}/row", asks: &[(Known, 200), (Unknown, 404)] },
    Row {
        route: "POST /api/projects/trust-all",
        asks: &[
            (Body(r#"{"names":["api"]}"#), 200),
            (Body(r#"{"names":["nope"]}"#), 404),
            (Body("{}"), 422),
            (Body(r#"{"names":[5]}"#), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row {
        route: "GET /api/projects/{name}/preflight",
        asks: &[(Known, 200), (Unknown, 404), (BadQuery("facts=x"), 422)],
    },
    Row { route: "POST /api/projects/{name}/trust", asks: &[(Known, 200), (Unknown, 404)] },
    // 200 needs a bridge that runs: in the black-box tests.
    Row { route: "POST /api/projects/{name}/adopt", asks: &[(Known, 409), (Unknown, 404)] },
    // Off, as it is without a configuration. What it does: in the black-box tests.
    Row { route: "GET /api/login-shepherd/state", asks: &[(Known, 404)] },
    Row { route: "GET /api/login-shepherd/qr", asks: &[(Known, 404)] },
    Row {
        route: "POST /api/login-shepherd/start",
        asks: &[(Body(r#"{"mode":"login"}"#), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row {
        route: "POST /api/login-shepherd/code",
        asks: &[(Body(r#"{"code":"a#b"}"#), 404), (PlainBody, 415), (LargeBody, 413)],
    },
    Row { route: "POST /api/login-shepherd/status", asks: &[(Known, 404)] },
    Row { route: "POST /api/login-shepherd/cancel", asks: &[(Known, 404)] },
    // Off, as it is without a configuration. What it does: in the black-box tests.
    Row { route: "GET /api/environments/ghosts", asks: &[(Known, 404)] },
    Row {
        route: "POST /api/environments/reap",
        asks: &[
            (Body(r#"{"action":"archive","ids":[],"confirm":"archive"}"#), 404),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    // 201, 202 and what a clone becomes: in the black-box tests.
    Row {
        route: "POST /api/projects",
        asks: &[
            (Body(r#"{"name":"../x"}"#), 422),
            (Body("{}"), 422),
            (Body(r#"{"name":"api"}"#), 409),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row {
        route: "POST /api/projects/clone",
        asks: &[
            (Body(r#"{"name":"x","url":"file:///etc"}"#), 422),
            (Body(r#"{"name":"x"}"#), 422),
            (PlainBody, 415),
            (LargeBody, 413),
        ],
    },
    Row { route: "GET /api/projects/clone/active", asks: &[(Known, 200)] },
    Row { route: "POST /api/projects/clone/{job}/cancel", asks: &[(Unknown, 404)] },
    Row { route: "GET /ws/clone-progress/{job}", asks: &[(Unknown, 426)] },
    Row {
        route: "GET /api/usage",
        asks: &[
            (Known, 200),
            (BadQuery("since=2026-01-01T00:00:00Z"), 200),
            (BadQuery("since=yesterday"), 422),
        ],
    },
    Row { route: "GET /api/projects/{name}/usage", asks: &[(Known, 200), (Unknown, 404)] },
    Row { route: "GET /api/projects/{name}/transcripts", asks: &[(Known, 200), (Unknown, 404)] },
    // 200 needs a conversation: in the black-box tests.
    Row {
        route: "GET /api/projects/{name}/transcripts/{conversation}",
        asks: &[(Unknown, 404), (BadQuery("limit=0"), 422), (BadQuery("order=up"), 422)],
    },
    Row {
        route: "GET /api/projects/{name}/transcripts/{conversation}/tail",
        asks: &[(Unknown, 404), (BadQuery("offset=-1"), 422)],
    },
    Row { route: "GET /ws/events", asks: &[(Known, 426)] },
    Row { route: "GET /ws/bridge-log/{id}", asks: &[(Unknown, 426), (BadQuery("tail=x"), 422)] },
    Row { route: "GET /ws/hosted/{id}", asks: &[(Unknown, 426)] },
    Row { route: "GET /ws/changes/{id}", asks: &[(Unknown, 426)] },
    Row { route: "GET /ws/pty-screen/{id}", asks: &[(Unknown, 426), (BadQuery("format=x"), 422)] },
    Row {
        route: "GET /ws/conversation/{name}/{conversation}",
        asks: &[(Unknown, 426), (BadQuery("offset=x"), 422)],
    },
];

/// Depends on whether the page is built.
const PAGE: u16 = 0;
/// The same for what is not there without it.
const WORKER: u16 = 1;

fn name_of(route: &Route) -> String {
    let public = |pattern: &str| {
        let local = pattern.strip_prefix("/api/v1")?;
        Some(format!("{} {local}", route.method))
    };
    public(&route.pattern).unwrap_or_else(|| format!("{} {}", route.method, route.pattern))
}

/// A path of the route with placeholders that name nothing.
pub fn path_of(route: &Route) -> String {
    fill(&route.pattern, "nothing-here")
}

/// The pattern with `value` for every placeholder.
pub fn fill(pattern: &str, value: &str) -> String {
    let parts: Vec<&str> =
        pattern.split('/').map(|part| if part.starts_with('{') { value } else { part }).collect();
    parts.join("/")
}

fn row_of(route: &Route) -> &'static Row {
    let name = name_of(route);
    let bare = name.replacen(" /api/", " /", 1);
    let row = TABLE.iter().find(|row| row.route == name || row.route == bare);
    row.unwrap_or_else(|| panic!("{name} has no row in the coverage table"))
}

fn request(route: &Route, ask: Ask) -> Sent {
    let method = route.method.as_str();
    let known = if route.pattern.contains("{name}") { "api" } else { "b0000000" };
    let path = match ask {
        Known | KnownBody(_) => fill(&route.pattern, known),
        Ambiguous => fill(&route.pattern, "a"),
        Named(name) | NamedBody(name, _) => fill(&route.pattern, name),
        BadQuery(query) => format!("{}?{query}", fill(&route.pattern, known)),
        Unknown | Body(_) | PlainBody | LargeBody => path_of(route),
    };
    let sent = Sent::new(method, &path);
    match ask {
        Body(body) | KnownBody(body) | NamedBody(_, body) => {
            sent.json(&serde_json::from_str::<Value>(body).unwrap())
        }
        PlainBody => sent.body("text/plain", b"{}"),
        LargeBody => sent.json(&json!({"project": "x".repeat(1024 * 1024)})),
        Known | Unknown | Named(_) | Ambiguous | BadQuery(_) => sent,
    }
}

#[tokio::test]
async fn every_route_reaches_its_documented_statuses() {
    let configuration =
        "api:\n  openapi_enabled: true\nobservability:\n  prometheus_enabled: true\n";
    let server = Server::with(configuration, ServeOptions::default()).await;
    server.fill().await;
    let (page, worker) = if svc_http::has_page() { (200, 200) } else { (503, 404) };
    let mut wrong = Vec::new();
    for route in svc_http::table() {
        for (ask, expected) in row_of(&route).asks {
            let expected = match *expected {
                PAGE => page,
                WORKER => worker,
                other => other,
            };
            let reply = server.send(request(&route, *ask)).await;
            if reply.status != expected {
                let asked = format!("{} {} {ask:?}", route.method, route.pattern);
                wrong.push(format!("{asked}: {} not {expected}: {}", reply.status, reply.text()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_lists_no_route_that_is_gone() {
    let names: Vec<String> = svc_http::table().iter().map(name_of).collect();
    for row in TABLE {
        assert!(names.iter().any(|name| name == row.route), "{}", row.route);
    }
}

/// H145: what is not listed here is not there, and nothing here is for debugging.
#[test]
fn h145_every_route_is_listed_and_none_is_for_debugging() {
    for route in svc_http::table() {
        row_of(&route); // panics for a route that is not listed
        if route.pattern == "/api/push/subscriptions/{id}/test" {
            continue; // notifies a device
        }
        let words = ["debug", "pprof", "trace", "test", "eval", "exec", "console", "env", "panic"];
        let is_named = |part: &str| words.contains(&part.to_ascii_lowercase().as_str());
        assert!(!route.pattern.split('/').any(is_named), "{}", route.pattern);
    }
}

#[test]
fn a_route_with_a_body_is_asked_with_the_wrong_ones() {
    for route in svc_http::table() {
        if route.body != BodyKind::None {
            let asks = row_of(&route).asks;
            assert!(asks.iter().any(|(ask, _)| matches!(ask, PlainBody)), "{}", route.pattern);
        }
    }
}
