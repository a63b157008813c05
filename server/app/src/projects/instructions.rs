//! Use-cases: read and replace what a project tells its agents (`CLAUDE.md`).

use crate::ops::audit::{Change, Scope, Surface};
use crate::projects::trusting::ProjectService;
use crate::tasks::blocking;
use crate::{AppError, Class};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use svc_agent::scope_file::{Found, NewMode, ScopeFile, ScopeFileError};
use svc_domain::admission::Trust;
use svc_domain::bridge::Bridge;
use svc_domain::log_escape::quoted;
use svc_process::process_umask;
use svc_projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::internal::instructions::{Instructions, MOST_BYTES, WriteInstructions};

/// Its name.
const NAME: &str = "CLAUDE.md";

impl ProjectService {
    /// The file as it is now.
    ///
    /// # Errors
    /// There is no such project, or the file cannot be shown.
    pub async fn instructions(&self, project: &str) -> Result<Instructions, AppError> {
        let project = self.catalog.named(project)?;
        let file = file_of(&project);
        let found = blocking(move || file.read()).await?.map_err(refused)?;
        self.shown(&project, found.as_ref()).await
    }

    /// Replaces the file if it is still what the change is based on.
    ///
    /// # Errors
    /// The project is not trusted, the file is another one by now, or it cannot be written.
    pub async fn write_instructions(
        self: &Arc<Self>,
        project: &str,
        request: WriteInstructions,
    ) -> Result<Instructions, AppError> {
        let project = self.catalog.named(project)?;
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.write_now(&project, request).await }).await
    }

    async fn write_now(
        &self,
        project: &Project,
        request: WriteInstructions,
    ) -> Result<Instructions, AppError> {
        let (agent, asked) = (Arc::clone(&self.trust.agent), project.clone());
        let trust = blocking(move || agent.trust(&asked.path, asked.git_root.as_deref())).await?;
        if trust != Trust::Granted {
            let name = quoted(project.name.as_str());
            let message = format!("project {name} is not trusted; trust it, then save again");
            return Err(AppError::new(ErrorCode::NotTrusted, Class::Forbidden, message));
        }
        let _writing = self.writing.lock().await;
        let (file, read) = (file_of(project), file_of(project));
        let before = blocking(move || read.read()).await?.map_err(refused)?;
        if before.as_ref().map(|found| print(&found.text)) != request.base_sha256 {
            return Err(refused(ScopeFileError::Changed(NAME.to_owned())));
        }
        let change = Change {
            surface: Surface::ClaudeMd,
            scope: Scope::Project,
            target: file.path().to_string_lossy().into_owned(),
            action: if before.is_some() { "update" } else { "create" },
            keys: Vec::new(),
        };
        let (backups, now) = (self.backups.clone(), self.trust.audit.clock.now());
        let work = async move {
            let mode = NewMode::Umask(process_umask::inherited());
            let text = request.content;
            blocking(move || {
                if let Some(found) = &before {
                    backups.keep(&file.path(), &found.text, now)?;
                }
                file.write(before.as_ref(), &text, mode).map_err(refused)
            })
            .await?
        };
        self.trust.audit.record(change, work).await?;
        self.instructions(project.name.as_str()).await
    }

    async fn shown(
        &self,
        project: &Project,
        found: Option<&Found>,
    ) -> Result<Instructions, AppError> {
        let rows = self.registry.store.bridges().await?;
        let is_its = |bridge: &Bridge| bridge.project == project.name && bridge.is_live();
        Ok(Instructions {
            exists: found.is_some(),
            sha256: found.map(|found| print(&found.text)),
            size: found.map_or(0, |found| found.text.len().try_into().unwrap_or(u64::MAX)),
            content: found.map(|found| found.text.clone()).unwrap_or_default(),
            bridge_running: rows.iter().filter_map(|row| row.bridge()).any(is_its),
        })
    }
}

/// SHA-256 of a text, hexadecimal.
fn print(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn file_of(project: &Project) -> ScopeFile {
    ScopeFile::new(&project.path, NAME, MOST_BYTES)
}

/// What a file that was not read or written means to the caller.
pub(crate) fn refused(error: ScopeFileError) -> AppError {
    let (code, class) = match error {
        ScopeFileError::Link(_) | ScopeFileError::Kind(_) => {
            (ErrorCode::PathEscape, Class::Invalid)
        }
        ScopeFileError::TooLarge(..) => (ErrorCode::TooLarge, Class::TooLarge),
        ScopeFileError::NotText(_) => (ErrorCode::InvalidValue, Class::Invalid),
        ScopeFileError::Changed(_) => (ErrorCode::Stale, Class::Conflict),
        ScopeFileError::Io(..) => (ErrorCode::Busy, Class::Unavailable),
    };
    AppError::new(code, class, error.to_string()).because(error)
}
