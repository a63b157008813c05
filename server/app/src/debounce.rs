//! Debounces work: all requests within a delay run it once.

use crate::tasks::Tasks;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a run of one kind of work is pending.
#[derive(Debug, Default)]
pub(crate) struct Debounce(Arc<AtomicBool>);

impl Debounce {
    /// Runs `work` after this delay, unless a run is pending already.
    /// The work does not run when the service ends before.
    pub fn request<W>(
        &self,
        tasks: &Tasks,
        delay: Duration,
        work: impl FnOnce() -> W + Send + 'static,
    ) where
        W: Future<Output = ()> + Send + 'static,
    {
        if self.0.swap(true, Ordering::AcqRel) {
            return;
        }
        let (is_pending, shutdown) = (Arc::clone(&self.0), tasks.shutdown().clone());
        tasks.spawn(async move {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(delay) => {}
            }
            // Before the work: a request during the work needs another run.
            is_pending.store(false, Ordering::Release);
            work().await;
        });
    }
}
