//! Use-case: launch a bridge in a project, or hand out the one that is live.

use crate::bridges::adopt::Adopter;
use crate::bridges::circumstances::{judged, refuse};
use crate::bridges::launch::LaunchRequest;
use crate::bridges::launch::Launcher;
use crate::bridges::lookup::Lookup;
use crate::bridges::options::{Options, options};
use crate::bridges::readiness::Readiness;
use crate::bridges::wrong_end::WrongEnds;
use crate::failpoint::hit;
use crate::locks::Locks;
use crate::projects::trusting::Trust;
use crate::read_model::records::Records;
use crate::supervise::watchers::Watchers;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use std::sync::Arc;
use std::time::Duration;
use svc_config::Config;
use svc_domain::admission::{Admission, Wanted};
use svc_domain::argv::reads_as_option;
use svc_domain::bridge::{Beginning, Bridge, Live, Stage, State};
use svc_projects::Project;
use svc_shared::api::instances::{Kind, Outcome, SpawnRequest, SpawnResult};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::status::{NotCreated, Origin, ResumeMode};
use svc_store::{Cap, Inserted};

/// Looks at what runs in the project.
/// What was found there may be gone when it is taken over.
const LOOKS: u32 = 3;

/// What the launch comes to.
enum Admitted {
    Launch { grant_trust: bool },
    Reuse(InstanceId),
    TakenOver(InstanceId),
}

/// Starts bridges, and revives ended ones.
pub(crate) struct Starter {
    pub config: Arc<Config>,
    pub lookup: Arc<Lookup>,
    pub locks: Arc<Locks>,
    pub readiness: Arc<Readiness>,
    pub launcher: Arc<Launcher>,
    pub trust: Arc<Trust>,
    pub adopter: Arc<Adopter>,
    pub wrong_ends: Arc<WrongEnds>,
    pub watchers: Arc<Watchers>,
    pub records: Arc<Records>,
    pub tasks: Tasks,
}

