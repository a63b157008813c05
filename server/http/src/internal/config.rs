//! The configuration for an editor (`http-api` §3.5).

use crate::body::fields;
use crate::call::Call;
use crate::error::{Refusal, echo};
use crate::internal::access::step_up;
use crate::reply;
use poem::Response;
use poem::http::StatusCode;
use svc_app::{ConfigEditor, ConfigList, is_named_in};
use svc_shared::error::ErrorCode;
use svc_shared::internal::settings::{SaveConfig, SavedConfig};

/// What else can be done where no password is configured.
const WITHOUT_PASSWORD: &str = "change these keys in the file";

pub(crate) async fn basic(call: Call) -> Result<Response, Refusal> {
    let report = call.context.app.config_editor().report(ConfigList::Basic).await?;
    Ok(reply::json(StatusCode::OK, &report))
}

pub(crate) async fn save_basic(call: Call) -> Result<Response, Refusal> {
    if !call.context.app.config_editor().can_save() {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            ErrorCode::CapabilityDisabled,
            "settings cannot be changed here while `config_write.enabled` is off; set it in the \
             file, or use `svc config set` on the machine",
        ));
    }
    save(call, ConfigList::Basic).await
}

pub(crate) async fn advanced(call: Call) -> Result<Response, Refusal> {
    open(&call)?;
    let report = call.context.app.config_editor().report(ConfigList::Advanced).await?;
    Ok(reply::json(StatusCode::OK, &report))
}

pub(crate) async fn save_advanced(call: Call) -> Result<Response, Refusal> {
    open(&call)?;
    save(call, ConfigList::Advanced).await
}

/// The second list is not there while nobody may change it.
fn open(call: &Call) -> Result<(), Refusal> {
    if !call.context.app.config_editor().can_save() {
        return Err(Refusal::not_found());
    }
    step_up(call, WITHOUT_PASSWORD)
}

async fn save(mut call: Call, list: ConfigList) -> Result<Response, Refusal> {
    let (request, _) = fields::read::<SaveConfig>(call.body.take())?;
    let outside = ConfigEditor::outside(list, request.edits.keys());
    if !outside.is_empty() {
        let keys: Vec<String> =
            outside.iter().take(20).map(|key| format!("`{}`", echo(key))).collect();
        return Err(Refusal::malformed(format!(
            "{} cannot be changed here; nothing was saved",
            keys.join(", ")
        )));
    }
    let editor = call.context.app.config_editor();
    let (written, applied) = editor.save(list, &request.edits, &request.hash).await?;
    let waits = written.changed.iter().any(|key| is_named_in(&applied.at_restart, key));
    let saved = SavedConfig {
        hash: written.hash,
        restart_required: waits,
        audited: true,
        changed: written.changed,
        overridden: written.overridden,
    };
    Ok(reply::json(StatusCode::OK, &saved))
}
