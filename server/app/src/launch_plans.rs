//! Use-cases: launches that wait for the reset of a plan limit.
//!
//! A launch is recorded before it is promised. Its session has its id from then on, so that a
//! start that was interrupted is found again and never made twice. `start` does what is due.

mod start;

use crate::bridges::circumstances::has_terminal;
use crate::bridges::options::options;
use crate::bridges::spawn::Starter;
use crate::bridges::transition::chance;
use crate::jobs::Jobs;
use crate::ops::reserve;
use crate::registry::Registry;
use crate::tasks::blocking;
use crate::transcripts::Transcripts;
use crate::{AppError, Class};
use start::Tries;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::plan_limit::due;
use svc_domain::redact::redact_text;
use svc_projects::Project;
use svc_shared::Timestamp;
use svc_shared::api::instances::{Kind, SpawnRequest};
use svc_shared::api::jobs::DispatchRequest;
use svc_shared::api::limits::PlanLimit;
use svc_shared::api::planned_launches::{PlanLaunch, PlannedLaunch, PlannedLaunches};
use svc_shared::error::ErrorCode;
use svc_shared::status::{LaunchMode, PermissionMode, PlannedState, ResumeMode};
use svc_store::{Planned, PlannedKind};
use tokio::sync::Mutex;

/// What became of a launch is listed for so long, milliseconds.
const KEPT: i64 = 7 * 24 * 3600 * 1000;

/// Most launches that wait at the same time.
const MOST: u32 = 200;

/// Longest prompt that a list shows, characters.
const PROMPT: usize = 200;

/// The transcripts are read within this time after a start, or somebody asks again.
const READING: Duration = Duration::from_secs(5);

/// Launches that wait for the reset of a plan limit.
///
/// What has begun goes on when the caller goes away. There is one of it in a process: whoever read
/// the launches before has shown them before.
pub struct LaunchPlans {
    transcripts: Arc<Transcripts>,
    registry: Arc<Registry>,
    jobs: Arc<Jobs>,
    starter: Arc<Starter>,
    tries: Tries,
    /// Held from reading the launches until they are shown.
    publishing: Mutex<()>,
}

/// What is started, checked.
struct Order {
    kind: PlannedKind,
    request: String,
    project: Project,
    permission_mode: PermissionMode,
    trust: bool,
}

impl LaunchPlans {
    /// Shares these parts.
    pub(crate) fn new(
        transcripts: &Arc<Transcripts>,
        registry: &Arc<Registry>,
        jobs: &Arc<Jobs>,
        starter: &Arc<Starter>,
    ) -> Self {
        Self {
            transcripts: Arc::clone(transcripts),
            registry: Arc::clone(registry),
            jobs: Arc::clone(jobs),
            starter: Arc::clone(starter),
            tries: Tries::default(),
            publishing: Mutex::default(),
        }
    }

    /// The limit that a launch of now would run into, as far as is known.
    ///
    /// Of several limits the one that is reset last. `None` while nobody knows, too.
    fn known_limit(&self) -> Option<PlanLimit> {
        let now = self.transcripts.clock.now();
        let all = self.transcripts.signs.limits.all().unwrap_or_default();
        let in_force = |limit: &PlanLimit| limit.resets_at.is_some_and(|reset| reset > now);
        let limits = all.into_values().map(|one| one.limit).filter(in_force);
        limits.max_by_key(|limit| limit.resets_at).map(|limit| PlanLimit {
            // That is about the conversation, not about the account.
            continues_at: None,
            hint: None,
            ..limit
        })
    }

    /// The limit that a launch of now would run into; `None` where there is none.
    ///
    /// A command, and a service that has just started, read the transcripts first.
    async fn limit(&self) -> Result<Option<PlanLimit>, AppError> {
        let limits = &self.transcripts.signs.limits;
        let mut changes = limits.changes();
        self.read().await;
        let read = async { while limits.all().is_none() && changes.changed().await.is_ok() {} };
        if tokio::time::timeout(READING, read).await.is_err() {
            return Err(AppError::busy(
                "nobody knows yet whether a plan limit is in force, because the transcripts are \
                 still being read; try again in a moment",
            ));
        }
        Ok(self.known_limit())
    }

