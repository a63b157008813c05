//! The hidden command that the agent runs when a session starts.
//!
//! It prints a recap of the newest other conversation of the directory, where the service asked for
//! one in the environment of the agent. Whatever goes wrong, it prints nothing and succeeds: a
//! session must never fail for it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use svc_domain::recap;

/// The agent waits five seconds.
const PATIENCE: Duration = Duration::from_secs(4);

/// Most bytes of what the agent tells the hook.
const MOST_BYTES: u64 = 1024 * 1024;

/// Prints the recap, or nothing.
#[must_use]
pub fn run() -> ExitCode {
    let env: BTreeMap<_, _> = std::env::vars_os().collect();
    if env.get(OsStr::new(recap::SWITCH)).is_some_and(|value| value == "1") {
        let (tell, told) = mpsc::channel();
        // A pipe that nobody closes must not hold the session up.
        thread::spawn(move || {
            let mut input = Vec::new();
            let read = std::io::stdin().take(MOST_BYTES).read_to_end(&mut input);
            tell.send(read.ok().and_then(|_| svc_app::recap_for(&input, &env)))
        });
        if let Ok(Some(text)) = told.recv_timeout(PATIENCE) {
            // An agent that is gone needs no recap.
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
    }
    ExitCode::SUCCESS
}
