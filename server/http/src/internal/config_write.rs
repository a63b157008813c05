//! The agent's own configuration in its scopes (`http-api` §§3.7, 3.8).
//!
//! The order of checks is the same everywhere: whether it is open, the scope, the confirmation, the
//! shape, the project, and then whatever the use-case refuses.

pub(crate) mod copies;
pub(crate) mod plugins;
pub(crate) mod skills;
pub(crate) mod subagents;

use crate::body::fields::{self, AnyMembers};
use crate::call::Call;
use crate::error::Refusal;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use svc_app::{AgentConfigEditor, ConfigTarget, ServerChange};
use svc_domain::agent_config::ConfigScope;
use svc_domain::agent_config::parts::Part;
use svc_shared::error::SchemaProblem;

/// The scopes of a settings file.
const ALL: &[ConfigScope] = &ConfigScope::ALL;
/// Where files have no local form.
const SHARED: &[ConfigScope] = &[ConfigScope::Project, ConfigScope::User];
/// Where only the project counts.
const PROJECT: &[ConfigScope] = &[ConfigScope::Project];

pub(crate) async fn status(call: Call) -> Result<Response, Refusal> {
    let editor = call.context.app.agent_config();
    editor.check_open()?;
    ok(&editor.status())
}

pub(crate) async fn overview(call: Call) -> Result<Response, Refusal> {
    let editor = call.context.app.agent_config();
    editor.scope(call.query.one("scope")?)?;
    ok(&editor.overview(call.query.one("project")?).await?)
}

pub(crate) async fn settings(call: Call) -> Result<Response, Refusal> {
    part(call, Part::Settings).await
}

pub(crate) async fn save_settings(call: Call) -> Result<Response, Refusal> {
    save_part(call, Part::Settings).await
}

pub(crate) async fn permissions(call: Call) -> Result<Response, Refusal> {
    part(call, Part::Permissions).await
}

pub(crate) async fn save_permissions(call: Call) -> Result<Response, Refusal> {
    save_part(call, Part::Permissions).await
}

pub(crate) async fn hooks(call: Call) -> Result<Response, Refusal> {
    part(call, Part::Hooks).await
}

pub(crate) async fn save_hooks(call: Call) -> Result<Response, Refusal> {
    save_part(call, Part::Hooks).await
}

pub(crate) async fn overrides(call: Call) -> Result<Response, Refusal> {
    part(call, Part::SkillOverrides).await
}

pub(crate) async fn save_overrides(call: Call) -> Result<Response, Refusal> {
    save_part(call, Part::SkillOverrides).await
}

pub(crate) async fn effective(call: Call) -> Result<Response, Refusal> {
    let editor = call.context.app.agent_config();
    editor.scope(None)?;
    let Some(project) = call.query.one("project")? else {
        return Err(missing("query", "project"));
    };
    ok(&editor.effective(project).await?)
}

pub(crate) async fn instructions(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    ok(&call.context.app.agent_config().instructions(&target).await?)
}

pub(crate) async fn save_instructions(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, ALL)?;
    let content = request.required_text("content")?;
    let target = request.target(&call)?;
    let editor = call.context.app.agent_config();
    ok(&editor.save_instructions(target, content, request.hash).await?)
}

pub(crate) async fn servers(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    ok(&call.context.app.agent_config().servers(&target).await?)
}

pub(crate) async fn save_servers(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, ALL)?;
    let sent = request.required("servers")?;
    let target = request.target(&call)?;
    ok(&call.context.app.agent_config().save_servers(target, sent, request.hash).await?)
}

pub(crate) async fn change_server(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, ALL)?;
    let op = ServerChange::named(&request.required_text("op")?)
        .ok_or_else(|| Refusal::invalid("`op` must be `add`, `edit` or `remove`"))?;
    let name = request.required_text("name")?;
    let entry = request.members.remove("entry").filter(|entry| !entry.is_null());
    if request.members.get("client_secret").is_some_and(|secret| !secret.is_null()) {
        return Err(Refusal::invalid(
            "`client_secret` is kept by the agent alone; use `claude mcp add-json \
             --client-secret` on the machine",
        ));
    }
    let target = request.target(&call)?;
    ok(&call.context.app.agent_config().change_server(target, op, name, entry).await?)
}

pub(crate) async fn approvals(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, PROJECT)?;
    ok(&call.context.app.agent_config().approvals(&target).await?)
}

