//! `svc keepers`: lists the processes that hold terminals, and ends one of them.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::Cell;
use crate::cli::work::{end, look};
use clap::Args;
use svc_shared::internal::keepers::Keeper;

#[derive(Debug, Args)]
pub(crate) struct Keepers {
    /// Kill this orphaned keeper.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(2..))]
    pub(crate) kill: Option<i32>,
    /// With --kill: also a keeper whose project has a record.
    #[arg(long, requires = "kill")]
    pub(crate) force: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists them, or kills one.
pub(crate) fn keepers(call: &Call, options: &Keepers) -> Result<Exit, End> {
    if let Some(pid) = options.kill {
        let force = options.force;
        let killed = end(call, async |app| Ok(app.keepers().kill(pid, force).await?))?;
        if options.json {
            call.output.json(&killed)?;
        } else {
            call.output.line(&format!("keeper {pid} has ended"))?;
        }
        return Ok(Exit::Done);
    }
    let found = look(call, async |app| Ok(app.keepers().list().await?))?;
    if options.json {
        call.output.json(&found)?;
        return Ok(Exit::Done);
    }
    if !found.is_empty() {
        let rows: Vec<[Cell; 6]> = found.iter().map(row).collect();
        let head = ["KEEPER PID", "PROJECT", "BRIDGE PID", "SESSION", "STATE", "ORPHAN"];
        call.output.table(head, &rows)?;
    }
    if !found.iter().any(|keeper| keeper.orphan) {
        call.output.note("no orphaned keepers");
    }
    Ok(Exit::Done)
}

fn row(keeper: &Keeper) -> [Cell; 6] {
    let bridge = keeper.bridge_pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    let session = keeper.session_ref.as_ref().map_or("-", |session| session.as_str());
    let state = match (keeper.damaged, keeper.outdated) {
        (true, _) => "record damaged".to_owned(),
        (false, true) => format!("{} (older release)", keeper.state),
        (false, false) => keeper.state.clone(),
    };
    [
        keeper.keeper_pid.to_string().into(),
        keeper.project.as_str().into(),
        bridge.into(),
        session.into(),
        state.into(),
        if keeper.orphan { "yes" } else { "no" }.into(),
    ]
}
