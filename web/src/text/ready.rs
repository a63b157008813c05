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
pub const DECISION: &str = "For you to decide";
/// Group.
pub const FINE: &str = "Passed";
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
/// Processes that the check `strays` has found.
pub mod strays {
    /// Name of their list.
    pub const LIST: &str = "Processes without a live session";
    /// Button.
    pub const END: &str = "End process";
    /// Question before it.
    pub const QUESTION: &str = "? The process is killed and cannot finish its work.";
    /// Its bridge has ended.
    pub const LEFTOVER: &str = "left by a session that ended";
    /// A second agent under one launch.
    pub const DUPLICATE: &str = "second process of a live session";
    /// Nobody knows where it belongs.
    pub const NO_PROJECT: &str = "in no project";
    /// A process as messages name it.
    #[must_use]
    pub fn object(pid: i32, program: &str) -> String {
        if program.is_empty() { pid.to_string() } else { format!("{pid} ({program})") }
    }
    /// Outcome.
    #[must_use]
    pub fn ended(object: &str) -> String {
        format!("Process {object} is gone")
    }
}
/// Before the time of the run.
pub const AS_OF: &str = "Checked ";
