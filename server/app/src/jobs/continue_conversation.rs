//! Use-case: go on with a conversation as a background job with its transcript.

use super::ask::Question;
use super::conflict;
use super::dispatch::JobDir;
use crate::AppError;
use crate::jobs::Jobs;
use std::path::PathBuf;
use std::time::Duration;
use svc_domain::agent_log::RemoteId;
use svc_domain::jobs::Dispatch;
use svc_shared::error::ErrorCode;
use svc_shared::ids::JobId;
use svc_shared::status::PermissionMode;

/// The agent's background service may have to be started first.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A conversation to go on with.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    /// The agent's id of it.
    pub id: RemoteId,
    /// Where it works; exists.
    pub cwd: PathBuf,
    /// Name under which the job is registered with the remote service.
    pub rc_name: String,
    /// Permission mode of the bridge that died.
    pub permission_mode: PermissionMode,
}

impl Jobs {
    /// Starts a job with a conversation's transcript that the remote client reaches.
    ///
    /// # Errors
    /// Nothing was started, except after a time-out, where the list of jobs tells.
    pub(crate) async fn continue_conversation(&self, of: &Conversation) -> Result<JobId, AppError> {
        let Some(project) = self.project_at(&of.cwd) else {
            return Err(conflict(
                ErrorCode::UnknownProject,
                "the project of this conversation is gone; continue it with the agent itself",
            ));
        };
        let git_root = of.cwd.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok());
        let at = JobDir { cwd: of.cwd.clone(), git_root: git_root.map(PathBuf::from) };
        self.permitted(&project, &at, of.permission_mode).await?;
        let args = Dispatch {
            resume: Some(of.id.expose()),
            rc_name: Some(&of.rc_name),
            model: None,
            permission_mode: of.permission_mode,
            prompt: None,
        }
        .args()
        .map_err(|unfit| AppError::invalid(unfit.to_string()))?;
        let program = self.trusted_program(&project, &at, false).await?;
        let id = self.accepted(Question { program, args, cwd: at.cwd, timeout: TIMEOUT }).await?;
        tracing::info!(job.id = %id, "background job {id} continues a stranded conversation");
        Ok(id)
    }
}
