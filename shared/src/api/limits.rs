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
}

impl PlanLimit {
    /// What a person is told, with times in UTC.
    #[must_use]
    pub fn sentence(&self) -> String {
        let name = match self.kind.known() {
            Some(PlanLimitKind::Session) => "session limit of the plan",
            Some(PlanLimitKind::Weekly) => "weekly limit of the plan",
            Some(PlanLimitKind::Other) | None => "usage limit of the plan",
        };
        match (self.continues_at, self.resets_at) {
            (Some(at), _) => format!("{name} reached; continues by itself at {at}"),
            (None, Some(at)) => format!("{name} reached; resets at {at}"),
            (None, None) => format!("{name} reached"),
        }
    }
}
