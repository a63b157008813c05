//! Sentences about the settings of the service.

use crate::model::settings::{Bound, text_of};
use crate::text::{launch, status};
use serde_json::Value;

/// View.
pub const TITLE: &str = "Settings";
/// While the settings are read.
pub const ASKING: &str = "Reading the settings…";
/// Field that narrows the list.
pub const FILTER: &str = "Name, key or text";
/// Before the path of the file.
pub const FILE: &str = "File:";
/// List of sections.
pub const SECTIONS: &str = "Sections";
/// Menu of the sections, where their list has no room.
pub const GO_TO: &str = "Go to section…";
/// Nothing fits the filter.
pub const NONE: &str = "No setting matches.";
/// Nothing fits the filter, and the second list is locked.
pub const NONE_OPEN: &str = "No setting matches. Locked settings were not searched.";
/// Badge.
pub const NEEDS_RESTART: &str = "needs restart";
/// Badge.
pub const APPLIES_LIVE: &str = "applies live";
/// A change takes effect for sessions that begin later.
pub const APPLIES_TO_NEW: &str = "applies to new sessions";
/// Badge of a key whose program is not on this machine.
pub const MISSING: &str = "not installed";
/// Badge.
pub const DEPRECATED: &str = "replaced by usage.mode";
/// Badge of a key whose saved value is not in use yet.
pub const PENDING: &str = "saved, needs a restart";
/// Saved settings are not in use yet.
pub const WAITS: &str = "Some saved settings take effect after a restart of svc.";
/// Mark of a key that somebody else changed.
pub const CONFLICT: &str = "Somebody else changed this key in the file.";
/// State of a switch.
pub const ON: &str = "On";
/// State of a switch.
pub const OFF: &str = "Off";
/// Help of a list.
pub const ONE_PER_LINE: &str = "one per line";
/// The value comes from the file.
pub const FROM_FILE: &str = "from the file";
/// The value is the default.
pub const IS_DEFAULT: &str = "default";
/// The service runs without a file, as the demo does.
pub const NO_CONFIG: &str =
    "svc runs without a configuration file here, so there is nothing to change.";
/// Nothing may be saved because the file cannot be read.
pub const NO_FILE: &str = "The file cannot be read or is not valid. These are the values in use, and nothing can be saved.";
/// Section of the second list.
pub const ADVANCED: &str = "Clone and webhooks";
/// Why the second list is locked.
pub const ADVANCED_WHY: &str = "These settings decide which machines svc connects to. Confirm your \
    password to change them. They stay open for 10 minutes.";
/// No password is configured.
pub const ADVANCED_NO_PASSWORD: &str = "These settings need a password, and none is configured. \
    Set auth.password_hash in the file, or change them there.";
/// Button.
pub const CONFIRM_PASSWORD: &str = "Confirm password";
/// Button.
pub const LOCK: &str = "Lock now";
/// Field.
pub const PASSWORD: &str = "Password";
/// Button.
pub const DISCARD: &str = "Discard";
/// Button.
pub const SAVE: &str = "Save";
/// Section of the keys that no editor changes.
pub const FILE_ONLY: &str = "Only in the file";
/// Why they are listed.
pub const FILE_ONLY_WHY: &str = "These keys are changed in the file, or with svc config set.";
/// Why a key is not changed here.
#[must_use]
pub fn because(reason: &str) -> String {
    format!("It {reason}.")
}
/// After a save that the file did not allow.
pub const STALE: &str = "The file was changed since it was read. Your changes are still here. Check \
    the marked settings, then save again.";
/// Toast after a save.
pub const SAVED: &str = "Saved. svc uses the changes now.";
/// After a save of which something needs a restart.
pub const SAVED_WAITS: &str =
    "Saved. svc uses what is marked after a restart. Running sessions are not affected.";
/// A field holds no number.
pub const NO_NUMBER: &str = "Enter a number.";

/// Why nothing can be changed here.
#[must_use]
pub fn read_only(file: &str) -> String {
    format!(
        "Settings are read-only here. To change them in the dashboard, set config_write.enabled to \
         true in {file} and restart svc."
    )
}

/// Button beside a key.
#[must_use]
pub fn copy(key: &str) -> String {
    format!("Copy {key}")
}

/// The state of a value that a variable decides.
#[must_use]
pub fn set_by(variable: &str) -> String {
    format!("set by {variable}")
}

/// Below a changed control.
#[must_use]
pub fn was(value: &str) -> String {
    format!("was {value}")
}

