//! Use-case: collect the agent's pointers that nobody needs any more (`agent-cli` §6.2).

use crate::App;
use svc_agent::pointer::{Backup, Found, Stripped};
use svc_projects::Project;
use tracing::{debug, info, warn};

impl App {
    /// Takes the session out of pointers that have not been written for a fortnight and whose bridge
    /// does not live. Their environments stay offered; what is no pointer at all goes.
    pub(crate) async fn collect_pointers(&self) {
        let app = self.clone();
        match tokio::task::spawn_blocking(move || app.collect_pointers_now()).await {
            Ok(0) => {}
            Ok(collected) => info!("collected {collected} old bridge pointers of the agent"),
            Err(error) => warn!(error = %error, "collecting old bridge pointers was interrupted"),
        }
    }

    fn collect_pointers_now(&self) -> usize {
        let Ok(root) = std::fs::canonicalize(&self.settings().projects_root) else { return 0 };
        let projects = self.projects();
        let mine = projects.iter().filter(|project| project.path.starts_with(&root));
        mine.filter(|project| self.collect_pointer(project)).count()
    }

    fn collect_pointer(&self, project: &Project) -> bool {
        let now = self.log_care().now(self.clock().now());
        let done = match self.agent().pointer_found(&project.path) {
            Found::Nothing => return false,
            Found::Unreadable(error) => {
                warn!(
                    project.name = %project.name, error = %error,
                    "the agent's bridge pointer of a project cannot be read; check its permissions"
                );
                return false;
            }
            Found::Malformed(_) => self.agent().remove_old_malformed(&project.path, now),
            Found::Pointer(pointer) => {
                if !pointer.is_garbage(now) || self.pointer_is_live(&pointer) {
                    return false;
                }
                self.agent().collect_pointer(&project.path, &pointer, Backup::None)
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
