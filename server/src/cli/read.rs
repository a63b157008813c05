//! Commands that only look: projects, bridges, working sessions.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::options::Listing;
use crate::cli::output::{Cell, Tone};
use crate::cli::work::look;
use crate::compose;
use serde_json::{Value, json};
use svc_shared::Timestamp;
use svc_shared::api::activity::Activity;
use svc_shared::api::instances::Instance;
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::cause;
use svc_shared::status::{BridgeStatus, Channel, ResumeMode, TrustState};

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
    let mut sorted: Vec<&Project> = projects.iter().collect();
    sorted.sort_by_key(|project| project.trust_state.is(&TrustState::Trusted));
    let rows: Vec<[Cell; 5]> = sorted.into_iter().map(project_row).collect();
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
    let mut sorted: Vec<&Instance> = instances.iter().collect();
    sorted.sort_by_key(|one| (attention(one), std::cmp::Reverse(one.status_since)));
    let now = compose::now();
    let rows: Vec<[Cell; 7]> = sorted.into_iter().map(|one| instance_row(one, now)).collect();
    let header = ["INSTANCE", "PROJECT", "MODE", "STATUS", "SINCE", "CAUSE", "LABEL"];
    call.output.table(header, &rows)?;
    Ok(Exit::Done)
}

/// What needs a person comes first, as on the page.
fn attention(instance: &Instance) -> u8 {
    if instance.quarantined.is_some() || !instance.pending_permissions.is_empty() {
        return 0;
    }
    match instance.status.known() {
        Some(BridgeStatus::Crashed | BridgeStatus::Error) => 1,
        None => 2,
        Some(BridgeStatus::Starting) => 3,
        Some(BridgeStatus::Running) => 4,
        Some(BridgeStatus::Stopping) => 5,
        Some(BridgeStatus::Stopped) => 6,
    }
}

fn instance_row(instance: &Instance, now: Timestamp) -> [Cell; 7] {
    let mode = match instance.resume_mode.known() {
        _ if instance.channel.is(&Channel::Hosted) => "Direct Session".to_owned(),
        Some(ResumeMode::Standard) => "Server Mode".to_owned(),
        Some(ResumeMode::Pty) => "Interactive Session".to_owned(),
        None => instance.resume_mode.to_string(),
    };
    let label = if instance.label == instance.project { "-" } else { instance.label.as_str() };
    [
        instance.instance_id.short().into(),
        instance.project.as_str().into(),
        mode.into(),
        Cell::toned(&instance.status.to_string(), tone(instance)),
        age(now, instance.status_since).into(),
        why(instance, now).into(),
        label.into(),
    ]
}

/// How long ago, in the largest unit that fits.
fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.since(then).as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// What a person should know of a bridge that runs.
fn link_and_work(instance: &Instance, now: Timestamp) -> String {
    let mut known = Vec::new();
    if instance.link.is_down() {
        let since = instance.link.since.map_or("-".to_owned(), |since| age(now, since));
        let reason = instance.link.reason.as_deref().unwrap_or("no reason is known");
        known.push(format!("link lost {since} ago: {reason}"));
    }
    if let Some(asked) = instance.pending_permissions.first() {
        let tool = asked.tool.as_deref().unwrap_or(&asked.subtype);
        known.push(format!("waiting for permission: {tool} (svc approvals)"));
    } else if let Some(activity) = &instance.activity {
        known.extend(does(activity, now));
    }
    if let Some(limit) = &instance.limit {
        known.push(limit.sentence());
    }
    if instance.stranded > 0 {
        known.push(format!("{} stranded (svc stranded)", instance.stranded));
    }
    if known.is_empty() { "-".to_owned() } else { known.join("; ") }
}

/// What a session does, since when, and how that is known.
fn does(activity: &Activity, now: Timestamp) -> Option<String> {
    let mut words = activity.words()?;
    words.get_mut(..1)?.make_ascii_lowercase();
    let (since, known) = (age(now, activity.since), activity.provenance());
    Some(format!("{words} for {since} ({known})"))
}

/// Why it ended or is held, in the words of the page.
fn why(instance: &Instance, now: Timestamp) -> String {
    let cause = cause_of(instance, now);
    match instance.restart.sentence(now) {
        Some(restart) if !instance.is_live() => format!("{cause}; {restart}"),
        Some(_) | None => cause,
    }
}

fn cause_of(instance: &Instance, now: Timestamp) -> String {
    if let Some(held) = instance.quarantined.as_ref().filter(|held| !held.is_crash_loop()) {
        return format!("held: {}", held.code);
    }
    if instance.is_live() {
        return link_and_work(instance, now);
    }
    let reason = instance.exit_reason.as_ref().and_then(|reason| match reason.known() {
        Some(known) => cause::reason(*known).map(str::to_owned),
        None => Some(reason.to_string()),
    });
    reason
        .or_else(|| instance.exit_signal.map(cause::signal))
        .or_else(|| instance.exit_code.map(cause::exit_code))
        .unwrap_or_else(|| cause::NO_STATUS.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit() {
        let at = Timestamp::from_millis;
        for (seconds, words) in
            [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7_200, "2 h"), (200_000, "2 d")]
        {
            assert_eq!(age(at(seconds * 1_000), at(0)), words);
        }
        assert_eq!(age(at(0), at(5_000)), "0 s", "a clock that was set back");
    }
}
