//! What happened and is not told yet.
//!
//! Things that happen together are told together: after a restart of the service or an import
//! there is one summary, not a notification for each session. A question that is answered soon
//! notifies nobody.

use std::time::Duration;
use svc_domain::notification::text::Line;
use svc_shared::ids::InstanceId;
use tokio::time::Instant;

/// How long a question may be answered before anybody is notified.
///
/// And how long nothing may happen before what happened is told.
pub(super) const SETTLE: Duration = Duration::from_secs(2);
/// How long the first of many events waits at most.
const LONGEST: Duration = Duration::from_secs(10);
/// From so many on, questions that come together are one notification.
const MANY: usize = 4;
/// Most events that wait for the end of quiet hours.
const MOST_HELD: usize = 1_000;

/// Names a question: its session and the name of the request.
///
/// Without a session where nobody manages it.
pub(super) type Key = (Option<InstanceId>, String);

/// What is to be told now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// What happened to sessions: one notification.
    Lines(Vec<Line>),
    /// Questions that wait: one notification.
    Questions(Vec<Key>),
}

/// Collects what happens.
pub(super) struct Gatherer {
    settle: Duration,
    lines: Vec<Line>,
    /// When the first and the last of them came.
    span: Option<(Instant, Instant)>,
    questions: Vec<(Key, Instant)>,
    held: Vec<Line>,
}

impl Gatherer {
    pub fn new(settle: Duration) -> Self {
        Self { settle, lines: Vec::new(), span: None, questions: Vec::new(), held: Vec::new() }
    }

    /// Something happened to a session.
    pub fn line(&mut self, line: Line, now: Instant) {
        let (first, _) = self.span.unwrap_or((now, now));
        self.span = Some((first, now));
        self.lines.push(line);
    }

    /// A session asks.
    pub fn question(&mut self, key: Key, now: Instant) {
        if !self.has_question(&key) {
            self.questions.push((key, now));
        }
    }

    /// Whether this question waits to be told.
    pub fn has_question(&self, key: &Key) -> bool {
        self.questions.iter().any(|(known, _)| known == key)
    }

    /// How many events wait for the end of quiet hours.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// When there is something to tell; `None` while there is nothing.
    pub fn due(&self) -> Option<Instant> {
        let questions = self.questions.iter().map(|(_, since)| *since + self.settle);
        self.lines_due().into_iter().chain(questions).min()
    }

    fn lines_due(&self) -> Option<Instant> {
        let (first, last) = self.span?;
        Some((last + self.settle).min(first + LONGEST.max(self.settle)))
    }

    /// What is to be told now. Lines are held while it is quiet; questions are not.
    pub fn take(
        &mut self,
        now: Instant,
        is_quiet: bool,
        is_open: &dyn Fn(&Key) -> bool,
    ) -> Vec<Told> {
        let mut told = Vec::new();
        if self.lines_due().is_some_and(|due| due <= now) {
            self.span = None;
            self.held.append(&mut self.lines);
        }
        if is_quiet {
            let over = self.held.len().saturating_sub(MOST_HELD);
            self.held.drain(..over);
        } else if !self.held.is_empty() {
            told.push(Told::Lines(std::mem::take(&mut self.held)));
        }
        let settle = self.settle;
        let is_due = |since: Instant| since + settle <= now;
        let (due, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.questions).into_iter().partition(|(_, since)| is_due(*since));
        self.questions = waiting;
        let open: Vec<Key> = due.into_iter().map(|(key, _)| key).filter(is_open).collect();
        if open.len() >= MANY {
            told.push(Told::Questions(open));
        } else {
            told.extend(open.into_iter().map(|key| Told::Questions(vec![key])));
        }
        told
    }

    /// Everything that waits, at the end of the service.
    pub fn rest(&mut self, is_quiet: bool, is_open: &dyn Fn(&Key) -> bool) -> Vec<Told> {
        let later = Instant::now() + LONGEST.max(self.settle);
        self.take(later, is_quiet, is_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_domain::notification::text::Kind;

    fn line(label: &str) -> Line {
        Line { instance_id: None, label: label.into(), project: label.into(), kind: Kind::Crashed }
    }

    fn key(request: &str) -> Key {
        ("3f2a91c0-1111-4222-8333-444455556666".parse().ok(), request.into())
    }

    fn after(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn what_happens_together_is_told_together() {
        let (mut all, start) = (Gatherer::new(SETTLE), Instant::now());
        assert_eq!(all.due(), None);
        all.line(line("a"), start);
        all.line(line("b"), after(start, 1_500));
        assert_eq!(all.due(), Some(after(start, 3_500)));
        assert_eq!(all.take(after(start, 3_000), false, &|_| true), []);
        let told = all.take(after(start, 3_500), false, &|_| true);
        assert_eq!(told, [Told::Lines(vec![line("a"), line("b")])]);
        assert_eq!((all.due(), all.take(after(start, 9_000), false, &|_| true)), (None, vec![]));
    }

    #[test]
    fn a_stream_of_events_does_not_wait_for_its_end() {
        let (mut all, start) = (Gatherer::new(SETTLE), Instant::now());
        for second in 0..12 {
            all.line(line("a"), after(start, second * 1_000));
        }
        assert_eq!(all.due(), Some(after(start, 10_000)));
    }

    #[test]
    fn a_question_that_was_answered_notifies_nobody() {
        let (mut all, start) = (Gatherer::new(SETTLE), Instant::now());
        all.question(key("1"), start);
        all.question(key("1"), start);
        all.question(key("2"), start);
        assert_eq!(all.due(), Some(after(start, 2_000)));
        assert_eq!(all.take(after(start, 1_999), false, &|_| true), []);
        let told = all.take(after(start, 2_000), false, &|key| key.1 == "2");
        assert_eq!(told, [Told::Questions(vec![key("2")])]);
        assert_eq!(all.due(), None);
    }

    #[test]
    fn many_questions_at_once_are_one_notification() {
        let (mut all, start) = (Gatherer::new(SETTLE), Instant::now());
        let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        names.iter().for_each(|name| all.question(key(name), start));
        let told = all.take(after(start, 2_000), false, &|_| true);
        assert_eq!(told, [Told::Questions(names.iter().map(|name| key(name)).collect())]);
    }

    #[test]
    fn quiet_hours_hold_events_and_let_questions_pass() {
        let (mut all, start) = (Gatherer::new(SETTLE), Instant::now());
        all.line(line("a"), start);
        all.question(key("1"), start);
        let told = all.take(after(start, 2_000), true, &|_| true);
        assert_eq!(told, [Told::Questions(vec![key("1")])]);
        all.line(line("b"), after(start, 60_000));
        assert_eq!(all.take(after(start, 62_000), true, &|_| true), []);
        assert_eq!((all.held(), all.due()), (2, None));
        let told = all.take(after(start, 90_000), false, &|_| true);
        assert_eq!(told, [Told::Lines(vec![line("a"), line("b")])]);
    }

    #[test]
    fn the_end_of_the_service_loses_nothing_that_waits() {
        let (mut all, start) = (Gatherer::new(SETTLE), Instant::now());
        all.line(line("a"), start);
        all.question(key("1"), start);
        let told = all.rest(false, &|_| true);
        assert_eq!(told, [Told::Lines(vec![line("a")]), Told::Questions(vec![key("1")])]);
    }
}
