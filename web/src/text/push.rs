//! Sentences about notifications of devices while the page is closed.

use crate::model::push::Standing;

/// The switch.
pub const SWITCH: &str = "Notify this device";
/// Heading of the list.
pub const DEVICES: &str = "Devices";
/// Where there is none.
pub const NO_DEVICE: &str = "No device is notified while the page is closed.";
/// Where nothing can be switched on.
pub const OFF: &str = "Off: push.enabled in the settings lets devices switch notifications on.";
/// Head of the column.
pub const DEVICE: &str = "Device";
/// The one in hand.
pub const THIS: &str = "this sign-in";
/// Nothing reached it yet.
pub const NEVER: &str = "none yet";
/// Before the time of the last one that arrived.
pub const REACHED: &str = "reached";
/// Ends the notifications of a device.
pub const REMOVE: &str = "Remove";
/// Where the browser did not do what it was asked.
pub const NO_SUBSCRIPTION: &str = "This browser did not allow notifications";
/// Why that may be.
pub const NO_SUBSCRIPTION_WHY: &str =
    "Its notification service was not reached or is switched off. Try again later.";

/// What the switch does, or why it does nothing.
#[must_use]
pub fn standing(now: Standing) -> &'static str {
    match now {
        Standing::Asking => "Asking this browser…",
        Standing::NotOffered => {
            "Off for this service. push.enabled in the settings switches it on."
        }
        Standing::Insecure => "Needs an encrypted address (https), or localhost.",
        Standing::NotInstalled => {
            "Needs the installed page: use Share, then Add to Home Screen, and open it from there."
        }
        Standing::Unsupported => "This browser has no notifications for closed pages.",
        Standing::Denied => {
            "Refused in this browser. Allow notifications for this address in the browser's settings."
        }
        Standing::Off => {
            "Also while this page is closed: when a session needs an answer or crashed. The browser asks you once."
        }
        Standing::On => {
            "Told here when a session needs an answer or crashed, also while this page is closed."
        }
    }
}

/// What a device is told of.
#[must_use]
pub fn told(events: &[String]) -> String {
    let names: Vec<&str> = events
        .iter()
        .map(|event| match event.as_str() {
            "permission-needed" => "questions",
            "crash" => "crashes",
            "quarantine" => "sessions given up",
            "ready" => "sessions ready",
            "stop" => "sessions stopped",
            "session-end" => "sessions ended",
            "reconnect-failed" => "lost remote links",
            other => other,
        })
        .collect();
    names.join(", ")
}

/// Said after a removal.
#[must_use]
pub fn removed(label: &str) -> String {
    format!("{label} is not notified any more")
}
