//! Ordering by a text key: one sort for every list of the page.

/// Separates the parts of a key; sorts before every character of a name.
pub const PART: char = '\u{1}';

/// Sorts rows by their first member and returns the second.
///
/// Ties are sorted by the second member.
#[must_use]
pub fn sorted(mut rows: Vec<(String, String)>) -> Vec<String> {
    rows.sort_unstable();
    rows.into_iter().map(|(_, row)| row).collect()
}

/// A time as a part of a key: later times first.
#[must_use]
pub fn latest_first(millis: i64) -> String {
    format!("{:020}", i64::MAX.abs_diff(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_times_come_first_whatever_their_length() {
        let rows = [-5, 0, 9, 10, 1_795_254_455_007].map(|at| (latest_first(at), at.to_string()));
        assert_eq!(sorted(rows.to_vec()), ["1795254455007", "10", "9", "0", "-5"]);
    }
}
