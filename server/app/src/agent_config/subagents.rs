//! Subagents: one Markdown file each, with front matter.
//!
//! A link in the place of a file belongs to a plugin: it is named, and neither followed nor changed.

use super::{AgentConfigEditor, ConfigTarget, FileWrite, bad, check_hash, hash_of_found, read_one};
use crate::ops::audit::{Change, Surface};
use crate::projects::instructions::refused;
use crate::tasks::blocking;
use crate::{AppError, Class};
use serde_json::Value;
use std::sync::Arc;
use svc_agent::scope_file::{EntryKind, Found, ScopeFile, ScopeFileError};
use svc_config::front_matter;
use svc_domain::agent_config::ConfigScope;
use svc_domain::agent_config::names::is_subagent;
use svc_domain::agent_config::secrets::{masked, masked_text, unmasked_text};
use svc_domain::agent_config::subagents::{BUILT_IN, check, check_mode, description};
use svc_domain::log_escape::quoted;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_config::{
    ConfigDeleted, ConfigSaved, Subagent, SubagentItem, Subagents,
};

/// Largest file of a subagent, bytes.
const MOST_BYTES: usize = 64 * 1024;
/// Most subagents in a list.
const MOST_LISTED: usize = 500;

/// Who a subagent belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Scope(ConfigScope),
    BuiltIn,
    Plugin,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Scope(scope) => scope.as_str(),
            Self::BuiltIn => "built-in",
            Self::Plugin => "plugin",
        }
    }

    fn is_editable(self) -> bool {
        matches!(self, Self::Scope(_))
    }

    fn check_editable(self, name: &str) -> Result<(), AppError> {
        let owner = match self {
            Self::Scope(_) => return Ok(()),
            Self::BuiltIn => "comes with the agent; choose another name",
            Self::Plugin => "is a link and belongs to a plugin; change it there",
        };
        let text = format!("the subagent {} {owner}", quoted(name));
        Err(AppError::new(ErrorCode::ReadOnly, Class::Forbidden, text))
    }
}

impl AgentConfigEditor {
    /// The subagents of a scope, and those that the agent brings.
    ///
    /// # Errors
    /// Their directory leads elsewhere or cannot be read.
    pub async fn subagents(&self, target: &ConfigTarget) -> Result<Subagents, AppError> {
        let of = target.clone();
        let mut agents = blocking(move || listed(&of)).await?.map_err(refused)?;
        for name in BUILT_IN {
            if !agents.iter().any(|agent| agent.name == name) {
                agents.push(SubagentItem {
                    name: name.to_owned(),
                    source: Source::BuiltIn.as_str().to_owned(),
                    editable: false,
                    description: None,
                });
            }
        }
        Ok(Subagents {
            scope: target.scope.as_str().to_owned(),
            project: target.project_name(),
            agents,
        })
    }

    /// One subagent of a scope, without its secrets.
    ///
    /// # Errors
    /// No subagent has such a name, or its file is not one that can be shown.
    pub async fn subagent(&self, target: &ConfigTarget, name: &str) -> Result<Subagent, AppError> {
        let file = file_of(target, name)?;
        let (source, found) = found(target, name, &file).await?;
        let (content, front) = match &found {
            None => (String::new(), None),
            Some(found) => (masked_text(&found.text), Some(front_matter(&found.text))),
        };
        let (frontmatter, frontmatter_error) = match front {
            None => (None, None),
            Some(Ok(members)) => (Some(masked(&Value::Object(members))), None),
            Some(Err(problem)) => (None, Some(problem)),
        };
        Ok(Subagent {
            scope: target.scope.as_str().to_owned(),
            project: target.project_name(),
            name: name.to_owned(),
            source: source.as_str().to_owned(),
            editable: source.is_editable(),
            exists: found.is_some() || !source.is_editable(),
            content,
            frontmatter,
            frontmatter_error,
            hash: hash_of_found(found.as_ref()),
        })
    }

