//! Skills of a scope, with their files.

use super::{SHARED, WriteRequest, missing, ok, read_target, text, wrong};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use serde_json::Value;
use std::collections::BTreeMap;
use svc_app::SkillWrite;
use svc_domain::agent_config::skills::MAIN;

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, SHARED)?;
    ok(&call.context.app.agent_config().skills(&target).await?)
}

pub(crate) async fn file(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, SHARED)?;
    let Some(name) = call.query.one("name")? else { return Err(missing("query", "name")) };
    let relative = call.query.one("relative")?.unwrap_or(MAIN);
    ok(&call.context.app.agent_config().skill_file(&target, name, relative).await?)
}

/// Files with their hashes; `hash` is short for that of the only file.
pub(crate) async fn save(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, SHARED)?;
    let name = request.required_text("name")?;
    let files = texts(&mut request, "files")?.ok_or_else(|| missing("body", "files"))?;
    let mut hashes = texts(&mut request, "hashes")?.unwrap_or_default();
    if let (Some(hash), Some(only), 1) = (&request.hash, files.keys().next(), files.len()) {
        hashes.entry(only.clone()).or_insert_with(|| hash.clone());
    }
    let typed = text(&mut request.members, "confirm_scripts")?;
    let is_reviewed = SkillWrite::is_phrase(typed.as_deref());
    let target = request.target(&call)?;
    let write = SkillWrite { name, files, hashes, is_reviewed };
    ok(&call.context.app.agent_config().save_skill(target, write).await?)
}

pub(crate) async fn delete(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, SHARED)?;
    let name = request.required_text("name")?;
    let target = request.target(&call)?;
    ok(&call.context.app.agent_config().delete_skill(target, name, request.hash).await?)
}

fn texts(
    request: &mut WriteRequest,
    name: &str,
) -> Result<Option<BTreeMap<String, String>>, Refusal> {
    let wrong = || wrong("body", name, "must be an object of strings", "dict_type");
    match request.members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) => {
            let pairs = members.into_iter().map(|(key, value)| match value {
                Value::String(text) => Ok((key, text)),
                _ => Err(wrong()),
            });
            pairs.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}
