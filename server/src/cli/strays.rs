//! `svc strays`: lists processes without a live bridge, and ends one of them.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::Cell;
use crate::cli::work::{end, look};
use clap::Args;
use svc_shared::internal::strays::Stray;

#[derive(Debug, Args)]
pub(crate) struct Strays {
    /// Kill this one.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(2..))]
    pub(crate) kill: Option<i32>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists them, or kills one.
pub(crate) fn strays(call: &Call, options: &Strays) -> Result<Exit, End> {
    if let Some(pid) = options.kill {
        let killed = end(call, async |app| Ok(app.strays().kill(pid).await?))?;
        if options.json {
            call.output.json(&killed)?;
        } else {
            call.output.line(&format!("process {pid} has ended"))?;
        }
        return Ok(Exit::Done);
    }
    let found = look(call, async |app| Ok(app.strays().list().await?))?;
    if options.json {
        call.output.json(&found)?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        call.output.note("No stray processes found.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 6]> = found.iter().map(row).collect();
    call.output.table(["PID", "KIND", "PROJECT", "PROGRAM", "MEMORY", "SINCE"], &rows)?;
    Ok(Exit::Done)
}

fn row(stray: &Stray) -> [Cell; 6] {
    let memory = format!("{} MiB", stray.rss_bytes >> 20);
    [
        stray.pid.to_string().into(),
        stray.kind.as_str().into(),
        stray.project.as_deref().unwrap_or("-").into(),
        stray.program.as_str().into(),
        memory.into(),
        stray.started_at.to_string().into(),
    ]
}
