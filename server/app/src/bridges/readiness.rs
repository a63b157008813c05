//! Whether a launch in a project could happen now.
//! What the agent, the configuration and the machine say.

use crate::agent::Agent;
use crate::bridges::unmanaged::Finder;
use crate::projects::catalog::Catalog;
use crate::registry::copies::Copies;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use svc_config::Config;
use svc_domain::admission::Trust;
use svc_domain::adoption::Unrecorded;
use svc_projects::Project;
use svc_shared::api::projects;
use svc_shared::ids::ProjectName;
use svc_shared::internal::PreflightSummary;
use svc_shared::status::TrustState;

/// What a launch is judged by.
pub struct Readiness {
    pub(crate) config: Arc<Config>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) projects: Arc<Catalog>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) finder: Arc<Finder>,
}

impl Readiness {
    /// Whether the number of live bridges is limited.
    pub(crate) fn is_capped(&self) -> bool {
        self.config.instance_defaults.max_bridges.is_some()
    }

    /// Verdicts of all projects, by name.
    /// `unmanaged` are the bridges without a row as they were last seen. Blocks.
    pub(crate) fn summaries(
        &self,
        mut unmanaged: HashMap<ProjectName, Unrecorded>,
    ) -> BTreeMap<String, PreflightSummary> {
        let scene = self.scene(&self.copies.live());
        let projects = self.projects.all();
        let one = |project: &Project| {
            let unrecorded = unmanaged.remove(&project.name).unwrap_or(Unrecorded::Nothing);
            (project.name.to_string(), self.preflight_summary(project, &scene, unrecorded))
        };
        projects.iter().map(one).collect()
    }

    /// Records of all projects, by name. Blocks.
    pub(crate) fn records_by_name(&self) -> BTreeMap<String, projects::Project> {
        let projects = self.projects.all();
        projects.iter().map(|project| (project.name.to_string(), self.record(project))).collect()
    }

    /// The record of a project. Blocks for one look at the agent's file.
    pub(crate) fn record(&self, project: &Project) -> projects::Project {
        let trusted =
            self.agent.trust(&project.path, project.git_root.as_deref()) == Trust::Granted;
        projects::Project {
            name: project.name.clone(),
            path: project.shown_path.to_string_lossy().into_owned(),
            is_git_repo: project.is_git_repo(),
            has_claude_md: project.has_claude_md,
            has_claude_dir: project.has_claude_dir,
            trust_state: if trusted { TrustState::Trusted } else { TrustState::Untrusted }.into(),
            allow_bypass_permissions: self.config.project(&project.name).allow_bypass_permissions,
            alias_of: project.alias_of.clone(),
        }
    }
}
