//! Which rows of a long list exist: those near the visible part.

/// Up to this many rows, all of them exist.
pub const ALL_UP_TO: usize = 60;
/// Rows kept above and below the visible part.
const OVERSCAN: usize = 8;

/// First row and number of rows to make, of `total` rows of `row` pixels, when the list begins
/// `top` pixels below the upper edge of a viewport of `height` pixels (above it: negative).
#[must_use]
pub fn range(total: usize, row: usize, top: i32, height: i32) -> (usize, usize) {
    if total <= ALL_UP_TO || row == 0 {
        return (0, total);
    }
    let rows = |px: i32| usize::try_from(px).unwrap_or(0) / row;
    let first = rows(top.saturating_neg()).saturating_sub(OVERSCAN).min(total);
    let count = rows(height) + 2 + 2 * OVERSCAN;
    (first, count.min(total - first))
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn short_lists_exist_whole() {
        assert_eq!(range(60, 56, -500, 900), (0, 60));
        assert_eq!(range(0, 56, 0, 900), (0, 0));
    }

    #[test]
    fn a_long_list_has_only_the_rows_near_the_visible_part() {
        assert_eq!(range(1_000, 50, 100, 900), (0, 36));
        assert_eq!(range(1_000, 50, -25_000, 900), (492, 36));
    }

    #[test]
    fn the_end_is_reached_and_never_passed() {
        let (first, count) = range(1_000, 50, -49_900, 900);
        assert_eq!(first + count, 1_000);
        assert_eq!(range(1_000, 50, i32::MIN, i32::MAX).0, 1_000);
        assert_eq!(range(1_000, 0, 0, 900), (0, 1_000));
    }
}