/// Below a control.
#[must_use]
pub fn default_is(value: &str) -> String {
    format!("default {value}")
}

/// How a value that is nothing is shown.
pub const NOTHING: &str = "none";

/// How many changes wait.
#[must_use]
pub fn changes(count: usize) -> String {
    match count {
        1 => "1 change".to_owned(),
        many => format!("{many} changes"),
    }
}

/// What saving means: how many changes apply at once, and how many after a restart.
#[must_use]
pub fn effect(live: usize, restart: usize) -> String {
    let at_once = match live {
        0 => None,
        1 => Some("1 applies at once".to_owned()),
        many => Some(format!("{many} apply at once")),
    };
    let later = match restart {
        0 => None,
        1 => Some("1 needs a restart of svc".to_owned()),
        many => Some(format!("{many} need a restart of svc")),
    };
    let parts: Vec<String> = [at_once, later].into_iter().flatten().collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("{}. Sessions keep running.", parts.join(", ")),
    }
}
/// Behind the number of changes of a section.
pub const CHANGED: &str = "changed";
/// Button that shows what would be saved.
pub const REVIEW: &str = "Review";
/// Button that hides it again.
pub const HIDE_REVIEW: &str = "Hide review";
/// Columns of the review.
pub const REVIEW_COLUMNS: [&str; 3] = ["Key", "Saved", "New"];
/// Button that takes one change back.
pub const UNDO: &str = "Undo";
/// What the review is about.
pub const REVIEW_OF: &str = "Changes to save";
/// The proof of the password has run out while something of the list is not saved.
pub const PROOF_OVER: &str = "The 10 minutes are over. Saving asks for your password again.";

/// How long the second list stays open.
#[must_use]
pub fn open_for(left: &str) -> String {
    format!("Open for {left}")
}

/// The label of the button that takes the change of a key back.
#[must_use]
pub fn undo_of(key: &str) -> String {
    format!("{UNDO} {key}")
}

/// A value in words.
#[must_use]
pub fn value(value: &Value) -> String {
    match value {
        Value::Bool(true) => ON.to_owned(),
        Value::Bool(false) => OFF.to_owned(),
        Value::Null => NOTHING.to_owned(),
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        Value::Array(items) if items.is_empty() => NOTHING.to_owned(),
        Value::Object(states) => {
            let on: Vec<&str> = states
                .iter()
                .filter(|(_, state)| **state == Value::Bool(true))
                .map(|(name, _)| name.as_str())
                .collect();
            if on.is_empty() { NOTHING.to_owned() } else { on.join(", ") }
        }
        other => text_of(other).replace('\n', ", "),
    }
}

/// A word of the file in plain words, with the word itself.
#[must_use]
pub fn choice(key: &str, word: &str) -> String {
    let plain = match (key, word) {
        ("claude.launch_mode", "standard") => launch::SERVER_MODE,
        ("claude.launch_mode", "pty") => launch::INTERACTIVE,
        ("claude.after_reboot", "offer") => "Offer to restore them",
        ("claude.after_reboot", "resume") => "Restore them",
        ("claude.heal", "off") | ("claude.after_reboot", "never") => "Do nothing",
        ("claude.heal", "notify") => "Notify",
        ("claude.heal", "restart") => "Notify and restart",
        ("instance_defaults.spawn_mode", word) => status::spawn_mode("standard", word),
        ("restart.policy", word) => launch::restart(word),
        ("ceilings.action", "warn") => "Warn",
        ("ceilings.action", "stop") => "Stop the bridge",
        ("ceilings.action", "recycle") => "Stop and resume the bridge",
        ("usage.mode", "cost") => "Tokens and cost",
        ("usage.mode", "tokens") => "Tokens only",
        ("usage.mode", "off") => "Nothing",
        (_, word) => word,
    };
    if plain == word { word.to_owned() } else { format!("{plain} ({word})") }
}

/// The bounds of a number.
#[must_use]
pub fn bounds(bound: &Bound) -> String {
    match (bound.min, bound.is_open, bound.max) {
        (Some(min), true, Some(max)) => format!("More than {min}, at most {max}."),
        (Some(min), false, Some(max)) => format!("From {min} to {max}."),
        (Some(min), true, None) => format!("More than {min}."),
        (Some(min), false, None) => format!("At least {min}."),
        (None, _, Some(max)) => format!("At most {max}."),
        (None, _, None) => String::new(),
    }
}
