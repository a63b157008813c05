//! Finds the rules that can match a text, in one pass over the text.
//!
//! Each rule needs one of its words. The result may name a rule that then matches nothing; it never
//! leaves out a rule that would match.

use std::sync::LazyLock;

use crate::words::{Kinds, Words};

/// A set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hints(u32);

impl Hints {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self(u32::MAX);
    pub const IDENTIFIER: Self = Self(1);
    pub const UUID: Self = Self(1 << 1);
    pub const GITHUB: Self = Self(1 << 2);
    pub const PAT: Self = Self(1 << 3);
    pub const GITLAB: Self = Self(1 << 4);
    pub const AWS: Self = Self(1 << 5);
    pub const SK: Self = Self(1 << 6);
    pub const SLACK: Self = Self(1 << 7);
    pub const JWT: Self = Self(1 << 8);
    pub const GOOGLE: Self = Self(1 << 9);
    pub const URL_USER: Self = Self(1 << 10);
    pub const QUERY: Self = Self(1 << 11);
    pub const COOKIE: Self = Self(1 << 12);
    pub const BEARER: Self = Self(1 << 13);
    pub const BASIC: Self = Self(1 << 14);
    pub const KEY_VALUE: Self = Self(1 << 15);
    pub const PEM: Self = Self(1 << 16);
    /// The forms of `forms` that no other rule's words lead to.
    pub const FORM: Self = Self(1 << 17);

    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one of `rules` is among these.
    pub fn name(self, rules: Self) -> bool {
        self.0 & rules.0 != 0
    }
}

/// Every match of a rule contains one of its words, in any case of ASCII letters.
const WORDS: [(&str, Hints); 63] = [
    ("env_", Hints::IDENTIFIER),
    ("cse_", Hints::IDENTIFIER),
    // Of `session_` and `svc_elevation_`.
    ("ion_", Hints::IDENTIFIER.and(Hints::COOKIE)),
    ("ghp_", Hints::GITHUB),
    ("gho_", Hints::GITHUB),
    ("ghu_", Hints::GITHUB),
    ("ghs_", Hints::GITHUB),
    ("ghr_", Hints::GITHUB),
    ("_pat_", Hints::PAT.and(Hints::FORM)),
    ("glpat-", Hints::GITLAB),
    ("akia", Hints::AWS),
    ("asia", Hints::AWS),
    ("sk-", Hints::SK),
    ("xox", Hints::SLACK),
    ("eyj", Hints::JWT),
    ("aiza", Hints::GOOGLE),
    ("://", Hints::URL_USER),
    ("bearer", Hints::BEARER),
    ("auth", Hints::KEY_VALUE.and(Hints::BASIC)),
    ("token", Hints::KEY_VALUE.and(Hints::QUERY)),
    ("secret", Hints::KEY_VALUE.and(Hints::QUERY)),
    ("pass", Hints::KEY_VALUE.and(Hints::QUERY)),
    ("key", Hints::KEY_VALUE.and(Hints::QUERY)),
    ("credential", Hints::KEY_VALUE),
    ("private", Hints::PEM),
    ("sig=", Hints::QUERY),
    ("signature=", Hints::QUERY),
    ("pwd", Hints::KEY_VALUE.and(Hints::QUERY)),
    ("code=", Hints::QUERY),
    ("k_live_", Hints::FORM),
    ("k_test_", Hints::FORM),
    ("whsec_", Hints::FORM),
    ("npm_", Hints::FORM),
    ("xapp-", Hints::FORM),
    ("hooks.slack", Hints::FORM),
    ("/webhooks/", Hints::FORM),
    ("ya29.", Hints::FORM),
    ("gocspx-", Hints::FORM),
    ("1//0", Hints::FORM),
    ("hf_", Hints::FORM),
    ("sg.", Hints::FORM),
    ("pypi-", Hints::FORM),
    ("hvs.", Hints::FORM),
    ("hvb.", Hints::FORM),
    (".atlasv1.", Hints::FORM),
    ("gldt-", Hints::FORM),
    ("glrt", Hints::FORM),
    ("glft-", Hints::FORM),
    ("glsoat-", Hints::FORM),
    ("glptt-", Hints::FORM),
    ("gr1348941", Hints::FORM),
    ("shp", Hints::FORM),
    ("ctt3", Hints::FORM),
    ("att3", Hints::FORM),
    (":aa", Hints::FORM),
    ("_v1_", Hints::FORM),
    ("glsa_", Hints::FORM),
    ("lin_", Hints::FORM),
    ("cookie", Hints::FORM),
    ("response=", Hints::FORM),
    ("-u ", Hints::FORM),
    ("-user", Hints::FORM),
    ("curl", Hints::FORM),
];

static SEARCH: LazyLock<Words> = LazyLock::new(|| Words::new(WORDS.map(|(word, _)| word)));

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
        SEARCH.find(text, |word| {
            rules = rules.and(WORDS.get(word).map_or(Hints::ALL, |(_, rules)| *rules));
        });
        if may_hold_uuid(text.as_bytes()) {
            rules = rules.and(Hints::UUID);
        }
        Self { rules, kinds }
    }
}

/// Whether four dashes stand as far apart as those of a UUID.
fn may_hold_uuid(bytes: &[u8]) -> bool {
    let dash = |at: usize| bytes.get(at) == Some(&b'-');
    memchr::memchr_iter(b'-', bytes).any(|at| dash(at + 5) && dash(at + 10) && dash(at + 15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_hides_another() {
        for (at, (word, _)) in WORDS.iter().enumerate() {
            assert!((3..=64).contains(&word.len()), "{word}");
            let mut others = WORDS.iter().enumerate().filter(|(other, _)| *other != at);
            assert!(others.all(|(_, (other, _))| !other.starts_with(word)), "{word}");
        }
    }

    #[test]
    fn each_word_names_its_rules() {
        for (word, rules) in WORDS {
            let scan = Scan::of(&format!("x{}x", word.to_ascii_uppercase()));
            assert_eq!(scan.rules.0 & rules.0, rules.0, "{word}");
        }
        assert_eq!(Scan::of("an ordinary line").rules, Hints::NONE);
        assert_eq!(Scan::of("2026-03-01T10:20:30.123Z ten-four-1-2-3").rules, Hints::NONE);
        assert!(Scan::of("x12345678-1234-1234-1234-x").rules.name(Hints::UUID));
        assert_eq!(Scan::of("?to\u{212a}en=1").rules, Hints::ALL);
    }
}
