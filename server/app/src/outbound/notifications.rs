//! Notifications of the service, through the services that a person has on a phone.
//!
//! Beside webhooks: the same queue for each target, the same rule of addresses, one attempt.

mod gather;
mod mail;
mod notice;
mod services;
mod target;

use super::kept::Kept;
use super::message::{delivery_id, fitted};
use super::push::{Call, Push, Question, Word};
use super::rule::Terms;
use crate::asked::rows::AskedRows;
use crate::auth::Identity;
use crate::hosted::rows::HostedRows;
use crate::registry::copies::Copies;
use crate::tasks::Tasks;
use crate::{AppError, Class, failpoint};
use futures_util::future::join_all;
use gather::{Gatherer, Key, SETTLE, Told};
use notice::Notice;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_config::Config;
use svc_domain::notification::address::Address;
use svc_domain::notification::quiet::QuietHours;
use svc_domain::notification::text::{self, Kind, Line};
use svc_ports::Clock;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::events::{Event, EventName, Payload};
use svc_shared::ids::InstanceId;
use svc_shared::internal::notifications::{
    NotificationReport, NotificationTarget, NotificationTests,
};
use target::Target;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Longest name of a session, in bytes.
const NAME: usize = 200;
/// Most events that wait to be gathered.
const MOST_NEW: usize = 10_000;
/// What is told of notifications whose end an earlier service did not see.
const INTERRUPTED: &str = "svc ended before the answer came; look at the service itself, and send a \
     test if it did not arrive";
/// How long the clock is trusted while events wait for the end of quiet hours.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// Something that happened, as it is offered.
enum New {
    Line(Line),
    Question(Key),
}

/// A notification of questions that are open.
struct Shown {
    /// Of the services of the configuration, if they were told.
    notice: Option<Arc<Notice>>,
    /// Of devices.
    call: Arc<Call>,
    open: BTreeSet<Key>,
}

/// What is known of questions, and of the sessions that ask.
pub(super) type Sources<'a> = (&'a Arc<HostedRows>, &'a Arc<AskedRows>, &'a Arc<Copies>);

/// The targets, and what they are told.
pub struct Notifications {
    /// What is told, and when, is read at each use: it changes while the service runs.
    config: Arc<Config>,
    targets: Vec<Arc<Target>>,
    unusable: Vec<NotificationTarget>,
    new: Mutex<Vec<New>>,
    news: Notify,
    gathered: Mutex<Gatherer>,
    at_start: Mutex<BTreeSet<Key>>,
    push: Arc<Push>,
    rows: Arc<HostedRows>,
    asked: Arc<AskedRows>,
    copies: Arc<Copies>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
}

impl std::fmt::Debug for Notifications {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifications")
            .field("targets", &self.targets.len())
            .finish_non_exhaustive()
    }
}

impl Notifications {
    /// Reads the settings. `port` is the one that this service listens on.
    pub(crate) fn new(
        config: &Arc<Config>,
        port: u16,
        clock: &Arc<dyn Clock>,
        tasks: &Tasks,
        (rows, asked, copies): Sources<'_>,
        push: &Arc<Push>,
    ) -> Self {
        let settings = &config.notifications;
        let (mut targets, mut unusable) = (Vec::new(), Vec::new());
        for (index, entry) in settings.urls.iter().enumerate() {
            let kept = Kept::recorded(entry.expose(), &rows.store, rows.has_readers());
            let (entry, address) = (index + 1, Address::parse(entry.expose()));
            let terms = Terms::of(config, port);
            match address {
                Ok(address) => {
                    targets.extend(Target::new(entry, address, terms, kept).map(Arc::new));
                }
                Err(why) => unusable.push(NotificationTarget {
                    entry,
                    service: String::new(),
                    target: String::new(),
                    problem: Some(format!("it {why}")),
                    deliveries: Vec::new(),
                }),
            }
        }
        let settle = failpoint::time("notify.settle").unwrap_or(SETTLE);
        Self {
            config: Arc::clone(config),
            targets,
            unusable,
            new: Mutex::default(),
            news: Notify::new(),
            gathered: Mutex::new(Gatherer::new(settle)),
            at_start: Mutex::default(),
            push: Arc::clone(push),
            rows: Arc::clone(rows),
            asked: Arc::clone(asked),
            copies: Arc::clone(copies),
            clock: Arc::clone(clock),
            tasks: tasks.clone(),
        }
    }

