//! What arrived of a request, for `svc doctor --probe`.

use crate::call::Call;
use crate::error::Refusal;
use crate::layers::guard::{peer, with_claim};
use crate::reply;
use poem::Response;
use poem::http::{HeaderValue, StatusCode, header};
use svc_shared::internal::probe::ProbeSeen;

/// Longest value of a header that is told, in characters.
const SHOWN: usize = 200;

/// Says what arrived. Without the pass of the installation there is nothing here.
///
/// With `cookie=false` no cookie comes along: many caches keep only such answers.
pub(crate) async fn seen(call: Call) -> Result<Response, Refusal> {
    let auth = call.context.app.auth();
    let Some(nonce) = with_claim(&call.request, |claim| auth.probe(claim)) else {
        return Err(Refusal::not_found());
    };
    let headers = call.request.headers();
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).chars().take(SHOWN).collect())
            .collect()
    };
    let is_https = call.caller.is_https;
    let seen = ProbeSeen {
        nonce,
        peer: peer(&call.request).to_string(),
        is_trusted: with_claim(&call.request, |claim| auth.trusts_peer(claim)),
        path: call.request.uri().path().chars().take(SHOWN).collect(),
        host: all("host").into_iter().next(),
        origins: all("origin"),
        forwarded_proto: all("x-forwarded-proto"),
        upgrade: all("upgrade").into_iter().next(),
        users: all(&call.context.app.settings().auth.reverse_proxy.user_header),
        https: is_https,
    };
    let mut response = reply::json(StatusCode::OK, &seen);
    if call.query.one("cookie")? == Some("false") {
        return Ok(response);
    }
    if let Ok(cookie) = HeaderValue::from_str(&auth.sample_cookie(is_https)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
