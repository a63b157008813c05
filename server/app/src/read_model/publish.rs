//! From rows, projects and caches to the read model.
//! Facts are read on blocking threads; showing them changes nothing but the read model.

use crate::bridges::readiness::Readiness;
use crate::debounce::Debounce;
use crate::ops::status::Status;
use crate::read_model::ReadModel;
use crate::read_model::records::Records;
use crate::registry::copies::{Copies, Part};
use crate::tasks::Tasks;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_shared::internal::PreflightSummary;

/// From a change to showing the long history of its project, and more for each row.
/// A row takes a fortieth of that, whatever is started and stopped meanwhile.
const NEIGHBOURS_AFTER: Duration = Duration::from_millis(100);
const PER_NEIGHBOUR: Duration = Duration::from_micros(100);

fn lock(turn: &Mutex<()>) -> MutexGuard<'_, ()> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the read model of the service current.
pub(crate) struct Publisher {
    pub read_model: Arc<ReadModel>,
    pub records: Arc<Records>,
    pub readiness: Arc<Readiness>,
    pub status: Arc<Status>,
    pub tasks: Tasks,
    pub turns: Turns,
}

/// One at a time reads and shows, so that nobody shows what has changed since.
/// Waited for on blocking threads only.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    rows: Mutex<()>,
    /// The same for projects and their readiness, which take longer.
    projects: Mutex<()>,
    /// Live bridges when readiness was last published.
    published_live: AtomicUsize,
    /// The run over long histories.
    neighbours: Debounce,
}

impl Publisher {
    /// Shows readers the instances that changed.
    pub async fn publish(self: &Arc<Self>) {
        if !self.is_current() {
            self.on_blocking_thread(Self::show_changes).await;
        }
    }

    /// Whether every row that changed has been shown.
    /// Not so while somebody shows one: who published it waits for that.
    fn is_current(&self) -> bool {
        match self.turns.rows.try_lock() {
            Ok(_turn) => !self.copies().have_changed(),
            Err(_) => false,
        }
    }

    /// Shows everything that depends on the surroundings of the records.
    pub async fn publish_all(self: &Arc<Self>) {
        self.on_blocking_thread(|this| {
            this.show_projects();
            this.show_all_rows();
        })
        .await;
    }

    /// Shows all rows again: something outside changed that is a part of their records.
    pub async fn publish_rows(self: &Arc<Self>) {
        self.on_blocking_thread(Self::show_all_rows).await;
    }

    /// Reads the facts of all rows anew and shows them.
    pub async fn reread_rows(self: &Arc<Self>) {
        self.records.facts.clear();
        self.publish_rows().await;
    }

    /// Shows the projects, with their readiness, and the state of the service.
    pub async fn publish_projects(self: &Arc<Self>) {
        self.on_blocking_thread(|this| {
            this.show_projects();
            this.show_status();
        })
        .await;
    }

    /// Reads files and the process table: not on a thread that serves requests.
    /// Once begun, it ends even when the caller goes away.
    async fn on_blocking_thread(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let this = Arc::clone(self);
        if let Err(error) = tokio::task::spawn_blocking(move || work(&this)).await {
            tracing::error!(error = %error, "the page was not brought up to date");
        }
    }

    fn copies(&self) -> &Copies {
        &self.records.copies
    }

    fn show_changes(self: &Arc<Self>) {
        while self.show(Copies::take_changed) {}
        self.show_neighbours_soon();
        self.show_status();
        let live = self.copies().live_count();
        // With a cap, the readiness of every project depends on how many bridges are live.
        if self.readiness.is_capped()
            && self.turns.published_live.swap(live, Ordering::Relaxed) != live
        {
            self.show_readiness();
        }
    }

    fn show_all_rows(self: &Arc<Self>) {
        self.copies().recheck_all();
        self.show_changes();
        while self.show(Copies::take_rechecked) {}
    }

    fn show(&self, next: impl Fn(&Copies) -> Option<Part>) -> bool {
        let _turn = lock(&self.turns.rows);
        let Some(part) = next(self.copies()) else { return false };
        // Whoever deleted them, this process or another.
        for id in part.gone.iter().filter_map(|id| id.parse().ok()) {
            self.records.facts.forget(&id);
        }
        let shown = self.records.of_rows(&part.rows, part.occupied);
        self.read_model.change_instances(shown, &part.gone);
        true
    }

    /// Shows long histories a moment after the row that changed.
    /// Many starts and stops of a project show its history once.
    fn show_neighbours_soon(self: &Arc<Self>) {
        let count = self.copies().waiting_neighbours();
        if count == 0 {
            return;
        }
        let delay = NEIGHBOURS_AFTER + PER_NEIGHBOUR * u32::try_from(count).unwrap_or(u32::MAX);
        let this = Arc::clone(self);
        self.turns.neighbours.request(&self.tasks, delay, move || async move {
            this.on_blocking_thread(|this| {
                if this.copies().recheck_neighbours() {
                    while this.show(Copies::take_rechecked) {}
                }
            })
            .await;
        });
    }

    fn show_status(&self) {
        let _turn = lock(&self.turns.rows);
        self.read_model.set_health(self.status.health());
        self.read_model.set_login(self.status.login());
    }

    fn show_projects(&self) {
        let _turn = lock(&self.turns.projects);
        self.read_model.replace_projects(self.readiness.records_by_name());
        self.read_model.replace_preflight(self.summaries());
    }

    /// Shows the readiness of all projects.
    pub async fn publish_readiness(self: &Arc<Self>) {
        self.on_blocking_thread(|this| this.show_readiness()).await;
    }

    fn summaries(&self) -> BTreeMap<String, PreflightSummary> {
        self.readiness.summaries(self.records.facts.unmanaged())
    }

    fn show_readiness(&self) {
        let _turn = lock(&self.turns.projects);
        self.read_model.replace_preflight(self.summaries());
    }
}

#[cfg(test)]
mod tests;
