//! Compiles the patterns of the rules.

use regex::Regex;

#[expect(clippy::expect_used, reason = "the patterns are constants; the tests compile each")]
pub(crate) fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a constant pattern compiles")
}
