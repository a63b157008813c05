//! Signing the agent in (`http-api` §3.6).
//!
//! The routes are not there while `login_shepherd.enabled` is off.

use crate::body::fields;
use crate::call::Call;
use crate::error::{Refusal, echo};
use crate::internal::access::step_up;
use crate::internal::qr;
use crate::reply::{self, NeverCompress};
use poem::Response;
use poem::http::{StatusCode, header};
use serde::Serialize;
use svc_app::AgentSignIn;
use svc_shared::internal::agent_sign_in::{SignInCode, SignInMode, StartSignIn};

/// What else can be done where no password is configured.
const WITHOUT_PASSWORD: &str = "run `claude setup-token` on the machine";

pub(crate) async fn start(mut call: Call) -> Result<Response, Refusal> {
    open(&call, SignInMode::Login)?;
    let (request, _): (StartSignIn, _) = fields::read(call.body.take())?;
    let mode: SignInMode = request.mode.parse().map_err(|_| {
        Refusal::invalid(format!(
            "`mode` must be login or setup-token, and is `{}`",
            echo(&request.mode)
        ))
    })?;
    open(&call, mode)?;
    prove(&call, mode)?;
    Ok(secret(&flows(&call).start(mode).await?))
}

pub(crate) async fn code(mut call: Call) -> Result<Response, Refusal> {
    open(&call, SignInMode::Login)?;
    let (request, _): (SignInCode, _) = fields::read(call.body.take())?;
    prove_for_outcome(&call)?;
    Ok(secret(&flows(&call).code(&request.code).await?))
}

pub(crate) async fn status(call: Call) -> Result<Response, Refusal> {
    open(&call, SignInMode::Login)?;
    prove_for_outcome(&call)?;
    Ok(secret(&flows(&call).status()?))
}

pub(crate) async fn state(call: Call) -> Result<Response, Refusal> {
    open(&call, SignInMode::Login)?;
    Ok(secret(&flows(&call).state()))
}

pub(crate) async fn cancel(call: Call) -> Result<Response, Refusal> {
    open(&call, SignInMode::Login)?;
    Ok(reply::json(StatusCode::OK, &flows(&call).cancel()))
}

/// The address as a QR code.
pub(crate) async fn picture(call: Call) -> Result<Response, Refusal> {
    open(&call, SignInMode::Login)?;
    let url = flows(&call).state().authorize_url.ok_or_else(Refusal::not_found)?;
    let picture = qr::svg(&url)?;
    let mut response = Response::builder()
        .status(StatusCode::OK)
        .header(header::CONTENT_TYPE, "image/svg+xml")
        .body(picture);
    response.extensions_mut().insert(NeverCompress);
    Ok(response)
}

fn flows(call: &Call) -> &std::sync::Arc<AgentSignIn> {
    call.context.app.agent_sign_in()
}

fn open(call: &Call, mode: SignInMode) -> Result<(), Refusal> {
    flows(call).allows(mode).then_some(()).ok_or_else(Refusal::not_found)
}

/// A long-lived token is for who has proved the password, where there is one.
fn prove(call: &Call, mode: SignInMode) -> Result<(), Refusal> {
    let has_password = call.context.app.settings().auth.password_hash.is_some();
    match mode {
        SignInMode::SetupToken if has_password => step_up(call, WITHOUT_PASSWORD),
        SignInMode::SetupToken | SignInMode::Login => Ok(()),
    }
}

/// Whoever could hear of the token has to prove the same.
fn prove_for_outcome(call: &Call) -> Result<(), Refusal> {
    flows(call).mode().map_or(Ok(()), |mode| prove(call, mode))
}

/// An answer that may hold a secret.
fn secret<T: Serialize>(value: &T) -> Response {
    let mut response = reply::json(StatusCode::OK, value);
    response.extensions_mut().insert(NeverCompress);
    response
}
