//! What can be done to several rows at once, and which rows a selection holds.

use crate::model::job::{Job, JobView as _};
use crate::model::offers::{Offer, Offers};
use crate::text::bulk as words;

/// What is done to all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Stops what runs.
    Stop,
    /// Resumes what ended.
    Resume,
    /// Removes what ended.
    Forget,
}

impl Verb {
    /// In the order of the page.
    pub const ALL: [Self; 3] = [Self::Stop, Self::Resume, Self::Forget];

    /// On the button.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Stop => words::STOP,
            Self::Resume => words::RESUME,
            Self::Forget => words::FORGET,
        }
    }

    /// What else happens.
    #[must_use]
    pub fn effect(self) -> &'static str {
        match self {
            Self::Stop => words::STOP_EFFECT,
            Self::Resume => words::RESUME_EFFECT,
            Self::Forget => words::FORGET_EFFECT,
        }
    }

    /// Whether it can be done to a bridge that offers this.
    #[must_use]
    pub fn takes(self, offers: &Offers) -> bool {
        let offer = match self {
            Self::Stop => &offers.stop,
            Self::Resume => &offers.resume,
            Self::Forget => &offers.forget,
        };
        *offer == Offer::Ready
    }

    /// Whether it can be done to this job.
    #[must_use]
    pub fn takes_job(self, job: &Job) -> bool {
        match self {
            Self::Stop => job.is_live(),
            Self::Resume => !job.is_live() && job.resume_refused().is_none(),
            Self::Forget => !job.is_live(),
        }
    }
}

/// The selection extended to a row.
///
/// It takes all rows between the one selected last and this one, in the order of the page.
#[must_use]
pub fn with_range(selected: &[String], page: &[String], to: &str) -> Vec<String> {
    let at = |key: &str| page.iter().position(|one| one == key);
    let from = selected.last().and_then(|last| at(last));
    let mut all = selected.to_vec();
    let Some(to) = at(to) else {
        return all;
    };
    let from = from.unwrap_or(to);
    let (first, last) = (from.min(to), from.max(to));
    for key in page.iter().take(last + 1).skip(first) {
        if !all.contains(key) {
            all.push(key.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::offers::offers;
    use crate::model::sample::{bridge, job};
    use svc_shared::status::BridgeStatus;

    fn keys(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn what_runs_is_stopped_and_what_ended_is_resumed_or_forgotten() {
        let running = offers(&bridge("a", BridgeStatus::Running), None);
        let mut row = bridge("a", BridgeStatus::Stopped);
        row.resumable = true;
        let ended = offers(&row, None);
        assert_eq!(Verb::ALL.map(|verb| verb.takes(&running)), [true, false, false]);
        assert_eq!(Verb::ALL.map(|verb| verb.takes(&ended)), [false, true, true]);
        row.resumable = false;
        assert!(!Verb::Resume.takes(&offers(&row, None)));
    }

    #[test]
    fn jobs_are_taken_as_their_rows_offer_it() {
        assert_eq!(Verb::ALL.map(|v| v.takes_job(&job("working"))), [true, false, false]);
        let mut done = job("done");
        done.worker_alive = false;
        assert_eq!(Verb::ALL.map(|v| v.takes_job(&done)), [false, false, true]);
        done.session_ref = "0123456789abcdef".parse().ok();
        assert!(Verb::Resume.takes_job(&done));
    }

    #[test]
    fn a_range_goes_from_the_row_selected_last_in_either_direction() {
        let page = keys("a b c d e");
        assert_eq!(with_range(&keys("b"), &page, "d"), keys("b c d"));
        assert_eq!(with_range(&keys("e c"), &page, "a"), keys("e c a b"));
        assert_eq!(with_range(&[], &page, "d"), keys("d"));
        assert_eq!(with_range(&keys("gone"), &page, "b"), keys("gone b"));
        assert_eq!(with_range(&keys("a"), &page, "gone"), keys("a"));
    }
}
