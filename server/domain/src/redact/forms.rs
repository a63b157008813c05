//! Secrets by their published form: one row for each, with its source and examples.
//!
//! The rows are data. A new form is a row in `tokens` or `places`, with the words that stand in
//! every text of that form; the tests judge every row by its own examples.

mod places;
mod tokens;

use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;

use super::pattern::pattern;
use super::rule_set::Rules;
use super::span::Span;

/// One form of a secret.
pub(super) struct Form {
    /// What it is, and where its form is published or was seen.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers and for the tests"))]
    pub source: &'static str,
    /// When the pattern is worth asking.
    asked: Asked,
    /// Its shape; the group `v`, `w` or `x` is masked, else the whole match.
    pattern: &'static str,
    /// Texts that hold one, and the part that must not be seen.
    #[cfg(test)]
    pub masked: [(&'static str, &'static str); 2],
    /// Texts that only resemble it.
    #[cfg(test)]
    pub kept: [&'static str; 2],
}

/// When the pattern of a form is worth asking.
enum Asked {
    /// One of these words stands in every match, in any case of ASCII letters.
    Words(&'static [&'static str]),
    /// A word of that rule stands in every match.
    With(Rules),
    /// These two characters stand in every match, in this case.
    Part(&'static str),
    /// Two dots stand in every match, with six characters between them.
    Dots,
}

const fn words(words: &'static [&'static str]) -> Asked {
    Asked::Words(words)
}

const fn rule(rules: Rules) -> Asked {
    Asked::With(rules)
}

macro_rules! forms {
    ($($source:literal, $asked:expr, $pattern:literal,
       [$($masked:expr),+], [$($kept:literal),+];)*) => {
        &[$(Form {
            source: $source,
            asked: $asked,
            pattern: $pattern,
            #[cfg(test)]
            masked: [$($masked),+],
            #[cfg(test)]
            kept: [$($kept),+],
        }),*]
    };
}
use forms;

/// All forms. The place of one here is its number.
pub(super) fn all() -> impl Iterator<Item = &'static Form> {
    tokens::TOKENS.iter().chain(places::PLACES)
}

/// How many there are.
pub(super) const COUNT: usize = tokens::TOKENS.len() + places::PLACES.len();

/// The words of all forms, each with the number of its form.
pub(super) fn own_words() -> impl Iterator<Item = (&'static str, usize)> {
    all().enumerate().flat_map(|(number, form)| {
        let words: &[&str] = if let Asked::Words(words) = form.asked { words } else { &[] };
        words.iter().map(move |word| (*word, number))
    })
}

/// The forms that the words of these rules lead to, one bit for each.
pub(super) fn with(rules: Rules) -> u128 {
    of(|asked| match asked {
        Asked::With(own) => own.name(rules),
        Asked::Words(_) | Asked::Part(_) | Asked::Dots => false,
    })
}

/// The forms that hold two dots.
pub(super) fn with_dots() -> u128 {
    of(|asked| matches!(asked, Asked::Dots))
}

/// The parts that stand in matches of other forms, each with those.
pub(super) fn parts() -> Vec<(memmem::Finder<'static>, u128)> {
    let parts = all().enumerate().filter_map(|(number, form)| match form.asked {
        Asked::Part(part) => Some((memmem::Finder::new(part), 1 << number)),
        Asked::Words(_) | Asked::With(_) | Asked::Dots => None,
    });
    parts.collect()
}

fn of(is_meant: impl Fn(&Asked) -> bool) -> u128 {
    let numbers = all().enumerate().filter(|(_, form)| is_meant(&form.asked));
    numbers.fold(0, |bits, (number, _)| bits | 1 << number)
}

static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| all().map(|form| pattern(form.pattern)).collect());

/// Finds every form of these numbers.
pub(super) fn find(text: &str, numbers: impl Iterator<Item = usize>, out: &mut Vec<Span>) {
    for rule in numbers.filter_map(|number| PATTERNS.get(number)) {
        if rule.captures_len() == 1 {
            out.extend(rule.find_iter(text).map(|it| Span::secret(it.start(), it.end())));
            continue;
        }
        // Most texts hold a word and no secret: groups are looked for where there is a match.
        let Some(first) = rule.find(text) else { continue };
        let mut from = first.start();
        while let Some(found) = rule.captures_at(text, from) {
            let group = ["v", "w", "x"].into_iter().find_map(|name| found.name(name));
            let secret = group.or_else(|| found.get(0));
            out.extend(secret.map(|secret| Span::secret(secret.start(), secret.end())));
            let end = found.get(0).map_or(text.len(), |whole| whole.end());
            if end <= from {
                break;
            }
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{MASK, redact_text};

    #[test]
    fn h65_every_form_is_masked_by_its_examples_and_leaves_what_resembles_it() {
        for form in all() {
            for (text, secret) in form.masked {
                let out = redact_text(text);
                let is_masked = !out.contains(secret) && out.contains(MASK);
                assert!(is_masked, "{}: {text:?} became {out:?}", form.source);
            }
            for text in form.kept {
                assert_eq!(redact_text(text), text, "{}", form.source);
            }
        }
    }

    /// The words of `hints` decide whether a form is looked for at all.
    #[test]
    fn h65_no_form_is_passed_over_because_its_word_is_missing() {
        for form in all() {
            for (text, _) in form.masked {
                let mut redactor = crate::redact::Redactor::default();
                let by_words = redactor.line(text).into_owned();
                let mut redactor = crate::redact::Redactor::default();
                assert_eq!(by_words, redactor.line_by_every_rule(text), "{}", form.source);
            }
        }
    }

    #[test]
    fn h65_names_that_end_with_pass_or_pwd_are_keys_of_secrets() {
        for text in [
            "DB_PASS=hunter2hunter2",
            "smtp-pass: hunter2hunter2",
            "pwd=hunter2hunter2",
            "\"pass\": \"hunter2hunter2\"",
            "ADMIN_PWD='hunter2hunter2'",
        ] {
            assert!(!redact_text(text).contains("hunter2"), "{text}");
        }
        for text in [
            "compass=northnorthwest",
            "passing: everythingelse",
            "PWD=/home/somebody/work",
            "bypass_cache=enabledenabled",
        ] {
            assert_eq!(redact_text(text), text);
        }
    }
}
