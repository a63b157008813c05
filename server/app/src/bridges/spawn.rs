//! Use-case: launch a bridge in a project, or hand out the one that is live.

use crate::AppError;
use crate::bridges::admissions::{Admissions, Admitted};
use crate::bridges::circumstances::has_terminal;
use crate::bridges::conversations::Conversations;
use crate::bridges::launch::{Form, LaunchRequest, Launcher};
use crate::bridges::lookup::unknown_instance;
use crate::bridges::options::{Options, options};
use crate::bridges::requests::Requests;
use crate::failpoint::hit;
use crate::hosted::HostedSessions;
use crate::registry::Registry;
use crate::supervise::watchers::Watchers;
use crate::tasks::blocking;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::admission::{Wanted, advice};
use svc_domain::argv::reads_as_option;
use svc_domain::bridge::{Beginning, Bridge, Live, Stage, State};
use svc_domain::conversation::TakeUp;
use svc_domain::restart::{Reboot, Restarts};
use svc_domain::worktree::WorktreeName;
use svc_projects::Project;
use svc_shared::api::instances::{Kind, Outcome, SpawnRequest, SpawnResult};
use svc_shared::ids::InstanceId;
use svc_shared::status::{NotCreated, Origin, ResumeMode, SpawnMode};
use svc_store::Inserted;

/// Starts bridges, and revives ended ones.
pub(crate) struct Starter {
    pub requests: Arc<Requests>,
    pub admissions: Admissions,
    pub launcher: Arc<Launcher>,
    pub watchers: Arc<Watchers>,
    pub conversations: Arc<Conversations>,
    pub hosted: Arc<HostedSessions>,
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
        self.spawn_as(request, None, wait).await
    }

    /// The same, with the id that a new row gets.
    ///
    /// # Errors
    /// As for [`Self::spawn`].
    pub async fn spawn_as(
        self: &Arc<Self>,
        request: SpawnRequest,
        id: Option<InstanceId>,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        let this = Arc::clone(self);
        self.requests
            .tasks
            .complete(async move { Box::pin(this.spawn_now(request, id, wait)).await })
            .await
    }

    async fn spawn_now(
        &self,
        request: SpawnRequest,
        id: Option<InstanceId>,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        let options = Options { id, ..self.options(&request).await? };
        let project = self.requests.lookup.catalog.named(&request.project)?;
        let resume_mode = match options.kind {
            Kind::Bridge(mode) => mode,
            Kind::Hosted => return self.hosted.spawn(&project, &options).await,
        };
        let (picked, take_up) = self.conversations.picked(&project, options.pick.clone()).await?;
        // The agent shows a session under the project's name.
        let name = match resume_mode {
            ResumeMode::Standard => options.custom_name.as_deref(),
            ResumeMode::Pty => None,
        };
        let wanted = Wanted {
            resume_mode,
            spawn_mode: options.spawn_mode,
            permission_mode: options.permission_mode,
            trust: options.trust,
            name_reads_as_option: reads_as_option(name.unwrap_or(project.name.as_str())),
        };
        let lock = self.requests.locks.project(&project.path).await?;
        let mut warnings = options.warnings.clone();
        match self.admissions.admitted(&project, wanted, picked).await? {
            Admitted::Launch { grant_trust } => {
                warnings.extend(advice(wanted).map(str::to_owned));
                let session = Some(&take_up).filter(|_| resume_mode == ResumeMode::Pty);
                let id = self.record_and_start(&project, &options, session, grant_trust).await?;
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

    pub(super) fn registry(&self) -> &Registry {
        &self.requests.lookup.registry
    }

    /// The row that `reference` named, as it is now.
    /// Another process may have forgotten it.
    pub(super) fn known(&self, id: &InstanceId, reference: &str) -> Result<Bridge, AppError> {
        self.registry().copies.bridge(id).ok_or_else(|| unknown_instance(reference))
    }

    async fn options(&self, request: &SpawnRequest) -> Result<Options, AppError> {
        let has_terminal = blocking(has_terminal).await?;
        options(&self.admissions.readiness.config, request, has_terminal)
    }

    async fn record_and_start(
        &self,
        project: &Project,
        options: &Options,
        session: Option<&TakeUp>,
        grant_trust: bool,
    ) -> Result<InstanceId, AppError> {
        let id = options.id.clone().map_or_else(new_instance_id, Ok)?;
        let label = options.custom_name.as_deref().unwrap_or(project.name.as_str());
        let spawn_mode = options.spawn_mode;
        let worktree =
            (session.is_some() && spawn_mode == SpawnMode::Worktree).then(|| WorktreeName::of(&id));
        let form = match session {
            None => Form::Server { label, spawn_mode },
            Some(take_up) => Form::Session { worktree: worktree.as_ref(), take_up },
        };
        let permission_mode = options.permission_mode;
        let request = LaunchRequest { project: &project.name, permission_mode, form };
        let prepared = self.launcher.prepare(request).await?;
        let now = self.launcher.transitions.clock.now();
        let state = State::Live(Live {
            stage: Stage::Launching { deadline: self.launcher.deadline() },
            stop_requested: false,
        });
        let bridge = Bridge {
            custom_name: options.custom_name.clone(),
            resume_mode: if session.is_some() { ResumeMode::Pty } else { ResumeMode::Standard },
            spawn_mode,
            permission_mode,
            worktree,
            started_at: Some(now),
            launch: Some(prepared.launch.clone()),
            restarts: Restarts { policy: options.restart, ..Restarts::default() },
            reboot: Reboot { choice: options.after_reboot, ..Reboot::default() },
            on_limit: options.on_limit,
            ..Bridge::begin(Beginning {
                id,
                project: project.name.clone(),
                cwd: project.path.clone(),
                origin: Origin::Spawned,
                state,
                at: now,
            })
        };
        hit("spawn.before_record").await;
        self.registry().copies.own(&bridge.id, &prepared.launch.id);
        let inserted = self.registry().insert(&bridge, &[], self.admissions.cap(), now).await;
        if !matches!(inserted, Ok(Inserted::Yes)) {
            self.registry().copies.disown(&bridge.id);
        }
        match inserted? {
            Inserted::Yes => {}
            Inserted::CapReached => return Err(self.admissions.cap_reached(&project.name)),
            Inserted::Occupied => {
                return Err(AppError::busy(
                    "another bridge of this project was started at the same moment; try again",
                ));
            }
        }
        if grant_trust && let Err(error) = self.admissions.trust.grant(project).await {
            self.registry().copies.disown(&bridge.id);
            self.registry().delete(&bridge.id, 1).await?;
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
        let bridge =
            self.launcher.settled(id, wait).await.ok_or_else(|| unknown_instance(id.as_str()))?;
        Ok(SpawnResult { instance: self.requests.records.of(&bridge).await?, outcome })
    }

    async fn reused(
        &self,
        id: &InstanceId,
        warnings: Vec<String>,
    ) -> Result<SpawnResult, AppError> {
        let bridge = self.known(id, id.as_str())?;
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
        Ok(SpawnResult { instance: self.requests.records.of(&bridge).await?, outcome })
    }
}

fn new_instance_id() -> Result<InstanceId, AppError> {
    uuid::Uuid::new_v4().to_string().parse().map_err(AppError::internal)
}
