//! Server Mode bridges that run in a project without a record here: started by hand, by another
//! service, or by this one before its database was put back.

use crate::bridges::circumstances::refuse;
use crate::failpoint::hit;
use crate::{App, AppError, Class};
use std::path::Path;
use svc_agent::log_set::LogSet;
use svc_agent::pointer::Pointer;
use svc_agent::role::{Role, debug_file, role};
use svc_domain::admission::Obstacle;
use svc_domain::adoption::{NotAdoptable, PointedAt, Unrecorded, adoptable, unrecorded};
use svc_domain::bridge::{Anchor, Bridge, Launch, Live, Stage, State};
use svc_domain::effect::{Effect, History};
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_ports::process::ProcessFacts;
use svc_projects::Project;
use svc_shared::api::instances::Instance;
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{Origin, PermissionMode, ResumeMode, SpawnMode};
use svc_store::{Cap, Inserted};
use uuid::Uuid;

/// The live process that the agent's pointer of a project names.
#[derive(Debug, Clone)]
pub(crate) struct Unmanaged {
    pub found: PointedAt,
    anchor: Anchor,
    facts: ProcessFacts,
    /// Its log, when that lies in this service's directory.
    own_log: Option<LogSet>,
}

impl Unmanaged {
    /// Whether this service started it: its log lies here, and no record names it.
    pub fn is_lost(&self) -> bool {
        self.own_log.is_some() && self.found.is_in_the_way()
    }

