//! From records to the read model.

use crate::App;
use crate::read_model::view::Surroundings;
use crate::registry::{Part, Registry};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_domain::adoption::Unrecorded;
use svc_projects::{Project, Projects};
use svc_shared::internal::PreflightSummary;

/// From a change to the look at the long history of its project, and so much more for each row of
/// it: a row takes a fortieth of that, whatever is started and stopped meanwhile.
const NEIGHBOURS_AFTER: Duration = Duration::from_millis(100);
const PER_NEIGHBOUR: Duration = Duration::from_micros(100);

fn lock(turn: &Mutex<()>) -> MutexGuard<'_, ()> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

impl App {
    /// Shows the instances that changed to the readers of the read model. Only the service has
    /// readers.
    pub(crate) fn publish(&self) {
        if !self.is_server() {
            return;
        }
        while self.show(Registry::unshown) {}
        self.publish_neighbours_soon();
        self.publish_health();
        if self.settings().instance_defaults.max_bridges.is_some() && self.live_count_changed() {
            // With a cap, the readiness of every project depends on how many bridges are live.
            self.publish_preflight();
        }
    }

    /// Brings the readiness of all projects up to date. Only the service has readers.
    pub(crate) fn publish_preflight(&self) {
        if !self.is_server() {
            return;
        }
        let _turn = lock(&self.inner.publishing_projects);
        self.read_model().replace_preflight(self.summaries(&self.projects()));
    }

    /// Shows some rows. One at a time looks and shows, so that nobody shows what has changed since.
    fn show(&self, next: impl Fn(&Registry) -> Option<Part>) -> bool {
        let _turn = lock(&self.inner.publishing);
        let Some(part) = next(self.registry()) else { return false };
        for ended in part.rows.iter().filter_map(|row| row.bridge()).filter(|one| !one.is_live()) {
            self.watchers().ended(ended);
        }
        // Whoever took them away, here or in another process.
        for id in part.gone.iter().filter_map(|id| id.parse().ok()) {
            self.watchers().forget(&id);
            self.extras().forget(&id);
        }
        let projects = self.projects();
        let surroundings = Surroundings::new(self, &projects, part.occupied);
        let shown = part
            .rows
            .iter()
            .filter_map(|stored| Some((stored.number, surroundings.instance(stored)?)));
        self.read_model().change_instances(shown.collect(), &part.gone);
        true
    }

    /// Brings the projects of the read model up to date, with their readiness.
    pub(crate) fn publish_projects(&self) {
        if !self.is_server() {
            return;
        }
        let _turn = lock(&self.inner.publishing_projects);
        let projects = self.projects();
        let records = projects
            .iter()
            .map(|project| (project.name.to_string(), self.project_record(project)))
            .collect();
        self.read_model().replace_projects(records);
        self.read_model().replace_preflight(self.summaries(&projects));
    }

    /// Everything that depends on the surroundings of the records.
    pub(crate) async fn publish_all(&self) {
        let app = self.clone();
        // Ten thousand directories are looked at: not on a thread that serves requests.
        let done = tokio::task::spawn_blocking(move || {
            app.publish_projects();
            app.publish_rows_now();
        });
        if let Err(error) = done.await {
            tracing::error!(error = %error, "the page was not brought up to date");
        }
    }

    /// Looks at all rows again: something outside changed that is a part of their records.
    pub(crate) async fn publish_rows(&self) {
        let app = self.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || app.publish_rows_now()).await {
            tracing::error!(error = %error, "the page was not brought up to date");
        }
    }

    fn publish_rows_now(&self) {
        if !self.is_server() {
            return;
        }
        self.registry().look_again();
        self.publish();
        while self.show(Registry::unlooked) {}
    }

    /// Long histories of a project that was occupied or left follow its own row after a moment: who
    /// starts and stops many times has them looked at once.
    fn publish_neighbours_soon(&self) {
        let count = self.registry().neighbours();
        if count == 0 {
            return;
        }
        let after = NEIGHBOURS_AFTER + PER_NEIGHBOUR * u32::try_from(count).unwrap_or(u32::MAX);
        self.inner.neighbours.ask(self, after, |app| async move {
            let look = tokio::task::spawn_blocking(move || {
                if app.registry().look_at_neighbours() {
                    while app.show(Registry::unlooked) {}
                }
            });
            if let Err(error) = look.await {
                tracing::error!(error = %error, "the page was not brought up to date");
            }
        });
    }

    fn live_count_changed(&self) -> bool {
        let live = self.registry().live_count();
        self.inner.published_live.swap(live, Ordering::Relaxed) != live
    }

    pub(crate) fn publish_health(&self) {
        if !self.is_server() {
            return;
        }
        let _turn = lock(&self.inner.publishing);
        self.read_model().set_health(self.health());
        self.read_model().set_login(self.login_status());
    }

    fn summaries(&self, projects: &Arc<Projects>) -> BTreeMap<String, PreflightSummary> {
        let scene = self.scene(&self.registry().live());
        let mut unmanaged = self.extras().unmanaged();
        projects
            .iter()
            .map(|project: &Project| {
                let unrecorded = unmanaged.remove(&project.name).unwrap_or(Unrecorded::Nothing);
                (project.name.to_string(), self.preflight_summary(project, &scene, unrecorded))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
