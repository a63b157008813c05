//! File locks between processes.
//! One operation at a time on a project, and on a job.

use crate::AppError;
use std::path::Path;
use std::time::Duration;
use svc_process::locks::{FileLock, FileLocks, LockError};

/// How long a caller waits for the lock of a project.
const PROJECT_WAIT: Duration = Duration::from_secs(10);

/// The locks in the state directory.
#[derive(Debug)]
pub(crate) struct Locks(FileLocks);

impl Locks {
    /// Locks whose files are in `<state_dir>/locks`.
    pub fn new(state_dir: &Path) -> Self {
        Self(FileLocks::new(state_dir.join("locks")))
    }

    /// The lock of the project in this directory.
    ///
    /// # Errors
    /// Another operation holds it for too long.
    pub async fn project(&self, real_path: &Path) -> Result<FileLock, AppError> {
        self.lock(real_path, PROJECT_WAIT, "project").await
    }

    /// The lock of a project if nobody has it: nobody is launching or stopping then.
    pub async fn try_project(&self, real_path: &Path) -> Option<FileLock> {
        self.0.try_lock(real_path).await.ok().flatten()
    }

    /// The lock that this path names, for an operation on a `subject`.
    ///
    /// # Errors
    /// Another operation holds it for longer than `wait`.
    pub async fn lock(
        &self,
        path: &Path,
        wait: Duration,
        subject: &str,
    ) -> Result<FileLock, AppError> {
        self.0.lock(path, wait).await.map_err(|error| match error {
            LockError::Busy { .. } => AppError::busy(format!(
                "another operation on this {subject} is still under way; try again in a moment"
            )),
            other @ LockError::File { .. } => {
                AppError::busy(format!("the lock of this {subject} cannot be taken; try again"))
                    .because(other)
            }
        })
    }
}
