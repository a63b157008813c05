//! Use-cases: let the agent work in directories, by name.

use crate::agent::Agent;
use crate::agent_config::backups::Backups;
use crate::bridges::readiness::Readiness;
use crate::ops::audit::{Audit, Change, Scope, Surface};
use crate::projects::catalog::Catalog;
use crate::projects::catalog::unknown_project;
use crate::registry::Registry;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use std::sync::Arc;
use svc_agent::trust::TrustError;
use svc_domain::log_escape::quoted;
use svc_projects::Project;
use svc_shared::api::projects;
use svc_shared::error::ErrorCode;
use svc_shared::internal::TrustAllRequest;

/// Lets the agent work in a directory.
pub(crate) struct Trust {
    pub agent: Arc<Agent>,
    pub audit: Arc<Audit>,
}

impl Trust {
    /// Writes the grant if there is none.
    pub async fn grant(&self, project: &Project) -> Result<(), AppError> {
        let (agent, asked) = (Arc::clone(&self.agent), project.clone());
        let known = blocking(move || agent.trust(&asked.path, asked.git_root.as_deref())).await?;
        if known == svc_domain::admission::Trust::Granted {
            return Ok(());
        }
        let change = Change {
            surface: Surface::Trust,
            scope: Scope::Project,
            target: project.path.to_string_lossy().into_owned(),
            action: "create",
            keys: vec!["hasTrustDialogAccepted".into()],
        };
        self.audit
            .record(change, async {
                let git_root = project.git_root.as_deref();
                self.agent.grant_trust(&project.path, git_root).await.map_err(trust_failed)
            })
            .await?;
        tracing::info!(
            project.name = %project.name,
            "trusted the directory of project {}",
            quoted(project.name.as_str())
        );
        Ok(())
    }
}

/// The projects, and what a person allows in them.
pub struct ProjectService {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) backups: Backups,
    /// One write of instructions at a time: each compares with what it has read.
    pub(crate) writing: tokio::sync::Mutex<()>,
    pub(crate) tasks: Tasks,
}

impl ProjectService {
    /// Names of the projects, in the order of lists.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.catalog.all().iter().map(|project| project.name.to_string()).collect()
    }

    /// Trusts one project directory.
    ///
    /// # Errors
    /// The agent's file cannot be understood or written; it is left as it is.
    pub async fn trust(self: &Arc<Self>, name: &str) -> Result<projects::Project, AppError> {
        let this = Arc::clone(self);
        let name = name.to_owned();
        self.tasks
            .complete(async move {
                let project = this.catalog.named(&name)?;
                this.trust.grant(&project).await?;
                this.registry.publish_all().await;
                let readiness = Arc::clone(&this.readiness);
                blocking(move || readiness.record(&project)).await
            })
            .await
    }

    /// Trusts exactly the named projects.
    ///
    /// # Errors
    /// A name is unknown: nothing is trusted then. Or as [`ProjectService::trust`].
    pub async fn trust_all(
        self: &Arc<Self>,
        request: TrustAllRequest,
    ) -> Result<Vec<projects::Project>, AppError> {
        let this = Arc::clone(self);
        self.tasks
            .complete(async move {
                let wanted = request
                    .names
                    .iter()
                    .map(|name| this.catalog.named(name).map_err(|_| unknown_project(name)))
                    .collect::<Result<Vec<_>, _>>()?;
                for project in &wanted {
                    this.trust.grant(project).await?;
                }
                this.registry.publish_all().await;
                let readiness = Arc::clone(&this.readiness);
                blocking(move || wanted.iter().map(|project| readiness.record(project)).collect())
                    .await
            })
            .await
    }

    /// Records of all projects, in their order.
    ///
    /// # Errors
    /// The scan was interrupted.
    pub async fn records(self: &Arc<Self>) -> Result<Vec<projects::Project>, AppError> {
        let this = Arc::clone(self);
        blocking(move || {
            this.catalog.all().iter().map(|project| this.readiness.record(project)).collect()
        })
        .await
    }
}

fn trust_failed(error: TrustError) -> AppError {
    if error.is_content() {
        AppError::new(ErrorCode::InvalidValue, Class::Conflict, error.to_string()).because(error)
    } else {
        AppError::busy(error.to_string()).because(error)
    }
}
