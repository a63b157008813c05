//! Background sessions: how a job stands, where it is listed, what it offers.

use crate::model::order;
use crate::model::status::{Face, Glyph, Tone};
use crate::text::job as words;
use svc_shared::Timestamp;
pub use svc_shared::api::jobs::BackgroundJob as Job;

/// Where a job is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Waits for a person.
    Waiting,
    /// Failed or lost.
    NeedsLook,
    /// At work.
    Live,
    /// Ended, or in a state this page does not know.
    Ended,
}

impl Group {
    /// In the order of the page.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::NeedsLook, Self::Live, Self::Ended];
}

/// What a state of a job or of a working session looks like.
#[must_use]
pub fn face(state: &str) -> Face {
    let (glyph, word, tone) = match state {
        "working" => (Glyph::Dot, words::WORKING, Tone::Ok),
        "blocked" => (Glyph::Question, words::BLOCKED, Tone::Warn),
        "done" => (Glyph::CheckDisc, words::DONE, Tone::Ok),
        "failed" => (Glyph::Octagon, words::FAILED, Tone::Danger),
        "stopped" => (Glyph::Square, words::STOPPED, Tone::Neutral),
        "lost" => (Glyph::Bars, words::LOST, Tone::Warn),
        "" => (Glyph::DottedRing, words::UNKNOWN, Tone::Neutral),
        // Never blank, never mapped to a known word: the agent may be newer than this page.
        other => (Glyph::DottedRing, other, Tone::Neutral),
    };
    Face::new(glyph, word, tone)
}

/// What the page makes of a record of a job.
pub trait JobView {
    /// Whether it can be stopped; otherwise it can be resumed or removed.
    fn is_live(&self) -> bool;
    /// Where it is listed.
    fn group(&self) -> Group;
    /// How messages and the row name it: the project, else its own name, else its id.
    fn object(&self) -> String;
    /// Its name, else the begin of its first prompt.
    fn label(&self) -> String;
    /// The facts after the status word.
    fn facts(&self) -> Vec<String>;
    /// How and by which command a waiting job is answered.
    ///
    /// `None` when it waits for nobody.
    fn answer(&self) -> Option<(&'static str, String)>;
    /// Why it cannot be resumed; `None` when it can.
    fn resume_refused(&self) -> Option<&'static str>;
    /// Last change; `None` when the agent wrote none that can be read.
    fn changed_at(&self) -> Option<Timestamp>;
}

impl JobView for Job {
    fn is_live(&self) -> bool {
        self.worker_alive || matches!(self.state.as_str(), "working" | "blocked")
    }

    fn group(&self) -> Group {
        match self.state.as_str() {
            "blocked" => Group::Waiting,
            "failed" | "lost" => Group::NeedsLook,
            "working" => Group::Live,
            // Its process may outlive its end for a moment.
            "done" | "stopped" => Group::Ended,
            _ if self.worker_alive => Group::Live,
            _ => Group::Ended,
        }
    }

    fn object(&self) -> String {
        self.project.clone().or_else(|| self.name.clone()).unwrap_or_else(|| self.id.to_string())
    }

    fn label(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => self.intent.lines().find(|l| !l.trim().is_empty()).unwrap_or("").to_owned(),
        }
    }

    fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if let Some(needs) = self.needs.as_ref().filter(|_| self.state == "blocked") {
            facts.push(words::needs(needs));
        }
        if self.is_live() && !self.detail.is_empty() && self.needs.as_ref() != Some(&self.detail) {
            facts.push(self.detail.clone());
        }
        facts
    }

    fn answer(&self) -> Option<(&'static str, String)> {
        (self.group() == Group::Waiting).then(|| {
            (words::answer_how(self.remote_registered), words::answer_command(self.id.as_str()))
        })
    }

    fn resume_refused(&self) -> Option<&'static str> {
        self.session_ref.is_none().then_some(words::NO_CONVERSATION)
    }

    fn changed_at(&self) -> Option<Timestamp> {
        self.updated_at.parse().ok()
    }
}

