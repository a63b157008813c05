//! Sentences about the support bundle.

/// Button that shows what would be in a bundle.
pub const BUTTON: &str = "Support bundle";
/// Heading of the card.
pub const TITLE: &str = "What the support bundle holds";
/// What the reader must know before they pass it on.
pub const WHY: &str = "One file for somebody who helps you. Secrets, session ids and your home \
                       folder are masked in every part, and nothing else is in it.";
/// Link that saves the file.
pub const SAVE: &str = "Save bundle";
/// Button.
pub const CLOSE: &str = "Close";
/// While it is gathered.
pub const GATHERING: &str = "Gathering…";

/// Size of a part.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} bytes"),
        _ => format!("{} KiB", bytes / 1024),
    }
}
