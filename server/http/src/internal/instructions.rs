//! The instructions of a project for its agents.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::instructions::WriteInstructions;

pub(crate) async fn read(call: Call) -> Result<Response, Refusal> {
    let found = call.context.app.projects().instructions(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &found))
}

pub(crate) async fn write(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (WriteInstructions, _) = fields::read(call.body.take())?;
    let written = call.context.app.projects().write_instructions(call.param(), request).await?;
    Ok(reply::json(StatusCode::OK, &written))
}
