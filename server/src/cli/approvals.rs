//! What agents ask, the answers, and messages to them.
//!
//! `svc approvals` and `svc message`.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::options::Listing;
use crate::cli::work::{act, end, look};
use clap::{Args, Subcommand};
use std::io::Read as _;
use svc_app::App;
use svc_shared::api::approvals::{AnswerRequest, Approval, because};

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List what waits for an answer, the oldest first.
    List(Listing),
    /// Show one question, also an answered one.
    Show(NamedApproval),
    /// Let the agent do what it asks.
    Allow(Allow),
    /// Refuse what the agent asks.
    Deny(Deny),
}

#[derive(Debug, Args)]
pub(crate) struct NamedApproval {
    /// Id of the question, or a unique beginning of it.
    pub(crate) id: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Allow {
    #[command(flatten)]
    pub(crate) named: NamedApproval,
    /// Also allow what the agent offers for its session; `show` lists it.
    #[arg(long)]
    pub(crate) for_session: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    pub(crate) named: NamedApproval,
    /// What the agent is told beside the refusal.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Message {
    /// Instance id, process id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// What the agent should do; without it standard input is read.
    pub(crate) text: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc approvals`.
pub(crate) fn run(call: &Call, command: &Approvals) -> Result<Exit, End> {
    match command {
        Approvals::List(listing) => list(call, listing),
        Approvals::Show(named) => show(call, named),
        Approvals::Allow(allow) => {
            let request = AnswerRequest {
                decision: "allow".to_owned(),
                message: None,
                for_session: allow.for_session,
            };
            answer(call, &allow.named, &request)
        }
        Approvals::Deny(deny) => {
            let request = AnswerRequest {
                decision: "deny".to_owned(),
                message: deny.message.clone(),
                for_session: false,
            };
            answer(call, &deny.named, &request)
        }
    }
}

fn list(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let open = look(call, async |app| Ok(app.approvals().open().await?))?;
    if listing.json {
        call.output.json(&open)?;
        return Ok(Exit::Done);
    }
    if open.is_empty() {
        call.output.note("No request is waiting for an answer.");
    }
    for one in &open {
        call.output.line(&format!(
            "{}  {}  {}  {}",
            one.request_id,
            one.project,
            one.tool.as_deref().unwrap_or(&one.subtype),
            one.summary
        ))?;
    }
    Ok(Exit::Done)
}

fn show(call: &Call, named: &NamedApproval) -> Result<Exit, End> {
    let one = look(call, async |app| {
        let mut all = app.approvals().open().await?;
        all.extend(app.approvals().answered().await?);
        found(all, &named.id)
    })?;
    if named.json {
        call.output.json(&one)?;
        return Ok(Exit::Done);
    }
    let session = match &one.instance_id {
        Some(id) => id.as_str(),
        None => "a session of this machine that svc did not start",
    };
    call.output.line(&format!("{} of {} ({session})", one.request_id, one.project))?;
    let tool = one.tool.as_deref().unwrap_or(&one.subtype);
    let cut = if one.truncated { " (shortened)" } else { "" };
    call.output.line(&format!("{tool}: {}{cut}", one.summary))?;
    if !one.session_rules.is_empty() && one.decision.is_none() {
        let rules = one.session_rules.join(", ");
        call.output.line(&format!("for the session it offers to allow: {rules}"))?;
    }
    let state = match (&one.decision, one.answered_at) {
        (None, _) => {
            let until = one.expires_at.map(|at| format!(", until {at}")).unwrap_or_default();
            format!("waiting since {}{until}", one.since)
        }
        (Some(decision), at) => {
            let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
            let by = one.actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
            let scope = if one.for_session { " for the session" } else { "" };
            format!("{decision}{scope}{at}{by}")
        }
    };
    call.output.line(&state)?;
    if let Some(reason) = &one.reason {
        call.output.line(because(reason))?;
    }
    Ok(Exit::Done)
}

/// The question that an id or its beginning means.
fn found(all: Vec<Approval>, id: &str) -> Result<Approval, End> {
    let exact = all.iter().position(|one| one.request_id == id);
    let mut matches: Vec<Approval> = match exact {
        Some(at) => all.into_iter().skip(at).take(1).collect(),
        None => {
            all.into_iter().filter(|one| !id.is_empty() && one.request_id.starts_with(id)).collect()
        }
    };
    match (matches.pop(), matches.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => {
            let line = "several requests begin like that; use more characters of the id";
            Err(Failure::new(Exit::Refused, "ambiguous", line).into())
        }
        (None, _) => {
            let line = "no request has this id; `svc approvals list` shows those that wait";
            Err(Failure::new(Exit::Refused, "not_found", line).into())
        }
    }
}

async fn answered(app: &App, id: &str, request: &AnswerRequest) -> Result<Approval, End> {
    let one = found(app.approvals().open().await?, id)?;
    app.approvals().answer(one.instance_id.as_ref(), &one.request_id, request).await?;
    Ok(one)
}

fn answer(call: &Call, named: &NamedApproval, request: &AnswerRequest) -> Result<Exit, End> {
    let decision = request.decision.as_str();
    // A refusal has room on a full disk too.
    let one = match decision {
        "deny" => end(call, async |app| answered(app, &named.id, request).await)?,
        _ => act(call, async |app| answered(app, &named.id, request).await)?,
    };
    if named.json {
        call.output.json(&serde_json::json!({
            "id": one.request_id, "instance_id": one.instance_id, "decision": decision }))?;
    } else {
        call.output.line(&format!("{decision} {} of {}", one.request_id, one.project))?;
    }
    Ok(Exit::Done)
}

/// `svc message`.
pub(crate) fn message(call: &Call, message: &Message) -> Result<Exit, End> {
    let text = match &message.text {
        Some(text) => text.clone(),
        None => {
            let mut text = String::new();
            // One byte more than is accepted: what is longer is refused, not cut.
            std::io::stdin()
                .take(256 * 1024 + 1)
                .read_to_string(&mut text)
                .map_err(End::of_machine)?;
            text
        }
    };
    let id = act(call, async |app| {
        let Some(id) = app.bridges().direct_session(&message.instance).await? else {
            // Says what is unknown; a bridge takes its messages from the remote client.
            let line = format!("`{}` is not a Direct Session", message.instance);
            return Err(Failure::new(Exit::Refused, "unknown_instance", line).into());
        };
        app.hosted().message(&id, &text).await?;
        Ok(id)
    })?;
    if message.json {
        call.output.json(&serde_json::json!({ "id": id, "sent": true }))?;
    } else {
        call.output.line(&format!("sent to {}", id.short()))?;
    }
    Ok(Exit::Done)
}
