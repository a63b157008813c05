//! Sessions that this service did not start.

use crate::model::job;
use crate::model::order;
use crate::model::status::{Face, Glyph, Tone};
use crate::text::job::external as words;
use std::collections::BTreeMap;
use svc_shared::api::sessions::WorkingSession;

/// Sessions by project name or by the id of the bridge they work in.
pub type Sessions = BTreeMap<String, Vec<WorkingSession>>;

/// Projects with a session or a bridge that was started elsewhere, sorted.
#[must_use]
pub fn projects(sessions: &Sessions, adoptable: &[String]) -> Vec<String> {
    let with_sessions = sessions.iter().filter(|(_, list)| !list.is_empty()).map(|(name, _)| name);
    let without = adoptable.iter().filter(|name| sessions.get(*name).is_none_or(|s| s.is_empty()));
    order::sorted(with_sessions.chain(without).map(|name| (String::new(), name.clone())).collect())
}

/// Whether one of them waits for a person.
#[must_use]
pub fn is_blocked(sessions: &[WorkingSession]) -> bool {
    sessions.iter().any(|session| session.state == "blocked" || session.waiting_for.is_some())
}

/// That several processes work on one of these sessions, once per session.
#[must_use]
pub fn same_session(sessions: &[WorkingSession]) -> Vec<String> {
    let mut told = Vec::new();
    for session in sessions.iter().filter(|session| !session.also_in.is_empty()) {
        // They come in order.
        let mut pids = session.also_in.clone();
        let at = pids.iter().take_while(|pid| **pid < session.pid).count();
        pids.insert(at, session.pid);
        let text = words::same_session(&pids);
        if !told.contains(&text) {
            told.push(text);
        }
    }
    told
}

/// The face of a project's external sessions.
#[must_use]
pub fn face() -> Face {
    Face::new(Glyph::Diamond, words::WORD, Tone::Violet)
}

/// How one session reads in a list: its face, its name, what it waits for.
#[must_use]
pub fn line(session: &WorkingSession) -> (Face, String, Option<String>) {
    let blocked = session.state.is_empty() && session.waiting_for.is_some();
    let face = job::face(if blocked { "blocked" } else { &session.state });
    let name = session.name.clone().unwrap_or_else(|| words::pid(session.pid));
    (face, name, session.waiting_for.as_deref().map(words::waits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::inside;

    #[test]
    fn a_project_is_listed_for_its_sessions_or_for_the_bridge_that_can_be_managed() {
        let sessions = Sessions::from([
            ("web".to_owned(), vec![inside("working")]),
            ("gone".to_owned(), Vec::new()),
        ]);
        let adoptable = ["web".to_owned(), "api".to_owned()];
        assert_eq!(projects(&sessions, &adoptable), ["api", "web"]);
    }

    #[test]
    fn a_session_of_several_processes_is_told_of_once_with_all_of_them() {
        let mut sessions = vec![inside("working"), inside("working"), inside("")];
        assert!(same_session(&sessions).is_empty());
        (sessions[0].pid, sessions[0].also_in) = (120, vec![9]);
        (sessions[1].pid, sessions[1].also_in) = (9, vec![120]);
        let told = same_session(&sessions);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("Processes 9 and 120 work on the same session"), "{told:?}");
        sessions[2].also_in = vec![30, 31];
        assert!(same_session(&sessions)[1].starts_with("Processes 12, 30 and 31 work"));
    }

    #[test]
    fn a_session_without_a_name_is_named_by_its_process_and_says_what_it_waits_for() {
        let mut session = inside("");
        assert_eq!(line(&session).1, "process 12");
        assert!(!is_blocked(std::slice::from_ref(&session)));
        session.waiting_for = Some("permission".into());
        let (face, _, waits) = line(&session);
        assert_eq!(
            (face.word.as_str(), waits.as_deref()),
            ("Blocked", Some("waits for permission"))
        );
        assert!(is_blocked(&[session]));
    }
}
