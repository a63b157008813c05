//! Sentences about tokens and costs.

/// View.
pub const TITLE: &str = "Usage";
/// Choice of the time.
pub const RANGE: &str = "Period";
/// Choices of the time, with the word in the address.
pub const RANGES: [(&str, &str); 4] =
    [("7", "7 days"), ("", "30 days"), ("90", "90 days"), ("all", "All")];
/// Button.
pub const CSV: &str = "CSV";
/// Name of the file.
pub const CSV_NAME: &str = "usage.csv";
/// Figure.
pub const COST_FIGURE: &str = "cost, approximate";
/// Figure.
pub const INPUT_FIGURE: &str = "input tokens";
/// Figure.
pub const OUTPUT_FIGURE: &str = "output tokens";
/// Figure.
pub const WRITTEN_FIGURE: &str = "written to the cache";
/// Figure.
pub const READ_FIGURE: &str = "read from the cache";
/// Column.
pub const PROJECT: &str = "Project";
/// Column.
pub const INPUT: &str = "Input";
/// Column.
pub const OUTPUT: &str = "Output";
/// Column.
pub const WRITTEN: &str = "Cache write";
/// Column.
pub const READ: &str = "Cache read";
/// Column.
pub const COST: &str = "Cost";
/// Last row.
pub const SUM: &str = "All projects";
/// Card.
pub const MODELS: &str = "Models";
/// Card.
pub const HOW: &str = "How costs are counted";
/// What it says.
pub const HOW_TEXT: &str = "From the transcripts on this machine and public prices in US dollars. Your bill may differ: a subscription is not charged per token.";
/// The configuration shows nothing.
pub const OFF: &str =
    "Usage is switched off. Set `usage.mode` to `cost` or `tokens` in the configuration to see it.";
/// No tokens.
pub const EMPTY: &str = "No tokens were used in this period.";

/// When the files were looked at, and what is missing.
#[must_use]
pub fn as_of(clock: Option<&str>, pending: u64) -> String {
    let read = match pending {
        0 => String::new(),
        1 => ", 1 file is still being read".to_owned(),
        n => format!(", {n} files are still being read"),
    };
    match clock {
        Some(clock) => format!("as of {clock}{read}"),
        None => "The transcripts are still being read".to_owned(),
    }
}

/// Share of a model.
#[must_use]
pub fn share(percent: u32) -> String {
    format!("{percent} % of tokens")
}

/// A model without a price.
#[must_use]
pub fn unpriced(model: &str, tokens: &str) -> String {
    format!("{model} has no known price. {tokens} tokens of this model are counted without a cost.")
}
