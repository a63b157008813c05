//! Ordering by a text key: one sort for every list of the page.

/// Separates the parts of a key; sorts before every character of a name.
pub const PART: char = '\u{1}';

/// The second members in the order of the first; ties are broken by the second itself.
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

/// Which numbers can stay where they stand so that only the others have to move for the whole to
/// rise: a longest rising selection.
#[must_use]
pub fn longest_rising(numbers: &[usize]) -> Vec<bool> {
    // For every length of a selection: its last place, the number there being the least possible.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous = vec![None; numbers.len()];
    let at = |place: &usize| numbers.get(*place).copied();
    for (place, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|end| at(end) < Some(*number));
        if let Some(slot) = previous.get_mut(place) {
            *slot = length.checked_sub(1).and_then(|shorter| ends.get(shorter).copied());
        }
        match ends.get_mut(length) {
            Some(end) => *end = place,
            None => ends.push(place),
        }
    }
    let mut stays = vec![false; numbers.len()];
    let mut place = ends.last().copied();
    while let Some(now) = place {
        if let Some(slot) = stays.get_mut(now) {
            *slot = true;
        }
        place = previous.get(now).copied().flatten();
    }
    stays
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_times_come_first_whatever_their_length() {
        let rows = [-5, 0, 9, 10, 1_795_254_455_007].map(|at| (latest_first(at), at.to_string()));
        assert_eq!(sorted(rows.to_vec()), ["1795254455007", "10", "9", "0", "-5"]);
    }

    #[test]
    fn as_few_as_possible_have_to_move() {
        assert!(longest_rising(&[]).is_empty());
        assert_eq!(longest_rising(&[0, 1, 2]), [true, true, true]);
        assert_eq!(
            longest_rising(&[3, 0, 1, 2]),
            [false, true, true, true],
            "the first to the end"
        );
        assert_eq!(
            longest_rising(&[1, 2, 3, 0]),
            [true, true, true, false],
            "the last to the front"
        );
        let mixed = [4, 8, 0, 7, 2, 9, 5, 6];
        let stay = longest_rising(&mixed);
        let kept: Vec<_> =
            mixed.iter().zip(stay).filter(|(_, stays)| *stays).map(|(n, _)| *n).collect();
        assert!(kept.is_sorted());
        assert_eq!(kept.len(), 4);
    }
}
