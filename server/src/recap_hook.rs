//! The hidden command that the agent runs when a session starts.
//!
//! It prints a recap of the newest other conversation of the directory, where the service asked for
//! one in the environment of the agent. Whatever goes wrong, it prints nothing and succeeds: a
//! session must never fail for it.

use serde::Deserialize;
use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use svc_agent::environment::Variables;
use svc_agent::home::AgentHome;
use svc_agent::recap::said_before;
use svc_domain::recap;

/// The agent waits five seconds.
const PATIENCE: Duration = Duration::from_secs(4);

/// Most bytes of what the agent tells the hook.
const MOST_BYTES: u64 = 1024 * 1024;

/// What the agent tells a hook on standard input (agent 2.1.197).
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    session_id: String,
    cwd: PathBuf,
    #[serde(default)]
    source: String,
}

/// Prints the recap, or nothing.
#[must_use]
pub fn run() -> ExitCode {
    let env: Variables = std::env::vars_os().collect();
    if env.get(OsStr::new(recap::SWITCH)).is_some_and(|value| value == "1") {
        let (tell, told) = mpsc::channel();
        // A pipe that nobody closes must not hold the session up.
        thread::spawn(move || tell.send(answer(&env)));
        if let Ok(Some(text)) = told.recv_timeout(PATIENCE) {
            // An agent that is gone needs no recap.
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
    }
    ExitCode::SUCCESS
}

fn answer(env: &Variables) -> Option<String> {
    let mut text = Vec::new();
    std::io::stdin().take(MOST_BYTES).read_to_end(&mut text).ok()?;
    let told: Told = serde_json::from_slice(&text).ok()?;
    if !recap::is_for(&told.source) {
        return None;
    }
    let home = AgentHome::of_child(env).ok()?;
    let directory = told.cwd.canonicalize().ok()?;
    let most =
        env.get(OsStr::new(recap::MOST_CHARS)).and_then(|value| value.to_str()?.parse().ok());
    let most = most.unwrap_or(recap::USUAL).max(recap::FEWEST);
    let said = said_before(&home, &directory, &told.session_id);
    Some(recap::output(&recap::recap(&said, most)?).to_string())
}