    /// Reads the transcripts in a command, once. A service reads them by itself.
    async fn read(&self) {
        if self.transcripts.signs.limits.all().is_none() {
            self.transcripts.read_once().await;
        }
    }

    /// The launches that wait and that did, and the limit that is known.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn list(&self) -> Result<PlannedLaunches, AppError> {
        let all = self.registry.store.planned_launches().await?;
        let launches = all.iter().map(shown).collect();
        self.read().await;
        Ok(PlannedLaunches { limit: self.known_limit(), launches })
    }

    /// Records a launch that starts after the reset of the limit that is known.
    ///
    /// `None` where no limit is known: it can start now. What a launch of now would be refused
    /// for by a person's choice is refused here. Trust is granted here and never at the reset.
    ///
    /// # Errors
    /// The request cannot be used, or nothing was written.
    pub async fn plan(
        self: &Arc<Self>,
        wanted: PlanLaunch,
    ) -> Result<Option<PlannedLaunch>, AppError> {
        let this = Arc::clone(self);
        self.transcripts.tasks.complete(async move { this.plan_now(wanted).await }).await
    }

    async fn plan_now(&self, wanted: PlanLaunch) -> Result<Option<PlannedLaunch>, AppError> {
        let order = self.order(wanted).await?;
        let Some(limit) = self.limit().await? else { return Ok(None) };
        let now = self.transcripts.clock.now();
        let Some(due_at) = due(&limit, now, chance()?) else { return Ok(None) };
        let hosted = &self.starter.hosted.parts;
        let grant = hosted.admitted(&order.project, order.permission_mode, order.trust).await?;
        let planned = Planned {
            id: uuid::Uuid::new_v4().to_string().parse().map_err(AppError::internal)?,
            kind: order.kind,
            request: order.request,
            asked_at: now,
            due_at,
            state: PlannedState::Waiting,
            jobs_before: String::new(),
            started_as: None,
            reason: None,
        };
        let store = &self.registry.store;
        store.drop_launches(Timestamp::from_millis(now.as_millis() - KEPT)).await?;
        if !store.plan_launch(&planned, MOST).await? {
            return Err(AppError::new(
                ErrorCode::Capacity,
                Class::Conflict,
                format!(
                    "{MOST} launches wait for the reset already, which is the most that are kept; \
                     cancel one with `svc launches cancel` or on the page"
                ),
            ));
        }
        if grant && let Err(error) = self.starter.admissions.trust.grant(&order.project).await {
            store.cancel_launch(&planned.id, now).await?;
            return Err(error);
        }
        self.tell().await;
        Ok(Some(shown(&planned)))
    }

    /// Checks what is to be started.
    async fn order(&self, wanted: PlanLaunch) -> Result<Order, AppError> {
        let catalog = &self.transcripts.catalog;
        match (wanted.session, wanted.job) {
            (Some(session), None) => {
                let has_terminal = blocking(has_terminal).await?;
                let options = options(&self.transcripts.config, &session, has_terminal)?;
                let mode = match options.kind {
                    Kind::Bridge(ResumeMode::Standard) => LaunchMode::Standard,
                    Kind::Bridge(ResumeMode::Pty) => LaunchMode::Pty,
                    Kind::Hosted => LaunchMode::Hosted,
                };
                let project = catalog.named(&session.project)?;
                // What was chosen is kept: the configuration may be another one at the reset.
                let request = SpawnRequest {
                    mode: Some(mode.as_str().to_owned()),
                    channel: None,
                    resume_mode: None,
                    trust: None,
                    ..session
                };
                Ok(Order {
                    kind: PlannedKind::Session,
                    request: serde_json::to_string(&request).map_err(AppError::internal)?,
                    project,
                    permission_mode: options.permission_mode,
                    trust: options.trust,
                })
            }
            (None, Some(job)) => {
                let project = catalog.named(job.project.trim())?;
                let permission_mode = self.jobs.checked(&job)?;
                let request = DispatchRequest { trust: None, ..job.clone() };
                Ok(Order {
                    kind: PlannedKind::Job,
                    request: serde_json::to_string(&request).map_err(AppError::internal)?,
                    project,
                    permission_mode,
                    trust: job.trust.unwrap_or(false),
                })
            }
            (Some(_), Some(_)) | (None, None) => Err(AppError::invalid(
                "give either `session` or `job`, because one launch is planned at a time",
            )),
        }
    }

    /// Takes back a launch that waits, or takes one that failed off the list.
    ///
    /// `id` may be the beginning of one.
    ///
    /// # Errors
    /// No launch of this id waits or failed.
    pub async fn cancel(self: &Arc<Self>, id: &str) -> Result<PlannedLaunch, AppError> {
        let (this, id) = (Arc::clone(self), id.to_owned());
        self.transcripts.tasks.complete(async move { this.cancel_now(&id).await }).await
    }

    async fn cancel_now(&self, id: &str) -> Result<PlannedLaunch, AppError> {
        // An agent that fills the disk must not have its next launch go on waiting.
        reserve::make_room(&self.transcripts.config.state_dir).await;
        let store = &self.registry.store;
        let all = store.planned_launches().await?;
        let mut fitting = all.iter().filter(|one| {
            let is_left = matches!(one.state, PlannedState::Waiting | PlannedState::Failed);
            is_left && !id.is_empty() && one.id.as_str().starts_with(id)
        });
        let unknown = || {
            AppError::new(
                ErrorCode::NotFound,
                Class::NotFound,
                "no launch of this id waits, because it was started or cancelled or never was; \
                 `svc launches` lists them",
            )
        };
        let one = fitting.next().ok_or_else(unknown)?;
        if fitting.next().is_some() {
            return Err(AppError::invalid(
                "several launches have an id that begins like this; give more of it, as \
                 `svc launches --json` lists it",
            ));
        }
        let is_done = match one.state {
            PlannedState::Failed => store.dismiss_launch(&one.id).await?,
            _ => store.cancel_launch(&one.id, self.transcripts.clock.now()).await?,
        };
        if !is_done {
            // Its start began in this moment.
            return Err(unknown());
        }
        self.tell().await;
        let state = match one.state {
            PlannedState::Failed => PlannedState::Failed,
            _ => PlannedState::Cancelled,
        };
        Ok(PlannedLaunch { state: state.into(), ..shown(one) })
    }

    /// Tells readers, or the service whose command this is.
    async fn tell(&self) {
        self.registry.tell_others();
        if let Err(error) = self.publish().await {
            tracing::debug!(%error, "launches that wait are shown later");
        }
    }

    /// Shows readers what waits, what failed and the limit that is known.
    pub(crate) async fn publish(&self) -> Result<(), AppError> {
        let Some(publisher) = &self.registry.publisher else { return Ok(()) };
        let _publishing = self.publishing.lock().await;
        let all = self.registry.store.planned_launches().await?;
        let is_shown = |one: &&Planned| match one.state {
            PlannedState::Waiting | PlannedState::Begun | PlannedState::Failed => true,
            PlannedState::Started | PlannedState::Cancelled => false,
        };
        let launches: BTreeMap<String, PlannedLaunch> =
            all.iter().filter(is_shown).map(|one| (one.id.to_string(), shown(one))).collect();
        publisher.read_model.replace_launches(launches, self.known_limit());
        Ok(())
    }
}

/// A launch as it is listed.
fn shown(one: &Planned) -> PlannedLaunch {
    let (project, mode, prompt) = match one.kind {
        PlannedKind::Session => {
            let request: SpawnRequest = serde_json::from_str(&one.request).unwrap_or_default();
            (request.project, request.mode.unwrap_or_default(), None)
        }
        PlannedKind::Job => {
            let request: DispatchRequest = serde_json::from_str(&one.request).unwrap_or_default();
            let prompt = request.prompt.unwrap_or_default();
            let prompt = redact_text(&prompt).chars().take(PROMPT).collect();
            (request.project, "background".to_owned(), Some(prompt))
        }
    };
    PlannedLaunch {
        id: one.id.clone(),
        project,
        mode,
        prompt,
        asked_at: one.asked_at,
        due_at: one.due_at,
        state: one.state.into(),
        started_as: one.started_as.clone(),
        reason: one.reason.clone(),
    }
}
