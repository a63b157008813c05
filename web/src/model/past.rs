//! What happened to bridges, as the timeline tells it.

use crate::model::job::{Group, Job, JobView as _, face};
use crate::model::status::{Face, Glyph, Tone};
use crate::text::{cause, job, past as words, status};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use svc_shared::Timestamp;
use svc_shared::internal::{HistoryEvent, HistoryPage, SortData};
use svc_shared::status::History;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// In which project.
    pub project: String,
    /// To which bridge; it may be forgotten by now.
    pub instance: Option<String>,
    /// To which background session.
    pub job: Option<String>,
    /// What, as a status looks.
    pub face: Face,
    /// Kind of the bridge, and why it ended where that is known.
    pub facts: Vec<String>,
    /// It is the end of a generation.
    pub is_end: bool,
}

/// Which of the events are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Told {
    /// All, page by page.
    #[default]
    All,
    /// The newest few.
    Newest,
    /// The newest few ends.
    Ends,
}

/// Events of the short forms.
const FEW: usize = 6;
/// Ends that are told.
const FEW_ENDS: usize = 5;

impl Told {
    /// Those of the events that are told.
    #[must_use]
    pub fn of(self, events: &[Event]) -> Vec<Event> {
        let (ends_only, most) = match self {
            Self::All => (false, usize::MAX),
            Self::Newest => (false, FEW),
            Self::Ends => (true, FEW_ENDS),
        };
        events.iter().filter(|event| event.is_end || !ends_only).take(most).cloned().collect()
    }
}

/// Events, the newest first, and where older ones begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "HistoryPage")]
pub struct Past {
    /// The events.
    pub events: Vec<Event>,
    /// The `before` of the query for older events.
    ///
    /// `None` at the beginning of what is kept.
    pub before: Option<i64>,
}

impl From<HistoryEvent> for Event {
    fn from(event: HistoryEvent) -> Self {
        let kind = event.kind;
        let face = match kind.known() {
            Some(History::Spawned) => Face::new(Glyph::Dot, words::STARTED, Tone::Info),
            Some(History::Ready) => Face::new(Glyph::CheckDisc, words::READY, Tone::Ok),
            Some(History::Ended) => Face::new(Glyph::Square, words::ENDED, Tone::Neutral),
            Some(History::Crashed) => Face::new(Glyph::Triangle, status::CRASHED, Tone::Danger),
            Some(History::LinkLost) => Face::new(Glyph::BrokenRing, words::LINK_LOST, Tone::Warn),
            Some(History::LinkRestored) => Face::new(Glyph::CheckDisc, words::LINK_BACK, Tone::Ok),
            None => Face::new(Glyph::DottedRing, &kind.to_string(), Tone::Neutral),
        };
        let mode = event.mode.to_string();
        let mut facts = vec![status::kind(&mode, &mode)];
        if let Some(reason) = event.exit_reason {
            let said = match reason.known() {
                Some(known) => cause::reason(*known).map(str::to_owned),
                None => Some(reason.to_string()),
            };
            facts.extend(said);
        }
        facts.extend(event.detail);
        Self {
            at: event.at,
            project: event.project,
            instance: event.instance_id,
            job: None,
            face,
            facts,
            is_end: matches!(kind.known(), Some(History::Ended | History::Crashed)),
        }
    }
}

impl Past {
    /// The events together with those of background sessions, the newest first.
    ///
    /// The history keeps no background sessions; they tell of their own start and end. Those
    /// before the oldest event are left out while there are older events to read.
    #[must_use]
    pub fn with_jobs<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> Vec<Event> {
        let oldest = self.events.last().filter(|_| self.before.is_some()).map(|event| event.at);
        let mut all = self.events.clone();
        all.extend(jobs.flat_map(of_job).filter(|event| oldest.is_none_or(|at| event.at >= at)));
        all.sort_by_key(|event| std::cmp::Reverse(event.at));
        all
    }
}

/// The start of a background session, and its end if it has ended.
fn of_job(job: &Job) -> Vec<Event> {
    let mut facts = vec![job::KIND.to_owned()];
    facts.extend(Some(job.label()).filter(|label| !label.is_empty()));
    let event = |at: Option<Timestamp>, face: Face, is_end: bool| {
        at.map(|at| Event {
            at,
            project: job.object(),
            instance: None,
            job: Some(job.id.to_string()),
            face,
            facts: facts.clone(),
            is_end,
        })
    };
    let started = Face::new(Glyph::Dot, words::STARTED, Tone::Info);
    let is_over = matches!(job.group(), Group::NeedsLook | Group::Ended);
    let ended = is_over.then(|| event(job.changed_at(), face(&job.state), true)).flatten();
    event(job.created_at.parse().ok(), started, false).into_iter().chain(ended).collect()
}

