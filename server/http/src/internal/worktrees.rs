//! The git worktrees of a project.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::changes::RemoveWorktree;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.worktrees().list(call.param()).await?))
}

pub(crate) async fn remove(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (RemoveWorktree, _) = fields::read(call.body.take())?;
    let name = call.params.get(1).map_or("", String::as_str);
    let removed = call.context.app.worktrees().remove(call.param(), name, request).await?;
    Ok(reply::json(StatusCode::OK, &removed))
}
