//! When a post of the outbox is tried again, and when it is given up.

use std::time::Duration;

/// Pause after the first attempt; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Age at which a post that no attempt delivered is given up.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(3 * 24 * 3600);

/// Failures in a row of one target before age alone gives a post up.
///
/// The service may not have run while the post grew old, or the network may not be there yet.
const MOST_FAILURES: u32 = 6;

/// What becomes of a post after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The target took it.
    Delivered,
    /// It is tried again after this pause.
    ///
    /// What came later waits, so that the order holds.
    Again(Duration),
    /// It is given up; a person can have it tried again.
    GiveUp,
}

/// Judges an attempt.
///
/// `status` is what the target answered, `None` where it was not reached. `attempts` counts this
/// one too, and so does `failures`: how often this service has failed at the target without a
/// success in between. `age` is how long the post has waited.
#[must_use]
pub fn next(status: Option<u16>, attempts: u32, failures: u32, age: Duration) -> Next {
    match status {
        Some(200..300) => Next::Delivered,
        // RFC 9110: the target says that this very request is wrong. 408, 425 and 429 are about
        // the moment.
        Some(400..500) if !matches!(status, Some(408 | 425 | 429)) => Next::GiveUp,
        Some(_) | None if age < GIVE_UP_AFTER => Next::Again(pause(attempts)),
        Some(_) | None if failures < MOST_FAILURES => Next::Again(pause(failures)),
        Some(_) | None => Next::GiveUp,
    }
}

fn pause(attempts: u32) -> Duration {
    let doubled = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.checked_mul(doubled).map_or(LONGEST_PAUSE, |pause| pause.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const YOUNG: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let pauses =
            [1, 2, 3, 9, 10, 33, u32::MAX].map(|attempts| next(None, attempts, attempts, YOUNG));
        let expected = [1, 2, 4, 256, 300, 300, 300];
        assert_eq!(pauses, expected.map(|seconds| Next::Again(Duration::from_secs(seconds))));
    }

    #[test]
    fn what_the_target_refuses_for_good_is_given_up_at_once() {
        for status in [400, 401, 404, 410, 422] {
            assert_eq!(next(Some(status), 1, 1, YOUNG), Next::GiveUp, "{status}");
        }
        for status in [100, 302, 408, 425, 429, 500, 503, 599] {
            assert!(matches!(next(Some(status), 1, 1, YOUNG), Next::Again(_)), "{status}");
        }
        assert_eq!(next(Some(204), 7, 1, GIVE_UP_AFTER), Next::Delivered);
    }

    #[test]
    fn nothing_is_tried_for_longer_than_three_days_while_the_target_is_known_to_fail() {
        let almost = GIVE_UP_AFTER.saturating_sub(YOUNG);
        assert!(matches!(next(None, 900, 900, almost), Next::Again(_)));
        assert_eq!(next(None, 900, 6, GIVE_UP_AFTER), Next::GiveUp);
        assert_eq!(next(Some(503), 900, 6, GIVE_UP_AFTER), Next::GiveUp);
    }

    #[test]
    fn what_grew_old_while_nothing_ran_is_not_given_up_at_the_first_failure() {
        let first = next(None, 2, 1, GIVE_UP_AFTER);
        assert_eq!(first, Next::Again(Duration::from_secs(1)));
        assert_eq!(next(None, 900, 5, GIVE_UP_AFTER), Next::Again(Duration::from_secs(16)));
    }
}
