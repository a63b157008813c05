//! An error and its causes as one line.

use std::error::Error;
use svc_domain::redact::redact_text;

/// An error and what led to it, on one line, fit to be shown.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        // Some errors repeat their cause in their own words.
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    redact_text(&text)
}
