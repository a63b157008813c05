//! `svc restore-sessions`: resumes what a reboot of the machine ended.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::work::act;
use clap::Args;
use futures_util::StreamExt as _;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;
use svc_app::{App, MOST_AT_ONCE};
use svc_domain::prefix::{Named, Resolved, Wanted, resolve};
use svc_shared::api::instances::ResumeRequest;
use svc_shared::ids::InstanceId;
use svc_shared::internal::restore::RestoreCandidate;
use svc_shared::status::BridgeStatus;

/// How long the start of one session is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct RestoreSessions {
    /// Instance ids, unique beginnings of ids, or project names; without any: list.
    pub(crate) instances: Vec<String>,
    /// Restore all that are offered.
    #[arg(long, conflicts_with = "instances")]
    pub(crate) all: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What became of one session.
#[derive(Debug, Serialize)]
struct Restored {
    instance_id: InstanceId,
    project: String,
    restored: bool,
    detail: Option<String>,
}

/// `svc restore-sessions`.
pub(crate) fn restore_sessions(call: &Call, wanted: &RestoreSessions) -> Result<Exit, End> {
    if !wanted.all && wanted.instances.is_empty() {
        return list(call, wanted.json);
    }
    let outcomes = act(call, async |app| {
        let offered = app.restore().offer().await?.candidates;
        let chosen = chosen(offered, wanted)?;
        let at_once = usize::try_from(MOST_AT_ONCE).unwrap_or(1);
        let all = futures_util::stream::iter(chosen).map(|one| restore(app, one));
        Ok(all.buffered(at_once).collect::<Vec<Restored>>().await)
    })?;
    let failed = outcomes.iter().filter(|one| !one.restored).count();
    let summary = format!("{} of {} sessions restored", outcomes.len() - failed, outcomes.len());
    if !wanted.json {
        for one in &outcomes {
            let id = one.instance_id.short();
            let outcome = one.detail.as_deref().unwrap_or("restored");
            call.output.line(&format!("{id} ({}) {outcome}", one.project))?;
        }
        call.output.line(&summary)?;
    }
    if failed > 0 {
        let items = serde_json::to_value(&outcomes).map_err(End::of_machine)?;
        return Err(Failure::new(Exit::Failed, "not_restored", summary)
            .beside("items", items)
            .into());
    }
    if wanted.json {
        call.output.json(&serde_json::json!({ "items": outcomes }))?;
    }
    Ok(Exit::Done)
}

fn list(call: &Call, json: bool) -> Result<Exit, End> {
    let offered = act(call, async |app| Ok(app.restore().offer().await?.candidates))?;
    if json {
        call.output.json(&serde_json::json!({ "candidates": offered }))?;
        return Ok(Exit::Done);
    }
    if offered.is_empty() {
        call.output
            .note("There is nothing to restore. Sessions that a reboot ends are listed here.");
        return Ok(Exit::Done);
    }
    for one in &offered {
        let blocked = one.blocked.as_ref().map(|why| format!(", blocked: {why}"));
        let (id, blocked) = (one.instance_id.short(), blocked.unwrap_or_default());
        call.output.line(&format!("{id} ({}) restores: {}{blocked}", one.project, one.restores))?;
    }
    call.output.note("`svc restore-sessions --all` restores them, at most four at a time.");
    Ok(Exit::Done)
}

fn named(one: &RestoreCandidate) -> Named<'_> {
    let RestoreCandidate { instance_id, project, .. } = one;
    Named { id: instance_id.as_str(), process_id: None, project, is_live: true, began: 0 }
}

/// The candidates that were named, each once.
fn chosen(
    offered: Vec<RestoreCandidate>,
    wanted: &RestoreSessions,
) -> Result<Vec<RestoreCandidate>, End> {
    let mut ids = BTreeSet::new();
    for name in &wanted.instances {
        let all = offered.iter().map(named);
        match resolve(name, Wanted::Live, all, |_| false) {
            Resolved::Found(id) => ids.insert(id.to_owned()),
            Resolved::NotFound => {
                let line = format!("{name} is not offered; `svc restore-sessions` lists what is");
                return Err(Failure::new(Exit::Refused, "unknown_instance", line).into());
            }
            Resolved::Ambiguous(several) => {
                return Err(Failure::new(Exit::Refused, "ambiguous", several.to_string()).into());
            }
        };
    }
    let is_chosen = |one: &RestoreCandidate| wanted.all || ids.contains(one.instance_id.as_str());
    Ok(offered.into_iter().filter(is_chosen).collect())
}

async fn restore(app: &App, one: RestoreCandidate) -> Restored {
    let RestoreCandidate { instance_id, project, .. } = one;
    let request = ResumeRequest::default();
    let detail = match app.bridges().resume(instance_id.as_str(), request, PATIENCE).await {
        Err(error) => Some(error.message),
        Ok(result) if result.instance.status.is(&BridgeStatus::Running) => None,
        Ok(result) => Some(match (result.outcome.reason, result.instance.exit_reason) {
            (Some(reason), _) => reason,
            (None, Some(reason)) => format!("is {} ({reason})", result.instance.status),
            (None, None) => format!("is {}", result.instance.status),
        }),
    };
    Restored { instance_id, project, restored: detail.is_none(), detail }
}
