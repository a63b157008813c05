//! Masks secrets in names and lines, as in logs.

use std::path::Path;

use svc_domain::redact::{Colour, MASK, Redactor, redact_text};

use super::parse::{Hunk, Sign};

/// Most bytes of one line that is shown, as in logs.
const MOST_OF_LINE: usize = 64 * 1024;

/// A path as it is shown.
pub(super) fn name(path: &Path) -> String {
    redact_text(&path.to_string_lossy())
}

/// Masks what is secret in the lines of a file, and counts the lines with a mask.
///
/// A key over several lines is recognised in the order of the file, which is one order for the
/// deleted lines and another for the added ones. An unchanged line is in both.
pub(super) fn lines(hunks: &mut [Hunk]) -> usize {
    let mut count = 0;
    let (mut old, mut new) = (Redactor::new(Colour::Strip), Redactor::new(Colour::Strip));
    for line in hunks.iter_mut().flat_map(|hunk| &mut hunk.lines) {
        let raw = std::mem::take(&mut line.text);
        let had = raw.matches(MASK).count();
        let masks = |text: &str| text.matches(MASK).count();
        let shown = match line.sign {
            Sign::Added => new.line(&raw).into_owned(),
            Sign::Deleted => old.line(&raw).into_owned(),
            Sign::Same => {
                let (before, after) = (old.line(&raw).into_owned(), new.line(&raw).into_owned());
                if masks(&before) > masks(&after) { before } else { after }
            }
        };
        count += usize::from(masks(&shown) > had);
        line.text = cut(shown);
    }
    count
}

fn cut(mut text: String) -> String {
    if text.len() <= MOST_OF_LINE {
        return text;
    }
    let end = (0..=MOST_OF_LINE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let left = text.len() - end;
    text.truncate(end);
    text.push_str(&format!("…[line truncated {left} bytes]"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::parse::Line;

    fn hunk(lines: &[(Sign, &str)]) -> Vec<Hunk> {
        let lines =
            lines.iter().map(|(sign, text)| Line { sign: *sign, text: (*text).into() }).collect();
        vec![Hunk { old_start: 1, old_lines: 0, new_start: 1, new_lines: 0, lines }]
    }

    #[test]
    fn a_key_is_masked_between_deleted_and_unchanged_lines() {
        let mut hunks = hunk(&[
            (Sign::Same, "-----BEGIN PRIVATE KEY-----"),
            (Sign::Deleted, "aGVsbG8gd29ybGQ"),
            (Sign::Added, "d29ybGQgaGVsbG8"),
            (Sign::Same, "c2hvcnQ"),
            (Sign::Same, "-----END PRIVATE KEY-----"),
            (Sign::Added, "after"),
        ]);
        assert_eq!(lines(&mut hunks), 5);
        let shown: Vec<&str> = hunks[0].lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(shown[1..4], [MASK, MASK, MASK]);
        assert_eq!(shown[5], "after");
    }

    #[test]
    fn a_long_line_is_cut_after_it_was_masked() {
        let token = format!("{}{}", "x ".repeat(MOST_OF_LINE / 2), "y".repeat(100));
        let mut hunks = hunk(&[(Sign::Added, &token)]);
        assert_eq!(lines(&mut hunks), 0);
        assert!(hunks[0].lines[0].text.ends_with("…[line truncated 100 bytes]"));
    }
}
