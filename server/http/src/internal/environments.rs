//! Remote environments that are left over (`http-api` §3.4).
//!
//! Not there while `reaper.ui_enabled` is off; the command always is.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::environments::ReapRequest;

/// Most environments in one request.
const MOST: usize = 1000;

pub(crate) async fn ghosts(call: Call) -> Result<Response, Refusal> {
    open(&call)?;
    let found = Box::pin(call.context.app.environments().ghosts()).await?;
    Ok(reply::json(StatusCode::OK, &found))
}

pub(crate) async fn reap(mut call: Call) -> Result<Response, Refusal> {
    open(&call)?;
    let (request, _): (ReapRequest, _) = fields::read(call.body.take())?;
    if request.ids.len() > MOST {
        return Err(Refusal::invalid(format!("`ids` names more than {MOST}; send them in parts")));
    }
    let done = Box::pin(call.context.app.environments().reap(request)).await?;
    Ok(reply::json(StatusCode::OK, &done))
}

fn open(call: &Call) -> Result<(), Refusal> {
    let is_on = call.context.app.settings().reaper.ui_enabled;
    is_on.then_some(()).ok_or_else(Refusal::not_found)
}
