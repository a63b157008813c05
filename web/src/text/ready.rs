//! Sentences about readiness.

/// View.
pub const TITLE: &str = "Readiness";
/// While the checks run.
pub const ASKING: &str = "Checking this machine…";
/// Button.
pub const AGAIN: &str = "Check again";
/// Group.
pub const BLOCKING: &str = "Blocking";
/// Group.
pub const WARNING: &str = "Warnings";
/// Group.
pub const FINE: &str = "In order";
/// Button.
pub const COPY: &str = "Copy report";
/// Pill in the top bar.
#[must_use]
pub fn blocking(n: usize) -> String {
    format!("{n} blocking")
}
/// Pill in the top bar.
#[must_use]
pub fn checks(n: usize) -> String {
    if n == 1 { "1 check".to_owned() } else { format!("{n} checks") }
}
/// Before the time of the run.
pub const AS_OF: &str = "Checked ";
