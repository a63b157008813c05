//! Starts what is due, once.
//!
//! "Begun" is written first. What an interrupted start became is found by the id that a session
//! was given, or by the jobs that were not there before.

use super::LaunchPlans;
use crate::AppError;
use crate::bridges::transition::chance;
use crate::failpoint::hit;
use crate::jobs::Job;
use crate::nudge::SAFETY_TICK;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_domain::bridge::Bridge;
use svc_domain::hosted::State;
use svc_domain::plan_limit::due;
use svc_domain::redact::redact_text;
use svc_shared::api::instances::{ResumeRequest, SpawnRequest};
use svc_shared::api::jobs::DispatchRequest;
use svc_shared::ids::InstanceId;
use svc_shared::status::{ExitReason, PlannedState};
use svc_store::{Became, Planned, PlannedKind};
use tokio::time::Instant;
use tracing::{info, warn};

/// A job whose start was interrupted shows up within this time.
const SHOWS_UP: Duration = Duration::from_secs(90);

/// What cannot start for the moment is tried again after this time.
const AGAIN: Duration = Duration::from_secs(30);

/// So often.
const MOST_TRIES: u32 = 20;

/// How far the start of a session came before its service died.
enum Reached {
    /// There is a record, and no agent.
    Record,
    /// Its agent was started.
    Agent,
    /// Nobody knows yet.
    Unknown,
}

/// What this service knows of starts. Kept in memory only.
#[derive(Debug, Default)]
pub(super) struct Tries {
    /// How often something could not start for the moment.
    failed: Mutex<HashMap<InstanceId, u32>>,
    /// Since when an interrupted start is waited for.
    awaited: Mutex<HashMap<InstanceId, Instant>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tries {
    /// Whether there is one more try.
    fn may_again(&self, id: &InstanceId) -> bool {
        let mut failed = lock(&self.failed);
        let count = failed.entry(id.clone()).or_default();
        *count += 1;
        *count < MOST_TRIES
    }

    /// How long an interrupted start is still waited for.
    fn left(&self, id: &InstanceId) -> Option<Duration> {
        let since = *lock(&self.awaited).entry(id.clone()).or_insert_with(Instant::now);
        SHOWS_UP.checked_sub(since.elapsed()).filter(|left| !left.is_zero())
    }

    fn forget(&self, id: &InstanceId) {
        lock(&self.failed).remove(id);
        lock(&self.awaited).remove(id);
    }
}

impl LaunchPlans {
    /// Starts what is due, and tells how long nothing else happens.
    pub(crate) async fn start_due(&self) -> Result<Option<Duration>, AppError> {
        if self.transcripts.signs.limits.all().is_none() {
            // Whether the limit is still there is not known yet; who knows it, tells.
            self.publish().await?;
            return Ok(None);
        }
        let now = self.transcripts.clock.now();
        // What is shown as the limit is taken away at its reset.
        let reset = self.known_limit().and_then(|limit| limit.resets_at);
        let mut next = reset.map(|reset| reset.since(now));
        let mut failure = None;
        for one in self.registry.store.planned_launches().await? {
            let wait = match one.state {
                PlannedState::Waiting | PlannedState::Begun if !is_whole(&one) => {
                    self.failed(&one, damaged(), None).await
                }
                PlannedState::Waiting if one.due_at > self.transcripts.clock.now() => {
                    Ok(Some(one.due_at.since(self.transcripts.clock.now())))
                }
                PlannedState::Waiting => self.begin(&one).await,
                PlannedState::Begun => self.settle(&one).await,
                PlannedState::Started | PlannedState::Failed | PlannedState::Cancelled => Ok(None),
            };
            match wait {
                Ok(wait) => next = [next, wait].into_iter().flatten().min(),
                // One that cannot be recorded holds up no other.
                Err(error) => failure = Some(error),
            }
        }
        self.publish().await?;
        failure.map_or(Ok(next), Err)
    }

