//! Use-cases: let the agent work in directories, by name.

use crate::bridges::circumstances::unknown_project;
use crate::ops::audit::{Change, Scope, Surface};
use crate::{App, AppError, Class};
use svc_agent::trust::TrustError;
use svc_domain::log_escape::quoted;
use svc_projects::Project;
use svc_shared::api::projects;
use svc_shared::error::ErrorCode;
use svc_shared::internal::TrustAllRequest;
use svc_shared::status::TrustState;

impl App {
    /// Trusts one project directory.
    ///
    /// # Errors
    /// The agent's file cannot be understood or written; it is left as it is.
    pub async fn trust(&self, name: &str) -> Result<projects::Project, AppError> {
        let app = self.clone();
        let name = name.to_owned();
        self.run_to_completion(async move {
            let project = app.project(&name)?;
            app.grant_trust(&project).await?;
            app.publish_all().await;
            Ok(app.project_record(&project))
        })
        .await
    }

    /// Trusts exactly the named projects.
    ///
    /// # Errors
    /// A name is unknown: nothing is trusted then. Or as [`App::trust`].
    pub async fn trust_all(
        &self,
        request: TrustAllRequest,
    ) -> Result<Vec<projects::Project>, AppError> {
        let app = self.clone();
        self.run_to_completion(async move {
            let wanted = request
                .names
                .iter()
                .map(|name| app.project(name).map_err(|_| unknown_project(name)))
                .collect::<Result<Vec<_>, _>>()?;
            for project in &wanted {
                app.grant_trust(project).await?;
            }
            app.publish_all().await;
            Ok(wanted.iter().map(|project| app.project_record(project)).collect())
        })
        .await
    }

    /// Records of all projects, in their order.
    ///
    /// # Errors
    /// The scan was interrupted.
    pub async fn project_records(&self) -> Result<Vec<projects::Project>, AppError> {
        let app = self.clone();
        tokio::task::spawn_blocking(move || {
            app.projects().iter().map(|project| app.project_record(project)).collect()
        })
        .await
        .map_err(AppError::internal)
    }

    /// Writes the grant if there is none.
    pub(crate) async fn grant_trust(&self, project: &Project) -> Result<(), AppError> {
        let (app, asked) = (self.clone(), project.clone());
        let known = tokio::task::spawn_blocking(move || app.is_trusted(&asked)).await;
        if known.map_err(AppError::internal)? {
            return Ok(());
        }
        let change = Change {
            surface: Surface::Trust,
            scope: Scope::Project,
            target: project.path.to_string_lossy().into_owned(),
            action: "create",
            keys: vec!["hasTrustDialogAccepted"],
        };
        self.audited(change, async {
            let git_root = project.git_root.as_deref();
            self.agent().grant_trust(&project.path, git_root).await.map_err(trust_failed)
        })
        .await?;
        tracing::info!(
            project.name = %project.name,
            "trusted the directory of project {}",
            quoted(project.name.as_str())
        );
        Ok(())
    }

    /// The record of a project.
    pub(crate) fn project_record(&self, project: &Project) -> projects::Project {
        let trusted = self.is_trusted(project);
        projects::Project {
            name: project.name.clone(),
            path: project.shown_path.to_string_lossy().into_owned(),
            is_git_repo: project.is_git_repo(),
            has_claude_md: project.has_claude_md,
            has_claude_dir: project.has_claude_dir,
            trust_state: if trusted { TrustState::Trusted } else { TrustState::Untrusted }.into(),
            allow_bypass_permissions: self
                .settings()
                .project(&project.name)
                .allow_bypass_permissions,
            alias_of: project.alias_of.clone(),
        }
    }
}

fn trust_failed(error: TrustError) -> AppError {
    if error.is_content() {
        AppError::new(ErrorCode::InvalidValue, Class::Conflict, error.to_string()).because(error)
    } else {
        AppError::busy(error.to_string()).because(error)
    }
}