    /// The same bridge has the same id whenever and by whomever it is found (`agent-cli` §8.4).
    fn id(&self, project: &ProjectName) -> Result<InstanceId, AppError> {
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

impl App {
    /// Makes a record for the bridge that runs in a project without one.
    ///
    /// # Errors
    /// There is none that may be taken over; the message names the condition.
    pub async fn adopt(&self, name: &str) -> Result<Instance, AppError> {
        let (app, name) = (self.clone(), name.to_owned());
        self.run_to_completion(async move { app.adopt_now(&name).await }).await
    }

    async fn adopt_now(&self, name: &str) -> Result<Instance, AppError> {
        let project = self.project(name)?;
        if let Some(alias_of) = &project.alias_of {
            return Err(refuse(&project.name, &Obstacle::Alias(alias_of.clone())));
        }
        let _lock = self.lock_project(&project.path).await?;
        self.reload().await?;
        let found = self.unmanaged(&project).await.ok_or_else(|| nothing(&project.name))?;
        let live = self.live_bridge(&project.name);
        adoptable(&found.found, live.as_ref()).map_err(|why| refused(&project.name, &why))?;
        let id = self.record_unmanaged(&project, found).await?;
        let id = id.ok_or_else(|| {
            AppError::busy("a bridge of this project was started at the same moment; try again")
        })?;
        self.publish_sessions().await;
        let bridge =
            self.known(&id).ok_or_else(|| crate::bridges::lookup::unknown_instance(id.as_str()))?;
        Ok(self.instance_of(&bridge))
    }

    fn live_bridge(&self, project: &ProjectName) -> Option<InstanceId> {
        let live = self.registry().live().into_iter();
        live.filter(|b| b.occupies_project() && &b.project == project).map(|b| b.id).next()
    }

    /// The live process that the agent's pointer names, whatever it is.
    async fn unmanaged(&self, project: &Project) -> Option<Unmanaged> {
        let (app, project) = (self.clone(), project.clone());
        tokio::task::spawn_blocking(move || app.pointed_at(&project)).await.ok()?
    }

    /// The bridge that runs in a project's directory without a live record. Blocks: reads the
    /// pointer and the process table.
    pub(crate) fn unrecorded(&self, project: &Project) -> Unrecorded {
        let Some(pointed) = self.pointed_at(project) else { return Unrecorded::Nothing };
        let record = pointed.found.managed_as.as_ref().and_then(|id| self.known(id));
        let verdict = self.host().probe(&pointed.facts.identity);
        unrecorded(&pointed.found, record.as_ref().map(|bridge| (bridge, verdict)))
    }

    /// Whether a bridge could be taken over, and whether it is in the way of a launch. Blocks.
    pub(crate) fn look_for_unmanaged(&self, project: &Project) -> Option<(Unmanaged, bool)> {
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
        let pointer = self.agent().pointer(&project.path)?;
        let identity = self.pointer_identity(&pointer)?;
        Some((pointer, identity))
    }

    fn managed(&self, identity: &ProcessIdentity) -> Option<Bridge> {
        self.registry().find(|bridge| bridge.process.as_ref() == Some(identity))
    }

    fn pointed(
        &self,
        project: &Project,
        pointer: Pointer,
        identity: ProcessIdentity,
    ) -> Option<Unmanaged> {
        let facts = self.host().inspect(identity.pid).filter(|f| f.identity == identity)?;
        let program = self.agent().program().ok();
        let configured = program.as_deref().unwrap_or(Path::new("claude"));
        let log = debug_file(&facts.argv);
        let own_log = log.as_deref().and_then(|file| LogSet::of_debug_file(&self.log_dir(), file));
        let managed = self.managed(&identity);
        let found = PointedAt {
            pid: identity.pid,
            is_standard_bridge: role(&facts.argv, facts.exe.as_deref(), configured)
                == Role::StandardBridge,
            is_here: facts.cwd.as_deref() == Some(project.path.as_path()),
            is_own_user: facts.uid == rustix::process::geteuid().as_raw(),
            managed_as: managed.map(|bridge| bridge.id),
            is_of_other_service: own_log.is_none() && self.host().launch_of(&identity).is_some(),
        };
        let anchor = Anchor {
            environment_id: pointer.environment_id,
            session_id: pointer.session_id.filter(|session| !session.is_empty()),
        };
        Some(Unmanaged { found, anchor, facts, own_log })
    }

    /// Identity of the process that a pointer names; `None` when it cannot be attributed or the
    /// pointer is older than this boot.
    fn pointer_identity(&self, pointer: &Pointer) -> Option<ProcessIdentity> {
        let written_in_this_boot =
            self.agent().boot_time().is_none_or(|boot| pointer.written_at >= boot);
        let identity = ProcessIdentity {
            pid: pointer.pid?,
            start_ticks: pointer.start_ticks?,
            boot_id: self.host().boot_id().clone(),
        };
        written_in_this_boot.then_some(identity)
    }

    /// Whether the process that a pointer names lives, or may live.
    pub(crate) fn pointer_is_live(&self, pointer: &Pointer) -> bool {
        self.pointer_identity(pointer).is_some_and(|identity| match self.host().probe(&identity) {
            Verdict::Same | Verdict::Unknown => true,
            Verdict::Gone(_) => false,
        })
    }

    /// Makes a record for the bridge that a launch found in its place; `None` when it is gone or
    /// has a record meanwhile. The caller holds the project lock.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) async fn take_over_unmanaged(
        &self,
        project: &Project,
    ) -> Result<Option<InstanceId>, AppError> {
        let Some(found) = self.unmanaged(project).await else { return Ok(None) };
        if adoptable(&found.found, None).is_err() {
            return Ok(None);
        }
        self.record_unmanaged(project, found).await
    }

    /// Gives a lost bridge of this service its record back.
    pub(crate) async fn rediscover(&self, project: &Project) -> Result<(), AppError> {
        // Somebody launches or stops right now: the next look finds what comes of it.
        let Some(_lock) = self.try_lock_project(&project.path).await else { return Ok(()) };
        self.reload().await?;
        if self.live_bridge(&project.name).is_some() {
            return Ok(());
        }
        let Some(found) = self.unmanaged(project).await.filter(Unmanaged::is_lost) else {
            return Ok(());
        };
        let pid = found.found.pid;
        if let Some(id) = self.record_unmanaged(project, found).await? {
            tracing::info!(
                bridge.id = %id,
                "process {pid} is a bridge of this service without a record; it is managed again"
            );
        }
        Ok(())
    }

    async fn record_unmanaged(
        &self,
        project: &Project,
        found: Unmanaged,
    ) -> Result<Option<InstanceId>, AppError> {
        let id = found.id(&project.name)?;
        if self.store().bridge(&id).await?.is_some() {
            return Ok(None);
        }
        let now = self.clock().now();
        let identity = found.facts.identity.clone();
        let launch = match &found.own_log {
            Some(set) => Some(Launch {
                id: match self.host().launch_of(&identity) {
                    Some(id) => id,
                    None => crate::bridges::launch::new_launch_id()?,
                },
                argv: found.facts.argv.iter().collect(),
                log_stem: set.stem().to_owned(),
                relaunched: false,
            }),
            None => None,
        };
        // The agent writes its pointer when it has registered. One record says all of it: a death
        // in between would leave a bridge that starts for ever.
        let stage = if launch.is_none() || found.anchor.environment_id.is_some() {
            Stage::Ready
        } else {
            Stage::Registering { deadline: None }
        };
        let origin = if launch.is_some() { Origin::Rediscovered } else { Origin::Adopted };
        let bridge = Bridge {
            id,
            project: project.name.clone(),
            cwd: project.path.clone(),
            custom_name: None,
            resume_mode: ResumeMode::Standard,
            spawn_mode: argument(&found.facts, "--spawn").unwrap_or(SpawnMode::SameDir),
            permission_mode: argument(&found.facts, "--permission-mode")
                .unwrap_or(PermissionMode::Inherit),
            origin,
            generation: 1,
            state: State::Live(Live { stage, stop_requested: false }),
            status_since: now,
            started_at: Some(now),
            launch,
            process: Some(identity),
            anchor: found.anchor,
            notice: None,
            quarantine: None,
        };
        hit("adopt.before_record").await;
        let effects: &[Effect] = match stage {
            Stage::Ready => &[Effect::Remember(History::Ready)],
            Stage::Launching { .. } | Stage::Registering { .. } => &[],
        };
        let history = self.history(&bridge, effects, now);
        match self.store().insert_with(&bridge, &history, Cap::default(), now).await? {
            Inserted::Yes => {}
            Inserted::CapReached | Inserted::Occupied => return Ok(None),
        }
        hit("adopt.after_record").await;
        self.reload_one(&bridge.id).await?;
        self.watch_bridge(&bridge.id, 1);
        Ok(Some(bridge.id))
    }
}

fn nothing(project: &ProjectName) -> AppError {
    refused(project, &NotAdoptable::NothingLive)
}

fn refused(project: &ProjectName, why: &NotAdoptable) -> AppError {
    let code = match why {
        NotAdoptable::NothingLive | NotAdoptable::NotABridge(_) => ErrorCode::InvalidValue,
        NotAdoptable::Managed(_) | NotAdoptable::Occupied(_) => ErrorCode::Exists,
        NotAdoptable::Elsewhere(_) | NotAdoptable::OtherUser(_) | NotAdoptable::OtherService(_) => {
            ErrorCode::HeldElsewhere
        }
    };
    let project = svc_domain::log_escape::quoted(project.as_str());
    let message = format!("cannot take over a bridge in project {project}: {why}");
    AppError::new(code, Class::Conflict, message)
}

fn argument<T: std::str::FromStr>(facts: &ProcessFacts, flag: &str) -> Option<T> {
    let at = facts.argv.iter().position(|argument| argument == flag)?;
    facts.argv.get(at + 1)?.parse().ok()
}
