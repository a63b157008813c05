//! What the agent writes to its debug file and its output (`agent-cli` §3.2, §3.3).
//!
//! `lines` joins bytes to lines, `marker` reads one line, and `evidence` sums up the lines of one
//! generation. `report` sums up what they say about the remote link and the attached sessions
//! (§3.5). Reading files belongs to the caller.

pub mod evidence;
pub mod lines;
pub mod marker;
mod poison;
pub mod report;

use std::fmt;

/// A remote identifier as the agent writes it.
/// Knowing it is enough to use it, so it must not reach a log, a stream or an answer. `Debug` hides
/// it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteId(String);

impl RemoteId {
    /// Takes an identifier from an agent file.
    #[must_use]
    pub fn new(raw: &str) -> Self {
        Self(raw.to_owned())
    }

    /// The identifier itself, for the store and for what it is a key to.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RemoteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteId(<redacted>)")
    }
}
