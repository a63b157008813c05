//! Use-case: one project with everything around it.

use crate::AppError;
use crate::bridges::readiness::Readiness;
use crate::ops::Metrics;
use crate::projects::catalog::Catalog;
use crate::read_model::ReadModel;
use std::sync::Arc;
use svc_shared::internal::ProjectRow;

/// Projects with everything around them.
pub struct ProjectRows {
    catalog: Arc<Catalog>,
    readiness: Arc<Readiness>,
    metrics: Arc<Metrics>,
    read_model: Arc<ReadModel>,
}

impl ProjectRows {
    /// Rows from these parts.
    pub(crate) fn new(
        catalog: &Arc<Catalog>,
        readiness: &Arc<Readiness>,
        metrics: &Arc<Metrics>,
        read_model: &Arc<ReadModel>,
    ) -> Self {
        let (catalog, readiness) = (Arc::clone(catalog), Arc::clone(readiness));
        Self {
            catalog,
            readiness,
            metrics: Arc::clone(metrics),
            read_model: Arc::clone(read_model),
        }
    }

    /// The project, its readiness, its sessions and its bridges.
    ///
    /// # Errors
    /// No such project.
    pub async fn get(&self, name: &str) -> Result<ProjectRow, AppError> {
        let project = self.catalog.named(name)?;
        let preflight = self.readiness.preflight(name, false).await?;
        let snapshot = self.read_model.snapshot();
        let readiness = Arc::clone(&self.readiness);
        let record = tokio::task::spawn_blocking(move || readiness.record(&project))
            .await
            .map_err(AppError::internal)?;
        let instances = snapshot.instances().filter(|row| row.project == name).cloned().collect();
        let metrics = self.metrics.of(&record.name);
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
