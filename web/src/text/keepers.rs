//! Sentences about the processes that hold terminals.

/// Name of the list.
pub const LIST: &str = "Keepers: processes that hold the terminals of sessions";
/// Ends one.
pub const END: &str = "End";
/// Rest of the question.
pub const QUESTION: &str = "? Its terminal closes, and the agent in it ends.";
/// Its session is not known here.
pub const ORPHAN: &str = "orphaned";
/// Its own record cannot be read.
pub const DAMAGED: &str = "its record is damaged, so its terminal cannot be shown";
/// It was started by another release.
pub const OUTDATED: &str = "older release";
/// A keeper, as messages name it.
#[must_use]
pub fn object(pid: i32) -> String {
    format!("keeper {pid}")
}
/// The agent in its terminal.
#[must_use]
pub fn agent(pid: i32) -> String {
    format!("agent {pid}")
}
/// How far its session is.
#[must_use]
pub fn state(word: &str) -> &str {
    match word {
        "launching" | "starting" => "starting",
        "ready" => "connected",
        "failed" => "its agent did not connect",
        "exited" => "its agent has ended",
        other => other,
    }
}
/// It is gone.
#[must_use]
pub fn ended(object: &str) -> String {
    format!("Ended {object}")
}