    /// Starts one that waited, unless the limit is still there.
    async fn begin(&self, one: &Planned) -> Result<Option<Duration>, AppError> {
        let now = self.transcripts.clock.now();
        if let Some(limit) = self.known_limit()
            && let Some(due_at) = due(&limit, now, chance()?)
        {
            let reason = "the agent stopped at a plan limit again, so that the launch waits for \
                          the next reset; cancel it if it is not wanted any more";
            self.registry.store.put_off_launch(&one.id, due_at, reason.to_owned()).await?;
            return Ok(Some(due_at.since(now)));
        }
        let before = match one.kind {
            PlannedKind::Session => "[]".to_owned(),
            PlannedKind::Job => match self.jobs.scan.now().await {
                Ok(jobs) => ids(&jobs)?,
                Err(error) => return self.failed(one, error, None).await,
            },
        };
        if !self.registry.store.begin_launch(&one.id, before).await? {
            return Ok(None);
        }
        self.publish().await?;
        hit("planned.after_begin").await;
        self.launch(one).await
    }

    /// Finds out what a start became that an earlier service died over, or makes it.
    async fn settle(&self, one: &Planned) -> Result<Option<Duration>, AppError> {
        if let Some(found) = self.started_as(one).await? {
            return match self.reached(one).await? {
                Reached::Agent => self.started(one, found).await.map(|()| None),
                Reached::Unknown => Ok(Some(SAFETY_TICK)),
                Reached::Record => self.launch_recorded(one, found).await,
            };
        }
        if one.kind == PlannedKind::Job
            && let Some(left) = self.tries.left(&one.id)
        {
            return Ok(Some(left));
        }
        self.launch(one).await
    }

    /// How far the start of a session came that is recorded.
    async fn reached(&self, one: &Planned) -> Result<Reached, AppError> {
        let interrupted = Some(ExitReason::LaunchInterrupted);
        if let Some(stored) = self.registry.fetch(&one.id).await? {
            let ended = stored.bridge().and_then(Bridge::ended);
            let end = ended.and_then(|ended| ended.reason);
            return Ok(if end == interrupted { Reached::Record } else { Reached::Agent });
        }
        let rows = &self.starter.hosted.parts.rows;
        let Some(session) = rows.get(&one.id) else { return Ok(Reached::Agent) };
        Ok(match &session.state {
            // The daemon is being asked.
            State::Starting => Reached::Unknown,
            State::Ended(ended) if ended.reason == interrupted => Reached::Record,
            State::Running | State::Stopping | State::Ended(_) => Reached::Agent,
        })
    }

    /// Starts a session whose record is all that there is of it.
    async fn launch_recorded(
        &self,
        one: &Planned,
        id: String,
    ) -> Result<Option<Duration>, AppError> {
        let rows = &self.starter.hosted.parts.rows;
        if let Some(session) = rows.get(&one.id) {
            // Without a conversation it cannot be resumed.
            rows.delete(&session).await?;
            return self.launch(one).await;
        }
        let resumed = self.starter.resume(&id, ResumeRequest::default(), Duration::ZERO).await;
        match resumed {
            Ok(_) => self.started(one, id).await.map(|()| None),
            Err(error) => self.failed(one, error, Some(id)).await,
        }
    }

    /// Starts one that is recorded as begun.
    async fn launch(&self, one: &Planned) -> Result<Option<Duration>, AppError> {
        let launched = match one.kind {
            PlannedKind::Session => self.launch_session(one).await,
            PlannedKind::Job => self.launch_job(one).await,
        };
        hit("planned.before_finish").await;
        match launched {
            Ok(id) => {
                self.started(one, id).await?;
                Ok(None)
            }
            Err(error) => {
                let found = self.started_as(one).await?;
                match (one.kind, found) {
                    // The agent took the job without saying so.
                    (PlannedKind::Job, Some(found)) => {
                        self.started(one, found).await?;
                        Ok(None)
                    }
                    (_, found) => self.failed(one, error, found).await,
                }
            }
        }
    }

    async fn launch_session(&self, one: &Planned) -> Result<String, AppError> {
        let request: SpawnRequest =
            serde_json::from_str(&one.request).map_err(AppError::internal)?;
        // Nobody is there to acknowledge anything, whatever a record says.
        let request = SpawnRequest { trust: None, ..request };
        let id = Some(one.id.clone());
        let started = self.starter.spawn_as(request, id, Duration::ZERO).await?;
        Ok(started.instance.instance_id.to_string())
    }

