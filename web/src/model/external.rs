//! Sessions that this service did not start: which projects have some, and what they wait for.

use crate::model::job;
use crate::model::order;
use crate::model::status::{Face, Glyph, Tone};
use crate::text::job::external as words;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use svc_shared::api::sessions::WorkingSession;

/// Sessions by project name or by the id of the bridge they work in.
pub type Sessions = HashMap<String, Arc<Vec<WorkingSession>>>;

/// Projects with a session or a bridge that was started elsewhere, sorted.
#[must_use]
pub fn projects(sessions: &Sessions, adoptable: &HashSet<String>) -> Vec<String> {
    let with_sessions = sessions.iter().filter(|(_, list)| !list.is_empty()).map(|(name, _)| name);
    let without = adoptable.iter().filter(|name| sessions.get(*name).is_none_or(|s| s.is_empty()));
    order::sorted(with_sessions.chain(without).map(|name| (String::new(), name.clone())).collect())
}

/// Whether one of them waits for a person.
#[must_use]
pub fn is_blocked(sessions: &[WorkingSession]) -> bool {
    sessions.iter().any(|session| session.state == "blocked" || session.waiting_for.is_some())
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
            ("web".to_owned(), Arc::new(vec![inside("working")])),
            ("gone".to_owned(), Arc::default()),
        ]);
        let adoptable = HashSet::from(["web".to_owned(), "api".to_owned()]);
        assert_eq!(projects(&sessions, &adoptable), ["api", "web"]);
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
