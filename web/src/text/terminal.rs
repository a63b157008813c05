//! Sentences of the terminal panel.

/// Tab and region.
pub const LABEL: &str = "Terminal";
/// The rows, for people who hear the page.
pub const ROWS: &str = "Screen of the terminal";
/// State of the panel.
pub const CONNECTING: &str = "Connecting";
/// State of the panel.
pub const LIVE: &str = "Live";
/// State of the panel.
pub const WAITING: &str = "Waiting for output";
/// State of the panel.
pub const EXITED: &str = "Exited";
/// State of the panel.
pub const UNAVAILABLE: &str = "Unavailable";
/// State of the panel.
pub const RECONNECTING: &str = "Reconnecting";
/// State of the panel.
pub const ASKS: &str = "Needs an answer";
/// While nothing came yet.
pub const CONNECTING_WHY: &str = "Connecting to the terminal of this session…";
/// While the program draws nothing.
pub const WAITING_WHY: &str = "The session is running, but its terminal shows nothing yet.";
/// After the end, without a last screen.
pub const EXITED_WHY: &str =
    "The session has ended and left no last screen. Resume the session for a new terminal.";
/// After the end, with a last screen.
pub const LAST_SCREEN: &str = "The session has ended. This is its last screen.";
/// The connection is lost and nothing was seen yet.
pub const LOST_WHY: &str = "Connection to the service lost. Reconnecting…";
/// The view is off.
pub const OFF_WHY: &str =
    "The live terminal is switched off. Set claude.pty_screen_enabled to true to see it.";
/// The row is gone.
pub const GONE_WHY: &str = "This session was forgotten. Its terminal can no longer be shown.";
/// What the service says is wrong, as a sentence.
#[must_use]
pub fn sentence(said: Option<&str>) -> String {
    let said = said.unwrap_or(UNAVAILABLE);
    let mut chars = said.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}
/// Badge.
pub const READ_ONLY: &str = "Read-only";
/// Badge.
pub const CAN_TYPE: &str = "Typing allowed";
/// Generation.
#[must_use]
pub fn generation(n: u32) -> String {
    format!("gen {n}")
}
/// Time of the last frame.
#[must_use]
pub fn frame(clock: &str) -> String {
    format!("frame {clock}")
}
/// Button.
pub const FIT: &str = "Fit width";
/// Button, short.
pub const FIT_SHORT: &str = "Fit";
/// Button.
pub const ACTUAL: &str = "Actual size";
/// Button.
pub const SMALLER: &str = "A−, smaller text";
/// Button.
pub const LARGER: &str = "A+, larger text";
/// Button.
pub const COPY: &str = "Copy the selection or the whole screen";
/// Button.
pub const WHOLE: &str = "Full screen";
/// Button.
pub const NOT_WHOLE: &str = "Leave full screen";
/// Button.
pub const LEFT: &str = "Move the view left";
/// Button.
pub const RIGHT: &str = "Move the view right";
/// Field.
pub const FIND: &str = "Find in terminal";
/// Button above the lines.
pub const OLDER: &str = "Show earlier lines";
/// Button below the lines.
pub const TO_END: &str = "Back to the live screen";
/// What to do instead of typing.
pub const USE_OPEN: &str = "To type, open the session in the client.";
/// Field.
pub const TYPE_HERE: &str = "Text for the session";
/// Button.
pub const SEND: &str = "Send";
/// Group of keys.
pub const KEYS: &str = "Keys";
/// The service took nothing of what was sent; why stands below.
pub const NOT_TYPED: &str = "Nothing was typed";
/// The text is there, and Enter is not.
pub const NOT_ENTERED: &str = "Typed, but not sent";
/// Nothing could be sent.
pub const NOT_SENT: &str = "Not connected: nothing was typed. Try again in a moment.";
/// Text size.
#[must_use]
pub fn size(px: u8) -> String {
    format!("{px} px")
}
