//! Finds the rules that can match a text, in one pass over the text.
//!
//! Each rule needs one of its words. The result may name a rule that then matches nothing; it never
//! leaves out a rule that would match.

use std::sync::LazyLock;

use super::forms;
use super::rule_set::Rules;
use crate::words::{Kinds, Words};
use memchr::memmem;

/// The rules and the forms that can match a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hints {
    rules: Rules,
    /// One bit for each of `forms`, by its number.
    forms: u128,
}

const _: () = assert!(forms::COUNT <= 128, "a form has no bit of its own");

impl Hints {
    pub const NONE: Self = Self { rules: Rules::NONE, forms: 0 };
    pub const ALL: Self = Self { rules: Rules(u32::MAX), forms: u128::MAX };

    const fn of_rules(rules: Rules) -> Self {
        Self { rules, forms: 0 }
    }

    const fn and(self, other: Self) -> Self {
        Self { rules: self.rules.and(other.rules), forms: self.forms | other.forms }
    }

    /// Whether one of `rules` is among these.
    pub fn name(self, rules: Rules) -> bool {
        self.rules.name(rules)
    }

    /// The numbers of the forms that are worth asking.
    pub fn forms(self) -> impl Iterator<Item = usize> {
        let mut left = self.forms;
        std::iter::from_fn(move || {
            let number = usize::try_from(left.trailing_zeros()).ok().filter(|_| left != 0)?;
            left &= left - 1;
            Some(number)
        })
    }
}

/// Every match of a rule contains one of its words, in any case of ASCII letters.
const WORDS: [(&str, Rules); 30] = [
    ("env_", Rules::IDENTIFIER),
    ("cse_", Rules::IDENTIFIER),
    // Of `session_` and `svc_elevation_`.
    ("ion_", Rules::IDENTIFIER.and(Rules::COOKIE)),
    ("ghp_", Rules::GITHUB),
    ("gho_", Rules::GITHUB),
    ("ghu_", Rules::GITHUB),
    ("ghs_", Rules::GITHUB),
    ("ghr_", Rules::GITHUB),
    ("_pat_", Rules::PAT),
    ("glpat-", Rules::GITLAB),
    ("akia", Rules::AWS),
    ("asia", Rules::AWS),
    ("sk-", Rules::SK),
    ("xox", Rules::SLACK),
    ("eyj", Rules::JWT),
    ("aiza", Rules::GOOGLE),
    ("://", Rules::URL_USER),
    ("bearer", Rules::BEARER),
    ("auth", Rules::KEY_VALUE.and(Rules::BASIC)),
    ("token", Rules::KEY_VALUE.and(Rules::QUERY)),
    ("secret", Rules::KEY_VALUE.and(Rules::QUERY)),
    ("pass", Rules::KEY_VALUE.and(Rules::QUERY)),
    ("key", Rules::KEY_VALUE.and(Rules::QUERY)),
    ("credential", Rules::KEY_VALUE),
    ("contrasena", Rules::KEY_VALUE),
    ("private", Rules::PEM),
    ("sig=", Rules::QUERY),
    ("signature=", Rules::QUERY),
    ("pwd", Rules::KEY_VALUE.and(Rules::QUERY)),
    ("code=", Rules::QUERY),
];

/// All words, those of the forms too, and what each leads to.
static LEADS: LazyLock<Vec<(&str, Hints)>> = LazyLock::new(|| {
    let mut leads: Vec<(&str, Hints)> =
        WORDS.iter().map(|(word, rules)| (*word, Hints::of_rules(*rules))).collect();
    leads.iter_mut().for_each(|(_, hints)| hints.forms = forms::with(hints.rules));
    for (word, number) in forms::own_words() {
        let form = Hints { rules: Rules::NONE, forms: 1 << number };
        match leads.iter_mut().find(|(other, _)| *other == word) {
            Some((_, hints)) => *hints = hints.and(form),
            None => leads.push((word, form)),
        }
    }
    leads
});

static SEARCH: LazyLock<Words> = LazyLock::new(|| Words::new(LEADS.iter().map(|(word, _)| *word)));

/// Two characters that hint at a form, and the bit of that form.
static PARTS: LazyLock<Vec<(memmem::Finder<'static>, u128)>> = LazyLock::new(forms::parts);
static WITH_DOTS: LazyLock<u128> = LazyLock::new(forms::with_dots);

/// What one look at a text says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan {
    /// The rules that are worth asking.
    pub rules: Hints,
    /// The characters.
    pub kinds: Kinds,
}

impl Scan {
    /// What can be said without looking.
    #[cfg(any(test, fuzzing))]
    pub const ALL: Self = Self { rules: Hints::ALL, kinds: Kinds::ALL };

    /// Looks at a text.
    pub fn of(text: &str) -> Self {
        let kinds = Kinds::of(text);
        // Two characters beyond ASCII are letters of it to a rule that ignores case.
        let may_fold = kinds.has_wide() && text.contains(['\u{212a}', '\u{17f}']);
        if may_fold || !SEARCH.is_fast() {
            return Self { rules: Hints::ALL, kinds };
        }
        let mut rules = Hints::NONE;
        let leads = LEADS.as_slice();
        SEARCH.find(text, |word| {
            rules = rules.and(leads.get(word).map_or(Hints::ALL, |(_, hints)| *hints));
        });
        if may_hold_uuid(text.as_bytes()) {
            rules = rules.and(Hints::of_rules(Rules::UUID));
        }
        for (part, forms) in PARTS.iter() {
            if part.find(text.as_bytes()).is_some() {
                rules.forms |= *forms;
            }
        }
        if may_hold_discord(text.as_bytes()) {
            rules.forms |= *WITH_DOTS;
        }
        Self { rules, kinds }
    }
}

/// Whether four dashes stand as far apart as those of a UUID.
fn may_hold_uuid(bytes: &[u8]) -> bool {
    let dash = |at: usize| bytes.get(at) == Some(&b'-');
    memchr::memchr_iter(b'-', bytes).any(|at| dash(at + 5) && dash(at + 10) && dash(at + 15))
}

/// Whether two dots stand as far apart as those of a Discord token.
fn may_hold_discord(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'.', bytes).any(|at| bytes.get(at + 7) == Some(&b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_hides_another() {
        for (at, (word, _)) in LEADS.iter().enumerate() {
            assert!((3..=64).contains(&word.len()), "{word}");
            assert_eq!(*word, word.to_ascii_lowercase(), "compared in lower case");
            let mut others = LEADS.iter().enumerate().filter(|(other, _)| *other != at);
            assert!(others.all(|(_, (other, _))| !other.starts_with(word)), "{word}");
        }
    }

    #[test]
    fn each_word_names_its_rules() {
        for (word, hints) in LEADS.iter() {
            let scan = Scan::of(&format!("x{}x", word.to_ascii_uppercase()));
            assert_eq!(scan.rules, scan.rules.and(*hints), "{word}");
        }
        assert_eq!(Scan::of("an ordinary line").rules, Hints::NONE);
        assert_eq!(Scan::of("2026-03-01T10:20:30.123Z ten-four-1-2-3").rules, Hints::NONE);
        assert!(Scan::of("x12345678-1234-1234-1234-x").rules.name(Rules::UUID));
        assert_eq!(Scan::of("x.sixsix.y").rules.forms, *WITH_DOTS);
        assert_eq!(Scan::of("x SKx").rules.forms().count(), 1);
        assert_eq!(Scan::of("?to\u{212a}en=1").rules, Hints::ALL);
    }
}
