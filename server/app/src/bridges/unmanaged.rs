//! Server Mode bridges that run in a project without a row here.
//! Started by hand, by another service, or by this one before its database was put back.

use crate::agent::Agent;
use crate::registry::copies::Copies;
use crate::{AppError, log_files};
use std::path::Path;
use std::sync::Arc;
use svc_agent::log_set::LogSet;
use svc_agent::pointer::Pointer;
use svc_agent::role::{Role, debug_file, role};
use svc_config::Config;
use svc_domain::adoption::{PointedAt, Unrecorded, adoptable, unrecorded};
use svc_domain::bridge::{Anchor, Bridge};
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_ports::ProcessHost;
use svc_ports::process::ProcessFacts;
use svc_projects::Project;
use svc_shared::ids::{InstanceId, ProjectName};
use uuid::Uuid;

/// The live process that the agent's pointer of a project names.
#[derive(Debug, Clone)]
pub(crate) struct Unmanaged {
    pub found: PointedAt,
    pub anchor: Anchor,
    pub facts: ProcessFacts,
    /// Its log, when that lies in this service's directory.
    pub own_log: Option<LogSet>,
}

impl Unmanaged {
    /// Whether this service started it: its log lies here, and no record names it.
    pub fn is_lost(&self) -> bool {
        self.own_log.is_some() && self.found.is_in_the_way()
    }

    /// The id of the bridge, which is the same whenever it is found (`agent-cli` §8.4).
    pub fn id(&self, project: &ProjectName) -> Result<InstanceId, AppError> {
        let id = if self.own_log.is_some() {
            let environment = self.anchor.environment_id.as_deref().unwrap_or_default();
            let (pid, start) = (self.facts.identity.pid, self.facts.identity.start_ticks);
            let name = format!("pointer:{project}:{environment}:{pid}:{start}");
            Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes())
        } else {
            Uuid::new_v4()
        };
        id.to_string().parse().map_err(AppError::internal)
    }
}

/// What a process shows of being the Server Mode bridge of a directory.
/// `configured` is the agent program of this service.
pub(crate) fn seen(facts: &ProcessFacts, dir: &Path, configured: &Path) -> PointedAt {
    PointedAt {
        pid: facts.identity.pid,
        is_standard_bridge: role(&facts.argv, facts.exe.as_deref(), configured)
            == Role::StandardBridge,
        is_here: facts.cwd.as_deref() == Some(dir),
        is_own_user: facts.uid == rustix::process::geteuid().as_raw(),
        managed_as: None,
        is_of_other_service: false,
    }
}

/// Finds the bridge that the agent's pointer of a project names.
pub(crate) struct Finder {
    pub config: Arc<Config>,
    pub agent: Arc<Agent>,
    pub host: Arc<dyn ProcessHost>,
    pub copies: Arc<Copies>,
}

impl Finder {
    /// The live bridge of a project that has a row.
    pub fn live_bridge(&self, project: &ProjectName) -> Option<InstanceId> {
        let live = self.copies.live().into_iter();
        live.filter(|b| b.occupies_project() && &b.project == project).map(|b| b.id).next()
    }

    /// The live process that the agent's pointer names, whatever it is.
    pub async fn of(self: &Arc<Self>, project: &Project) -> Option<Unmanaged> {
        let (this, project) = (Arc::clone(self), project.clone());
        tokio::task::spawn_blocking(move || this.pointed_at(&project)).await.ok()?
    }

    /// The bridge that runs in a project's directory without a live record.
    /// Blocks: reads the pointer and the process table.
    pub fn unrecorded(&self, project: &Project) -> Unrecorded {
        let Some(pointed) = self.pointed_at(project) else { return Unrecorded::Nothing };
        let record = pointed.found.managed_as.as_ref().and_then(|id| self.copies.bridge(id));
        let verdict = self.host.probe(&pointed.facts.identity);
        unrecorded(&pointed.found, record.as_ref().map(|bridge| (bridge, verdict)))
    }

    /// Whether a bridge could be taken over, and whether it is in the way of a launch.
    /// Blocks.
    pub fn look(&self, project: &Project) -> Option<(Unmanaged, bool)> {
        let (pointer, identity) = self.pointer_now(project)?;
        // Most pointers name a bridge with a record: nothing else about it is asked for.
        if self.managed(&identity).is_some() {
            return None;
        }
        let found = self.pointed(project, pointer, identity);
        let found = found.filter(|found| found.found.is_in_the_way())?;
        let live = self.live_bridge(&project.name);
        let may_adopt =
            project.alias_of.is_none() && adoptable(&found.found, live.as_ref()).is_ok();
        Some((found, may_adopt))
    }

    /// Blocks: reads the pointer and the process table.
    fn pointed_at(&self, project: &Project) -> Option<Unmanaged> {
        let (pointer, identity) = self.pointer_now(project)?;
        self.pointed(project, pointer, identity)
    }

    fn pointer_now(&self, project: &Project) -> Option<(Pointer, ProcessIdentity)> {
        let pointer = self.agent.pointer(&project.path)?;
        let identity = self.pointer_identity(&pointer)?;
        Some((pointer, identity))
    }

    fn managed(&self, identity: &ProcessIdentity) -> Option<Bridge> {
        self.copies.find(|bridge| bridge.process.as_ref() == Some(identity))
    }

    fn pointed(
        &self,
        project: &Project,
        pointer: Pointer,
        identity: ProcessIdentity,
    ) -> Option<Unmanaged> {
        let facts = self.host.inspect(identity.pid).filter(|f| f.identity == identity)?;
        let program = self.agent.program().ok();
        let configured = program.as_deref().unwrap_or(Path::new("claude"));
        let log = debug_file(&facts.argv);
        let own_log = log
            .as_deref()
            .and_then(|file| LogSet::of_debug_file(&log_files::directory(&self.config), file));
        let managed = self.managed(&identity);
        let found = PointedAt {
            managed_as: managed.map(|bridge| bridge.id),
            is_of_other_service: own_log.is_none() && self.host.launch_of(&identity).is_some(),
            ..seen(&facts, &project.path, configured)
        };
        let anchor = Anchor {
            environment_id: pointer.environment_id,
            session_id: pointer.session_id.filter(|session| !session.is_empty()),
        };
        Some(Unmanaged { found, anchor, facts, own_log })
    }

    /// Identity of the process that a pointer names.
    /// `None` when it cannot be attributed or the pointer is older than this boot.
    fn pointer_identity(&self, pointer: &Pointer) -> Option<ProcessIdentity> {
        let written_in_this_boot =
            self.agent.boot_time().is_none_or(|boot| pointer.written_at >= boot);
        let identity = ProcessIdentity {
            pid: pointer.pid?,
            start_ticks: pointer.start_ticks?,
            boot_id: self.host.boot_id().clone(),
        };
        written_in_this_boot.then_some(identity)
    }

    /// Whether the process that a pointer names lives, or may live.
    pub fn pointer_is_live(&self, pointer: &Pointer) -> bool {
        self.pointer_identity(pointer).is_some_and(|identity| match self.host.probe(&identity) {
            Verdict::Same | Verdict::Unknown => true,
            Verdict::Gone(_) => false,
        })
    }
}
