//! Use-case: one project with everything around it, for a page that shows just that.

use crate::{App, AppError};
use svc_shared::internal::ProjectRow;

impl App {
    /// The project, its readiness, its sessions and its bridges.
    ///
    /// # Errors
    /// No such project.
    pub async fn project_row(&self, name: &str) -> Result<ProjectRow, AppError> {
        let project = self.catalog().named(name)?;
        let preflight = self.readiness().preflight(name, false).await?;
        let snapshot = self.read_model().snapshot();
        let app = self.clone();
        let record = tokio::task::spawn_blocking(move || app.readiness().record(&project))
            .await
            .map_err(AppError::internal)?;
        let instances = snapshot.instances().filter(|row| row.project == name).cloned().collect();
        let metrics = self.metrics().of(&record.name);
        Ok(ProjectRow {
            project: record,
            preflight,
            external: snapshot.state.external.get(name).cloned().unwrap_or_default(),
            adoptable: snapshot.state.adoptable.iter().any(|adoptable| adoptable == name),
            instances,
            usage: None,
            metrics,
        })
    }
}
