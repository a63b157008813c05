//! Text of records as it may stand on the page: nothing invisible, nothing that turns the line.

use std::borrow::Cow;

/// Characters that would hide or reorder text.
fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(
            c,
            '\u{061c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

/// The text with control characters and direction overrides written out, e.g. `\u{202e}`.
#[must_use]
pub fn shown(raw: &str) -> Cow<'_, str> {
    if !raw.chars().any(is_hidden) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len() + 8);
    for c in raw.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn overrides_and_controls_become_visible() {
        assert_eq!(shown("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(shown("a\u{1b}[31m"), "a\\u{1b}[31m");
        assert_eq!(shown("a\u{0}"), "a\\u{0}");
    }

    #[test]
    fn ordinary_text_of_any_script_stays_as_it_is() {
        for text in ["übung", "<b>&amp;</b>", "line\n\ttab", "👩‍💻", "עברית"] {
            assert_eq!(shown(text), text);
        }
    }
}
