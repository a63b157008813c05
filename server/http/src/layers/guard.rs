//! The guard on a request: who sends it, and whether it is served.
//!
//! See `http-api` §5.5. The decision itself is `svc_domain::guard`.

use crate::accept::ConnectionFacts;
use crate::error::Refusal;
use crate::layers::host::HostRule;
use crate::log_limit::LogLimit;
use crate::routing::{Found, Guard, RouteKind};
use poem::Request;
use poem::http::{HeaderMap, Method, StatusCode, header};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use svc_app::auth::{Auth, Caller, Claim};
use svc_domain::guard::{self, Area, Asked, Switches, Verdict};
use svc_domain::host::{Asked as HostAsked, Proof};
use svc_domain::origin::{AllowedOrigins, Credential, Entry, FetchSite};
use svc_shared::error::ErrorCode;
use svc_shared::paths;

/// Everything the guard needs besides the request.
pub(crate) struct Gate {
    pub(crate) auth: Arc<Auth>,
    pub(crate) hosts: HostRule,
    pub(crate) origins: AllowedOrigins,
    pub(crate) switches: Switches,
    /// Peers whose wrong Bearer was logged lately.
    pub(crate) wrong: LogLimit<IpAddr>,
}

/// What the guard found.
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) caller: Caller,
}

/// Asks for the values of the headers of a request.
pub(crate) fn with_claim<T>(request: &Request, work: impl FnOnce(&Claim<'_>) -> T) -> T {
    let headers: &HeaderMap = request.headers();
    let header = |name: &str| headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
    work(&Claim {
        peer: peer(request),
        method: request.method().as_str(),
        path: request.uri().path(),
        header: &header,
    })
}

/// Address of the connection.
pub(crate) fn peer(request: &Request) -> IpAddr {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    request.data::<ConnectionFacts>().map_or(unknown, |facts| facts.peer)
}

impl Gate {
    /// Decides about a request. `local` is its path without the configured prefix.
    ///
    /// # Errors
    /// 400 for a malformed host, 503 when credentials cannot be read.
    pub(crate) async fn judge(
        &self,
        request: &Request,
        found: Option<&Found<'_>>,
        local: &str,
    ) -> Result<Judged, Refusal> {
        let method = request.method();
        let area = area(found, method);
        let refreshed = self.auth.refresh().await;
        let mut caller = with_claim(request, |claim| self.auth.identify(claim));
        if let Err(error) = refreshed {
            if area != Area::Health {
                return Err(error.into());
            }
            // That it serves may be said to anybody, and who asks cannot be known now.
            (caller.credential, caller.identity) = (Credential::None, None);
        }
        let asked = if area == Area::Health { HostAsked::Health } else { HostAsked::Other };
        let proof = match area {
            // A rebound page cannot have the metrics token, whoever else is asked or not.
            Area::Metrics if caller.is_scraper => Proof::Credential,
            _ => guard::proof(caller.credential),
        };
        let host = self.hosts.judge(request, proof, asked)?;
        let headers = request.headers();
        let values = |name: &'static str| headers.get_all(name).iter().map(|v| v.as_bytes());
        let verdict = guard::decide(
            &Asked {
                area,
                entry: entry(found, method, local),
                credential: caller.credential,
                host,
                presented: self.origins.judge(values("origin")),
                site: FetchSite::read(values("sec-fetch-site")),
                is_visit: is_visit(method, headers, local),
            },
            self.switches,
        );
        // The pass of `svc doctor --probe` opens one handler, which tells its holder what arrived.
        let has_pass = || with_claim(request, |claim| self.auth.probe(claim)).is_some();
        let verdict = match verdict {
            Verdict::Unauthenticated if is_probe(local) && has_pass() => Verdict::Serve,
            other => other,
        };
        if caller.credential == Credential::WrongBearer {
            let peer = peer(request);
            if self.wrong.allows(peer) {
                tracing::warn!(peer = %peer, "a request came with a Bearer token that is not valid");
            }
        }
        Ok(Judged { verdict, caller })
    }
}

fn is_probe(local: &str) -> bool {
    local == paths::PROBE || local == paths::WS_PROBE
}

fn area(found: Option<&Found<'_>>, method: &Method) -> Area {
    let Some(found) = found else { return Area::Guarded };
    match found.guard(method) {
        Guard::Public => Area::Health,
        Guard::UiPublic => Area::OpenPage,
        Guard::Ui => Area::Page,
        Guard::Description => Area::Description,
        Guard::Metrics => Area::Metrics,
        Guard::Guarded => Area::Guarded,
    }
}

fn entry(found: Option<&Found<'_>>, method: &Method, local: &str) -> Entry {
    let row = found.and_then(|found| found.row(method));
    match row {
        Some(row) if row.kind == RouteKind::Socket => Entry::Socket,
        Some(_) if *method == Method::POST && local == paths::LOGIN => Entry::Login,
        Some(_) | None => Entry::of_method(method.as_str()),
    }
}

/// A person's browser on its way to a page.
fn is_visit(method: &Method, headers: &HeaderMap, local: &str) -> bool {
    let is_read = method == Method::GET || method == Method::HEAD;
    let mut modes = headers.get_all("sec-fetch-mode").iter();
    let is_navigation = modes.all(|mode| mode.as_bytes() == b"navigate");
    is_read && is_navigation && accepts_html(headers) && !is_programmatic(local)
}

/// Whether a path belongs to programs: they are never shown a page.
pub(crate) fn is_programmatic(local: &str) -> bool {
    ["/api", "/ws"].iter().any(|prefix| {
        local.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether a page would be read.
pub(crate) fn accepts_html(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.to_ascii_lowercase().contains("text/html"))
}

/// 401.
pub(crate) fn unauthenticated() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, ErrorCode::AuthRequired, "authentication required")
        .with(header::WWW_AUTHENTICATE, "Bearer realm=\"svc\"")
}

/// 403: comes from a foreign page.
pub(crate) fn foreign_origin() -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, ErrorCode::OriginCheckFailed, "origin check failed")
}

/// 421: meant for another server.
pub(crate) fn misdirected() -> Refusal {
    Refusal::new(StatusCode::MISDIRECTED_REQUEST, ErrorCode::HostNotAllowed, "host not allowed")
}

/// 403: the token may not do this.
pub(crate) fn scope_denied() -> Refusal {
    Refusal::new(
        StatusCode::FORBIDDEN,
        ErrorCode::ScopeDenied,
        "the scopes of this token do not cover this; use a token that may do it",
    )
}
