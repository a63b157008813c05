//! The walk of a request, in the order of `http-api` §5.5. The accept loop hands requests in;
//! everything that leaves here carries the common headers.

use crate::accept::ConnectionFacts;
use crate::context::Context;
use crate::error::{self, Refusal};
use crate::idempotency::Idempotency;
use crate::internal::rate::LinkRate;
use crate::layers::headers::{self, Policy};
use crate::layers::host::{HostRule, Served};
use crate::layers::{access, body, compress, limits, origin, request_id};
use crate::public::ParsedBody;
use crate::routes::{self, Call, Found, Guard, Route, RouteKind, Serve};
use crate::single_flight::SingleFlight;
use crate::target::{self, Query};
use crate::ws::Sockets;
use crate::{ServeOptions, reply};
use futures_util::FutureExt as _;
use poem::endpoint::BoxEndpoint;
use poem::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use poem::{Body, Endpoint as _, EndpointExt as _, IntoEndpoint as _, Request, Response};
use poem_openapi::OpenApiService;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use svc_app::App;
use svc_domain::host::{AllowedHosts, Asked};
use svc_domain::origin::{AllowedOrigins, Entry};
use svc_domain::root_path::RootPath;
use svc_shared::error::ErrorCode;
use svc_shared::paths::{self, API, API_V1};
use tokio::time::Instant;

/// Everything between the accept loop and the use-cases.
#[derive(Clone)]
pub struct Door(Arc<Inner>);

struct Inner {
    context: Arc<Context>,
    table: Vec<Route>,
    documented: BoxEndpoint<'static>,
    hosts: HostRule,
    origins: AllowedOrigins,
    is_ui_on: bool,
    /// What is switched off as a whole.
    absent: Vec<Guard>,
    body_idle: Duration,
}

/// What is settled before a request is answered, for the log and the headers.
struct Visit {
    id: String,
    nonce: Option<String>,
    started: Instant,
    method: Method,
    path: String,
    peer: String,
    accepts_html: bool,
    codings: Vec<compress::Coding>,
}

impl Door {
    /// A door for a service that listens on `port`.
    #[must_use]
    pub fn new(app: App, port: u16, options: &ServeOptions) -> Self {
        let settings = app.settings();
        let origins = AllowedOrigins::new(&settings.host, port, &settings.auth.allowed_origins);
        let hosts = AllowedHosts::new(&settings.host, origins.iter(), &settings.auth.allowed_hosts);
        let is_ui_on = settings.ui.enabled;
        let switches = [
            (Guard::Description, settings.api.openapi_enabled),
            (Guard::Metrics, settings.observability.prometheus_enabled),
        ];
        let absent = switches.into_iter().filter(|(_, on)| !on).map(|(guard, _)| guard).collect();
        let context = Arc::new(Context {
            root: RootPath::new(&settings.root_path),
            sockets: Sockets::new(options.max_sockets, app.shutdown().clone()),
            idempotency: Arc::new(Idempotency::default()),
            flights: SingleFlight::default(),
            links: LinkRate::default(),
            description: OnceLock::new(),
            app,
        });
        let service =
            OpenApiService::new(routes::operations(&context), "svc", env!("CARGO_PKG_VERSION"));
        Self(Arc::new(Inner {
            table: routes::table(),
            documented: service.into_endpoint().map_to_response().boxed(),
            hosts: HostRule::new(hosts),
            origins,
            is_ui_on,
            absent,
            body_idle: options.body_idle,
            context,
        }))
    }

    /// Answers one request. Never fails: refusals and defects are replies too.
    pub async fn answer(&self, request: Request) -> Response {
        let visit = Visit::of(&request);
        let answered = AssertUnwindSafe(self.0.guarded(&visit, request)).catch_unwind().await;
        let outcome = answered.unwrap_or_else(|panic| Err(Refusal::internal(&panic_text(&*panic))));
        self.0.leave(&visit, outcome)
    }

    pub(crate) fn sockets(&self) -> &Sockets {
        &self.0.context.sockets
    }
}

