//! What changed where a session or a project works.

use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use crate::target::Query;
use poem::Response;
use poem::http::StatusCode;
use svc_app::{Checkout, FilePart};

/// Most unchanged lines around a change.
const MOST_CONTEXT: u64 = 50;
/// Unchanged lines around a change when the caller says nothing.
const CONTEXT: u64 = 3;
/// Most that `from` can be; no file that is read has more lines.
const MOST_FROM: u64 = 16 * 1024 * 1024;

pub(crate) async fn of_instance(call: Call) -> Result<Response, Refusal> {
    list(&call, Checkout::Instance(call.param().to_owned())).await
}

pub(crate) async fn of_project(call: Call) -> Result<Response, Refusal> {
    let checkout = project(&call)?;
    list(&call, checkout).await
}

pub(crate) async fn file_of_instance(call: Call) -> Result<Response, Refusal> {
    file(&call, Checkout::Instance(call.param().to_owned())).await
}

pub(crate) async fn file_of_project(call: Call) -> Result<Response, Refusal> {
    let checkout = project(&call)?;
    file(&call, checkout).await
}

fn project(call: &Call) -> Result<Checkout, Refusal> {
    let worktree = call.query.one("worktree")?.map(str::to_owned);
    Ok(Checkout::Project { name: call.param().to_owned(), worktree })
}

async fn list(call: &Call, checkout: Checkout) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, &call.context.app.changes().list(&checkout).await?))
}

async fn file(call: &Call, checkout: Checkout) -> Result<Response, Refusal> {
    let part = part(&call.query)?;
    Ok(reply::json(StatusCode::OK, &call.context.app.changes().file(&checkout, &part).await?))
}

fn part(query: &Query) -> Result<FilePart, Refusal> {
    let path = query.one("path")?.map(str::to_owned);
    let path = path.ok_or_else(|| {
        Refusal::invalid("`path` is missing; give a path of the list of changed files")
    })?;
    let context = query.number("context", 0..=MOST_CONTEXT)?.unwrap_or(CONTEXT);
    let from = query.number("from", 0..=MOST_FROM)?.unwrap_or_default();
    Ok(FilePart {
        path,
        context: u8::try_from(context).unwrap_or(u8::MAX),
        from: usize::try_from(from).unwrap_or(usize::MAX),
    })
}
