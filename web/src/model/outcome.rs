//! What a message says after an action, and after a bridge settled.

use crate::model::launch::Choice;
use crate::model::status::face;
use crate::model::{cause, time};
use crate::text::cause::with_output;
use crate::text::{job, session as words, status};
use svc_shared::api::instances::{Instance, SpawnRequest, SpawnResult};
use svc_shared::api::jobs::{DispatchResult, StopAgentResult};
use svc_shared::status::{BridgeStatus, NotCreated};

/// Weight of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Done. Goes by itself.
    Success,
    /// Under way, or nothing to do. Goes by itself.
    Info,
    /// Not as asked. Stays until dismissed.
    Warning,
    /// Failed. Stays until dismissed.
    Danger,
}

impl Level {
    /// Whether the message stays until a person dismisses it.
    #[must_use]
    pub fn stays(self) -> bool {
        match self {
            Self::Success | Self::Info => false,
            Self::Warning | Self::Danger => true,
        }
    }
}

/// A button of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// Opens the remote client of this instance.
    Open(String),
    /// Goes to the page of this instance.
    View(String),
    /// Resumes this instance.
    Resume(String),
    /// Opens the launch dialog of this project, filled in.
    Launch(String, Box<Choice>),
    /// Copies this text.
    Copy(String),
    /// Goes to this background job.
    Job(String),
}

/// A launch or a resume whose result is awaited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follows {
    /// The instance.
    pub id: String,
    /// The generation that was started.
    ///
    /// A record of an earlier one says nothing about it.
    pub generation: u32,
}

impl Follows {
    /// Whether this record says how it turned out.
    #[must_use]
    pub fn is_settled_by(&self, bridge: &Instance) -> bool {
        let is_over = match bridge.status.known() {
            Some(
                BridgeStatus::Running
                | BridgeStatus::Crashed
                | BridgeStatus::Error
                | BridgeStatus::Stopped,
            ) => true,
            Some(BridgeStatus::Starting | BridgeStatus::Stopping) | None => false,
        };
        is_over && bridge.instance_id.as_str() == self.id && bridge.generation >= self.generation
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Weight.
    pub level: Level,
    /// Names the object.
    pub title: String,
    /// The rest, if there is any.
    pub body: String,
    /// Buttons.
    pub then: Vec<Then>,
    /// The instance whose settling replaces this message.
    pub follows: Option<Follows>,
    /// Before this time (milliseconds) the service takes no repeat.
    pub not_before: Option<i64>,
}

impl Notice {
    /// A message without buttons.
    #[must_use]
    pub fn new(level: Level, title: String, body: impl Into<String>) -> Self {
        Self { level, title, body: body.into(), then: Vec::new(), follows: None, not_before: None }
    }