impl Inner {
    async fn guarded(&self, visit: &Visit, mut request: Request) -> Result<Response, Refusal> {
        limits::check(request.uri(), request.headers())?;
        let local = self.context.root.strip(request.uri().path()).to_owned();
        let segments = target::segments(&local);
        let found = segments.as_deref().and_then(|segments| routes::find(&self.table, segments));

        let is_health = found.as_ref().is_some_and(Found::is_health);
        let asked = if is_health { Asked::Health } else { Asked::Other };
        let served = self.hosts.check(&request, asked)?;
        if !self.is_ui_on && found.as_ref().is_some_and(|found| found.is_ui(&visit.method)) {
            return Ok(Refusal::not_found().into_json());
        }
        let row = found.as_ref().and_then(|found| found.row(&visit.method));
        let entry = match row {
            Some(row) if row.kind == RouteKind::Socket => Entry::Socket,
            Some(_) | None => Entry::of_method(visit.method.as_str()),
        };
        origin::check(&self.origins, &request, entry)?;
        let is_absent = |found: &Found| self.absent.iter().any(|guard| found.is_all(*guard));
        if found.as_ref().is_some_and(is_absent) {
            return Err(Refusal::not_found());
        }

        let (Some(found), Some(segments)) = (found, segments) else {
            return Err(Refusal::not_found());
        };
        if visit.method == Method::OPTIONS {
            return Ok(Response::builder()
                .status(StatusCode::NO_CONTENT)
                .header(header::ALLOW, found.allow())
                .finish());
        }
        let Some(row) = found.row(&visit.method) else {
            return Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                ErrorCode::MethodNotAllowed,
                format!("this path takes {}", found.allow()),
            )
            .with(header::ALLOW, &found.allow()));
        };
        if served == Served::MinimalHealth {
            return Ok(reply::json(StatusCode::OK, &serde_json::json!({"status": "ok"})));
        }
        if self.context.app.shutdown().is_cancelled() && row.kind != RouteKind::Health {
            return Err(shutting_down());
        }
        let body = body::read(&mut request, row.body, self.body_idle).await?;
        request.set_method(row.method.clone());
        let query = Query::of(&request);
        match row.serve {
            Serve::Documented => {
                request.set_data(query);
                request.set_data(ParsedBody(body));
                *request.uri_mut() = canonical(&row.pattern, &segments, request.uri());
                self.documented.call(request).await.or_else(|error| Ok(error::of_framework(error)))
            }
            Serve::Own(handler) => {
                let call = Call {
                    context: Arc::clone(&self.context),
                    params: found.params,
                    nonce: visit.nonce.clone(),
                    request,
                    query,
                    body,
                };
                handler(call).await
            }
        }
    }

    /// Turns the outcome into what is sent: text of a refusal, coding, headers, log line.
    fn leave(&self, visit: &Visit, outcome: Result<Response, Refusal>) -> Response {
        let response = outcome
            .unwrap_or_else(|refusal| visit.refuse(refusal, self.context.root.strip(&visit.path)));
        let mut response = compress::apply(response, &visit.codings);
        let policy = response.extensions().get::<Policy>().copied().unwrap_or(Policy::Strict);
        headers::apply(response.headers_mut(), policy, visit.nonce.as_deref(), &visit.id);
        access::log(&access::Line {
            request_id: &visit.id,
            method: &visit.method,
            path: &visit.path,
            peer: &visit.peer,
            status: response.status(),
            took: visit.started.elapsed(),
        });
        if visit.method == Method::HEAD { without_body(response) } else { response }
    }
}

impl Visit {
    fn of(request: &Request) -> Self {
        Self {
            id: request_id::request_id(),
            nonce: request_id::nonce(),
            started: Instant::now(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            peer: request
                .data::<ConnectionFacts>()
                .map(|facts| facts.peer.to_string())
                .unwrap_or_default(),
            accepts_html: accepts_html(request.headers()),
            codings: compress::accepted(request.headers()),
        }
    }

    fn refuse(&self, refusal: Refusal, local: &str) -> Response {
        let is_api = ["/api", "/ws"].iter().any(|prefix| {
            local.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if refusal.status() == StatusCode::NOT_FOUND && self.accepts_html && !is_api {
            return reply::html(
                StatusCode::NOT_FOUND,
                "Not found",
                "There is nothing under this address.",
            );
        }
        refusal.into_json()
    }
}

fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.to_ascii_lowercase().contains("text/html"))
}

/// The address of a documented operation, spelled as the service behind it expects.
fn canonical(pattern: &str, segments: &[String], uri: &Uri) -> Uri {
    let local: String =
        segments.iter().map(|segment| format!("/{}", paths::segment(segment))).collect();
    let is_alias = pattern.starts_with(API) && !pattern.starts_with(API_V1);
    let path = match local.strip_prefix(API) {
        Some(rest) if is_alias => format!("{API_V1}{rest}"),
        Some(_) | None => local,
    };
    let path = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    // Encoded segments and a query that was a query before: always an address.
    path.parse().unwrap_or_default()
}

fn shutting_down() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::ShuttingDown,
        "the service is shutting down; try again when it is back",
    )
    .closing()
}

/// The same head without the body, and with the length the body would have had.
fn without_body(mut response: Response) -> Response {
    let (length, is_exact) = reply::size(&mut response);
    if is_exact && response.status() != StatusCode::NOT_MODIFIED {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response.set_body(Body::empty());
    response
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    // A panic message may hold what was being handled (H73).
    svc_domain::redact::redact_text(&text.unwrap_or_else(|| "a panic without words".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_served_by_the_same_operation() {
        let uri: Uri = "/api/instances/a%2Db?wait=1".parse().unwrap();
        let segments = target::segments(uri.path()).unwrap();
        let served = canonical("/api/instances/{instance_id}", &segments, &uri);
        assert_eq!(served.to_string(), "/api/v1/instances/a-b?wait=1");
        let served =
            canonical("/api/v1/instances/{instance_id}", &["api".into(), "v1".into()], &uri);
        assert_eq!(served.path(), "/api/v1");
    }

    #[test]
    fn h73_a_panic_is_told_in_redacted_words() {
        let panic: Box<dyn std::any::Any + Send> = Box::new(String::from("lost it"));
        assert_eq!(panic_text(&*panic), "lost it");
    }
}
