//! Sentences of the timeline.

/// A generation was started.
pub const STARTED: &str = "Started";
/// It became ready.
pub const READY: &str = "Ready";
/// It ended other than by a crash.
pub const ENDED: &str = "Ended";
/// It lost its remote link.
pub const LINK_LOST: &str = "Link lost";
/// The link came back.
pub const LINK_BACK: &str = "Link restored";
/// View and tab.
pub const TITLE: &str = "Activity";
/// Nothing happened yet.
pub const EMPTY: &str = "Nothing has happened yet. Starts and exits are listed here.";
/// Button at the end of the list.
pub const OLDER: &str = "Show older";
/// Button above the list.
pub const NEWER: &str = "Show newer events";
/// Heading of the newest few.
pub const TIMELINE: &str = "Timeline";
/// Field with the newest ends.
pub const LAST_ENDS: &str = "Recent exits";
/// It has not ended so far.
pub const NO_ENDS: &str = "none";
