//! What a restart of the machine ended, and how far its restore is.

use crate::model::offers;
use crate::model::status::{Face, Glyph, Tone};
use crate::text::restore as words;
use std::collections::BTreeSet;
use svc_shared::Word;
use svc_shared::internal::restore::{
    RestoreCandidate, RestoreItem, RestoreJob, RestoreState, RestoreStep, Restores,
};
use svc_shared::status::ResumeBlocked;

/// What comes back, in words; a word of a newer server as written.
#[must_use]
pub fn comes_back(restores: &Word<Restores>) -> String {
    match restores.known() {
        Some(Restores::Conversation) => words::CONVERSATION.to_owned(),
        Some(Restores::New) => words::NEW.to_owned(),
        Some(Restores::Reconnect) => words::RECONNECT.to_owned(),
        None => restores.to_string(),
    }
}

/// Why a session cannot be restored now, and whether trusting its folder helps.
#[must_use]
pub fn blocked(candidate: &RestoreCandidate) -> Option<(String, bool)> {
    let why = candidate.blocked.as_ref()?;
    let text = why.known().map_or_else(|| why.to_string(), |why| offers::refusal(*why).to_owned());
    Some((text, why.is(&ResumeBlocked::NotTrusted)))
}

/// The ids to restore, in order: all that can be, without those that are left out.
#[must_use]
pub fn chosen(candidates: &[RestoreCandidate], left_out: &BTreeSet<String>) -> Vec<String> {
    let possible = candidates.iter().filter(|one| one.blocked.is_none());
    let ids = possible.map(|one| one.instance_id.to_string());
    ids.filter(|id| !left_out.contains(id)).collect()
}

/// Whether something is still to be started.
#[must_use]
pub fn is_running(job: &RestoreJob) -> bool {
    job.state.is(&RestoreState::Running)
}

/// How many sessions are back, of how many.
#[must_use]
pub fn progress(job: &RestoreJob) -> (usize, usize) {
    let done = job.items.iter().filter(|item| item.state.is(&RestoreStep::Done)).count();
    (done, job.items.len())
}

/// What one step looks like.
#[must_use]
pub fn face(item: &RestoreItem) -> Face {
    match item.state.known() {
        Some(RestoreStep::Waiting) => Face::new(Glyph::Clock, words::WAITING, Tone::Neutral),
        Some(RestoreStep::Starting) => Face::new(Glyph::Arc, words::STARTING, Tone::Info),
        Some(RestoreStep::Done) => Face::new(Glyph::CheckDisc, words::DONE, Tone::Ok),
        Some(RestoreStep::Failed) => Face::new(Glyph::Octagon, words::FAILED, Tone::Danger),
        Some(RestoreStep::Skipped) => Face::new(Glyph::Square, words::SKIPPED, Tone::Neutral),
        None => Face::new(Glyph::DottedRing, &item.state.to_string(), Tone::Neutral),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::bridge;
    use svc_shared::status::{BridgeStatus, ResumeMode};

    fn candidate(name: &str, blocked: Option<ResumeBlocked>) -> RestoreCandidate {
        RestoreCandidate {
            instance_id: bridge(name, BridgeStatus::Stopped).instance_id,
            project: name.to_owned(),
            resume_mode: ResumeMode::Pty.into(),
            ended_at: None,
            restores: Restores::Conversation.into(),
            blocked: blocked.map(Into::into),
        }
    }

    #[test]
    fn everything_that_can_come_back_is_chosen_until_it_is_left_out() {
        let all = [
            candidate("b", None),
            candidate("a", Some(ResumeBlocked::NotTrusted)),
            candidate("c", None),
        ];
        let id = |at: usize| all[at].instance_id.to_string();
        assert_eq!(chosen(&all, &BTreeSet::new()), [id(0), id(2)]);
        assert_eq!(chosen(&all, &BTreeSet::from([id(0)])), [id(2)]);
        assert!(blocked(&all[1]).is_some_and(|(why, is_trust)| !why.is_empty() && is_trust));
        assert_eq!(blocked(&all[0]), None);
    }

    #[test]
    fn every_step_has_its_word_and_only_restored_ones_count() {
        let items: Vec<RestoreItem> = RestoreStep::ALL
            .iter()
            .map(|step| RestoreItem {
                instance_id: bridge("a", BridgeStatus::Stopped).instance_id,
                state: (*step).into(),
                detail: None,
            })
            .collect();
        let words: BTreeSet<String> = items.iter().map(|item| face(item).word).collect();
        assert_eq!(words.len(), items.len());
        let state = RestoreState::Running.into();
        let job = RestoreJob { job_id: "j".into(), state, items };
        assert_eq!((progress(&job), is_running(&job)), ((1, 5), true));
    }

    #[test]
    fn a_word_of_a_newer_server_is_shown_as_written() {
        assert_eq!(comes_back(&Word::Other("everything".into())), "everything");
        for restores in Restores::ALL {
            assert!(comes_back(&(*restores).into()).starts_with("the "));
        }
    }
}
