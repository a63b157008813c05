//! What a notification says.

use svc_shared::ids::InstanceId;

/// Most lines of a summary.
const LINES: usize = 10;

/// What happened to one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It ended unexpectedly.
    Crashed,
    /// It did so too often and is not started again.
    GaveUp,
    /// It was stopped.
    Stopped,
    /// It came to its end by itself.
    Ended,
    /// Its remote link stays down.
    LinkLost,
    /// It is ready.
    Ready,
}

impl Kind {
    fn said(self) -> &'static str {
        match self {
            Self::Crashed => "crashed",
            Self::GaveUp => "crashed too often",
            Self::Stopped => "stopped",
            Self::Ended => "ended",
            Self::LinkLost => "has lost its remote link",
            Self::Ready => "is ready",
        }
    }

    fn counted(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::LinkLost => "without a remote link",
            other => other.said(),
        }
    }

    fn explained(self) -> &'static str {
        match self {
            Self::Crashed => "It ended unexpectedly. Open svc to see why, and to resume it.",
            Self::GaveUp => {
                "It ended unexpectedly, again, and is not started any more. Open svc to see why, \
                 and to release it."
            }
            Self::Stopped => "It was stopped on purpose.",
            Self::Ended => "It came to its end by itself, in order.",
            Self::LinkLost => {
                "It still runs, and no remote client reaches it. It tries again by itself."
            }
            Self::Ready => "It takes work now.",
        }
    }
}

/// A session, and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The session.
    pub instance_id: Option<InstanceId>,
    /// What people call it.
    pub label: String,
    /// Its project.
    pub project: String,
    /// What happened.
    pub kind: Kind,
}

impl Line {
    fn name(&self) -> String {
        named(&self.label, &self.project)
    }
}

/// Title and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// One line.
    pub title: String,
    /// One line or more.
    pub body: String,
}

fn named(label: &str, project: &str) -> String {
    if label == project { project.to_owned() } else { format!("{label} ({project})") }
}

/// Says what happened: of one session in full, of more as a summary.
#[must_use]
pub fn of_lines(lines: &[Line]) -> Text {
    if let [one] = lines {
        let title = format!("{} {}", one.name(), one.kind.said());
        return Text { title, body: one.kind.explained().to_owned() };
    }
    let mut kinds: Vec<Kind> = lines.iter().map(|line| line.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let counts = kinds.iter().map(|kind| {
        let many = lines.iter().filter(|line| line.kind == *kind).count();
        format!("{many} {}", kind.counted())
    });
    let counts: Vec<String> = counts.collect();
    let body = lines.iter().map(|line| format!("{} {}", line.name(), line.kind.said()));
    Text { title: format!("Sessions: {}", counts.join(", ")), body: listed(body, lines.len()) }
}

/// Says that a session waits for an answer. What it asks is not said.
#[must_use]
pub fn of_question(label: &str, project: &str) -> Text {
    Text {
        title: format!("{} waits for your answer", named(label, project)),
        body: "It asks for a permission. Open svc to read what it wants, and to answer.".into(),
    }
}

/// Says that several questions wait, each by its session.
#[must_use]
pub fn of_questions(sessions: &[(String, String)]) -> Text {
    let body = sessions.iter().map(|(label, project)| named(label, project));
    Text {
        title: format!("{} questions wait for your answer", sessions.len()),
        body: listed(body, sessions.len()),
    }
}

/// Says only that it is a test.
#[must_use]
pub fn of_test() -> Text {
    Text { title: "Test of svc".into(), body: "Notifications of svc arrive here.".into() }
}

fn listed(lines: impl Iterator<Item = String>, all: usize) -> String {
    let mut shown: Vec<String> = lines.take(LINES).collect();
    if all > LINES {
        shown.push(format!("and {} more", all - LINES));
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, kind: Kind) -> Line {
        Line { instance_id: None, label: label.into(), project: "api".into(), kind }
    }

    #[test]
    fn one_session_is_told_in_full() {
        let text = of_lines(&[line("api", Kind::Crashed)]);
        assert_eq!(text.title, "api crashed");
        assert!(text.body.contains("unexpectedly"), "{}", text.body);
        assert_eq!(of_lines(&[line("night", Kind::Ready)]).title, "night (api) is ready");
        assert_eq!(of_lines(&[line("api", Kind::LinkLost)]).title, "api has lost its remote link");
        let both = [line("a", Kind::Ended), line("b", Kind::LinkLost)];
        assert_eq!(of_lines(&both).title, "Sessions: 1 ended, 1 without a remote link");
    }

    #[test]
    fn more_sessions_are_one_summary() {
        let mut lines = vec![line("b", Kind::Ready), line("a", Kind::Crashed)];
        let text = of_lines(&lines);
        assert_eq!(text.title, "Sessions: 1 crashed, 1 ready");
        assert_eq!(text.body, "b (api) is ready\na (api) crashed");
        lines.extend((0..20).map(|_| line("c", Kind::Crashed)));
        let text = of_lines(&lines);
        assert_eq!(text.title, "Sessions: 21 crashed, 1 ready");
        assert!(text.body.ends_with("and 12 more"), "{}", text.body);
    }

    #[test]
    fn a_question_is_told_without_its_content() {
        assert_eq!(of_question("api", "api").title, "api waits for your answer");
        let many = of_questions(&[("a".into(), "a".into()), ("b".into(), "c".into())]);
        assert_eq!(many.title, "2 questions wait for your answer");
        assert_eq!(many.body, "a\nb (c)");
    }
}
