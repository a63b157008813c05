//! What happens to a request, in the order of `http-api` §5.5.
//!
//! The accept loop hands requests in;
//! everything that leaves here carries the common headers.

use crate::accept::{Answers, ConnectionFacts, ServeOptions};
use crate::call::Call;
use crate::context::Context;
use crate::credential::ActiveCredential;
use crate::error::{self, Refusal};
use crate::idempotency::Idempotency;
use crate::internal::rate::LinkRate;
use crate::layers::body::Patience;
use crate::layers::guard::{self, Gate};
use crate::layers::host::HostRule;
use crate::layers::{body, limits};
use crate::public::{ParsedBody, PathNames};
use crate::request_context::RequestContext;
use crate::routing::{self, Literals, Route, RouteKind, Serve};
use crate::single_flight::SingleFlight;
use crate::target::{self, Query};
use crate::ws::Sockets;
use crate::{reply, routes};
use poem::endpoint::BoxEndpoint;
use poem::http::{Method, StatusCode, Uri, header};
use poem::{Endpoint as _, Request, Response};
use std::sync::{Arc, OnceLock};
use svc_app::auth::{Channel, Identity};
use svc_app::{Actor, App, acting_as};
use svc_domain::guard::{Switches, Verdict};
use svc_domain::host::AllowedHosts;
use svc_domain::origin::AllowedOrigins;
use svc_domain::root_path::RootPath;
use svc_shared::error::ErrorCode;
use svc_shared::paths;

/// Everything between the accept loop and the use-cases.
#[derive(Clone)]
pub struct HttpService(Arc<Inner>);

struct Inner {
    context: Arc<Context>,
    table: Vec<Route>,
    literals: Literals,
    /// By the numbers in the table.
    documented: Vec<Option<BoxEndpoint<'static>>>,
    gate: Gate,
    options: ServeOptions,
}

impl HttpService {
    /// The endpoint of a service that listens on `port`.
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
            wrong: Default::default(),
        };
        let context = Arc::new(Context {
            root: RootPath::new(&settings.root_path),
            sockets: Sockets::new(options.max_sockets, Arc::clone(app.service_restart())),
            idempotency: Arc::new(Idempotency::default()),
            flights: SingleFlight::default(),
            links: LinkRate::default(),
            description: OnceLock::new(),
            app,
        });
        let table = routes::table();
        Self(Arc::new(Inner {
            literals: Literals::of(&table),
            table,
            documented: routes::endpoints(&context),
            gate,
            options: *options,
            context,
        }))
    }

    /// Answers one request. Never fails: refusals and defects are replies too.
    pub async fn answer(&self, mut request: Request) -> Response {
        let mut request_context = RequestContext::of(&request);
        request_context.is_https =
            guard::with_claim(&request, |claim| self.0.gate.auth.is_https(claim));
        let local = self.0.context.root.strip(&request_context.path);
        let wants_upgrade = request.headers().contains_key(header::UPGRADE);
        let body = body::watched(&mut request);
        let work = self.0.guarded(&request_context, request);
        let mut response = request_context.finish(work, local).await;
        // What follows may be of the other protocol already: it is not read as requests (H10). Nor
        // does a request follow a body that was refused unread: whoever asks must know that before.
        let is_last = wants_upgrade || body.is_some_and(|body| !body.is_read());
        if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let close = header::HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response
    }
}

impl Answers for HttpService {
    async fn answer(&self, request: Request) -> Response {
        Self::answer(self, request).await
    }

    async fn ended(&self) {
        self.0.context.sockets.closed().await;
    }
}

