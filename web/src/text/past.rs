//! Sentences of the timeline.

/// A generation was started.
pub const STARTED: &str = "Started";
/// It became ready.
pub const READY: &str = "Ready";
/// It ended other than by a crash.
pub const ENDED: &str = "Ended";
/// View and tab.
pub const TITLE: &str = "Activity";
/// Nothing happened yet.
pub const EMPTY: &str = "Nothing has happened yet. Starts and ends are kept here.";
/// Button at the end of the list.
pub const OLDER: &str = "Show older";
/// Button above the list.
pub const NEWER: &str = "Something has happened since. Show it";
/// Heading of the newest few.
pub const TIMELINE: &str = "Timeline";
/// Field with the newest ends.
pub const LAST_ENDS: &str = "Last ends";
/// It has not ended so far.
pub const NO_ENDS: &str = "none";
