//! What a person can do: each action sends one request and ends in a message naming its object.

use crate::api;
use crate::app::Page;
use crate::browser;
use crate::dom::prelude::*;
use crate::model::job::Job;
use crate::model::outcome::{self, Level, Notice, Then};
use crate::model::problem::Problem;
use crate::model::wire::{self, Unreadable};
use crate::parts::reactive::Held;
use crate::text::job::{self as job_words, external};
use crate::text::{launch as launch_words, page as words, session as said};
use gloo_net::http::Method;
use leptos::task::spawn_local;
use serde_json::json;
use std::collections::HashSet;
use svc_shared::api::instances::{Instance, SpawnResult};
use svc_shared::error::ErrorCode;
use svc_shared::paths;
use svc_shared::status::BridgeStatus;

/// Requests that are on their way, by the id of their object: a second click sends nothing.
#[derive(Clone, Copy)]
pub struct Pending(Held<HashSet<String>>);

impl Pending {
    /// Nothing is on its way.
    pub fn new() -> Self {
        Self(Held::new(HashSet::new()))
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

/// A bridge or a job as messages name it.
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

    /// Of a job.
    pub fn of_job(job: &Job) -> Self {
        Self { id: job.id.clone(), project: job.object() }
    }
}

/// A request that changes something: everything it takes to send it, once more if need be.
#[derive(Clone)]
struct Write {
    /// What is pending meanwhile.
    about: String,
    /// Names the action and its object in messages.
    verb: &'static str,
    object: String,
    method: Method,
    path: String,
    body: Option<String>,
    /// Kept over repeats: a repeat of a request that did arrive starts nothing twice.
    key: Option<String>,
    done: Done,
    /// What asks for the trust that the folder lacks, instead of a failure being shown.
    asks_trust: Option<TrustGate>,
}

/// Reads the answer of a success and says so.
type Done = fn(Page, &Write, &str) -> Result<(), Unreadable>;

impl Page {
    fn write(self, write: Write) {
        let Some(claim) = self.pending.take(&write.about) else {
            return;
        };
        spawn_local(async move {
            let (path, key) = (write.path.as_str(), write.key.as_deref());
            let answer = api::request(write.method.clone(), path, write.body.clone(), key).await;
            drop(claim);
            let done = answer.and_then(|(status, text)| {
                (write.done)(self, &write, &text).map_err(|_| Problem::Unreadable { status })
            });
            match done {
                Ok(()) => {}
                Err(problem) => match write.asks_trust.clone() {
                    Some(gate) if problem.is(ErrorCode::NotTrusted) => {
                        self.trust_gate.set(Some(gate));
                    }
                    _ => self.refused(write, &problem),
                },
            }
        });
    }

    /// Stops a bridge.
    pub fn stop(self, target: Target) {
        self.write(Write {
            path: paths::instance(&target.id),
            about: target.id,
            verb: said::act::STOP,
            object: target.project,
            method: Method::DELETE,
            body: None,
            key: None,
            done: |page, _, text| {
                page.say.notice(outcome::stopped(&wire::read::<Instance>(text)?));
                Ok(())
            },
            asks_trust: None,
        });
    }

    /// Resumes a bridge; `trust` also grants the trust that is missing.
    pub fn resume(self, target: Target, trust: bool) {
        let asks_trust = (!trust).then(|| TrustGate::Resume(target.clone()));
        self.write(Write {
            path: format!("{}?wait=0", paths::instance_action(&target.id, "resume")),
            about: target.id,
            verb: said::act::RESUME,
            object: target.project,
            method: Method::POST,
            body: trust.then(trusting),
            key: Some(browser::repeat_key()),
            done: |page, _, text| {
                for notice in outcome::resumed(&wire::read::<SpawnResult>(text)?) {
                    page.notice_of(notice);
                }
                Ok(())
            },
            asks_trust,
        });
    }

    /// Removes the row of an ended bridge.
    pub fn forget(self, target: Target) {
        self.write(Write {
            path: paths::instance_action(&target.id, "forget"),
            about: target.id,
            verb: said::act::FORGET,
            object: target.project,
            method: Method::POST,
            body: None,
            key: None,
            done: |page, write, _| {
                page.say.done(said::forgotten(&write.object));
                Ok(())
            },
            asks_trust: None,
        });
    }

