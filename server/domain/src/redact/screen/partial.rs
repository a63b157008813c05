//! Finds the beginning of a secret whose end is not on the screen.
//!
//! A text that is cut off is completed with characters that any form accepts, and matched. A match
//! that reaches into the completion began in the text. So every form is also known by its first
//! part, without a list of first parts.

use super::super::hints::Scan;
use super::super::pem::Pem;
use super::super::span::Span;

/// Shortest beginning that is masked.
/// Shorter ones show nothing of a secret: `sk-` also ends half of a wrapped `task-force`.
const SHORTEST: usize = 4;
/// Digits enough for the longest form, in three parts as those of a JWT.
const REST: &str = "000000000000000000000000000000000000000000000000.\
                    000000000000000000000000000000000000000000000000.00000000";
const UUID: &str = "00000000-0000-0000-0000-000000000000";
/// Shortest beginning of a UUID: its first group, the dash and a digit.
const SHORTEST_UUID: usize = 10;

/// What to mask of a text that is cut off at its end.
pub(super) fn find(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let uuid = uuid_start(text).and_then(|len| UUID.get(len..));
    // The user part of a URL is only known by what follows it; a port has no letters.
    let user = may_hold_password(text).then_some("@h/");
    for rest in [Some(REST), uuid, user].into_iter().flatten() {
        let completed = format!("{text}{rest}");
        let mut pem = Pem::default().line("");
        let found = super::super::find(&completed, Scan::of(&completed), Scan::of, &mut pem);
        spans.extend(found.into_iter().filter_map(|span| {
            let shown = text.len().checked_sub(span.start + span.label.len())?;
            let needed = if span.label.is_empty() { SHORTEST } else { 1 };
            let is_cut = span.end >= text.len() && shown >= needed;
            is_cut.then_some(Span { end: text.len(), ..span })
        }));
    }
    spans
}

/// How many characters at the end of the text begin a UUID.
fn uuid_start(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (SHORTEST_UUID..UUID.len()).rev().find(|len| {
        let tail = bytes.len().checked_sub(*len).and_then(|from| bytes.get(from..));
        tail.is_some_and(|tail| {
            tail.iter().zip(UUID.bytes()).all(|(byte, form)| match form {
                b'-' => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
        })
    })
}

/// Whether the text ends inside of what may be a user and a password before a host.
fn may_hold_password(text: &str) -> bool {
    let Some((_, authority)) = text.rsplit_once("://") else {
        return false;
    };
    let is_open = !authority.contains(|c: char| c.is_whitespace() || "/@\"'<>".contains(c));
    let password = authority.split_once(':').map(|(_, password)| password);
    is_open && password.is_some_and(|it| it.contains(|c: char| !c.is_ascii_digit()))
}
