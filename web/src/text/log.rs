//! Sentences of the log panel.

/// Region.
pub const LABEL: &str = "Log";
/// Switch.
pub const FOLLOW: &str = "Follow";
/// Switch.
pub const WRAP: &str = "Wrap";
/// Field.
pub const FIND: &str = "Find in log";
/// Hit.
#[must_use]
pub fn hit(at: usize, of: usize) -> String {
    format!("{at} of {of}")
}
/// Button.
pub const PREVIOUS: &str = "Previous hit";
/// Button.
pub const NEXT: &str = "Next hit";
/// Button.
pub const COPY_LAST: &str = "Copy the selection or the last 100 lines";
/// Button.
pub const DOWNLOAD: &str = "Download these lines";
/// What was downloaded.
#[must_use]
pub fn downloaded(name: &str) -> String {
    format!("Downloaded {name}")
}
/// Button.
pub const PAUSE: &str = "Pause";
/// Button while paused.
#[must_use]
pub fn go_on(waiting: usize) -> String {
    match waiting {
        0 => "Resume".to_owned(),
        n if n >= crate::model::log::MAX_WAITING => "Resume (more than 5,000 new lines)".to_owned(),
        1 => "Resume (1 new line)".to_owned(),
        n => format!("Resume ({n} new lines)"),
    }
}
/// Choice of lines by their weight.
pub const LEVEL: &str = "Lines shown";
/// The choices: the least weight, and its words.
pub const LEVELS: [(&str, &str); 3] =
    [("", "All levels"), ("warn", "Warnings and errors"), ("error", "Errors")];
/// No line has the chosen weight.
pub const NONE_OF_LEVEL: &str = "No line of this level.";
/// What the further controls are about.
pub const VIEW: &str = "log options";
/// Entry of the menu of log options.
pub const NUMBERS: &str = "Show line numbers";
/// Entry of the menu of log options.
pub const NO_NUMBERS: &str = "Hide line numbers";
/// Entry of the menu of log options.
pub const ANNOUNCE: &str = "Announce new output";
/// Entry of the menu of log options.
pub const NO_ANNOUNCE: &str = "Stop announcing new output";
/// New output for people who hear the page: how much, and the last line.
#[must_use]
pub fn read_out(n: usize, last: &str) -> String {
    let last: String = last.chars().take(200).collect();
    if n == 1 { last } else { format!("{n} new lines. Last line: {last}") }
}
/// Count.
#[must_use]
pub fn lines(n: usize) -> String {
    if n == 1 { "1 line".to_owned() } else { format!("{n} lines") }
}
/// Lines below the reader.
#[must_use]
pub fn new_lines(n: usize) -> String {
    if n == 1 { "1 new line".to_owned() } else { format!("{n} new lines") }
}
/// Nothing yet.
#[must_use]
pub fn empty(since: &str) -> String {
    format!("No output yet. Connected since {since}.")
}
/// Not connected yet.
pub const CONNECTING: &str = "Connecting to the log…";
/// Lost.
pub const RECONNECTING: &str = "Connection to the log lost. Reconnecting…";
/// The kind has none.
pub const NONE: &str = "This session has no log.";
/// The row is gone.
pub const GONE: &str = "This session was forgotten. Its log is no longer available here.";
/// Button at the start.
pub const OLDER: &str = "Load older lines";
/// The buffer is full.
pub const FULL: &str = "Only the last 10,000 lines are shown. The file has more.";
/// The start of the log.
pub const START: &str = "Start of this log";
/// Mark.
#[must_use]
pub fn resumed(generation: u32) -> String {
    format!("Resumed, generation {generation}")
}
/// Before a line that the process printed and that is not in its log.
pub const OUTPUT: &str = "[output]";
/// Mark.
pub const ROTATED: &str = "Log rotated";
/// Mark.
pub const GAP: &str = "Some lines are missing here";
/// Mark.
pub const ENDED: &str = "Ended";

/// An older part of a log, title.
pub const NOT_READ: &str = "The older lines could not be read";
