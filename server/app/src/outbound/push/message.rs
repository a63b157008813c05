//! What a device is shown, and how a push service is to treat it.
//!
//! By default a notification names the event, the project, the session's id and the name of the
//! question, nothing of what is worked on (H134).

use crate::outbound::message::fitted;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use svc_domain::notification::text::{self, Kind, Line, Text};
use svc_shared::Timestamp;
use svc_shared::ids::InstanceId;
use svc_shared::internal::push::PushEvent;

/// Longest text of a notification, in bytes.
const BODY: usize = 1_200;
/// Most bytes that are encrypted.
///
/// Push services take 4,096 with what encryption adds.
const MOST: usize = 3_900;
/// Characters of a topic; at most 32 are allowed.
const TOPIC: usize = 24;
/// How long a push service keeps a question for a device that is away, in seconds.
const QUESTION_TTL: u32 = 4 * 3600;
/// The same for what happened.
const LINE_TTL: u32 = 24 * 3600;
/// The same for a test, which is of use only now.
const TEST_TTL: u32 = 60;

/// A question that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub instance_id: Option<InstanceId>,
    pub request_id: String,
    pub project: String,
    /// What people call the session.
    pub label: String,
    pub tool: Option<String>,
    /// What it wants to do, redacted.
    pub summary: String,
}

/// What is told to whom it may concern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// What happened to sessions.
    Lines(Vec<Line>),
    /// Questions that wait; never empty.
    Questions(Vec<Question>),
    /// Only that notifications arrive.
    Test,
}

/// One notification, before it is known what each device wants of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Unique per notification.
    pub delivery: String,
    /// When it was made.
    pub at: Timestamp,
    pub word: Word,
}

/// What the configuration allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    /// Names of sessions, and what they ask.
    pub content: bool,
    /// Buttons that answer.
    pub actions: bool,
}

/// A message to one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// What it is about.
    pub event: &'static str,
    /// Its first line.
    pub title: String,
    /// What is encrypted.
    pub payload: Vec<u8>,
    pub urgency: &'static str,
    /// Seconds.
    pub ttl: u32,
    /// A later message with the same one replaces one that was not delivered yet.
    pub topic: String,
}

#[derive(Serialize)]
struct Payload<'a> {
    kind: &'static str,
    tag: &'a str,
    title: &'a str,
    body: &'a str,
    url: &'a str,
    event: &'a str,
    instance_id: Option<&'a str>,
    project: Option<&'a str>,
    request_id: Option<&'a str>,
    actions: &'a [&'static str],
    at: i64,
}

/// Names what a notification is about: a later one about the same replaces it.
fn tag(event: &str, id: Option<&InstanceId>) -> String {
    match id {
        Some(id) => format!("svc-{event}-{id}"),
        None => format!("svc-{event}"),
    }
}

fn event_of(kind: Kind) -> PushEvent {
    match kind {
        Kind::Crashed => PushEvent::Crash,
        Kind::GaveUp => PushEvent::Quarantine,
        Kind::Ready => PushEvent::Ready,
        Kind::Stopped => PushEvent::Stop,
        Kind::Ended => PushEvent::SessionEnd,
        Kind::LinkLost => PushEvent::ReconnectFailed,
    }
}

impl Call {
    /// What the notification of questions is about; `None` for another one.
    pub fn question_tag(&self) -> Option<String> {
        let Word::Questions(all) = &self.word else { return None };
        let event = PushEvent::PermissionNeeded.as_str();
        Some(match all.as_slice() {
            [one] => tag(event, one.instance_id.as_ref()),
            _ => tag("questions", None),
        })
    }

    /// What a device is shown that wants these events; `None` where that is nothing.
    pub(super) fn shown(&self, wanted: &BTreeSet<PushEvent>, allowed: Allowed) -> Option<Message> {
        match &self.word {
            Word::Lines(all) => {
                let lines: Vec<Line> = all
                    .iter()
                    .filter(|line| wanted.contains(&event_of(line.kind)))
                    .map(|line| match allowed.content {
                        true => line.clone(),
                        false => Line { label: line.project.clone(), ..line.clone() },
                    })
                    .collect();
                self.of_lines(&lines)
            }
            Word::Questions(all) if wanted.contains(&PushEvent::PermissionNeeded) => {
                self.of_questions(all, allowed)
            }
            Word::Questions(_) => None,
            Word::Test => {
                let told = Told { text: text::of_test(), ..Told::of("test", "/ui/notifications") };
                Some(self.message(&told, ("normal", TEST_TTL)))
            }
        }
    }

