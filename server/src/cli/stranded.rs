//! `svc stranded`: conversations whose bridge died, and how they go on.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::Cell;
use crate::cli::work::{act, look};
use clap::{Args, Subcommand};
use svc_shared::api::stranded::StrandedSession;
use svc_shared::status::StrandedState;

/// Shown behind the options.
pub(crate) const HELP: &str = "\
A conversation is stranded when the bridge that served it died and was not stopped on purpose.
What is typed into it reaches nobody. `continue` starts a background job with its transcript.

Examples:
  svc stranded
  svc stranded --all --json
  svc stranded continue 0123456789abcdef
  svc stranded dismiss 0123456789abcdef";

#[derive(Debug, Args)]
pub(crate) struct Stranded {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    /// List those that were continued or dismissed too.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON document.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Go on with a conversation as a background job that the remote client reaches.
    Continue {
        /// Token of the conversation, from the list.
        reference: String,
    },
    /// Take a conversation off the list; its transcript stays.
    Dismiss {
        /// Token of the conversation, from the list.
        reference: String,
    },
}

/// Lists them, or does something with one.
pub(crate) fn stranded(call: &Call, options: &Stranded) -> Result<Exit, End> {
    match &options.action {
        None => list(call, options),
        Some(Action::Continue { reference }) => {
            let continued =
                act(call, async |app| Ok(app.stranded().continue_as_job(reference).await?))?;
            if options.json {
                call.output.json(&continued)?;
            } else {
                let job = &continued.job_id;
                call.output.line(&format!("the conversation continues as background job {job}"))?;
            }
            Ok(Exit::Done)
        }
        Some(Action::Dismiss { reference }) => {
            let dismissed = act(call, async |app| Ok(app.stranded().dismiss(reference).await?))?;
            if options.json {
                call.output.json(&dismissed)?;
            } else {
                call.output.line("the conversation was removed from the list")?;
            }
            Ok(Exit::Done)
        }
    }
}

fn list(call: &Call, options: &Stranded) -> Result<Exit, End> {
    let mut found = look(call, async |app| Ok(app.stranded().list().await?))?;
    if !options.all {
        found.retain(|one| one.state.is(&StrandedState::Stranded));
    }
    if options.json {
        call.output.json(&found)?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        call.output.note("No stranded conversations found.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 6]> = found.iter().map(row).collect();
    call.output.table(["REF", "PROJECT", "INSTANCE", "STATE", "SINCE", "CONVERSATION"], &rows)?;
    Ok(Exit::Done)
}

fn row(one: &StrandedSession) -> [Cell; 6] {
    let state = match &one.continued_as {
        Some(job) => format!("{} as {job}", one.state),
        None => one.state.to_string(),
    };
    [
        one.session_ref.to_string().into(),
        one.project.as_str().into(),
        one.instance_id.short().into(),
        state.into(),
        one.found_at.to_string().into(),
        one.title.as_deref().unwrap_or("-").into(),
    ]
}
