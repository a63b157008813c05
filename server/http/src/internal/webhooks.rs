//! Posts of events: what became of them, a test, and a replay.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::webhooks::{ReplayWebhooks, ReplayedWebhooks, TestWebhook, WebhookTests};

pub(crate) async fn report(call: Call) -> Result<Response, Refusal> {
    let report = call.context.app.webhooks().report().await?;
    Ok(reply::json(StatusCode::OK, &report))
}

pub(crate) async fn test(mut call: Call) -> Result<Response, Refusal> {
    let (wanted, _): (TestWebhook, _) = fields::read(call.body.take())?;
    let entry = wanted.entry.map(|entry| entry.to_string());
    let tested = Box::pin(call.context.app.webhooks().test(entry.as_deref())).await?;
    Ok(reply::json(StatusCode::OK, &WebhookTests { tested }))
}

pub(crate) async fn replay(mut call: Call) -> Result<Response, Refusal> {
    let (wanted, _): (ReplayWebhooks, _) = fields::read(call.body.take())?;
    let entry = wanted.entry.map(|entry| entry.to_string());
    let webhooks = call.context.app.webhooks();
    let replayed = Box::pin(webhooks.replay(entry.as_deref(), wanted.since.as_deref())).await?;
    Ok(reply::json(StatusCode::OK, &ReplayedWebhooks { replayed }))
}
