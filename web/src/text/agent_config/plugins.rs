//! Sentences about plugins and marketplaces.

/// There are none.
pub const NONE: &str = "The agent lists none.";
/// While the agent is asked.
pub const ASKING: &str = "The agent is asked. This takes a few seconds.";
/// Verbs.
pub const ENABLE: &str = "Enable";
/// Verb.
pub const DISABLE: &str = "Disable";
/// Verb.
pub const UPDATE: &str = "Update";
/// Verb.
pub const UNINSTALL: &str = "Remove";
/// Verb.
pub const INSTALL: &str = "Install";
/// Button.
pub const DETAILS: &str = "Details";
/// Field.
pub const ID: &str = "Plugin to install: name@marketplace";
/// Field.
pub const SOURCE: &str = "Marketplace to add: owner/repository, address or directory";
/// Verb.
pub const ADD: &str = "Add marketplace";
/// State.
pub const ON: &str = "enabled";
/// State.
pub const OFF: &str = "disabled";
/// Before the plugin's id.
pub const TYPE_ID: &str = "and the plugin once more: what is installed runs on this machine";
/// State of an entry that the settings name.
#[must_use]
pub fn said(enabled: bool) -> &'static str {
    if enabled { "enabled by this scope" } else { "disabled by this scope" }
}
/// What is asked.
#[must_use]
pub fn question(verb: &str, what: &str) -> String {
    format!("{verb} {what}")
}
/// The rest of the question.
pub const TO_GO_ON: &str = "to go on";
