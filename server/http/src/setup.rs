//! The service of a first run: one page with one form (`http-api` §3.1, H26).

mod page;

use crate::accept::{self, Answers, ServeOptions};
use crate::body::fields::not_an_object;
use crate::error::Refusal;
use crate::layers::body::{self, BodyKind, Patience, is_form};
use crate::layers::guard::{foreign_origin, misdirected, peer};
use crate::layers::host::HostRule;
use crate::layers::limits;
use crate::reply;
use crate::request_context::RequestContext;
use crate::target::Query;
use page::Filled;
use poem::http::{HeaderValue, Method, StatusCode, header};
use poem::{Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use svc_app::setup::{Setup, SetupAnswers, SetupError};
use svc_domain::host::{AllowedHosts, Asked, Authority, HostVerdict, Proof};
use svc_domain::origin::{
    AllowedOrigins, Credential, Entry, FetchSite, Origin, OriginVerdict, decide,
};
use svc_shared::error::ErrorCode;
use tokio::net::TcpListener;

/// Requests under way when the file is written have this long.
const GRACE: Duration = Duration::from_secs(3);

/// Serves the first run on a bound listener.
///
/// Ends when the configuration is written or `Setup::over` is cancelled.
///
/// # Errors
/// Only when the listener has no address.
pub async fn serve_setup(listener: TcpListener, setup: Arc<Setup>) -> io::Result<()> {
    let closing = setup.over().clone();
    let options = ServeOptions { grace: GRACE, ..ServeOptions::default() };
    let reached = setup.reached();
    let own = match reached.host.contains(':') {
        true => format!("http://[{}]:{}", reached.host, reached.port),
        false => format!("http://{}:{}", reached.host, reached.port),
    };
    let origins = AllowedOrigins::new("127.0.0.1", reached.port, &[own]);
    let hosts = HostRule::new(AllowedHosts::new(&reached.host, origins.iter(), &[""; 0]));
    // Nobody is known here.
    let patience = Patience { idle: options.body_anonymous, total: options.body_anonymous };
    let service = SetupService(Arc::new(Inner { setup, origins, hosts, patience }));
    let closing = accept::Closing { leaving: closing.clone(), over: closing };
    accept::run(listener, service, closing, options, None).await
}

#[derive(Clone)]
struct SetupService(Arc<Inner>);

struct Inner {
    setup: Arc<Setup>,
    origins: AllowedOrigins,
    hosts: HostRule,
    patience: Patience,
}

impl Answers for SetupService {
    async fn answer(&self, request: Request) -> Response {
        let context = RequestContext::of(&request);
        let local = context.path.clone();
        context.finish(self.0.guarded(&context, request), &local).await
    }

    async fn ended(&self) {}
}

impl Inner {
    async fn guarded(
        &self,
        context: &RequestContext,
        request: Request,
    ) -> Result<Response, Refusal> {
        limits::check(request.uri(), request.headers())?;
        let is_health = context.path == "/healthz";
        let asked = if is_health { Asked::Health } else { Asked::Other };
        let verdict = self.hosts.judge(&request, Proof::None, asked)?;
        // The token stands for Host and Origin: a container is reached by any name.
        if verdict == HostVerdict::Misdirected && self.setup.token().is_none() {
            return Err(misdirected());
        }
        let allow = match context.path.as_str() {
            "/" | "/healthz" => "GET, HEAD, OPTIONS",
            "/setup" => "POST, OPTIONS",
            _ => return Err(Refusal::not_found()),
        };
        let is_read = matches!(context.method, Method::GET | Method::HEAD);
        match (context.path.as_str(), &context.method) {
            (_, &Method::OPTIONS) => Ok(Response::builder()
                .status(StatusCode::NO_CONTENT)
                .header(header::ALLOW, allow)
                .finish()),
            ("/healthz", _) if is_read => {
                Ok(reply::json(StatusCode::OK, &json!({"status": "setup"})))
            }
            ("/", _) if is_read => self.show(context, &request).await,
            ("/setup", &Method::POST) => self.submit(context, request).await,
            _ => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                ErrorCode::MethodNotAllowed,
                format!("this path takes {allow}"),
            )
            .with(header::ALLOW, allow)),
        }
    }

    async fn show(&self, context: &RequestContext, request: &Request) -> Result<Response, Refusal> {
        if let Some(url) = self.setup.outcome().await {
            return Ok(done(context, &url));
        }
        let query = Query::of(request);
        let token = query.one("token")?.unwrap_or_default();
        if let Err(refusal) = self.check_token(request, token.as_bytes()) {
            let response = page::refused(context, refusal.status());
            return Ok(with_headers(response, &refusal));
        }
        let filled = Filled::blank(&self.setup);
        Ok(page::form(context, &self.setup, StatusCode::OK, &filled, &BTreeMap::new()))
    }

    async fn submit(
        &self,
        context: &RequestContext,
        mut request: Request,
    ) -> Result<Response, Refusal> {
        let wants_page = is_form(request.headers());
        let headed = request.headers().get("x-setup-token").map(|value| value.as_bytes().to_vec());
        if self.setup.token().is_none() {
            self.check_origin(&request)?;
        } else if let Some(presented) = &headed {
            // Before the body: a stranger's is not read.
            self.check_token(&request, presented)?;
        }
        let body = body::read(&mut request, BodyKind::Small, self.patience).await?;
        let body = body.unwrap_or_default();
        if self.setup.token().is_some() && headed.is_none() {
            let presented = if wants_page { text(&body, "token") } else { String::new() };
            if let Err(refusal) = self.check_token(&request, presented.as_bytes()) {
                return match wants_page {
                    true => Ok(with_headers(page::refused(context, refusal.status()), &refusal)),
                    false => Err(refusal),
                };
            }
        }
        if !body.is_object() {
            return Err(not_an_object());
        }
        let answers = answers(&request, &body);
        let filled = Filled::of(&answers);
        match self.setup.submit(answers).await {
            Ok(url) if wants_page => Ok(done(context, &url)),
            Ok(url) => Ok(reply::json(StatusCode::OK, &json!({"ok": true, "url": url}))),
            Err(error) if wants_page => Ok(self.page_of(context, &filled, error)),
            Err(error) => json_of(error),
        }
    }

    /// Checks `Origin`, or `Sec-Fetch-Site` of browsers that send no origin.
    fn check_origin(&self, request: &Request) -> Result<(), Refusal> {
        let values = |name: &'static str| {
            request.headers().get_all(name).iter().map(poem::http::HeaderValue::as_bytes)
        };
        let presented = self.origins.judge(values("origin"));
        let site = FetchSite::read(values("sec-fetch-site"));
        match decide(Entry::Write, Credential::AuthOff, presented, site) {
            OriginVerdict::Pass => Ok(()),
            OriginVerdict::Refused | OriginVerdict::Unauthenticated => Err(foreign_origin()),
        }
    }

    fn check_token(&self, request: &Request, presented: &[u8]) -> Result<(), Refusal> {
        match self.setup.is_token(peer(request), presented) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                ErrorCode::AuthRequired,
                "this needs the setup token; open the address that the service printed when it \
                 started",
            )),
            Err(seconds) => Err(Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                ErrorCode::Throttled,
                "too many attempts",
            )
            .with(header::RETRY_AFTER, &seconds.to_string())),
        }
    }

    fn page_of(&self, context: &RequestContext, filled: &Filled, error: SetupError) -> Response {
        let (status, wrong) = match error {
            SetupError::Fields(fields) => (StatusCode::BAD_REQUEST, fields),
            SetupError::Refused(reason) => (StatusCode::BAD_REQUEST, general(reason)),
            SetupError::Unwritten(reason) => (StatusCode::INTERNAL_SERVER_ERROR, general(reason)),
            SetupError::Done => return page::completed(context),
        };
        page::form(context, &self.setup, status, filled, &wrong)
    }
}

