//! The project list.

/// Placeholder and label of the search.
pub const SEARCH: &str = "Name or path";
/// Group of filters.
pub const FILTERS: &str = "Show";
/// Filter.
pub const ALL: &str = "All";
/// Filter.
pub const LIVE: &str = "Live";
/// Filter.
pub const GIT: &str = "Git";
/// Filter.
pub const UNTRUSTED: &str = "Not trusted";
/// Order.
pub const SORT: &str = "Sort";
/// Order.
pub const BY_ATTENTION: &str = "Attention";
/// Order.
pub const BY_NAME: &str = "Name";
/// Order.
pub const BY_USED: &str = "Last used";
/// Order.
pub const BY_LIVE: &str = "Live sessions";
/// Filter.
pub const FAVOURITES: &str = "Favourites";
/// Button, pressed or not.
pub const FAVOURITE: &str = "Favourite";
/// Never used.
pub const NEVER: &str = "never";
/// Menu entry.
pub const OPEN_PAGE: &str = "Open page";
/// Menu entry.
pub const COPY_PATH: &str = "Copy path";
/// Menu entry; takes the selection back, too.
pub const SELECT: &str = "Select or deselect";
/// Mark of a selected row, for those who do not see it.
pub const SELECTED: &str = "selected";
/// How many are selected.
#[must_use]
pub fn selected(n: usize) -> String {
    format!("{n} selected")
}
/// Button.
pub const DESELECT: &str = "Clear selection";
/// Reason of the button that trusts several.
pub const ALL_TRUSTED: &str = "all of them are trusted";
/// Title.
pub const TRUST_SEVERAL: &str = "Trust folders?";
/// Button.
#[must_use]
pub fn trust_n(n: usize) -> String {
    if n == 1 { "Trust 1 folder".to_owned() } else { format!("Trust {n} folders") }
}
/// Nothing is checked yet.
pub const CHECK_SOME: &str = "Check the folders you trust.";
/// Keys of the list.
pub const KEYS: [(&str, &str); 4] = [("j", ""), ("k", "move"), ("l", "launch"), ("x", "select")];
/// Failing checks of a launch.
#[must_use]
pub fn checks(n: usize) -> String {
    if n == 1 { "1 check fails".to_owned() } else { format!("{n} checks fail") }
}
/// Why no launch is possible, by the id of a failing check; nothing for the others.
#[must_use]
pub fn blocks(check: &str) -> Option<&'static str> {
    Some(match check {
        "agent" => "the agent is not found",
        "disk" => "the disk is full",
        "directory" => "a second name of another folder",
        "bridge" => "another service runs its bridge",
        _ => return None,
    })
}
/// Column.
pub const LAST_USED: &str = "Last used";
/// Column.
pub const PROJECT: &str = "Project";
/// Column.
pub const SESSIONS: &str = "Sessions";
/// Column.
pub const ACTIONS: &str = "Actions";
/// Mark.
pub const TRUSTED: &str = "Trusted";
/// Mark.
pub const NOT_TRUSTED: &str = "Not trusted";
/// Mark.
pub const IS_GIT: &str = "git";
/// Mark.
pub const HAS_CLAUDE_MD: &str = "CLAUDE.md";
/// Mark.
pub const HAS_CLAUDE_DIR: &str = ".claude";
/// Mark of a second name.
#[must_use]
pub fn alias(of: &str) -> String {
    format!("same folder as {of}")
}
/// Count below the list.
#[must_use]
pub fn counted(shown: usize, all: usize) -> String {
    if all == 1 { format!("{shown} of 1 project") } else { format!("{shown} of {all} projects") }
}
/// Nothing fits.
pub const NOTHING_MATCHES: &str = "Nothing matches.";
/// Button.
pub const CLEAR: &str = "Clear filters";
