//! What a person can do: each action sends one request and ends in a message naming its object.

use crate::api;
use crate::app::Page;
use crate::browser;
use crate::model::outcome::{self, Level, Notice};
use crate::model::problem::Problem;
use crate::model::wire::{self, Unreadable};
use crate::text::{launch as launch_words, page as words, session as said};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::collections::HashSet;
use svc_shared::api::instances::{Instance, PatchInstance, ResumeRequest, SpawnResult};
use svc_shared::error::ErrorCode;
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
    done: fn(Page, &Write, &str) -> Result<(), Unreadable>,
    /// Trust that the folder lacks is asked for instead of shown as a failure.
    asks_trust: bool,
}

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
                Err(problem) if write.asks_trust && problem.is(ErrorCode::NotTrusted) => {
                    let target = Target { id: write.about, project: write.object };
                    self.trust_gate.set(Some(TrustGate::Resume(target)));
                }
                Err(problem) => self.refused(write, &problem),
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
            asks_trust: false,
        });
    }

    /// Resumes a bridge; `trust` also grants the trust that is missing.
    pub fn resume(self, target: Target, trust: bool) {
        self.write(Write {
            path: format!("{}?wait=0", paths::instance_action(&target.id, "resume")),
            about: target.id,
            verb: said::act::RESUME,
            object: target.project,
            method: Method::POST,
            body: trust.then(|| json(&ResumeRequest { trust: Some(true) })),
            key: Some(browser::repeat_key()),
            done: |page, _, text| {
                for notice in outcome::resumed(&wire::read::<SpawnResult>(text)?) {
                    page.notice_of(notice);
                }
                Ok(())
            },
            asks_trust: !trust,
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
            asks_trust: false,
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
            body: Some(json(&PatchInstance { label: Some(label) })),
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
            asks_trust: false,
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
            asks_trust: false,
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
        let notice = Notice::new(Level::Danger, title, problem.words());
        let repeat = problem.may_pass().then(|| Callback::new(move |()| self.write(write.clone())));
        self.say.with_repeat(notice, repeat);
        if *problem == Problem::NoAnswer {
            self.live.look_again();
        }
    }
}

fn json(body: &impl serde::Serialize) -> String {
    // Our own types always have a JSON form.
    serde_json::to_string(body).unwrap_or_default()
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
