//! The table of routes, read by guards, router, `Allow` and the coverage test.
//!
//! Documented routes come from the operations of [`crate::public`], so that the table and the
//! OpenAPI document cannot differ; the others are listed here.

use crate::context::Context;
use crate::layers::body::BodyKind;
use crate::public::{Operations, PublicApi};
use crate::routing::{Guard, Route, RouteKind, Serve};
use crate::{docs, internal, sign_in, spa, ws};
use poem::endpoint::BoxEndpoint;
use poem::http::Method;
use poem_openapi::OpenApi;
use poem_openapi::registry::{MetaOperation, MetaPath};
use std::collections::HashMap;
use std::sync::Arc;
use svc_shared::paths::{self, API, API_V1};

macro_rules! own {
    ($method:ident $pattern:literal $guard:ident $body:ident $kind:ident $handler:path) => {
        Route {
            method: Method::$method,
            pattern: $pattern.to_owned(),
            guard: Guard::$guard,
            body: BodyKind::$body,
            kind: RouteKind::$kind,
            serve: Serve::Own(|call| Box::pin($handler(call))),
        }
    };
}

/// Every route of this server.
#[must_use]
pub fn table() -> Vec<Route> {
    let mut table = documented();
    table.extend([
        own!(GET "/login" UiPublic None Plain sign_in::page),
        own!(POST "/login" UiPublic Small Plain sign_in::sign_in),
        own!(GET "/logout" Ui None Plain sign_in::leave),
        own!(POST "/logout" Ui None Plain sign_in::sign_out),
        own!(POST "/api/reauth" Guarded SmallJson Plain sign_in::elevate),
        own!(DELETE "/api/reauth" Guarded None Plain sign_in::lower),
        own!(GET "/" Ui None Plain spa::shell),
        own!(GET "/ui/{*page}" Ui None Plain spa::shell),
        own!(GET "/ui/about/components" Ui None Plain spa::gallery),
        own!(GET "/static/{*file}" UiPublic None Plain spa::file),
        own!(GET "/sw.js" UiPublic None Plain spa::worker),
        own!(GET "/manifest.webmanifest" UiPublic None Plain spa::manifest),
        own!(GET "/docs" Description None Plain docs::page),
        own!(GET "/docs/{*file}" Description None Plain docs::file),
        own!(GET "/openapi.json" Description None Plain internal::ops::openapi),
        own!(GET "/api/bootstrap" Guarded None Plain internal::ops::bootstrap),
        own!(GET "/api/login-shepherd/state" Guarded None Plain internal::agent_sign_in::state),
        own!(GET "/api/login-shepherd/qr" Ui None Plain internal::agent_sign_in::picture),
        own!(POST "/api/login-shepherd/start" Guarded SmallJson Plain
            internal::agent_sign_in::start),
        own!(POST "/api/login-shepherd/code" Guarded SmallJson Plain internal::agent_sign_in::code),
        own!(POST "/api/login-shepherd/status" Guarded None Plain internal::agent_sign_in::status),
        own!(POST "/api/login-shepherd/cancel" Guarded None Plain internal::agent_sign_in::cancel),
        own!(GET "/api/environments/ghosts" Guarded None Plain internal::environments::ghosts),
        own!(POST "/api/environments/reap" Guarded Json Plain internal::environments::reap),
        own!(GET "/api/tokens" Guarded None Plain internal::access::tokens),
        own!(POST "/api/tokens" Guarded SmallJson Plain internal::access::issue),
        own!(DELETE "/api/tokens" Guarded None Plain internal::access::revoke),
        own!(POST "/api/tokens/rotate" Guarded SmallJson Plain internal::access::rotate),
        own!(GET "/api/config" Guarded None Plain internal::config::basic),
        own!(PUT "/api/config" Guarded Json Plain internal::config::save_basic),
        own!(GET "/api/config/advanced" Guarded None Plain internal::config::advanced),
        own!(PUT "/api/config/advanced" Guarded Json Plain internal::config::save_advanced),
        own!(GET "/api/config-write/status" Guarded None Plain internal::config_write::status),
        own!(GET "/api/config-write/overview" Guarded None Plain internal::config_write::overview),
        own!(GET "/api/config-write/claude-md" Guarded None Plain
            internal::config_write::instructions),
        own!(PUT "/api/config-write/claude-md" Guarded Json Plain
            internal::config_write::save_instructions),
        own!(GET "/api/config-write/settings" Guarded None Plain internal::config_write::settings),
        own!(PUT "/api/config-write/settings" Guarded Json Plain
            internal::config_write::save_settings),
        own!(GET "/api/config-write/settings/effective" Guarded None Plain
            internal::config_write::effective),
        own!(GET "/api/config-write/permissions" Guarded None Plain
            internal::config_write::permissions),
        own!(PUT "/api/config-write/permissions" Guarded Json Plain
            internal::config_write::save_permissions),
        own!(GET "/api/config-write/hooks" Guarded None Plain internal::config_write::hooks),
        own!(PUT "/api/config-write/hooks" Guarded Json Plain internal::config_write::save_hooks),
        own!(GET "/api/config-write/mcp" Guarded None Plain internal::config_write::servers),
        own!(PUT "/api/config-write/mcp" Guarded Json Plain internal::config_write::save_servers),
        own!(POST "/api/config-write/mcp/server" Guarded Json Plain
            internal::config_write::change_server),
        own!(GET "/api/config-write/mcp/approvals" Guarded None Plain
            internal::config_write::approvals),
        own!(PUT "/api/config-write/mcp/approvals" Guarded Json Plain
            internal::config_write::save_approvals),
        own!(POST "/api/config-write/mcp/reset-project-choices" Guarded Json Plain
            internal::config_write::reset_approvals),
        own!(GET "/api/config-write/skills/overrides" Guarded None Plain
            internal::config_write::overrides),
        own!(PUT "/api/config-write/skills/overrides" Guarded Json Plain
            internal::config_write::save_overrides),
        own!(GET "/api/config-write/skills" Guarded None Plain internal::config_write::skills::list),
        own!(GET "/api/config-write/skills/file" Guarded None Plain
            internal::config_write::skills::file),
        own!(PUT "/api/config-write/skills" Guarded Json Plain internal::config_write::skills::save),
        own!(POST "/api/config-write/skills/delete" Guarded Json Plain
            internal::config_write::skills::delete),
        own!(POST "/api/restart" Guarded None Plain internal::restart::begin),
        own!(GET "/api/config-write/subagents" Guarded None Plain
            internal::config_write::subagents::list),
        own!(GET "/api/config-write/subagents/{name}" Guarded None Plain
            internal::config_write::subagents::read),
        own!(PUT "/api/config-write/subagents/{name}" Guarded Json Plain
            internal::config_write::subagents::save),
        own!(DELETE "/api/config-write/subagents/{name}" Guarded None Plain
            internal::config_write::subagents::delete),
        own!(GET "/api/config-write/plugins" Guarded None Plain
            internal::config_write::plugins::list),
        own!(GET "/api/config-write/plugins/enabled" Guarded None Plain
            internal::config_write::plugins::enabled),
        own!(GET "/api/config-write/plugins/{plugin}" Guarded None Plain
            internal::config_write::plugins::details),
        own!(POST "/api/config-write/plugins/action" Guarded Json Plain
            internal::config_write::plugins::change),
        own!(GET "/api/config-write/marketplaces" Guarded None Plain
            internal::config_write::plugins::marketplaces),
        own!(GET "/api/config-write/marketplaces/declared" Guarded None Plain
            internal::config_write::plugins::declared),
        own!(POST "/api/config-write/marketplaces/action" Guarded Json Plain
            internal::config_write::plugins::change_marketplace),
        own!(GET "/api/config-write/copies" Guarded None Plain
            internal::config_write::copies::list),
        own!(GET "/api/config-write/copies/content" Guarded None Plain
            internal::config_write::copies::content),
        own!(POST "/api/config-write/copies/restore" Guarded Json Plain
            internal::config_write::copies::restore),
        own!(GET "/api/devices" Guarded None Plain internal::access::devices),
        own!(DELETE "/api/devices/{id}" Guarded None Plain internal::access::sign_out),
        own!(POST "/api/devices/sign-out-others" Guarded None Plain internal::access::sign_out_others),
        own!(GET "/api/access" Guarded None Plain internal::access::report),
        own!(GET "/api/ui-prefs" Guarded None Plain internal::ui_prefs::read),
        own!(PUT "/api/ui-prefs" Guarded Json Plain internal::ui_prefs::replace),
        own!(GET "/api/state" Guarded None Plain internal::ops::state),
        own!(GET "/api/widget" Guarded None Plain internal::ops::widget),
        own!(GET "/api/doctor" Guarded None Plain internal::ops::doctor),
        own!(GET "/api/support-bundle" Guarded None Plain internal::support::list),
        own!(GET "/api/support-bundle/archive" Guarded None Plain internal::support::archive),
        own!(GET "/api/login-status" Guarded None Plain internal::ops::login_status),
        own!(PATCH "/api/instances/{id}" Guarded Json Plain internal::instances::change),
        own!(GET "/api/instances/{id}/log" Guarded None Plain internal::instances::log),
        own!(GET "/api/instances/{id}/report" Guarded None Plain internal::instances::report),
        own!(GET "/api/instances/{id}/changes" Guarded None Plain internal::changes::of_instance),
        own!(GET "/api/instances/{id}/changes/file" Guarded None Plain internal::changes::file_of_instance),
        own!(POST "/api/instances/{id}/connect" Ui None Plain internal::instances::connect),
        own!(GET "/api/instances/{id}/qr" Ui None Plain internal::instances::qr),
        own!(POST "/api/instances/{id}/heal" Guarded None Plain internal::instances::heal),
        own!(POST "/api/instances/{id}/forget" Ui None Plain internal::instances::forget),
        own!(POST "/api/instances/{id}/release" Ui OptionalJson Plain internal::instances::release),
        own!(GET "/api/projects/preflight" Guarded None Plain internal::projects::preflight_all),
        own!(POST "/api/projects" Guarded Json Plain internal::clones::create),
        own!(POST "/api/projects/clone" Guarded Json Plain internal::clones::begin),
        own!(GET "/api/projects/clone/active" Guarded None Plain internal::clones::active),
        own!(POST "/api/projects/clone/{job}/cancel" Guarded None Plain internal::clones::cancel),
        own!(GET "/api/history" Guarded None Plain internal::history::page),
        own!(GET "/api/projects/sortmeta" Guarded None Plain internal::projects::sort_data),
        own!(GET "/api/restore" Guarded None Plain internal::restore::offer),
        own!(POST "/api/restore" Guarded Json Plain internal::restore::begin),
        own!(POST "/api/restore/cancel" Guarded None Plain internal::restore::cancel),
        own!(POST "/api/restore/dismiss" Guarded Json Plain internal::restore::dismiss),
        own!(GET "/api/approvals" Guarded None Plain internal::approvals::list),
        own!(GET "/api/approvals/{request_id}" Guarded None Plain internal::approvals::one),
        own!(POST "/api/approvals/{request_id}" Ui Json Plain internal::approvals::answer_any),
        own!(GET "/api/hosted" Guarded None Plain internal::approvals::hosted),
        own!(POST "/api/instances/{id}/message" Ui Json Plain internal::approvals::message),
        own!(POST "/api/instances/{id}/permissions/{request_id}" Ui Json Plain
            internal::approvals::answer),
        own!(GET "/api/strays" Guarded None Plain internal::strays::list),
        own!(POST "/api/strays/{pid}/kill" Guarded None Plain internal::strays::kill),
        own!(GET "/api/launches" Guarded None Plain internal::launches::list),
        own!(POST "/api/launches" Guarded Json Plain internal::launches::plan),
        own!(DELETE "/api/launches/{id}" Guarded None Plain internal::launches::cancel),
        own!(GET "/api/stranded" Guarded None Plain internal::stranded::list),
        own!(POST "/api/stranded/{ref}/continue" Guarded None Plain internal::stranded::go_on),
        own!(POST "/api/stranded/{ref}/dismiss" Guarded None Plain internal::stranded::dismiss),
        own!(GET "/api/keepers" Guarded None Plain internal::keepers::list),
        own!(POST "/api/keepers/{pid}/kill" Guarded None Plain internal::keepers::kill),
        own!(GET "/api/notifications" Guarded None Plain internal::notifications::report),
        own!(POST "/api/notifications/send-test" Guarded OptionalJson Plain
            internal::notifications::test),
        own!(GET "/api/webhooks" Guarded None Plain internal::webhooks::report),
        own!(POST "/api/webhooks/send-test" Guarded OptionalJson Plain internal::webhooks::test),
        own!(POST "/api/webhooks/replay" Guarded OptionalJson Plain internal::webhooks::replay),
        own!(GET "/api/push/key" Guarded None Plain internal::push::key),
        own!(GET "/api/push/subscriptions" Guarded None Plain internal::push::list),
        own!(POST "/api/push/subscriptions" Guarded Json Plain internal::push::subscribe),
        own!(DELETE "/api/push/subscriptions/{id}" Guarded None Plain internal::push::remove),
        own!(POST "/api/push/subscriptions/{id}/test" Guarded None Plain internal::push::test),
        own!(GET "/api/metrics" Guarded None Plain internal::metrics::all),
        own!(GET "/api/projects/{name}/metrics" Guarded None Plain internal::metrics::of_project),
        own!(GET "/api/projects/{name}/row" Ui None Plain internal::projects::row),
        own!(POST "/api/projects/trust-all" Guarded Json Plain internal::projects::trust_all),
        own!(GET "/api/projects/{name}/preflight" Guarded None Plain internal::projects::preflight),
        own!(GET "/api/projects/{name}/changes" Guarded None Plain internal::changes::of_project),
        own!(GET "/api/projects/{name}/changes/file" Guarded None Plain internal::changes::file_of_project),
        own!(GET "/api/projects/{name}/worktrees" Guarded None Plain internal::worktrees::list),
        own!(POST "/api/projects/{name}/worktrees/{worktree}/remove" Guarded OptionalJson Plain internal::worktrees::remove),
        own!(GET "/api/projects/{name}/claude-md" Guarded None Plain internal::instructions::read),
        own!(PUT "/api/projects/{name}/claude-md" Guarded Json Plain internal::instructions::write),
        own!(POST "/api/projects/{name}/trust" Guarded None Plain internal::projects::trust),
        own!(POST "/api/projects/{name}/adopt" Guarded None Plain internal::projects::adopt),
        own!(GET "/api/probe" Guarded None Plain internal::probe::seen),
        own!(GET "/ws/probe" Guarded None Plain internal::probe::seen),
        own!(GET "/api/usage" Guarded None Plain internal::transcripts::usage),
        own!(GET "/api/projects/{name}/usage" Guarded None Plain internal::transcripts::usage_of),
        own!(GET "/api/projects/{name}/transcripts" Guarded None Plain internal::transcripts::list),
        own!(GET "/api/projects/{name}/transcripts/{conversation}" Guarded None Plain
            internal::transcripts::page),
        own!(GET "/api/projects/{name}/transcripts/{conversation}/tail" Guarded None Plain
            internal::transcripts::tail),
        own!(GET "/ws/events" Guarded None Socket ws::events::open),
        own!(GET "/ws/bridge-log/{id}" Guarded None Socket ws::bridge_log::open),
        own!(GET "/ws/clone-progress/{job}" Guarded None Socket ws::clone_progress::open),
        own!(GET "/ws/hosted/{id}" Guarded None Socket ws::hosted::open),
        own!(GET "/ws/changes/{id}" Guarded None Socket ws::changes::open),
        own!(GET "/ws/pty-screen/{id}" Guarded None Socket ws::pty_screen::open),
        own!(GET "/ws/conversation/{name}/{conversation}" Guarded None Socket
            ws::conversation::open),
    ]);
    table
}

