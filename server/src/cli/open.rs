//! `svc open`: the link of a running bridge.

use crate::cli::Call;
use crate::cli::arguments::Open;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::work::look;

/// Prints the link and, if wanted, opens it.
pub(crate) fn open(call: &Call, options: &Open) -> Result<Exit, End> {
    let connect = look(call, async |app| Ok(app.connect(&options.instance).await?))?;
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
