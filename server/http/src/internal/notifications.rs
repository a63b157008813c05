//! Notifications of the service: what became of them, and a test.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::notifications::TestNotification;

pub(crate) async fn report(call: Call) -> Result<Response, Refusal> {
    let notifications = call.context.app.notifications();
    let report = notifications.report(call.caller.identity.as_ref()).await?;
    Ok(reply::json(StatusCode::OK, &report))
}

pub(crate) async fn test(mut call: Call) -> Result<Response, Refusal> {
    let (wanted, _): (TestNotification, _) = fields::read(call.body.take())?;
    let tested = Box::pin(call.context.app.notifications().test(wanted.entry)).await?;
    Ok(reply::json(StatusCode::OK, &tested))
}
