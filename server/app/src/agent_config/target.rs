//! Which files a request is about, and whether it may be about them.

use super::{AgentConfigEditor, Ignored, not_there, scope_named};
use crate::ops::audit;
use crate::{AppError, Class};
use std::path::Path;
use svc_agent::home::AgentHome;
use svc_agent::scope_file::{NewMode, ScopeFile};
use svc_domain::agent_config::ConfigScope;
use svc_domain::log_escape::quoted;
use svc_process::process_umask;
use svc_projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_config::ConfigSaved;

/// Largest `.gitignore` that a line is added to, bytes.
const MOST_IGNORED: usize = 1024 * 1024;

/// A scope with its project.
#[derive(Debug, Clone)]
pub struct ConfigTarget {
    pub(super) scope: ConfigScope,
    /// None in the scope of the user.
    pub(super) project: Option<Project>,
    pub(super) home: AgentHome,
}

impl AgentConfigEditor {
    /// Refuses everything while nothing may be changed here.
    ///
    /// # Errors
    /// It is off: 404, as if there were no such route.
    pub fn check_open(&self) -> Result<(), AppError> {
        if self.config.config_write.enabled { Ok(()) } else { Err(not_there()) }
    }

    /// The scope that a request names; the project's where it names none.
    ///
    /// # Errors
    /// Nothing may be changed here, the scope is not open, or there is no such scope.
    pub fn scope(&self, word: Option<&str>) -> Result<ConfigScope, AppError> {
        self.check_open()?;
        let scope = match word {
            None => ConfigScope::Project,
            Some(word) => scope_named(word).ok_or_else(|| {
                AppError::invalid(format!(
                    "`scope` is {}; use project, local or user",
                    quoted(word)
                ))
            })?,
        };
        if scope == ConfigScope::User && !self.config.config_write.allow_user_scope {
            return Err(not_there());
        }
        Ok(scope)
    }

    /// Checks that a person confirmed a write to this scope.
    ///
    /// # Errors
    /// The text is missing or another one.
    pub fn check_confirmed(
        scope: ConfigScope,
        project: Option<&str>,
        confirm: Option<&str>,
    ) -> Result<(), AppError> {
        let wanted = scope.confirmation(project.unwrap_or_default());
        if confirm == Some(wanted.as_str()) {
            return Ok(());
        }
        Err(AppError::new(
            ErrorCode::ConfirmRequired,
            Class::Invalid,
            format!(
                "`confirm` must be exactly {}: this write decides what code runs",
                quoted(&wanted)
            ),
        ))
    }

    /// The files of a scope.
    ///
    /// # Errors
    /// The scope needs a project and none is named, there is no such project, or the agent's files
    /// cannot be found.
    pub fn target(
        &self,
        scope: ConfigScope,
        project: Option<&str>,
    ) -> Result<ConfigTarget, AppError> {
        let project = match (scope, project) {
            (ConfigScope::User, _) => None,
            (ConfigScope::Project | ConfigScope::Local, None) => {
                return Err(AppError::invalid(format!(
                    "`project` is missing; the scope `{}` is that of a project",
                    scope.as_str()
                )));
            }
            (ConfigScope::Project | ConfigScope::Local, Some(name)) => {
                Some(self.catalog.named(name)?)
            }
        };
        Ok(ConfigTarget { scope, project, home: self.agent.home()? })
    }
}

impl ConfigTarget {
    /// The directory that a file of this scope must not leave.
    pub(super) fn root(&self) -> &Path {
        self.project.as_ref().map_or_else(|| self.home.dir(), |project| &project.path)
    }

    /// A file: its path in the agent's home, and that in a project.
    pub(super) fn file(&self, of_user: &str, of_project: &str, most_bytes: usize) -> ScopeFile {
        let inside = if self.project.is_some() { of_project } else { of_user };
        ScopeFile::new(self.root(), inside, most_bytes)
    }

    /// The settings file.
    pub(super) fn settings(&self) -> ScopeFile {
        let of_project = match self.scope {
            ConfigScope::Local => ".claude/settings.local.json",
            ConfigScope::Project | ConfigScope::User => ".claude/settings.json",
        };
        self.file("settings.json", of_project, super::MOST_BYTES)
    }

    pub(super) fn project_name(&self) -> Option<String> {
        self.project.as_ref().map(|project| project.name.to_string())
    }

    /// The project's path as the agent's state file knows it.
    pub(super) fn project_key(&self) -> Result<String, AppError> {
        let path = self.project.as_ref().and_then(|project| project.path.to_str());
        path.map(str::to_owned).ok_or_else(|| {
            AppError::invalid("the path of the project is not UTF-8 text; rename its directory")
        })
    }

    pub(super) fn saved(&self, hash: Option<String>) -> ConfigSaved {
        ConfigSaved {
            scope: self.scope.as_str().to_owned(),
            project: self.project_name(),
            ok: true,
            hash,
        }
    }

    pub(super) fn audit_scope(&self) -> audit::Scope {
        match self.scope {
            ConfigScope::User => audit::Scope::User,
            ConfigScope::Project => audit::Scope::Project,
            ConfigScope::Local => audit::Scope::Local,
        }
    }

    /// Permission bits of a new file.
    ///
    /// A file of the project is for all its readers, others are for their owner.
    pub(super) fn new_mode(&self) -> NewMode {
        match self.scope {
            ConfigScope::Project => NewMode::Umask(process_umask::inherited()),
            ConfigScope::User | ConfigScope::Local => NewMode::Private,
        }
    }

    /// What git must ignore before this file is made.
    pub(super) fn ignored(&self, file: &ScopeFile) -> Option<Ignored> {
        let project = self.project.as_ref()?;
        if self.scope != ConfigScope::Local || !project.is_git_repo() {
            return None;
        }
        Some(Ignored {
            file: ScopeFile::new(&project.path, ".gitignore", MOST_IGNORED),
            line: file.inside.to_str()?.to_owned(),
        })
    }
}
