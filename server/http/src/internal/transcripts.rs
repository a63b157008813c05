//! Conversations and what they used (`http-api` §3.2, N7).

use crate::call::Call;
use crate::error::{Refusal, echo};
use crate::reply;
use bytes::Bytes;
use poem::Response;
use poem::http::StatusCode;
use serde::Serialize;
use svc_app::PageQuery;
use svc_shared::Timestamp;

/// Turns of a page when the caller says nothing.
const TURNS: u64 = 50;
/// Most turns of a page.
const MOST_TURNS: u64 = 500;
/// Longest text that is searched for, bytes.
const LONGEST_SEARCH: usize = 1_000;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    let (app, name) = (call.context.app.clone(), call.param().to_owned());
    let question = format!("transcripts {name}");
    let answer = call
        .context
        .flights
        .run(question, || async move { encode(&app.transcripts().list(&name).await?) });
    Ok(reply::json_bytes(StatusCode::OK, answer.await?))
}

pub(crate) async fn page(call: Call) -> Result<Response, Refusal> {
    let cursor = call.query.number("cursor", 0..=u64::MAX)?.unwrap_or(0);
    let limit = call.query.number("limit", 1..=MOST_TURNS)?.unwrap_or(TURNS);
    let is_ascending = match call.query.one("order")? {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(other) => {
            return Err(Refusal::invalid(format!(
                "`order` is `{}`; use `asc` for the oldest first or `desc`",
                echo(other)
            )));
        }
    };
    let find = call.query.one("q")?.filter(|find| !find.is_empty()).map(str::to_owned);
    if find.as_ref().is_some_and(|find| find.len() > LONGEST_SEARCH) {
        return Err(Refusal::invalid(format!(
            "`q` is longer than {LONGEST_SEARCH} bytes; search for a shorter text"
        )));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let query = PageQuery { cursor, limit, is_ascending, find };
    let (app, name) = (call.context.app.clone(), call.param().to_owned());
    let conversation = call.second_param().to_owned();
    let question = format!("transcript {name}/{conversation} {query:?}");
    let answer = call.context.flights.run(question, || async move {
        encode(&app.transcripts().page(&name, &conversation, query).await?)
    });
    Ok(reply::json_bytes(StatusCode::OK, answer.await?))
}

pub(crate) async fn tail(call: Call) -> Result<Response, Refusal> {
    let offset = call.query.number("offset", 0..=u64::MAX)?.unwrap_or(0);
    let transcripts = call.context.app.transcripts();
    let tail = transcripts.tail(call.param(), call.second_param(), offset).await?;
    Ok(reply::json(StatusCode::OK, &tail))
}

pub(crate) async fn usage(call: Call) -> Result<Response, Refusal> {
    let since = match call.query.one("since")? {
        None => None,
        Some(raw) => Some(raw.parse::<Timestamp>().map_err(|_| {
            Refusal::invalid(format!(
                "`since` is `{}`, which is no time; write one such as 2026-03-01T00:00:00Z",
                echo(raw)
            ))
        })?),
    };
    let app = call.context.app.clone();
    let question = format!("usage {since:?}");
    let answer = call
        .context
        .flights
        .run(question, || async move { encode(&app.transcripts().usage(since).await?) });
    Ok(reply::json_bytes(StatusCode::OK, answer.await?))
}

pub(crate) async fn usage_of(call: Call) -> Result<Response, Refusal> {
    let (app, name) = (call.context.app.clone(), call.param().to_owned());
    let question = format!("usage of {name}");
    let answer = call
        .context
        .flights
        .run(question, || async move { encode(&app.transcripts().usage_of(&name).await?) });
    Ok(reply::json_bytes(StatusCode::OK, answer.await?))
}

fn encode<T: Serialize>(value: &T) -> Result<Bytes, Refusal> {
    let bytes = serde_json::to_vec(value).map_err(|error| Refusal::internal(&error.to_string()))?;
    Ok(bytes.into())
}