/// Path and operation of everything documented, in the order of their numbers.
fn operations() -> impl Iterator<Item = (String, MetaOperation)> {
    let paths = <Operations as OpenApi>::meta().into_iter().flat_map(|api| api.paths);
    paths.flat_map(|MetaPath { path, operations }| {
        operations.into_iter().map(move |operation| (path.clone(), operation))
    })
}

fn documented() -> Vec<Route> {
    let mut table = Vec::new();
    for (number, (path, operation)) in operations().enumerate() {
        let body = match operation.request {
            None => BodyKind::None,
            Some(request) if request.required => BodyKind::Json,
            Some(_) => BodyKind::OptionalJson,
        };
        let is_health = path == paths::HEALTHZ;
        let is_metrics = path == paths::METRICS;
        let route = Route {
            method: operation.method,
            pattern: path.clone(),
            guard: match (is_health, is_metrics) {
                (true, _) => Guard::Public,
                (false, true) => Guard::Metrics,
                (false, false) => Guard::Guarded,
            },
            body,
            kind: if is_health { RouteKind::Health } else { RouteKind::Plain },
            serve: Serve::Documented(number),
        };
        if let Some(local) = path.strip_prefix(API_V1) {
            table.push(Route { pattern: format!("{API}{local}"), ..route.clone() });
        }
        table.push(route);
    }
    table
}

