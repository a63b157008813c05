//! What happened to a session up to its end.

use crate::AppError;
use svc_domain::redact::redact_text;
use svc_domain::report::person;
use svc_shared::Timestamp;
use svc_shared::api::instances::Instance;
use svc_shared::cause as words;
use svc_shared::internal::report::ReportEvent;
use svc_shared::status::{Channel, ExitReason};
use svc_store::{EndFacts, HistoryFilter, PastEvent, Store};

/// Most events of the history.
const EVENTS: u32 = 100;

/// What happened, and what of it speaks about the last generation.
pub(super) struct Timeline {
    /// The oldest first.
    pub events: Vec<ReportEvent>,
    /// When the last generation was ready.
    pub ready_at: Option<Timestamp>,
    /// Why its link was lost, if it did not come back.
    pub link_lost: Option<String>,
}

impl Timeline {
    pub async fn of(
        store: &Store,
        record: &Instance,
        noted: &[(u32, EndFacts)],
    ) -> Result<Self, AppError> {
        let instance = Some(record.instance_id.to_string());
        let filter = HistoryFilter { instance, limit: EVENTS, ..HistoryFilter::default() };
        let mut past = store.history(&filter).await?;
        past.reverse();
        let mut timeline = Self { events: Vec::new(), ready_at: None, link_lost: None };
        let mut launches = 0_u32;
        for event in &past {
            timeline.add(event, &mut launches);
        }
        if past.is_empty() {
            timeline.outline(record);
        }
        for (_, facts) in noted {
            if let Some((by, at)) = &facts.asked {
                let who = person(by);
                let says = format!("A stop was asked for by {}.", who.trim_end_matches(','));
                timeline.push(*at, "stop_asked", says);
            }
        }
        if record.channel.is(&Channel::Hosted) {
            timeline.answers(store, record).await?;
        }
        if let Some(at) = record.restart.next_at {
            timeline.push(at, "restart_due", "It restarts by itself.".to_owned());
        }
        timeline.events.sort_by_key(|event| event.at);
        Ok(timeline)
    }

    fn push(&mut self, at: Timestamp, kind: &str, says: String) {
        self.events.push(ReportEvent { at, kind: kind.to_owned(), says });
    }

    fn add(&mut self, past: &PastEvent, launches: &mut u32) {
        let at = Timestamp::from_millis(past.at);
        let detail = past.detail.as_deref().map(redact_text);
        let says = match past.kind.as_str() {
            "spawned" => {
                (self.ready_at, self.link_lost) = (None, None);
                *launches += 1;
                match *launches {
                    1 => "Launched.".to_owned(),
                    _ => "Launched again.".to_owned(),
                }
            }
            "ready" => {
                self.ready_at = Some(at);
                "Ready.".to_owned()
            }
            "link_lost" => {
                let why = detail.unwrap_or_else(|| "for an unknown reason".to_owned());
                let says = format!("The remote link was lost: {}.", why.trim_end_matches('.'));
                self.link_lost = Some(why);
                says
            }
            "link_restored" => {
                self.link_lost = None;
                "The remote link came back.".to_owned()
            }
            "ended" | "crashed" => {
                let what = if past.kind == "ended" { "Ended" } else { "Crashed" };
                match past.exit_reason.as_deref().map(in_words) {
                    Some(why) => format!("{what}: {why}."),
                    None => format!("{what}."),
                }
            }
            other => redact_text(other),
        };
        self.push(at, &past.kind, says);
    }

    /// What the record itself knows, for a kind without a history.
    fn outline(&mut self, record: &Instance) {
        if let Some(at) = record.started_at {
            self.push(at, "spawned", "Launched.".to_owned());
        }
        if let Some(at) = record.ended_at {
            let why = record.exit_reason.as_ref().map(ToString::to_string);
            let says = match why.as_deref().map(in_words) {
                Some(why) => format!("Ended: {why}."),
                None => "Ended.".to_owned(),
            };
            self.push(at, "ended", says);
        }
    }

    /// What its agent asked, and what was answered.
    async fn answers(&mut self, store: &Store, record: &Instance) -> Result<(), AppError> {
        for prompt in store.answered_prompts().await? {
            let (Some(decision), Some(at)) = (prompt.decision, prompt.answered_at) else {
                continue;
            };
            if prompt.instance_id != record.instance_id.as_str() {
                continue;
            }
            let tool = prompt.tool.as_deref().map(redact_text).unwrap_or(prompt.subtype);
            self.push(prompt.since, "asked", format!("The agent asked about {tool}."));
            self.push(at, "answered", format!("The answer about {tool}: {decision}."));
        }
        Ok(())
    }
}

/// An exit reason in words; a word of another version as it is.
fn in_words(raw: &str) -> String {
    match raw.parse::<ExitReason>() {
        Ok(reason) => match words::reason(reason) {
            Some(words) => words.to_owned(),
            None => raw.replace('_', " "),
        },
        Err(_) => redact_text(raw),
    }
}
