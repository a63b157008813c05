//! Sentences of Maintenance: what is left over of bridges.

/// Title.
pub const TITLE: &str = "Maintenance";
/// Section.
pub const ENVIRONMENTS: &str = "Leftover environments";
/// What they are.
pub const WHAT: &str = "Your account keeps a remote environment for each bridge. Those listed here \
                        have no bridge on this machine any more.";
/// What is never listed.
pub const PROTECTED: &str = "Never listed: environments in the cloud, of other machines and of \
                             other directories, and those in whose directory an agent runs.";
/// Button.
pub const SCAN: &str = "Scan";
/// While it asks.
pub const SCANNING: &str = "The environments of your account are being read…";
/// Nothing.
pub const NONE: &str = "No environment is left over.";
/// Column.
pub const DIRECTORY: &str = "Directory";
/// Column.
pub const NAME: &str = "Name";
/// Column.
pub const REF: &str = "Environment";
/// Column.
pub const OUTCOME: &str = "Outcome";
/// Box of a row.
#[must_use]
pub fn choose(directory: &str) -> String {
    format!("Select the environment of {directory}")
}
/// Box above the rows.
pub const CHOOSE_ALL: &str = "Select all environments";
/// How many there are.
#[must_use]
pub fn count(ghosts: usize, total: usize, live: usize) -> String {
    format!("{ghosts} of {total} environments are left over; agents run in {live} directories.")
}
/// Button.
#[must_use]
pub fn archive(count: usize) -> String {
    format!("Archive {count}")
}
/// Question.
#[must_use]
pub fn archive_question(count: usize) -> String {
    match count {
        1 => "Archive 1 environment? It can be brought back.".to_owned(),
        n => format!("Archive {n} environments? They can be brought back."),
    }
}
/// Button.
pub const ARCHIVE: &str = "Archive";
/// Button.
#[must_use]
pub fn delete(count: usize) -> String {
    format!("Delete {count}")
}
/// Title of the question.
pub const DELETE_TITLE: &str = "Delete environments";
/// Question.
#[must_use]
pub fn delete_question(count: usize) -> String {
    match count {
        1 => "1 environment is deleted with the work that waits for it. This cannot be undone."
            .to_owned(),
        n => format!(
            "{n} environments are deleted with the work that waits for them. This cannot be undone."
        ),
    }
}
/// Label of the field.
pub const TYPE: &str = "Type DELETE to go on";
/// Button.
pub const DELETE: &str = "Delete";
/// Outcome of a row.
pub const ARCHIVED: &str = "archived";
/// Outcome of a row.
pub const DELETED: &str = "deleted";
/// Outcome of a row.
pub const SKIPPED: &str = "not left over any more";
/// Outcome of a row.
#[must_use]
pub fn failed(why: &str) -> String {
    format!("failed: {why}")
}
/// The feature is off.
pub const OFF: &str = "This list is turned off. Set reaper.ui_enabled: true and restart svc, or run \
                       this on the machine:";
/// … this.
pub const COMMAND: &str = "svc reap-environments";
/// What the command is.
pub const COMMAND_WORD: &str = "the command";
/// Link to the other things that are left over.
pub const OTHERS: &str = "Processes without a session are listed in Readiness.";
