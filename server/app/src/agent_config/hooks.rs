//! The hooks of this program in the agent's settings, each asked for by a key.
//!
//! What the settings were before a hook came is kept, so that they are the same bytes again when it
//! goes. Where somebody else changed them meanwhile, the entry alone is taken out.

use super::{
    AgentConfigEditor, ConfigTarget, FileWrite, changed_text, hash_of, parsed, read_one, refused,
};
use crate::AppError;
use crate::ops::audit::{Change, Surface};
use crate::tasks::blocking;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_agent::scope_file::Found;
use svc_domain::agent_config::ConfigScope;
use svc_domain::agent_hook::Hook;
use svc_process::{files, own_program};

/// Most bytes of what is kept: the settings, escaped.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The settings as they were before a hook came.
#[derive(Debug, Serialize, Deserialize)]
struct Earlier {
    file: PathBuf,
    /// Hash of what was written with the hook.
    written: String,
    /// `None` where there was no file.
    text: Option<String>,
}

impl Earlier {
    fn path(state_dir: &Path, hook: Hook) -> PathBuf {
        state_dir.join(format!("settings_before_{}.json", hook.event))
    }

    /// What is kept, if it fits to this file. Blocks.
    fn read(path: &Path, file: &Path) -> Option<Self> {
        let read = files::read_plain(path, MOST_BYTES).ok()?;
        let earlier: Self = serde_json::from_slice(&read).ok()?;
        (earlier.file == file).then_some(earlier)
    }

    fn keep(&self, path: &Path) -> Result<(), AppError> {
        let text = serde_json::to_vec(self).map_err(AppError::internal)?;
        files::replace(path, &text).map_err(AppError::internal)
    }
}

impl AgentConfigEditor {
    /// Writes a hook into the settings of the user, where it is not there yet.
    ///
    /// The key that asks for it allows this one entry, also while `config_write` is off. The hook
    /// is called with the path as its argument.
    ///
    /// # Errors
    /// The settings are not ones that can be changed; they are as they were.
    pub(crate) async fn install_hook(
        self: &Arc<Self>,
        hook: Hook,
        argument: Option<PathBuf>,
    ) -> Result<(), AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let target = this.user_settings()?;
            let file = target.settings();
            let before = read_one(&file).await?;
            let document = parsed(&file, before.as_ref())?;
            let command = command(hook, argument.as_deref())?;
            let wanted = hook.with(document.value(), &command).map_err(|odd| {
                AppError::invalid(format!("settings.json is left unchanged because {odd}"))
            })?;
            let Some(wanted) = wanted else { return Ok(()) };
            let text = changed_text(&file, &document, &wanted)?;
            let kept = Earlier::path(&this.config.state_dir, hook);
            let (was, now) = (before.as_ref().map(|found| found.text.clone()), hash_of(&text));
            let path = file.path();
            blocking(move || keep(&kept, path, was, now)).await??;
            this.write_file(&target, write(hook, file, before, text)).await.map(|_| ())
        };
        self.tasks.complete(work).await
    }

    /// Takes a hook out of the settings of the user. `false` where there is none.
    ///
    /// # Errors
    /// The settings are not ones that can be changed; they are as they were.
    pub(crate) async fn remove_hook(self: &Arc<Self>, hook: Hook) -> Result<bool, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let target = this.user_settings()?;
            let file = target.settings();
            let Some(before) = read_one(&file).await? else { return Ok(false) };
            let document = parsed(&file, Some(&before))?;
            let Some(wanted) = hook.without(document.value()) else { return Ok(false) };
            let kept = Earlier::path(&this.config.state_dir, hook);
            let (of, path) = (file.path(), kept.clone());
            let earlier = blocking(move || Earlier::read(&path, &of)).await?;
            let earlier = earlier.filter(|earlier| earlier.written == hash_of(&before.text));
            match earlier.map(|earlier| earlier.text) {
                Some(None) => this.remove_settings(&target, hook, before).await?,
                Some(Some(text)) => {
                    let write = write(hook, file, Some(before), text);
                    this.write_file(&target, write).await.map(|_| ())?;
                }
                None => {
                    let text = changed_text(&file, &document, &wanted)?;
                    let write = write(hook, file, Some(before), text);
                    this.write_file(&target, write).await.map(|_| ())?;
                }
            }
            if let Err(error) = blocking(move || std::fs::remove_file(kept)).await? {
                tracing::debug!(%error, "earlier settings were not there to be removed");
            }
            Ok(true)
        };
        self.tasks.complete(work).await
    }

    fn user_settings(&self) -> Result<ConfigTarget, AppError> {
        Ok(ConfigTarget { scope: ConfigScope::User, project: None, home: self.agent.home()? })
    }

    /// Removes settings that were not there before the hook.
    async fn remove_settings(
        &self,
        target: &ConfigTarget,
        hook: Hook,
        before: Found,
    ) -> Result<(), AppError> {
        let file = target.settings();
        let change = Change {
            surface: Surface::Hooks,
            scope: target.audit_scope(),
            target: file.path().to_string_lossy().into_owned(),
            action: "delete",
            keys: vec![hook.event.into()],
        };
        let work = async move { blocking(move || file.remove(&before).map_err(refused)).await? };
        self.audit.record(change, work).await
    }
}

/// Keeps what the settings were before the hook came.
///
/// A renewed entry changes nothing of that.
fn keep(path: &Path, file: PathBuf, text: Option<String>, written: String) -> Result<(), AppError> {
    let renewed = Earlier::read(path, &file)
        .filter(|earlier| text.as_ref().is_some_and(|text| earlier.written == hash_of(text)));
    let text = match renewed {
        Some(earlier) => earlier.text,
        None => text,
    };
    Earlier { file, written, text }.keep(path)
}

fn write(
    hook: Hook,
    file: svc_agent::scope_file::ScopeFile,
    before: Option<Found>,
    text: String,
) -> FileWrite {
    FileWrite {
        surface: Surface::Hooks,
        keys: vec![hook.event.to_owned()],
        file,
        before,
        text,
        is_restore: false,
    }
}

/// This program as a shell calls it, with the hook's command and its argument.
fn command(hook: Hook, argument: Option<&Path>) -> Result<String, AppError> {
    let quoted = |path: &Path| {
        let text = path.to_str().and_then(|path| shlex::try_quote(path).ok());
        let odd = || AppError::invalid("a path of this program is not UTF-8 text");
        text.map(String::from).ok_or_else(odd)
    };
    let program = own_program::path().map_err(|error| AppError::internal(error.to_string()))?;
    let mut text = format!("{} {}", quoted(&program)?, hook.command);
    if let Some(argument) = argument {
        text.push(' ');
        text.push_str(&quoted(argument)?);
    }
    Ok(text)
}