impl From<HistoryPage> for Past {
    fn from(page: HistoryPage) -> Self {
        let events = page.events.into_iter().map(Event::from).collect();
        Self { events, before: page.next_before }
    }
}

/// When projects were last used, milliseconds; those that never were are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, SortData>")]
pub struct LastUsed(pub HashMap<String, i64>);

impl From<BTreeMap<String, SortData>> for LastUsed {
    fn from(all: BTreeMap<String, SortData>) -> Self {
        let used = |(name, data): (String, SortData)| Some((name, data.last_used?.as_millis()));
        Self(all.into_iter().filter_map(used).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wire::read;
    use svc_shared::status::{ExitReason, LaunchMode};

    fn written(kind: History, reason: Option<ExitReason>) -> HistoryEvent {
        HistoryEvent {
            id: 7,
            at: Timestamp::from_millis(60_000),
            project: "api".into(),
            instance_id: Some("3a37".into()),
            kind: kind.into(),
            mode: LaunchMode::Standard.into(),
            session_ref: None,
            exit_reason: reason.map(Into::into),
            detail: None,
            cost_usd: None,
        }
    }

    fn told(events: Vec<HistoryEvent>, next_before: Option<i64>) -> Past {
        let page = HistoryPage { events, next_before };
        read(&serde_json::to_string(&page).unwrap()).unwrap()
    }

    #[test]
    fn a_lost_link_says_why_and_is_no_end() {
        let lost =
            HistoryEvent { detail: Some("HTTP 503".into()), ..written(History::LinkLost, None) };
        let past = told(vec![written(History::LinkRestored, None), lost], None);
        let said: Vec<_> = past.events.iter().map(|e| (e.face.word.as_str(), e.is_end)).collect();
        assert_eq!(said, [("Link restored", false), ("Link lost", false)]);
        assert_eq!(past.events[1].facts, ["Server Mode", "HTTP 503"]);
    }

    #[test]
    fn an_event_says_what_happened_to_what_and_why() {
        let past = told(
            vec![
                written(History::Crashed, Some(ExitReason::OutOfMemory)),
                written(History::Ended, Some(ExitReason::CleanExit)),
                written(History::Spawned, None),
            ],
            Some(7),
        );
        assert_eq!(past.before, Some(7));
        let said: Vec<_> =
            past.events.iter().map(|e| (e.face.word.as_str(), e.facts.join(", "))).collect();
        assert_eq!(
            said,
            [
                ("Crashed", "Server Mode, killed, out of memory".to_owned()),
                ("Ended", "Server Mode".to_owned()),
                ("Started", "Server Mode".to_owned()),
            ]
        );
        assert_eq!(past.events.first().unwrap().at, Timestamp::from_millis(60_000));
        let ends = Told::Ends.of(&past.events);
        assert_eq!(ends.len(), 2);
        assert!(ends.iter().all(|event| event.is_end));
        assert_eq!(Told::All.of(&past.events), past.events);
        let many = vec![past.events[0].clone(); 9];
        assert_eq!((Told::Newest.of(&many).len(), Told::Ends.of(&many).len()), (6, 5));
    }

    #[test]
    fn a_word_of_a_newer_service_is_shown_as_it_is() {
        let text = r#"{"events":[{"id":1,"at":"1970-01-01T00:01:00.000Z","project":"api","instance_id":null,
            "kind":"resumed","mode":"pty","exit_reason":"eaten"}],"next_before":null}"#;
        let past: Past = read(text).unwrap();
        let event = past.events.first().unwrap();
        assert_eq!(
            (event.face.word.as_str(), event.facts.join(", ")),
            ("resumed", "Interactive Session, eaten".into())
        );
        assert_eq!((past.before, &event.instance), (None, &None));
    }

    #[test]
    fn background_sessions_stand_among_the_events_by_their_time() {
        let mut done = crate::model::sample::job("done");
        done.created_at = "1970-01-01T00:00:30.000Z".into();
        done.updated_at = "1970-01-01T00:02:00.000Z".into();
        let past = told(vec![written(History::Spawned, None)], None);
        let all = past.with_jobs([&done].into_iter());
        let said: Vec<_> = all.iter().map(|e| (e.face.word.as_str(), e.job.is_some())).collect();
        assert_eq!(said, [("Done", true), ("Started", false), ("Started", true)]);
        let past = told(vec![written(History::Spawned, None)], Some(7));
        assert_eq!(past.with_jobs([&done].into_iter()).len(), 2, "older events are not read yet");
        done.state = "working".into();
        assert_eq!(past.with_jobs([&done].into_iter()).len(), 1);
    }
}
