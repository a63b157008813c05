//! Sentences about several rows at once.

pub use crate::text::session::act::{CANCEL, FORGET, RESUME, STOP};

/// Region of the bar.
pub const LABEL: &str = "Selected rows";
/// Box of a row, and entry of its menu.
pub const SELECT: &str = "Select";
/// Button that ends it.
pub const CLEAR: &str = "Clear";
/// How many.
#[must_use]
pub fn selected(n: usize) -> String {
    format!("{n} selected")
}
/// Button, and title of the question.
#[must_use]
pub fn on(verb: &str, n: usize) -> String {
    format!("{verb} {n}")
}
/// Title of the question.
#[must_use]
pub fn question(verb: &str, n: usize) -> String {
    if n == 1 { format!("{verb} 1 session?") } else { format!("{verb} {n} sessions?") }
}
/// Result of a row for which a request is on its way.
pub const UNDER_WAY: &str = "Another action is in progress.";
/// What else happens.
pub const STOP_EFFECT: &str = "The sessions in them end too.";
/// What else happens.
pub const RESUME_EFFECT: &str = "For sessions that cannot be resumed, you see why.";
/// What else happens.
pub const FORGET_EFFECT: &str =
    "Removes them from the list for good. Files and conversations are kept.";
