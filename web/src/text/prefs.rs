//! Sentences of the preferences.

/// Heading.
pub const TITLE: &str = "Preferences";
/// Where they live.
pub const KEPT: &str = "Kept by the service, for every browser you sign in with.";
/// A choice that the service has not heard of.
pub const NOT_KEPT: &str = "This choice is not kept by the service yet";
/// A choice that the service did not take.
pub const REFUSED: &str = "This choice is taken back";
/// Choice.
pub const THEME: &str = "Theme";
/// Choice.
pub const DENSITY: &str = "Density with a mouse";
/// Choice.
pub const TIMES: &str = "Times";
/// Values and their words, the default first.
pub const THEMES: [(&str, &str); 3] =
    [("", "Like the system"), ("light", "Light"), ("dark", "Dark")];
/// Values and their words, the default first.
pub const DENSITIES: [(&str, &str); 2] = [("", "Comfortable"), ("compact", "Compact")];
/// Values and their words, the default first.
pub const ZONES: [(&str, &str); 3] =
    [("", "In the zone of this browser"), ("host", "In the zone of the service"), ("utc", "UTC")];
/// Heading of the keys.
pub const KEYS: &str = "Single-letter keys";
/// A key is taken.
#[must_use]
pub fn key_taken(key: &str) -> String {
    format!("{key} already does something else; choose another key.")
}
/// After a time.
#[must_use]
pub fn in_zone(name: &str) -> String {
    format!(" {name}")
}
