//! Actions of the user.
//!
//! Each action sends one request and ends in a message that names its object.

pub mod bulk;
mod restart;
pub mod restore;
mod undo;

use crate::api;
use crate::browser;
use crate::model::job::{Job, JobView as _};
use crate::model::outcome::{self, Level, Notice, Then};
use crate::model::problem::Problem;
use crate::model::wire::{self, Unreadable};
use crate::page::Page;
use crate::store::Asked;
use crate::text::bulk as bulk_words;
use crate::text::direct;
use crate::text::job::{self as job_words, external};
use crate::text::page::projects as project_words;
use crate::text::ready::{stranded as stranded_words, strays};
use crate::text::{keepers, launch as launch_words, page as page_words, planned, session as words};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::collections::HashSet;
use std::sync::Arc;
use svc_shared::api::approvals::{AnswerRequest, MessageRequest};
use svc_shared::api::instances::{Instance, PatchInstance, ResumeRequest, SpawnResult};
use svc_shared::api::jobs::ResumeAgentResult;
use svc_shared::api::planned_launches::PlannedLaunch;
use svc_shared::api::stranded::ContinuedSession;
use svc_shared::error::ErrorCode;
use svc_shared::internal::TrustAllRequest;
use svc_shared::paths;
use svc_shared::status::PlannedState;

/// How a question of an agent is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Once.
    Allow,
    /// Together with what the agent offers for its session.
    AllowForSession,
    /// Not at all.
    Deny,
}

/// Requests without an answer yet, by the id of their object.
///
/// A second click on the same object sends nothing.
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

/// Removes the pending mark when dropped.
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
        Self { id: job.id.to_string(), project: job.object() }
    }
}

/// A request that changes something.
///
/// It holds everything that is needed to send the request again.
#[derive(Clone)]
pub struct Write {
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
    /// That it works was said when it was asked for.
    is_said: bool,
    /// What follows an answer of any kind.
    after: Option<fn(Page)>,
    /// Told whether it worked. Whoever waits for it may be gone by then.
    on_end: Option<OnEnd>,
}

/// Told whether a request worked.
pub type OnEnd = Arc<dyn Fn(bool) + Send + Sync>;

/// Reads the answer of a success: what is said then.
type Done = fn(&Write, &str) -> Result<Vec<Notice>, Unreadable>;

fn said(title: String) -> Result<Vec<Notice>, Unreadable> {
    Ok(vec![Notice::new(Level::Success, title, "")])
}

impl Write {
    fn new(
        about: String,
        verb: &'static str,
        object: String,
        method: Method,
        path: String,
        done: Done,
    ) -> Self {
        let (body, key, asks_trust, is_said) = (None, None, None, false);
        let (after, on_end) = (None, None);
        Self {
            about,
            verb,
            object,
            method,
            path,
            body,
            key,
            done,
            asks_trust,
            is_said,
            after,
            on_end,
        }
    }

    /// Stops a bridge.
    pub fn stop(target: Target) -> Self {
        let path = paths::instance(&target.id);
        Self::new(target.id, words::act::STOP, target.project, Method::DELETE, path, |_, text| {
            Ok(vec![outcome::stopped(&wire::read::<Instance>(text)?)])
        })
    }

    /// Resumes a bridge; `trust` also grants the trust that is missing.
    pub fn resume(target: Target, trust: bool) -> Self {
        let path = format!("{}?wait=0", paths::instance_action(&target.id, "resume"));
        let asks_trust = (!trust).then(|| TrustGate::Resume(target.clone()));
        let done: Done = |_, text| Ok(outcome::resumed(&wire::read::<SpawnResult>(text)?));
        let act = words::act::RESUME;
        Self {
            body: trust.then(trusting),
            key: Some(browser::repeat_key()),
            asks_trust,
            ..Self::new(target.id, act, target.project, Method::POST, path, done)
        }
    }

    /// Restarts a bridge whose remote link is lost.
    pub fn heal(target: Target) -> Self {
        let path = paths::instance_action(&target.id, "heal");
        let done: Done = |_, text| Ok(outcome::resumed(&wire::read::<SpawnResult>(text)?));
        Self::new(target.id, words::act::HEAL, target.project, Method::POST, path, done)
    }

    /// Removes the row of an ended bridge.
    pub fn forget(target: Target) -> Self {
        let path = paths::instance_action(&target.id, "forget");
        Self::new(target.id, words::act::FORGET, target.project, Method::POST, path, |write, _| {
            said(words::forgotten(&write.object))
        })
    }

    /// Stops a job.
    pub fn stop_job(target: Target) -> Self {
        let path = agent_path(&target.id, "");
        Self::new(
            target.id,
            words::act::STOP,
            target.project,
            Method::DELETE,
            path,
            |write, text| Ok(vec![outcome::job_stopped(&write.object, wire::read(text)?)]),
        )
    }

    /// Removes an ended job.
    pub fn remove_job(target: Target) -> Self {
        let path = agent_path(&target.id, "");
        let act = job_words::REMOVE;
        Self::new(target.id, act, target.project, Method::DELETE, path, |write, text| {
            Ok(vec![outcome::job_removed(&write.object, wire::read(text)?)])
        })
    }

