//! The settings file in its parts, and `CLAUDE.md`.

use super::{
    AgentConfigEditor, ConfigTarget, FileWrite, bad, changed_text, check_hash, differing,
    hash_of_found, parsed, read_all, read_one,
};
use crate::AppError;
use crate::ops::audit::Surface;
use crate::tasks::blocking;
use serde_json::{Map, Value};
use std::sync::Arc;
use svc_agent::scope_file::{Found, ScopeFile};
use svc_domain::agent_config::ConfigScope;
use svc_domain::agent_config::parts::{Part, effective};
use svc_shared::internal::agent_config::{ConfigPart, ConfigSaved, EffectiveSettings};
use svc_shared::internal::instructions::MOST_BYTES;

impl AgentConfigEditor {
    /// One part of the settings file of a scope.
    ///
    /// # Errors
    /// The file is not one that can be edited here.
    pub async fn part(&self, target: &ConfigTarget, part: Part) -> Result<ConfigPart, AppError> {
        let file = target.settings();
        let found = read_one(&file).await?;
        let document = parsed(&file, found.as_ref())?;
        Ok(shown(target, found.as_ref(), part.member(), part.shown(document.value())))
    }

    /// Replaces one part of the settings file of a scope, and keeps the others.
    ///
    /// # Errors
    /// What was sent does not fit, the file changed since `hash` was read, or it cannot be written.
    pub async fn save_part(
        self: &Arc<Self>,
        target: ConfigTarget,
        part: Part,
        sent: Value,
        hash: Option<String>,
    ) -> Result<ConfigSaved, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let file = target.settings();
            let before = read_one(&file).await?;
            // A large file takes its time, which others must not wait for.
            let judge = move || -> Result<FileWrite, AppError> {
                let document = parsed(&file, before.as_ref())?;
                let wanted = part.wanted(&sent, document.value()).map_err(bad)?;
                check_hash(&file, before.as_ref(), hash.as_deref())?;
                Ok(FileWrite {
                    surface: surface_of(part),
                    keys: changed_keys(part, document.value(), &wanted),
                    text: changed_text(&file, &document, &wanted)?,
                    file,
                    before,
                    is_restore: false,
                })
            };
            let write = blocking(judge).await??;
            this.write_file(&target, write).await
        };
        self.tasks.complete(work).await
    }

    /// The settings that are in force in a project, without the secrets.
    ///
    /// # Errors
    /// There is no such project, or a file cannot be shown.
    pub async fn effective(&self, project: &str) -> Result<EffectiveSettings, AppError> {
        let mut scopes = vec![ConfigScope::Local, ConfigScope::Project];
        if self.config.config_write.allow_user_scope {
            scopes.push(ConfigScope::User);
        }
        let name = self.target(ConfigScope::Project, Some(project))?.project_name();
        let mut files = Vec::new();
        for scope in &scopes {
            files.push(self.target(*scope, Some(project))?.settings());
        }
        let found = read_all(files.clone()).await?;
        let mut layers = Vec::new();
        for ((scope, file), found) in scopes.iter().zip(&files).zip(&found) {
            layers.push((scope.as_str(), parsed(file, found.as_ref())?.value().clone()));
        }
        Ok(EffectiveSettings { project: name.unwrap_or_default(), effective: effective(&layers) })
    }

    /// The instructions of a scope.
    ///
    /// # Errors
    /// The file is not one that can be shown.
    pub async fn instructions(&self, target: &ConfigTarget) -> Result<ConfigPart, AppError> {
        let file = instructions(target);
        let found = read_one(&file).await?;
        let content = Value::from(found.as_ref().map_or("", |found| &found.text));
        Ok(shown(target, found.as_ref(), "content", content))
    }

    /// Replaces the instructions of a scope.
    ///
    /// # Errors
    /// The file changed since `hash` was read, or it cannot be written.
    pub async fn save_instructions(
        self: &Arc<Self>,
        target: ConfigTarget,
        content: String,
        hash: Option<String>,
    ) -> Result<ConfigSaved, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let file = instructions(&target);
            let before = read_one(&file).await?;
            check_hash(&file, before.as_ref(), hash.as_deref())?;
            let (surface, keys) = (Surface::ClaudeMd, Vec::new());
            let (text, is_restore) = (content, false);
            let write = FileWrite { file, surface, keys, before, text, is_restore };
            this.write_file(&target, write).await
        };
        self.tasks.complete(work).await
    }
}

pub(super) fn instructions(target: &ConfigTarget) -> ScopeFile {
    let of_project = match target.scope {
        ConfigScope::Local => "CLAUDE.local.md",
        ConfigScope::Project | ConfigScope::User => "CLAUDE.md",
    };
    target.file("CLAUDE.md", of_project, MOST_BYTES)
}

pub(super) fn shown(
    target: &ConfigTarget,
    found: Option<&Found>,
    member: &str,
    value: Value,
) -> ConfigPart {
    ConfigPart {
        scope: target.scope.as_str().to_owned(),
        project: target.project_name(),
        hash: Some(hash_of_found(found)),
        exists: found.is_some(),
        part: Map::from_iter([(member.to_owned(), value)]),
    }
}

pub(super) fn surface_of(part: Part) -> Surface {
    match part {
        Part::Settings => Surface::Settings,
        Part::Permissions => Surface::Permissions,
        Part::Hooks => Surface::Hooks,
        Part::SkillOverrides => Surface::SkillOverrides,
    }
}

/// Names of what differs in a part: keys, lists, events or skills.
pub(super) fn changed_keys(part: Part, before: &Value, after: &Value) -> Vec<String> {
    let of = |document: &Value| part.key().map(|key| document.get(key).cloned());
    match (of(before), of(after)) {
        (Some(before), Some(after)) => {
            differing(&before.unwrap_or_default(), &after.unwrap_or_default())
        }
        (_, _) => differing(before, after),
    }
}
