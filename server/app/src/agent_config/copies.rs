//! Undo: the kept copies of what a surface contained, and putting one of them back.
//!
//! Several surfaces are parts of one settings file. Putting one back leaves the others as they are.

use super::parts::{changed_keys, instructions, shown, surface_of};
use super::skills::{check_own, file_of as skill_file};
use super::subagents::{check_restored, check_subagent, file_of as subagent_file};
use super::{
    AgentConfigEditor, ConfigTarget, FileWrite, bad, changed_text, check_hash, differing,
    hash_of_found, parsed, read_one, servers,
};
use crate::ops::audit::Surface;
use crate::tasks::blocking;
use crate::{AppError, Class};
use serde_json::Value;
use std::sync::Arc;
use svc_agent::json_document::JsonDocument;
use svc_agent::scope_file::{Found, ScopeFile};
use svc_domain::agent_config::ConfigScope;
use svc_domain::agent_config::parts::Part;
use svc_domain::agent_config::secrets::masked_text;
use svc_domain::agent_config::servers::shown as shown_servers;
use svc_domain::agent_config::skills::MAIN;
use svc_domain::log_escape::quoted;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_config::{ConfigCopies, ConfigCopy, ConfigPart, ConfigSaved};

/// A surface that copies are kept of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopiesOf {
    /// `CLAUDE.md`.
    Instructions,
    /// A part of the settings file.
    Part(Part),
    /// The servers of a project.
    Servers,
    /// A subagent, by its name.
    Subagent(String),
    /// A file of a skill: its name, and the path in it.
    Skill(String, String),
}

impl CopiesOf {
    /// The surface of these words.
    ///
    /// # Errors
    /// There is none, or it lacks its name.
    pub fn named(
        surface: &str,
        name: Option<&str>,
        relative: Option<&str>,
    ) -> Result<Self, AppError> {
        let part = |part: Part| Ok(Self::Part(part));
        match (surface, name) {
            ("claude-md", _) => Ok(Self::Instructions),
            ("settings", _) => part(Part::Settings),
            ("permissions", _) => part(Part::Permissions),
            ("hooks", _) => part(Part::Hooks),
            ("skills/overrides", _) => part(Part::SkillOverrides),
            ("mcp", _) => Ok(Self::Servers),
            ("subagents", Some(name)) => {
                check_subagent(name)?;
                Ok(Self::Subagent(name.to_owned()))
            }
            ("subagents", None) => {
                Err(AppError::invalid("`name` is missing; give that of the subagent"))
            }
            ("skills", Some(name)) => {
                Ok(Self::Skill(name.to_owned(), relative.unwrap_or(MAIN).to_owned()))
            }
            ("skills", None) => Err(AppError::invalid("`name` is missing; give that of the skill")),
            (odd, _) => Err(AppError::invalid(format!(
                "`surface` is {}; use claude-md, settings, permissions, hooks, mcp, \
                 skills/overrides, skills or subagents",
                quoted(odd)
            ))),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Instructions => "claude-md",
            Self::Part(Part::Settings) => "settings",
            Self::Part(Part::Permissions) => "permissions",
            Self::Part(Part::Hooks) => "hooks",
            Self::Part(Part::SkillOverrides) => "skills/overrides",
            Self::Servers => "mcp",
            Self::Subagent(_) => "subagents",
            Self::Skill(..) => "skills",
        }
    }

    fn audited(&self) -> Surface {
        match self {
            Self::Instructions => Surface::ClaudeMd,
            Self::Part(part) => surface_of(*part),
            Self::Servers => Surface::Mcp,
            Self::Subagent(_) => Surface::Subagents,
            Self::Skill(..) => Surface::Skills,
        }
    }

    fn file(&self, target: &ConfigTarget) -> Result<ScopeFile, AppError> {
        match self {
            Self::Instructions => Ok(instructions(target)),
            Self::Part(_) => Ok(target.settings()),
            Self::Servers if target.scope == ConfigScope::Project => Ok(servers::file_of(target)),
            Self::Servers => Err(AppError::invalid(
                "servers of this scope are in the agent's own state file, of which no copies are \
                 kept",
            )),
            Self::Subagent(_) if target.scope == ConfigScope::Local => {
                Err(AppError::invalid("there are no subagents in the scope `local`"))
            }
            Self::Subagent(name) => subagent_file(target, name),
            Self::Skill(..) if target.scope == ConfigScope::Local => {
                Err(AppError::invalid("there are no skills in the scope `local`"))
            }
            Self::Skill(name, relative) => skill_file(target, name, relative),
        }
    }

