//! Subagents of a scope.

use super::{SHARED, WriteRequest, allowed, missing, ok, read_target};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use svc_app::AgentConfigEditor;
use svc_domain::agent_config::ConfigScope;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, SHARED)?;
    ok(&call.context.app.agent_config().subagents(&target).await?)
}

pub(crate) async fn read(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, SHARED)?;
    ok(&call.context.app.agent_config().subagent(&target, call.param()).await?)
}

pub(crate) async fn save(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, SHARED)?;
    let content = request.required_text("content")?;
    let target = request.target(&call)?;
    let (editor, name) = (call.context.app.agent_config(), call.param().to_owned());
    ok(&editor.save_subagent(target, name, content, request.hash).await?)
}

/// What is removed is named by the query: a DELETE has no body.
pub(crate) async fn delete(call: Call) -> Result<Response, Refusal> {
    let editor = call.context.app.agent_config();
    editor.check_open()?;
    let scope = allowed(editor.scope(call.query.one("scope")?)?, SHARED)?;
    let project = call.query.one("project")?;
    if scope != ConfigScope::User && project.is_none() {
        return Err(missing("query", "project"));
    }
    AgentConfigEditor::check_confirmed(scope, project, call.query.one("confirm")?)?;
    let hash = call.query.one("hash")?.map(str::to_owned);
    let target = editor.target(scope, project)?;
    ok(&editor.delete_subagent(target, call.param().to_owned(), hash).await?)
}
