//! Why a session stopped, as far as the page shows it.

use serde::Deserialize;
use svc_shared::internal::report::{LastOutput, NextStep};

/// The report of an ended session or job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Report {
    /// The cause, as a sentence.
    pub cause: String,
    /// What the cause is known from.
    pub evidence: Vec<String>,
    /// What to do next.
    pub next: Vec<NextStep>,
    /// The last screen, output or log lines.
    pub output: Vec<LastOutput>,
    /// All of it as Markdown.
    pub markdown: String,
}
