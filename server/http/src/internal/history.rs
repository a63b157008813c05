//! What happened to bridges (`http-api` §3.2).

use crate::call::Call;
use crate::error::{Refusal, echo};
use crate::reply;
use crate::target::Query;
use poem::Response;
use poem::http::StatusCode;
use svc_app::HistoryFilter;
use svc_shared::ids::InstanceId;

/// Events of a page when the caller says nothing.
const EVENTS: u64 = 100;
/// Most events of a page.
const MOST_EVENTS: u64 = 500;

pub(crate) async fn page(call: Call) -> Result<Response, Refusal> {
    let filter = filter(&call.query)?;
    Ok(reply::json(StatusCode::OK, &call.context.app.history().page(filter).await?))
}

fn filter(query: &Query) -> Result<HistoryFilter, Refusal> {
    // Row ids are positive and below 2^63 (https://www.sqlite.org/autoinc.html).
    let before = query.number("before", 0..=i64::MAX.unsigned_abs())?;
    let limit = query.number("limit", 1..=MOST_EVENTS)?.unwrap_or(EVENTS);
    let instance = query.one("instance")?;
    if let Some(raw) = instance
        && raw.parse::<InstanceId>().is_err()
    {
        return Err(Refusal::invalid(format!(
            "`instance` is `{}`, which is no full instance id; a forgotten bridge cannot be found \
             by name or by the beginning of its id",
            echo(raw)
        )));
    }
    Ok(HistoryFilter {
        before: before.and_then(|id| i64::try_from(id).ok()),
        project: query.one("project")?.map(str::to_owned),
        instance: instance.map(str::to_owned),
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
    })
}
