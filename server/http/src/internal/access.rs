//! Tokens, signed-in devices, and who can reach the service.

use crate::body::fields;
use crate::call::Call;
use crate::error::{Refusal, echo};
use crate::layers::guard::{unauthenticated, with_claim};
use crate::reply::{self, NeverCompress};
use poem::Response;
use poem::http::StatusCode;
use svc_domain::scope::Scope;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::internal::access::{
    IssueTokenRequest, IssuedToken, RevokedDevice, RevokedToken, RotateTokenRequest,
    SignedOutOthers,
};

/// What else can be done where no password is configured.
const WITHOUT_PASSWORD: &str = "use `svc api-token` on the machine";

/// Refuses who has not proved the password lately (`http-api` §5.6).
///
/// `instead` says what else can be done where no password is configured.
pub(crate) fn step_up(call: &Call, instead: &str) -> Result<(), Refusal> {
    let auth = call.context.app.auth();
    let identity = call.caller.identity.as_ref().ok_or_else(unauthenticated)?;
    if with_claim(&call.request, |claim| auth.is_elevated(identity, claim)) {
        return Ok(());
    }
    let words = match call.context.app.settings().auth.password_hash.is_some() {
        true => "prove the password again with POST /api/reauth, then repeat this".to_owned(),
        false => format!("this needs the password, and none is configured; {instead}"),
    };
    Err(Refusal::new(StatusCode::FORBIDDEN, ErrorCode::ReauthRequired, words))
}

/// A reply with a secret in it.
fn secret(status: StatusCode, issued: &IssuedToken) -> Response {
    let mut response = reply::json(status, issued);
    response.extensions_mut().insert(NeverCompress);
    response
}

pub(crate) async fn tokens(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.tokens().list().await?))
}

pub(crate) async fn issue(mut call: Call) -> Result<Response, Refusal> {
    step_up(&call, WITHOUT_PASSWORD)?;
    let (request, _): (IssueTokenRequest, _) = fields::read(call.body.take())?;
    let scopes = scopes(request.scopes.as_deref())?;
    let expires = request.expires_at.as_deref().map(time).transpose()?;
    let issued = call.context.app.tokens().issue(&request.label, &scopes, expires).await?;
    Ok(secret(StatusCode::CREATED, &issued))
}

fn scopes(words: Option<&[String]>) -> Result<Vec<Scope>, Refusal> {
    let Some(words) = words else { return Ok(Vec::new()) };
    if words.is_empty() {
        // An empty list would read as "nothing" and be stored as "everything".
        return Err(Refusal::invalid(
            "`scopes` is empty; name read, operate or approve, or leave it out for everything"
                .to_owned(),
        ));
    }
    let parse = |word: &String| {
        word.parse()
            .map_err(|error| Refusal::invalid(format!("`scopes`: `{}` is {error}", echo(word))))
    };
    words.iter().map(parse).collect()
}

fn time(text: &str) -> Result<Timestamp, Refusal> {
    text.parse().map_err(|_| {
        Refusal::invalid(format!(
            "`expires_at` is `{}`; give a time such as 2030-01-31T00:00:00Z",
            echo(text)
        ))
    })
}

pub(crate) async fn rotate(mut call: Call) -> Result<Response, Refusal> {
    step_up(&call, WITHOUT_PASSWORD)?;
    let (request, _): (RotateTokenRequest, _) = fields::read(call.body.take())?;
    let issued = call.context.app.tokens().rotate(&request.label).await?;
    Ok(secret(StatusCode::OK, &issued))
}

pub(crate) async fn revoke(call: Call) -> Result<Response, Refusal> {
    let Some(label) = call.query.one("label")? else {
        return Err(Refusal::invalid("`label` is missing; name the token".to_owned()));
    };
    let label = label.to_owned();
    call.context.app.tokens().revoke(&label).await?;
    Ok(reply::json(StatusCode::OK, &RevokedToken { label, revoked: true }))
}

pub(crate) async fn devices(call: Call) -> Result<Response, Refusal> {
    let listed = call.context.app.devices().list(call.caller.identity.as_ref()).await?;
    Ok(reply::json(StatusCode::OK, &listed))
}

pub(crate) async fn sign_out(call: Call) -> Result<Response, Refusal> {
    let id = call.param().to_owned();
    call.context.app.devices().sign_out(&id).await?;
    Ok(reply::json(StatusCode::OK, &RevokedDevice { id, revoked: true }))
}

pub(crate) async fn sign_out_others(call: Call) -> Result<Response, Refusal> {
    let asking = call.caller.identity.as_ref();
    let revoked = call.context.app.devices().sign_out_others(asking).await?;
    Ok(reply::json(StatusCode::OK, &SignedOutOthers { revoked }))
}

pub(crate) async fn report(call: Call) -> Result<Response, Refusal> {
    let report = call.context.app.access().report(call.caller.is_https).await?;
    Ok(reply::json(StatusCode::OK, &report))
}
