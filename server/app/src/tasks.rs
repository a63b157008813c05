//! Tasks of this process: the end waits for all of them.

use crate::AppError;
use crate::ops::audit;
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long the end waits for use-cases under way.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// The owner of every task. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    shutdown: CancellationToken,
}

impl Tasks {
    /// Starts a task that the end of the process waits for.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn(work)
    }

    /// Runs a use-case to its end even when the caller goes away.
    /// A dropped connection must not leave a launch half done.
    pub async fn complete<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, AppError>> + Send + 'static,
    ) -> Result<T, AppError> {
        self.tracker.spawn(audit::acting_as_now(work)).await.map_err(AppError::internal)?
    }

    /// Cancelled when the process ends.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Ends the standing tasks and waits for use-cases under way, at most ten seconds.
    pub async fn close(&self) {
        self.shutdown.cancel();
        self.tracker.close();
        if tokio::time::timeout(LAST_WAIT, self.tracker.wait()).await.is_err() {
            tracing::warn!("some operations did not end within ten seconds");
        }
    }
}

/// Runs work that reads files away from the threads that serve requests.
///
/// # Errors
/// The work panicked, or the process is ending.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AppError> {
    tokio::task::spawn_blocking(work).await.map_err(AppError::internal)
}
