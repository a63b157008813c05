//! Sentences of the command palette and of the keys.

/// Button in the top bar, and title.
pub const PALETTE: &str = "Search or run…";
/// Nothing fits.
pub const NOTHING: &str = "Nothing matches.";
/// Kind of an entry.
pub const VIEW: &str = "view";
/// Kind of an entry.
pub const PROJECT: &str = "project";
/// Verb before the id.
pub const COPY_ID: &str = "Copy id of";
/// Title of the help.
pub const TITLE: &str = "Keyboard shortcuts";
/// Button in the top bar.
pub const HELP: &str = "Help: keyboard shortcuts";
/// Button: shows the first steps again.
pub const FIRST_STEPS: &str = "Show the first steps";
/// Heading of the words explained.
pub const GLOSSARY: &str = "Words: sessions and permissions";
/// A kind explained.
pub const SERVER_MODE: &str = "Server Mode";
/// What an external session is.
pub const EXTERNAL_MEANS: &str =
    "Started elsewhere on this machine; this service only observes it.";
/// Switch.
pub const SINGLE: &str = "Keyboard shortcuts";
/// Letters that can be changed, and what each does.
pub const LETTERS: [(&str, &str); 16] = [
    ("?", "List the shortcuts"),
    ("/", "Search in this view"),
    ("g", "Go to a view (first of two keys)"),
    ("j", "Next row"),
    ("k", "Previous row"),
    ("o", "Open in the client"),
    ("l", "Launch"),
    ("r", "Resume"),
    ("s", "Stop"),
    ("x", "Select the row"),
    ("X", "Select all rows up to it"),
    ("f", "Forget the row"),
    ("e", "Log"),
    ("y", "Copy the id"),
    ("[", "Previous tab"),
    ("]", "Next tab"),
];
/// Keys and what they do. Letters work outside of text fields.
pub const ALL: [(&str, &str); 18] = [
    ("Ctrl K", "Search or run a command"),
    ("/", "Search in this view"),
    ("g h", "Home"),
    ("g p", "Projects"),
    ("g b", "Background sessions"),
    ("g a", "Activity"),
    ("g d", "Readiness"),
    ("j k ↓ ↑", "Next and previous row"),
    ("Home End", "First and last row of the list"),
    ("o", "Open the row in the client"),
    ("l", "Launch in the project of the row"),
    ("r s", "Resume or stop the row"),
    ("x X", "Select the row; all up to it"),
    ("f Ctrl+Z", "Forget the row; undo it"),
    ("e y", "Log of the row; copy its id"),
    ("[ ]", "Previous and next tab"),
    ("v", "Mark the changed file as viewed"),
    ("?", "This list"),
];
