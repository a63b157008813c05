//! `svc reap-environments`: lists and removes environments without a bridge.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::output::Cell;
use crate::cli::work::{act, look};
use clap::Args;
use std::io::{BufRead as _, Read as _};
use svc_app::{AppError, Class};
use svc_shared::internal::environments::{Ghost, Ghosts, ReapRequest, Reaped};

/// What has to be typed before work is lost.
const CONFIRMATION: &str = "DELETE";

#[derive(Debug, Args)]
pub(crate) struct ReapEnvironments {
    /// Archive all that are listed; that can be undone.
    #[arg(long, conflicts_with = "force_delete")]
    pub(crate) archive: bool,
    /// Delete all that are listed, with the work that waits for them.
    #[arg(long)]
    pub(crate) force_delete: bool,
    /// Delete without asking.
    #[arg(long, requires = "force_delete")]
    pub(crate) yes: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists what is left over, or removes all of it.
pub(crate) fn reap_environments(call: &Call, options: &ReapEnvironments) -> Result<Exit, End> {
    let found = look(call, async |app| app.environments().ghosts().await.map_err(refused))?;
    let (action, confirm) = match (options.archive, options.force_delete) {
        (true, _) => ("archive", "archive"),
        (false, true) => ("delete", CONFIRMATION),
        (false, false) => return list(call, options, &found),
    };
    if found.ghosts.is_empty() {
        return list(call, options, &found);
    }
    if options.force_delete && !options.yes {
        ask(call, &found)?;
    }
    let request = ReapRequest {
        action: action.to_owned(),
        ids: found.ghosts.iter().map(|one| one.environment_ref.to_string()).collect(),
        confirm: confirm.to_owned(),
    };
    let done = act(call, async |app| app.environments().reap(request).await.map_err(refused))?;
    report(call, options, &done)
}

/// Ends with "refused" where nothing could be asked (`command-line` §2.5).
fn refused(error: AppError) -> End {
    let is_refusal = error.class == Class::Unavailable;
    match (is_refusal, End::from(error)) {
        (true, End::Failure(failure)) => End::Failure(Failure { exit: Exit::Refused, ..failure }),
        (_, end) => end,
    }
}

fn list(call: &Call, options: &ReapEnvironments, found: &Ghosts) -> Result<Exit, End> {
    if options.json {
        call.output.json(found)?;
        return Ok(Exit::Done);
    }
    if !found.ghosts.is_empty() {
        let rows: Vec<[Cell; 3]> = found.ghosts.iter().map(row).collect();
        call.output.table(["ENVIRONMENT", "NAME", "DIRECTORY"], &rows)?;
    }
    call.output.note(&format!(
        "{} of {} environments of the account are left over here",
        found.ghosts.len(),
        found.total
    ));
    if !found.ghosts.is_empty() {
        call.output.note("nothing was changed; --archive archives them");
    }
    Ok(Exit::Done)
}

fn row(ghost: &Ghost) -> [Cell; 3] {
    [
        ghost.environment_ref.as_str().into(),
        ghost.name.as_str().into(),
        ghost.directory.as_str().into(),
    ]
}

/// Lets a person say that work may be lost.
fn ask(call: &Call, found: &Ghosts) -> Result<(), End> {
    let count = found.ghosts.len();
    call.output.note(&format!(
        "{count} environments are deleted with the work that waits for them; type {CONFIRMATION} to \
         go on"
    ));
    let mut line = String::new();
    std::io::stdin().lock().take(1024).read_line(&mut line).map_err(End::of_machine)?;
    if line.trim() == CONFIRMATION {
        return Ok(());
    }
    Err(Failure::new(Exit::Refused, "aborted", "aborted; nothing was deleted").into())
}

fn report(call: &Call, options: &ReapEnvironments, done: &Reaped) -> Result<Exit, End> {
    let exit = if done.errors.is_empty() { Exit::Done } else { Exit::Failed };
    if options.json {
        call.output.json(done)?;
        return Ok(exit);
    }
    let verb = if options.archive { "archived" } else { "deleted" };
    for id in &done.reaped {
        call.output.line(&format!("{verb} {id}"))?;
    }
    for id in &done.skipped {
        call.output.note(&format!("{id} is not left over any more"));
    }
    for (id, why) in &done.errors {
        call.output.note(&format!("error: {id}: {why}"));
    }
    Ok(exit)
}