/// Address of its place on the page.
#[must_use]
pub fn path(id: &str) -> String {
    format!("/ui/jobs/{}", svc_shared::paths::segment(id))
}

/// Ids of one group, the last changed first.
pub fn ids_of<'a>(jobs: impl Iterator<Item = &'a Job>, group: Group) -> Vec<String> {
    let rows = jobs.filter(|job| job.group() == group).map(|job| {
        let at = job.changed_at().map_or(0, Timestamp::as_millis);
        (order::latest_first(at), job.id.to_string())
    });
    order::sorted(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::job;

    #[test]
    fn every_state_has_its_own_shape_and_an_unknown_one_keeps_its_word() {
        for (state, glyph, word) in [
            ("working", Glyph::Dot, "Working"),
            ("blocked", Glyph::Question, "Blocked"),
            ("done", Glyph::CheckDisc, "Done"),
            ("failed", Glyph::Octagon, "Failed"),
            ("stopped", Glyph::Square, "Stopped"),
            ("lost", Glyph::Bars, "Lost"),
            ("", Glyph::DottedRing, "Unknown"),
            ("dreaming", Glyph::DottedRing, "dreaming"),
        ] {
            let seen = face(state);
            assert_eq!((seen.glyph, seen.word.as_str()), (glyph, word));
        }
    }

    #[test]
    fn what_waits_and_what_failed_stands_apart_and_the_newest_comes_first() {
        let mut jobs = ["blocked", "failed", "lost", "working", "done", "stopped", "dreaming"]
            .iter()
            .enumerate()
            .map(|(at, state)| Job {
                id: format!("{at:08}").parse().unwrap(),
                updated_at: Timestamp::from_millis(i64::try_from(at).unwrap()).to_string(),
                worker_alive: false,
                ..job(state)
            })
            .collect::<Vec<_>>();
        let ids = |jobs: &[Job], group| ids_of(jobs.iter(), group).join(" ").replace("0000000", "");
        assert_eq!(ids(&jobs, Group::Waiting), "0");
        assert_eq!(ids(&jobs, Group::NeedsLook), "2 1");
        assert_eq!(ids(&jobs, Group::Live), "3");
        assert_eq!(ids(&jobs, Group::Ended), "6 5 4");
        jobs[6].worker_alive = true;
        assert_eq!(ids(&jobs, Group::Live), "6 3");
        jobs[4].worker_alive = true;
        assert_eq!(ids(&jobs, Group::Ended), "5 4");
    }

    #[test]
    fn progress_is_only_told_while_it_is_true_and_needs_only_while_it_waits() {
        let row = |state: &str| Job {
            detail: "reading".into(),
            needs: Some("an answer".into()),
            worker_alive: false,
            ..job(state)
        };
        assert_eq!(row("blocked").facts(), ["needs: an answer", "reading"]);
        assert_eq!(row("working").facts(), ["reading"]);
        assert!(row("done").facts().is_empty());
    }

    #[test]
    fn a_job_without_a_conversation_says_why_it_cannot_go_on() {
        let ended = Job { session_ref: None, ..job("done") };
        assert!(ended.resume_refused().is_some());
        assert!(
            Job { session_ref: "0123456789abcdef".parse().ok(), ..ended }
                .resume_refused()
                .is_none()
        );
    }

    #[test]
    fn a_job_is_named_by_its_project_and_labelled_by_its_name_or_prompt() {
        let mut row = Job { intent: "\n  \nTranslate\nall of it".into(), ..job("done") };
        assert_eq!((row.object().as_str(), row.label().as_str()), ("api", "Translate"));
        row.name = Some("nightly".into());
        row.project = None;
        assert_eq!((row.object().as_str(), row.label().as_str()), ("nightly", "nightly"));
    }
}
