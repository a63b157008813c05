//! The known name that a misspelt name probably means.

/// Longest name that is compared.
///
/// The comparison is quadratic, and nobody mistypes a longer name.
const LONGEST_COMPARED: usize = 64;

/// The candidate that `word` is probably a misspelling of.
///
/// At most two edits away, or a third of the length (`configuration` §3.1).
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length > LONGEST_COMPARED {
        return None;
    }
    let allowed = (length / 3).max(2);
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_a_different_word_is_not() {
        let names = ["enabled", "password_hash", "port", "host"];
        assert_eq!(nearest("enabledd", names), Some("enabled"));
        assert_eq!(nearest("pasword_hahs", names), Some("password_hash"));
        assert_eq!(nearest("prot", names), Some("port"));
        assert_eq!(nearest("colour_scheme", names), None);
        assert_eq!(nearest(&"p".repeat(100_000), names), None);
    }
}