    /// What a reader sees of a text, under the name that it is written by.
    fn shown(&self, text: &str) -> Result<(&'static str, Value), AppError> {
        Ok(match self {
            Self::Instructions => ("content", Value::from(text)),
            Self::Subagent(_) | Self::Skill(..) => ("content", Value::from(masked_text(text))),
            Self::Part(part) => (part.member(), part.shown(document(text)?.value())),
            Self::Servers => ("servers", shown_servers(document(text)?.value().get(servers::KEY))),
        })
    }
}

impl AgentConfigEditor {
    /// The kept copies of a surface, newest first.
    ///
    /// # Errors
    /// There are none of this surface in the scope, or they cannot be read.
    pub async fn copies(
        &self,
        target: &ConfigTarget,
        of: &CopiesOf,
    ) -> Result<ConfigCopies, AppError> {
        let file = of.file(target)?;
        let found = read_one(&file).await?;
        let (backups, path) = (self.backups.clone(), file.path());
        let kept = blocking(move || backups.of(&path)).await?.map_err(unreadable)?;
        let copy =
            |kept: super::backups::Kept| ConfigCopy { id: kept.id, at: kept.at, bytes: kept.bytes };
        Ok(ConfigCopies {
            scope: target.scope.as_str().to_owned(),
            project: target.project_name(),
            surface: of.word().to_owned(),
            hash: hash_of_found(found.as_ref()),
            copies: kept.into_iter().map(copy).collect(),
        })
    }

    /// What a copy contains, without the secrets.
    ///
    /// The hash is that of the file as it is now.
    ///
    /// # Errors
    /// There is no such copy.
    pub async fn copy(
        &self,
        target: &ConfigTarget,
        of: &CopiesOf,
        id: &str,
    ) -> Result<ConfigPart, AppError> {
        let file = of.file(target)?;
        let found = read_one(&file).await?;
        let text = self.copy_text(&file, id).await?;
        let (member, value) = of.shown(&text)?;
        Ok(shown(target, found.as_ref(), member, value))
    }

    /// Puts a surface back as it is in a copy. What is there now becomes a copy itself.
    ///
    /// # Errors
    /// There is no such copy, the file changed since `hash` was read, or it cannot be written.
    pub async fn restore_copy(
        self: &Arc<Self>,
        target: ConfigTarget,
        of: CopiesOf,
        id: String,
        hash: Option<String>,
    ) -> Result<ConfigSaved, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let file = of.file(&target)?;
            let before = read_one(&file).await?;
            let was = this.copy_text(&file, &id).await?;
            check_hash(&file, before.as_ref(), hash.as_deref())?;
            match &of {
                CopiesOf::Subagent(name) => check_restored(&target, name, &was).await?,
                CopiesOf::Skill(name, _) => check_own(&target, name).await?,
                CopiesOf::Instructions | CopiesOf::Part(_) | CopiesOf::Servers => {}
            }
            // A large file takes its time, which others must not wait for.
            let write = blocking(move || put_back(&of, file, before, was)).await??;
            this.write_file(&target, write).await
        };
        self.tasks.complete(work).await
    }

    async fn copy_text(&self, file: &ScopeFile, id: &str) -> Result<String, AppError> {
        let (backups, path, id) = (self.backups.clone(), file.path(), id.to_owned());
        let text = blocking(move || backups.text(&path, &id)).await?.map_err(unreadable)?;
        text.ok_or_else(|| {
            let text = "there is no such copy; only the newest five of a file are kept";
            AppError::new(ErrorCode::NotFound, Class::NotFound, text)
        })
    }
}

/// What is written to put a copy back.
fn put_back(
    of: &CopiesOf,
    file: ScopeFile,
    before: Option<Found>,
    was: String,
) -> Result<FileWrite, AppError> {
    let (keys, text) = match of {
        CopiesOf::Instructions | CopiesOf::Subagent(_) => (Vec::new(), was),
        CopiesOf::Skill(_, relative) => (vec![relative.clone()], was),
        CopiesOf::Servers => {
            let now = parsed(&file, before.as_ref())?;
            let of = |document: &JsonDocument| {
                document.value().get(servers::KEY).cloned().unwrap_or_default()
            };
            (differing(&of(&now), &of(&document(&was)?)), was)
        }
        CopiesOf::Part(part) => {
            let now = parsed(&file, before.as_ref())?;
            let next = part.restored(document(&was)?.value(), now.value()).map_err(bad)?;
            (changed_keys(*part, now.value(), &next), changed_text(&file, &now, &next)?)
        }
    };
    let (surface, is_restore) = (of.audited(), true);
    Ok(FileWrite { file, surface, keys, before, text, is_restore })
}

fn document(text: &str) -> Result<JsonDocument, AppError> {
    JsonDocument::parse(text)
        .map_err(|problem| AppError::invalid(format!("this copy cannot be used: {problem}")))
}

fn unreadable(error: std::io::Error) -> AppError {
    AppError::busy("the copies cannot be read; check agent_config_backups in the state directory")
        .because(error)
}
