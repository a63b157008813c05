//! Sentences of notifications.

use crate::model::notify::Standing;

/// The switch.
pub const SWITCH: &str = "Notifications of the open page";

/// Title of a notification.
#[must_use]
pub fn title(event: &str, label: &str) -> String {
    let what = match event {
        "crash" => "crashed",
        "ready" => "is ready",
        _ => "was stopped",
    };
    format!("{label} {what}")
}

/// Body of a notification.
#[must_use]
pub fn body(project: &str, gave_up: bool) -> String {
    match gave_up {
        true => format!("Project {project}. It crashed too often and is not started again."),
        false => format!("Project {project}"),
    }
}

/// What a switch does, or why it does nothing.
#[must_use]
pub fn standing(now: Standing) -> &'static str {
    match now {
        Standing::NotOffered => {
            "Off for this service. The settings for notifications switch them on."
        }
        Standing::Insecure => "Needs an encrypted address (https), or localhost.",
        Standing::Unsupported => "This browser has no notifications for pages.",
        Standing::Denied => {
            "Refused in this browser. Allow notifications for this address in the browser's settings."
        }
        Standing::Off => "While this page is open in the background. The browser asks you once.",
        Standing::On => "Shown while this page is open in the background.",
    }
}
