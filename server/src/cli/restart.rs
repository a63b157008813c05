//! `svc restart`: the running service, in place and with its listening socket.

use crate::cli::call::{Call, block_on};
use crate::cli::config::unshown;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use clap::Args;
use serde::Serialize;
use svc_app::restart::{NotRestarted, restart};

#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    restarted: bool,
    pid: i64,
    url: &'a str,
}

/// Asks the service, and waits until the new one listens.
pub(crate) fn run(call: &Call, options: &Restart) -> Result<Exit, End> {
    let state_dir = unshown(call)?.config.state_dir.clone();
    let done = block_on(async { Ok(restart(state_dir).await) })?.map_err(|error| {
        let (exit, code) = match error {
            NotRestarted::NotRunning => (Exit::Refused, "not_running"),
            NotRestarted::Refused(_) => (Exit::Failed, "invalid_value"),
            NotRestarted::Silent(_) | NotRestarted::Away { .. } => (Exit::Failed, "not_restarted"),
        };
        Failure::new(exit, code, error.to_string())
    })?;
    let (pid, url) = (done.pid, done.url.as_str());
    if options.json {
        call.output.json(&Shown { restarted: true, pid, url })?;
    } else {
        call.output.line(&format!("restarted: process {pid} serves {url}"))?;
    }
    Ok(Exit::Done)
}
