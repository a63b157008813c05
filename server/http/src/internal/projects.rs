//! Trust and preflight of projects.

use crate::body::fields;
use crate::error::Refusal;
use crate::reply;
use crate::routes::Call;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::TrustAllRequest;

pub(crate) async fn trust(call: Call) -> Result<Response, Refusal> {
    let project = call.context.app.trust(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &project))
}

pub(crate) async fn trust_all(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (TrustAllRequest, _) = fields::read(call.body.take())?;
    let projects = call.context.app.trust_all(request).await?;
    Ok(reply::json(StatusCode::OK, &projects))
}

pub(crate) async fn preflight(call: Call) -> Result<Response, Refusal> {
    let with_facts = call.query.flag("facts")?;
    let preflight = call.context.app.preflight(call.param(), with_facts).await?;
    Ok(reply::json(StatusCode::OK, &preflight))
}

pub(crate) async fn preflight_all(call: Call) -> Result<Response, Refusal> {
    let all = call.context.app.preflight_all().await?;
    Ok(reply::json(StatusCode::OK, &all))
}
