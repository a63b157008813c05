//! The support bundle: what would be in it, and the archive.

use crate::call::Call;
use crate::error::Refusal;
use crate::reply::{self, NeverCompress};
use poem::Response;
use poem::http::{StatusCode, header};
use svc_app::SupportBundle;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &gathered(&call).await?.listing()))
}

/// A file for the browser to save.
pub(crate) async fn archive(call: Call) -> Result<Response, Refusal> {
    let bundle = gathered(&call).await?;
    let packed = bundle.archive()?;
    let name = format!("attachment; filename=\"{}\"", bundle.listing().name);
    let mut response = Response::builder()
        .status(StatusCode::OK)
        .header(header::CONTENT_TYPE, "application/gzip")
        .header(header::CONTENT_DISPOSITION, name)
        .body(packed);
    response.extensions_mut().insert(NeverCompress);
    Ok(response)
}

async fn gathered(call: &Call) -> Result<SupportBundle, Refusal> {
    let app = &call.context.app;
    let doctor = app.doctor().report().await;
    Ok(Box::pin(app.support().gather(&doctor)).await?)
}