    fn of_lines(&self, lines: &[Line]) -> Option<Message> {
        let text = text::of_lines(lines);
        let is_bad = |line: &Line| matches!(line.kind, Kind::Crashed | Kind::GaveUp);
        let urgency = if lines.iter().any(is_bad) { "high" } else { "normal" };
        let told = match lines {
            [] => return None,
            [one] => {
                let event = event_of(one.kind).as_str();
                Told {
                    text,
                    tag: tag(event, one.instance_id.as_ref()),
                    instance_id: one.instance_id.as_ref(),
                    project: Some(&one.project),
                    url: one
                        .instance_id
                        .as_ref()
                        .map_or_else(|| "/ui/".to_owned(), |id| format!("/ui/s/{id}")),
                    ..Told::of(event, "/ui/")
                }
            }
            _ => Told { text, ..Told::of("summary", "/ui/") },
        };
        Some(self.message(&told, (urgency, LINE_TTL)))
    }

    fn of_questions(&self, all: &[Question], allowed: Allowed) -> Option<Message> {
        let name = |one: &Question| match allowed.content {
            true => one.label.clone(),
            false => one.project.clone(),
        };
        let tag = self.question_tag()?;
        let told = match all {
            [one] => {
                let mut text = text::of_question(&name(one), &one.project);
                if allowed.content {
                    let tool = one.tool.as_deref().unwrap_or("It asks");
                    text.body = format!("{tool}: {}", one.summary);
                }
                Told {
                    text,
                    tag,
                    instance_id: one.instance_id.as_ref(),
                    project: Some(&one.project),
                    request_id: Some(&one.request_id),
                    actions: if allowed.actions { &["deny", "allow"] } else { &[] },
                    ..Told::of(PushEvent::PermissionNeeded.as_str(), "/ui/inbox")
                }
            }
            all => {
                let named: Vec<(String, String)> =
                    all.iter().map(|one| (name(one), one.project.clone())).collect();
                let text = text::of_questions(&named);
                Told { text, tag, ..Told::of(PushEvent::PermissionNeeded.as_str(), "/ui/inbox") }
            }
        };
        Some(self.message(&told, ("high", QUESTION_TTL)))
    }

    /// What takes the notification of questions back; `None` for another one.
    pub(super) fn closed(&self) -> Option<Message> {
        let tag = self.question_tag()?;
        let text = Text { title: "Answered".to_owned(), body: "Nothing is left to do.".to_owned() };
        let told = Told {
            text,
            tag,
            kind: "close",
            ..Told::of(PushEvent::PermissionNeeded.as_str(), "/ui/inbox")
        };
        Some(self.message(&told, ("normal", QUESTION_TTL)))
    }

    fn message(&self, told: &Told<'_>, (urgency, ttl): (&'static str, u32)) -> Message {
        let body = fitted(&told.text.body, BODY);
        let payload = |body: &str| {
            let all = Payload {
                kind: told.kind,
                tag: &told.tag,
                title: &told.text.title,
                body,
                url: &told.url,
                event: told.event,
                instance_id: told.instance_id.map(InstanceId::as_str),
                project: told.project,
                request_id: told.request_id,
                actions: told.actions,
                at: self.at.as_millis(),
            };
            serde_json::to_vec(&all).unwrap_or_default()
        };
        let whole = payload(&body);
        let payload = if whole.len() <= MOST { whole } else { payload("") };
        let mut topic = URL_SAFE_NO_PAD.encode(Sha256::digest(told.tag.as_bytes()));
        topic.truncate(TOPIC);
        Message { event: told.event, title: told.text.title.clone(), payload, urgency, ttl, topic }
    }
}

/// What goes into a payload.
struct Told<'a> {
    kind: &'static str,
    event: &'static str,
    text: Text,
    tag: String,
    url: String,
    instance_id: Option<&'a InstanceId>,
    project: Option<&'a str>,
    request_id: Option<&'a str>,
    actions: &'a [&'static str],
}

