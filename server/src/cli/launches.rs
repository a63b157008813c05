//! `svc launches`: launches that wait for the reset of a plan limit.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::Cell;
use crate::cli::work::{end, look};
use clap::{Args, Subcommand};
use svc_shared::api::planned_launches::PlannedLaunch;
use svc_shared::status::PlannedState;

/// Shown behind the options.
pub(crate) const HELP: &str = "\
`svc start --wait-for-limit` and `svc jobs start --wait-for-limit` record a launch that the
service starts once, one to three minutes after the reset of the plan limit that is known.
If the service does not run then, the launch starts when the service does. If the agent has
stopped at a limit again meanwhile, the launch waits for that reset.

Examples:
  svc launches
  svc launches --json
  svc launches cancel 3f2a";

#[derive(Debug, Args)]
pub(crate) struct Launches {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    /// Print one JSON document.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Take back a launch that waits, or take one that failed off the list.
    Cancel {
        /// Id of the launch, or its unique beginning.
        id: String,
    },
}

/// Lists them, or takes one back.
pub(crate) fn launches(call: &Call, options: &Launches) -> Result<Exit, End> {
    if let Some(Action::Cancel { id }) = &options.action {
        let cancelled = end(call, async |app| Ok(app.launch_plans().cancel(id).await?))?;
        if options.json {
            call.output.json(&cancelled)?;
        } else {
            let (id, project) = (cancelled.id.short(), &cancelled.project);
            let line = if cancelled.state.is(&PlannedState::Failed) {
                format!("removed {id} ({project}) from the list")
            } else {
                format!("cancelled {id} ({project}); nothing starts")
            };
            call.output.line(&line)?;
        }
        return Ok(Exit::Done);
    }
    let found = look(call, async |app| Ok(app.launch_plans().list().await?))?;
    if options.json {
        call.output.json(&found)?;
        return Ok(Exit::Done);
    }
    if let Some(limit) = &found.limit {
        call.output.note(&limit.sentence());
    }
    if found.launches.is_empty() {
        call.output.note("No launch waits for the reset of a plan limit.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 5]> = found.launches.iter().map(row).collect();
    call.output.table(["LAUNCH", "PROJECT", "MODE", "STARTS", "STATE"], &rows)?;
    Ok(Exit::Done)
}

fn row(one: &PlannedLaunch) -> [Cell; 5] {
    let became = one.reason.as_deref().or(one.started_as.as_deref());
    let state = match became {
        Some(became) => format!("{}: {became}", one.state),
        None => one.state.to_string(),
    };
    [
        one.id.short().into(),
        one.project.as_str().into(),
        one.mode.as_str().into(),
        one.due_at.to_string().into(),
        state.into(),
    ]
}

/// Says when a launch starts.
pub(crate) fn report(call: &Call, json: bool, planned: &PlannedLaunch) -> Result<Exit, End> {
    if json {
        call.output.json(planned)?;
        return Ok(Exit::Done);
    }
    let (id, project) = (planned.id.short(), &planned.project);
    call.output.line(&format!(
        "{project} starts at {}, after the reset of the plan limit, if the service runs then \
         (svc launches cancel {id})",
        planned.due_at
    ))?;
    Ok(Exit::Done)
}