pub(crate) async fn save_approvals(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, PROJECT)?;
    let enabled = request.required_texts("enabled")?;
    let disabled = request.required_texts("disabled")?;
    let target = request.target(&call)?;
    ok(&call.context.app.agent_config().save_approvals(target, enabled, disabled).await?)
}

pub(crate) async fn reset_approvals(mut call: Call) -> Result<Response, Refusal> {
    let request = WriteRequest::read(&mut call, PROJECT)?;
    let target = request.target(&call)?;
    let editor = call.context.app.agent_config();
    let approvals = editor.reset_approvals(target).await?;
    ok(&serde_json::json!({ "project": approvals.project, "ok": true }))
}

async fn part(call: Call, part: Part) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    ok(&call.context.app.agent_config().part(&target, part).await?)
}

async fn save_part(mut call: Call, part: Part) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, ALL)?;
    let sent = request.required(part.member())?;
    let target = request.target(&call)?;
    ok(&call.context.app.agent_config().save_part(target, part, sent, request.hash).await?)
}

fn ok<T: Serialize>(answer: &T) -> Result<Response, Refusal> {
    Ok(reply::json(StatusCode::OK, answer))
}

/// The files that a query names.
fn read_target(call: &Call, scopes: &[ConfigScope]) -> Result<ConfigTarget, Refusal> {
    let editor = call.context.app.agent_config();
    editor.check_open()?;
    let scope = allowed(editor.scope(call.query.one("scope")?)?, scopes)?;
    Ok(editor.target(scope, call.query.one("project")?)?)
}

fn allowed(scope: ConfigScope, scopes: &[ConfigScope]) -> Result<ConfigScope, Refusal> {
    if scopes.contains(&scope) {
        return Ok(scope);
    }
    let words: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let (word, words) = (scope.as_str(), words.join(" or "));
    Err(Refusal::invalid(format!("there is none of these in the scope `{word}`; use {words}")))
}

/// The body of a write, confirmed.
struct WriteRequest {
    scope: ConfigScope,
    project: Option<String>,
    hash: Option<String>,
    members: Map<String, Value>,
}

impl WriteRequest {
    fn read(call: &mut Call, scopes: &[ConfigScope]) -> Result<Self, Refusal> {
        let editor = call.context.app.agent_config();
        editor.check_open()?;
        let (AnyMembers(mut members), _) = fields::read(call.body.take())?;
        let scope = text(&mut members, "scope")?;
        let scope = allowed(editor.scope(scope.as_deref())?, scopes)?;
        let project = text(&mut members, "project")?;
        if scope != ConfigScope::User && project.is_none() {
            return Err(missing("body", "project"));
        }
        let confirm = text(&mut members, "confirm")?;
        AgentConfigEditor::check_confirmed(scope, project.as_deref(), confirm.as_deref())?;
        let hash = text(&mut members, "hash")?;
        Ok(Self { scope, project, hash, members })
    }

    fn target(&self, call: &Call) -> Result<ConfigTarget, Refusal> {
        let editor = call.context.app.agent_config();
        Ok(editor.target(self.scope, self.project.as_deref())?)
    }

    fn required(&mut self, name: &str) -> Result<Value, Refusal> {
        self.members.remove(name).ok_or_else(|| missing("body", name))
    }

    fn required_text(&mut self, name: &str) -> Result<String, Refusal> {
        text(&mut self.members, name)?.ok_or_else(|| missing("body", name))
    }

    fn required_texts(&mut self, name: &str) -> Result<Vec<String>, Refusal> {
        let wrong = || wrong("body", name, "must be a list of strings", "list_type");
        match self.required(name)? {
            Value::Array(items) => items
                .into_iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect(),
            _ => Err(wrong()),
        }
    }
}

fn text(members: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Refusal> {
    match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.contains('\0') => {
            Err(Refusal::invalid(format!("`{name}` holds a NUL character; remove it")))
        }
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong("body", name, "must be a string or null", "string_type")),
    }
}

fn missing(place: &str, name: &str) -> Refusal {
    wrong(place, name, "is required", "missing")
}

fn wrong(place: &str, name: &str, msg: &str, kind: &str) -> Refusal {
    Refusal::schema(vec![SchemaProblem {
        loc: vec![place.into(), name.into()],
        msg: msg.into(),
        kind: kind.into(),
    }])
}
