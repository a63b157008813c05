//! The `Origin` rule on a request (`http-api` §5.4); the decision itself is in the domain.

use crate::error::Refusal;
use poem::Request;
use poem::http::{StatusCode, header};
use svc_domain::origin::{self, AllowedOrigins, Credential, Entry, FetchSite, OriginVerdict};
use svc_shared::error::ErrorCode;

/// Checks where a request comes from. Authentication is off in this build, so the credential is
/// always [`Credential::AuthOff`].
///
/// # Errors
/// 403 for a foreign origin; 401 where a credential is missing.
pub(crate) fn check(
    allowed: &AllowedOrigins,
    request: &Request,
    entry: Entry,
) -> Result<(), Refusal> {
    let headers = request.headers();
    let values = |name: &'static str| headers.get_all(name).iter().map(|value| value.as_bytes());
    let presented = allowed.judge(values("origin"));
    let site = FetchSite::read(values("sec-fetch-site"));
    match origin::decide(entry, Credential::AuthOff, presented, site) {
        OriginVerdict::Pass => Ok(()),
        OriginVerdict::Refused => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            ErrorCode::OriginCheckFailed,
            "origin check failed",
        )),
        OriginVerdict::Unauthenticated => Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            ErrorCode::AuthRequired,
            "authentication required",
        )
        .with(header::WWW_AUTHENTICATE, "Bearer realm=\"svc\"")),
    }
}