    /// Adds a button.
    #[must_use]
    pub fn then(mut self, then: Then) -> Self {
        self.then.push(then);
        self
    }
}

fn kind(bridge: &Instance) -> String {
    status::kind(&bridge.channel.to_string(), &bridge.resume_mode.to_string())
}

/// The message about a launch, as far as it is known now.
#[must_use]
pub fn started(bridge: &Instance) -> Notice {
    settled(bridge, words::started(&kind(bridge), &bridge.project))
}

/// The message about a bridge that the user waits for.
///
/// While the bridge is starting, the message follows it.
#[must_use]
pub fn settled(bridge: &Instance, ready_title: String) -> Notice {
    let id = bridge.instance_id.to_string();
    match bridge.status.known() {
        Some(BridgeStatus::Starting) => {
            let mut notice =
                Notice::new(Level::Info, words::starting_in(&bridge.project), words::STARTING_BODY)
                    .then(Then::View(id.clone()));
            notice.follows = Some(Follows { id, generation: bridge.generation });
            notice
        }
        Some(BridgeStatus::Error | BridgeStatus::Crashed) => failed(bridge),
        Some(BridgeStatus::Stopped | BridgeStatus::Stopping) | None => {
            let word = face(bridge, &[]).word;
            let title = words::ended_early(&bridge.project, &word);
            Notice::new(Level::Info, title, "").then(Then::View(id))
        }
        Some(BridgeStatus::Running) => {
            let notice = Notice::new(Level::Success, ready_title, "");
            let notice =
                if bridge.connect.available { notice.then(Then::Open(id.clone())) } else { notice };
            notice.then(Then::View(id))
        }
    }
}

/// A bridge ended badly: the cause, and the way to look.
#[must_use]
pub fn failed(bridge: &Instance) -> Notice {
    let id = bridge.instance_id.to_string();
    let why = cause::cause(bridge);
    // The last words of what was killed from outside often say nothing: how it ended comes first.
    let body = why.map_or_else(String::new, |why| match why.line {
        Some(line) if why.is_evidence => [why.headline, line].join(" · "),
        Some(line) => [why.headline, with_output(&line)].join(" · "),
        None => why.headline,
    });
    if bridge.status.is(&BridgeStatus::Error) {
        Notice::new(Level::Danger, words::failed_in(&bridge.project), body)
            .then(Then::View(id))
            .then(Then::Launch(bridge.project.clone(), Box::new(Choice::again(bridge))))
    } else {
        Notice::new(Level::Danger, words::crashed_in(&bridge.project), body).then(Then::View(id))
    }
}

fn remarks(result: &SpawnResult) -> impl Iterator<Item = Notice> {
    let title = words::remark(&result.instance.project);
    result
        .outcome
        .warnings
        .iter()
        .map(move |text| Notice::new(Level::Warning, title.clone(), text.clone()))
}

/// Options of the request that the bridge found running does not have.
fn not_applied(bridge: &Instance, asked: &SpawnRequest) -> Vec<&'static str> {
    let differs = |asked: &Option<String>, has: &str| asked.as_deref().is_some_and(|a| a != has);
    let mut names = Vec::new();
    if differs(&asked.permission_mode, &bridge.permission_mode.to_string()) {
        names.push("permission mode");
    }
    if differs(&asked.spawn_mode, &bridge.spawn_mode.to_string()) {
        names.push("where it runs");
    }
    if differs(&asked.name, &bridge.label) {
        names.push("session name");
    }
    names
}

/// Messages after a launch was answered.
#[must_use]
pub fn launched(result: &SpawnResult, asked: &SpawnRequest, zone: i32) -> Vec<Notice> {
    let bridge = &result.instance;
    let id = bridge.instance_id.to_string();
    let reason = result.outcome.reason_code.as_ref().and_then(|w| w.known());
    let first = match (result.outcome.created, reason) {
        (true, _) => started(bridge),
        (false, Some(NotCreated::ExternalReattached)) => {
            Notice::new(Level::Info, words::reattached(&bridge.project), words::REATTACHED_BODY)
                .then(Then::View(id))
        }
        (false, Some(NotCreated::StandardAlreadyLive | NotCreated::AlreadyRunning)) => {
            let since = time::date_time(bridge.started_at.unwrap_or(bridge.status_since), zone);
            Notice::new(
                Level::Info,
                words::reused(&bridge.project),
                words::reused_body(&since, &not_applied(bridge, asked)),
            )
            .then(Then::View(id))
        }
        (false, None) => Notice::new(
            Level::Info,
            words::reused(&bridge.project),
            result.outcome.reason.clone().unwrap_or_default(),
        )
        .then(Then::View(id)),
    };
    std::iter::once(first).chain(remarks(result)).collect()
}

/// Messages after a resume was answered. A decline is a warning, never a success.
#[must_use]
pub fn resumed(result: &SpawnResult) -> Vec<Notice> {
    let bridge = &result.instance;
    let id = bridge.instance_id.to_string();
    let first = if result.outcome.created {
        settled(bridge, words::resumed(&bridge.project))
    } else {
        let why = match result.outcome.reason_code.as_ref().and_then(|w| w.known()) {
            Some(NotCreated::StandardAlreadyLive) => words::NOT_RESUMED_LIVE.to_owned(),
            Some(NotCreated::AlreadyRunning) => words::NOT_RESUMED_RUNNING.to_owned(),
            Some(NotCreated::ExternalReattached) => words::REATTACHED_BODY.to_owned(),
            None => result.outcome.reason.clone().unwrap_or_default(),
        };
        Notice::new(Level::Warning, words::not_resumed(&bridge.project), why).then(Then::View(id))
    };
    std::iter::once(first).chain(remarks(result)).collect()
}