    fn has_targets(&self) -> bool {
        self.is_enabled() && !self.targets.is_empty()
    }

    /// The events that are told.
    fn wanted(&self) -> BTreeSet<EventName> {
        let settings = &self.config.notifications;
        let all = [
            (EventName::Crash, settings.notify_on_crash),
            (EventName::Ready, settings.notify_on_ready),
            (EventName::Stop, settings.notify_on_stop),
            (EventName::SessionEnd, settings.notify_on_session_end),
            (EventName::ReconnectFailed, settings.notify_on_reconnect_failed),
            (EventName::PermissionNeeded, settings.notify_on_permission),
        ];
        all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
    }

    /// Starts a worker for each target, and what gathers for them and for devices.
    pub(crate) async fn start(self: &Arc<Self>) {
        let keys: Vec<String> =
            self.targets.iter().filter_map(|target| target.kept().key()).collect();
        if let Err(error) = self.rows.store.begin_deliveries(&keys, INTERRUPTED).await {
            tracing::warn!(%error, "how earlier notifications ended is not recorded");
        }
        self.load().await;
        // What is told at the very end is tried as well.
        let over = CancellationToken::new();
        if self.has_targets() {
            tracing::info!(
                "notifications go to {} targets (`notifications.urls`)",
                self.targets.len()
            );
        }
        // Also while notifications are off: they can be switched on.
        for target in &self.targets {
            let (target, over) = (Arc::clone(target), over.clone());
            self.tasks.spawn(async move { target.run(&over).await });
        }
        let (push, end) = (Arc::clone(&self.push), over.clone());
        self.tasks.spawn(async move { push.run(&end).await });
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            this.run().await;
            over.cancel();
        });
    }

    async fn load(&self) {
        join_all(self.targets.iter().map(|target| target.kept().load())).await;
    }

    fn new_ones(&self) -> MutexGuard<'_, Vec<New>> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gathered(&self) -> MutexGuard<'_, Gatherer> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event in, if it is told. Never waits.
    pub(crate) fn offer(&self, event: &Event) {
        let is_wanted = self.has_targets() && self.wanted().contains(&event.name());
        // What each device wants is known when it is told.
        if !is_wanted && !self.push.is_enabled() {
            return;
        }
        let new = match &event.payload {
            Payload::Bridge(told) => {
                let kind = match told.event {
                    EventName::Crash if told.restart_quarantined => Kind::GaveUp,
                    EventName::Crash => Kind::Crashed,
                    EventName::Ready => Kind::Ready,
                    EventName::Stop => Kind::Stopped,
                    EventName::SessionEnd => Kind::Ended,
                    EventName::ReconnectFailed => Kind::LinkLost,
                    EventName::Spawn
                    | EventName::BgSettled
                    | EventName::PermissionNeeded
                    | EventName::CloneDone => return,
                };
                New::Line(Line {
                    instance_id: event.instance_id.clone(),
                    label: shown_name(&told.label),
                    project: shown_name(told.project.as_str()),
                    kind,
                })
            }
            Payload::PermissionNeeded(told) => {
                New::Question((event.instance_id.clone(), told.request_id.clone()))
            }
            Payload::BgSettled(_) | Payload::CloneDone(_) => return,
        };
        let mut all = self.new_ones();
        if all.len() < MOST_NEW {
            all.push(new);
        }
        drop(all);
        self.news.notify_one();
    }

    /// Gathers and tells, until the service ends.
    async fn run(&self) {
        let (mut changes, mut asked) = (self.rows.changes(), self.asked.changes());
        let mut shown: Vec<Shown> = Vec::new();
        let shutdown = self.tasks.shutdown().clone();
        loop {
            self.gather();
            self.take_at_start(&mut shown);
            let due = self.wake_up();
            let sleep = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.news.notified() => continue,
                () = sleep => self.tell(&mut shown, false).await,
                // The rows live as long as this.
                Ok(()) = changes.changed(), if !shown.is_empty() => self.withdraw(&mut shown).await,
                Ok(()) = asked.changed(), if !shown.is_empty() => self.withdraw(&mut shown).await,
                () = shutdown.cancelled() => break,
            }
        }
        self.gather();
        self.tell(&mut shown, true).await;
    }

    fn gather(&self) {
        let (new, now) = (std::mem::take(&mut *self.new_ones()), Instant::now());
        let mut gathered = self.gathered();
        for one in new {
            match one {
                New::Line(line) => gathered.line(line, now),
                New::Question(key) => gathered.question(key, now),
            }
        }
    }

    /// When to look next.
    fn wake_up(&self) -> Option<Instant> {
        let (due, held) = {
            let gathered = self.gathered();
            (gathered.due(), gathered.held())
        };
        if held == 0 {
            return due;
        }
        // The clock can be set meanwhile, and the machine can sleep.
        let minutes = self.quiet_left().unwrap_or_default();
        let end = Instant::now() + Duration::from_secs(u64::from(minutes) * 60).min(LOOK_AGAIN);
        Some(due.map_or(end, |due| due.min(end)))
    }

    /// How many minutes of quiet are left; `None` outside of them.
    fn quiet_left(&self) -> Option<u32> {
        use chrono::{Local, TimeZone as _, Timelike as _};
        let hours = self.config.notifications.quiet_hours.as_deref()?;
        let hours: QuietHours = hours.parse().ok()?;
        let now = Local.timestamp_millis_opt(self.clock.now().as_millis()).earliest()?;
        hours.left(now.hour() * 60 + now.minute())
    }

    fn open_questions(&self) -> BTreeSet<Key> {
        let all = self.rows.prompts().into_iter().chain(self.asked.all());
        let open = all.filter(|row| row.decision.is_none());
        open.map(|row| (row.instance_id.parse().ok(), row.request_id)).collect()
    }

    async fn tell(&self, shown: &mut Vec<Shown>, is_end: bool) {
        let (is_quiet, open) = (self.quiet_left().is_some(), self.open_questions());
        let is_open = |key: &Key| open.contains(key);
        let told = {
            let mut gathered = self.gathered();
            match is_end {
                false => gathered.take(Instant::now(), is_quiet, &is_open),
                true => gathered.rest(is_quiet, &is_open),
            }
        };
        for told in told {
            let at = self.clock.now();
            let delivery = match delivery_id(at) {
                Ok(delivery) => delivery,
                Err(error) => {
                    tracing::warn!(error = %error, "a notification was not made");
                    continue;
                }
            };
            let notice = self.notice(&told, &delivery, at).map(Arc::new);
            let call = Arc::new(Call { delivery, at, word: self.word(&told) });
            if self.push.is_enabled() {
                self.push.tell(Arc::clone(&call));
            }
            if let Some(notice) = &notice {
                join_all(self.targets.iter().map(|target| target.tell(notice))).await;
            }
            if let Told::Questions(keys) = told {
                shown.push(Shown { notice, call, open: keys.into_iter().collect() });
            }
        }
    }

    /// What devices are told.
    fn word(&self, told: &Told) -> Word {
        match told {
            Told::Lines(lines) => Word::Lines(lines.clone()),
            Told::Questions(keys) => {
                Word::Questions(keys.iter().map(|key| self.question(key)).collect())
            }
        }
    }

    fn question(&self, key: &Key) -> Question {
        let (id, request) = key;
        let (label, project) = self.session(key);
        let id_text = id.as_ref().map(InstanceId::as_str).unwrap_or_default();
        let mut asked = self.rows.prompts().into_iter().chain(self.asked.get(request));
        let row = asked.find(|row| row.instance_id == id_text && row.request_id == *request);
        let (tool, summary) = row.map(|row| (row.tool, row.summary)).unwrap_or_default();
        Question {
            instance_id: id.clone(),
            request_id: request.clone(),
            project,
            label,
            tool: tool.as_deref().map(shown_name),
            summary,
        }
    }

    /// What the services of the configuration are told; `None` where that is nothing.
    fn notice(&self, told: &Told, delivery: &str, at: Timestamp) -> Option<Notice> {
        if !self.has_targets() {
            return None;
        }
        let wanted = self.wanted();
        let (event, text, is_urgent) = match told {
            Told::Lines(lines) => {
                let is_wanted = |line: &&Line| wanted.contains(&event_of(line.kind));
                let lines: Vec<Line> = lines.iter().filter(is_wanted).cloned().collect();
                let is_bad = |line: &Line| event_of(line.kind) == EventName::Crash;
                let event = match lines.as_slice() {
                    [] => return None,
                    [one] => event_of(one.kind).as_str(),
                    _ => "summary",
                };
                (event, text::of_lines(&lines), lines.iter().any(is_bad))
            }
            Told::Questions(_) if !wanted.contains(&EventName::PermissionNeeded) => {
                return None;
            }
            Told::Questions(keys) => {
                let mut sessions: Vec<(String, String)> =
                    keys.iter().map(|key| self.session(key)).collect();
                let text = match (sessions.pop(), sessions.is_empty()) {
                    (Some((label, project)), true) => text::of_question(&label, &project),
                    (last, _) => {
                        sessions.extend(last);
                        text::of_questions(&sessions)
                    }
                };
                (EventName::PermissionNeeded.as_str(), text, true)
            }
        };
        let is_question = matches!(told, Told::Questions(_));
        Some(Notice { delivery: delivery.to_owned(), event, text, is_urgent, is_question, at })
    }

    /// Label and project of a session that asks.
    fn session(&self, (id, request): &Key) -> (String, String) {
        let direct = id.as_ref().and_then(|id| self.rows.get(id));
        if let Some(session) = direct {
            return (shown_name(session.label()), shown_name(session.project.as_str()));
        }
        if let Some(bridge) = id.as_ref().and_then(|id| self.copies.bridge(id)) {
            return (shown_name(bridge.label()), shown_name(bridge.project.as_str()));
        }
        let project = self.asked.get(request).map(|row| shown_name(&row.project));
        ("A session".to_owned(), project.unwrap_or_else(|| "A session".to_owned()))
    }

    /// Takes back what is answered.
    async fn withdraw(&self, shown: &mut Vec<Shown>) {
        let open = self.open_questions();
        let (mut left, mut over) = (Vec::new(), Vec::new());
        for (place, mut one) in std::mem::take(shown).into_iter().enumerate() {
            one.open.retain(|key| open.contains(key));
            if one.open.is_empty() { &mut over } else { &mut left }.push((place, one));
        }
        for (place, one) in over {
            if let Some(notice) = &one.notice {
                join_all(self.targets.iter().map(|target| target.withdraw(notice))).await;
            }
            if !self.push.is_enabled() {
                continue;
            }
            // A device shows one notification of a session, the last.
            let tag = one.call.question_tag();
            match left.iter().rev().find(|(_, other)| other.call.question_tag() == tag) {
                None => self.push.close(one.call),
                Some((earlier, other)) if *earlier < place => {
                    self.push.tell(Arc::clone(&other.call));
                }
                Some(_) => {}
            }
        }
        *shown = left.into_iter().map(|(_, one)| one).collect();
    }

    /// Takes what is open at the start for what devices show: it may be taken back.
    pub(crate) fn know_open(&self) {
        *self.at_start.lock().unwrap_or_else(PoisonError::into_inner) = self.open_questions();
        self.news.notify_one();
    }

    fn take_at_start(&self, shown: &mut Vec<Shown>) {
        let mut keys = self.at_start.lock().unwrap_or_else(PoisonError::into_inner);
        for key in std::mem::take(&mut *keys) {
            if self.gathered().has_question(&key) {
                continue;
            }
            let call = Call {
                delivery: delivery_id(self.clock.now()).unwrap_or_default(),
                at: self.clock.now(),
                word: Word::Questions(vec![self.question(&key)]),
            };
            shown.push(Shown { notice: None, call: Arc::new(call), open: [key].into() });
        }
    }

    /// What the page shows. A command reads what the service has recorded.
    ///
    /// # Errors
    /// The devices cannot be read.
    pub async fn report(&self, asking: Option<&Identity>) -> Result<NotificationReport, AppError> {
        if !self.rows.has_readers() {
            self.load().await;
        }
        let push_enabled = self.push.is_enabled();
        let devices = match push_enabled {
            true => self.push.list(asking).await?,
            false => Vec::new(),
        };
        let mut targets: Vec<NotificationTarget> =
            self.targets.iter().map(|target| target.report()).collect();
        targets.extend(self.unusable.iter().cloned());
        targets.sort_by_key(|target| target.entry);
        Ok(NotificationReport {
            enabled: self.is_enabled(),
            events: self.wanted().iter().map(|name| name.as_str().to_owned()).collect(),
            quiet_hours: self.config.notifications.quiet_hours.clone(),
            is_quiet: self.quiet_left().is_some(),
            held: self.gathered().held(),
            targets,
            push_enabled,
            devices,
        })
    }

    /// Sends a test to every target, or to the one at a place of the list.
    ///
    /// Works also while `notifications.enabled` is off, so that targets can be tried first.
    ///
    /// # Errors
    /// There is no such target, or it is disabled.
    pub async fn test(&self, entry: Option<usize>) -> Result<NotificationTests, AppError> {
        let chosen: Vec<&Arc<Target>> = self
            .targets
            .iter()
            .filter(|target| entry.is_none_or(|entry| target.entry() == entry))
            .collect();
        if chosen.is_empty() {
            let disabled = self.unusable.iter().find(|target| Some(target.entry) == entry);
            let text = match (entry, disabled.and_then(|target| target.problem.as_deref())) {
                (Some(entry), Some(why)) => {
                    format!("entry {entry} of `notifications.urls` is disabled: {why}")
                }
                (Some(_), None) => "`notifications.urls` has no such entry; name its place in the \
                                    list, from 1"
                    .to_owned(),
                (None, _) => "`notifications.urls` has no target; add one, such as \
                              ntfys://HOST/TOPIC"
                    .to_owned(),
            };
            return Err(AppError::new(ErrorCode::InvalidValue, Class::Invalid, text));
        }
        let at = self.clock.now();
        let notice = Notice {
            delivery: delivery_id(at)?,
            event: "test",
            text: text::of_test(),
            is_urgent: false,
            is_question: false,
            at,
        };
        let tested = join_all(chosen.into_iter().map(|target| target.test(&notice))).await;
        Ok(NotificationTests { tested })
    }

    /// Whether events are told at all.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.config.notifications.enabled
    }
}

fn event_of(kind: Kind) -> EventName {
    match kind {
        Kind::Crashed | Kind::GaveUp => EventName::Crash,
        Kind::Ready => EventName::Ready,
        Kind::Stopped => EventName::Stop,
        Kind::Ended => EventName::SessionEnd,
        Kind::LinkLost => EventName::ReconnectFailed,
    }
}

/// A name that people chose: redacted, in one line, cut.
fn shown_name(name: &str) -> String {
    fitted(&svc_domain::log_escape::escape(name), NAME)
}