    /// Starts a new job that continues an ended one.
    ///
    /// `trust` also grants the trust that is missing.
    pub fn resume_job(target: Target, trust: bool) -> Self {
        let path = agent_path(&target.id, "/resume");
        let asks_trust = (!trust).then(|| TrustGate::ResumeJob(target.clone()));
        let done: Done = |write, text| {
            let id = wire::read::<ResumeAgentResult>(text)?.id.to_string();
            let title = job_words::resumed(&write.object);
            Ok(vec![Notice::new(Level::Success, title, "").then(Then::Job(id))])
        };
        let act = words::act::RESUME;
        Self {
            body: trust.then(trusting),
            key: Some(browser::repeat_key()),
            asks_trust,
            ..Self::new(target.id, act, target.project, Method::POST, path, done)
        }
    }

    async fn send(&self) -> Result<Vec<Notice>, Problem> {
        let (body, key) = (self.body.clone(), self.key.as_deref());
        let answer = api::request(self.method.clone(), &self.path, body, key).await;
        let (status, text) = answer?;
        (self.done)(self, &text).map_err(|_| Problem::Unreadable { status })
    }
}

impl Page {
    /// Sends a request and says what came of it.
    pub fn write(self, write: Write) {
        let Some(claim) = self.pending.take(&write.about) else {
            self.store.show_again(&write.about); // what is on its way tells of itself
            self.say.notice(Notice::new(Level::Info, bulk_words::UNDER_WAY.to_owned(), ""));
            return;
        };
        spawn_local(async move {
            let answer = write.send().await;
            drop(claim);
            if let Some(after) = write.after {
                after(self);
            }
            if let Some(end) = &write.on_end {
                end(answer.is_ok());
            }
            match answer {
                Ok(notices) => {
                    for notice in notices {
                        if notice.level.stays() {
                            self.store.show_again(&write.about);
                        } else if write.is_said {
                            continue;
                        }
                        self.notice_of(notice);
                    }
                }
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
        self.write(Write::stop(target));
    }

    /// Resumes a bridge; `trust` also grants the trust that is missing.
    pub fn resume(self, target: Target, trust: bool) {
        self.write(Write::resume(target, trust));
    }

    /// Restarts a bridge whose remote link is lost.
    pub fn heal(self, target: Target) {
        self.write(Write::heal(target));
    }

    /// Gives a bridge another session name; blank means the project name.
    pub fn rename(self, target: Target, label: String) {
        let path = paths::instance(&target.id);
        let done: Done = |_, text| {
            let title = words::renamed(&wire::read::<Instance>(text)?.label);
            Ok(vec![Notice::new(Level::Success, title, words::RENAMED_BODY)])
        };
        let act = words::act::RENAME;
        self.write(Write {
            body: Some(wire::written(&PatchInstance {
                label: Some(label),
                ..PatchInstance::default()
            })),
            // A stop that waits does not keep a name from being changed.
            ..Write::new(
                format!("rename-{}", target.id),
                act,
                target.project,
                Method::PATCH,
                path,
                done,
            )
        });
    }

    /// Answers a question of an agent.
    pub fn answer(self, of: &Asked, choice: Choice, reason: &str) {
        let is_allowed = choice != Choice::Deny;
        let reason = Some(reason.trim()).filter(|text| !is_allowed && !text.is_empty());
        let (request, project) = (&of.asked.request_id, of.project.clone());
        let about = format!("question-{request}");
        let path = match &of.id {
            Some(id) => paths::permission(id, request),
            None => paths::approval(request),
        };
        let (act, done): (_, Done) = if is_allowed {
            (direct::ALLOW, |write, _| said(direct::answered(true, &write.object)))
        } else {
            (direct::DENY, |write, _| said(direct::answered(false, &write.object)))
        };
        let decision = if is_allowed { "allow" } else { "deny" };
        let body = wire::written(&AnswerRequest {
            decision: decision.to_owned(),
            message: reason.map(str::to_owned),
            for_session: choice == Choice::AllowForSession,
        });
        let write = Write::new(about, act, project, Method::POST, path, done);
        self.write(Write { body: Some(body), ..write });
    }

    /// Sends what stands in the message box of a Direct Session.
    pub fn message(self, id: &str, project: &str) {
        let Some(text) = self.drafts.begin(id) else { return };
        let path = paths::instance_action(id, "message");
        let object = project.to_owned();
        // One at a time by the drafts; a repeat of a refused one is another request.
        let about = format!("message-{id}-{}", browser::repeat_key());
        let write = Write::new(about, direct::SEND_TO, object, Method::POST, path, |write, _| {
            said(direct::sent(&write.object))
        });
        let body = wire::written(&MessageRequest { text: text.clone() });
        let id = id.to_owned();
        let end: OnEnd = Arc::new(move |is_taken| self.drafts.end(&id, &text, is_taken));
        self.write(Write { body: Some(body), on_end: Some(end), ..write });
    }

    /// Trusts the folder of a project.
    pub fn trust(self, project: String) {
        let path = paths::project_action(&project, "trust");
        let act = launch_words::TRUST;
        self.write(Write::new(project.clone(), act, project, Method::POST, path, |write, _| {
            said(words::trusted(&write.object))
        }));
    }

    /// Trusts the folders of exactly these projects.
    pub fn trust_all(self, projects: Vec<String>) {
        let path = format!("{}/trust-all", paths::projects());
        let (act, object) = (launch_words::TRUST, project_words::selected(projects.len()));
        let write =
            Write::new("trust-all".to_owned(), act, object, Method::POST, path, |write, _| {
                said(words::trusted(&write.object))
            });
        let body = Some(wire::written(&TrustAllRequest { names: projects }));
        self.write(Write { body, ..write });
    }

    /// Stops a job.
    pub fn stop_job(self, target: Target) {
        self.write(Write::stop_job(target));
    }

    /// Starts a new job that continues an ended one.
    ///
    /// `trust` also grants the trust that is missing.
    pub fn resume_job(self, target: Target, trust: bool) {
        self.write(Write::resume_job(target, trust));
    }

    /// Ends a process without a live bridge.
    pub fn end_stray(self, pid: i32, object: String) {
        let path = format!("/api/strays/{pid}/kill");
        let act = strays::END;
        let write = Write::new(stray(pid), act, object, Method::POST, path, |write, _| {
            said(strays::ended(&write.object))
        });
        self.write(Write { after: Some(|page| page.ready.ask_anew()), ..write });
    }

    /// Ends a process that holds a terminal without a session.
    pub fn end_keeper(self, pid: i32, object: String) {
        let path = format!("/api/keepers/{pid}/kill");
        let write =
            Write::new(keeper(pid), keepers::END, object, Method::POST, path, |write, _| {
                said(keepers::ended(&write.object))
            });
        self.write(Write { after: Some(|page| page.ready.ask_anew()), ..write });
    }

    /// Continues a stranded conversation as a background session.
    pub fn continue_stranded(self, reference: &str, object: String) {
        let path = paths::stranded_action(reference, "continue");
        let about = stranded(reference);
        let act = stranded_words::CONTINUE;
        self.write(Write::new(about, act, object, Method::POST, path, |write, text| {
            let done = wire::read::<ContinuedSession>(text)?;
            said(stranded_words::continued(&write.object, &done.job_id))
        }));
    }

    /// Takes a stranded conversation off the list.
    pub fn dismiss_stranded(self, reference: &str, object: String) {
        let path = paths::stranded_action(reference, "dismiss");
        let (about, act) = (stranded(reference), stranded_words::DISMISS);
        self.write(Write::new(about, act, object, Method::POST, path, |write, _| {
            said(stranded_words::dismissed(&write.object))
        }));
    }

    /// Takes back a launch that waits, or takes one that failed off the list.
    pub fn cancel_launch(self, one: &PlannedLaunch, act: &'static str) {
        let (about, path) = (one.id.to_string(), paths::launch_plan(one.id.as_str()));
        let done: Done = |write, text| {
            let left = wire::read::<PlannedLaunch>(text)?;
            let is_off = left.state.is(&PlannedState::Failed);
            said(if is_off { planned::removed } else { planned::cancelled }(&write.object))
        };
        let project = one.project.clone();
        self.write(Write::new(about, act, project, Method::DELETE, path, done));
    }

    /// Takes over the bridge of a project that was started elsewhere.
    pub fn manage(self, project: String) {
        let path = paths::project_action(&project, "adopt");
        let act = external::MANAGE;
        self.write(Write::new(project.clone(), act, project, Method::POST, path, |_, text| {
            let bridge = wire::read::<Instance>(text)?;
            let notice = Notice::new(Level::Success, external::managed(&bridge.project), "");
            Ok(vec![notice.then(Then::View(bridge.instance_id.to_string()))])
        }));
    }

    /// Shows a message; one about a bridge that has settled meanwhile says how.
    pub fn notice_of(self, notice: Notice) {
        let now = notice.follows.as_ref().and_then(|follows| {
            let bridge = self.store.instance(&follows.id)?.get_untracked();
            follows.is_settled_by(&bridge).then_some(bridge)
        });
        match now {
            // The stream was faster than the answer.
            Some(bridge) => self.say.notice(outcome::started(&bridge)),
            None => self.say.notice(notice),
        }
    }

    /// A request that was not carried out, or not answered.
    fn refused(self, write: Write, problem: &Problem) {
        self.store.show_again(&write.about);
        if problem.is_wrong_address() {
            self.live.wrong_address.set(true);
            return;
        }
        let title = page_words::not_done(write.verb, &write.object);
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
    wire::written(&ResumeRequest { trust: Some(true) })
}

/// What a request about a stranded conversation is pending as.
pub fn stranded(reference: &str) -> String {
    format!("stranded-{reference}")
}

/// What a request about such a process is pending as.
pub fn stray(pid: i32) -> String {
    format!("stray-{pid}")
}

/// What a request about the holder of a terminal is pending as.
pub fn keeper(pid: i32) -> String {
    format!("keeper-{pid}")
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
