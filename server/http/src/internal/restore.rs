//! Restoring what a reboot of the machine ended.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::restore::{DismissRequest, RestoreRequest};

pub(crate) async fn offer(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.restore().offer().await?))
}

pub(crate) async fn begin(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (RestoreRequest, _) = fields::read(call.body.take())?;
    Ok(reply::json(StatusCode::ACCEPTED, &call.context.app.restore().begin(request).await?))
}

pub(crate) async fn cancel(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::ACCEPTED, &call.context.app.restore().cancel().await?))
}

pub(crate) async fn dismiss(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (DismissRequest, _) = fields::read(call.body.take())?;
    Ok(reply::json(StatusCode::OK, &call.context.app.restore().dismiss(request.ids).await?))
}