impl Inner {
    async fn guarded(
        &self,
        request_context: &RequestContext,
        mut request: Request,
    ) -> Result<Response, Refusal> {
        limits::check(request.uri(), request.headers())?;
        let local = self.context.root.strip(request.uri().path()).to_owned();
        let found = self
            .literals
            .find(&self.table, &local)
            .or_else(|| routing::find(&self.table, &target::segments(&local)?));

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
        let identity = caller.identity.clone();
        let credential = identity.map(|identity| {
            let source = guard::with_claim(&request, |claim| self.gate.auth.source(claim));
            ActiveCredential::used(&self.gate.auth, identity, source)
        });
        let is_minimal = judged.verdict == Verdict::MinimalHealth;

        let Some(found) = found else {
            return Err(Refusal::not_found());
        };
        if request_context.method == Method::OPTIONS {
            return Ok(Response::builder()
                .status(StatusCode::NO_CONTENT)
                .header(header::ALLOW, found.allow())
                .finish());
        }
        let Some(row) = found.row(&request_context.method) else {
            return Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                ErrorCode::MethodNotAllowed,
                format!("this path takes {}", found.allow()),
            )
            .with(header::ALLOW, &found.allow()));
        };
        if let Some(credential) = &credential
            && !credential.identity().reach.covers(request_context.method.as_str(), &row.pattern)
        {
            return Err(guard::scope_denied());
        }
        if is_minimal {
            return Ok(reply::json(StatusCode::OK, &serde_json::json!({"status": "ok"})));
        }
        if self.context.app.shutdown().is_cancelled() && row.kind != RouteKind::Health {
            return Err(shutting_down());
        }
        let actor = actor(caller.identity.as_ref());
        let facts = request.data::<ConnectionFacts>().cloned();
        // A stranger's body is the first thing to go when there are too many connections (H76).
        let awaited = match &caller.identity {
            Some(_) => {
                facts.iter().for_each(ConnectionFacts::known);
                None
            }
            None => facts.as_ref().map(ConnectionFacts::await_stranger),
        };
        let patience = self.patience(caller.identity.as_ref());
        let body = tokio::select! {
            body = body::read(&mut request, row.body, patience) => body?,
            // A credential that ends meanwhile must not start what its body asks for.
            () = ended(credential.as_ref()) => return Err(guard::unauthenticated().closing()),
        };
        drop(awaited);
        if let Some(credential) = credential {
            request.set_data(credential);
        }
        request.set_method(row.method.clone());
        let query = Query::of(&request);
        match row.serve {
            Serve::Documented(number) => {
                let Some(operation) = self.documented.get(number).and_then(Option::as_ref) else {
                    return Err(Refusal::internal("a documented operation has no handler"));
                };
                request.set_data(query);
                request.set_data(ParsedBody(body));
                request.set_data(PathNames(found.params));
                let answered = acting_as(actor, operation.call(request)).await;
                answered.or_else(|error| Ok(error::of_framework(error)))
            }
            Serve::Own(handler) => {
                let call = Call {
                    context: Arc::clone(&self.context),
                    params: found.params,
                    nonce: request_context.nonce.clone(),
                    caller,
                    request,
                    query,
                    body,
                };
                acting_as(actor, handler(call)).await
            }
        }
    }

    /// How long a body may take, by who sends it.
    fn patience(&self, identity: Option<&Identity>) -> Patience {
        let ServeOptions { body_idle, body_total, body_anonymous, .. } = self.options;
        let total = if identity.is_some() { body_total } else { body_anonymous };
        Patience { idle: body_idle.min(total), total }
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
}

/// Who acts, as the audit log names them.
fn actor(identity: Option<&Identity>) -> Actor {
    match identity.map(|identity| &identity.channel) {
        None | Some(Channel::Off | Channel::Cookie) => Actor::Admin,
        Some(Channel::Token(label)) => Actor::Token(label.clone()),
        Some(Channel::UnnamedToken) => Actor::UnnamedToken,
        Some(Channel::Proxy(user)) => Actor::Proxy(user.clone()),
    }
}

/// Waits until a credential ends; for ever without one.
async fn ended(credential: Option<&ActiveCredential>) {
    match credential {
        Some(credential) => credential.ended().await,
        None => std::future::pending().await,
    }
}

fn shutting_down() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::ShuttingDown,
        "the service is shutting down; try again when it is back",
    )
    .closing()
}
