//! What somebody chose for the page.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_shared::internal::UiPrefs;

pub(crate) async fn read(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.preferences().read().await?))
}

pub(crate) async fn replace(call: Call) -> Result<Response, Refusal> {
    let (next, _) = fields::read::<UiPrefs>(call.body)?;
    Ok(reply::json(StatusCode::OK, &call.context.app.preferences().replace(next).await?))
}
