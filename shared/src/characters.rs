//! The one table of characters that show nothing.
//!
//! Names, messages, logs, the redactor and the page use it. The table holds the `Default_Ignorable_Code_Point`s and the characters of the general
//! categories Cc, Cf, Zl, Zp and Co of Unicode 16 (`DerivedCoreProperties.txt`,
//! `DerivedGeneralCategory.txt`). A test compares it with two crates that carry Unicode's data; the
//! crates themselves would add a twentieth to the page's module.

use std::borrow::Cow;

/// What the table says about a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Shows something, or is not assigned.
    Visible,
    /// General category Cc.
    Control,
    /// Ends a line or paragraph: Zl, Zp.
    Separator,
    /// General category Cf without a shape.
    ///
    /// Directions, zero widths, tags, annotation marks.
    Format,
    /// U+200C and U+200D: joins or separates the characters around it.
    Joiner,
    /// Chooses among the shapes of the character before it.
    Selector,
    /// A letter, a mark or a reserved code point that is not drawn.
    Filler,
    /// General category Cf with a shape, such as the Arabic number sign.
    Sign,
    /// General category Co.
    Private,
}

fn class(c: char) -> Class {
    match c {
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Class::Control,
        ' '..='\u{ac}' => Class::Visible,
        '\u{2028}' | '\u{2029}' => Class::Separator,
        '\u{200c}' | '\u{200d}' => Class::Joiner,
        '\u{180b}'..='\u{180d}'
        | '\u{180f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}' => Class::Selector,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}' => Class::Format,
        '\u{34f}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{2065}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}'
        | '\u{e0000}'..='\u{e0fff}' => Class::Filler,
        '\u{600}'..='\u{605}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{890}'..='\u{891}'
        | '\u{8e2}'
        | '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' => Class::Sign,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}' => {
            Class::Private
        }
        _ => Class::Visible,
    }
}

/// Whether a character shows nothing, ends a line, or turns the text around it.
///
/// True for tabs and line ends as well: callers that keep them say so.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    match class(c) {
        Class::Control
        | Class::Separator
        | Class::Format
        | Class::Joiner
        | Class::Selector
        | Class::Filler => true,
        Class::Visible | Class::Sign | Class::Private => false,
    }
}

/// Whether an assigned character has no place in a name: Cc, Cf, Co, Zl, Zp.
#[cfg(any(target_arch = "wasm32", test))]
pub(crate) fn is_assigned_unprintable(c: char) -> bool {
    match class(c) {
        Class::Control
        | Class::Separator
        | Class::Format
        | Class::Joiner
        | Class::Sign
        | Class::Private => true,
        Class::Visible | Class::Selector | Class::Filler => false,
    }
}

/// Rewrites the invisible characters of `text`, but those that `stays` names.
///
/// `write` puts the replacement of a character.
/// One joiner and one variation selector stay directly after a visible character outside ASCII:
/// emoji and several scripts need them, and longer runs could hide a message.
pub fn rewrite_invisible(
    text: &str,
    stays: impl Fn(char) -> bool,
    mut write: impl FnMut(&mut String, char),
) -> Cow<'_, str> {
    let is_rewritten = |c| is_invisible(c) && !stays(c);
    if !text.chars().any(is_rewritten) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut takes_selector = false;
    let mut takes_joiner = false;
    for c in text.chars() {
        let class = class(c);
        if !is_rewritten(c) {
            out.push(c);
            takes_selector = !c.is_ascii() && !is_invisible(c);
            takes_joiner = takes_selector;
        } else if class == Class::Selector && takes_selector {
            out.push(c);
            takes_selector = false;
        } else if class == Class::Joiner && takes_joiner {
            out.push(c);
            (takes_selector, takes_joiner) = (false, false);
        } else {
            write(&mut out, c);
            (takes_selector, takes_joiner) = (false, false);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
    use icu_properties::{CodePointMapData, CodePointSetData};
    use proptest::prelude::*;

    fn shown(text: &str) -> Cow<'_, str> {
        rewrite_invisible(text, |c| c == '\t', |out, c| out.extend(c.escape_unicode()))
    }

    #[test]
    fn the_table_holds_what_unicode_does_not_draw() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        let category = CodePointMapData::<GeneralCategory>::new();
        for c in char::MIN..=char::MAX {
            let is_mark_of_its_own = matches!(c, '\u{fff9}'..='\u{fffb}');
            let expected = ignorable.contains(c)
                || matches!(
                    category.get(c),
                    GeneralCategory::Control
                        | GeneralCategory::LineSeparator
                        | GeneralCategory::ParagraphSeparator
                )
                || is_mark_of_its_own;
            assert_eq!(is_invisible(c), expected, "{c:?}");
            // Every format character is in the table, whether it is drawn or not.
            if category.get(c) == GeneralCategory::Format {
                assert!(is_assigned_unprintable(c), "{c:?}");
            }
        }
    }

    #[test]
    fn a_character_that_shows_nothing_is_written_out() {
        for (raw, expected) in [
            ("pay\u{200b}pal", "pay\\u{200b}pal"),
            ("pay\u{2060}pal", "pay\\u{2060}pal"),
            ("pay\u{ad}pal", "pay\\u{ad}pal"),
            ("pay\u{200d}pal", "pay\\u{200d}pal"),
            ("a\u{fe0f}", "a\\u{fe0f}"),
            ("a\u{3164}b", "a\\u{3164}b"),
            ("a\u{e0041}b", "a\\u{e0041}b"),
            ("a\tb\u{2028}c\u{0}", "a\tb\\u{2028}c\\u{0}"),
        ] {
            assert_eq!(shown(raw), expected);
        }
    }

    #[test]
    fn joiners_and_selectors_of_ordinary_text_stay() {
        for text in ["👩‍💻", "❤\u{fe0f}", "❤\u{fe0f}\u{200d}🔥", "می\u{200c}خواهم", "葛\u{e0100}"]
        {
            assert_eq!(shown(text), text);
        }
        // A run of them hides something.
        assert_eq!(shown("é\u{200d}\u{200d}"), "é\u{200d}\\u{200d}");
        assert_eq!(shown("é\u{fe00}\u{fe01}"), "é\u{fe00}\\u{fe01}");
        assert_eq!(shown("é\u{200b}\u{200d}"), "é\\u{200b}\\u{200d}");
    }

    proptest! {
        #[test]
        fn nothing_invisible_is_left_but_what_shapes_its_neighbour(text in any::<String>()) {
            let out = shown(&text);
            let mut before = 'a';
            for c in out.chars() {
                if is_invisible(c) && c != '\t' {
                    prop_assert!(matches!(class(c), Class::Joiner | Class::Selector), "{out:?}");
                    prop_assert!(!before.is_ascii(), "{out:?}");
                }
                before = c;
            }
            prop_assert_eq!(shown(&out), out.clone());
        }
    }
}
