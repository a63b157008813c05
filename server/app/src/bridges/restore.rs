//! Use-case: restore what a reboot of the machine ended.
//!
//! A restore makes the restart of each session due; the supervisor starts them as it starts every
//! other restart. What is due is in the records, so a service that is killed half-way goes on with
//! the rest. This file only follows what becomes of them.

use crate::bridges::restart_rules::rules;
use crate::bridges::transition::{Changed, Transitions};
use crate::read_model::ReadModel;
use crate::read_model::records::Records;
use crate::supervise::restarter::Progress;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_config::Config;
use svc_domain::bridge::{Bridge, Stage, State};
use svc_domain::decide::Command;
use svc_domain::restart::{AT_ONCE, is_ended_by_reboot, is_restore_candidate};
use svc_shared::cause;
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::internal::restore::{
    Dismissed, RestoreCandidate, RestoreItem, RestoreJob, RestoreOffer, RestoreRequest,
    RestoreState, RestoreStep, Restores,
};
use svc_shared::status::ResumeMode;
use svc_shared::stream::Record;
use svc_store::Cap;
use tracing::info;

/// Most sessions that start at the same time.
pub const MOST_AT_ONCE: u64 = 4;

/// Restores what a reboot ended, and follows what becomes of it.
pub struct Restore {
    pub(crate) config: Arc<Config>,
    pub(crate) transitions: Arc<Transitions>,
    pub(crate) records: Arc<Records>,
    pub(crate) read_model: Arc<ReadModel>,
    pub(crate) restarts: Arc<Progress>,
    pub(crate) tasks: Tasks,
    pub(crate) job: Mutex<Option<Job>>,
}

/// The restore that runs or ran last.
#[derive(Debug)]
pub(crate) struct Job {
    id: String,
    is_cancelled: bool,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    id: InstanceId,
    project: String,
    /// The generation that the reboot ended.
    generation: u32,
    /// Its restart is written: from now on its record says what becomes of it.
    is_due: bool,
    step: RestoreStep,
    detail: Option<String>,
}

impl Item {
    fn of(bridge: &Bridge, is_due: bool) -> Self {
        Self {
            id: bridge.id.clone(),
            project: bridge.project.to_string(),
            generation: bridge.generation,
            is_due,
            step: RestoreStep::Waiting,
            detail: None,
        }
    }

    fn is_over(&self) -> bool {
        match self.step {
            RestoreStep::Waiting | RestoreStep::Starting => false,
            RestoreStep::Done | RestoreStep::Failed | RestoreStep::Skipped => true,
        }
    }

    fn ends(&mut self, step: RestoreStep, detail: impl Into<String>) {
        (self.step, self.detail) = (step, Some(detail.into()));
    }
}

impl Job {
    fn new(items: Vec<Item>) -> Self {
        Self { id: uuid::Uuid::new_v4().to_string(), is_cancelled: false, items }
    }

    fn is_over(&self) -> bool {
        self.items.iter().all(Item::is_over)
    }

    fn record(&self) -> RestoreJob {
        let state = match (self.is_over(), self.is_cancelled) {
            (false, _) => RestoreState::Running,
            (true, false) => RestoreState::Done,
            (true, true) => RestoreState::Cancelled,
        };
        let items = self.items.iter().map(|item| RestoreItem {
            instance_id: item.id.clone(),
            state: item.step.into(),
            detail: item.detail.clone(),
        });
        RestoreJob { job_id: self.id.clone(), state: state.into(), items: items.collect() }
    }

    /// What became of the whole, as a sentence.
    fn summary(&self) -> String {
        let count = |step| self.items.iter().filter(|item| item.step == step).count();
        let mut text =
            format!("{} of {} sessions restored", count(RestoreStep::Done), self.items.len());
        for item in self.items.iter().filter(|item| item.step == RestoreStep::Failed) {
            let detail = item.detail.as_deref().unwrap_or("it did not start");
            text.push_str(&format!("; {}: {detail}", item.project));
        }
        text
    }
}

