//! Sentences about restoring what a restart of the machine ended.

fn sessions(n: usize) -> String {
    if n == 1 { "1 session".to_owned() } else { format!("{n} sessions") }
}
/// Name of the view.
pub const TITLE: &str = "Restore";
/// Heading of the view.
#[must_use]
pub fn heading(n: usize) -> String {
    format!("Restore {}", sessions(n))
}
/// On Home: what can be restored.
#[must_use]
pub fn ended(n: usize) -> String {
    format!("{} ended with the restart of the machine.", sessions(n))
}
/// On Home: the restore runs.
#[must_use]
pub fn under_way(done: usize, all: usize) -> String {
    format!("Restoring: {done} of {all} sessions are back.")
}
/// Goes to the view.
pub const OPEN: &str = "Restore…";
/// Goes to the view while a restore runs.
pub const VIEW: &str = "View";
/// Hides the offer in this tab.
pub const LATER: &str = "Later";
/// Below the heading.
pub const WHY: &str = "These sessions were running when the machine went down. Nobody stopped them, and none has been resumed yet.";
/// Nothing is offered.
pub const NOTHING: &str = "There is nothing to restore.";
/// … and when there will be.
pub const NOTHING_WHY: &str =
    "Sessions that end because the machine restarts are offered here afterwards.";
/// The list could not be read.
#[must_use]
pub fn unread(why: &str) -> String {
    format!("The sessions could not be listed: {why}")
}
/// The main button.
#[must_use]
pub fn restore(n: usize) -> String {
    format!("Restore {}", sessions(n))
}
/// Verb of the main button.
pub const RESTORE: &str = "Restore";
/// The button while nothing is selected.
pub const SELECT_FIRST: &str = "Select a session first.";
/// Takes the selected sessions out of the offer.
pub const DISMISS: &str = "Don't offer these again";
/// Head of the list.
#[must_use]
pub fn selected(chosen: usize, all: usize) -> String {
    format!("{chosen} of {all} selected, in the order in which they start")
}
/// Name of the list.
pub const LIST: &str = "Sessions that the restart ended";
/// Box above the list.
pub const ALL: &str = "Select all";
/// Column.
pub const COMES_BACK: &str = "What comes back";
/// It comes back.
pub const CONVERSATION: &str = "the conversation";
/// It comes back.
pub const NEW: &str = "the bridge, for new conversations";
/// It comes back.
pub const RECONNECT: &str = "the bridge and its conversations";
/// Nothing comes back.
pub const CANNOT: &str = "cannot be restored";
/// Opens the trust gate.
pub const TRUST_IT: &str = "Trust it";
/// When it ended.
pub const ENDED: &str = "ended ";
/// How long it had lived.
#[must_use]
pub fn had_run(span: &str) -> String {
    format!("had run for {span}")
}
/// Heading beside the list.
pub const NEXT: &str = "What happens next";
/// What happens next.
pub const NEXT_TEXT: &str = "The service resumes the selected sessions from top to bottom. \
                             You can close this page. The service continues without it.";
/// Label.
pub const PARALLEL: &str = "Start at the same time";
/// Label.
pub const AFTERWARDS: &str = "Bridges running after that";
/// Count against the limit.
#[must_use]
pub fn of_limit(live: usize, max: Option<u64>) -> String {
    max.map_or_else(|| live.to_string(), |max| format!("{live} of {max}"))
}
/// Stops what has not begun.
pub const CANCEL: &str = "Stop the rest";
/// Object of messages.
#[must_use]
pub fn object(n: usize) -> String {
    sessions(n)
}
/// Object of messages about the running restore.
pub const RUNNING_OBJECT: &str = "the restore";
/// The rest was taken back.
pub const CANCELLED: &str = "Stopped; the rest is not restored";
/// They are not offered any more.
#[must_use]
pub fn dismissed(object: &str) -> String {
    format!("Not offered again: {object}")
}
/// Step of one session.
pub const WAITING: &str = "Waiting";
/// Step of one session.
pub const STARTING: &str = "Starting";
/// Step of one session.
pub const DONE: &str = "Restored";
/// Step of one session.
pub const FAILED: &str = "Not restored";
/// Step of one session.
pub const SKIPPED: &str = "Skipped";
/// What became of all.
#[must_use]
pub fn summary(done: usize, all: usize) -> String {
    format!("{done} of {} restored", sessions(all))
}
/// Leaves the result.
pub const HOME: &str = "Go to Home";
/// The rest that is still offered.
pub const REST: &str = "Show what is left";
