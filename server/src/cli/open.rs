//! `svc open`: the link of a running bridge.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::work::look;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Open {
    /// Instance id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// Open the link in a browser, too.
    #[arg(long)]
    pub(crate) launch: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the link and, if wanted, opens it.
pub(crate) fn open(call: &Call, options: &Open) -> Result<Exit, End> {
    let connect = look(call, async |app| Ok(app.instances().connect(&options.instance).await?))?;
    if options.json {
        call.output.json(&connect)?;
    } else {
        call.output.line(&connect.url)?;
    }
    if options.launch
        && let Err(error) = ::open::that_detached(&connect.url)
    {
        call.output.note(&format!("warning: no browser could be opened ({error})"));
    }
    Ok(Exit::Done)
}
