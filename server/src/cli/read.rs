//! Commands that only look: projects, bridges, working sessions.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::options::Listing;
use crate::cli::output::{Cell, Tone};
use crate::cli::work::look;
use serde_json::{Value, json};
use svc_shared::api::instances::Instance;
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::status::BridgeStatus;

/// `svc projects`.
pub(crate) fn projects(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let projects = look(call, async |app| Ok(app.projects().records().await?))?;
    if listing.json {
        call.output.json(&projects)?;
        return Ok(Exit::Done);
    }
    if projects.is_empty() {
        call.output.note("No projects found.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 5]> = projects.iter().map(project_row).collect();
    call.output.table(["PROJECT", "GIT", "TRUST", "BYPASS", "PATH"], &rows)?;
    Ok(Exit::Done)
}

fn project_row(project: &Project) -> [Cell; 5] {
    [
        project.name.as_str().into(),
        if project.is_git_repo { "git" } else { "-" }.into(),
        project.trust_state.to_string().into(),
        if project.allow_bypass_permissions { "yes" } else { "-" }.into(),
        project.path.as_str().into(),
    ]
}

/// `svc status`.
pub(crate) fn status(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let instances = look(call, async |app| Ok(app.instances().reconciled().await?))?;
    if listing.json {
        call.output.json(&instances)?;
        return Ok(Exit::Done);
    }
    if instances.is_empty() {
        call.output.note("No instances found.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 6]> = instances.iter().map(instance_row).collect();
    let header = ["INSTANCE", "PROJECT", "CHANNEL", "MODE", "STATUS", "LABEL"];
    call.output.table(header, &rows)?;
    Ok(Exit::Done)
}

fn instance_row(instance: &Instance) -> [Cell; 6] {
    [
        instance.instance_id.short().into(),
        instance.project.as_str().into(),
        instance.channel.to_string().into(),
        instance.resume_mode.to_string().into(),
        Cell::toned(&instance.status.to_string(), tone(instance)),
        instance.label.as_str().into(),
    ]
}

fn tone(instance: &Instance) -> Tone {
    match instance.status.known() {
        Some(BridgeStatus::Running) => Tone::Good,
        Some(BridgeStatus::Starting | BridgeStatus::Stopping) => Tone::Attention,
        Some(BridgeStatus::Crashed | BridgeStatus::Error) => Tone::Bad,
        Some(BridgeStatus::Stopped) | None => Tone::Plain,
    }
}

/// `svc sessions`.
pub(crate) fn sessions(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let sessions = look(call, async |app| Ok(app.sessions().listed().await?))?;
    if listing.json {
        let documents: Vec<Value> = sessions.iter().map(session_document).collect();
        call.output.json(&documents)?;
        return Ok(Exit::Done);
    }
    if sessions.is_empty() {
        call.output.note("No sessions found.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 5]> = sessions.iter().map(session_row).collect();
    call.output.table(["SESSION", "KIND", "STATE", "PID", "CWD"], &rows)?;
    for told in sessions.iter().filter_map(same_session) {
        call.output.note(&told);
    }
    Ok(Exit::Done)
}

/// That several processes work on one session; said of the first of them.
fn same_session(session: &WorkingSession) -> Option<String> {
    let is_first = session.also_in.iter().all(|other| *other > session.pid);
    (is_first && !session.also_in.is_empty()).then(|| {
        let others: Vec<String> = session.also_in.iter().map(ToString::to_string).collect();
        let others = others.join(", ");
        format!("process {} works on the same session as {others}; end one of them", session.pid)
    })
}

fn session_row(session: &WorkingSession) -> [Cell; 5] {
    let reference = session.session_ref.as_ref().map_or("-", |reference| reference.as_str());
    let state = if session.state.is_empty() { "-" } else { &session.state };
    [
        reference.into(),
        session.kind.as_str().into(),
        state.into(),
        session.pid.to_string().into(),
        session.cwd.as_str().into(),
    ]
}

/// The documented members only: names of sessions are for the page.
fn session_document(session: &WorkingSession) -> Value {
    json!({
        "session_ref": session.session_ref,
        "pid": session.pid,
        "cwd": session.cwd,
        "kind": session.kind,
        "state": session.state,
        "started_at": session.started_at,
        "parent_instance": session.parent_instance,
        "attribution": session.attribution,
        "also_in": session.also_in,
    })
}