impl Restore {
    /// What can be restored, and the restore that runs or ran last.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn offer(&self) -> Result<RestoreOffer, AppError> {
        let registry = &self.transitions.registry;
        registry.refresh().await?;
        let now = self.transitions.clock.now();
        let mut candidates = Vec::new();
        for bridge in self.candidates() {
            let row = self.records.of(&bridge).await?;
            let restores = match bridge.resume_mode {
                ResumeMode::Pty if bridge.conversation.is_some() => Restores::Conversation,
                ResumeMode::Standard if row.reuse_expires_at.is_some_and(|until| until > now) => {
                    Restores::Reconnect
                }
                ResumeMode::Pty | ResumeMode::Standard => Restores::New,
            };
            candidates.push(RestoreCandidate {
                instance_id: row.instance_id,
                project: row.project,
                resume_mode: row.resume_mode,
                ended_at: row.ended_at,
                restores: restores.into(),
                blocked: row.resume_blocked,
            });
        }
        let job = self.job().as_ref().map(Job::record);
        Ok(RestoreOffer { candidates, job })
    }

    fn candidates(&self) -> Vec<Bridge> {
        let mut found = Vec::new();
        self.transitions.registry.copies.each(|bridge| {
            if is_ended_by_reboot(bridge)
                && is_restore_candidate(bridge, &rules(&self.config, &bridge.project))
            {
                found.push(bridge.clone());
            }
        });
        found
    }

    /// Makes the restart of these sessions due, whatever becomes of the caller.
    ///
    /// # Errors
    /// A restore runs already, an id is unknown, or a value breaks a rule; nothing was changed.
    pub async fn begin(self: &Arc<Self>, request: RestoreRequest) -> Result<RestoreJob, AppError> {
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.begin_now(request).await }).await
    }

    async fn begin_now(&self, request: RestoreRequest) -> Result<RestoreJob, AppError> {
        let parallel = request.parallel.unwrap_or(2);
        if !(1..=MOST_AT_ONCE).contains(&parallel) {
            return Err(AppError::invalid(format!(
                "`parallel` must be between 1 and {MOST_AT_ONCE}"
            )));
        }
        let bridges = self.named(&request.ids)?;
        self.occupy(&bridges)?;
        self.restarts.allow(usize::try_from(parallel).unwrap_or(AT_ONCE));
        self.publish();
        let now = self.transitions.clock.now();
        for (place, bridge) in (0_u64..).zip(&bridges) {
            // One after the other, in the order of the request.
            let at = now.plus(std::time::Duration::from_millis(place));
            if self.is_called_off(&bridge.id) {
                continue;
            }
            let command = Command::Restore { at };
            let done = self.transitions.command(&bridge.id, command, Cap::default()).await;
            if self.is_made_due(&bridge.id, done) {
                // Whoever cancelled it came between the question and the command.
                let command = Command::CallOff { why: None };
                let called_off =
                    self.transitions.command(&bridge.id, command, Cap::default()).await;
                if let Err(error) = called_off {
                    tracing::warn!(bridge.id = %bridge.id, error = %error, "a restore that was \
                        cancelled goes on");
                }
            }
        }
        self.follow();
        self.shown().ok_or_else(|| AppError::busy("the restore was replaced; try again"))
    }

    /// Notes what came of making a session due; tells whether that is to be taken back.
    fn is_made_due(&self, id: &InstanceId, done: Result<Changed, AppError>) -> bool {
        let mut job = self.job();
        let Some(job) = job.as_mut() else { return false };
        let Some(item) = job.items.iter_mut().find(|item| item.id == *id) else { return false };
        match done {
            Ok(Changed::Now(_)) => {
                item.is_due = true;
                return job.is_cancelled;
            }
            Ok(Changed::Refused(_)) => {
                item.ends(RestoreStep::Skipped, "no reboot ended it, or it runs again");
            }
            Ok(Changed::Late | Changed::Corrupt | Changed::Occupied | Changed::CapReached) => {
                item.ends(RestoreStep::Skipped, "its record is gone or cannot be read");
            }
            Err(error) => item.ends(RestoreStep::Failed, error.message),
        }
        false
    }

    /// Whether the restore was cancelled before this session was made due.
    fn is_called_off(&self, id: &InstanceId) -> bool {
        let mut job = self.job();
        let Some(job) = job.as_mut().filter(|job| job.is_cancelled) else { return false };
        if let Some(item) = job.items.iter_mut().find(|item| item.id == *id) {
            // Whoever follows the records says so, and tells of the end.
            item.is_due = true;
        }
        true
    }

    fn named(&self, ids: &[String]) -> Result<Vec<Bridge>, AppError> {
        if ids.is_empty() {
            return Err(AppError::invalid("`ids` is empty; name at least one session"));
        }
        let mut bridges: Vec<Bridge> = Vec::new();
        for raw in ids {
            let found = raw
                .parse()
                .ok()
                .and_then(|id: InstanceId| self.transitions.registry.copies.bridge(&id));
            let bridge = found.ok_or_else(|| crate::bridges::lookup::unknown_instance(raw))?;
            if bridges.iter().all(|other| other.id != bridge.id) {
                bridges.push(bridge);
            }
        }
        Ok(bridges)
    }

    fn occupy(&self, bridges: &[Bridge]) -> Result<(), AppError> {
        let mut job = self.job();
        if job.as_ref().is_some_and(|job| !job.is_over()) {
            return Err(AppError::new(
                ErrorCode::Busy,
                Class::Conflict,
                "a restore is running; wait for its end or cancel it",
            ));
        }
        *job = Some(Job::new(bridges.iter().map(|bridge| Item::of(bridge, false)).collect()));
        Ok(())
    }

    /// Takes back what of the running restore has not begun to start.
    ///
    /// # Errors
    /// None is running, or a row cannot be written.
    pub async fn cancel(self: &Arc<Self>) -> Result<RestoreJob, AppError> {
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.cancel_now().await }).await
    }

    async fn cancel_now(&self) -> Result<RestoreJob, AppError> {
        let waiting: Vec<InstanceId> = {
            let mut job = self.job();
            let Some(job) = job.as_mut().filter(|job| !job.is_over()) else {
                return Err(AppError::new(
                    ErrorCode::InvalidValue,
                    Class::Conflict,
                    "no restore is running",
                ));
            };
            job.is_cancelled = true;
            let waiting = job.items.iter().filter(|item| item.step == RestoreStep::Waiting);
            waiting.map(|item| item.id.clone()).collect()
        };
        for id in waiting {
            let command = Command::CallOff { why: None };
            // Refused where it has begun to start: then it goes on.
            let _ = self.transitions.command(&id, command, Cap::default()).await?;
        }
        self.follow();
        self.shown().ok_or_else(|| AppError::busy("the restore was replaced; try again"))
    }

    /// Takes sessions out of the offer, until they run and a reboot ends them again.
    ///
    /// # Errors
    /// An id is unknown; nothing was changed. Or a row cannot be written.
    pub async fn dismiss(self: &Arc<Self>, ids: Vec<String>) -> Result<Dismissed, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            let mut dismissed = Vec::new();
            for bridge in this.named(&ids)? {
                let command = Command::DeclineRestore;
                let _ = this.transitions.command(&bridge.id, command, Cap::default()).await?;
                dismissed.push(bridge.id);
            }
            Ok(Dismissed { dismissed })
        };
        self.tasks.complete(work).await
    }

    /// Follows the records until the service ends.
    /// First takes up what an earlier service left, and what is resumed after a reboot by itself.
    pub(crate) async fn run(&self) {
        let mut changes = self.transitions.registry.copies.changes();
        loop {
            changes.mark_unchanged();
            self.take_up();
            self.follow();
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                _ = changes.changed() => {}
            }
        }
    }

    /// Adds sessions that start again after a reboot although nobody asked for it.
    fn take_up(&self) {
        let mut job = self.job();
        let mut found = Vec::new();
        self.transitions.registry.copies.each(|bridge| {
            let is_due = is_ended_by_reboot(bridge) && bridge.restarts.next_at.is_some();
            let mut known = job.iter().filter(|job| !job.is_over()).flat_map(|job| &job.items);
            if is_due && known.all(|item| item.id != bridge.id) {
                found.push(Item::of(bridge, true));
            }
        });
        if found.is_empty() {
            return;
        }
        match job.as_mut().filter(|job| !job.is_over()) {
            Some(job) => job.items.append(&mut found),
            None => {
                self.restarts.allow(usize::try_from(MOST_AT_ONCE).unwrap_or(AT_ONCE));
                *job = Some(Job::new(found));
            }
        }
    }

    /// Takes over what the records say; tells of the end once.
    fn follow(&self) {
        {
            let mut job = self.job();
            let Some(job) = job.as_mut().filter(|job| !job.is_over()) else { return };
            for item in job.items.iter_mut().filter(|item| item.is_due && !item.is_over()) {
                let bridge = self.transitions.registry.copies.bridge(&item.id);
                follow_one(item, bridge.as_ref(), job.is_cancelled);
            }
            if job.is_over() {
                self.restarts.allow(AT_ONCE);
                let summary = job.summary();
                info!("after the reboot: {summary}");
                let is_whole = job.items.iter().all(|item| item.step != RestoreStep::Failed);
                let level = if is_whole { "info" } else { "warn" };
                self.read_model.notice(level, "restore", &summary);
            }
        }
        self.publish();
    }

    fn shown(&self) -> Option<RestoreJob> {
        self.job().as_ref().map(Job::record)
    }

    fn publish(&self) {
        // Under the lock: whoever read the job before has shown it before.
        let job = self.job();
        if let Some(job) = job.as_ref().map(Job::record) {
            self.read_model.put(vec![("restore".to_owned(), Record::Restore(job))]);
        }
    }

    fn job(&self) -> MutexGuard<'_, Option<Job>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the record of a session says about its restore.
fn follow_one(item: &mut Item, bridge: Option<&Bridge>, is_cancelled: bool) {
    let Some(bridge) = bridge else {
        return item.ends(RestoreStep::Skipped, "its record was removed");
    };
    match &bridge.state {
        State::Live(live) if live.stage == Stage::Ready => {
            (item.step, item.detail) = (RestoreStep::Done, None);
        }
        State::Live(_) => item.step = RestoreStep::Starting,
        State::Ended(_) if bridge.restarts.next_at.is_some() => item.step = RestoreStep::Waiting,
        State::Ended(_) if bridge.generation == item.generation => match &bridge.notice {
            _ if is_cancelled => item.ends(RestoreStep::Skipped, "the restore was cancelled"),
            Some(why) => item.ends(RestoreStep::Failed, why.clone()),
            None => item.ends(RestoreStep::Skipped, "somebody stopped it"),
        },
        State::Ended(ended) if ended.intentional => {
            item.ends(RestoreStep::Skipped, "somebody stopped it");
        }
        State::Ended(ended) => {
            let why = ended.reason.and_then(cause::reason).unwrap_or(cause::NO_STATUS);
            item.ends(RestoreStep::Failed, why);
        }
    }
}
