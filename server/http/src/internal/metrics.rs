//! What bridges use (`http-api` §3.2).

use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;

pub(crate) async fn all(call: Call) -> Result<Response, Refusal> {
    let with_history = call.query.flag("history")?;
    Ok(reply::json(StatusCode::OK, &call.context.app.metrics().of_instances(with_history)))
}

pub(crate) async fn of_project(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.metrics().of_project(call.param())?))
}
