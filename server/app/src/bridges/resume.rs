//! Use-case: start the next generation of an ended bridge, in the same row.

use crate::AppError;
use crate::bridges::circumstances::refuse;
use crate::bridges::launch::LaunchRequest;
use crate::bridges::spawn::Starter;
use crate::bridges::stop::held;
use crate::bridges::transition::Changed;
use crate::projects::catalog::unknown_project;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::admission::{Admission, Obstacle, Wanted, admit};
use svc_domain::argv::reads_as_option;
use svc_domain::bridge::{Bridge, Outcome as EndedAs};
use svc_domain::conversation::TakeUp;
use svc_domain::decide::{Command, Refusal};
use svc_domain::identity::Pid;
use svc_projects::Project;
use svc_shared::api::instances::{Outcome, ResumeRequest, SpawnResult};
use svc_shared::ids::InstanceId;
use svc_shared::status::{NotCreated, ResumeMode};
use svc_store::Cap;

impl Starter {
    /// Revives an ended bridge in its own row, or says why nothing was revived.
    ///
    /// # Errors
    /// The row is unchanged.
    pub async fn resume(
        self: &Arc<Self>,
        reference: &str,
        request: ResumeRequest,
        wait: Duration,
    ) -> Result<SpawnResult, AppError> {
        let (this, reference) = (Arc::clone(self), reference.to_owned());
        self.requests
            .tasks
            .complete(async move { this.resume_now(&reference, &request, wait, By::Person).await })
            .await
    }

    /// The same because a restart is due.
    /// Nobody waits for the bridge, and nothing is granted.
    ///
    /// # Errors
    /// The row is unchanged.
    pub(crate) async fn restart(
        self: &Arc<Self>,
        id: &InstanceId,
    ) -> Result<SpawnResult, AppError> {
        let (this, id) = (Arc::clone(self), id.clone());
        let request = ResumeRequest::default();
        self.requests
            .tasks
            .complete(async move {
                this.resume_now(id.as_str(), &request, Duration::ZERO, By::Policy).await
            })
            .await
    }

    async fn resume_now(
        &self,
        reference: &str,
        request: &ResumeRequest,
        wait: Duration,
        by: By,
    ) -> Result<SpawnResult, AppError> {
        let (target, lock) =
            self.requests.locked(reference, crate::bridges::lookup::Wanted::LiveOrNewest).await?;
        let live = self.registry().live().await?;
        // Another process may have forgotten it while we waited for the lock.
        let target = self.known(&target.id, reference)?;
        if let Some(code) = target.quarantine {
            return Err(held(&target, code));
        }
        if target.is_live() {
            return self.declined(&target, &target.id, NotCreated::AlreadyRunning).await;
        }
        if self.admissions.wrong_ends.is_wrongly_ended(&target)? {
            let Some(bridge) = self.admissions.wrong_ends.correct_wrong_end(&target).await? else {
                return Err(AppError::busy("the row is written by too many at once; try again"));
            };
            if bridge.is_live() {
                return self.declined(&bridge, &bridge.id, NotCreated::AlreadyRunning).await;
            }
        }
        let project = self
            .requests
            .lookup
            .catalog
            .named(target.project.as_str())
            .map_err(|_| unknown_project(target.project.as_str()))?;
        let grant_trust = match self.admit_resume(&target, &project, request, live).await? {
            Admission::Launch { grant_trust } => grant_trust,
            Admission::Reuse(live) => {
                return self.declined(&target, &live, NotCreated::StandardAlreadyLive).await;
            }
            Admission::TakeOver(pid) | Admission::Refused(Obstacle::OtherService(pid)) => {
                return self.declined_for(&target, pid).await;
            }
            Admission::Correct(id) => match self.admissions.wrong_ends.corrected(&id).await? {
                Some(live) => {
                    return self.declined(&target, &live, NotCreated::StandardAlreadyLive).await;
                }
                None => {
                    return Err(AppError::busy(
                        "another bridge of this project has just been stopped; try again",
                    ));
                }
            },
            Admission::Refused(obstacle) => return Err(refuse(&project.name, &obstacle)),
        };
        let take_up = self.conversations.take_up(&target).await?;
        let warnings = begins_anew(&target, &take_up);
        let launched = self.next_generation(&target, &project, &take_up, grant_trust, by).await?;
        drop(lock);
        match launched {
            Launched::Yes => {
                let warnings = warnings.into_iter().map(str::to_owned).collect();
                let outcome = Outcome { created: true, reason: None, reason_code: None, warnings };
                self.result(&target.id, outcome, wait).await
            }
            Launched::Occupied => {
                self.declined(&target, &target.id, NotCreated::StandardAlreadyLive).await
            }
        }
    }

