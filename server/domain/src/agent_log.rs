//! What the agent says in its debug file and on its captured output (`agent-cli` §3.2, §3.3).
//!
//! `lines` puts bytes together to lines, `marker` reads one line, `evidence` sums up what the
//! lines of one generation said. Leaves alone: reading files, and the link and activity lines of
//! §3.5, which nothing needs yet.

pub mod evidence;
pub mod lines;
pub mod marker;
mod poison;

use std::fmt;

/// A remote identifier as the agent writes it. Whoever knows it can use it: it must not reach a
/// log, a stream or an answer, so it shows itself to nobody who does not ask for it.
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
