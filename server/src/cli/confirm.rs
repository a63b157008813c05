//! One question that a command asks before it goes on; no answer is a no.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use std::io::{BufRead as _, Read as _};

/// Longest answer that is read.
const LONGEST: u64 = 1024;

/// Asks, unless `yes` answers already.
///
/// # Errors
/// The answer is not a yes.
pub(crate) fn confirm(call: &Call, yes: bool, question: &str) -> Result<(), End> {
    if yes {
        return Ok(());
    }
    call.output.note(&format!("{question} [y/N]"));
    let mut line = Vec::new();
    let mut input = std::io::stdin().lock().take(LONGEST);
    input.read_until(b'\n', &mut line).map_err(End::of_machine)?;
    let said = String::from_utf8_lossy(&line);
    let said = said.trim();
    if said.eq_ignore_ascii_case("y") || said.eq_ignore_ascii_case("yes") {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, "aborted", "aborted; nothing was changed").into())
}