/// The documented operations by number.
///
/// They are called directly, because the table has found the route.
pub(crate) fn endpoints(context: &Arc<Context>) -> Vec<Option<BoxEndpoint<'static>>> {
    let mut by_path = HashMap::new();
    PublicApi::new(Arc::clone(context)).operations().add_routes(&mut by_path);
    operations()
        .map(|(path, operation)| by_path.get_mut(&registered(&path))?.remove(&operation.method))
        .collect()
}

/// The path under which the generator registers an operation, with names numbered.
fn registered(pattern: &str) -> String {
    let mut names = 0;
    let segments = pattern.split('/').map(|segment| {
        if !segment.starts_with('{') {
            return segment.to_owned();
        }
        names += 1;
        format!(":param{}", names - 1)
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{Found, Literals, find};
    use std::collections::BTreeSet;

    fn route(path: &str) -> Option<(Vec<String>, Vec<String>)> {
        let segments = crate::target::segments(path)?;
        let table = table();
        let found = find(&table, &segments)?;
        let rows = found.rows.iter().map(|row| format!("{} {}", row.method, row.pattern)).collect();
        Some((rows, found.params))
    }

    #[test]
    fn both_prefixes_serve_the_public_routes_and_only_one_the_internal_ones() {
        for prefix in ["/api", "/api/v1"] {
            let (rows, params) = route(&format!("{prefix}/instances/a%20b/resume")).unwrap();
            assert_eq!(rows, [format!("POST {prefix}/instances/{{instance_id}}/resume")]);
            assert_eq!(params, ["a b"]);
        }
        assert!(route("/api/bootstrap").is_some());
        for absent in ["/api/v1/bootstrap", "/api/v1", "/api", "/api/v1/state", "/healthz/x", "/ui"]
        {
            assert!(route(absent).is_none(), "{absent}");
        }
    }

    #[test]
    fn pages_take_every_path_below_them() {
        assert_eq!(route("/ui/p/has.dot").unwrap().1, ["p/has.dot"]);
        assert_eq!(route("/static/snippets/a.js").unwrap().1, ["snippets/a.js"]);
    }

    #[test]
    fn a_path_says_which_methods_it_takes() {
        let table = table();
        let segments = crate::target::segments("/api/instances/x").unwrap();
        let found = find(&table, &segments).unwrap();
        assert_eq!(found.allow(), "DELETE, GET, HEAD, OPTIONS, PATCH");
        assert!(found.row(&Method::HEAD).is_some());
        assert!(found.row(&Method::PUT).is_none());
    }

    #[test]
    fn a_path_that_is_written_like_its_pattern_is_found_the_short_way_too() {
        let table = table();
        let literals = Literals::of(&table);
        let patterns = |found: &Found<'_>| -> Vec<String> {
            found.rows.iter().map(|row| format!("{} {}", row.method, row.pattern)).collect()
        };
        for row in table.iter().filter(|row| !row.pattern.contains('{')) {
            let segments = crate::target::segments(&row.pattern).unwrap();
            let long = find(&table, &segments).unwrap();
            let short = literals.find(&table, &row.pattern).unwrap();
            assert_eq!(patterns(&short), patterns(&long), "{}", row.pattern);
            assert_eq!(short.params, long.params);
        }
        for other in ["/api/instances/x", "/api/instances/{id}/log", "/nothing", "/%61pi/state"] {
            assert!(literals.find(&table, other).is_none(), "{other}");
        }
    }

    #[test]
    fn no_route_is_listed_twice() {
        let mut seen = BTreeSet::new();
        for row in table() {
            assert!(seen.insert(format!("{} {}", row.method, row.pattern)), "{row:?}");
        }
    }

    #[test]
    fn every_documented_operation_is_registered_under_the_path_that_is_looked_up() {
        assert_eq!(registered("/a/{b}/c/{d}"), "/a/:param0/c/:param1");
        assert_eq!(registered("/healthz"), "/healthz");
        for (path, _) in operations() {
            // Handlers of documented operations are given the first name only.
            assert!(path.matches('{').count() <= 1, "{path}");
        }
    }

    #[test]
    fn an_alias_is_served_by_the_same_operation() {
        let table = table();
        let number = |pattern: &str, method: &Method| {
            let row = table.iter().find(|row| row.pattern == pattern && row.method == *method);
            match row?.serve {
                Serve::Documented(number) => Some(number),
                Serve::Own(_) => None,
            }
        };
        let mut aliases = 0;
        for (path, operation) in operations() {
            let documented = number(&path, &operation.method);
            assert!(documented.is_some(), "{path}");
            if let Some(local) = path.strip_prefix(API_V1) {
                let alias = format!("{API}{local}");
                assert_eq!(number(&alias, &operation.method), documented, "{alias}");
                aliases += 1;
            }
        }
        assert!(aliases > 0);
    }
}
