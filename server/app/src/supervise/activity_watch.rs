//! Shows readers what sessions do, when it changes.

use crate::hosted::HostedParts;
use crate::jobs::Jobs;
use crate::read_model::signs::Signs;
use crate::registry::Registry;
use crate::supervise::Supervision;
use crate::tasks::Tasks;
use std::sync::Arc;
use svc_agent::login::Login;
use svc_ports::Clock;

/// Shows readers what sessions do, when it changes.
pub(super) struct ActivityWatch {
    signs: Arc<Signs>,
    registry: Arc<Registry>,
    hosted: Arc<HostedParts>,
    jobs: Arc<Jobs>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
}

impl ActivityWatch {
    /// Shares the parts of the supervisor.
    pub fn new(of: &Supervision) -> Self {
        Self {
            signs: Arc::clone(&of.transcripts.signs),
            registry: Arc::clone(&of.writes.registry),
            hosted: Arc::clone(&of.hosted),
            jobs: Arc::clone(&of.jobs),
            clock: Arc::clone(&of.transcripts.clock),
            tasks: of.transcripts.tasks.clone(),
        }
    }

    /// Runs until the service ends.
    pub async fn run(&self) {
        let mut login = self.jobs.scan.agent.cli().login_changes();
        loop {
            let is_logged_out =
                matches!(*login.borrow_and_update(), Login::Answered { logged_in: false, .. });
            if self.signs.set_logged_out(is_logged_out, self.clock.now()) {
                if let Some(publisher) = &self.registry.publisher {
                    publisher.publish_rows().await;
                }
                self.hosted.rows.show();
                self.jobs.publish().await;
            }
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                Ok(()) = login.changed() => {}
                differing = self.signs.differing() => {
                    let bridge = |id| self.registry.copies.bridge(id);
                    let projects = differing.owners.iter().filter_map(bridge);
                    let projects: Vec<_> = projects.map(|bridge| bridge.project.clone()).collect();
                    self.registry.copies.recheck_projects(projects);
                    self.registry.publish().await;
                    if differing.others {
                        self.hosted.rows.show();
                    }
                    if differing.jobs {
                        self.jobs.publish().await;
                    }
                }
            }
        }
    }
}