    /// Gives a bridge another session name; blank means the project name.
    pub fn rename(self, target: Target, label: String) {
        self.write(Write {
            path: paths::instance(&target.id),
            about: target.id,
            verb: said::act::RENAME,
            object: target.project,
            method: Method::PATCH,
            body: Some(json!({ "label": label }).to_string()),
            key: None,
            done: |page, _, text| {
                let bridge = wire::read::<Instance>(text)?;
                page.say.notice(Notice::new(
                    Level::Success,
                    said::renamed(&bridge.label),
                    said::RENAMED_BODY,
                ));
                Ok(())
            },
            asks_trust: None,
        });
    }

    /// Trusts the folder of a project.
    pub fn trust(self, project: String) {
        self.write(Write {
            path: paths::project_action(&project, "trust"),
            about: project.clone(),
            verb: launch_words::TRUST,
            object: project,
            method: Method::POST,
            body: None,
            key: None,
            done: |page, write, _| {
                page.say.done(said::trusted(&write.object));
                Ok(())
            },
            asks_trust: None,
        });
    }

    /// Stops a job.
    pub fn stop_job(self, target: Target) {
        self.end_job(target, said::act::STOP, |page, write, text| {
            page.say.notice(outcome::job_stopped(&write.object, wire::read(text)?)?);
            Ok(())
        });
    }

    /// Removes an ended job.
    pub fn remove_job(self, target: Target) {
        self.end_job(target, job_words::REMOVE, |page, write, text| {
            page.say.notice(outcome::job_removed(&write.object, wire::read(text)?)?);
            Ok(())
        });
    }

    fn end_job(self, target: Target, verb: &'static str, done: Done) {
        self.write(Write {
            path: agent_path(&target.id, ""),
            about: target.id,
            verb,
            object: target.project,
            method: Method::DELETE,
            body: None,
            key: None,
            done,
            asks_trust: None,
        });
    }

    /// Starts a new job that goes on where an ended one stopped; `trust` also grants the trust
    /// that is missing.
    pub fn resume_job(self, target: Target, trust: bool) {
        let asks_trust = (!trust).then(|| TrustGate::ResumeJob(target.clone()));
        self.write(Write {
            path: agent_path(&target.id, "/resume"),
            about: target.id,
            verb: said::act::RESUME,
            object: target.project,
            method: Method::POST,
            body: trust.then(trusting),
            key: Some(browser::repeat_key()),
            done: |page, write, text| {
                let id = wire::read::<wire::Members>(text)?.text("id")?;
                let title = job_words::resumed(&write.object);
                page.say.notice(Notice::new(Level::Success, title, "").then(Then::Job(id)));
                Ok(())
            },
            asks_trust,
        });
    }

    /// Takes over the bridge of a project that was started elsewhere.
    pub fn manage(self, project: String) {
        self.write(Write {
            path: paths::project_action(&project, "adopt"),
            about: project.clone(),
            verb: external::MANAGE,
            object: project,
            method: Method::POST,
            body: None,
            key: None,
            done: |page, _, text| {
                let bridge = wire::read::<Instance>(text)?;
                let notice = Notice::new(Level::Success, external::managed(&bridge.project), "");
                page.say.notice(notice.then(Then::View(bridge.instance_id.to_string())));
                Ok(())
            },
            asks_trust: None,
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
    fn refused(self, write: Write, problem: &Problem) {
        if problem.is_wrong_address() {
            self.live.wrong_address.set(true);
            return;
        }
        let title = words::not_done(write.verb, &write.object);
        let mut notice = Notice::new(Level::Danger, title, problem.words());
        notice.then.extend(problem.error_id().map(|id| Then::Copy(id.to_owned())));
        notice.not_before =
            problem.retry_after().map(|seconds| self.clock.now() + i64::from(seconds) * 1_000);
        let repeat = problem.may_pass().then(|| Callback::new(move |()| self.write(write.clone())));
        self.say.with_repeat(notice, repeat);
        if *problem == Problem::NoAnswer {
            self.live.look_again();
        }
    }
}

/// Body of a resume that acknowledges an untrusted folder.
fn trusting() -> String {
    json!({ "trust": true }).to_string()
}

fn agent_path(id: &str, verb: &str) -> String {
    format!("{}/agents/{}{verb}", paths::API, paths::segment(id))
}

/// What waits for a person's trust in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustGate {
    /// Trusting a project.
    Project(String),
    /// Trusting the project of a bridge, and resuming it.
    Resume(Target),
    /// Trusting the project of a job, and resuming that.
    ResumeJob(Target),
}

impl TrustGate {
    /// The project in question.
    pub fn project(&self) -> &str {
        match self {
            Self::Project(project) => project,
            Self::Resume(target) | Self::ResumeJob(target) => &target.project,
        }
    }
}
