//! How often a link for the remote client may be had (`http-api` §3.3).

use crate::error::Refusal;
use poem::http::{StatusCode, header};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use svc_shared::error::ErrorCode;
use tokio::time::Instant;

const LINKS: usize = 30;
const WINDOW: Duration = Duration::from_secs(60);

/// When links were given lately.
#[derive(Debug, Default)]
pub(crate) struct LinkRate {
    given: Mutex<VecDeque<Instant>>,
}

impl LinkRate {
    /// Counts one more.
    ///
    /// # Errors
    /// 429 with the seconds to wait.
    pub(crate) fn take(&self) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        while given.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            given.pop_front();
        }
        match given.front() {
            Some(oldest) if given.len() >= LINKS => {
                let left = WINDOW.saturating_sub(now.duration_since(*oldest));
                let seconds = (left.as_secs() + 1).to_string();
                Err(Refusal::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    ErrorCode::Throttled,
                    "more than 30 links were asked for within a minute; wait a moment",
                )
                .with(header::RETRY_AFTER, &seconds))
            }
            Some(_) | None => {
                given.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn thirty_links_a_minute_and_then_again() {
        let rate = LinkRate::default();
        for _ in 0..30 {
            assert!(rate.take().is_ok());
        }
        let refusal = rate.take().unwrap_err();
        assert_eq!(refusal.status(), 429);
        assert_eq!(refusal.into_json().header("retry-after"), Some("61"));
        tokio::time::advance(WINDOW).await;
        assert!(rate.take().is_ok());
    }
}
