//! Which projects there are, by name and by directory.

use crate::{AppError, Class, ProjectSource};
use std::path::Path;
use std::sync::Arc;
use svc_domain::log_escape::quoted;
use svc_projects::{Project, Projects};
use svc_shared::error::ErrorCode;
use svc_shared::ids::ProjectName;
use tokio::sync::watch;

/// The projects as they are known now.
pub(crate) struct Catalog(pub Arc<dyn ProjectSource>);

impl Catalog {
    /// All projects, in the order of lists.
    pub fn all(&self) -> Arc<Projects> {
        self.0.snapshot()
    }

    /// Counts up at every change; `None` where nothing ever changes.
    pub fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.0.changes()
    }

    /// The project of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(&self, name: &str) -> Result<Project, AppError> {
        if name.is_empty() {
            return Err(AppError::invalid("`project` is empty; give the name of a project"));
        }
        let name_of = name.parse::<ProjectName>().ok();
        let found = name_of.and_then(|name| self.all().get(&name).cloned());
        found.ok_or_else(|| unknown_project(name))
    }

    /// The name of the project whose directory holds this one.
    pub fn holding(&self, cwd: Option<&Path>) -> Option<String> {
        let (projects, cwd) = (self.all(), cwd?);
        projects.iter().find(|at| cwd.starts_with(&at.path)).map(|at| at.name.to_string())
    }
}

/// No project has this name.
pub(crate) fn unknown_project(name: &str) -> AppError {
    AppError::new(
        ErrorCode::UnknownProject,
        Class::NotFound,
        format!(
            "no project {} under `projects_root`; the page and `svc projects` list them",
            quoted(name)
        ),
    )
}
