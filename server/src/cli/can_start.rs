//! The hidden question to the program that is to follow: would you start?
//!
//! Configuration, state directory, lock and schema are judged by the program that will run, in the
//! environment that it will have. Nothing is changed. The question is [`svc_app::upgrade::CAN_START`]
//! with `--json -c FILE` behind it.

use crate::cli::call::{Call, block_on};
use crate::cli::config::unshown;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use std::ffi::OsString;
use svc_app::upgrade::start_check;

/// The configuration file in the arguments of the question.
pub(crate) fn config_of(arguments: &[OsString]) -> Option<OsString> {
    let at = arguments.iter().position(|argument| argument == "-c")?;
    arguments.get(at.checked_add(1)?).cloned()
}

/// Answers it: one JSON document, or why not.
pub(crate) fn run(call: &Call) -> Result<Exit, End> {
    let state_dir = unshown(call)?.config.state_dir.clone();
    let found = block_on(async { Ok(start_check(&state_dir).await) })?;
    let fit = found.map_err(|reason| Failure::new(Exit::Failed, "no_start", reason))?;
    call.output.json(&fit)?;
    Ok(Exit::Done)
}
