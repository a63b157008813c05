//! Usage limits of the account's plan that conversations stop at.

use crate::status::{EvidenceSource, PlanLimitKind};
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// A limit that a conversation stopped at, until somebody goes on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct PlanLimit {
    /// `session`, `weekly` or `other`.
    pub kind: Word<PlanLimitKind>,
    /// When the limit is reset; null when the agent named no time that can be read.
    pub resets_at: Option<Timestamp>,
    /// When the agent said so.
    pub since: Timestamp,
    /// Where this was read.
    pub source: Word<EvidenceSource>,
    /// When the conversation goes on by itself; null when it waits for a person.
    pub continues_at: Option<Timestamp>,
    /// Why it cannot go on by itself, and what to do; null where it can.
    #[serde(default)]
    pub hint: Option<String>,
}

impl PlanLimit {
    /// What the limit is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind.known() {
            Some(PlanLimitKind::Session) => "Session limit reached",
            Some(PlanLimitKind::Weekly) => "Weekly limit reached",
            Some(PlanLimitKind::Other) | None => "Usage limit reached",
        }
    }

    /// The limit with its reset, in UTC.
    #[must_use]
    pub fn sentence(&self) -> String {
        let name = self.name();
        let told = match (self.continues_at, self.resets_at) {
            (Some(at), _) => format!("{name}, continues by itself at {at}"),
            (None, Some(at)) => format!("{name}, resets at {at}"),
            (None, None) => name.to_owned(),
        };
        match &self.hint {
            Some(hint) => format!("{told}: {hint}"),
            None => told,
        }
    }
}
