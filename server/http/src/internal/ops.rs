//! State, bootstrap, widget, readiness, login facts, and the API description.

use crate::call::Call;
use crate::error::Refusal;
use crate::public::whole;
use crate::reply;
use crate::{openapi, spa};
use bytes::Bytes;
use poem::Response;
use poem::http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use svc_app::read_model::List;
use svc_domain::scope::Reach;
use svc_shared::internal::LoginStatus;
use svc_shared::paths::UI_PREFS;
use svc_shared::status::BridgeStatus;

/// A few numbers for a widget elsewhere. Bridges only.
#[derive(Debug, Serialize)]
struct Widget {
    projects_total: usize,
    bridges: BTreeMap<String, u32>,
    running_total: u32,
    version: &'static str,
}

pub(crate) async fn bootstrap(call: Call) -> Result<Response, Refusal> {
    let build = spa::build().await;
    let mut bootstrap = call.context.app.status().bootstrap(&build);
    if let Some(identity) = &call.caller.identity {
        bootstrap.auth.method = identity.channel.method().to_owned();
    }
    let reach = call.caller.identity.map_or(Reach::Full, |identity| identity.reach);
    if reach.covers("GET", UI_PREFS) {
        // A page without its preferences is better than none.
        bootstrap.ui_prefs = call.context.app.preferences().read().await.ok();
    }
    Ok(reply::json(StatusCode::OK, &bootstrap))
}

pub(crate) async fn state(call: Call) -> Result<Response, Refusal> {
    Ok(whole(&call.context, &call.request, List::State).await)
}

pub(crate) async fn widget(call: Call) -> Result<Response, Refusal> {
    let snapshot = call.context.app.read_model().snapshot();
    let running = snapshot.state.counts.get(BridgeStatus::Running.as_str()).copied();
    Ok(reply::json(
        StatusCode::OK,
        &Widget {
            projects_total: snapshot.state.projects.len(),
            bridges: snapshot.state.counts.clone(),
            running_total: running.unwrap_or(0),
            version: env!("CARGO_PKG_VERSION"),
        },
    ))
}

pub(crate) async fn login_status(call: Call) -> Result<Response, Refusal> {
    let health = call.context.app.status().health();
    Ok(reply::json(
        StatusCode::OK,
        &LoginStatus {
            claude_login_ok: health.claude_login_ok,
            claude_login_method: health.claude_login_method,
            claude_login_expires_at: health.claude_login_expires_at,
        },
    ))
}

/// Readiness; callers share one run, which ends when the last one leaves (H83).
pub(crate) async fn doctor(call: Call) -> Result<Response, Refusal> {
    let app = call.context.app.clone();
    let examine = || async move {
        let answer = app.doctor().report().await;
        let bytes = serde_json::to_vec(&*answer);
        bytes.map(Bytes::from).map_err(|error| Refusal::internal(&error.to_string()))
    };
    let body = call.context.flights.run("doctor".to_owned(), examine).await?;
    Ok(reply::json_bytes(StatusCode::OK, body))
}

pub(crate) async fn openapi(call: Call) -> Result<Response, Refusal> {
    let description = call
        .context
        .description
        .get_or_init(|| openapi::document(&call.context).to_string().into())
        .clone();
    Ok(reply::json_bytes(StatusCode::OK, description))
}
