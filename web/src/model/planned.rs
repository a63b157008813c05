//! Launches that wait for the reset of a plan limit.

use crate::model::launch::Kind;
use crate::model::status::{Face, Glyph, Tone};
use crate::text::planned as words;
use std::collections::BTreeMap;
use svc_shared::api::planned_launches::PlannedLaunch;
use svc_shared::status::PlannedState;

/// How one stands.
#[must_use]
pub fn face(one: &PlannedLaunch) -> Face {
    match one.state.known() {
        Some(PlannedState::Waiting) => Face::new(Glyph::Clock, words::WAITING, Tone::Info),
        Some(PlannedState::Begun) => Face::new(Glyph::Arc, words::STARTING, Tone::Info),
        Some(PlannedState::Failed) => Face::new(Glyph::Octagon, words::FAILED, Tone::Danger),
        Some(PlannedState::Started | PlannedState::Cancelled) | None => {
            Face::new(Glyph::DottedRing, &one.state.to_string(), Tone::Info)
        }
    }
}

/// What a person can do about it; none while it starts.
#[must_use]
pub fn remedy(one: &PlannedLaunch) -> Option<&'static str> {
    match one.state.known() {
        Some(PlannedState::Waiting) => Some(words::CANCEL),
        Some(PlannedState::Failed) => Some(words::REMOVE),
        _ => None,
    }
}

/// What is started.
#[must_use]
pub fn kind(one: &PlannedLaunch) -> &str {
    let kind = Kind::ALL.into_iter().find(|kind| kind.word() == one.mode);
    kind.map_or(one.mode.as_str(), |kind| kind.label())
}

/// Ids, those that failed first, then in the order of their start.
#[must_use]
pub fn ids(all: &BTreeMap<String, PlannedLaunch>, project: Option<&str>) -> Vec<String> {
    let mut of: Vec<&PlannedLaunch> =
        all.values().filter(|one| project.is_none_or(|name| one.project == name)).collect();
    of.sort_by_key(|one| (!one.state.is(&PlannedState::Failed), one.due_at, one.asked_at));
    of.into_iter().map(|one| one.id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use svc_shared::Timestamp;

    fn one(number: u8, state: PlannedState, due: i64) -> (String, PlannedLaunch) {
        let id = format!("{number:08x}-0a3b-4c5d-8e9f-001122334455");
        let launch = PlannedLaunch {
            id: id.parse().unwrap(),
            project: if number == 3 { "web" } else { "api" }.to_owned(),
            due_at: Timestamp::from_millis(due),
            state: state.into(),
            ..sample::planned()
        };
        (id, launch)
    }

    #[test]
    fn what_failed_comes_first_then_what_starts_next() {
        let all: BTreeMap<_, _> = [
            one(1, PlannedState::Waiting, 20),
            one(2, PlannedState::Failed, 30),
            one(3, PlannedState::Waiting, 10),
        ]
        .into();
        let numbers = |project| -> Vec<String> {
            ids(&all, project).iter().map(|id| id[7..8].to_owned()).collect()
        };
        assert_eq!(numbers(None), ["2", "3", "1"]);
        assert_eq!(numbers(Some("api")), ["2", "1"]);
    }

    #[test]
    fn each_says_how_it_stands_and_what_can_be_done() {
        let said = |state| {
            let (_, one) = one(1, state, 0);
            (face(&one).word, remedy(&one), kind(&one).to_owned())
        };
        let background = Kind::Background.label().to_owned();
        assert_eq!(
            said(PlannedState::Waiting),
            (words::WAITING.to_owned(), Some(words::CANCEL), background.clone())
        );
        assert_eq!(
            said(PlannedState::Begun),
            (words::STARTING.to_owned(), None, background.clone())
        );
        assert_eq!(
            said(PlannedState::Failed),
            (words::FAILED.to_owned(), Some(words::REMOVE), background)
        );
    }
}
