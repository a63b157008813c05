//! The hook that gives new sessions a recap (`claude.resume_recap`).

use super::{AgentConfigEditor, ConfigTarget, FileWrite, changed_text, parsed, read_one};
use crate::AppError;
use crate::ops::audit::Surface;
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use svc_agent::environment::Variables;
use svc_agent::home::AgentHome;
use svc_agent::recap::said_before;
use svc_domain::agent_config::ConfigScope;
use svc_domain::recap;
use svc_process::own_program;

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

impl AgentConfigEditor {
    /// Writes the hook into the settings of the user, where it is not there yet.
    ///
    /// The key that asks for it allows this one entry, also while `config_write` is off.
    ///
    /// # Errors
    /// The settings are not ones that can be changed; they are as they were.
    pub(crate) async fn install_recap_hook(self: &Arc<Self>) -> Result<(), AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let target =
                ConfigTarget { scope: ConfigScope::User, project: None, home: this.agent.home()? };
            let file = target.settings();
            let before = read_one(&file).await?;
            let document = parsed(&file, before.as_ref())?;
            let wanted = recap::with_hook(document.value(), &command()?);
            let wanted = wanted.map_err(|odd| {
                AppError::invalid(format!("settings.json is left unchanged because {odd}"))
            })?;
            let Some(wanted) = wanted else { return Ok(()) };
            let write = FileWrite {
                surface: Surface::Hooks,
                keys: vec!["SessionStart".to_owned()],
                text: changed_text(&file, &document, &wanted)?,
                file,
                before,
                is_restore: false,
            };
            this.write_file(&target, write).await.map(|_| ())
        };
        self.tasks.complete(work).await
    }
}

/// This program as a shell calls it, with the hook's command.
fn command() -> Result<String, AppError> {
    let path = own_program::path().map_err(|error| AppError::internal(error.to_string()))?;
    let text = path.to_str().and_then(|path| shlex::try_quote(path).ok());
    let text = text.ok_or_else(|| {
        AppError::invalid("the path of this program is not UTF-8 text; install it elsewhere")
    })?;
    Ok(format!("{text} {}", recap::COMMAND))
}
