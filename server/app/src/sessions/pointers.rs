//! Use-case: collect the agent's old bridge pointers (`agent-cli` §6.2).

use crate::agent::Agent;
use crate::bridges::unmanaged::Finder;
use crate::logs::retention::Retention;
use crate::projects::catalog::Catalog;
use std::sync::Arc;
use svc_agent::pointer::{Backup, Found, Stripped};
use svc_config::Config;
use svc_projects::Project;
use tracing::{debug, info, warn};

/// The agent's pointers of all projects.
pub(crate) struct Pointers {
    pub config: Arc<Config>,
    pub agent: Arc<Agent>,
    pub catalog: Arc<Catalog>,
    pub finder: Arc<Finder>,
    pub retention: Arc<Retention>,
}

impl Pointers {
    /// Removes the session from old pointers whose bridge does not live.
    /// Old means not written for a fortnight. The environments stay offered, and malformed pointers
    /// are deleted.
    pub async fn collect(self: &Arc<Self>) {
        let this = Arc::clone(self);
        match tokio::task::spawn_blocking(move || this.collect_now()).await {
            Ok(0) => {}
            Ok(collected) => info!("collected {collected} old bridge pointers of the agent"),
            Err(error) => warn!(error = %error, "collecting old bridge pointers was interrupted"),
        }
    }

    fn collect_now(&self) -> usize {
        let Ok(root) = std::fs::canonicalize(&self.config.projects_root) else { return 0 };
        let projects = self.catalog.all();
        let mine = projects.iter().filter(|project| project.path.starts_with(&root));
        mine.filter(|project| self.collect_one(project)).count()
    }

    fn collect_one(&self, project: &Project) -> bool {
        let now = self.retention.now();
        let done = match self.agent.pointer_found(&project.path) {
            Found::Nothing => return false,
            Found::Unreadable(error) => {
                warn!(
                    project.name = %project.name, error = %error,
                    "the agent's bridge pointer of a project cannot be read; check its permissions"
                );
                return false;
            }
            Found::Malformed(_) => self.agent.remove_old_malformed(&project.path, now),
            Found::Pointer(pointer) => {
                if !pointer.is_garbage(now) || self.finder.pointer_is_live(&pointer) {
                    return false;
                }
                self.agent.collect_pointer(&project.path, &pointer, Backup::None)
            }
        };
        match done {
            Ok(Stripped::Rewritten | Stripped::Deleted) => true,
            Ok(Stripped::Nothing) => false,
            Err(error) => {
                debug!(project.name = %project.name, error = %error, "a pointer stays as it is");
                false
            }
        }
    }
}
