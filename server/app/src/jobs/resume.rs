//! Use-case: go on with an ended background job, as a new job with its transcript.

use super::ask::Question;
use super::dispatch::{JobDir, named, refusal};
use super::{conflict, job_id, unknown_job};
use crate::AppError;
use crate::bridges::circumstances::refuse;
use crate::jobs::Jobs;
use crate::tasks::blocking;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::jobs::{Candidate, Dispatch, NotResumable, StartedWith, check_model, resumable};
use svc_shared::api::instances::ResumeRequest;
use svc_shared::api::jobs::ResumeAgentResult;
use svc_shared::error::ErrorCode;
use svc_shared::ids::JobId;
use svc_store::LimitWait;

const TIMEOUT: Duration = Duration::from_secs(60);

impl Jobs {
    /// Starts a new job with the transcript, model and permission mode of an ended one.
    ///
    /// # Errors
    /// Nothing was started, except after a time-out, where the list of jobs tells.
    pub async fn resume(
        self: &Arc<Self>,
        id: &str,
        request: ResumeRequest,
    ) -> Result<ResumeAgentResult, AppError> {
        let (this, id) = (Arc::clone(self), id.to_owned());
        self.tasks.complete(async move { this.resume_now(&id, &request, By::Person).await }).await
    }

    /// The same after a plan limit, with something to do at once.
    ///
    /// Its wait is begun when only the agent can refuse any more.
    pub(crate) async fn go_on(
        self: &Arc<Self>,
        id: &JobId,
        prompt: &'static str,
        wait: LimitWait,
    ) -> Result<ResumeAgentResult, AppError> {
        let (this, id) = (Arc::clone(self), id.to_string());
        let (request, by) = (ResumeRequest::default(), By::Limit { prompt, wait });
        self.tasks.complete(async move { this.resume_now(&id, &request, by).await }).await
    }

    async fn resume_now(
        &self,
        raw: &str,
        request: &ResumeRequest,
        by: By,
    ) -> Result<ResumeAgentResult, AppError> {
        let id = job_id(raw)?;
        if !self.has_job(&id).await? {
            return Err(unknown_job(&id));
        }
        let _lock = self.lock_job(&id).await?;
        let job = self.scan.job(&id).await?;
        let not_resumable = |why: &str| {
            conflict(ErrorCode::NotResumable, format!("job {id} cannot be resumed: {why}"))
        };
        let Some(file) = &job.file else {
            return Err(not_resumable("its state cannot be read; try again in a moment"));
        };
        let candidate = Candidate {
            state: &job.record.state,
            worker: job.worker,
            session_id: file.session_id.as_deref(),
        };
        let session = resumable(candidate).map_err(|why| match why {
            NotResumable::Live => {
                conflict(ErrorCode::StillLive, format!("job {id} cannot be resumed: {why}"))
            }
            NotResumable::NoSession => not_resumable(&why.to_string()),
        })?;
        let Some(at) = place(file.cwd.as_deref()).await? else {
            return Err(not_resumable("its working directory is gone; start a new job instead"));
        };
        let Some(project) = self.project_at(&at.cwd) else {
            return Err(conflict(
                ErrorCode::NotTrusted,
                format!(
                    "job {id} cannot be resumed here: it worked outside `projects_root`; resume it \
                     with the agent itself"
                ),
            ));
        };
        let with = StartedWith::of_flags(&file.flags);
        let mode = with.mode().map_err(|why| not_resumable(&why.to_string()))?;
        self.permitted(&project, &at, mode).await?;
        let model = with.model.as_deref().filter(|model| check_model(model).is_ok());
        let prompt = match &by {
            By::Person => None,
            By::Limit { prompt, .. } => Some(*prompt),
        };
        let args =
            Dispatch { resume: Some(session), rc_name: None, model, permission_mode: mode, prompt }
                .args()
                .map_err(|why| not_resumable(&why.to_string()))?;
        if at.cwd != project.path && request.trust.unwrap_or(false) {
            // A grant is for the project's own directory; it may not be what counts here.
            let is_covered = at.git_root == project.git_root;
            if !is_covered {
                return Err(refuse(
                    &project.name,
                    &svc_domain::admission::Obstacle::TrustUnreadable(
                        "the job worked in a repository of its own; trust that with the agent"
                            .to_owned(),
                    ),
                ));
            }
        }
        let program = self.trusted_program(&project, &at, request.trust.unwrap_or(false)).await?;
        // Only one of a person and a wait goes on. Written first: a service that dies in between
        // leaves the job to the person.
        let taken = match by {
            By::Person => match session.parse() {
                Ok(conversation) => {
                    Some(self.store.take_limit_waits(&conversation, self.scan.clock.now()).await?)
                }
                Err(_) => None,
            },
            By::Limit { wait, .. } => {
                if !self.store.begin_limit_wait(&wait).await? {
                    return Err(not_resumable("somebody went on with it already"));
                }
                None
            }
        };
        let question = Question { program, args, cwd: at.cwd, timeout: TIMEOUT };
        let answer = self.answered(question).await?;
        if let Some(refusal) = refusal(&answer) {
            if let Some(taken) = taken {
                self.store.give_back_limit_waits(&taken).await?;
            }
            return Err(refusal);
        }
        let new = named(&answer)?;
        tracing::info!(job.id = %new, "background job {new} goes on with the transcript of {id}");
        Ok(ResumeAgentResult { id: new })
    }
}

/// Who goes on with a job.
enum By {
    Person,
    Limit { prompt: &'static str, wait: LimitWait },
}

/// The real directory, if it is still there, and the repository around it.
async fn place(cwd: Option<&Path>) -> Result<Option<JobDir>, AppError> {
    let Some(cwd) = cwd.map(Path::to_owned) else { return Ok(None) };
    blocking(move || {
        let cwd = cwd.canonicalize().ok().filter(|cwd| cwd.is_dir())?;
        let holds_git = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
        let git_root = cwd.ancestors().find(holds_git).map(Path::to_owned);
        Some(JobDir { cwd, git_root })
    })
    .await
}