impl Starter {
    /// Launches a bridge, or returns the project's live Server Mode bridge.
    ///
    /// Answers when the bridge is ready, has failed, or after `wait`. A launch that has begun goes
    /// on when the caller goes away.
    ///
    /// # Errors
    /// Nothing was started and nothing is left behind: no row, no file, no trust.
    pub async fn spawn(
        self: &Arc<Self>,
        request: SpawnRequest,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.spawn_now(request, wait).await }).await
    }

    async fn spawn_now(
        &self,
        request: SpawnRequest,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        let options = self.options_of_kind(&request)?;
        let project = self.lookup.catalog.named(&request.project)?;
        let wanted = Wanted {
            resume_mode: ResumeMode::Standard,
            spawn_mode: options.spawn_mode,
            permission_mode: options.permission_mode,
            trust: options.trust,
            name_reads_as_option: reads_as_option(
                options.custom_name.as_deref().unwrap_or(project.name.as_str()),
            ),
        };
        let lock = self.locks.project(&project.path).await?;
        let warnings = options.warnings.clone();
        match self.admitted(&project, wanted).await? {
            Admitted::Launch { grant_trust } => {
                let id = self.record_and_start(&project, &options, grant_trust).await?;
                drop(lock);
                let outcome = Outcome { created: true, reason: None, reason_code: None, warnings };
                self.result(&id, outcome, wait).await
            }
            Admitted::Reuse(id) => self.reused(&id, warnings).await,
            Admitted::TakenOver(id) => {
                drop(lock);
                let reason = "a bridge of this project was already running and is managed now";
                let outcome = Outcome {
                    created: false,
                    reason: Some(reason.to_owned()),
                    reason_code: Some(NotCreated::ExternalReattached.into()),
                    warnings,
                };
                self.result(&id, outcome, wait).await
            }
        }
    }

    /// Judges the launch, and makes the record of a bridge that runs in its place.
    /// The caller holds the project lock.
    async fn admitted(&self, project: &Project, wanted: Wanted) -> Result<Admitted, AppError> {
        for _ in 0..LOOKS {
            let live = self.launcher.transitions.registry.live().await?;
            let now = self.readiness.circumstances_now(project, wanted, live).await?;
            let found = match judged(&project.name, wanted, &now)? {
                Admission::Launch { grant_trust } => return Ok(Admitted::Launch { grant_trust }),
                Admission::Reuse(id) => return Ok(Admitted::Reuse(id)),
                Admission::Refused(obstacle) => return Err(refuse(&project.name, &obstacle)),
                Admission::TakeOver(_) => self.adopter.take_over(project).await?,
                Admission::Correct(id) => self.wrong_ends.corrected(&id).await?,
            };
            if let Some(id) = found {
                return Ok(Admitted::TakenOver(id));
            }
        }
        Err(AppError::busy(
            "the bridge that runs in this project changes too quickly to be judged; try again",
        ))
    }

    fn options_of_kind(&self, request: &SpawnRequest) -> Result<Options, AppError> {
        let options = options(&self.config, request)?;
        match options.kind {
            Kind::Bridge(_) => Ok(options),
            Kind::Hosted => Err(AppError::new(
                ErrorCode::HostedUnavailable,
                Class::Unavailable,
                "Direct Sessions are not part of this build; launch in Server Mode instead \
                 (`mode: standard`)",
            )),
        }
    }

    async fn record_and_start(
        &self,
        project: &Project,
        options: &Options,
        grant_trust: bool,
    ) -> Result<InstanceId, AppError> {
        let label = options.custom_name.as_deref().unwrap_or(project.name.as_str());
        let prepared = self
            .launcher
            .prepare(LaunchRequest {
                project: &project.name,
                label,
                spawn_mode: options.spawn_mode,
                permission_mode: options.permission_mode,
            })
            .await?;
        let now = self.launcher.transitions.clock.now();
        let state = State::Live(Live {
            stage: Stage::Launching { deadline: self.launcher.deadline() },
            stop_requested: false,
        });
        let bridge = Bridge {
            custom_name: options.custom_name.clone(),
            spawn_mode: options.spawn_mode,
            permission_mode: options.permission_mode,
            started_at: Some(now),
            launch: Some(prepared.launch.clone()),
            ..Bridge::begin(Beginning {
                id: new_instance_id()?,
                project: project.name.clone(),
                cwd: project.path.clone(),
                origin: Origin::Spawned,
                state,
                at: now,
            })
        };
        hit("spawn.before_record").await;
        self.launcher.transitions.registry.copies.own(&bridge.id, &prepared.launch.id);
        let inserted =
            self.launcher.transitions.registry.insert(&bridge, &[], self.cap(), now).await;
        if !matches!(inserted, Ok(Inserted::Yes)) {
            self.launcher.transitions.registry.copies.disown(&bridge.id);
        }
        match inserted? {
            Inserted::Yes => {}
            Inserted::CapReached => return Err(self.cap_reached(&project.name)),
            Inserted::Occupied => {
                return Err(AppError::busy(
                    "another bridge of this project was started at the same moment; try again",
                ));
            }
        }
        if grant_trust && let Err(error) = self.trust.grant(project).await {
            self.launcher.transitions.registry.copies.disown(&bridge.id);
            self.launcher.transitions.registry.delete(&bridge.id, 1).await?;
            return Err(error);
        }
        if self.launcher.start(&bridge, prepared).await? {
            self.watchers.launched(&bridge);
        }
        Ok(bridge.id)
    }

    /// The row as the answer of a launch.
    pub(crate) async fn result(
        &self,
        id: &InstanceId,
        outcome: Outcome,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        let bridge = self
            .launcher
            .settled(id, wait)
            .await
            .ok_or_else(|| crate::bridges::lookup::unknown_instance(id.as_str()))?;
        Ok(SpawnResult { instance: self.records.of(&bridge).await?, outcome })
    }

    async fn reused(
        &self,
        id: &InstanceId,
        warnings: Vec<String>,
    ) -> Result<SpawnResult, AppError> {
        let bridge = self
            .launcher
            .transitions
            .registry
            .copies
            .bridge(id)
            .ok_or_else(|| crate::bridges::lookup::unknown_instance(id.as_str()))?;
        let outcome = Outcome {
            created: false,
            reason: Some(format!(
                "the project's Server Mode bridge {} is already {}",
                id.short(),
                bridge.status()
            )),
            reason_code: Some(NotCreated::StandardAlreadyLive.into()),
            warnings,
        };
        Ok(SpawnResult { instance: self.records.of(&bridge).await?, outcome })
    }

    pub(crate) fn cap(&self) -> Cap {
        Cap { max_live: self.config.instance_defaults.max_bridges }
    }

    pub(crate) fn cap_reached(&self, project: &svc_shared::ids::ProjectName) -> AppError {
        let max = self.config.instance_defaults.max_bridges.unwrap_or(0);
        refuse(project, &svc_domain::admission::Obstacle::Capacity { max })
    }
}

fn new_instance_id() -> Result<InstanceId, AppError> {
    uuid::Uuid::new_v4().to_string().parse().map_err(AppError::internal)
}
