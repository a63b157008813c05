//! Sentences of the preferences.

/// Heading.
pub const TITLE: &str = "Preferences";
/// Where they live.
pub const KEPT: &str = "Saved by the service, for every browser you sign in with.";
/// A choice that the service has not heard of.
pub const NOT_KEPT: &str = "Not saved yet";
/// A choice that the service did not take.
pub const REFUSED: &str = "Couldn't save; reverted";
/// Choice.
pub const THEME: &str = "Theme";
/// Choice.
pub const DENSITY: &str = "Density";
/// Choice.
pub const TIMES: &str = "Time zone";
/// Values and their words, the default first.
pub const THEMES: [(&str, &str); 3] = [("", "System"), ("light", "Light"), ("dark", "Dark")];
/// Values and their words, the default first.
pub const DENSITIES: [(&str, &str); 2] = [("", "Comfortable"), ("compact", "Compact")];
/// Values and their words, the default first.
pub const ZONES: [(&str, &str); 3] = [("", "Browser"), ("host", "Server"), ("utc", "UTC")];
/// Heading of the keys.
pub const KEYS: &str = "Keyboard shortcuts";
/// A key is taken.
#[must_use]
pub fn key_taken(key: &str) -> String {
    format!("{key} is already used. Choose another key.")
}
/// After a time.
#[must_use]
pub fn in_zone(name: &str) -> String {
    format!(" {name}")
}
