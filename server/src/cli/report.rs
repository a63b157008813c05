//! `svc report`: why a session stopped.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::work::look;
use clap::Args;

/// Shown behind the options.
pub(crate) const HELP: &str = "\
Names the cause with what proves it, who asked for a stop, what was used last, the timeline and the
last output. Secrets are masked. The text is Markdown, to be pasted into a message.

Examples:
  svc report api
  svc report 3f2a > report.md
  svc report 3f2a --json";

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Instance id, project name, unique beginning of an id, or id of a background job.
    pub(crate) instance: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the report.
pub(crate) fn report(call: &Call, options: &Report) -> Result<Exit, End> {
    let report = look(call, async |app| Ok(app.reports().of(&options.instance).await?))?;
    if options.json {
        call.output.json(&report)?;
        return Ok(Exit::Done);
    }
    for line in report.markdown.trim_end().lines() {
        call.output.line(line)?;
    }
    Ok(Exit::Done)
}
