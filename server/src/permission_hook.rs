//! The hidden command that the agent runs before it asks for a permission.
//!
//! It asks the service and prints what a person decided there. Whatever goes wrong, it prints
//! nothing and succeeds: then the agent asks as it would without it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Most bytes of what the agent tells the hook.
const MOST_BYTES: u64 = 1024 * 1024;

/// Prints the decision, or nothing.
#[must_use]
pub fn run() -> ExitCode {
    let env: BTreeMap<_, _> = std::env::vars_os().collect();
    let socket = std::env::args_os().nth(2).map(PathBuf::from);
    let mut input = Vec::new();
    // What is longer is cut, which is no JSON any more: then the agent asks by itself.
    if std::io::stdin().take(MOST_BYTES).read_to_end(&mut input).is_ok() {
        svc_app::ask_service(&input, &env, socket, |text| {
            let mut output = std::io::stdout();
            output.write_all(text.as_bytes())?;
            output.flush()
        });
    }
    ExitCode::SUCCESS
}
