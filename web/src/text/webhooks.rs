//! Sentences about posts of events.

use svc_shared::internal::webhooks::{PostState, TestedWebhook, WebhookReport};

/// Heading.
pub const TITLE: &str = "Webhooks";
/// Where there is no target.
pub const NO_TARGET: &str = "No address is named. Add one to webhooks.urls in svc.yml.";
/// Heads of the table.
pub const TARGET: &str = "Address";
/// When the last one was made.
pub const LAST: &str = "Last post";
/// What became of it.
pub const STATE: &str = "State";
/// Nothing was posted.
pub const NONE: &str = "none yet";
/// Has given up posts tried again.
pub const REPLAY: &str = "Post again";
/// Why the address is not shown.
pub const MASKED: &str = "Addresses hold secrets: only scheme and host are shown.";

/// What is posted, and how.
#[must_use]
pub fn told(report: &WebhookReport) -> String {
    if !report.enabled {
        return "Off: nothing is posted until webhooks.enabled is switched on.".to_owned();
    }
    if report.events.is_empty() {
        return "Nothing is posted: every event is switched off.".to_owned();
    }
    let signed = if report.signed { "signed" } else { "not signed" };
    let tries = match report.outbox {
        true => "Each post is kept and tried again for three days until its target takes it",
        false => "Each post is tried once",
    };
    format!("Posted are {}. {tries}; posts are {signed}.", report.events.join(", "))
}

/// How many stand like this, beside the last one.
#[must_use]
pub fn counts(waiting: u64, failed: u64) -> Option<String> {
    match (waiting, failed) {
        (0, 0) => None,
        (waiting, 0) => Some(format!("{waiting} waiting")),
        (0, failed) => Some(format!("{failed} given up")),
        (waiting, failed) => Some(format!("{waiting} waiting, {failed} given up")),
    }
}

/// An entry, as messages name it.
#[must_use]
pub fn object(entry: usize) -> String {
    format!("webhook {entry}")
}

/// How a post stands.
#[must_use]
pub fn state(state: PostState) -> &'static str {
    match state {
        PostState::Waiting => "waiting",
        PostState::Delivered => "delivered",
        PostState::Failed => "given up",
    }
}

/// Why a test failed.
#[must_use]
pub fn reason(tested: &TestedWebhook) -> String {
    match (&tested.error, tested.status) {
        (Some(why), _) => why.clone(),
        (None, Some(status)) => format!("it answered {status}"),
        (None, None) => String::new(),
    }
}

/// What a replay led to.
#[must_use]
pub fn replayed(count: u64) -> String {
    match count {
        0 => "Nothing was given up meanwhile".to_owned(),
        1 => "One event is posted again".to_owned(),
        count => format!("{count} events are posted again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_posted_is_said_as_it_is() {
        let mut report = WebhookReport {
            enabled: true,
            signed: false,
            outbox: true,
            events: vec!["spawn".into(), "crash".into()],
            targets: Vec::new(),
        };
        assert_eq!(
            told(&report),
            "Posted are spawn, crash. Each post is kept and tried again for three days until its \
             target takes it; posts are not signed."
        );
        (report.outbox, report.signed) = (false, true);
        assert!(told(&report).ends_with("Each post is tried once; posts are signed."));
        report.enabled = false;
        assert!(told(&report).starts_with("Off"));
    }

    #[test]
    fn only_what_is_there_is_counted() {
        assert_eq!(counts(0, 0), None);
        assert_eq!(counts(2, 0).as_deref(), Some("2 waiting"));
        assert_eq!(counts(1, 3).as_deref(), Some("1 waiting, 3 given up"));
    }
}
