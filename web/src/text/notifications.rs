//! Sentences about notifications of the service.

use svc_shared::internal::notifications::DeliveryState;

/// Heading.
pub const TITLE: &str = "Notifications";
/// Nothing is known yet.
pub const ASKING: &str = "Asking…";
/// The browser.
pub const DEVICE: &str = "This device";
/// The services.
pub const SERVICES: &str = "Services";
/// Where there is none.
pub const NO_TARGET: &str =
    "No service is named. Add one to notifications.urls in svc.yml, such as ntfys://HOST/TOPIC.";
/// Where nothing is told.
pub const OFF: &str = "Off: nothing is told until notifications.enabled is switched on.";
/// To the settings.
pub const SETTINGS: &str = "Settings";
/// Heads of the table.
pub const SERVICE: &str = "Service";
/// When the last one was made.
pub const LAST: &str = "Last notification";
/// What became of it.
pub const STATE: &str = "State";
/// Nothing was sent.
pub const NONE: &str = "none yet";
/// Sends a test.
pub const TEST: &str = "Test";
/// Sends a test to all.
pub const TEST_ALL: &str = "Test all";
/// An entry that is no target.
pub const DISABLED: &str = "disabled";
/// Why the address is not shown.
pub const MASKED: &str = "Addresses hold secrets: only service and host are shown.";

/// What is told.
#[must_use]
pub fn told(events: &[String]) -> String {
    let names: Vec<&str> = events
        .iter()
        .map(|event| match event.as_str() {
            "crash" => "crashes",
            "ready" => "sessions that are ready",
            "stop" => "sessions that were stopped",
            "session-end" => "sessions that ended by themselves",
            "reconnect-failed" => "remote links that stay down",
            "permission-needed" => "questions that wait",
            other => other,
        })
        .collect();
    match names.as_slice() {
        [] => "Nothing is sent, because every event is switched off.".to_owned(),
        names => format!("Sent for {}.", names.join(", ")),
    }
}

/// The hours in which most things wait.
#[must_use]
pub fn quiet(hours: &str, is_now: bool, held: usize) -> String {
    let waiting = match held {
        0 => String::new(),
        1 => " One event waits.".to_owned(),
        held => format!(" {held} events wait."),
    };
    let now = if is_now { ", now" } else { "" };
    format!("Quiet hours {hours}{now}: all but questions wait for their end.{waiting}")
}

/// An entry, as messages name it.
#[must_use]
pub fn object(entry: usize, service: &str) -> String {
    format!("{service} (entry {entry})")
}

/// How a delivery stands.
#[must_use]
pub fn state(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Waiting => "waiting",
        DeliveryState::Sent => "sent",
        DeliveryState::Accepted => "accepted",
        DeliveryState::Failed => "failed",
        DeliveryState::Withdrawn => "taken back",
    }
}

/// What came of a test.
#[must_use]
pub fn tested(accepted: usize, all: usize) -> String {
    match (accepted, all) {
        (1, 1) => "The test was accepted".to_owned(),
        (0, 1) => "The test failed".to_owned(),
        (accepted, all) => format!("{accepted} of {all} tests were accepted"),
    }
}

/// Earlier ones.
#[must_use]
pub fn earlier(count: usize) -> String {
    format!("{count} earlier")
}