    /// Makes or replaces a subagent.
    ///
    /// # Errors
    /// It is not one of the scope, its front matter does not fit, the file changed since `hash` was
    /// read, or it cannot be written.
    pub async fn save_subagent(
        self: &Arc<Self>,
        target: ConfigTarget,
        name: String,
        content: String,
        hash: Option<String>,
    ) -> Result<ConfigSaved, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let file = file_of(&target, &name)?;
            let (source, before) = found(&target, &name, &file).await?;
            source.check_editable(&name)?;
            let stored = before.as_ref().map_or("", |found| &found.text);
            let text = unmasked_text(&content, stored).map_err(bad)?;
            let front = front_matter(&text).map_err(AppError::invalid)?;
            check(&name, &front).map_err(bad)?;
            check_hash(&file, before.as_ref(), hash.as_deref())?;
            let (surface, keys) = (Surface::Subagents, Vec::new());
            let write = FileWrite { file, surface, keys, before, text, is_restore: false };
            this.write_file(&target, write).await
        };
        self.tasks.complete(work).await
    }

    /// Removes a subagent. Its file becomes a copy first.
    ///
    /// # Errors
    /// There is none, it is not one of the scope, or the file changed since `hash` was read.
    pub async fn delete_subagent(
        self: &Arc<Self>,
        target: ConfigTarget,
        name: String,
        hash: Option<String>,
    ) -> Result<ConfigDeleted, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let _writing = this.writing.lock().await;
            let file = file_of(&target, &name)?;
            let (source, before) = found(&target, &name, &file).await?;
            source.check_editable(&name)?;
            let Some(before) = before else {
                let text = format!("there is no subagent {} in this scope", quoted(&name));
                return Err(AppError::new(ErrorCode::NotFound, Class::NotFound, text));
            };
            check_hash(&file, Some(&before), hash.as_deref())?;
            let change = Change {
                surface: Surface::Subagents,
                scope: target.audit_scope(),
                target: file.path().to_string_lossy().into_owned(),
                action: "delete",
                keys: Vec::new(),
            };
            let (backups, now) = (this.backups.clone(), this.audit.clock.now());
            let work = async move {
                blocking(move || {
                    backups.keep(&file.path(), &before.text, now)?;
                    file.remove(&before).map_err(refused)
                })
                .await?
            };
            this.audit.record(change, work).await?;
            Ok(ConfigDeleted {
                scope: target.scope.as_str().to_owned(),
                project: target.project_name(),
                name,
                deleted: true,
            })
        };
        self.tasks.complete(work).await
    }
}

/// Refuses what cannot be the name of a subagent.
pub(super) fn check_subagent(name: &str) -> Result<(), AppError> {
    if is_subagent(name) {
        return Ok(());
    }
    Err(AppError::invalid(format!(
        "{} cannot be the name of a subagent; use words of small letters and digits, joined by `-`",
        quoted(name)
    )))
}

pub(super) fn file_of(target: &ConfigTarget, name: &str) -> Result<ScopeFile, AppError> {
    check_subagent(name)?;
    Ok(in_directory(target, &format!("/{name}.md")))
}

fn in_directory(target: &ConfigTarget, end: &str) -> ScopeFile {
    target.file(&format!("agents{end}"), &format!(".claude/agents{end}"), MOST_BYTES)
}

/// Refuses to put back what may not be written.
pub(super) async fn check_restored(
    target: &ConfigTarget,
    name: &str,
    text: &str,
) -> Result<(), AppError> {
    let (source, _) = found(target, name, &file_of(target, name)?).await?;
    source.check_editable(name)?;
    // What cannot be read may come back: it was there, and is repaired on the machine.
    check_mode(&front_matter(text).unwrap_or_default()).map_err(bad)
}

/// Who the subagent of a name belongs to, and its file where it can be edited.
async fn found(
    target: &ConfigTarget,
    name: &str,
    file: &ScopeFile,
) -> Result<(Source, Option<Found>), AppError> {
    if BUILT_IN.contains(&name) {
        return Ok((Source::BuiltIn, None));
    }
    let link = file.clone();
    if blocking(move || link.is_link()).await?.map_err(refused)? {
        return Ok((Source::Plugin, None));
    }
    Ok((Source::Scope(target.scope), read_one(file).await?))
}

fn listed(target: &ConfigTarget) -> Result<Vec<SubagentItem>, ScopeFileError> {
    let mut agents = Vec::new();
    for entry in in_directory(target, "").entries(MOST_LISTED)? {
        let Some(name) = entry.name.strip_suffix(".md") else { continue };
        let source = match entry.kind {
            _ if BUILT_IN.contains(&name) => Source::BuiltIn,
            EntryKind::File => Source::Scope(target.scope),
            EntryKind::Link => Source::Plugin,
            EntryKind::Directory | EntryKind::Other => continue,
        };
        let file = in_directory(target, &format!("/{}", entry.name));
        let front = match source {
            // What cannot be read is still named.
            Source::Scope(_) => file.read().ok().flatten().map(|found| front_matter(&found.text)),
            Source::BuiltIn | Source::Plugin => None,
        };
        let front = front.and_then(Result::ok).unwrap_or_default();
        agents.push(SubagentItem {
            name: name.to_owned(),
            source: source.as_str().to_owned(),
            editable: source.is_editable() && is_subagent(name),
            description: description(&front).map(masked_text),
        });
    }
    Ok(agents)
}
