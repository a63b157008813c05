//! Devices that are notified while the page is closed.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::{StatusCode, header};
use std::sync::Arc;
use svc_app::{Push, Subscriber};
use svc_shared::internal::push::{PushKey, RemovedPush, SubscribePush};

/// The use-cases; 404 while they are switched off.
fn push(call: &Call) -> Result<&Arc<Push>, Refusal> {
    let push = call.context.app.push();
    if push.is_enabled() { Ok(push) } else { Err(Refusal::not_found()) }
}

pub(crate) async fn key(call: Call) -> Result<Response, Refusal> {
    let public_key = push(&call)?.public_key().await?;
    Ok(reply::json(StatusCode::OK, &PushKey { public_key }))
}

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    let devices = push(&call)?.list(call.caller.identity.as_ref()).await?;
    Ok(reply::json(StatusCode::OK, &devices))
}

pub(crate) async fn subscribe(mut call: Call) -> Result<Response, Refusal> {
    let body = call.body.take();
    let push = push(&call)?;
    let (wanted, _): (SubscribePush, _) = fields::read(body)?;
    let header = |name| call.request.headers().get(name).and_then(|value| value.to_str().ok());
    let by = Subscriber {
        identity: call.caller.identity.as_ref(),
        user_agent: header(header::USER_AGENT),
        origin: header(header::ORIGIN),
    };
    let (device, is_new) = Box::pin(push.subscribe(&wanted, by)).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(reply::json(status, &device))
}

pub(crate) async fn remove(call: Call) -> Result<Response, Refusal> {
    let id = call.param().to_owned();
    push(&call)?.remove(&id).await?;
    Ok(reply::json(StatusCode::OK, &RemovedPush { id, removed: true }))
}

pub(crate) async fn test(call: Call) -> Result<Response, Refusal> {
    let tested = Box::pin(push(&call)?.test(call.param())).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &tested))
}
