//! The walk of a request, in the order of `http-api` §5.5. The accept loop hands requests in;
//! everything that leaves here carries the common headers.

use crate::accept::ConnectionFacts;
use crate::context::Context;
use crate::error::{self, Refusal};
use crate::idempotency::Idempotency;
use crate::internal::rate::LinkRate;
use crate::layers::guard::{self, Gate, Standing, WrongBearers};
use crate::layers::headers::{self, Policy};
use crate::layers::host::HostRule;
use crate::layers::{access, body, compress, limits, request_id};
use crate::public::ParsedBody;
use crate::routes::{self, Call, Route, RouteKind, Serve};
use crate::single_flight::SingleFlight;
use crate::target::{self, Query};
use crate::ws::Sockets;
use crate::{ServeOptions, reply};
use futures_util::FutureExt as _;
use poem::endpoint::BoxEndpoint;
use poem::http::{HeaderValue, Method, StatusCode, Uri, header};
use poem::{Body, Endpoint as _, EndpointExt as _, IntoEndpoint as _, Request, Response};
use poem_openapi::OpenApiService;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use svc_app::App;
use svc_domain::guard::{Switches, Verdict};
use svc_domain::host::AllowedHosts;
use svc_domain::origin::AllowedOrigins;
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
    gate: Gate,
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
    is_https: bool,
    codings: Vec<compress::Coding>,
}

impl Door {
    /// A door for a service that listens on `port`.
    #[must_use]
    pub fn new(app: App, port: u16, options: &ServeOptions) -> Self {
        let settings = app.settings();
        let origins = AllowedOrigins::new(&settings.host, port, &settings.auth.allowed_origins);
        let hosts = AllowedHosts::new(&settings.host, origins.iter(), &settings.auth.allowed_hosts);
        let switches = Switches {
            pages: settings.ui.enabled,
            description: settings.api.openapi_enabled,
            metrics: settings.observability.prometheus_enabled,
        };
        let gate = Gate {
            auth: Arc::clone(app.auth()),
            hosts: HostRule::new(hosts),
            origins,
            switches,
            wrong: WrongBearers::default(),
        };
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
            gate,
            body_idle: options.body_idle,
            context,
        }))
    }

    /// Answers one request. Never fails: refusals and defects are replies too.
    pub async fn answer(&self, request: Request) -> Response {
        let mut visit = Visit::of(&request);
        visit.is_https = guard::with_claim(&request, |claim| self.0.gate.auth.is_https(claim));
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

        let judged = self.gate.judge(&request, found.as_ref(), &local).await?;
        let caller = judged.caller;
        match judged.verdict {
            Verdict::Serve | Verdict::MinimalHealth => {}
            Verdict::Misdirected => return Err(guard::misdirected()),
            Verdict::PagesOff => return Ok(Refusal::not_found().into_json()),
            Verdict::Absent => return Err(Refusal::not_found()),
            Verdict::ForeignOrigin => return Err(guard::foreign_origin()),
            Verdict::Unauthenticated => return Err(guard::unauthenticated()),
            Verdict::SignIn => return Ok(self.to_sign_in(&local, request.uri())),
        }
        let standing = caller.identity.clone().map(|identity| self.gate.standing(identity));
        let is_minimal = judged.verdict == Verdict::MinimalHealth;

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
        if let Some(standing) = &standing
            && !standing.identity().reach.covers(visit.method.as_str(), &row.pattern)
        {
            return Err(guard::scope_denied());
        }
        if is_minimal {
            return Ok(reply::json(StatusCode::OK, &serde_json::json!({"status": "ok"})));
        }
        if self.context.app.shutdown().is_cancelled() && row.kind != RouteKind::Health {
            return Err(shutting_down());
        }
        let body = tokio::select! {
            body = body::read(&mut request, row.body, self.body_idle) => body?,
            // A credential that ends meanwhile must not start what its body asks for.
            () = ended(standing.as_ref()) => return Err(guard::unauthenticated().closing()),
        };
        if let Some(standing) = standing {
            request.set_data(standing);
        }
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
                    caller,
                    request,
                    query,
                    body,
                };
                handler(call).await
            }
        }
    }

    /// The way to the sign-in page and back.
    fn to_sign_in(&self, local: &str, uri: &Uri) -> Response {
        let next = match uri.query() {
            Some(query) => format!("{local}?{query}"),
            None => local.to_owned(),
        };
        let root = self.context.root.as_str();
        reply::see_other(&format!("{root}{}?next={}", paths::LOGIN, paths::segment(&next)))
    }

    /// Turns the outcome into what is sent: text of a refusal, coding, headers, log line.
    fn leave(&self, visit: &Visit, outcome: Result<Response, Refusal>) -> Response {
        let response = outcome
            .unwrap_or_else(|refusal| visit.refuse(refusal, self.context.root.strip(&visit.path)));
        let mut response = compress::apply(response, &visit.codings);
        let policy = response.extensions().get::<Policy>().copied().unwrap_or(Policy::Strict);
        let nonce = visit.nonce.as_deref();
        headers::apply(response.headers_mut(), policy, nonce, &visit.id, visit.is_https);
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
            accepts_html: guard::accepts_html(request.headers()),
            is_https: false,
            codings: compress::accepted(request.headers()),
        }
    }

    fn refuse(&self, refusal: Refusal, local: &str) -> Response {
        let is_api = guard::is_programmatic(local);
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

/// Waits until a credential ends; for ever without one.
async fn ended(standing: Option<&Standing>) {
    match standing {
        Some(standing) => standing.ended().await,
        None => std::future::pending().await,
    }
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
