//! Sentences about automatic restarts.

/// Chip of a bridge that is restarted by itself; none where it is not.
#[must_use]
pub fn chip(policy: &str) -> Option<&str> {
    match policy {
        "never" => None,
        "on-crash" => Some("restarts on crash"),
        "always" => Some("always restarts"),
        other => Some(other),
    }
}
/// A restart is scheduled.
#[must_use]
pub fn waits(span: &str, attempt: u32) -> String {
    format!("The service resumes this session in {span}. This is attempt {attempt}.")
}
/// A restart is due at this moment.
#[must_use]
pub fn due(attempt: u32) -> String {
    format!("The service resumes this session now. This is attempt {attempt}.")
}
/// The policy gave up.
#[must_use]
pub fn gave_up(crashes: u32) -> String {
    let crashes = match crashes {
        0 | 1 => "Too many crashes".to_owned(),
        many => format!("{many} crashes in a short time"),
    };
    format!("{crashes}. The service does not resume this session until somebody releases it.")
}
/// Starts at once.
pub const NOW: &str = "Restart now";
/// Cancels a scheduled restart.
pub const STOP_TRYING: &str = "Stop trying";
/// Ends the pause after too many crashes.
pub const RELEASE: &str = "Release";
/// Ends the pause and starts.
pub const RELEASE_START: &str = "Release and start";
/// Rest of the question before a release.
pub const RELEASE_QUESTION: &str = "? The next crash restarts the session again.";
/// Menu entry that goes to the policy.
pub const POLICY: &str = "Restart policy";
/// Verb of a change of the policy.
pub const CHANGE: &str = "Change the restart policy of";
/// Follows the configuration.
pub const INHERIT: &str = "As configured";
/// Heading of the card.
pub const CARD: &str = "Automatic restarts";
/// A scheduled restart was cancelled.
#[must_use]
pub fn called_off(project: &str) -> String {
    format!("No more restarts of {project}")
}
/// … and what is left to do.
pub const CALLED_OFF_BODY: &str = "Resume starts the session again.";
/// The pause was ended.
#[must_use]
pub fn released(project: &str) -> String {
    format!("Released {project}")
}
/// … together with a start.
#[must_use]
pub fn released_and_started(project: &str) -> String {
    format!("Released and started {project}")
}
/// What happens after a plan limit was changed.
#[must_use]
pub fn limit_changed(project: &str, choice: &str) -> String {
    format!("{project} after a plan limit: {choice}")
}
/// The policy was changed.
#[must_use]
pub fn changed(project: &str, policy: &str) -> String {
    format!("{project} restarts: {policy}")
}
