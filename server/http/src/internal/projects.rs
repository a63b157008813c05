//! Trust, adoption, preflight, sort data and the whole row of projects.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use bytes::Bytes;
use poem::Response;
use poem::http::StatusCode;
use serde::Serialize;
use svc_shared::internal::TrustAllRequest;

pub(crate) async fn trust(call: Call) -> Result<Response, Refusal> {
    let project = call.context.app.projects().trust(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &project))
}

pub(crate) async fn adopt(call: Call) -> Result<Response, Refusal> {
    let instance = call.context.app.bridges().adopt(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &instance))
}

pub(crate) async fn trust_all(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (TrustAllRequest, _) = fields::read(call.body.take())?;
    let projects = call.context.app.projects().trust_all(request).await?;
    Ok(reply::json(StatusCode::OK, &projects))
}

pub(crate) async fn preflight(call: Call) -> Result<Response, Refusal> {
    let with_facts = call.query.flag("facts")?;
    let (app, name) = (call.context.app.clone(), call.param().to_owned());
    let question = format!("preflight {with_facts} {name}");
    let answer = call.context.flights.run(question, || async move {
        encode(&app.readiness().preflight(&name, with_facts).await?)
    });
    Ok(reply::json_bytes(StatusCode::OK, answer.await?))
}

pub(crate) async fn preflight_all(call: Call) -> Result<Response, Refusal> {
    let app = call.context.app.clone();
    let answer = call
        .context
        .flights
        .run("preflight".into(), || async move { encode(&app.readiness().preflight_all().await?) });
    Ok(reply::json_bytes(StatusCode::OK, answer.await?))
}

pub(crate) async fn row(call: Call) -> Result<Response, Refusal> {
    let (app, name) = (call.context.app.clone(), call.param().to_owned());
    let question = format!("row {name}");
    let answer = call
        .context
        .flights
        .run(question, || async move { encode(&app.project_rows().get(&name).await?) });
    Ok(reply::json_bytes(StatusCode::OK, answer.await?))
}

pub(crate) async fn sort_data(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.history().sort_data().await?))
}

fn encode<T: Serialize>(value: &T) -> Result<Bytes, Refusal> {
    let bytes = serde_json::to_vec(value).map_err(|error| Refusal::internal(&error.to_string()))?;
    Ok(bytes.into())
}
