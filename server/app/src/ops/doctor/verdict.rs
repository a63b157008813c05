//! How a check says what it found.

use svc_shared::internal::Check;
use svc_shared::status::CheckStatus;

/// A check that found nothing wrong.
#[must_use]
pub fn passed(name: &str, detail: impl Into<String>) -> Check {
    check(name, CheckStatus::Ok, detail, None)
}

/// A check that found something worth a look.
#[must_use]
pub fn warned(name: &str, detail: impl Into<String>, hint: &str) -> Check {
    check(name, CheckStatus::Warn, detail, Some(hint))
}

/// A check that found what blocks.
#[must_use]
pub fn failed(name: &str, detail: impl Into<String>, hint: &str) -> Check {
    check(name, CheckStatus::Fail, detail, Some(hint))
}

pub(super) fn check(
    name: &str,
    status: CheckStatus,
    detail: impl Into<String>,
    hint: Option<&str>,
) -> Check {
    Check {
        name: name.to_owned(),
        status: status.into(),
        detail: detail.into(),
        hint: hint.map(str::to_owned),
    }
}

/// A check from a message: what happened, then after a semicolon what to do.
pub(super) fn told(name: &str, status: CheckStatus, message: &str) -> Check {
    match message.split_once("; ") {
        Some((what, remedy)) => check(name, status, what, Some(remedy)),
        None => check(name, status, message, None),
    }
}

/// An error and its causes, fit to be shown.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    svc_domain::redact::redact_text(&text)
}

/// `1 key`, `2 keys`.
pub(super) fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// At most five of many, for a line that stays readable.
pub(super) fn some_of<T: ToString>(all: &[T]) -> String {
    let shown: Vec<String> = all.iter().take(5).map(ToString::to_string).collect();
    match all.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
