//! Conversations whose bridge died.

use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.stranded().list().await?))
}

pub(crate) async fn go_on(call: Call) -> Result<Response, Refusal> {
    let continued = call.context.app.stranded().continue_as_job(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &continued))
}

pub(crate) async fn dismiss(call: Call) -> Result<Response, Refusal> {
    let dismissed = call.context.app.stranded().dismiss(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &dismissed))
}
