//! Records of rows, for whoever answers with one.

use crate::AppError;
use crate::projects::catalog::Catalog;
use crate::read_model::facts::FactReader;
use crate::read_model::view::View;
use crate::registry::copies::Copies;
use crate::tasks::blocking;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_shared::api::instances::Instance;
use svc_shared::ids::ProjectName;
use svc_store::Stored;

/// Reads the facts around rows and makes their records.
pub(crate) struct Records {
    pub facts: FactReader,
    pub view: View,
    pub projects: Arc<Catalog>,
    pub copies: Arc<Copies>,
}

impl Records {
    /// Records of these rows with their numbers.
    /// `occupied` are the projects with a live Server Mode bridge. Blocks.
    pub fn of_rows<R: Borrow<Stored>>(
        &self,
        rows: &[R],
        occupied: HashSet<ProjectName>,
    ) -> Vec<(i64, Instance)> {
        let bridges = rows.iter().filter_map(|row| row.borrow().bridge());
        let facts = self.facts.read(bridges, self.projects.all(), occupied);
        let record =
            |row: &R| Some((row.borrow().number, self.view.instance(row.borrow(), &facts)?));
        rows.iter().filter_map(record).collect()
    }

    /// Records of all rows there are, in the order of registration. Blocks.
    pub fn of_all<R: Borrow<Stored>>(&self, rows: &[R]) -> Vec<Instance> {
        let bridges = rows.iter().filter_map(|row| row.borrow().bridge());
        let occupying = bridges.filter(|bridge| bridge.occupies_project());
        let occupied = occupying.map(|bridge| bridge.project.clone()).collect();
        self.of_rows(rows, occupied).into_iter().map(|(_, record)| record).collect()
    }

    /// Record of one row, with its surroundings as they are now.
    /// `None` where the row cannot be shown.
    ///
    /// # Errors
    /// The process is ending.
    pub async fn of_stored(
        self: &Arc<Self>,
        stored: Arc<Stored>,
    ) -> Result<Option<Instance>, AppError> {
        let this = Arc::clone(self);
        let record = move || this.of_rows(&[stored], this.copies.occupied()).pop();
        Ok(blocking(record).await?.map(|(_, record)| record))
    }

    /// Record of one bridge, with its surroundings as they are now.
    ///
    /// # Errors
    /// The process is ending.
    pub async fn of(self: &Arc<Self>, bridge: &Bridge) -> Result<Instance, AppError> {
        let (this, bridge) = (Arc::clone(self), bridge.clone());
        blocking(move || {
            let occupied = this.copies.occupied();
            let facts = this.facts.read(std::iter::once(&bridge), this.projects.all(), occupied);
            let stranded = this.copies.stored(&bridge.id).map_or(0, |stored| stored.stranded);
            this.view.of_bridge(&bridge, stranded, &facts)
        })
        .await
    }
}
