//! What agents ask, the answers, and messages to Direct Sessions.

use crate::body::fields;
use crate::call::Call;
use crate::error::{Refusal, echo};
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_app::AppError;
use svc_shared::api::approvals::{Accepted, AnswerRequest, ApprovalList, MessageRequest};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    let approvals = call.context.app.approvals();
    let approvals = match call.query.one("state")? {
        None | Some("open") => approvals.open().await?,
        Some("answered") => approvals.answered().await?,
        Some(other) => {
            return Err(Refusal::invalid(format!(
                "`state` is `{}`; use open or answered",
                echo(other)
            )));
        }
    };
    Ok(reply::json(StatusCode::OK, &ApprovalList { approvals }))
}

pub(crate) async fn one(call: Call) -> Result<Response, Refusal> {
    let app = &call.context.app;
    let id = match call.query.one("instance")? {
        Some(reference) => Some(app.instances().get(reference).await?.instance_id),
        None => None,
    };
    let detail = app.approvals().detail(id.as_ref(), call.param()).await?;
    Ok(reply::json(StatusCode::OK, &detail))
}

/// The Direct Session of the path.
async fn session(call: &Call) -> Result<InstanceId, Refusal> {
    let app = &call.context.app;
    if let Some(id) = app.bridges().direct_session(call.param()).await? {
        return Ok(id);
    }
    // What is unknown is said to be; a bridge takes neither answers nor messages.
    let instance = app.instances().get(call.param()).await?;
    Err(AppError::new(
        ErrorCode::UnknownInstance,
        svc_app::Class::NotFound,
        format!("{} is no Direct Session", instance.instance_id.short()),
    )
    .into())
}

pub(crate) async fn answer(mut call: Call) -> Result<Response, Refusal> {
    let (answer, _): (AnswerRequest, _) = fields::read(call.body.take())?;
    let app = &call.context.app;
    let id = match app.bridges().direct_session(call.param()).await? {
        Some(id) => id,
        None => app.instances().get(call.param()).await?.instance_id,
    };
    let request = call.params.get(1).cloned().unwrap_or_default();
    app.approvals().answer(Some(&id), &request, &answer).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &Accepted { ok: true }))
}

pub(crate) async fn answer_any(mut call: Call) -> Result<Response, Refusal> {
    let (answer, _): (AnswerRequest, _) = fields::read(call.body.take())?;
    call.context.app.approvals().answer(None, call.param(), &answer).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &Accepted { ok: true }))
}

pub(crate) async fn message(mut call: Call) -> Result<Response, Refusal> {
    let (message, _): (MessageRequest, _) = fields::read(call.body.take())?;
    let id = session(&call).await?;
    call.context.app.hosted().message(&id, &message.text).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &Accepted { ok: true }))
}

pub(crate) async fn hosted(call: Call) -> Result<Response, Refusal> {
    let sessions = call.context.app.hosted().all().await?;
    Ok(reply::json(StatusCode::OK, &sessions))
}