impl Told<'_> {
    fn of(event: &'static str, url: &str) -> Self {
        Self {
            kind: "show",
            event,
            text: Text { title: String::new(), body: String::new() },
            tag: tag(event, None),
            url: url.to_owned(),
            instance_id: None,
            project: None,
            request_id: None,
            actions: &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ID: &str = "3f2a91c0-1111-4222-8333-444455556666";
    const PLAIN: Allowed = Allowed { content: false, actions: false };

    fn call(word: Word) -> Call {
        Call { delivery: "d1".into(), at: Timestamp::from_millis(1_700_000_000_000), word }
    }

    fn question(request: &str) -> Question {
        Question {
            instance_id: ID.parse().ok(),
            request_id: request.to_owned(),
            project: "api".to_owned(),
            label: "LABEL".to_owned(),
            tool: Some("TOOL".to_owned()),
            summary: "SUMMARY".to_owned(),
        }
    }

    fn line(kind: Kind) -> Line {
        Line { instance_id: ID.parse().ok(), label: "LABEL".into(), project: "api".into(), kind }
    }

    fn usual() -> BTreeSet<PushEvent> {
        PushEvent::USUAL.into()
    }

    fn read(message: &Message) -> Value {
        serde_json::from_slice(&message.payload).unwrap()
    }

    #[test]
    fn h134_by_default_a_question_says_nothing_of_its_content() {
        let asked = call(Word::Questions(vec![question("r1")]));
        let shown = asked.shown(&usual(), PLAIN).unwrap();
        let text = String::from_utf8(shown.payload.clone()).unwrap();
        for secret in ["LABEL", "TOOL", "SUMMARY"] {
            assert!(!text.contains(secret), "{text}");
        }
        let said = read(&shown);
        assert_eq!(said["title"], "api waits for your answer");
        assert_eq!((&said["request_id"], &said["instance_id"]), (&json!("r1"), &json!(ID)));
        assert_eq!((&said["actions"], shown.urgency), (&json!([]), "high"));
        assert!(shown.topic.len() <= 32);
    }

    #[test]
    fn content_and_buttons_come_only_when_they_are_allowed() {
        let asked = call(Word::Questions(vec![question("r1")]));
        let said = read(&asked.shown(&usual(), Allowed { content: true, ..PLAIN }).unwrap());
        assert_eq!(said["title"], "LABEL (api) waits for your answer");
        assert_eq!((&said["body"], &said["actions"]), (&json!("TOOL: SUMMARY"), &json!([])));
        let said = read(&asked.shown(&usual(), Allowed { actions: true, ..PLAIN }).unwrap());
        assert_eq!(said["actions"], json!(["deny", "allow"]));
    }

    #[test]
    fn an_answer_takes_back_what_was_shown_of_the_same_session() {
        let asked = call(Word::Questions(vec![question("r1")]));
        let (shown, closed) = (asked.shown(&usual(), PLAIN).unwrap(), asked.closed().unwrap());
        assert_eq!(read(&shown)["tag"], read(&closed)["tag"]);
        assert_eq!((&read(&closed)["kind"], &shown.topic), (&json!("close"), &closed.topic));
        let many = call(Word::Questions(vec![question("r1"), question("r2")]));
        assert_ne!(many.closed().unwrap().topic, closed.topic);
        assert!(call(Word::Lines(vec![line(Kind::Ready)])).closed().is_none());
    }

    #[test]
    fn a_device_is_told_only_of_what_it_wants() {
        let happened = call(Word::Lines(vec![line(Kind::Ready), line(Kind::GaveUp)]));
        let said = read(&happened.shown(&usual(), PLAIN).unwrap());
        assert_eq!(
            (&said["event"], &said["title"]),
            (&json!("quarantine"), &json!("api crashed too often"))
        );
        assert_eq!(said["url"], format!("/ui/s/{ID}"));
        let all = PushEvent::ALL.iter().copied().collect();
        let shown = happened.shown(&all, PLAIN).unwrap();
        assert_eq!((shown.event, read(&shown)["url"].as_str()), ("summary", Some("/ui/")));
        assert_eq!(happened.shown(&[PushEvent::Stop].into(), PLAIN), None);
        let asked = call(Word::Questions(vec![question("r1")]));
        assert_eq!(asked.shown(&[PushEvent::Crash].into(), PLAIN), None);
    }

    #[test]
    fn a_payload_fits_whatever_is_in_it() {
        let long = Question { summary: "\u{1}\"ä".repeat(5_000), ..question(&"r".repeat(200)) };
        let asked = call(Word::Questions(vec![long]));
        let shown = asked.shown(&usual(), Allowed { content: true, actions: true }).unwrap();
        assert!(shown.payload.len() <= MOST, "{}", shown.payload.len());
        let lines = (0..500).map(|_| line(Kind::Crashed)).collect();
        let shown = call(Word::Lines(lines)).shown(&usual(), PLAIN).unwrap();
        assert!(shown.payload.len() <= MOST, "{}", shown.payload.len());
    }
}