    async fn admit_resume(
        &self,
        target: &Bridge,
        project: &Project,
        request: &ResumeRequest,
        live: Vec<Bridge>,
    ) -> Result<Admission, AppError> {
        let wanted = Wanted {
            resume_mode: target.resume_mode,
            spawn_mode: target.spawn_mode,
            permission_mode: target.permission_mode,
            trust: request.trust.unwrap_or(false),
            name_reads_as_option: reads_as_option(match target.resume_mode {
                ResumeMode::Standard => target.label(),
                ResumeMode::Pty => target.project.as_str(),
            }),
        };
        let now = self.admissions.readiness.circumstances_now(project, wanted, live).await?;
        Ok(admit(wanted, &now))
    }

    async fn next_generation(
        &self,
        target: &Bridge,
        project: &Project,
        take_up: &TakeUp,
        grant_trust: bool,
        by: By,
    ) -> Result<Launched, AppError> {
        let prepared = self.launcher.prepare(LaunchRequest::of(target, take_up)).await?;
        let (launch, deadline) = (prepared.launch.clone(), self.launcher.deadline());
        let command = match by {
            By::Person => Command::Resume { launch, deadline },
            By::Policy => Command::Restart { launch, deadline },
        };
        self.registry().copies.own(&target.id, &prepared.launch.id);
        match self.launcher.transitions.command(&target.id, command, self.admissions.cap()).await? {
            Changed::Now(known) => {
                // After the last refusal, as at a first launch: F20.
                if grant_trust && let Err(error) = self.admissions.trust.grant(project).await {
                    self.withdraw_resume(&known.bridge, target).await?;
                    return Err(error);
                }
                let bridge = Bridge { cwd: project.path.clone(), ..known.bridge };
                if self.launcher.start(&bridge, prepared).await? {
                    self.watchers.launched(&bridge);
                }
                Ok(Launched::Yes)
            }
            Changed::Late => Err(crate::bridges::lookup::unknown_instance(target.id.as_str())),
            Changed::Corrupt => Err(crate::bridges::lookup::corrupt(target.id.as_str())),
            Changed::Refused(Refusal::Held(code)) => Err(held(target, code)),
            Changed::Refused(Refusal::Live | Refusal::NoRelaunch | Refusal::NotDue)
            | Changed::Occupied => Ok(Launched::Occupied),
            Changed::CapReached => Err(self.admissions.cap_reached(&target.project)),
        }
    }

    /// Takes back a generation of which nothing was started.
    /// The record is again as it was.
    async fn withdraw_resume(&self, begun: &Bridge, before: &Bridge) -> Result<(), AppError> {
        self.registry().copies.disown(&begun.id);
        let command =
            Command::Withdraw { generation: begun.generation, before: Box::new(before.clone()) };
        self.launcher.transitions.command(&begun.id, command, Cap::default()).await?;
        Ok(())
    }

    /// Nothing was revived, because a bridge that has no record runs in the project.
    async fn declined_for(&self, target: &Bridge, unmanaged: Pid) -> Result<SpawnResult, AppError> {
        let answer = self.declined(target, &target.id, NotCreated::StandardAlreadyLive).await?;
        let reason = Some(format!(
            "a bridge that was not started here already runs in this project (pid {unmanaged})"
        ));
        Ok(SpawnResult { outcome: Outcome { reason, ..answer.outcome }, ..answer })
    }

    /// Nothing was revived.
    /// The target's row is unchanged and the one in the way is the answer.
    async fn declined(
        &self,
        target: &Bridge,
        shown: &InstanceId,
        why: NotCreated,
    ) -> Result<SpawnResult, AppError> {
        let shown = self.registry().copies.bridge(shown).unwrap_or_else(|| target.clone());
        let reason = match why {
            NotCreated::AlreadyRunning => {
                format!("instance {} is already {}", target.id.short(), shown.status())
            }
            NotCreated::StandardAlreadyLive | NotCreated::ExternalReattached => format!(
                "nothing was resumed: the project's Server Mode bridge {} is {}; stop it first",
                shown.id.short(),
                shown.status()
            ),
        };
        Ok(SpawnResult {
            instance: self.requests.records.of(&shown).await?,
            outcome: Outcome {
                created: false,
                reason: Some(reason),
                reason_code: Some(why.into()),
                warnings: Vec::new(),
            },
        })
    }
}

/// Who has a bridge resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Somebody who asked for it.
    Person,
    /// The restart that is due.
    Policy,
}

/// What the caller of a resume should know when no conversation goes on.
/// A session that was never ready has none, and nobody expects one.
fn begins_anew(target: &Bridge, take_up: &TakeUp) -> Option<&'static str> {
    let was_ready = target.ended().is_some_and(|ended| ended.outcome != EndedAs::Failed);
    (target.is_interactive() && was_ready && *take_up == TakeUp::New).then_some(
        "nothing of the earlier conversation is left where the agent keeps it, so the session \
         begins a new one",
    )
}

enum Launched {
    Yes,
    Occupied,
}
