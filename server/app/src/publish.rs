//! From records to the read model.

use crate::App;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_projects::{Project, Projects};
use svc_shared::internal::PreflightSummary;

impl App {
    /// Brings the instances of the read model up to date. Only the service has readers.
    pub(crate) fn publish(&self) {
        if !self.is_server() {
            return;
        }
        let rows = self.registry().rows();
        self.read_model().replace_instances(self.instances_of(&rows));
        self.publish_health();
        if self.settings().instance_defaults.max_bridges.is_some() && self.live_count_changed() {
            // With a cap, the readiness of every project depends on how many bridges are live.
            self.read_model().replace_preflight(self.summaries(&self.projects()));
        }
    }

    /// Brings the projects of the read model up to date, with their readiness.
    pub(crate) fn publish_projects(&self) {
        if !self.is_server() {
            return;
        }
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
            app.publish();
        });
        if let Err(error) = done.await {
            tracing::error!(error = %error, "the page was not brought up to date");
        }
    }

    fn live_count_changed(&self) -> bool {
        let live = self.registry().bridges().iter().filter(|bridge| bridge.is_live()).count();
        self.inner.published_live.swap(live, std::sync::atomic::Ordering::Relaxed) != live
    }

    pub(crate) fn publish_health(&self) {
        if !self.is_server() {
            return;
        }
        self.read_model().set_health(self.health());
        self.read_model().set_login(self.login_status());
    }

    fn summaries(&self, projects: &Arc<Projects>) -> BTreeMap<String, PreflightSummary> {
        let rows: Vec<Bridge> = self.registry().bridges();
        let scene = self.scene(&rows);
        projects
            .iter()
            .map(|project: &Project| {
                (project.name.to_string(), self.preflight_summary(project, &scene))
            })
            .collect()
    }
}
