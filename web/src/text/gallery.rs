//! Words of the gallery; what its components say comes from the page's own words.

/// Heading.
pub const TITLE: &str = "Components";
/// Below the heading.
pub const INTRO: &str = "Every component of the page, drawn by the code of the page from invented \
                         records. Nothing that is pressed here reaches the service.";
/// Name of the choices of a theme.
pub const THEME: &str = "Theme";
/// Name of the choices of a state.
pub const STATE: &str = "State";
/// Themes: the word in the address, and the label.
pub const THEMES: [(&str, &str); 3] = [("", "System"), ("light", "Light"), ("dark", "Dark")];
/// States: the word in the address, and the label.
pub const STATES: [(&str, &str); 5] = [
    ("", "As usual"),
    ("loading", "Loading"),
    ("empty", "Empty"),
    ("error", "Failed"),
    ("stale", "Connection lost"),
];
/// Section.
pub const BUTTONS: &str = "Buttons";
/// Section.
pub const BADGES: &str = "Status, badges and chips";
/// Section.
pub const FIELDS: &str = "Fields";
/// Section.
pub const NOTICES: &str = "Cards, strips and messages";
/// Section.
pub const DIALOGS: &str = "Dialogs, sheets and menus";
/// Section.
pub const ROWS: &str = "Rows of sessions";
/// Section.
pub const JOBS: &str = "Background sessions";
/// Section.
pub const EXTERNAL: &str = "Sessions started elsewhere";
/// Section.
pub const PROJECTS: &str = "Projects";
/// Section.
pub const SESSION: &str = "Session with its log";
/// Section.
pub const CAUSE: &str = "Cause of an end";
/// Section.
pub const PAST: &str = "Timeline";
/// Section.
pub const READINESS: &str = "Readiness";
/// Section.
pub const FIRST: &str = "First steps";
/// Section.
pub const TOKENS: &str = "Type and colour";
/// Column.
pub const AT_REST: &str = "At rest";
/// Column.
pub const PENDING: &str = "Pending";
/// Column.
pub const REFUSED: &str = "With a reason";
/// A reason.
pub const A_REASON: &str = "Can't resume: already running";
/// Weights of buttons, in the order of the sheet.
pub const LOOKS: [&str; 5] = ["Primary", "Soft", "Secondary", "Ghost", "Danger"];
/// Labels of the fields.
pub mod field {
    /// Field.
    pub const NAME: &str = "Session name";
    /// Field.
    pub const FILLED: &str = "Filled";
    /// Text of a field.
    pub const NIGHTLY: &str = "nightly checks";
    /// Field.
    pub const BAD: &str = "With an error";
    /// Text of a field.
    pub const BAD_TEXT: &str = "-begins-with-a-dash";
    /// Error.
    pub const WHY: &str = "A name does not begin with a dash.";
    /// Help.
    pub const HELP: &str = "At most 128 characters.";
    /// Field.
    pub const CHOICE: &str = "Permissions";
    /// Option.
    pub const OPTION: &str = "Ask before tools";
    /// Field.
    pub const SEARCH: &str = "Search";
    /// Placeholder.
    pub const SEARCH_IN: &str = "Name or path";
    /// Field.
    pub const PROMPT: &str = "First prompt";
    /// Field.
    pub const CHECKED: &str = "Checked";
    /// Field.
    pub const UNCHECKED: &str = "Unchecked";
    /// Field.
    pub const CHOSEN: &str = "Chosen";
    /// Field.
    pub const OTHER: &str = "Other";
    /// Switch.
    pub const ON: &str = "On";
    /// Switch.
    pub const OFF: &str = "Off";
}
/// Messages: what the button says, and what the message says.
pub mod message {
    /// A success.
    pub const SUCCESS: (&str, &str) = ("Server Mode started", "web-frontend, worktrees");
    /// Something under way.
    pub const INFO: (&str, &str) = ("Starting in docs-site", "for 4 s of 60 s");
    /// A decline.
    pub const WARNING: (&str, &str) =
        ("Couldn't resume api-gateway", "Server Mode already runs in this project");
    /// A failure.
    pub const DANGER: (&str, &str) =
        ("Failed to start in infra-terraform", "exit code 127, command not found");
}
/// Sizes of type: the class, and the sample.
pub const TYPES: [(&str, &str); 7] = [
    ("type-title", "Page title 24/32"),
    ("type-dialog", "Dialog title 20/28"),
    ("type-phone", "Phone body 16/24"),
    ("type-body", "Body 14/20, in bold for names and headings"),
    ("type-dense", "Dense 13/20, second line of a row"),
    ("type-meta", "Meta 12/16, 08:07:35"),
    ("mono", "Mono 13/18"),
];
/// Tokens of colour that are shown.
pub const COLOURS: [&str; 15] = [
    "bg",
    "surface",
    "surface-2",
    "border",
    "border-strong",
    "text",
    "text-2",
    "text-muted",
    "primary",
    "ok",
    "info",
    "warn",
    "danger",
    "violet",
    "neutral",
];