/// Message after a stop was answered.
#[must_use]
pub fn stopped(bridge: &Instance) -> Notice {
    let notice = Notice::new(Level::Success, words::stopped(&bridge.project), "");
    if bridge.resumable {
        notice.then(Then::Resume(bridge.instance_id.to_string()))
    } else {
        notice
    }
}

/// Messages after a dispatch was answered.
#[must_use]
pub fn dispatched(project: &str, answer: DispatchResult) -> Vec<Notice> {
    let first = Notice::new(Level::Success, job::started(project), "")
        .then(Then::Job(answer.id.to_string()));
    let remarks = answer.warnings;
    let remarks =
        remarks.into_iter().map(|text| Notice::new(Level::Warning, job::remark(project), text));
    std::iter::once(first).chain(remarks).collect()
}

/// Message after a job was stopped. Only a confirmed end is a success.
#[must_use]
pub fn job_stopped(object: &str, answer: StopAgentResult) -> Notice {
    let detail = answer.detail.unwrap_or_default();
    if answer.settled {
        Notice::new(Level::Success, job::stopped(object), detail)
    } else {
        Notice::new(Level::Warning, job::not_settled(object), detail)
    }
}

/// Message after an ended job was removed.
#[must_use]
pub fn job_removed(object: &str, answer: StopAgentResult) -> Notice {
    let detail = answer.detail.unwrap_or_default();
    if answer.removed {
        Notice::new(Level::Success, job::removed(object), "")
    } else {
        Notice::new(Level::Warning, job::not_removed(object), detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::bridge;
    use svc_shared::api::instances::Outcome;

    fn result(status: BridgeStatus, created: bool, code: Option<NotCreated>) -> SpawnResult {
        SpawnResult {
            instance: bridge("api", status),
            outcome: Outcome {
                created,
                reason: code.map(|_| "because".to_owned()),
                reason_code: code.map(Into::into),
                warnings: Vec::new(),
            },
        }
    }

    fn answer<T: serde::de::DeserializeOwned>(json: &str) -> T {
        crate::model::wire::read(json).unwrap()
    }

    #[test]
    fn a_stop_that_was_not_confirmed_is_a_warning_that_stays() {
        let said = |json| job_stopped("api", answer(json));
        let sure = said(r#"{"id":"3c509237","settled":true,"removed":true,"detail":null}"#);
        assert_eq!((sure.level, sure.body.as_str()), (Level::Success, ""));
        let unsure =
            said(r#"{"id":"3c509237","settled":false,"removed":true,"detail":"no worker"}"#);
        assert_eq!((unsure.level, unsure.body.as_str()), (Level::Warning, "no worker"));
        let left = answer(r#"{"id":"3c509237","settled":false,"removed":false,"detail":"busy"}"#);
        assert_eq!(job_removed("api", left).level, Level::Warning);
        assert!(crate::model::wire::read::<StopAgentResult>("{}").is_err());
    }

    #[test]
    fn a_dispatch_leads_to_its_job_and_tells_each_remark() {
        let said =
            dispatched("api", answer(r#"{"id":"3c509237","created":true,"warnings":["w"]}"#));
        assert_eq!(said[0].then, [Then::Job("3c509237".into())]);
        assert_eq!((said[1].level, said[1].body.as_str()), (Level::Warning, "w"));
    }

    #[test]
    fn a_crash_says_how_it_ended_before_its_last_words() {
        let mut killed = bridge("api", BridgeStatus::Crashed);
        killed.exit_signal = Some(9);
        killed.error_detail = Some("space to show QR code\n".to_owned());
        let body = failed(&killed).body;
        assert!(
            body.contains("KILL") && body.ends_with(" · Last output: space to show QR code"),
            "{body}"
        );
        killed.error_detail = None;
        assert!(!failed(&killed).body.contains('·'));
    }

    fn first(notices: Vec<Notice>) -> Notice {
        notices.into_iter().next().unwrap()
    }

    #[test]
    fn a_launch_under_way_is_followed_until_it_settles() {
        let starting = result(BridgeStatus::Starting, true, None);
        let notice = first(launched(&starting, &SpawnRequest::default(), 0));
        let id = starting.instance.instance_id.to_string();
        let follows = Follows { id, generation: 1 };
        assert_eq!((notice.level, notice.follows), (Level::Info, Some(follows)));
        let mut row = bridge("api", BridgeStatus::Error);
        row.error_detail = Some("no way\n".into());
        let failed = settled(&row, String::new());
        let why = "exit status not known · Last output: no way";
        assert_eq!((failed.level, failed.body.as_str()), (Level::Danger, why));
        assert_eq!(failed.follows, None);
        let again = Then::Launch("api".into(), Box::new(Choice::again(&row)));
        assert!(failed.then.contains(&again), "it can be edited and tried again");
    }

    #[test]
    fn a_record_of_the_generation_before_does_not_settle_a_resume() {
        let mut row = bridge("api", BridgeStatus::Stopped);
        let follows = Follows { id: row.instance_id.to_string(), generation: 2 };
        assert!(!follows.is_settled_by(&row), "it stopped before it was resumed");
        row.generation = 2;
        assert!(follows.is_settled_by(&row), "it was stopped while it started");
        assert!(!settled(&row, "api is running".into()).title.contains("running"));
        for (status, is_settled) in [
            (BridgeStatus::Starting, false),
            (BridgeStatus::Stopping, false),
            (BridgeStatus::Running, true),
            (BridgeStatus::Crashed, true),
            (BridgeStatus::Error, true),
        ] {
            row.status = status.into();
            assert_eq!(follows.is_settled_by(&row), is_settled, "{status}");
        }
    }

    #[test]
    fn a_reused_bridge_lists_the_options_that_did_not_count() {
        let asked = SpawnRequest {
            permission_mode: Some("plan".into()),
            spawn_mode: Some("same-dir".into()),
            name: Some("nightly".into()),
            ..SpawnRequest::default()
        };
        let reused = result(BridgeStatus::Running, false, Some(NotCreated::StandardAlreadyLive));
        let notice = first(launched(&reused, &asked, 0));
        assert_eq!(notice.level, Level::Info);
        assert_eq!(
            notice.body,
            "Server Mode already runs there, since 1970-01-01 00:00:00. \
             Not applied: permission mode, session name."
        );
    }

    #[test]
    fn a_declined_resume_is_a_warning_that_stays() {
        for code in [NotCreated::StandardAlreadyLive, NotCreated::AlreadyRunning] {
            let notice = first(resumed(&result(BridgeStatus::Running, false, Some(code))));
            assert_eq!(notice.level, Level::Warning);
            assert!(notice.level.stays());
        }
    }

    #[test]
    fn a_bridge_found_running_is_told_apart_from_a_new_one() {
        let found = result(BridgeStatus::Running, false, Some(NotCreated::ExternalReattached));
        let notice = first(launched(&found, &SpawnRequest::default(), 0));
        assert_eq!((notice.level, notice.body.as_str()), (Level::Info, words::REATTACHED_BODY));
        let new = result(BridgeStatus::Running, true, None);
        let notice = first(launched(&new, &SpawnRequest::default(), 0));
        assert_eq!(notice.level, Level::Success);
        assert!(notice.title.contains("api") && notice.title.contains("Server Mode"));
        let again = first(resumed(&new));
        assert_eq!(again.level, Level::Success);
        let mut ended = bridge("api", BridgeStatus::Stopped);
        ended.resumable = true;
        let id = ended.instance_id.to_string();
        assert_eq!(stopped(&ended).then, [Then::Resume(id)]);
        ended.resumable = false;
        assert_eq!(stopped(&ended).then, []);
    }

    #[test]
    fn each_remark_of_the_server_is_a_message_of_its_own() {
        let mut worked = result(BridgeStatus::Running, true, None);
        worked.outcome.warnings = vec!["one".into(), "two".into()];
        let notices = launched(&worked, &SpawnRequest::default(), 0);
        let texts: Vec<&str> = notices.iter().map(|n| n.body.as_str()).collect();
        assert_eq!(texts, ["", "one", "two"]);
    }
}
