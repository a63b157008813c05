//! Sentences of the editor of a project's instructions.

use crate::text::launch::thousands;
use svc_shared::internal::instructions::MOST_BYTES;

/// Tab.
pub const LABEL: &str = "Instructions";
/// What the file is.
pub const WHAT: &str = "Each session reads CLAUDE.md when it starts, and follows it.";
/// Before the file is there.
pub const READING: &str = "Reading the file…";
/// There is none yet.
pub const NONE: &str = "This project has no CLAUDE.md. Saving creates it.";
/// Something runs.
pub const RUNNING: &str = "A session is running. Changes apply to new sessions.";
/// Label of the text.
pub const TEXT: &str = "Text of CLAUDE.md";
/// Button.
pub const SAVE: &str = "Save";
/// Said after saving.
pub const SAVED: &str = "CLAUDE.md is saved.";
/// Nothing to save.
pub const UNCHANGED: &str = "No changes to save.";
/// The project is not trusted.
pub const NOT_TRUSTED: &str = "Trust the project to change its instructions.";
/// Somebody else wrote.
pub const CONFLICT: &str = "Somebody changed the file while you were writing. It now says:";
/// Button: overwrite what is on disk.
pub const KEEP_MINE: &str = "Overwrite with my text";
/// Button: give up what was typed.
pub const TAKE_THEIRS: &str = "Discard my text";

/// How much of the room is used.
#[must_use]
pub fn size(bytes: usize) -> String {
    format!("{} / {} bytes", thousands(bytes), thousands(MOST_BYTES))
}

/// More than can be saved.
#[must_use]
pub fn too_large() -> String {
    format!("At most {} bytes can be saved. Shorten the text.", thousands(MOST_BYTES))
}
