//! Which rows of a long list exist: those near the visible part.

/// Up to this many rows, all of them exist.
pub const ALL_UP_TO: usize = 60;
/// Rows kept above and below the visible part.
const OVERSCAN: usize = 8;

/// The first row to build and how many.
///
/// The list has `total` rows of `row` pixels. It begins `top` pixels below the upper edge of a
/// viewport of `height` pixels; `top` is negative above it.
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

/// The row that a key leads to.
///
/// The list has `total` rows, of which `page` are visible at once. Rows count from 1; 0 means none
/// yet.
#[must_use]
pub fn step(key: &str, from: usize, page: usize, total: usize) -> Option<usize> {
    let to = match key {
        "ArrowDown" => from + 1,
        "ArrowUp" => from.saturating_sub(1),
        "PageDown" => from + page.max(1),
        "PageUp" => from.saturating_sub(page.max(1)),
        "Home" => 1,
        "End" => total,
        _ => return None,
    };
    (total > 0).then(|| to.clamp(1, total))
}

#[cfg(test)]
mod tests {
    use super::{range, step};

    #[test]
    fn keys_reach_every_row_and_stay_in_the_list() {
        assert_eq!(step("End", 1, 12, 10_000), Some(10_000));
        assert_eq!(step("ArrowDown", 10_000, 12, 10_000), Some(10_000));
        assert_eq!(step("ArrowDown", 0, 12, 3), Some(1));
        assert_eq!(step("PageUp", 5, 12, 10_000), Some(1));
        assert_eq!(step("PageDown", 5, 12, 10_000), Some(17));
        assert_eq!((step("Home", 7, 1, 9), step("ArrowUp", 7, 1, 9)), (Some(1), Some(6)));
        assert_eq!((step("Enter", 7, 1, 9), step("End", 0, 1, 0)), (None, None));
    }

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
