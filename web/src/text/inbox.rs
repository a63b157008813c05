//! Sentences of the approval inbox.

use svc_shared::api::approvals::because;

/// Tab.
pub const OPEN: &str = "Open";
/// Tab.
pub const ANSWERED: &str = "Answered";
/// Name of the tabs.
pub const TABS: &str = "Which requests are listed";
/// Name of the list.
pub const LIST: &str = "Requests";
/// The list of answered requests without any.
pub const NONE_ANSWERED: &str = "No request has been answered yet.";
/// The list while it is read.
pub const LOADING: &str = "Reading…";
/// Before a request is chosen.
pub const CHOOSE: &str = "Choose a request to see all of it.";
/// Back to the list on a small screen.
pub const BACK: &str = "All requests";
/// There is no such request.
pub const UNKNOWN: &str =
    "This request is not known any more. It was answered long ago, or its session was forgotten.";
/// The whole request cannot be had.
pub const SUMMARY_ONLY: &str =
    "Only the summary is here, because the agent is not connected at the moment.";
/// Something is masked.
pub const MASKED: &str =
    "Something that looks like a secret is masked here. The agent uses the real value.";
/// Unfolds the request as the agent sent it.
pub const RAW: &str = "Request as the agent sent it";
/// Label of the agent's own words.
pub const NOTE: &str = "Agent's note";
/// The edit applies wherever the text is.
pub const EVERYWHERE: &str = "Replaces this text wherever it occurs in the file";
/// An answer is on its way.
pub const SENDING: &str = "Sending…";
/// The position of an edit is not known.
pub const NO_LINE: &str = "The line numbers are not known.";
/// Beside the buttons.
pub const ONCE: &str = "Your answer is for this request only.";
/// The same where the agent offers more for its session.
pub const ONCE_OR_SESSION: &str = "Deny and Allow once are for this request only.";

/// Where a command runs, or a file is.
#[must_use]
pub fn in_directory(path: &str) -> String {
    format!("in {path}")
}

/// Bytes that are not shown.
#[must_use]
pub fn left_out(bytes: u64) -> String {
    format!("{} KB more are not shown here.", bytes.div_ceil(1024))
}

/// What became of a request, in a sentence.
#[must_use]
pub fn outcome(
    decision: &str,
    for_session: bool,
    reason: Option<&str>,
    actor: Option<&str>,
) -> String {
    let by = actor.map(|actor| format!(" by {actor}")).unwrap_or_default();
    let done = match decision {
        "allow" if for_session => format!("Allowed for the session{by}."),
        "allow" => format!("Allowed{by}."),
        "deny" => format!("Denied{by}."),
        "interrupted" => "The turn was interrupted.".to_owned(),
        _ => "Withdrawn.".to_owned(),
    };
    match reason {
        Some(reason) => format!("{done} {}", because(reason)),
        None => done,
    }
}

/// The same in one word, for a list.
#[must_use]
pub fn outcome_word(decision: &str) -> &'static str {
    match decision {
        "allow" => "allowed",
        "deny" => "denied",
        "interrupted" => "interrupted",
        _ => "withdrawn",
    }
}

/// What the agent was told beside a refusal.
#[must_use]
pub fn told(message: &str) -> String {
    format!("The agent was told: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_says_who_and_why() {
        assert_eq!(outcome("allow", false, None, Some("page")), "Allowed by page.");
        let lost = outcome("deny", false, Some("undelivered"), None);
        assert!(lost.starts_with("Denied. ") && lost.contains("stopped waiting"), "{lost}");
        assert!(
            outcome("cancelled", false, Some("expired"), None).starts_with("Withdrawn. Nobody")
        );
    }

    #[test]
    fn what_is_left_out_is_rounded_up() {
        assert_eq!(left_out(1), "1 KB more are not shown here.");
        assert_eq!(left_out(2049), "3 KB more are not shown here.");
    }
}
