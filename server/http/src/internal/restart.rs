//! Restarts the service in place.

use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::Restarting;

/// The answer is sent before connections end.
pub(crate) async fn begin(call: Call) -> Result<Response, Refusal> {
    call.context.app.service_restart().begin().await?;
    Ok(reply::json(StatusCode::ACCEPTED, &Restarting { restarting: true }))
}
