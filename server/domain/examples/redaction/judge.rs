//! Counts what redaction masks of the corpus, and what it touches in vain.

use crate::corpus::{Harmless, Planted, harmless, planted};
use svc_domain::redact::redact_text;

/// What one judge found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Planted secrets that were found.
    pub found: usize,
    /// All planted secrets.
    pub planted: usize,
    /// Harmless lines that were taken for secrets.
    pub touched: usize,
    /// All harmless lines.
    pub harmless: usize,
}

impl Figures {
    /// A row of the table in `docs/security.md`.
    pub fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} of {} | {} | {} of {} | {} | {} |",
            self.found,
            self.planted,
            percent(self.found, self.planted),
            self.touched,
            self.harmless,
            percent(self.touched, self.harmless),
            percent(self.found, self.found + self.touched),
        )
    }
}

/// The head of that table.
pub const HEAD: &str = "| Judge | Secrets found | Recall | Harmless lines touched | Of all lines \
                        | Precision |\n|---|---|---|---|---|---|";

/// A share in percent, with one digit.
fn percent(part: usize, whole: usize) -> String {
    let tenths = (part * 1000 + whole / 2).checked_div(whole).unwrap_or_default();
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// The judgement of this service.
pub struct Ours {
    /// Its figures.
    pub figures: Figures,
    /// Secrets of which a part is still seen.
    pub missed: Vec<Planted>,
    /// Harmless lines that were changed.
    pub touched: Vec<Harmless>,
}

/// Redacts the corpus, each text for itself.
pub fn ours() -> Ours {
    let (planted, harmless) = (planted(), harmless());
    let missed: Vec<Planted> =
        planted.iter().filter(|one| !one.is_hidden_in(&redact_text(&one.text))).cloned().collect();
    let touched: Vec<Harmless> =
        harmless.iter().filter(|one| redact_text(&one.text) != one.text).cloned().collect();
    let figures = Figures {
        found: planted.len() - missed.len(),
        planted: planted.len(),
        touched: touched.len(),
        harmless: harmless.len(),
    };
    Ours { figures, missed, touched }
}
