//! What waits for one target, in order.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Most things that wait for a target.
///
/// When full, the oldest is dropped and counted.
pub(super) const MOST: usize = 1_000;
/// How long a queue is emptied when the service ends (`http-api` §6.1).
pub(super) const DRAIN: Duration = Duration::from_secs(2);

/// A queue with one reader.
pub(super) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    news: Notify,
}

struct Inner<T> {
    waiting: VecDeque<T>,
    /// How many were dropped since the reader last looked.
    dropped: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let inner = Inner { waiting: VecDeque::new(), dropped: 0 };
        Self { inner: Mutex::new(inner), news: Notify::new() }
    }
}

impl<T> Queue<T> {
    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one. Never waits.
    ///
    /// Tells whether this dropped the first since the reader looked.
    pub fn offer(&self, one: T) -> bool {
        let is_first_drop = {
            let mut inner = self.inner();
            let is_full = inner.waiting.len() >= MOST;
            if is_full {
                inner.waiting.pop_front();
                inner.dropped = inner.dropped.saturating_add(1);
            }
            inner.waiting.push_back(one);
            is_full && inner.dropped == 1
        };
        self.news.notify_one();
        is_first_drop
    }

    /// The oldest, and how many were dropped before it.
    pub fn take(&self) -> Option<(T, u64)> {
        let mut inner = self.inner();
        let one = inner.waiting.pop_front()?;
        Some((one, std::mem::take(&mut inner.dropped)))
    }

    /// Takes the first of this kind out.
    pub fn take_out(&self, is_meant: impl Fn(&T) -> bool) -> Option<T> {
        let mut inner = self.inner();
        let place = inner.waiting.iter().position(is_meant)?;
        inner.waiting.remove(place)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.inner().waiting.len()
    }

    /// Waits for the oldest; `None` when the service ends and nothing is left.
    pub async fn next(&self, shutdown: &CancellationToken) -> Option<(T, u64)> {
        loop {
            if let Some(found) = self.take() {
                return Some(found);
            }
            tokio::select! {
                biased; // what came before the end is tried
                () = self.news.notified() => {}
                () = shutdown.cancelled() => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h50_a_full_queue_drops_the_oldest_and_counts() {
        let queue: Queue<u32> = Queue::default();
        let first_drops: Vec<u32> = (0..1_003).filter(|n| queue.offer(*n)).collect();
        assert_eq!(first_drops, [1_000]);
        assert_eq!(queue.take(), Some((3, 3)));
        assert_eq!(queue.take(), Some((4, 0)));
        assert_eq!(queue.len(), 998);
    }

    #[test]
    fn what_is_meant_is_taken_out_of_the_middle() {
        let queue: Queue<u32> = Queue::default();
        for n in 0..3 {
            queue.offer(n);
        }
        assert_eq!(queue.take_out(|n| *n == 1), Some(1));
        assert_eq!(queue.take_out(|n| *n == 1), None);
        assert_eq!((queue.take(), queue.take()), (Some((0, 0)), Some((2, 0))));
    }
}
