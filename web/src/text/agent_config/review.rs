//! Sentences of what is saved.

/// Button.
pub const DISCARD: &str = "Discard";
/// Button.
pub const REVIEW: &str = "Review and save";
/// Below the count on a phone.
pub const WHEN: &str = "for new sessions";
/// Before the word to type.
pub const TYPE: &str = "Type";
/// After the word to type.
pub const TO_SAVE: &str = "to save";
/// After the word to type.
pub const TO_RESTORE: &str = "to put it back";
/// After the word to type.
pub const TO_DELETE: &str = "to remove it";
/// Before the words to type for a file that may be run.
pub const REVIEW_SCRIPT: &str = "The agent may run this file. Read it, then type";
/// What is typed is another word.
pub const DIFFERS: &str = "This is another text.";
/// A field is wrong.
pub const REPAIR: &str = "Repair what is marked first.";
/// Both changed the same.
pub const DECIDE: &str = "Choose first which of both versions counts.";
/// Button.
pub const PUT_BACK: &str = "Put back";
/// Button.
pub const CANCEL: &str = "Cancel";
/// Toast.
pub const IS_BACK: &str = "The earlier version is back.";
/// Button that leaves the review.
pub const BACK: &str = "Back to the form";
/// Link to the earlier version.
pub const SHOW: &str = "Show that change";
/// Button.
pub const HIDE: &str = "Hide that change";
/// Button: mine wins.
pub const MINE: &str = "Keep mine";
/// Button: theirs wins.
pub const THEIRS: &str = "Discard mine";
/// Somebody else wrote, elsewhere.
pub const MERGED: &str = "This file changed on disk after you opened it.";
/// Nothing was lost.
pub const MERGED_REST: &str =
    "Your edits were added to the new version. Read the differences again, then save.";
/// The same was changed.
pub const CONFLICT_REST: &str =
    "The same was changed there and here. Saving yours replaces that change.";
/// No other state differs in this part.
pub const OTHER_PART: &str = "The change is in another part of the file.";
/// There is no earlier version.
pub const NO_VERSIONS: &str = "No earlier version is kept. The first save keeps one.";
/// Head of the list.
pub const VERSIONS: &str = "Before the changes of";
/// Button of a row.
pub const COMPARE: &str = "Compare";
/// Nothing differs.
pub const SAME: &str = "This version is the same as what is there now.";
/// What is put back.
pub const WILL_RETURN: &str = "The version from before the last change comes back";

/// How many values are written.
#[must_use]
pub fn changes(count: usize) -> String {
    if count == 1 { "1 change".to_owned() } else { format!("{count} changes") }
}

/// How many values will be written.
#[must_use]
pub fn will_be_written(count: usize) -> String {
    format!("{} will be written", changes(count))
}

/// How much of the word is missing.
#[must_use]
pub fn missing(letters: usize) -> String {
    if letters == 1 { "1 letter missing".to_owned() } else { format!("{letters} letters missing") }
}

/// Button.
#[must_use]
pub fn save(what: &str) -> String {
    format!("Save {what}")
}
