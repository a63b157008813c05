//! Sentences about launches that wait for the reset of a plan limit.

/// Heading of their section.
pub const TITLE: &str = "Start after the plan limit";
/// The choice in the launch dialog.
pub const CHOICE: &str = "Start when the limit is reset";
/// Label of the choice.
pub const LABEL: &str = "Plan limit";
/// What the choice means.
#[must_use]
pub fn choice_help(resets: &str) -> String {
    format!("Starts once, a few minutes after {resets}. Until then you can cancel it on Home.")
}
/// What a launch without the choice means.
pub const NOW_HELP: &str = "A session that starts now may stop at the limit at once.";
/// Button of the launch dialog.
pub const LAUNCH_LATER: &str = "Launch later";
/// It waits.
pub const WAITING: &str = "Waiting for the reset";
/// It is being started.
pub const STARTING: &str = "Starting";
/// Nothing was started.
pub const FAILED: &str = "Did not start";
/// When it starts.
#[must_use]
pub fn starts(at: &str) -> String {
    format!("Starts {at}")
}
/// Message after it was planned.
#[must_use]
pub fn planned(project: &str, at: &str) -> String {
    format!("{project} starts {at}")
}
/// … and what can be done.
pub const PLANNED_BODY: &str = "You can cancel it on Home.";
/// Takes back one that waits.
pub const CANCEL: &str = "Cancel";
/// Takes one that failed off the list.
pub const REMOVE: &str = "Remove";
/// Message after it was taken back.
#[must_use]
pub fn cancelled(project: &str) -> String {
    format!("{project}: launch cancelled")
}
/// Message after it was taken off the list.
#[must_use]
pub fn removed(project: &str) -> String {
    format!("{project}: launch removed")
}
