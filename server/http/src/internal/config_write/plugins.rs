//! Plugins and marketplaces of a scope.

use super::{ALL, WriteRequest, missing, ok, read_target, text, wrong};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use serde_json::Value;
use svc_domain::agent_config::plugins::{MarketplaceOp, PluginOp, PluginRequest};

pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    ok(&call.context.app.agent_config().plugins(&target).await?)
}

pub(crate) async fn enabled(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    ok(&call.context.app.agent_config().plugins_enabled(&target).await?)
}

pub(crate) async fn details(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    ok(&call.context.app.agent_config().plugin(&target, call.param()).await?)
}

pub(crate) async fn change(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, ALL)?;
    let op = PluginOp::named(&request.required_text("op")?).ok_or_else(|| {
        Refusal::invalid("`op` must be `enable`, `disable`, `install`, `uninstall` or `update`")
    })?;
    let plugin = request.required_text("plugin")?;
    let confirmed = text(&mut request.members, "confirm_plugin")?;
    let keep_data = flag(&mut request, "keep_data")?;
    let prune = flag(&mut request, "prune")?;
    let target = request.target(&call)?;
    let request = PluginRequest { op, plugin, keep_data, prune };
    let editor = call.context.app.agent_config();
    ok(&editor.change_plugin(target, request, confirmed.as_deref()).await?)
}

pub(crate) async fn marketplaces(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    ok(&call.context.app.agent_config().marketplaces(&target).await?)
}

pub(crate) async fn declared(call: Call) -> Result<Response, Refusal> {
    let target = read_target(&call, ALL)?;
    ok(&call.context.app.agent_config().marketplaces_declared(&target).await?)
}

pub(crate) async fn change_marketplace(mut call: Call) -> Result<Response, Refusal> {
    let mut request = WriteRequest::read(&mut call, ALL)?;
    let op = request.required_text("op")?;
    let name = text(&mut request.members, "name")?;
    let source = text(&mut request.members, "source")?;
    let op = match op.as_str() {
        "add" => MarketplaceOp::Add(source.ok_or_else(|| missing("body", "source"))?),
        "remove" => MarketplaceOp::Remove(name.ok_or_else(|| missing("body", "name"))?),
        "update" => MarketplaceOp::Update(name),
        _ => return Err(Refusal::invalid("`op` must be `add`, `remove` or `update`")),
    };
    let target = request.target(&call)?;
    ok(&call.context.app.agent_config().change_marketplace(target, op).await?)
}

fn flag(request: &mut WriteRequest, name: &str) -> Result<bool, Refusal> {
    match request.members.remove(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(wrong("body", name, "must be true, false or null", "bool_type")),
    }
}
