//! Lines of the log that a caller could repeat: each is written once a minute.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const LOG_EVERY: Duration = Duration::from_secs(60);
/// Most keys that are remembered; more are not logged within the minute.
const REMEMBERED: usize = 256;

/// What was logged within the last minute.
#[derive(Debug)]
pub(crate) struct LogLimit<K>(Mutex<HashMap<K, Instant>>);

impl<K> Default for LogLimit<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> LogLimit<K> {
    /// Whether the line of `key` is to be written now.
    pub(crate) fn allows(&self, key: K) -> bool {
        let now = Instant::now();
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|_, at| now.duration_since(*at) < LOG_EVERY);
        if logged.contains_key(&key) || logged.len() >= REMEMBERED {
            return false;
        }
        logged.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_line_is_allowed_once_a_minute_and_no_more_than_are_remembered() {
        let limit = LogLimit::default();
        assert!(limit.allows("a") && limit.allows("b"));
        tokio::time::advance(LOG_EVERY / 2).await;
        assert!(!limit.allows("a"));
        tokio::time::advance(LOG_EVERY / 2).await;
        assert!(limit.allows("a"), "a repetition does not prolong the silence");
        let many = LogLimit::default();
        let allowed = (0..2 * REMEMBERED).filter(|number| many.allows(*number));
        assert_eq!(allowed.count(), REMEMBERED);
    }
}
