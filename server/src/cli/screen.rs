//! `svc screen`: what the terminal of an Interactive Session shows now.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::work::look;
use clap::Args;
use svc_shared::terminal::ScreenState;

#[derive(Debug, Args)]
pub(crate) struct Screen {
    /// Instance id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the rows of the screen, without blank ones at the end.
pub(crate) fn screen(call: &Call, options: &Screen) -> Result<Exit, End> {
    let frame = look(call, async |app| Ok(app.terminals().screen(&options.instance).await?))?;
    if options.json {
        call.output.json(&frame)?;
        return Ok(Exit::Done);
    }
    let is_live = frame.state.is(&ScreenState::Ready) || frame.state.is(&ScreenState::Running);
    if !is_live || frame.screen.is_none() {
        let why = frame.error.unwrap_or_else(|| format!("the terminal is {}", frame.state));
        call.output.note(&why);
    }
    let rows = frame.screen.map(|screen| screen.rows).unwrap_or_default();
    let last = rows.iter().rposition(|row| !row.trim_end().is_empty());
    for row in rows.iter().take(last.map_or(0, |last| last + 1)) {
        call.output.line(row.trim_end())?;
    }
    Ok(Exit::Done)
}
