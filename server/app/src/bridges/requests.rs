//! What requests about bridges share.

use crate::AppError;
use crate::bridges::lookup::{Lookup, Wanted};
use crate::locks::Locks;
use crate::read_model::records::Records;
use crate::tasks::Tasks;
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_process::locks::FileLock;

/// Finds the row of a request, and keeps others off its project.
/// Answers with the row's record.
///
/// What has begun runs to its end in `tasks`, even when the caller goes away.
pub(crate) struct Requests {
    pub lookup: Arc<Lookup>,
    pub locks: Arc<Locks>,
    pub records: Arc<Records>,
    pub tasks: Tasks,
}

impl Requests {
    /// The row that `reference` means, and the lock of its project.
    pub(crate) async fn locked(
        &self,
        reference: &str,
        wanted: Wanted,
    ) -> Result<(Bridge, FileLock), AppError> {
        let target = self.lookup.bridge(reference, wanted).await?;
        let lock = self.locks.project(&target.cwd).await?;
        Ok((target, lock))
    }
}
