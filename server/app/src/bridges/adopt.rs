//! Use-cases: make a row for a bridge that runs in a project without one.

use crate::bridges::circumstances::refuse;
use crate::bridges::requests::Requests;
use crate::bridges::transition::Transitions;
use crate::bridges::unmanaged::Finder;
use crate::bridges::unmanaged::Unmanaged;
use crate::failpoint::hit;
use crate::sessions::Sessions;
use crate::supervise::watchers::Watchers;
use crate::{AppError, Class};
use std::sync::Arc;
use svc_domain::admission::Obstacle;
use svc_domain::adoption::{NotAdoptable, adoptable};
use svc_domain::bridge::{Beginning, Bridge, Launch, Live, Stage, State};
use svc_domain::effect::{Effect, History};
use svc_ports::process::ProcessFacts;
use svc_projects::Project;
use svc_shared::api::instances::Instance;
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{Origin, PermissionMode, SpawnMode};
use svc_store::{Cap, Inserted};

/// Makes rows for bridges that run without one.
pub(crate) struct Adopter {
    pub requests: Arc<Requests>,
    pub finder: Arc<Finder>,
    pub transitions: Arc<Transitions>,
    pub watchers: Arc<Watchers>,
    pub sessions: Arc<Sessions>,
}

impl Adopter {
    /// Makes a record for the bridge that runs in a project without one.
    ///
    /// # Errors
    /// There is none that may be taken over; the message names the condition.
    pub async fn adopt(self: &Arc<Self>, name: &str) -> Result<Instance, AppError> {
        let (this, name) = (Arc::clone(self), name.to_owned());
        self.requests.tasks.complete(async move { this.adopt_now(&name).await }).await
    }

    async fn adopt_now(&self, name: &str) -> Result<Instance, AppError> {
        let project = self.requests.lookup.catalog.named(name)?;
        if let Some(alias_of) = &project.alias_of {
            return Err(refuse(&project.name, &Obstacle::Alias(alias_of.clone())));
        }
        let _lock = self.requests.locks.project(&project.path).await?;
        self.transitions.registry.live().await?;
        let found = self.finder.of(&project).await.ok_or_else(|| nothing(&project.name))?;
        let live = self.finder.live_bridge(&project.name);
        adoptable(&found.found, live.as_ref()).map_err(|why| refused(&project.name, &why))?;
        let id = self.record_unmanaged(&project, found).await?;
        let id = id.ok_or_else(|| {
            AppError::busy("a bridge of this project was started at the same moment; try again")
        })?;
        self.sessions.refresh().await;
        let bridge = self
            .transitions
            .registry
            .copies
            .bridge(&id)
            .ok_or_else(|| crate::bridges::lookup::unknown_instance(id.as_str()))?;
        self.requests.records.of(&bridge).await
    }

    /// Makes a record for the bridge that a launch found in its place.
    /// `None` when it is gone or has a record meanwhile. The caller holds the project lock.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) async fn take_over(
        &self,
        project: &Project,
    ) -> Result<Option<InstanceId>, AppError> {
        let Some(found) = self.finder.of(project).await else { return Ok(None) };
        if adoptable(&found.found, None).is_err() {
            return Ok(None);
        }
        self.record_unmanaged(project, found).await
    }

    /// Gives a lost bridge of this service its record back.
    pub(crate) async fn rediscover(&self, project: &Project) -> Result<(), AppError> {
        // Somebody launches or stops right now: the next look finds what comes of it.
        let Some(_lock) = self.requests.locks.try_project(&project.path).await else {
            return Ok(());
        };
        self.transitions.registry.live().await?;
        if self.finder.live_bridge(&project.name).is_some() {
            return Ok(());
        }
        let Some(found) = self.finder.of(project).await.filter(Unmanaged::is_lost) else {
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
        if self.transitions.registry.store.bridge(&id).await?.is_some() {
            return Ok(None);
        }
        let now = self.transitions.clock.now();
        let identity = found.facts.identity.clone();
        let launch = match &found.own_log {
            Some(set) => {
                // With another id a later stop would take it for a stranger's. The next look may
                // be able to read it.
                let Some(id) = self.finder.host.launch_of(&identity) else { return Ok(None) };
                Some(Launch {
                    id,
                    argv: found.facts.argv.iter().collect(),
                    log_stem: set.stem().to_owned(),
                    relaunched: false,
                })
            }
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
            spawn_mode: argument(&found.facts, "--spawn").unwrap_or(SpawnMode::SameDir),
            permission_mode: argument(&found.facts, "--permission-mode")
                .unwrap_or(PermissionMode::Inherit),
            started_at: Some(now),
            launch,
            process: Some(identity),
            anchor: found.anchor,
            ..Bridge::begin(Beginning {
                id,
                project: project.name.clone(),
                cwd: project.path.clone(),
                origin,
                state: State::Live(Live { stage, stop_requested: false }),
                at: now,
            })
        };
        hit("adopt.before_record").await;
        let effects: &[Effect] = match stage {
            Stage::Ready => &[Effect::Remember(History::Ready)],
            Stage::Launching { .. } | Stage::Registering { .. } => &[],
        };
        let history = self.transitions.history_of(&bridge, effects, now);
        match self.transitions.registry.insert(&bridge, &history, Cap::default(), now).await? {
            Inserted::Yes => {}
            Inserted::CapReached | Inserted::Occupied => return Ok(None),
        }
        hit("adopt.after_record").await;
        self.watchers.watch(&bridge.id, 1);
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
