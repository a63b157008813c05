//! Sentences about why a session stopped.

/// Heading of the card.
pub const TITLE: &str = "Why it stopped";
/// Heading of the evidence.
pub const EVIDENCE: &str = "How this is known";
/// Heading of what can be done.
pub const NEXT: &str = "What to do next";
/// Button.
pub const COPY: &str = "Copy report";
/// Under the failure to read a report.
pub const AGAIN: &str = "Read it again";

/// Name of a source of last lines.
#[must_use]
pub fn source(word: &str) -> &str {
    match word {
        "screen" => "Last screen",
        "output" => "Last output",
        "log" => "End of the log",
        "result" => "Result",
        other => other,
    }
}
