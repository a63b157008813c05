//! What is so at the moment of a launch, gathered for the one decision function.

use crate::bridges::readiness::Readiness;
use crate::tasks::blocking;
use crate::{AppError, Class, log_files};
use std::collections::HashMap;
use std::sync::Arc;
use svc_config::Config;
use svc_domain::admission::{
    Admission, Circumstances, MIN_FREE_BYTES, Obstacle, Picked, Program, Wanted, admit,
};
use svc_domain::adoption::Unrecorded;
use svc_domain::argv::reads_as_option;
use svc_domain::bridge::Bridge;
use svc_projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{PermissionMode, ResumeMode, SpawnMode};

/// What is the same for all projects at one moment.
pub(crate) struct Scene {
    occupied: HashMap<ProjectName, InstanceId>,
    live_bridges: u32,
    program: Program,
    pub has_terminal: bool,
    disk_has_room: bool,
}

impl Readiness {
    /// What is the same for all projects now, given the live bridges.
    /// Blocks for a few looks.
    pub(crate) fn scene(&self, live: &[Bridge]) -> Scene {
        Scene {
            occupied: live
                .iter()
                .filter(|bridge| bridge.occupies_project())
                .map(|bridge| (bridge.project.clone(), bridge.id.clone()))
                .collect(),
            live_bridges: u32::try_from(live.len()).unwrap_or(u32::MAX),
            program: self.program_presence(),
            has_terminal: has_terminal(),
            disk_has_room: disk_has_room(&self.config),
        }
    }

    /// Circumstances of a launch in `project`. Blocks for a few looks.
    pub(crate) fn circumstances(
        &self,
        project: &Project,
        wanted: Wanted,
        scene: &Scene,
        unrecorded: Unrecorded,
    ) -> Circumstances {
        let config = &self.config;
        Circumstances {
            alias_of: project.alias_of.clone(),
            is_git_repo: project.is_git_repo(),
            // Only a worktree needs one, and looking costs file reads.
            has_commit: wanted.spawn_mode != SpawnMode::Worktree || project.has_commit(),
            foreign_git: match wanted.spawn_mode {
                SpawnMode::Worktree => project.foreign_git(),
                SpawnMode::SameDir | SpawnMode::Session => None,
            },
            bypass_allowed: config.project(&project.name).allow_bypass_permissions,
            inherits_bypass: wanted.permission_mode == PermissionMode::Inherit
                && self.agent.may_bypass(&project.path),
            live_standard: scene.occupied.get(&project.name).cloned(),
            unrecorded,
            trust: self.agent.trust(&project.path, project.git_root.as_deref()),
            live_bridges: scene.live_bridges,
            max_bridges: config.instance_defaults.max_bridges,
            program: scene.program.clone(),
            has_terminal: scene.has_terminal,
            picked: Picked::Nothing,
            disk_has_room: scene.disk_has_room,
        }
    }

    /// The same off the threads that serve requests.
    pub(crate) async fn circumstances_now(
        self: &Arc<Self>,
        project: &Project,
        wanted: Wanted,
        live: Vec<Bridge>,
    ) -> Result<Circumstances, AppError> {
        let (this, project) = (Arc::clone(self), project.clone());
        blocking(move || {
            let unrecorded = this.finder.unrecorded(&project);
            this.circumstances(&project, wanted, &this.scene(&live), unrecorded)
        })
        .await
    }

    /// What the agent and the configuration make of a launch with default options.
    pub(crate) fn default_wanted(&self, project: &ProjectName, resume_mode: ResumeMode) -> Wanted {
        let defaults = &self.config.instance_defaults;
        Wanted {
            resume_mode,
            spawn_mode: defaults.spawn_mode,
            permission_mode: defaults.permission_mode,
            trust: false,
            name_reads_as_option: reads_as_option(project.as_str()),
        }
    }

    fn program_presence(&self) -> Program {
        match self.agent.program() {
            Ok(_) => Program::Present,
            Err(error) => Program::Missing(error.to_string()),
        }
    }
}

/// Whether a pseudo-terminal can be made. Blocks for one look.
pub(crate) fn has_terminal() -> bool {
    std::fs::File::options().read(true).write(true).open("/dev/ptmx").is_ok()
}

/// Whether there is enough free space for a launch or a job. Blocks.
///
/// Unknown free space is no reason to refuse.
pub(crate) fn disk_has_room(config: &Config) -> bool {
    [config.state_dir.clone(), log_files::directory(config)]
        .iter()
        .filter_map(|dir| svc_process::files::free_bytes(dir).ok())
        .all(|free| free >= MIN_FREE_BYTES)
}

/// The verdict on a launch as its caller learns of it.
pub(crate) fn judged(
    project: &ProjectName,
    wanted: Wanted,
    now: &Circumstances,
) -> Result<Admission, AppError> {
    match admit(wanted, now) {
        Admission::Refused(obstacle) => Err(refuse(project, &obstacle)),
        granted => Ok(granted),
    }
}

/// The word of an obstacle on the wire.
pub(crate) fn code(obstacle: &Obstacle) -> ErrorCode {
    match obstacle {
        Obstacle::Alias(_) | Obstacle::OtherService(_) => ErrorCode::HeldElsewhere,
        Obstacle::Held { .. } => ErrorCode::Quarantined,
        Obstacle::MayBeLive(_) => ErrorCode::StillLive,
        Obstacle::NotGit
        | Obstacle::NoCommit
        | Obstacle::ForeignGit(_)
        | Obstacle::SessionNeedsStandard
        | Obstacle::UnknownConversation
        | Obstacle::SharedTranscripts
        | Obstacle::ProjectReadsAsOption
        | Obstacle::NameReadsAsOption => ErrorCode::InvalidValue,
        Obstacle::NoTerminal => ErrorCode::NotResumable,
        Obstacle::BypassForbidden | Obstacle::InheritedBypassForbidden => {
            ErrorCode::BypassForbidden
        }
        Obstacle::NotTrusted | Obstacle::TrustUnreadable(_) => ErrorCode::NotTrusted,
        Obstacle::Capacity { .. } => ErrorCode::Capacity,
        Obstacle::AgentMissing(_) => ErrorCode::AgentMissing,
        Obstacle::DiskFull => ErrorCode::DiskFull,
    }
}

/// An obstacle as the answer to a request about `project`.
pub(crate) fn refuse(project: &ProjectName, obstacle: &Obstacle) -> AppError {
    let class = match obstacle {
        Obstacle::Alias(_)
        | Obstacle::OtherService(_)
        | Obstacle::Held { .. }
        | Obstacle::MayBeLive(_)
        | Obstacle::NotTrusted
        | Obstacle::TrustUnreadable(_)
        | Obstacle::Capacity { .. }
        | Obstacle::NoTerminal => Class::Conflict,
        Obstacle::NotGit
        | Obstacle::NoCommit
        | Obstacle::ForeignGit(_)
        | Obstacle::SessionNeedsStandard
        | Obstacle::UnknownConversation
        | Obstacle::SharedTranscripts
        | Obstacle::ProjectReadsAsOption
        | Obstacle::NameReadsAsOption => Class::Invalid,
        Obstacle::BypassForbidden | Obstacle::InheritedBypassForbidden => Class::Forbidden,
        Obstacle::AgentMissing(_) => Class::Unavailable,
        Obstacle::DiskFull => Class::Storage,
    };
    let message = format!(
        "cannot launch in project {}: {}",
        svc_domain::log_escape::quoted(project.as_str()),
        obstacle.to_string().replace("<name>", project.as_str())
    );
    AppError::new(code(obstacle), class, message)
}
