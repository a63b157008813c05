//! What a session does, and how that is known.

use crate::status::{ActivityState, Confidence, EvidenceSource};
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// What a session does, or several sessions of a bridge taken together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct Activity {
    /// Of several sessions the one that needs a person most.
    ///
    /// In this order: `blocked`, `question`, `working`, `limit`, `logged_out`, `idle`.
    pub state: Word<ActivityState>,
    /// Since when the first of them is in this state.
    pub since: Timestamp,
    /// The tool that a blocked session asks for; null where nobody says.
    pub tool: Option<String>,
    /// Where this was read.
    pub source: Word<EvidenceSource>,
    /// `certain` or `likely`.
    pub confidence: Word<Confidence>,
    /// Whoever said so is not heard any more; it may have changed since.
    pub stale: bool,
    /// Sessions that work.
    pub working: u32,
    /// Sessions that wait for a permission or an answer.
    pub blocked: u32,
    /// Sessions that do neither.
    pub idle: u32,
}

impl Activity {
    /// What it does, in words that begin with a capital letter.
    ///
    /// `None` for a word of a newer version.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        Some(match self.state.known()? {
            ActivityState::Working => "Working".to_owned(),
            ActivityState::Blocked => match &self.tool {
                Some(tool) => format!("Waiting for permission: {tool}"),
                None => "Waiting for permission".to_owned(),
            },
            ActivityState::Question => "Asks you a question".to_owned(),
            ActivityState::Idle => "Idle".to_owned(),
            ActivityState::Limit => "Stopped at a plan limit".to_owned(),
            ActivityState::LoggedOut => "The agent is signed out".to_owned(),
        })
    }

    /// How that is known: source, confidence, and whether it is old.
    #[must_use]
    pub fn provenance(&self) -> String {
        let from = match self.source.known() {
            Some(EvidenceSource::DebugFile | EvidenceSource::Output) => "from the agent's log",
            Some(EvidenceSource::Stream) => "said by the session itself",
            Some(EvidenceSource::Hook) => "from the agent's hook",
            Some(EvidenceSource::Process) => "from the agent's list of sessions",
            Some(EvidenceSource::Job) => "from the file of the job",
            Some(EvidenceSource::Account) => "from the agent's sign-in status",
            Some(EvidenceSource::Transcript) => "from the transcript",
            Some(EvidenceSource::Silence) | None => "source unknown",
        };
        let how = if self.confidence.is(&Confidence::Certain) { "certain" } else { "likely" };
        let old = if self.stale { ", may be out of date" } else { "" };
        format!("{from}, {how}{old}")
    }

    /// Whether a person is asked for something.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.state.is(&ActivityState::Blocked) || self.state.is(&ActivityState::Question)
    }
}