/// What no field is for stands above them all.
fn general(reason: String) -> BTreeMap<&'static str, String> {
    BTreeMap::from([("", reason)])
}

fn json_of(error: SetupError) -> Result<Response, Refusal> {
    match error {
        SetupError::Fields(fields) => {
            Ok(reply::json(StatusCode::BAD_REQUEST, &json!({"errors": fields})))
        }
        SetupError::Refused(reason) => Err(Refusal::malformed(reason)),
        SetupError::Done => Err(Refusal::new(
            StatusCode::CONFLICT,
            ErrorCode::Exists,
            "there is a configuration already; open the service and sign in",
        )),
        SetupError::Unwritten(reason) => {
            Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, reason))
        }
    }
}

fn done(context: &RequestContext, url: &str) -> Response {
    let mut response = page::done(context, url);
    if !url.contains('<')
        && let Ok(value) = HeaderValue::from_str(&format!("2; url={url}"))
    {
        response.headers_mut().insert("refresh", value);
    }
    response
}

fn with_headers(mut response: Response, refusal: &Refusal) -> Response {
    refusal.copy_headers(&mut response);
    response
}

fn text(body: &Value, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn answers(request: &Request, body: &Value) -> SetupAnswers {
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    let origin = origins.next().filter(|_| origins.next().is_none());
    let host = request.header(header::HOST).and_then(|host| Authority::parse(host).ok());
    SetupAnswers {
        projects_root: text(body, "projects_root"),
        host: body.get("host").and_then(Value::as_str).map(str::to_owned),
        // A program may write a number.
        port: match body.get("port") {
            None | Some(Value::Null) => None,
            Some(Value::String(typed)) => Some(typed.clone()),
            Some(other) => Some(other.to_string()),
        },
        password: text(body, "password"),
        confirm: text(body, "confirm"),
        origin: origin.and_then(|value| Origin::parse(value.to_str().ok()?).ok()),
        seen_host: host.map(|authority| authority.host.to_string()),
    }
}
