//! Sessions of every kind, as the tools tell of them.
//!
//! No transcript, log, prompt or raw identifier: only what names a session and how it stands.

use serde_json::{Map, Value, json};
use svc_domain::log_escape::escape;
use svc_shared::Timestamp;
use svc_shared::api::instances::Instance;
use svc_shared::api::jobs::BackgroundJob;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::status::Channel;

/// A bridge or a Direct Session.
pub(crate) fn of_instance(instance: &Instance) -> Value {
    let is_hosted = instance.channel.is(&Channel::Hosted);
    let mut summary = json!({
        "id": instance.instance_id,
        "kind": if is_hosted { "hosted" } else { "bridge" },
        "channel": instance.channel,
        "project": instance.project,
        "label": instance.label,
        "status": instance.status,
        "resume_mode": instance.resume_mode,
        "started_at": instance.started_at,
        "session_ref": instance.session_ref,
    });
    let own = match is_hosted {
        true => json!({ "is_orphan": instance.is_orphan, "pid": instance.agent_pid }),
        false => {
            json!({ "bridge_pid": instance.bridge_pid, "keeper_pid": instance.keeper_pid })
        }
    };
    extend(&mut summary, own);
    summary
}

/// A background job.
pub(crate) fn of_job(job: &BackgroundJob) -> Value {
    json!({
        "id": job.id,
        "kind": "background-agent",
        "channel": "background",
        "project": job.project,
        "label": job.name,
        "state": job.state,
        "started_at": job.created_at,
        "session_ref": job.session_ref,
        "tempo": job.tempo,
        "worker_pid": job.worker_pid,
        "worker_alive": job.worker_alive,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
    })
}

/// A working session; `owner` is the bridge that it belongs to.
pub(crate) fn of_session(session: &WorkingSession, owner: Option<&Instance>) -> Value {
    let is_owned = session.parent_instance.is_some();
    let is_background = session.attribution == "untracked";
    let id = match &session.session_ref {
        Some(reference) => reference.to_string(),
        None => format!("pid-{}", session.pid),
    };
    json!({
        "id": id,
        "kind": if is_owned { "bridge-session" } else { "external-session" },
        "channel": if is_background { "background" } else { "remote-control" },
        "project": owner.map(|owner| &owner.project),
        "label": null,
        "state": session.state,
        "started_at": Timestamp::from_millis(session.started_at),
        "session_ref": session.session_ref,
        "pid": session.pid,
        "cwd": session.cwd,
        "session_kind": session.kind,
        "attribution": session.attribution,
        "parent_instance": session.parent_instance,
    })
}

/// The same document with nothing invisible in any text of it (H137).
pub(crate) fn escaped(document: Value) -> Value {
    match document {
        Value::String(text) => Value::String(escape(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(escaped).collect(),
        Value::Object(members) => {
            let members: Map<String, Value> =
                members.into_iter().map(|(name, value)| (name, escaped(value))).collect();
            Value::Object(members)
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

fn extend(document: &mut Value, more: Value) {
    if let (Value::Object(members), Value::Object(more)) = (document, more) {
        members.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h137_nothing_invisible_is_left_in_a_result() {
        let raw = json!({ "label": "a\u{1b}[2J\u{202e}b\n", "ids": ["\u{85}"], "n": 1 });
        let text = escaped(raw).to_string();
        let clean: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(clean["label"], "a\\x1b[2J\\u202eb\\x0a");
        assert_eq!(clean["ids"], json!(["\\x85"]));
    }
}