    async fn launch_job(&self, one: &Planned) -> Result<String, AppError> {
        let request: DispatchRequest =
            serde_json::from_str(&one.request).map_err(AppError::internal)?;
        let request = DispatchRequest { trust: None, ..request };
        Ok(self.jobs.dispatch(request).await?.id.to_string())
    }

    async fn started(&self, one: &Planned, id: String) -> Result<(), AppError> {
        info!("the launch {} was made after the reset of a plan limit", one.id.short());
        let became = Became { state: PlannedState::Started, started_as: Some(id), reason: None };
        let now = self.transcripts.clock.now();
        self.registry.store.finish_launch(&one.id, became, now).await?;
        self.tries.forget(&one.id);
        Ok(())
    }

    /// Tries again where that may help, and records the reason otherwise.
    ///
    /// `found` is a session that came of it and does not run.
    async fn failed(
        &self,
        one: &Planned,
        error: AppError,
        found: Option<String>,
    ) -> Result<Option<Duration>, AppError> {
        let (store, now) = (&self.registry.store, self.transcripts.clock.now());
        let reason = redact_text(&error.message);
        if found.is_none() && error.may_pass() && self.tries.may_again(&one.id) {
            store.put_off_launch(&one.id, now.plus(AGAIN), reason).await?;
            return Ok(Some(AGAIN));
        }
        warn!("the launch {} was not made after a plan limit: {reason}", one.id.short());
        // One that only waited cannot be finished.
        store.begin_launch(&one.id, one.jobs_before.clone()).await?;
        let became =
            Became { state: PlannedState::Failed, started_as: found, reason: Some(reason) };
        store.finish_launch(&one.id, became, now).await?;
        self.tries.forget(&one.id);
        Ok(None)
    }

    /// The session or job that a begun start became.
    async fn started_as(&self, one: &Planned) -> Result<Option<String>, AppError> {
        if one.kind == PlannedKind::Session {
            let row = self.registry.fetch(&one.id).await?.is_some();
            let hosted = self.registry.store.hosted_sessions().await?;
            let is_there = row || hosted.iter().any(|known| known.session.id == one.id);
            return Ok(is_there.then(|| one.id.to_string()));
        }
        let wanted: DispatchRequest =
            serde_json::from_str(&one.request).map_err(AppError::internal)?;
        let before: HashSet<String> =
            serde_json::from_str(&one.jobs_before).map_err(AppError::internal)?;
        let all = self.registry.store.planned_launches().await?;
        let taken: HashSet<&str> = all.iter().filter_map(|one| one.started_as.as_deref()).collect();
        let is_it = |job: &Job| {
            let id = job.record.id.to_string();
            let prompt = wanted.prompt.as_deref().unwrap_or_default().trim();
            let intent = job.file.as_ref().map(|file| file.intent.trim());
            let is_same = intent.is_some_and(|intent| prompt.is_empty() || intent == prompt)
                && job.record.project.as_deref() == Some(wanted.project.trim());
            (is_same && !before.contains(&id) && !taken.contains(id.as_str())).then_some(id)
        };
        Ok(self.jobs.scan.now().await?.iter().find_map(is_it))
    }
}

/// Whether the record of a launch can be read.
fn is_whole(one: &Planned) -> bool {
    match one.kind {
        PlannedKind::Session => serde_json::from_str::<SpawnRequest>(&one.request).is_ok(),
        PlannedKind::Job => {
            serde_json::from_str::<DispatchRequest>(&one.request).is_ok()
                && serde_json::from_str::<Vec<String>>(&one.jobs_before).is_ok()
        }
    }
}

fn damaged() -> AppError {
    AppError::invalid(
        "nothing was started, because the record of this launch is damaged; take it off the list \
         and launch it again",
    )
}

/// The ids of these jobs as JSON.
fn ids(jobs: &[Job]) -> Result<String, AppError> {
    let ids: Vec<&str> = jobs.iter().map(|job| job.record.id.as_str()).collect();
    serde_json::to_string(&ids).map_err(AppError::internal)
}
