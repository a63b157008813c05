//! Foreign text in our own output: log lines, table cells, JSON (H67, H68).

use std::borrow::Cow;
use std::fmt::Write;
use svc_shared::characters::rewrite_invisible;

/// Longest piece of a request in an error text, in characters (`http-api` §0.3).
const ECHO: usize = 80;

/// Text for a log line or a table cell: one line, nothing invisible.
///
/// Invisible characters are written out: up to U+00FF as `\x..`, others as `\u....`.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    rewrite_invisible(
        text,
        |_| false,
        |out, c| {
            // Writing to a string cannot fail.
            let _ = match u32::from(c) {
                code @ 0..=0xff => write!(out, "\\x{code:02x}"),
                code => write!(out, "\\u{code:04x}"),
            };
        },
    )
}

/// A line of foreign text for a terminal: invisible characters but tabs are gone.
#[must_use]
pub fn strip_controls(text: &str) -> Cow<'_, str> {
    rewrite_invisible(text, |c| c == '\t', |_, _| {})
}

/// A finished JSON document in which no string can steer a terminal.
///
/// JSON leaves DEL, C1 and directional characters as they are. Such characters can stand only
/// inside strings, where their `\u....` form means the same. Line ends between values stay.
#[must_use]
pub fn escape_json(document: &str) -> Cow<'_, str> {
    let stays = |c| matches!(c, '\t' | '\r' | '\n');
    rewrite_invisible(document, stays, |out, c| {
        // Beyond U+FFFF JSON wants a pair.
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// A piece of a request for an error text: quoted, escaped, cut to 80 characters.
#[must_use]
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(ECHO) {
        Some((end, _)) => format!("'{}…'", escape(text.get(..end).unwrap_or_default())),
        None => format!("'{}'", escape(text)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Marks, embeddings, overrides and isolates of the bidirectional algorithm.
    fn is_directional(c: char) -> bool {
        matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
    }

    #[test]
    fn a_forged_log_line_stays_inside_its_own() {
        assert_eq!(escape("x\r\n2026-01-01 ERROR fake"), "x\\x0d\\x0a2026-01-01 ERROR fake");
        assert_eq!(escape("\u{1b}]52;c;eA==\u{7}"), "\\x1b]52;c;eA==\\x07");
        assert_eq!(escape("a\0\t\u{7f}\u{9b}31m"), "a\\x00\\x09\\x7f\\x9b31m");
        assert_eq!(escape("\u{202e}evil\u{2066}\u{2028}"), "\\u202eevil\\u2066\\u2028");
        assert_eq!(escape("übung 🚀 C:\\x"), "übung 🚀 C:\\x");
    }

    #[test]
    fn a_terminal_line_loses_what_steers_it_and_keeps_tabs() {
        assert_eq!(strip_controls("a\tb\u{1b}[31m\r\n\u{9d}\u{200f}c"), "a\tb[31mc");
    }

    #[test]
    fn what_shows_nothing_is_written_out_everywhere() {
        assert_eq!(escape("a\u{200b}\u{2060}\u{ad}\u{feff}b"), "a\\u200b\\u2060\\xad\\ufeffb");
        assert_eq!(strip_controls("a\u{200b}\u{2060}\u{ad}b"), "ab");
        assert_eq!(escape_json("\"\u{2060}\u{e0041}\""), r#""\u2060\udb40\udc41""#);
        assert_eq!(escape("👩‍💻"), "👩‍💻");
    }

    #[test]
    fn a_json_document_keeps_its_meaning() {
        let document = "{\n  \"a\": \"x\u{7f}\u{9b}\u{202e}\u{2029}y\"\n}\n";
        assert_eq!(escape_json(document), "{\n  \"a\": \"x\\u007f\\u009b\\u202e\\u2029y\"\n}\n");
    }

    #[test]
    fn a_repeated_piece_of_a_request_is_clipped() {
        assert_eq!(quoted("a\nb"), "'a\\x0ab'");
        assert_eq!(quoted(&"é".repeat(80)), format!("'{}'", "é".repeat(80)));
        assert_eq!(quoted(&"é".repeat(81)), format!("'{}…'", "é".repeat(80)));
    }

    proptest! {
        #[test]
        fn h67_escaped_text_is_one_line_without_controls(text in any::<String>()) {
            let out = escape(&text);
            prop_assert!(!out.chars().any(|c| c.is_control() || is_directional(c)));
            prop_assert_eq!(escape(&out), out.clone());
            prop_assert!(!strip_controls(&text).chars().any(|c| c != '\t' && c.is_control()));
        }
    }
}
