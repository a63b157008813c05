//! Keepers of Interactive Sessions, and the end of one that belongs to nobody.

use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_app::{AppError, Class};
use svc_shared::error::ErrorCode;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.keepers().list().await?))
}

pub(crate) async fn kill(call: Call) -> Result<Response, Refusal> {
    let pid: i32 = call.param().parse().map_err(|_| {
        AppError::new(
            ErrorCode::InvalidValue,
            Class::Invalid,
            "the process id is not a number; list the keepers with GET /api/keepers",
        )
    })?;
    Ok(reply::json(StatusCode::OK, &call.context.app.keepers().kill(pid, false).await?))
}
