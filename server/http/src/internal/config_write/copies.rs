//! Copies of what a surface contained: listed, shown and put back.

use super::{ALL, WriteRequest, missing, ok, read_target, text};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use svc_app::CopiesOf;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    let of = named(&call)?;
    ok(&call.context.app.agent_config().copies(&target, &of).await?)
}

pub(crate) async fn content(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    let of = named(&call)?;
    let Some(copy) = call.query.one("copy")? else { return Err(missing("query", "copy")) };
    ok(&call.context.app.agent_config().copy(&target, &of, copy).await?)
}

pub(crate) async fn restore(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, ALL)?;
    let surface = request.required_text("surface")?;
    let name = text(&mut request.members, "name")?;
    let relative = text(&mut request.members, "relative")?;
    let of = CopiesOf::named(&surface, name.as_deref(), relative.as_deref())?;
    let copy = request.required_text("copy")?;
    let target = request.target(&call)?;
    let editor = call.context.app.agent_config();
    ok(&editor.restore_copy(target, of, copy, request.hash).await?)
}

fn named(call: &Call) -> Result<CopiesOf, Refusal> {
    let Some(surface) = call.query.one("surface")? else {
        return Err(missing("query", "surface"));
    };
    Ok(CopiesOf::named(surface, call.query.one("name")?, call.query.one("relative")?)?)
}
