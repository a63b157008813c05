//! What a person can do: each action sends one request and ends in a message naming its object.

use crate::api::{self, Change};
use crate::app::Page;
use crate::browser;
use crate::model::outcome::{self, Level, Notice};
use crate::model::problem::Problem;
use crate::text::{launch as launch_words, page as words, session as said};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::collections::HashSet;
use svc_shared::api::instances::{Instance, PatchInstance, ResumeRequest, SpawnResult};
use svc_shared::api::projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::internal::Forgotten;
use svc_shared::paths;
use svc_shared::status::BridgeStatus;

/// Requests that are on their way, by the id of their object: a second click sends nothing.
#[derive(Clone, Copy)]
pub struct Pending(RwSignal<HashSet<String>>);

impl Pending {
    /// Nothing is on its way.
    pub fn new() -> Self {
        Self(RwSignal::new(HashSet::new()))
    }

    /// Whether a request about this object is on its way. Tracked.
    pub fn has(self, id: &str) -> bool {
        self.0.with(|ids| ids.contains(id))
    }

    fn take(self, id: &str) -> Option<Claim> {
        self.0
            .try_update(|ids| ids.insert(id.to_owned()))
            .unwrap_or(false)
            .then(|| Claim(self, id.to_owned()))
    }
}

/// Ends the pending mark when it is dropped.
struct Claim(Pending, String);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.0.update(|ids| {
            ids.remove(&self.1);
        });
    }
}

/// A bridge as messages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Id.
    pub id: String,
    /// Project name.
    pub project: String,
}

impl Target {
    /// Of a record.
    pub fn of(bridge: &Instance) -> Self {
        Self { id: bridge.instance_id.to_string(), project: bridge.project.clone() }
    }
}

impl Page {
    /// Stops a bridge.
    pub fn stop(self, target: Target) {
        let Some(claim) = self.pending.take(&target.id) else {
            return;
        };
        spawn_local(async move {
            let path = paths::instance(&target.id);
            let answer = api::call::<Instance>(Method::DELETE, &path).await;
            drop(claim);
            match answer {
                Ok(bridge) => self.say.notice(outcome::stopped(&bridge)),
                Err(problem) => {
                    let again = target.clone();
                    self.refused(said::act::STOP, &target.project, &problem, move || {
                        self.stop(again.clone());
                    });
                }
            }
        });
    }

    /// Resumes a bridge; `trust` also grants the trust that is missing.
    pub fn resume(self, target: Target, trust: bool) {
        self.resume_as(target, trust, browser::repeat_key());
    }

    fn resume_as(self, target: Target, trust: bool, key: String) {
        let Some(claim) = self.pending.take(&target.id) else {
            return;
        };
        spawn_local(async move {
            let path = format!("{}?wait=0", paths::instance_action(&target.id, "resume"));
            let body = trust.then_some(ResumeRequest { trust: Some(true) });
            let answer: Result<SpawnResult, Problem> = api::change(Change {
                method: Method::POST,
                path: &path,
                body: body.as_ref(),
                key: Some(&key),
            })
            .await;
            drop(claim);
            match answer {
                Ok(result) => {
                    for notice in outcome::resumed(&result) {
                        self.notice_of(notice);
                    }
                }
                Err(problem) if problem.is(ErrorCode::NotTrusted) && !trust => {
                    self.trust_gate.set(Some(TrustGate::Resume(target)));
                }
                Err(problem) => {
                    let again = target.clone();
                    // The same key: a repeat of a request that did arrive starts nothing twice.
                    self.refused(said::act::RESUME, &target.project, &problem, move || {
                        self.resume_as(again.clone(), trust, key.clone());
                    });
                }
            }
        });
    }

    /// Removes the row of an ended bridge.
    pub fn forget(self, target: Target) {
        let Some(claim) = self.pending.take(&target.id) else {
            return;
        };
        spawn_local(async move {
            let path = paths::instance_action(&target.id, "forget");
            let answer = api::call::<Forgotten>(Method::POST, &path).await;
            drop(claim);
            match answer {
                Ok(_) => self.say.done(said::forgotten(&target.project)),
                Err(problem) => {
                    let again = target.clone();
                    self.refused(said::act::FORGET, &target.project, &problem, move || {
                        self.forget(again.clone());
                    });
                }
            }
        });
    }

    /// Gives a bridge another session name; blank means the project name.
    pub fn rename(self, target: Target, label: String) {
        let Some(claim) = self.pending.take(&target.id) else {
            return;
        };
        spawn_local(async move {
            let path = paths::instance(&target.id);
            let body = PatchInstance { label: Some(label.clone()) };
            let answer: Result<Instance, Problem> = api::change(Change {
                method: Method::PATCH,
                path: &path,
                body: Some(&body),
                key: None,
            })
            .await;
            drop(claim);
            match answer {
                Ok(bridge) => self.say.notice(Notice::new(
                    Level::Success,
                    said::renamed(&bridge.label),
                    said::RENAMED_BODY,
                )),
                Err(problem) => {
                    let again = target.clone();
                    self.refused(said::act::RENAME, &target.project, &problem, move || {
                        self.rename(again.clone(), label.clone());
                    });
                }
            }
        });
    }

    /// Trusts the folder of a project.
    pub fn trust(self, project: String) {
        let Some(claim) = self.pending.take(&project) else {
            return;
        };
        spawn_local(async move {
            let path = paths::project_action(&project, "trust");
            let answer = api::call::<Project>(Method::POST, &path).await;
            drop(claim);
            match answer {
                Ok(_) => self.say.done(said::trusted(&project)),
                Err(problem) => {
                    let again = project.clone();
                    self.refused(launch_words::TRUST, &project, &problem, move || {
                        self.trust(again.clone());
                    });
                }
            }
        });
    }

    /// Shows a message; one about a bridge that has settled meanwhile says how.
    pub fn notice_of(self, notice: Notice) {
        let now = notice
            .follows
            .as_deref()
            .and_then(|id| self.store.instance(id))
            .map(|signal| signal.get_untracked())
            .filter(|bridge| !bridge.status.is(&BridgeStatus::Starting));
        match now {
            // The stream was faster than the answer.
            Some(bridge) => {
                self.say.notice(outcome::settled(&bridge, said::started_plain(&bridge.project)))
            }
            None => self.say.notice(notice),
        }
    }

    /// A request that was not carried out, or not answered.
    fn refused(
        self,
        action: &str,
        object: &str,
        problem: &Problem,
        again: impl Fn() + Send + Sync + 'static,
    ) {
        if problem.is_wrong_address() {
            self.live.wrong_address.set(true);
            return;
        }
        let notice = Notice::new(Level::Danger, words::not_done(action, object), problem.words());
        let repeat = problem.may_pass().then(|| Callback::new(move |()| again()));
        self.say.with_repeat(notice, repeat);
        if *problem == Problem::NoAnswer {
            self.live.look_again();
        }
    }
}

/// What waits for a person's trust in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustGate {
    /// Trusting a project.
    Project(String),
    /// Trusting the project of a bridge, and resuming it.
    Resume(Target),
}

impl TrustGate {
    /// The project in question.
    pub fn project(&self) -> &str {
        match self {
            Self::Project(project) => project,
            Self::Resume(target) => &target.project,
        }
    }
}
