//! Remote link of a bridge, as its log tells (`agent-cli` §3.5).

use crate::status::{EvidenceSource, LinkState};
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// The remote link of a bridge. It never decides about the bridge's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct Link {
    /// `up`, `down` only by evidence, or `unknown`.
    pub state: Word<LinkState>,
    /// Since when; null before the first success.
    pub since: Option<Timestamp>,
    /// Why it is down or unknown, redacted; null otherwise.
    pub reason: Option<String>,
    /// Where this was read; null before the first sign.
    pub source: Option<Word<EvidenceSource>>,
}

impl Link {
    /// A link of which nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { state: LinkState::Unknown.into(), since: None, reason: None, source: None }
    }

    /// Whether evidence says that the remote service is not reached.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.state.is(&LinkState::Down)
    }
}
