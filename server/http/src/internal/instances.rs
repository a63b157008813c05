//! Log, link, picture of the link, rename and forget of one instance.

use crate::body::fields;
use crate::call::Call;
use crate::error::Refusal;
use crate::internal::qr;
use crate::reply::{self, NeverCompress};
use crate::target::Query;
use poem::Response;
use poem::http::{StatusCode, header};
use std::time::Duration;
use svc_app::LogQuery;
use svc_shared::api::instances::{PatchInstance, ReleaseRequest};
use svc_shared::internal::LogPage;

/// Bytes of a log page when the caller says nothing.
pub(crate) const TAIL: u64 = 64 * 1024;
/// Most bytes of a log page.
pub(crate) const LONGEST_TAIL: u64 = 1024 * 1024;

pub(crate) async fn log(call: Call) -> Result<Response, Refusal> {
    let query = log_query(&call.query)?;
    let page: LogPage = call.context.app.logs().page(call.param(), query).await?;
    Ok(reply::json(StatusCode::OK, &page))
}

/// Why a session or a background job stopped.
pub(crate) async fn report(call: Call) -> Result<Response, Refusal> {
    let report = call.context.app.reports().of(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &report))
}

fn log_query(query: &Query) -> Result<LogQuery, Refusal> {
    let cursor = query.one("cursor")?.map(str::to_owned);
    let before = query.one("before")?.map(str::to_owned);
    if cursor.is_some() && before.is_some() {
        return Err(Refusal::invalid(
            "`cursor` reads forwards and `before` backwards; give only one of them",
        ));
    }
    let tail = query.number("tail", 0..=LONGEST_TAIL)?.unwrap_or(TAIL);
    Ok(LogQuery { tail, cursor, before })
}

/// The link is a credential: never compressed, so that its length tells nothing.
pub(crate) async fn connect(call: Call) -> Result<Response, Refusal> {
    call.context.links.take()?;
    let connect = call.context.app.instances().connect(call.param()).await?;
    let mut response = reply::json(StatusCode::OK, &connect);
    response.extensions_mut().insert(NeverCompress);
    Ok(response)
}

/// The link as a QR code; it is a credential like the link itself.
pub(crate) async fn qr(call: Call) -> Result<Response, Refusal> {
    let connect = call.context.app.instances().connect(call.param()).await?;
    let picture = qr::svg(&connect.url)?;
    let mut response = Response::builder()
        .status(StatusCode::OK)
        .header(header::CONTENT_TYPE, "image/svg+xml")
        .body(picture);
    response.extensions_mut().insert(NeverCompress);
    Ok(response)
}

pub(crate) async fn forget(call: Call) -> Result<Response, Refusal> {
    let forgotten = call.context.app.bridges().forget(call.param()).await?;
    Ok(reply::json(StatusCode::OK, &forgotten))
}

pub(crate) async fn change(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (PatchInstance, _) = fields::read(call.body.take())?;
    let instance = call.context.app.bridges().change(call.param(), request).await?;
    Ok(reply::json(StatusCode::OK, &instance))
}

/// Restarts a bridge whose remote link is lost. The stream tells when it is ready.
pub(crate) async fn heal(call: Call) -> Result<Response, Refusal> {
    let result = call.context.app.bridges().heal(call.param(), Duration::ZERO).await?;
    Ok(reply::json(StatusCode::OK, &result))
}

/// Ends the pause after too many crashes.
/// Also starts the bridge if that is asked for.
pub(crate) async fn release(mut call: Call) -> Result<Response, Refusal> {
    let (request, _): (ReleaseRequest, _) = fields::read(call.body.take())?;
    let instance = call.context.app.bridges().release(call.param(), request).await?;
    Ok(reply::json(StatusCode::OK, &instance))
}
