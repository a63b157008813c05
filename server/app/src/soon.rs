//! Work that many have a reason for, and that is done once for all of them a moment later.

use crate::App;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether one kind of such work is on its way.
#[derive(Debug, Default)]
pub(crate) struct Soon(Arc<AtomicBool>);

impl Soon {
    /// Has `work` done after this time, unless it is on its way. Not done when the service ends
    /// before.
    pub fn ask<W>(&self, app: &App, after: Duration, work: impl FnOnce(App) -> W + Send + 'static)
    where
        W: Future<Output = ()> + Send + 'static,
    {
        if self.0.swap(true, Ordering::AcqRel) {
            return;
        }
        let (is_due, app) = (Arc::clone(&self.0), app.clone());
        app.clone().tasks().spawn(async move {
            tokio::select! {
                () = app.shutdown().cancelled() => return,
                () = tokio::time::sleep(after) => {}
            }
            // Before the work: a reason that comes during it needs it once more.
            is_due.store(false, Ordering::Release);
            work(app).await;
        });
    }
}
