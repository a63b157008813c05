//! What the hook prints that gives new sessions a recap (`claude.resume_recap`).

use serde::Deserialize;
use std::ffi::OsStr;
use std::path::PathBuf;
use svc_agent::environment::Variables;
use svc_agent::home::AgentHome;
use svc_agent::recap::said_before;
use svc_domain::recap;

/// What the agent tells a hook on standard input (agent 2.1.197).
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    session_id: String,
    cwd: PathBuf,
    #[serde(default)]
    source: String,
}

/// What the hook prints for a session that starts, in this environment. Blocks.
///
/// `None` where there is nothing to tell, or what the agent told is not understood.
#[must_use]
pub fn recap_for(told: &[u8], env: &Variables) -> Option<String> {
    let told: Told = serde_json::from_slice(told).ok()?;
    if !recap::is_for(&told.source) {
        return None;
    }
    let home = AgentHome::of_child(env).ok()?;
    let directory = told.cwd.canonicalize().ok()?;
    let most = env.get(OsStr::new(recap::MOST_CHARS));
    let most = most.and_then(|value| value.to_str()?.parse().ok());
    let most = most.unwrap_or(recap::USUAL).max(recap::FEWEST);
    let said = said_before(&home, &directory, &told.session_id);
    Some(recap::output(&recap::recap(&said, most)?).to_string())
}
