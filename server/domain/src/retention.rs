//! Which old log sets go (`logs.retention_…`). Leaves alone: files and their names.

use std::time::Duration;
use svc_shared::Timestamp;

/// A set of a launch that was just made may not be named by its record yet.
const YOUNG: Duration = Duration::from_secs(10 * 60);

/// The files of one launch, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFacts {
    /// Common stem of its files.
    pub stem: String,
    /// Newest change of any of its files; `None` when none could be dated.
    pub newest: Option<Timestamp>,
    /// All of its files together.
    pub bytes: u64,
    /// How a record uses it.
    pub use_: Use,
}

/// How a record uses a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Of a live or held bridge: never removed.
    Live,
    /// Of an ended bridge.
    Ended,
    /// No record names it (any more, or yet).
    Unnamed,
}

/// What is kept; 0 is everything, in each dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Age of the newest file, in days.
    pub max_age_days: u32,
    /// The newest so many sets.
    pub max_sets: u32,
    /// All sets together, in bytes.
    pub max_bytes: u64,
}

/// Stems of the sets to remove, oldest first.
///
/// A set that cannot be dated counts as the oldest, but never ends by its age.
#[must_use]
pub fn expired(mut sets: Vec<SetFacts>, keep: Keep, now: Timestamp) -> Vec<String> {
    sets.sort_by_key(|set| set.newest.map(Timestamp::as_millis));
    let age = Duration::from_secs(u64::from(keep.max_age_days) * 24 * 60 * 60);
    let is_old = |set: &SetFacts| {
        keep.max_age_days > 0 && set.newest.is_some_and(|newest| now.since(newest) > age)
    };
    let newest_kept = match usize::try_from(keep.max_sets) {
        Ok(0) | Err(_) => 0,
        Ok(max) => sets.len().saturating_sub(max),
    };
    let may_go: Vec<bool> = sets.iter().map(|set| may_go(set, now)).collect();
    let mut goes: Vec<bool> = sets
        .iter()
        .zip(&may_go)
        .enumerate()
        .map(|(at, (set, may_go))| *may_go && (at < newest_kept || is_old(set)))
        .collect();
    let mut left: u64 =
        sets.iter().zip(&goes).filter(|(_, goes)| !**goes).map(|(set, _)| set.bytes).sum();
    for ((set, goes), may_go) in sets.iter().zip(&mut goes).zip(may_go) {
        if may_go && !*goes && keep.max_bytes > 0 && left > keep.max_bytes {
            *goes = true;
            left = left.saturating_sub(set.bytes);
        }
    }
    sets.into_iter().zip(goes).filter(|(_, goes)| *goes).map(|(set, _)| set.stem).collect()
}

fn may_go(set: &SetFacts, now: Timestamp) -> bool {
    match set.use_ {
        Use::Live => false,
        Use::Ended => true,
        Use::Unnamed => set.newest.is_none_or(|newest| now.since(newest) > YOUNG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60 * 60 * 1000;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_000 * DAY)
    }

    fn set(stem: &str, days: i64, bytes: u64) -> SetFacts {
        let newest = Timestamp::from_millis(now().as_millis() - days * DAY);
        SetFacts { stem: stem.to_owned(), newest: Some(newest), bytes, use_: Use::Ended }
    }

    #[track_caller]
    fn check(sets: &[SetFacts], keep: Keep, gone: &[&str]) {
        assert_eq!(expired(sets.to_vec(), keep, now()), gone, "{keep:?}");
    }

    #[test]
    fn each_dimension_takes_the_oldest_and_zero_takes_nothing() {
        let sets = [set("c", 3, 10), set("a", 40, 10), set("b", 29, 10), set("d", 0, 10)];
        check(&sets, Keep::default(), &[]);
        check(&sets, Keep { max_age_days: 30, ..Keep::default() }, &["a"]);
        check(&sets, Keep { max_sets: 2, ..Keep::default() }, &["a", "b"]);
        check(&sets, Keep { max_bytes: 25, ..Keep::default() }, &["a", "b"]);
        check(&sets, Keep { max_age_days: 2, max_sets: 3, max_bytes: 40 }, &["a", "b", "c"]);
    }

    #[test]
    fn live_sets_stay_and_count() {
        let mut sets = [set("live", 90, 50), set("old", 80, 1), set("new", 1, 1)];
        sets[0].use_ = Use::Live;
        check(&sets, Keep { max_age_days: 30, ..Keep::default() }, &["old"]);
        check(&sets, Keep { max_sets: 1, ..Keep::default() }, &["old"]);
        check(&sets, Keep { max_bytes: 51, ..Keep::default() }, &["old"]);
    }

    /// A launch makes its files before its record.
    #[test]
    fn a_set_without_a_record_goes_only_once_its_launch_must_be_over() {
        let mut sets = [set("young", 0, 9), set("leftover", 1, 9)];
        for set in &mut sets {
            set.use_ = Use::Unnamed;
        }
        check(&sets, Keep { max_bytes: 1, ..Keep::default() }, &["leftover"]);
    }

    #[test]
    fn what_cannot_be_dated_never_ends_by_age_and_goes_first_by_number() {
        let mut sets = [set("undated", 0, 1), set("old", 20, 1)];
        sets[0].newest = None;
        check(&sets, Keep { max_age_days: 1, ..Keep::default() }, &["old"]);
        check(&sets, Keep { max_sets: 1, ..Keep::default() }, &["undated"]);
    }

    /// H93: files from the future, after a clock was set back, are not old.
    #[test]
    fn h93_a_file_from_the_future_is_young() {
        check(&[set("future", -400, 1)], Keep { max_age_days: 1, ..Keep::default() }, &[]);
    }
}
