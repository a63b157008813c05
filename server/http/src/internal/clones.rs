//! Creating and cloning projects (`http-api` §3.2).

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::clones::{CloneRequest, CreateProject};

pub(crate) async fn create(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (CreateProject, _) = fields::read(call.body.take())?;
    Ok(reply::json(StatusCode::CREATED, &call.context.app.clones().create(request).await?))
}

pub(crate) async fn begin(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (CloneRequest, _) = fields::read(call.body.take())?;
    Ok(reply::json(StatusCode::ACCEPTED, &call.context.app.clones().begin_clone(request).await?))
}

pub(crate) async fn active(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.clones().active()))
}

pub(crate) async fn cancel(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::ACCEPTED, &call.context.app.clones().cancel(call.param())?))
}
