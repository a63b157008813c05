//! Makes hidden characters of records visible.

use std::borrow::Cow;
use svc_shared::characters::rewrite_invisible;

/// The text with invisible characters written out, such as `\u{202e}`.
///
/// Line ends and tabs stay.
#[must_use]
pub fn shown(raw: &str) -> Cow<'_, str> {
    let stays = |c| matches!(c, '\n' | '\t');
    rewrite_invisible(raw, stays, |out, c| out.extend(c.escape_unicode()))
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn overrides_and_controls_become_visible() {
        assert_eq!(shown("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(shown("a\u{1b}[31m"), "a\\u{1b}[31m");
        assert_eq!(shown("a\u{0}"), "a\\u{0}");
        assert_eq!(shown("a\u{200b}\u{2060}\u{ad}b"), "a\\u{200b}\\u{2060}\\u{ad}b");
    }

    #[test]
    fn ordinary_text_of_any_script_stays_as_it_is() {
        for text in ["übung", "<b>&amp;</b>", "line\n\ttab", "👩‍💻", "עברית"] {
            assert_eq!(shown(text), text);
        }
    }
}
